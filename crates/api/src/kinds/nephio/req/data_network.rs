//! DataNetwork: the pools that a UPF hands to its sessions.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Family;
use crate::kinds::Reference;
use crate::kinds::nephio::ipam::IPClaimStatus;

/// The pools and where they come from.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "req.nephio.org",
    version = "v1alpha1",
    kind = "DataNetwork",
    plural = "datanetworks",
    namespaced,
    status = "DataNetworkStatus",
    category = "nephio",
    derive = "PartialEq",
    derive = "Default",
    doc = "A data network: the address pools that a user plane function serves.",
    printcolumn(
        name = "Instance",
        type_ = "string",
        json_path = ".spec.networkInstance.name"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct DataNetworkSpec {
    /// Where from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_instance: Option<Reference>,
    /// The pools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), extend("x-kubernetes-validations" = [
        { "rule": "self.all(p, !has(p.name) || self.exists_one(q, has(q.name) && q.name == p.name))",
          "message": "names a pool twice; give each pool its own name" }]))]
    pub pools: Vec<Pool>,
}

/// A pool by its size.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    { "rule": "!has(self.prefixLength) || self.prefixLength <= 32 || (has(self.ipFamily) && self.ipFamily == 'ipv6')",
      "message": "is longer than an IPv4 address; write 32 or less, or ipFamily: ipv6", "fieldPath": ".prefixLength" },
]))]
pub struct Pool {
    /// Name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub name: Option<String>,
    /// How long the prefix shall be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 128))]
    pub prefix_length: Option<u8>,
    /// IPv4 (default) or IPv6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_family: Option<Family>,
}

/// What the pools were given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataNetworkStatus {
    /// One per pool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub pools: Vec<PoolStatus>,
}

/// What one pool was given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolStatus {
    /// Name of the pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_claim: Option<IPClaimStatus>,
}
