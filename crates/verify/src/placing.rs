//! Node-local IPAM: host-local keeps its books in files on each node, so two nodes hand out the same
//! address, and a pod that moves gets another one.
//!
//! Easy to get wrong: a pod that asks for an address (`ips`) gets that one everywhere and is no case of
//! this; whether it is unique is another rule's business.

use std::collections::BTreeSet;

use mooring_api::{Code, Finding};
use mooring_attach::rollout;
use serde_json::Value;

use crate::report::Found;
use crate::world::{Nad, Pod, World};

const HOSTNAME: &str = "kubernetes.io/hostname";

pub(crate) fn judge(world: &World<'_>, out: &mut Vec<Found>) {
    for nad in world.nads.iter().filter(|nad| nad.ipam() == "host-local") {
        let cluster = world.clusters.get(&nad.origin.cluster);
        if cluster.is_some_and(|cluster| cluster.nodes.len() == 1) {
            continue;
        }
        out.extend(judge_nad(world, nad));
    }
}

fn judge_nad(world: &World<'_>, nad: &Nad<'_>) -> Option<Found> {
    let mut pods: Vec<&Pod<'_>> = nad
        .users
        .iter()
        .filter(|(pod, place)| {
            let entry = world.pods[*pod].entry(*place);
            entry.is_some_and(|entry| entry.ips().is_empty())
        })
        .map(|(pod, _)| &world.pods[*pod])
        .filter(|pod| rollout::pods(pod.object).most > 0)
        .collect();
    pods.sort_by_key(|pod| pod.origin);
    pods.dedup_by_key(|pod| pod.origin);
    let count = pods.iter().fold(0_u64, |n, pod| {
        n.saturating_add(rollout::pods(pod.object).most)
    });
    let nodes: BTreeSet<Option<&str>> = pods.iter().map(|pod| node(pod)).collect();
    let first = pods.first()?;
    if nodes.len() == 1 && !nodes.contains(&None) {
        return None;
    }
    let name = &nad.origin.object.name;
    let who = &first.origin.object;
    let finding = if count > 1 {
        let others = if pods.len() > 1 { " and others" } else { "" };
        let message = format!(
            "host-local hands out addresses on each node by itself, and {who}{others} may run on \
             several nodes: the same address is handed out twice"
        );
        let help = format!(
            "use whereabouts, or one NAD and range per node (annotation mooring.dev/range-per: node), or pin all pods \
             of {name} to one node with nodeSelector {HOSTNAME}"
        );
        Finding::error(Code::HostLocalNotPinned, message).help(help)
    } else {
        let message = format!(
            "{who} may move to another node, where host-local knows nothing of its address and gives it another one"
        );
        let help = format!(
            "pin it with nodeSelector {HOSTNAME}, or use static or moor IPAM: the address then goes with the pod"
        );
        Finding::warning(Code::HostLocalNotPinned, message).help(help)
    };
    Some(Found::at(finding, nad.origin, "spec.config"))
}

/// The one node that a pod runs on, if its template says so.
fn node<'a>(pod: &Pod<'a>) -> Option<&'a str> {
    node_of(pod.spec())
}

/// The one node that the spec of a pod names.
pub(crate) fn node_of(spec: &Value) -> Option<&str> {
    fn text(value: Option<&Value>) -> Option<&str> {
        value.and_then(Value::as_str).filter(|t| !t.is_empty())
    }
    let selected = spec.get("nodeSelector").and_then(|s| s.get(HOSTNAME));
    text(spec.get("nodeName"))
        .or_else(|| text(selected))
        .or_else(|| by_affinity(spec))
}

/// Terms are alternatives, so all of them must come to the same node.
fn by_affinity(spec: &Value) -> Option<&str> {
    let terms = spec.pointer(
        "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms",
    )?;
    let one = |term| {
        let fields = [
            ("matchExpressions", HOSTNAME),
            ("matchFields", "metadata.name"),
        ];
        fields
            .into_iter()
            .find_map(|(list, key)| only(term, list, key))
    };
    let nodes: Vec<Option<&str>> = terms.as_array()?.iter().map(one).collect();
    let first = *nodes.first()?;
    first.filter(|_| nodes.iter().all(|node| *node == first))
}

fn only<'v>(term: &'v Value, list: &str, key: &str) -> Option<&'v str> {
    let wants = term.get(list)?.as_array()?;
    let hostname = wants.iter().find(|want| {
        let is = |field: &str, text: &str| want.get(field).and_then(Value::as_str) == Some(text);
        is("key", key) && is("operator", "In")
    })?;
    match hostname.get("values")?.as_array()?.as_slice() {
        [node] => node.as_str(),
        _ => None,
    }
}
