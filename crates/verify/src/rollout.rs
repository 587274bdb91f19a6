//! Two pods with one address: replicas, a DaemonSet, a rollout that starts the new pod first, and one NAD
//! with an address that several workloads attach.
//!
//! The same mistakes are refused while rendering, under the same codes; here they are found in manifests
//! that nobody rendered. Easy to get wrong: a Deployment that says nothing about its strategy surges too.

use std::collections::BTreeSet;

use mooring_api::{Code, Finding, Severity};
use mooring_attach::nad::Use;
use serde_json::Value;

use crate::report::Found;
use crate::world::{Pod, World};

pub(crate) fn judge(world: &World<'_>, out: &mut Vec<Found>) {
    for pod in &world.pods {
        let mut seen = BTreeSet::new();
        let mut fixed = None;
        for (_, entry, nad) in pod.entries() {
            let address = nad.and_then(|nad| {
                let uses = world.nads[nad].uses.iter();
                let mut hosts = uses.filter_map(|u| match u.what {
                    Use::Address(host) => Some(host.addr().to_string()),
                    Use::Range { .. } => None,
                });
                hosts.next()
            });
            if let (Some(address), Some(nad)) = (&address, nad)
                && !seen.insert(nad)
            {
                let name = entry.name();
                let message =
                    format!("{name} is attached twice, and the pod would have {address} twice");
                let help = format!("remove one of the two entries of {name}");
                let finding = Finding::error(Code::DuplicateAddress, message).help(help);
                out.push(Found::at(finding, pod.origin, &pod.field));
            }
            let asked = entry.ips().first().map(|ip| (*ip).to_owned());
            fixed = fixed.or(asked).or(address);
        }
        if let Some(address) = fixed {
            out.extend(replicas(pod, &address).or_else(|| surge(pod, &address)));
        }
    }
    for nad in world.nads.iter().filter(|nad| nad.has_address()) {
        let mut workloads: Vec<usize> = nad.users.iter().map(|(pod, _)| *pod).collect();
        workloads.sort_by_key(|pod| world.pods[*pod].origin);
        workloads.dedup();
        // A workload that stands in two files is one.
        workloads.dedup_by_key(|pod| &world.pods[*pod].origin.object);
        let running = workloads.iter().map(|pod| &world.pods[*pod]);
        let mut running = running.filter(|pod| pod.count().0 > 0);
        let Some(first) = running.next() else {
            continue;
        };
        for pod in running {
            let name = &nad.origin.object.name;
            let message = format!(
                "{name} carries its address, and {} attaches it too: two pods with one address",
                first.origin.object
            );
            let help = "give each workload a network of its own, or carry the addresses in the annotations";
            let finding = Finding::error(Code::SharedStaticAddress, message).help(help);
            out.push(Found::at(finding, pod.origin, &pod.field));
        }
    }
}

fn replicas(pod: &Pod<'_>, address: &str) -> Option<Found> {
    let (count, field) = pod.count();
    if count < 2 {
        return None;
    }
    let what = match field {
        "kind" => "a DaemonSet runs a pod on every node".to_owned(),
        field => format!("{field} is {count}"),
    };
    let message = format!("{what}, and each pod would have {address}");
    let help = "run one pod, or take addresses from a range: whereabouts, or host-local with a range per node";
    let finding = Finding::error(Code::SharedStaticAddress, message).help(help);
    Some(Found::at(finding, pod.origin, field))
}

fn surge(pod: &Pod<'_>, address: &str) -> Option<Found> {
    if pod.origin.object.kind != "Deployment" || pod.count().0 == 0 {
        return None;
    }
    let strategy = pod.object.pointer("/spec/strategy");
    let said = strategy
        .and_then(Value::as_object)
        .is_some_and(|s| !s.is_empty());
    let kind = strategy.and_then(|s| s.get("type")).and_then(Value::as_str);
    let surge = strategy.and_then(|s| s.pointer("/rollingUpdate/maxSurge"));
    let none =
        surge.is_some_and(|s| s.as_u64() == Some(0) || matches!(s.as_str(), Some("0" | "0%")));
    if kind == Some("Recreate") || none {
        return None;
    }
    let message = if said {
        format!(
            "its rolling update starts the new pod before the old one is gone: {address}, twice"
        )
    } else {
        format!(
            "it names no strategy, so a rollout starts the new pod before the old one is gone: {address}, twice"
        )
    };
    let finding = Finding {
        severity: if said {
            Severity::Error
        } else {
            Severity::Warning
        },
        ..Finding::error(Code::SurgingStrategy, message)
    };
    let finding = finding.help("set spec.strategy.type: Recreate, or rollingUpdate.maxSurge: 0");
    Some(Found::at(finding, pod.origin, "spec.strategy"))
}
