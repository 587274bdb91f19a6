//! IPLease: one address or one VLAN that somebody has. Its name is its key.

use std::net::IpAddr;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::terms::{self, ClaimRef, InstanceRef, LeaseHolder, LeaseState, ReservationNote};
use crate::{Cidr, VlanId};

/// One address or one VLAN, and who has it.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "mooring.dev",
    version = "v1alpha1",
    kind = "IPLease",
    plural = "ipleases",
    category = "mooring",
    derive = "PartialEq",
    doc = "An address or a VLAN that is in use, reserved or resting. Its name is made from instance and address, so that it exists once.",
    printcolumn(name = "Instance", type_ = "string", json_path = ".spec.instance.name"),
    printcolumn(name = "Address", type_ = "string", json_path = ".spec.address"),
    printcolumn(
        name = "VLAN",
        type_ = "integer",
        json_path = ".spec.vlan",
        priority = 1
    ),
    printcolumn(name = "Holder", type_ = "string", json_path = ".spec.who"),
    printcolumn(name = "State", type_ = "string", json_path = ".spec.state"),
    printcolumn(
        name = "Until",
        type_ = "date",
        json_path = ".spec.until",
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
    { "rule": "has(self.address) != has(self.vlan)",
      "message": "and vlan exclude each other; write one of them", "fieldPath": ".address" },
    { "rule": "self.state != 'reserved' || (has(self.txn) && has(self.until))",
      "message": "reserved needs the transaction and its end; write txn and until", "fieldPath": ".state" },
    { "rule": "self.state != 'cooling' || has(self.until)",
      "message": "cooling needs an end; write until", "fieldPath": ".state" },
    { "rule": "self.instance == oldSelf.instance",
      "message": "of a lease cannot change; delete the lease and make another", "fieldPath": ".instance" },
    { "rule": "has(self.address) == has(oldSelf.address) && (!has(self.address) || self.address == oldSelf.address)",
      "message": "of a lease cannot change; its name is made from it", "fieldPath": ".address" },
    { "rule": "has(self.vlan) == has(oldSelf.vlan) && (!has(self.vlan) || self.vlan == oldSelf.vlan)",
      "message": "of a lease cannot change; its name says which it is", "fieldPath": ".vlan" },
    { "rule": "self.holder == oldSelf.holder",
      "message": "of a lease cannot change; what passes to another is deleted and made again", "fieldPath": ".holder" },
]))]
pub struct IPLeaseSpec {
    /// Where.
    pub instance: InstanceRef,
    /// The address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "terms::address")]
    pub address: Option<IpAddr>,
    /// The VLAN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<VlanId>,
    /// The subnet that the address lies in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subnet: Option<Cidr>,
    /// That subnet's gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "terms::address")]
    pub gateway: Option<IpAddr>,
    /// Who has it.
    pub holder: LeaseHolder,
    /// The holder in one line, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1500))]
    pub who: String,
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
