//! Calico: pools of one address for egress gateways, pools of a whole subnet for pods, and a policy for those pods.
//!
//! The storage API checks nothing, so what its own API would refuse is never made here: networks in canonical form,
//! block sizes within their bounds, no encapsulation, no two pools for one address.

use std::collections::BTreeSet;
use std::net::IpAddr;

use mooring_api::kinds::mooring::{CalicoApi, OperatorConfigSpec, Pods};
use mooring_api::{Cidr, Family, ObjectRef};
use serde_json::{Value, json};

use super::{host, object};
use crate::form::short_hash;

fn api(config: &OperatorConfigSpec) -> &'static str {
    match config.platform.calico_api {
        CalicoApi::V3 => "projectcalico.org/v3",
        CalicoApi::V1 => "crd.projectcalico.org/v1",
    }
}

fn short(family: Family) -> &'static str {
    match family {
        Family::V4 => "v4",
        Family::V6 => "v6",
    }
}

/// A pool of one address that nobody gets by chance.
pub(super) fn host_pool(
    config: &OperatorConfigSpec,
    owner: &ObjectRef,
    lead: &str,
    addr: IpAddr,
) -> Value {
    let family = Family::of(addr);
    let cidr = host(addr);
    let name = format!("{lead}-{}-{}", short(family), short_hash(&cidr, 8));
    pool(config, owner, &name, &cidr, family.bits())
}

fn pool(
    config: &OperatorConfigSpec,
    owner: &ObjectRef,
    name: &str,
    cidr: &str,
    block: u8,
) -> Value {
    let spec = json!({
        "cidr": cidr,
        "blockSize": block,
        "natOutgoing": false,
        "ipipMode": "Never",
        "vxlanMode": "Never",
        "allowedUses": ["Workload"],
        // Only pods that name the pool get an address of it.
        "nodeSelector": "!all()",
    });
    object((api(config), "IPPool"), None, name, owner, spec)
}

/// Pools and policy of a PodNetwork.
pub(crate) fn pods(
    config: &OperatorConfigSpec,
    owner: &ObjectRef,
    subnets: &[Cidr],
    reachable: &BTreeSet<Cidr>,
) -> Vec<Value> {
    if config.platform.pods == Pods::None || subnets.is_empty() {
        return Vec::new();
    }
    let mut made: Vec<Value> = subnets
        .iter()
        .map(|subnet| {
            let family = subnet.family();
            let cidr = subnet.to_string();
            let name = format!(
                "pn-{}-{}-{}",
                owner.name,
                short(family),
                short_hash(&cidr, 8)
            );
            // A block is at least as long as the pool; these are the usual sizes.
            let usual = match family {
                Family::V4 => 26,
                Family::V6 => 122,
            };
            pool(config, owner, &name, &cidr, usual.max(subnet.prefix_len()))
        })
        .collect();
    made.push(policy(config, owner, subnets, reachable));
    made
}

/// Pods of the network may talk with its destinations and with each other; all else is for other policies to say.
fn policy(
    config: &OperatorConfigSpec,
    owner: &ObjectRef,
    subnets: &[Cidr],
    reachable: &BTreeSet<Cidr>,
) -> Value {
    let nets: Vec<String> = subnets
        .iter()
        .chain(reachable)
        .map(ToString::to_string)
        .collect();
    let v4 = |net: &&String| !net.contains(':');
    let (v4, v6): (Vec<&String>, Vec<&String>) = nets.iter().partition(v4);
    let mut ingress = Vec::new();
    let mut egress = Vec::new();
    for (version, nets) in [(4, v4), (6, v6)] {
        if !nets.is_empty() {
            ingress.push(
                json!({ "action": "Allow", "ipVersion": version, "source": { "nets": nets } }),
            );
            egress.push(
                json!({ "action": "Allow", "ipVersion": version, "destination": { "nets": nets } }),
            );
        }
    }
    ingress.push(json!({ "action": "Pass" }));
    egress.push(json!({ "action": "Pass" }));
    let spec = json!({
        "order": 1000,
        "selector": format!("network.t-caas.telekom.com/pod-network == '{}'", owner.name),
        "types": ["Ingress", "Egress"],
        "ingress": ingress,
        "egress": egress,
    });
    let name = format!("pn-{}", owner.name);
    object(
        (api(config), "GlobalNetworkPolicy"),
        None,
        &name,
        owner,
        spec,
    )
}
