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
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
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
    /// Synced, Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<StatusCondition>,
}
