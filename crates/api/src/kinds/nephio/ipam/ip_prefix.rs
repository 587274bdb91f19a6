//! IPPrefix: a pool that addresses are taken from.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PrefixKind;
use crate::kinds::text::{empty_is_none, host_cidr_or_empty};
use crate::kinds::{Reference, StatusCondition};
use crate::{AddrRange, HostCidr, Span};

/// A pool, and what in it is already spoken for.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "ipam.resource.nephio.org",
    version = "v1alpha1",
    kind = "IPPrefix",
    plural = "ipprefixes",
    namespaced,
    status = "IPPrefixStatus",
    category = "nephio",
    derive = "PartialEq",
    doc = "A prefix that addresses and smaller prefixes are taken from.",
    printcolumn(name = "Prefix", type_ = "string", json_path = ".spec.prefix"),
    printcolumn(
        name = "Instance",
        type_ = "string",
        json_path = ".spec.networkInstance.name"
    ),
    printcolumn(
        name = "Kind",
        type_ = "string",
        json_path = ".spec.kind",
        priority = 1
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
#[schemars(extend("x-kubernetes-validations" = [
    { "rule": "self.kind == 'network' || cidr(self.prefix) == cidr(self.prefix).masked()",
      "message": "has host bits, which only kind network may have; write the network, or kind: network", "fieldPath": ".prefix" },
    { "rule": "!has(self.allocations) || self.allocations.all(a, cidr(self.prefix).containsCIDR(a.prefix))",
      "message": "has an entry outside the prefix; move it to the IPPrefix that contains it", "fieldPath": ".allocations" },
    { "rule": "self.prefix == oldSelf.prefix",
      "message": "cannot change while addresses are taken from it; make a new IPPrefix and drain this one", "fieldPath": ".prefix" },
    { "rule": "!has(oldSelf.networkInstance) || (has(self.networkInstance) && self.networkInstance == oldSelf.networkInstance)",
      "message": "cannot change while addresses are taken from it; make a new IPPrefix and drain this one", "fieldPath": ".networkInstance" },
]))]
pub struct IPPrefixSpec {
    /// What the prefix is for.
    #[serde(default)]
    pub kind: PrefixKind,
    /// The instance; without one, that whose networks contain the prefix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_instance: Option<Reference>,
    /// The prefix. For kind network host bits name one address that lives in that subnet.
    pub prefix: HostCidr,
    /// What claims select it by. `nephio.org/gateway: "true"` makes the host part the gateway.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Addresses and prefixes kept for a claim of a cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8192))]
    pub allocations: Vec<Allocation>,
    /// Where addresses are taken from: `first-last`, a network, or one address. Empty is the whole prefix. Where the
    /// installed definition has no such field, write the annotation `mooring.dev/ranges`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024))]
    pub ranges: Vec<AddrRange>,
    /// What is never handed out, written as in ranges. Or the annotation `mooring.dev/exclude`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024))]
    pub exclude: Vec<AddrRange>,
    /// How long a released address rests before another gets it, such as `10m`. Or the annotation `mooring.dev/cool-down`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cool_down: Option<Span>,
}

/// Something kept for one claim. With host bits it is that one address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    { "rule": "!has(self.cluster) || !has(self.claimRef) || !has(self.claimRef.cluster) || self.cluster == self.claimRef.cluster",
      "message": "differs from claimRef.cluster; write it once", "fieldPath": ".cluster" },
]))]
pub struct Allocation {
    /// The address or prefix.
    pub prefix: HostCidr,
    /// Whose it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_ref: Option<ClaimRef>,
    /// The cluster of the claim; may also stand in claimRef.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub cluster: Option<String>,
}

/// A claim, perhaps of another cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimRef {
    /// Name of the claim.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub cluster: Option<String>,
}

impl Allocation {
    /// The cluster, wherever it is written.
    pub fn cluster(&self) -> Option<&str> {
        let inside = self.claim_ref.as_ref().and_then(|c| c.cluster.as_deref());
        self.cluster.as_deref().or(inside)
    }
}

/// What the controller says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IPPrefixStatus {
    /// The prefix in force.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "empty_is_none"
    )]
    #[schemars(schema_with = "host_cidr_or_empty")]
    pub prefix: Option<HostCidr>,
    /// How many addresses may be handed out. As text, since an IPv6 prefix has more than a number of JSON can say.
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
