//! Layer2NetworkConfiguration: a segment, said in full. Published fields and their bounds.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::terms;
use crate::{HostCidr, Selector};

/// The segment.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "network.t-caas.telekom.com",
    version = "v1alpha1",
    kind = "Layer2NetworkConfiguration",
    plural = "layer2networkconfigurations",
    shortname = "layer2",
    status = "Layer2NetworkConfigurationStatus",
    category = "schiff",
    derive = "PartialEq",
    doc = "A layer 2 segment with VLAN, VNI and gateways.",
    printcolumn(name = "VLAN", type_ = "integer", json_path = ".spec.id"),
    printcolumn(
        name = "Gateway",
        type_ = "string",
        json_path = ".spec.anycastGateways"
    ),
    printcolumn(name = "VRF", type_ = "string", json_path = ".spec.vrf"),
    printcolumn(name = "VNI", type_ = "integer", json_path = ".spec.vni")
)]
#[serde(rename_all = "camelCase")]
pub struct Layer2NetworkConfigurationSpec {
    /// The VLAN.
    #[schemars(range(min = 0, max = 4096))]
    pub id: u16,
    /// The largest packet.
    #[schemars(range(min = 1000, max = 9000))]
    pub mtu: u16,
    /// The VXLAN network identifier.
    #[schemars(range(min = 1, max = 16_777_215))]
    pub vni: u32,
    /// The MAC of the gateways.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"(?:[[:xdigit:]]{2}:){5}[[:xdigit:]]{2}"))]
    pub anycast_mac: Option<String>,
    /// The gateways, with the lengths of their subnets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub anycast_gateways: Vec<HostCidr>,
    /// Accepted; nodes are not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advertise_neighbors: Option<bool>,
    /// Whether nodes answer for neighbours; nodes are not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub neigh_suppression: Option<bool>,
    /// Accepted; nodes are not told.
    #[serde(
        default,
        rename = "createMacVLANInterface",
        skip_serializing_if = "Option::is_none"
    )]
    pub create_mac_vlan_interface: Option<bool>,
    /// Segmentation offload is switched off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disable_segmentation: Option<bool>,
    /// The VRF of the gateways; empty is that of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vrf: Option<String>,
    /// Which nodes; all without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "terms::nodes")]
    pub node_selector: Option<Selector>,
}

/// Nothing yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Layer2NetworkConfigurationStatus {}
