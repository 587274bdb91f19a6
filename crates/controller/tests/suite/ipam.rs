//! The role `ipam` against a real API server: addresses, VLANs, statuses, and what happens when things break.
//!
//! Tests on the shared server have a namespace, an instance and a /16 of their own. `faults` and `neighbours` break or
//! change what all would see, so each has a server of its own.

mod faults;
mod load;
mod neighbours;
mod serving;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::harness::{Cluster, condition};

const GROUP: &str = "/apis/ipam.resource.nephio.org/v1alpha1";
const LEASES: &str = "/apis/mooring.dev/v1alpha1/ipleases";

/// The path of a claim.
pub(crate) fn claim_path(namespace: &str, name: &str) -> String {
    format!("{GROUP}/namespaces/{namespace}/ipclaims/{name}")
}

/// Nephio's resource backend, as far as it is known by its name.
pub(crate) fn install_backend(cluster: &Cluster) {
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "resource-backend-controller", "namespace": "default" },
        "spec": { "selector": { "matchLabels": { "a": "b" } }, "template": {
            "metadata": { "labels": { "a": "b" } },
            "spec": { "containers": [{ "name": "a", "image": "none.invalid/a" }] } } },
    });
    cluster.create("/apis/apps/v1/namespaces/default/deployments", &deployment);
}

/// A claim in the instance that has its namespace's name.
pub(crate) fn claim(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "ipam.resource.nephio.org/v1alpha1", "kind": "IPClaim",
        "metadata": { "name": name, "namespace": namespace },
        "spec": { "networkInstance": { "name": namespace, "namespace": namespace } },
    })
}

/// A namespace, an instance of that name, and its prefixes with what else their spec says.
pub(crate) fn site(cluster: &Cluster, namespace: &str, prefixes: &[(&str, &str, Value)]) {
    cluster.namespace(namespace);
    let instance = json!({
        "apiVersion": "ipam.resource.nephio.org/v1alpha1", "kind": "NetworkInstance",
        "metadata": { "name": namespace, "namespace": namespace }, "spec": { "prefixes": [] },
    });
    let path = format!("{GROUP}/namespaces/{namespace}");
    cluster.create(&format!("{path}/networkinstances"), &instance);
    for (name, prefix, more) in prefixes {
        let mut object = json!({
            "apiVersion": "ipam.resource.nephio.org/v1alpha1", "kind": "IPPrefix",
            "metadata": { "name": name, "namespace": namespace },
            "spec": { "prefix": prefix, "networkInstance": { "name": namespace, "namespace": namespace } },
        });
        for (key, value) in more.as_object().unwrap() {
            object["spec"][key] = value.clone();
        }
        cluster.create(&format!("{path}/ipprefixes"), &object);
    }
}

/// The leases of an instance.
fn leases(cluster: &Cluster, namespace: &str) -> Vec<Value> {
    let mut leases = cluster.list(LEASES);
    leases.retain(|l| l["spec"]["instance"]["namespace"] == namespace);
    leases
}

/// The claims of a namespace, when all of them are Ready; else how many are.
fn all_ready(cluster: &Cluster, namespace: &str, count: usize) -> Result<Vec<Value>, String> {
    let claims = cluster.list(&format!("{GROUP}/namespaces/{namespace}/ipclaims"));
    let is_ready = |c: &&Value| condition(c, "Ready").is_some_and(|(status, _)| status == "True");
    let ready = claims.iter().filter(is_ready).count();
    if ready == count && claims.len() == count {
        return Ok(claims);
    }
    let other = claims.iter().find(|c| !is_ready(c));
    Err(format!(
        "{ready} of {count}; {:?}",
        other.map(|c| &c["status"])
    ))
}

/// Every claim has a lease with its uid and its address, every lease a claim, no address twice.
#[track_caller]
fn assert_one_lease_each(cluster: &Cluster, namespace: &str, claims: &[Value]) {
    let leases = leases(cluster, namespace);
    let of_leases: BTreeSet<(String, String)> = leases
        .iter()
        .map(|l| {
            let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
            (
                text(&l["spec"]["claimRef"]["uid"]),
                text(&l["spec"]["address"]),
            )
        })
        .collect();
    let of_claims: BTreeSet<(String, String)> = claims
        .iter()
        .map(|c| {
            let prefix = c["status"]["prefix"].as_str().unwrap_or_default();
            let addr = prefix.split('/').next().unwrap_or_default();
            (
                c["metadata"]["uid"].as_str().unwrap().to_owned(),
                addr.to_owned(),
            )
        })
        .collect();
    assert_eq!(of_leases, of_claims);
    let addresses: BTreeSet<&String> = of_claims.iter().map(|(_, addr)| addr).collect();
    assert_eq!(addresses.len(), claims.len(), "an address was given twice");
    assert_eq!(leases.len(), claims.len());
}
