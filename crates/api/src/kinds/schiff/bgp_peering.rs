//! BGPPeering: sessions with workloads in a segment, or with addresses of the node itself.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::terms;
use super::vrf_route_configuration::PrefixItem;
use crate::Selector;

/// The sessions.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "network.t-caas.telekom.com",
    version = "v1alpha1",
    kind = "BGPPeering",
    plural = "bgppeerings",
    status = "BGPPeeringStatus",
    category = "schiff",
    derive = "PartialEq",
    doc = "BGP sessions with workloads.",
    printcolumn(name = "VLAN", type_ = "string", json_path = ".spec.peeringVlan.name"),
    printcolumn(name = "ASN", type_ = "integer", json_path = ".spec.remoteASN")
)]
#[serde(rename_all = "camelCase")]
pub struct BGPPeeringSpec {
    /// Whether BFD watches the sessions.
    #[serde(rename = "enableBFD")]
    pub enable_bfd: bool,
    /// What is told to the peer.
    #[schemars(length(max = 4096))]
    pub export: Vec<PrefixItem>,
    /// What is taken from the peer.
    #[schemars(length(max = 4096))]
    pub import: Vec<PrefixItem>,
    /// How long a silent peer is waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_time: Option<String>,
    /// How often a peer says that it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keepalive_time: Option<String>,
    /// Addresses of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loopback_peer: Option<LoopbackPeer>,
    /// How many prefixes may be announced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub maximum_prefixes: Option<u32>,
    /// Which nodes; all without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "terms::nodes")]
    pub node_selector: Option<Selector>,
    /// A segment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peering_vlan: Option<PeeringVlan>,
    /// The AS of the peer.
    #[serde(rename = "remoteASN")]
    #[schemars(range(min = 0, max = 4_294_967_295_u32))]
    pub remote_asn: u32,
}

/// Addresses of the node that a session is made with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoopbackPeer {
    /// The addresses.
    #[schemars(length(max = 64))]
    pub ips: Vec<String>,
}

/// A segment by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PeeringVlan {
    /// Name of a Layer2NetworkConfiguration.
    pub name: String,
}

/// Nothing yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BGPPeeringStatus {}
