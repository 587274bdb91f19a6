//! NetworkInstance: an index of addresses, one routing domain.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Prefix;
use crate::kinds::StatusCondition;

/// What the instance owns.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "ipam.resource.nephio.org",
    version = "v1alpha1",
    kind = "NetworkInstance",
    plural = "networkinstances",
    namespaced,
    status = "NetworkInstanceStatus",
    category = "nephio",
    derive = "PartialEq",
    derive = "Default",
    doc = "An index of addresses: a routing domain and the networks that it owns.",
    printcolumn(
        name = "Prefix",
        type_ = "string",
        json_path = ".spec.prefixes[0].prefix"
    ),
    printcolumn(name = "Size", type_ = "string", json_path = ".status.size"),
    printcolumn(name = "Used", type_ = "string", json_path = ".status.used"),
    printcolumn(name = "Reserved", type_ = "string", json_path = ".status.reserved"),
    printcolumn(name = "Free", type_ = "string", json_path = ".status.free"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].reason"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct NetworkInstanceSpec {
    /// How the instance is built, such as `layer3`. Carried, not interpreted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<String>,
    /// The networks that it owns. Prefixes of the instance lie inside them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), extend("x-kubernetes-validations" = [
        { "rule": "self.all(p, self.exists_one(q, q.prefix == p.prefix))",
          "message": "lists a network twice; remove one of the two" }]))]
    pub prefixes: Vec<Prefix>,
}

/// What the controller says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkInstanceStatus {
    /// The networks in force.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub prefixes: Vec<Prefix>,
    /// How many addresses its prefixes may hand out. As text, since an IPv6 prefix has more than a number of JSON can say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// How many are held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<String>,
    /// How many are reserved by drafts, or rest after their release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved: Option<String>,
    /// How many nobody has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free: Option<String>,
    /// Synced, Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<StatusCondition>,
}
