//! IPClaim: somebody wants an address or a prefix; the status is the answer.

use std::collections::BTreeMap;
use std::net::IpAddr;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PrefixKind;
use crate::kinds::text::{address_or_empty, empty_is_none, host_cidr_or_empty};
use crate::kinds::{Reference, StatusCondition};
use crate::{Family, HostCidr, Selector};

/// What is wanted.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "ipam.resource.nephio.org",
    version = "v1alpha1",
    kind = "IPClaim",
    plural = "ipclaims",
    namespaced,
    status = "IPClaimStatus",
    category = "nephio",
    derive = "PartialEq",
    derive = "Default",
    doc = "A request for an address or a prefix of a network instance. The status is the answer.",
    printcolumn(name = "Address", type_ = "string", json_path = ".status.prefix"),
    printcolumn(name = "Gateway", type_ = "string", json_path = ".status.gateway"),
    printcolumn(
        name = "Instance",
        type_ = "string",
        json_path = ".spec.networkInstance.name"
    ),
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
#[schemars(extend("x-kubernetes-validations" = [
    { "rule": "!has(self.createPrefix) || !self.createPrefix || has(self.prefix) || has(self.prefixLength)",
      "message": "asks for a prefix without saying how long; write prefixLength, or the prefix itself", "fieldPath": ".createPrefix" },
    { "rule": "!has(self.createPrefix) || !self.createPrefix || !has(self.prefix) || cidr(self.prefix) == cidr(self.prefix).masked()",
      "message": "has host bits, but a prefix is asked for; write the network, or remove createPrefix", "fieldPath": ".prefix" },
    { "rule": "!has(self.createPrefix) || !self.createPrefix || !has(self.prefix) || cidr(self.prefix).prefixLength() < (cidr(self.prefix).ip().family() == 4 ? 32 : 128)",
      "message": "is one address, but a prefix is asked for; write a shorter prefix, or remove createPrefix", "fieldPath": ".prefix" },
    { "rule": "!has(self.addressFamily) || !has(self.prefix) || cidr(self.prefix).ip().family() == (self.addressFamily == 'ipv4' ? 4 : 6)",
      "message": "is not of the family that the prefix has; remove addressFamily, or write a prefix of that family", "fieldPath": ".addressFamily" },
    { "rule": "!has(self.addressFamily) || self.addressFamily == 'ipv6' || !has(self.prefixLength) || self.prefixLength <= 32",
      "message": "is longer than an IPv4 address; write 32 or less, or addressFamily: ipv6", "fieldPath": ".prefixLength" },
    { "rule": "!has(self.index) || !has(self.prefix)",
      "message": "and prefix both name an address; remove one of them", "fieldPath": ".index" },
    { "rule": "self.networkInstance == oldSelf.networkInstance",
      "message": "cannot change, since its address belongs to the old instance; make a new IPClaim", "fieldPath": ".networkInstance" },
]))]
pub struct IPClaimSpec {
    /// What is wanted: an address of a subnet, a loopback, a pool.
    #[serde(default)]
    pub kind: PrefixKind,
    /// Where from.
    pub network_instance: Reference,
    /// IPv4 or IPv6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address_family: Option<Family>,
    /// Exactly this address or prefix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<HostCidr>,
    /// How long the prefix shall be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 128))]
    pub prefix_length: Option<u8>,
    /// The address at this offset of the prefix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 4_294_967_295u32))]
    pub index: Option<u32>,
    /// A prefix is wanted, not an address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create_prefix: Option<bool>,
    /// Labels that what is handed out shall carry.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Which prefixes may answer.
    #[serde(default, skip_serializing_if = "Selector::is_empty")]
    pub selector: Selector,
}

/// The answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IPClaimStatus {
    /// The address with the length of its subnet, or the prefix.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "empty_is_none"
    )]
    #[schemars(schema_with = "host_cidr_or_empty")]
    pub prefix: Option<HostCidr>,
    /// The gateway of the subnet.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "empty_is_none"
    )]
    #[schemars(schema_with = "address_or_empty")]
    pub gateway: Option<IpAddr>,
    /// When the claim runs out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiry_time: Option<String>,
    /// Synced, Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<StatusCondition>,
}
