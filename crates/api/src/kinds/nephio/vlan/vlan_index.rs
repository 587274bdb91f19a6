//! VLANIndex: one space of VLAN ids, named like its cluster.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kinds::StatusCondition;

/// A space of VLAN ids.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "vlan.resource.nephio.org",
    version = "v1alpha1",
    kind = "VLANIndex",
    plural = "vlanindices",
    namespaced,
    status = "VLANIndexStatus",
    category = "nephio",
    derive = "PartialEq",
    derive = "Default",
    doc = "One space of VLAN ids; usually one per cluster, with its name.",
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
pub struct VLANIndexSpec {
    /// What claims may select it by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// What the controller says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VLANIndexStatus {
    /// How many ids may be handed out; text, as in an IPPrefix.
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
