//! Objects of the platform: pools and advertisements of MetalLB, gateways of Coil, pools and policies of Calico,
//! networks of the SR-IOV operator.
//!
//! Only objects; who applies them looks first whether the platform has the kind, and never takes over one that carries
//! no mark of ours. Easy to get wrong: a pool of MetalLB takes no bare address, and one without a pool in its
//! advertisement is advertised by all.

mod calico;
mod coil;
mod metallb;

use std::net::IpAddr;

use mooring_api::kinds::mooring::OperatorConfigSpec;
use mooring_api::{Family, ObjectRef, VlanId, annotation};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub(crate) use calico::pods;
pub(crate) use coil::{Outbound, outbound};
pub(crate) use metallb::{Inbound, inbound};

use crate::form::short_hash;

/// A NetworkAttachmentDefinition of type sriov that may exist.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AllowedNad {
    /// In this namespace.
    pub namespace: String,
    /// For this resource.
    pub resource: String,
    /// With this VLAN.
    pub vlan: u16,
    /// Because of this object.
    pub object: String,
}

/// Labels that say whose an object is.
pub(crate) fn owned(owner: &ObjectRef) -> Value {
    let who = short_hash(&owner.to_string(), 16);
    json!({ "app.kubernetes.io/managed-by": "mooring", "mooring.dev/owner": who })
}

fn object(
    (api_version, kind): (&str, &str),
    namespace: Option<&str>,
    name: &str,
    owner: &ObjectRef,
    spec: Value,
) -> Value {
    let mut metadata = json!({
        "name": name,
        "labels": owned(owner),
        "annotations": { annotation::OWNED_BY: format!("{}/{}", owner.kind, owner.name) },
    });
    if let Some(namespace) = namespace {
        metadata["namespace"] = json!(namespace);
    }
    json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec })
}

/// One address, in a form that every platform takes.
fn host(addr: IpAddr) -> String {
    format!("{addr}/{}", Family::of(addr).bits())
}

/// A network of the SR-IOV operator; it makes the NetworkAttachmentDefinition.
pub(crate) fn sriov_network(
    config: &OperatorConfigSpec,
    owner: &ObjectRef,
    name: &str,
    resource: &str,
    vlan: VlanId,
) -> Value {
    let spec = json!({
        "resourceName": resource,
        "networkNamespace": config.namespaces.networks,
        "vlan": vlan,
    });
    let kind = ("sriovnetwork.openshift.io/v1", "SriovNetwork");
    object(kind, Some(&config.namespaces.sriov), name, owner, spec)
}

/// What makes an object one: API version, kind, namespace and name.
pub(crate) fn key(object: &Value) -> [String; 4] {
    let text = |path: &str| {
        let text = object.pointer(path).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    [
        text("/apiVersion"),
        text("/kind"),
        text("/metadata/namespace"),
        text("/metadata/name"),
    ]
}

/// Sorted, each object once.
pub(crate) fn merged(mut objects: Vec<Value>) -> Vec<Value> {
    objects.sort_by_cached_key(key);
    objects.dedup_by_key(|o| key(o));
    objects
}
