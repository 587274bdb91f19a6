//! What an address lease and a prefix lease have in common: whose, in which state, for what.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::Family;

/// A network instance by namespace and name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstanceRef {
    /// Namespace.
    #[schemars(length(max = 63))]
    pub namespace: String,
    /// Name.
    #[schemars(length(max = 253))]
    pub name: String,
}

/// Who holds it: the identity that does not change when a pod, a node or a path does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeaseHolder {
    /// The workload cluster; empty for a holder outside of all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub cluster: String,
    /// The package's id.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub package: String,
    /// The namespace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub namespace: String,
    /// `Kind/name`, where one is written; the name of a device or a team outside of packages.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 320))]
    pub workload: String,
    /// The interface, or the claim.
    #[schemars(length(max = 253))]
    pub interface: String,
    /// One holder per family.
    pub family: Family,
    /// 0 for the first address of an interface.
    #[serde(default)]
    #[schemars(range(min = 0, max = 65535))]
    pub ordinal: u16,
}

/// Where a lease is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LeaseState {
    /// Taken.
    #[default]
    Held,
    /// Taken by an open transaction, until it is committed or its end comes.
    Reserved,
    /// Given back; its last holder may take it again, others after its end.
    Cooling,
}

/// Why somebody reserved it by hand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReservationNote {
    /// Whose it is: a team, a device.
    #[schemars(length(max = 320))]
    pub owner: String,
    /// What for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub reason: String,
    /// Until when (RFC 3339); absent is until somebody releases it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub until: Option<String>,
}

/// The object that asked for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimRef {
    /// API version.
    #[schemars(length(max = 253))]
    pub api_version: String,
    /// Kind.
    #[schemars(length(max = 63))]
    pub kind: String,
    /// Namespace; empty where the object has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub namespace: String,
    /// Name.
    #[schemars(length(max = 253))]
    pub name: String,
    /// UID.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub uid: String,
}

/// An address.
pub(super) fn address(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string", "nullable": true, "maxLength": 45,
        "x-kubernetes-validations": [{ "rule": "isIP(self)",
            "message": "must be an address, such as 10.1.2.20" }]
    })
}
