//! Layer2Attachment: a VLAN on the nodes of some worker groups, perhaps with a gateway, a VRF, node addresses, BGP.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::network_spec::NetworkSpec;
use super::terms::{self, Community, NodeProgress, Route};
use crate::kinds::StatusCondition;
use crate::{Mac, Selector, Span};

/// The segment, and who gets it.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "network.t-caas.telekom.com",
    version = "v1alpha1",
    kind = "Layer2Attachment",
    plural = "layer2attachments",
    status = "Layer2AttachmentStatus",
    category = "schiff",
    derive = "PartialEq",
    doc = "A layer 2 network on the nodes of some worker groups.",
    printcolumn(name = "VLAN", type_ = "integer", json_path = ".spec.network.vlanID"),
    printcolumn(name = "VNI", type_ = "integer", json_path = ".spec.network.vni"),
    printcolumn(
        name = "Interface",
        type_ = "string",
        json_path = ".spec.interfaceName"
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
    { "rule": "has(self.interfaceName) || (has(self.sriov) && self.sriov.enabled)",
      "message": "is needed without SR-IOV; write the suffix of l2.<interfaceName>", "fieldPath": ".interfaceName" },
    { "rule": "!has(self.nodeIPs) || !self.nodeIPs.enabled || has(self.interfaceName)",
      "message": "need an interface on the node, and SR-IOV alone makes none; write interfaceName, or enabled: false", "fieldPath": ".nodeIPs" },
    { "rule": "!has(self.disableAnycast) || !self.disableAnycast || (has(self.disableNeighborSuppression) && self.disableNeighborSuppression)",
      "message": "must be true where disableAnycast is, since without a gateway nobody answers for the neighbours; write true", "fieldPath": ".disableNeighborSuppression" },
    { "rule": "has(self.network.vlanID)",
      "message": "has no VLAN; write network.vlanID", "fieldPath": ".network" },
    { "rule": "!has(self.interfaceName) || has(self.network.vni)",
      "message": "has no VNI; write network.vni, which only SR-IOV alone can do without", "fieldPath": ".network" },
    { "rule": "self.network == oldSelf.network",
      "message": "cannot change under those who use it; make another Layer2Attachment", "fieldPath": ".network" },
    { "rule": "has(self.interfaceName) == has(oldSelf.interfaceName) && (!has(self.interfaceName) || self.interfaceName == oldSelf.interfaceName)",
      "message": "cannot change under those who use it; make another Layer2Attachment", "fieldPath": ".interfaceName" },
    { "rule": "(has(self.sriov) && self.sriov.enabled) == (has(oldSelf.sriov) && oldSelf.sriov.enabled)",
      "message": "cannot be switched on or off; make another Layer2Attachment", "fieldPath": ".sriov" },
]))]
pub struct Layer2AttachmentSpec {
    /// The network.
    pub network: NetworkSpec,
    /// Which Destinations can be reached through it. Without any it is a layer 2 network and nothing more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "terms::some_destinations")]
    pub destinations: Option<Selector>,
    /// The suffix of the interface on the node, `l2.<interfaceName>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 12), regex(pattern = r"^[a-z][a-z0-9-]*$"))]
    pub interface_name: Option<String>,
    /// The largest packet.
    #[serde(default = "usual_mtu")]
    #[schemars(range(min = 1000, max = 9000))]
    pub mtu: u16,
    /// No gateway on the nodes.
    #[serde(default)]
    pub disable_anycast: bool,
    /// Neighbours are asked through the fabric instead of answered for.
    #[serde(default)]
    pub disable_neighbor_suppression: bool,
    /// The MAC of the gateway; made from the VNI otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anycast_mac: Option<Mac>,
    /// Routes from workloads. Not for SR-IOV.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bgp: Option<AttachmentBgp>,
    /// SR-IOV.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sriov: Option<Sriov>,
    /// On the nodes of these groups; without groups and nodeSelector on all nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub worker_groups: Vec<String>,
    /// And only on nodes with these labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "terms::nodes")]
    pub node_selector: Option<Selector>,
    /// Addresses of the nodes.
    #[serde(default, rename = "nodeIPs", skip_serializing_if = "Option::is_none")]
    pub node_ips: Option<NodeIPs>,
    /// Prefixes beyond what the Destinations define.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub routes: Vec<Route>,
    /// Communities of its exported routes; those of the Destinations otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub communities: Vec<Community>,
}

fn usual_mtu() -> u16 {
    1500
}

/// Routes from workloads in the segment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttachmentBgp {
    /// Whether there are peers.
    #[serde(default)]
    pub enabled: bool,
    /// The segment's own subnets are exported too.
    #[serde(default)]
    pub advertise_transfer_network: bool,
    /// How long a silent peer is waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "terms::duration")]
    pub hold_time: Option<Span>,
    /// How often a peer says that it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "terms::duration")]
    pub keepalive_time: Option<Span>,
    /// How many prefixes a peer may announce, per family.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub maximum_prefixes: Option<u32>,
    /// The AS of the workloads; empty takes that of the OperatorConfig.
    #[serde(
        default,
        rename = "workloadAS",
        skip_serializing_if = "String::is_empty"
    )]
    #[schemars(schema_with = "terms::as_number")]
    pub workload_as: String,
}

/// SR-IOV.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sriov {
    /// Whether virtual functions carry the VLAN.
    #[serde(default)]
    pub enabled: bool,
}

/// Addresses of the nodes in the segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeIPs {
    /// Whether nodes get one per family.
    #[serde(default)]
    pub enabled: bool,
    /// How many addresses of each subnet must remain for pods.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub reserved_for_pods: u32,
}

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Layer2AttachmentStatus {
    /// The VLAN of traffic of SR-IOV devices.
    #[serde(
        default,
        rename = "sriovVlanID",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 0))]
    pub sriov_vlan_id: Option<u16>,
    /// The gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anycast: Option<Anycast>,
    /// The matched Destinations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub destinations: Vec<String>,
    /// Their VRFs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vrfs: Vec<String>,
    /// The AS of the nodes, where there are BGP peers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_number: Option<String>,
    /// The AS of the workloads, where there are BGP peers.
    #[serde(
        default,
        rename = "workloadASNumber",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 0))]
    pub workload_as_number: Option<u32>,
    /// Where workloads find their BGP peer.
    #[serde(default, rename = "neighborIPs", skip_serializing_if = "Vec::is_empty")]
    pub neighbor_ips: Vec<String>,
    /// The revision that carries it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// How far the rollout is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<NodeProgress>,
    /// Resolved, Compiled, RolledOut, PlatformReady, Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<StatusCondition>,
}

/// The gateway of a segment, the same on every node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Anycast {
    /// Its MAC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// Its IPv6 address with the subnet's length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<String>,
    /// Its IPv4 address with the subnet's length.
    #[serde(default, rename = "gatewayv4", skip_serializing_if = "Option::is_none")]
    pub gateway_v4: Option<String>,
}
