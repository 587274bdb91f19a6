//! What a pod asks for in its networks annotation: whether it can be read, whether each network exists,
//! and whether the interface would get an address from exactly one place.
//!
//! Easy to get wrong: not every cluster's NADs are here. A name that nobody knows is a warning; it is an
//! error only where something shows that the name itself is wrong.

use std::collections::{BTreeMap, BTreeSet};

use mooring_api::{Code, Finding};
use mooring_attach::nad;
use mooring_attach::networks::Entry;
use serde_json::Value;

use crate::carried::arguments;
use crate::near::near;
use crate::report::Found;
use crate::world::{Pod, World};

pub(crate) fn judge(world: &World<'_>, out: &mut Vec<Found>) {
    for nad in &world.nads {
        let findings = nad::check(nad.config).into_iter();
        out.extend(findings.map(|finding| Found {
            finding: finding.on(&nad.origin.object),
            origin: nad.origin.clone(),
        }));
    }
    let mut missing = Missing::default();
    for pod in &world.pods {
        if pod.on_host {
            out.push(host_network(pod));
            continue;
        }
        if let Err(error) = &pod.networks {
            out.push(unreadable(pod, &error.to_string()));
            continue;
        }
        // The same network may be asked for many times.
        let mut said = BTreeSet::new();
        for (_, entry, nad) in pod.entries() {
            if let Some(finding) = primary(entry) {
                out.push(Found::at(finding, pod.origin, &pod.field));
            }
            let Some(nad) = nad.map(|nad| &world.nads[nad]) else {
                if said.insert((entry.namespace(), entry.name())) {
                    out.push(missing.say(world, pod, entry));
                }
                continue;
            };
            let carriers = nad.has_address() && !entry.ips().is_empty();
            for finding in carriers
                .then(|| nad::check_selection(nad.config, entry))
                .into_iter()
                .flatten()
            {
                let finding = Finding {
                    code: Code::TwoCarriers,
                    ..finding
                };
                out.push(Found::at(finding, pod.origin, &pod.field));
            }
            if nad.ipam() == "static" && !nad.has_address() && !arguments(entry) {
                out.push(no_address(pod, entry));
            }
        }
    }
}

fn host_network(pod: &Pod<'_>) -> Found {
    let message = "the pod runs on the host's network, so its networks annotation is never read and none of \
                   its interfaces appear";
    let help = "remove hostNetwork, or remove the annotation and keep the node's address with `moor reserve`";
    let finding = Finding::error(Code::NetworksOnHostNetwork, message).help(help);
    Found::at(finding, pod.origin, &pod.field)
}

/// Says what is meant where `default-route: ["true"]` is why it cannot be read.
fn unreadable(pod: &Pod<'_>, error: &str) -> Found {
    let entries: Vec<Value> = serde_json::from_str(pod.text).unwrap_or_default();
    let says_true = |entry: &&Value| {
        let routes = entry.get("default-route").and_then(Value::as_array);
        let mut routes = routes.into_iter().flatten();
        routes.any(|r| matches!(r.as_str(), Some("true")) || r.as_bool() == Some(true))
    };
    let finding = if let Some(entry) = entries.iter().find(says_true) {
        let name = entry.get("name").and_then(Value::as_str);
        let message = format!(
            "default-route of {} is \"true\", which is no gateway: the annotation is refused and the pod does not start",
            name.unwrap_or_default()
        );
        let help = "leave default-route out; the cluster's own network keeps the default route. To move it, \
                    write the gateway's address";
        Finding::error(Code::NadAsPrimary, message).help(help)
    } else {
        let message = format!(
            "the networks annotation cannot be read, so the pod gets none of its interfaces: {error}"
        );
        Finding::error(Code::InvalidNetworksAnnotation, message)
            .help("write `namespace/name@interface, …` or a JSON list")
    };
    Found::at(finding, pod.origin, &pod.field)
}

/// The runtime made `eth0` before any attachment.
fn primary(entry: &Entry) -> Option<Finding> {
    let interface = entry
        .interface()
        .filter(|name| matches!(*name, "eth0" | "lo"))?;
    let name = entry.name();
    let message = format!(
        "{name} asks to be {interface}, which the pod has already from the cluster's own network: it does not start"
    );
    let help =
        format!("give {name} a name of its own, such as net1; a NAD is for secondary interfaces");
    Some(Finding::error(Code::NadAsPrimary, message).help(help))
}

fn no_address(pod: &Pod<'_>, entry: &Entry) -> Found {
    let name = entry.name();
    let message = format!(
        "{name} has static IPAM without an address and the annotation brings none: the pod does not start"
    );
    let help = format!(
        "add \"ips\": [\"ADDRESS/LENGTH\"] to the entry of {name}, or addresses to its NAD; `moor claim` hands one out"
    );
    let finding = Finding::error(Code::StaticWithoutAddress, message).help(help);
    Found::at(finding, pod.origin, &pod.field)
}

/// Remembers what was near a name, since many pods make the same slip.
#[derive(Default)]
struct Missing<'a>(BTreeMap<(&'a str, String), Vec<&'a str>>);

impl<'a> Missing<'a> {
    fn say(&mut self, world: &World<'a>, pod: &Pod<'a>, entry: &Entry) -> Found {
        let cluster = pod.origin.cluster.as_str();
        let name = entry.name();
        let namespace = entry.namespace().unwrap_or(&pod.origin.object.namespace);
        let place = if namespace.is_empty() {
            String::new()
        } else {
            format!(" in {namespace}")
        };
        let message = format!("network {name} does not exist{place}: the pod does not start");
        let mut there: Vec<&str> = world
            .named(cluster, name)
            .iter()
            .map(|nad| world.nads[*nad].origin.object.namespace.as_str())
            .collect();
        there.sort_unstable();
        there.dedup();
        if let Some(first) = there.first() {
            let help = format!(
                "it is in {}: write {first}/{name}, or move the NAD; with namespace isolation only the latter works",
                there.join(", ")
            );
            return Found::at(
                Finding::error(Code::NadMissing, message).help(help),
                pod.origin,
                &pod.field,
            );
        }
        let key = (cluster, name.to_owned());
        let near = self
            .0
            .entry(key)
            .or_insert_with(|| near(name, world.nad_names(cluster)));
        let finding = if near.is_empty() {
            let message = format!(
                "network {name} is not among these objects{place}: the pod starts only if the cluster has it"
            );
            let help = format!(
                "add a NetworkAttachmentDefinition {name}, or verify the cluster's objects too"
            );
            Finding::warning(Code::NadMissing, message).help(help)
        } else {
            Finding::error(Code::NadMissing, message)
                .help(format!("did you mean {}?", near.join(" or ")))
        };
        Found::at(finding, pod.origin, &pod.field)
    }
}
