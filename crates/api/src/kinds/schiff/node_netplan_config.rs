//! NodeNetplanConfig: the host's half of a node's configuration, in the words of netplan. Its name is the node's.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// The host's half.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "network.t-caas.telekom.com",
    version = "v1alpha1",
    kind = "NodeNetplanConfig",
    plural = "nodenetplanconfigs",
    status = "NodeNetplanConfigStatus",
    category = "schiff",
    derive = "PartialEq",
    doc = "What a node's host side shall be, in the words of netplan."
)]
#[serde(rename_all = "camelCase")]
pub struct NodeNetplanConfigSpec {
    /// The state that is wanted.
    #[serde(default)]
    pub desired_state: NetplanState,
}

/// A netplan document.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetplanState {
    /// Its only key.
    pub network: NetplanNetwork,
}

/// A device as netplan writes it.
pub type Device = serde_json::Map<String, serde_json::Value>;

/// Devices by kind and name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct NetplanNetwork {
    /// Version of netplan's format: 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
    /// Bonds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "devices")]
    pub bonds: BTreeMap<String, Device>,
    /// Bridges.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "devices")]
    pub bridges: BTreeMap<String, Device>,
    /// Dummies.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "devices")]
    pub dummy_devices: BTreeMap<String, Device>,
    /// NICs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "devices")]
    pub ethernets: BTreeMap<String, Device>,
    /// Modems.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "devices")]
    pub modems: BTreeMap<String, Device>,
    /// Tunnels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "devices")]
    pub tunnels: BTreeMap<String, Device>,
    /// VLANs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "devices")]
    pub vlans: BTreeMap<String, Device>,
    /// VRFs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "devices")]
    pub vrfs: BTreeMap<String, Device>,
    /// Wireless NICs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "devices")]
    pub wifis: BTreeMap<String, Device>,
}

fn devices(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "additionalProperties": {
        "type": "object", "x-kubernetes-preserve-unknown-fields": true } })
}

/// Nothing: nobody reports on the host's half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeNetplanConfigStatus {}
