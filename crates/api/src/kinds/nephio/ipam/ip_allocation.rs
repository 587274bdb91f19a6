//! IPAllocation: what a claim was given, as a record. Never read back: the book decides.

use std::net::IpAddr;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PrefixKind;
use crate::HostCidr;
use crate::kinds::Reference;
use crate::kinds::text::{address_or_empty, empty_is_none};

/// One address (`/32`, `/128`) or prefix.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "ipam.resource.nephio.org",
    version = "v1alpha1",
    kind = "IPAllocation",
    plural = "ipallocations",
    namespaced,
    category = "nephio",
    derive = "PartialEq",
    doc = "What an IPClaim of the same name was given.",
    printcolumn(name = "Address", type_ = "string", json_path = ".spec.prefix"),
    printcolumn(name = "Gateway", type_ = "string", json_path = ".spec.gateway"),
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
#[schemars(extend("x-kubernetes-validations" = [
    { "rule": "!has(self.gateway) || self.gateway == '' || ip(self.gateway).family() == cidr(self.prefix).ip().family()",
      "message": "is not of the family that the prefix has; write a gateway of that family", "fieldPath": ".gateway" },
]))]
pub struct IPAllocationSpec {
    /// What was asked for.
    #[serde(default)]
    pub kind: PrefixKind,
    /// Where from.
    pub network_instance: Reference,
    /// The address or prefix.
    pub prefix: HostCidr,
    /// The gateway of its subnet.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "empty_is_none"
    )]
    #[schemars(schema_with = "address_or_empty")]
    pub gateway: Option<IpAddr>,
}
