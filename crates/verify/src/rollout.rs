//! Two pods with one address: replicas, a DaemonSet, a rollout that starts the new pod first, and one NAD
//! with an address that several workloads attach.
//!
//! The same mistakes are refused while rendering, under the same codes; here they are found in manifests
//! that nobody rendered. Easy to get wrong: a Deployment that says nothing about its strategy surges too.

use std::collections::BTreeSet;

use mooring_api::{Code, Finding};
use mooring_attach::nad::Use;
use mooring_attach::rollout::{self, Strategy};

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
        let mut running = running.filter(|pod| rollout::pods(pod.object).most > 0);
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
    let pods = rollout::pods(pod.object);
    if pods.most < 2 {
        return None;
    }
    let message = format!("{pods}, and each pod would have {address}");
    let help = "run one pod, or take addresses from a range: whereabouts, or host-local with a range per node";
    let finding = Finding::error(Code::SharedStaticAddress, message).help(help);
    Some(Found::at(finding, pod.origin, pods.field))
}

fn surge(pod: &Pod<'_>, address: &str) -> Option<Found> {
    if pod.origin.object.kind != "Deployment" || rollout::pods(pod.object).most == 0 {
        return None;
    }
    let finding = match rollout::strategy(pod.object) {
        Strategy::OneByOne => return None,
        Strategy::Surges => Finding::error(
            Code::SurgingStrategy,
            format!(
                "its rolling update starts the new pod before the old one is gone: {address}, twice"
            ),
        ),
        Strategy::Unsaid => Finding::warning(
            Code::SurgingStrategy,
            format!(
                "it names no strategy, so a rollout starts the new pod before the old one is gone: {address}, twice"
            ),
        ),
    };
    let finding = finding.help("set spec.strategy.type: Recreate, or rollingUpdate.maxSurge: 0");
    Some(Found::at(finding, pod.origin, "spec.strategy"))
}
