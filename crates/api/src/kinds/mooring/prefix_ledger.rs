//! PrefixLedger: the prefixes and ranges that are taken in one network instance.

use std::net::IpAddr;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::terms::{self, ClaimRef, InstanceRef, LeaseHolder, LeaseState, ReservationNote};
use crate::{AddrRange, Cidr};

/// The prefixes and ranges of one network instance.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "mooring.dev",
    version = "v1alpha1",
    kind = "PrefixLedger",
    plural = "prefixledgers",
    category = "mooring",
    derive = "PartialEq",
    derive = "Default",
    doc = "Prefixes and ranges that are taken in one network instance. It changes by compare-and-swap, so that two of them never overlap.",
    printcolumn(
        name = "Namespace",
        type_ = "string",
        json_path = ".spec.instance.namespace"
    ),
    printcolumn(name = "Instance", type_ = "string", json_path = ".spec.instance.name"),
    printcolumn(
        name = "Prefixes",
        type_ = "string",
        json_path = ".spec.leases[*].prefix",
        priority = 1
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    { "rule": "self.instance == oldSelf.instance",
      "message": "of a ledger cannot change; its name is made from it", "fieldPath": ".instance" },
]))]
pub struct PrefixLedgerSpec {
    /// Where.
    pub instance: InstanceRef,
    /// What is taken, ordered by prefix or range.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4000))]
    pub leases: Vec<PrefixEntry>,
}

/// A prefix or a range, and who has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    { "rule": "has(self.prefix) != has(self.range)",
      "message": "and range exclude each other; write one of them", "fieldPath": ".prefix" },
]))]
pub struct PrefixEntry {
    /// The prefix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Cidr>,
    /// The range, `first-last`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<AddrRange>,
    /// The prefix that it was taken from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subnet: Option<Cidr>,
    /// That prefix's gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "terms::address")]
    pub gateway: Option<IpAddr>,
    /// Who has it.
    pub holder: LeaseHolder,
    /// Where it is in its life.
    #[serde(default)]
    pub state: LeaseState,
    /// The transaction that reserved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 20))]
    pub txn: Option<String>,
    /// When the reservation or the rest ends (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub until: Option<String>,
    /// Since when the holder has it (RFC 3339).
    #[schemars(extend("format" = "date-time"))]
    pub taken_at: String,
    /// Whether no address lay in its way after it was written here. From then on it goes before addresses; until then
    /// they go before it.
    #[serde(default)]
    pub checked: bool,
    /// Why it is reserved by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<ReservationNote>,
    /// The object that asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_ref: Option<ClaimRef>,
    /// Which request made it: tells whose a write was when its answer was lost.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub nonce: String,
}
