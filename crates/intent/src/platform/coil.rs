//! Coil: the gateways of an outbound connection. Their addresses are pools of one address each, which only they name.
//!
//! An Egress has no field for an address: the pod's own is what others see. There are as many pools as gateways, so an
//! update must take one away before it adds one, or it waits for ever.

use std::collections::BTreeSet;
use std::net::IpAddr;

use mooring_api::kinds::mooring::{Egress, OperatorConfigSpec, Pods};
use mooring_api::{Cidr, Family, ObjectRef};
use serde_json::{Value, json};

use super::{calico, object};
use crate::Scope;
use crate::form::short_hash;

/// Foo over UDP, as Coil's gateways and clients speak it.
const FOU: u16 = 5555;

/// An outbound connection.
pub(crate) struct Outbound<'a> {
    pub(crate) owner: &'a ObjectRef,
    pub(crate) name: &'a str,
    pub(crate) scope: &'a Scope,
    pub(crate) addresses: &'a [IpAddr],
    pub(crate) destinations: &'a BTreeSet<Cidr>,
    pub(crate) replicas: u16,
}

pub(crate) fn outbound(config: &OperatorConfigSpec, outbound: &Outbound<'_>) -> Vec<Value> {
    if config.platform.egress == Egress::None || outbound.addresses.is_empty() {
        return Vec::new();
    }
    let mut made = Vec::new();
    let mut annotations = serde_json::Map::new();
    if config.platform.pods == Pods::Calico {
        for (family, key) in [
            (Family::V4, "cni.projectcalico.org/ipv4pools"),
            (Family::V6, "cni.projectcalico.org/ipv6pools"),
        ] {
            let here = outbound
                .addresses
                .iter()
                .filter(|a| Family::of(**a) == family);
            let pools: Vec<Value> = here
                .map(|a| calico::host_pool(config, outbound.owner, outbound.name, *a))
                .collect();
            if !pools.is_empty() {
                let names: Vec<&Value> = pools.iter().map(|p| &p["metadata"]["name"]).collect();
                annotations.insert(key.to_owned(), json!(json!(names).to_string()));
            }
            made.extend(pools);
        }
    }
    let written: Vec<String> = outbound.addresses.iter().map(ToString::to_string).collect();
    // Gateways take an address when they start, so a changed list is a changed template.
    let hash = short_hash(&written.join(" "), 16);
    annotations.insert("mooring.dev/addresses".to_owned(), json!(hash));
    let destinations = destinations(outbound);
    let mut pod = json!({ "containers": [{ "name": "egress" }] });
    if let Some(affinity) = affinity(outbound.scope) {
        pod["affinity"] = affinity;
    }
    let spec = json!({
        "destinations": destinations,
        "replicas": outbound.replicas,
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": { "maxSurge": 0, "maxUnavailable": 1 },
        },
        "template": { "metadata": { "annotations": annotations }, "spec": pod },
    });
    let namespace = Some(config.namespaces.egress.as_str());
    let kind = ("coil.cybozu.com/v2", "Egress");
    made.push(object(kind, namespace, outbound.name, outbound.owner, spec));
    made.push(policy(namespace, outbound, &destinations));
    made
}

/// What is reached through it; everything of its families where the Destinations name no prefix.
fn destinations(outbound: &Outbound<'_>) -> Vec<String> {
    let of = |family: Family| outbound.addresses.iter().any(|a| Family::of(*a) == family);
    let named: Vec<String> = outbound
        .destinations
        .iter()
        .filter(|p| of(p.family()))
        .map(ToString::to_string)
        .collect();
    if !named.is_empty() {
        return named;
    }
    let all = [(Family::V4, "0.0.0.0/0"), (Family::V6, "::/0")];
    let here = all.into_iter().filter(|(family, _)| of(*family));
    here.map(|(_, all)| all.to_owned()).collect()
}

/// Clients reach the gateways over their tunnel, the gateways reach clients and destinations.
fn policy(namespace: Option<&str>, outbound: &Outbound<'_>, destinations: &[String]) -> Value {
    let tunnel = json!([{ "protocol": "UDP", "port": FOU }]);
    let to: Vec<Value> = destinations
        .iter()
        .map(|cidr| json!({ "ipBlock": { "cidr": cidr } }))
        .collect();
    let spec = json!({
        "podSelector": { "matchLabels": {
            "app.kubernetes.io/component": "egress",
            "app.kubernetes.io/instance": outbound.name,
        } },
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{ "ports": tunnel }],
        "egress": [{ "ports": tunnel }, { "to": to }],
    });
    let kind = ("networking.k8s.io/v1", "NetworkPolicy");
    object(kind, namespace, outbound.name, outbound.owner, spec)
}

fn affinity(scope: &Scope) -> Option<Value> {
    let selector = scope.selector()?;
    let labels = selector.match_labels.iter();
    let mut all: Vec<Value> = labels
        .map(|(key, value)| json!({ "key": key, "operator": "In", "values": [value] }))
        .collect();
    all.extend(selector.match_expressions.iter().map(|e| json!(e)));
    Some(
        json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{ "matchExpressions": all }],
    } } }),
    )
}
