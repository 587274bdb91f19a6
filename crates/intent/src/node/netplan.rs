//! The host's half: VLAN devices with addresses and routes, and dummies for sessions.

use std::collections::{BTreeMap, BTreeSet};

use mooring_api::kinds::mooring::NodeNames;
use mooring_api::kinds::schiff::{Device, NetplanNetwork, NetplanState, NodeNetplanConfigSpec};
use serde_json::{Value, json};

use super::peer::Dummy;
use crate::Answers;
use crate::compile::node_key;
use crate::form::{HostDevice, Item};

pub(super) fn netplan(
    items: &BTreeSet<Item>,
    names: &NodeNames,
    answers: &Answers,
    node: &str,
    dummies: &[Dummy],
) -> NodeNetplanConfigSpec {
    let mut by_vlan: BTreeMap<u16, &HostDevice> = BTreeMap::new();
    for item in items {
        let Item::Host(device) = item else { continue };
        let there = by_vlan.entry(device.vlan).or_insert(device);
        if there.name.is_none() {
            *there = device;
        }
    }
    let vlans = by_vlan.into_values();
    let vlans = vlans.map(|device| (device.device(), vlan(names, answers, node, device)));
    let mut dummy_devices: BTreeMap<String, Device> = BTreeMap::new();
    for dummy in dummies {
        let device = dummy_devices.entry(dummy.name.clone()).or_default();
        let addresses = device.entry("addresses").or_insert_with(|| json!([]));
        if let Value::Array(all) = addresses {
            all.push(json!(dummy.address));
        }
    }
    NodeNetplanConfigSpec {
        desired_state: NetplanState {
            network: NetplanNetwork {
                version: Some(2),
                vlans: vlans.collect(),
                dummy_devices,
                ..NetplanNetwork::default()
            },
        },
    }
}

fn vlan(names: &NodeNames, answers: &Answers, node: &str, device: &HostDevice) -> Device {
    let mut said = Device::new();
    let trunk = &names.trunk;
    said.insert("id".to_owned(), json!(device.vlan));
    said.insert(
        "link".to_owned(),
        json!(device.link.as_ref().unwrap_or(trunk)),
    );
    said.insert("mtu".to_owned(), json!(device.mtu));
    said.insert("critical".to_owned(), json!(true));
    if device.disable_segmentation {
        for key in [
            "generic-segmentation-offload",
            "tcp-segmentation-offload",
            "tcp6-segmentation-offload",
        ] {
            said.insert(key.to_owned(), json!(false));
        }
    }
    let mut addresses = Vec::new();
    for (subnet, key) in &device.addresses {
        let given = answers.address(&node_key(key, node));
        // An answer of an older subnet is none.
        if let Some(addr) = given.filter(|addr| subnet.contains(*addr)) {
            addresses.push(subnet.host(addr).to_string());
        }
    }
    if !addresses.is_empty() {
        // A route over a gateway needs an address to send from.
        let reachable = |via: &std::net::IpAddr| {
            let here = device.addresses.keys().filter(|s| s.contains(*via));
            here.count() > 0
        };
        let routes: Vec<Value> = device
            .routes
            .iter()
            .filter(|(_, via)| reachable(via))
            .map(|(to, via)| json!({ "to": to, "via": via }))
            .collect();
        said.insert("addresses".to_owned(), json!(addresses));
        if !routes.is_empty() {
            said.insert("routes".to_owned(), json!(routes));
        }
    }
    said
}
