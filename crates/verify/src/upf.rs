//! A user plane function whose address comes from a pool: its peers are configured with the address, so
//! after a restart they send to one that it no longer has.
//!
//! What makes a workload a UPF is written in `docs/findings/DynamicUpfAddress.md`; names alone do not, and
//! gNBs and simulators register anew and may use a pool. Change both together.

use std::collections::BTreeSet;

use mooring_api::{Code, Finding, annotation};
use serde_json::Value;

use crate::report::Found;
use crate::world::{Nad, Pod, World, annotation_of, is_local_config};

const LABELS: [&str; 6] = [
    "app.kubernetes.io/name",
    "app.kubernetes.io/component",
    "app",
    "component",
    "nf",
    "nephio.org/nf-type",
];

pub(crate) fn judge(world: &World<'_>, out: &mut Vec<Found>) {
    let deployments: BTreeSet<(&str, &str)> = world
        .inputs
        .iter()
        .filter(|input| is_upf_deployment(&input.origin.object.kind, input.value))
        .filter(|input| !is_local_config(input.value))
        .map(|input| (input.origin.cluster.as_str(), input.origin.package.as_str()))
        .collect();
    for nad in world.nads.iter().filter(|nad| is_pool(nad)) {
        let users = nad
            .users
            .iter()
            .map(|(pod, place)| (&world.pods[*pod], *place));
        for (pod, place) in users {
            // host-local gives what it is asked for; whereabouts adds it to one of its own.
            let asked = pod
                .entry(place)
                .is_some_and(|entry| !entry.ips().is_empty());
            if is_upf(pod) && !(asked && nad.ipam() == "host-local") {
                let message = format!(
                    "this UPF gets its address on {} from {}: after a restart it may have another one, and its peers \
                     still send to the old",
                    nad.origin.object.name,
                    nad.ipam()
                );
                out.push(Found::at(say(message), pod.origin, &pod.field));
            }
        }
        let place = (nad.origin.cluster.as_str(), nad.origin.package.as_str());
        if nad.users.is_empty() && deployments.contains(&place) {
            let message = format!(
                "the UPF of this package gets its address from {}: after a restart it may have another one, and its \
                 peers still send to the old",
                nad.ipam()
            );
            out.push(Found::at(say(message), nad.origin, "spec.config"));
        }
    }
}

fn say(message: String) -> Finding {
    Finding::warning(Code::DynamicUpfAddress, message)
        .help("use static IPAM (mooring.dev/ipam-flavour: static) or moor, which keeps the address")
}

fn is_pool(nad: &Nad<'_>) -> bool {
    matches!(nad.ipam(), "host-local" | "whereabouts" | "dhcp")
}

pub(crate) fn is_upf_deployment(kind: &str, value: &Value) -> bool {
    let provider = value.pointer("/spec/provider").and_then(Value::as_str);
    kind == "UPFDeployment" || (kind == "NFDeployment" && provider.is_some_and(names_upf))
}

/// The annotation decides; without one, the labels.
pub(crate) fn is_upf(pod: &Pod<'_>) -> bool {
    is_any(&[pod.template, pod.object])
}

/// The same for an object with a pod template.
pub(crate) fn is_upf_object(object: &Value) -> bool {
    match object.pointer("/spec/template") {
        Some(template) => is_any(&[template, object]),
        None => is_any(&[object]),
    }
}

fn is_any(places: &[&Value]) -> bool {
    let said = places
        .iter()
        .find_map(|v| annotation_of(v, annotation::NETWORK_FUNCTION));
    if let Some(function) = said {
        return function.eq_ignore_ascii_case("upf");
    }
    let label = |value: &Value, key: &str| {
        let label = value
            .get("metadata")
            .and_then(|m| m.get("labels")?.get(key));
        label.and_then(Value::as_str).is_some_and(names_upf)
    };
    places
        .iter()
        .any(|value| LABELS.iter().any(|key| label(value, key)))
}

/// `upf`, `free5gc-upf`, `upf.free5gc.io`; not `upf-simulator`, not `smf`.
fn names_upf(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let words: Vec<&str> = text.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let plays = |word: &&str| word.contains("sim") || word.contains("gnb");
    words.contains(&"upf") && !words.iter().any(plays)
}
