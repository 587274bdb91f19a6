//! The host's half: VLAN devices with addresses and routes, and dummies for sessions.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use mooring_api::Cidr;
use mooring_api::kinds::mooring::NodeNames;
use mooring_api::kinds::schiff::{Device, NetplanNetwork, NetplanState, NodeNetplanConfigSpec};
use serde_json::{Value, json};

use super::peer::Dummy;
use crate::Answers;
use crate::compile::node_key;
use crate::form::{HostDevice, Item};

/// A device as all nodes of a class have it, and what of it is a node's own.
#[derive(Debug)]
pub(super) struct Shared {
    name: String,
    said: Device,
    /// Routes over gateways that its addresses reach; without an address there are none to send from.
    routes: Vec<Value>,
    /// Keys of a node's addresses, by subnet.
    addresses: BTreeMap<Cidr, String>,
}

/// The devices of a class.
pub(super) fn shared(items: &BTreeSet<Item>, names: &NodeNames) -> Vec<Shared> {
    let mut by_vlan: BTreeMap<u16, &HostDevice> = BTreeMap::new();
    for item in items {
        let Item::Host(device) = item else { continue };
        let there = by_vlan.entry(device.vlan).or_insert(device);
        if there.name.is_none() {
            *there = device;
        }
    }
    by_vlan.into_values().map(|d| vlan(names, d)).collect()
}

/// A node's half.
pub(super) fn netplan(
    shared: &[Shared],
    answers: &Answers,
    node: &str,
    dummies: &[Dummy],
) -> NodeNetplanConfigSpec {
    let vlans = shared.iter();
    let vlans = vlans.map(|device| (device.name.clone(), device.of(answers, node)));
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

fn vlan(names: &NodeNames, device: &HostDevice) -> Shared {
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
    let reachable = |via: &IpAddr| device.addresses.keys().any(|s| s.contains(*via));
    let routes = device.routes.iter().filter(|(_, via)| reachable(via));
    Shared {
        name: device.device(),
        said,
        routes: routes
            .map(|(to, via)| json!({ "to": to, "via": via }))
            .collect(),
        addresses: device.addresses.clone(),
    }
}

impl Shared {
    fn of(&self, answers: &Answers, node: &str) -> Device {
        let mut said = self.said.clone();
        let mut addresses = Vec::new();
        for (subnet, key) in &self.addresses {
            let given = answers.address(&node_key(key, node));
            // An answer of an older subnet is none.
            if let Some(addr) = given.filter(|addr| subnet.contains(*addr)) {
                addresses.push(Value::String(subnet.host(addr).to_string()));
            }
        }
        if !addresses.is_empty() {
            said.insert("addresses".to_owned(), Value::Array(addresses));
            if !self.routes.is_empty() {
                said.insert("routes".to_owned(), Value::Array(self.routes.clone()));
            }
        }
        said
    }
}
