//! NodeNetworkConfig: what a node's agent applies. Its name is the node's. Published fields and nothing more.
//!
//! Written by the compiler, read by the agents and by the route simulator. Easy to get wrong: the four own fields of a
//! fabric VRF are required keys, so an empty list is written as `[]` and never left out.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::terms::{Mirroring, TrafficMatch};

/// What a node shall be.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "network.t-caas.telekom.com",
    version = "v1alpha1",
    kind = "NodeNetworkConfig",
    plural = "nodenetworkconfigs",
    shortname = "nnc",
    status = "NodeNetworkConfigStatus",
    category = "schiff",
    derive = "PartialEq",
    doc = "What a node's network shall be.",
    printcolumn(name = "Status", type_ = "string", json_path = ".status.configStatus"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct NodeNetworkConfigSpec {
    /// The revision that it came from.
    pub revision: String,
    /// Segments by VLAN.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub layer2s: BTreeMap<String, Layer2>,
    /// The VRF of the cluster.
    #[serde(
        default,
        rename = "clusterVRF",
        skip_serializing_if = "Option::is_none"
    )]
    pub cluster_vrf: Option<Vrf>,
    /// VRFs of the fabric by name.
    #[serde(
        default,
        rename = "fabricVRFs",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub fabric_vrfs: BTreeMap<String, FabricVrf>,
    /// VRFs of this node alone, by name.
    #[serde(
        default,
        rename = "localVRFs",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub local_vrfs: BTreeMap<String, Vrf>,
}

/// A segment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Layer2 {
    /// The VXLAN network identifier.
    #[schemars(range(min = 1, max = 16_777_215))]
    pub vni: u32,
    /// The VLAN.
    #[schemars(range(min = 1, max = 4096))]
    pub vlan: u16,
    /// Its route target; empty lets the agent derive one.
    pub route_target: String,
    /// The largest packet.
    #[schemars(range(min = 1000, max = 9000))]
    pub mtu: u16,
    /// The gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub irb: Option<Irb>,
    /// Mirrored traffic.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mirror_acls: Vec<MirrorAcl>,
    /// Segmentation offload is switched off.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disable_segmentation: bool,
}

/// A gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Irb {
    /// Its VRF.
    pub vrf: String,
    /// Its MAC.
    #[schemars(regex(pattern = r"(?:[[:xdigit:]]{2}:){5}[[:xdigit:]]{2}"))]
    pub mac_address: String,
    /// Its addresses.
    pub ip_addresses: Vec<String>,
}

/// A VRF.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Vrf {
    /// Loopbacks by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub loopbacks: BTreeMap<String, Loopback>,
    /// Sessions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bgp_peers: Vec<BgpPeer>,
    /// Routes of other VRFs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vrf_imports: Vec<VrfImport>,
    /// Static routes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub static_routes: Vec<StaticRoute>,
    /// Routes by source.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policy_routes: Vec<PolicyRoute>,
    /// Mirrored traffic.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mirror_acls: Vec<MirrorAcl>,
    /// What BGP takes from the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redistribute: Option<Redistribute>,
    /// Tunnels by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub gres: BTreeMap<String, Gre>,
}

/// A VRF that the fabric knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FabricVrf {
    /// What every VRF has.
    #[serde(flatten)]
    pub vrf: Vrf,
    /// The VXLAN network identifier.
    #[schemars(range(min = 0))]
    pub vni: u32,
    /// Route targets that are taken.
    pub evpn_import_route_targets: Vec<String>,
    /// Route targets that are set.
    pub evpn_export_route_targets: Vec<String>,
    /// What the fabric is told.
    pub evpn_export_filter: Filter,
}

/// A loopback.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Loopback {
    /// Its addresses.
    pub ip_addresses: Vec<String>,
}

/// A session: with an address, or with whoever calls from a range.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BgpPeer {
    /// The peer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Where peers call from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen_range: Option<String>,
    /// The peer's AS.
    #[schemars(range(min = 0))]
    pub remote_asn: u32,
    /// IPv4 routes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv4: Option<AddressFamily>,
    /// IPv6 routes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv6: Option<AddressFamily>,
    /// BFD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bfd_profile: Option<BfdProfile>,
    /// How many hops away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub multihop: Option<u32>,
    /// How long a silent peer is waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_time: Option<String>,
    /// How often a peer says that it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keepalive_time: Option<String>,
    /// In clear text: never written by us.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
}

/// Routes of one family over a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddressFamily {
    /// What the peer is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub export_filter: Option<Filter>,
    /// What is taken from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub import_filter: Option<Filter>,
    /// How many prefixes it may announce.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub max_prefixes: Option<u32>,
}

/// BFD.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BfdProfile {
    /// Milliseconds.
    #[schemars(range(min = 0))]
    pub min_interval: u32,
}

/// Which routes pass, first match first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Filter {
    /// In order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<FilterItem>,
    /// For all others.
    pub default_action: FilterAction,
}

/// One line of a filter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FilterItem {
    /// Which routes.
    pub matcher: Matcher,
    /// What becomes of them.
    pub action: FilterAction,
}

/// Which routes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Matcher {
    /// By prefix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<PrefixMatcher>,
    /// By community.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bgp_community: Option<BgpCommunityMatcher>,
}

/// Routes inside a prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrefixMatcher {
    /// The prefix.
    pub prefix: String,
    /// The shortest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub ge: Option<u8>,
    /// The longest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub le: Option<u8>,
}

/// Routes with a community.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BgpCommunityMatcher {
    /// The community.
    pub community: String,
    /// And no other.
    pub exact_match: bool,
}

/// What becomes of a route.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FilterAction {
    /// Whether it passes.
    #[serde(rename = "type")]
    pub kind: ActionType,
    /// What is changed on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modify_route: Option<ModifyRoute>,
}

/// Whether a route passes.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ActionType {
    /// It passes.
    Accept,
    /// It does not.
    #[default]
    Reject,
    /// The next line decides.
    Next,
}

/// What is changed on a route.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModifyRoute {
    /// Communities that it gets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add_communities: Vec<String>,
    /// Beside those that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additive_communities: Option<bool>,
    /// Communities that it loses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove_communities: Vec<String>,
    /// It loses all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remove_all_communities: Option<bool>,
}

/// Routes of another VRF.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VrfImport {
    /// Which VRF.
    pub from_vrf: String,
    /// Which routes.
    pub filter: Filter,
}

/// A static route; without a next hop it swallows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StaticRoute {
    /// Where to.
    pub prefix: String,
    /// Over what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_hop: Option<NextHop>,
    /// BFD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bfd_profile: Option<BfdProfile>,
}

/// An address or a VRF.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NextHop {
    /// An address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// A VRF.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vrf: Option<String>,
}

/// Traffic that is looked up elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyRoute {
    /// Which traffic.
    pub traffic_match: TrafficMatch,
    /// Where.
    pub next_hop: NextHop,
}

/// Mirrored traffic.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MirrorAcl {
    /// Which traffic.
    pub traffic_match: TrafficMatch,
    /// The tunnel.
    pub mirror_destination: String,
    /// Which way.
    pub direction: Mirroring,
}

/// What BGP takes from the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Redistribute {
    /// Of connected routes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connected: Option<Filter>,
    /// Of static routes.
    #[serde(default, rename = "static", skip_serializing_if = "Option::is_none")]
    pub statics: Option<Filter>,
}

/// A GRE tunnel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Gre {
    /// Where to.
    pub destination_address: String,
    /// Where from.
    pub source_address: String,
    /// Bound to this interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_interface: Option<String>,
    /// Packets or frames.
    #[serde(default)]
    pub layer: GreLayer,
    /// The key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub encapsulation_key: Option<u32>,
}

/// Packets or frames.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum GreLayer {
    /// Frames.
    Layer2,
    /// Packets.
    #[default]
    Layer3,
}

/// What the agent says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeNetworkConfigStatus {
    /// Empty, `provisioning`, `provisioned` or `invalid`.
    #[serde(default)]
    pub config_status: String,
    /// When the agent last wrote (RFC 3339).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("format" = "date-time"))]
    pub last_update: String,
    /// The revision that the agent last tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_applied_revision: Option<String>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// The AS of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_number: Option<i64>,
}
