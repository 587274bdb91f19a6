//! nfdeploy-fn: the network function waits for what it needs, then carries it in its spec.
//!
//! It owns nothing that it would make: Interfaces, DataNetworks and Dependencies are in the package from the start,
//! and it only follows their conditions. It is the root: its condition decides whether the package is specialised.
//! Easy to get wrong: an Interface that is tagged but has no VLAN yet is left out; one that is not tagged at all
//! never gets one, and belongs in.

use std::collections::BTreeMap;

use mooring_api::kinds::nephio::req::IpFamilyPolicy;
use mooring_api::{Code, HostCidr};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::engine::{Failure, Input, Own, Rule, Updated, Watch};
use super::interface::{network_instance, put, text};
use super::kinds::{CAPACITY, CLUSTER, DATA_NETWORK, DEPENDENCY, DEPLOYMENT, INTERFACE};
use super::quantity::canonical;
use super::seen::Seen;
use crate::bundle::{Object, map_below};

/// For NFDeployments.
pub(super) const RULE: Rule = Rule {
    subject: DEPLOYMENT,
    owns: &[
        (CAPACITY, Own::Local),
        (INTERFACE, Own::Initial),
        (DATA_NETWORK, Own::Initial),
        (DEPENDENCY, Own::Initial),
    ],
    watches: &[(CLUSTER, Watch::Global)],
    root: true,
    one_per_owner: false,
    populate,
    update,
};

/// It makes nothing, but without a cluster nothing else will.
fn populate(_: &Object, seen: &Seen) -> Result<Vec<Object>, Failure> {
    seen.cluster().map(|_| Vec::new())
}

fn list<'a>(object: &'a Object, path: &str) -> Option<&'a Vec<Value>> {
    object.value.pointer(path)?.as_array()
}

/// A network instance of the function's spec, while it is gathered.
#[derive(Default)]
struct Instance {
    interfaces: Vec<String>,
    data_networks: Vec<Value>,
}

fn update(input: &Input<'_>) -> Result<Updated, Failure> {
    let mut object = input.object()?.clone();
    let mut instances: BTreeMap<String, Instance> = BTreeMap::new();
    for network in input.all(DATA_NETWORK) {
        let Some(pools) = list(network, "/status/pools") else {
            continue;
        };
        let prefixes = pools.iter().filter_map(|p| p.pointer("/ipClaim/prefix"));
        let prefixes: Vec<Value> = prefixes
            .filter(|p| !p.is_null())
            .map(|p| json!({ "prefix": p }))
            .collect();
        let mut shown = json!({ "name": network.name() });
        if !prefixes.is_empty() {
            shown["pool"] = json!(prefixes);
        }
        let name = network.value.pointer("/spec/networkInstance/name");
        let name = name.and_then(Value::as_str).unwrap_or_default();
        let instance = instances.entry(name.to_owned()).or_default();
        instance.data_networks.push(shown);
    }
    let mut interfaces = Vec::new();
    for interface in input.all(INTERFACE) {
        validate(interface)?;
        let (_, network) = network_instance(interface)?;
        if let Some(shown) = shown(interface)? {
            interfaces.push(shown);
            let instance = instances.entry(network.to_owned()).or_default();
            instance.interfaces.push(interface.name().to_owned());
        }
    }
    let parameters = parameters(&object, &input.all(DEPENDENCY));
    let instances = instances
        .into_iter()
        .map(|(name, instance)| written(&object, name, instance))
        .collect();
    let capacity = input.all(CAPACITY).last().map(|c| capacity(c));
    let spec = map_below(&mut object.value, &["spec"]);
    if capacity.is_some() {
        put(spec, "capacity", capacity);
    }
    for (key, values) in [
        ("interfaces", interfaces),
        ("networkInstances", instances),
        ("parametersRefs", parameters),
    ] {
        put(
            spec,
            key,
            (!values.is_empty()).then_some(Value::Array(values)),
        );
    }
    Ok(Updated {
        object: Some(object),
        said: Vec::new(),
    })
}

/// The published checks of an Interface, both spellings of the policy let in.
fn validate(interface: &Object) -> Result<(), Failure> {
    let unknown = |what: &str, got: &str, field| {
        let text = format!("spec invalid: unsupported {what}, got: {got}");
        Err(Failure::new(Code::InvalidField, text).at(field))
    };
    let attachment = text(interface, "attachmentType");
    if !matches!(attachment, "" | "none" | "vlan") {
        return unknown("attachmentType", attachment, "spec.attachmentType");
    }
    let cni = text(interface, "cniType");
    if !matches!(cni, "" | "sriov" | "ipvlan" | "macvlan") {
        return unknown("cniType", cni, "spec.cniType");
    }
    let policy = text(interface, "ipFamilyPolicy");
    if !policy.is_empty() && IpFamilyPolicy::deserialize(&json!(policy)).is_err() {
        return unknown("addressing", policy, "spec.ipFamilyPolicy");
    }
    Ok(())
}

/// The Interface as the function's spec has it; None while it has no answer.
fn shown(interface: &Object) -> Result<Option<Value>, Failure> {
    let Some(answers) = list(interface, "/status/ipClaimStatus") else {
        return Ok(None);
    };
    let vlan = interface.value.pointer("/status/vlanClaimStatus");
    let vlan = vlan.filter(|v| v.is_object());
    if vlan.is_none() && text(interface, "attachmentType") == "vlan" {
        return Ok(None);
    }
    let mut shown = Map::new();
    shown.insert("name".into(), json!(interface.name()));
    let (mut v4, mut v6) = (None, None);
    for answer in answers {
        let Some(prefix) = answer.get("prefix").and_then(Value::as_str) else {
            continue;
        };
        let read: HostCidr = prefix.parse().map_err(|e: mooring_api::BadValue| {
            Failure::new(Code::InvalidField, e.to_string()).at("status.ipClaimStatus")
        })?;
        let mut address = json!({ "address": prefix });
        if let Some(gateway) = answer.get("gateway").filter(|g| !g.is_null()) {
            address["gateway"] = gateway.clone();
        }
        match read.family() {
            mooring_api::Family::V4 => v4 = Some(address),
            mooring_api::Family::V6 => v6 = Some(address),
        }
    }
    let id = vlan.and_then(|v| v.get("vlanID")).cloned();
    for (key, value) in [("ipv4", v4), ("ipv6", v6), ("vlanID", id)] {
        if let Some(value) = value {
            shown.insert(key.into(), value);
        }
    }
    Ok(Some(Value::Object(shown)))
}

/// What is gathered of an instance, and what somebody wrote about its peers.
fn written(object: &Object, name: String, mut instance: Instance) -> Value {
    let known = list(object, "/spec/networkInstances").into_iter().flatten();
    let mut known = known.filter(|i| i.get("name").and_then(Value::as_str) == Some(&name));
    let known = known.next();
    let mut map = Map::new();
    instance.interfaces.sort();
    map.insert("name".into(), json!(name));
    if !instance.interfaces.is_empty() {
        map.insert("interfaces".into(), json!(instance.interfaces));
    }
    if !instance.data_networks.is_empty() {
        map.insert("dataNetworks".into(), json!(instance.data_networks));
    }
    for key in ["peers", "bgp"] {
        if let Some(value) = known.and_then(|k| k.get(key)) {
            map.insert(key.into(), value.clone());
        }
    }
    Value::Object(map)
}

/// What was there, and what the Dependencies brought, each once, by name.
fn parameters(object: &Object, dependencies: &[&Object]) -> Vec<Value> {
    let known = list(object, "/spec/parametersRefs");
    let mut all: Vec<Value> = known.cloned().unwrap_or_default();
    for dependency in dependencies {
        for injected in list(dependency, "/status/injected").into_iter().flatten() {
            let mut reference = Map::new();
            for key in ["name", "apiVersion", "kind"] {
                if let Some(value) = injected.get(key).filter(|v| !v.is_null()) {
                    reference.insert(key.into(), value.clone());
                }
            }
            let reference = Value::Object(reference);
            if !all.contains(&reference) {
                all.push(reference);
            }
        }
    }
    let name = |v: &Value| v.get("name").and_then(Value::as_str).map(str::to_owned);
    all.sort_by_key(name);
    all
}

/// Both throughputs always, the numbers where they are not zero: as the published type prints it.
fn capacity(object: &Object) -> Value {
    let spec = |key: &str| object.value.get("spec").and_then(|s| s.get(key));
    let mut map = Map::new();
    for key in ["maxUplinkThroughput", "maxDownlinkThroughput"] {
        let value = spec(key).filter(|v| !v.is_null());
        map.insert(key.into(), value.map_or_else(|| json!("0"), canonical));
    }
    for key in ["maxSessions", "maxSubscribers", "maxNFConnections"] {
        if let Some(value) = spec(key).filter(|v| v.as_i64().is_some_and(|n| n != 0)) {
            map.insert(key.into(), value.clone());
        }
    }
    Value::Object(map)
}
