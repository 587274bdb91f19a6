//! `network.t-caas.telekom.com/v1alpha1`: what tenants ask of the network, and what nodes are told. All cluster-scoped.
//!
//! ```text
//!  Destination ◄─ selected by ─ Layer2Attachment, VRFAttachment, PodNetwork      intents
//!  VRFAttachment ◄─ named by ── BGPNeighbor
//!  Collector ◄─ named by ────── TrafficMirror ─► an attachment
//!
//!  Layer2NetworkConfiguration, VRFRouteConfiguration, BGPPeering,                 low-level
//!  MirrorTarget, MirrorSelector
//!      └─► NetworkConfigRevision ─► NodeNetworkConfig, NodeNetplanConfig          compiled
//! ```
//!
//! The room `intent` reads the first two rows and makes the third. The group belongs to another project: low-level and
//! compiled kinds keep its published fields and their leniency, so that objects which exist today pass unchanged; what
//! they lack in rules is a finding of the compiler.
//!
//! Easy to get wrong: in an intent `subnet` is the IPv6 subnet, and the IPv4 one is `ipv4.subnet`.

mod bgp_neighbor;
mod bgp_peering;
mod collector;
mod destination;
mod layer2_attachment;
mod layer2_network_configuration;
mod mirror;
mod network_config_revision;
mod network_spec;
mod node_netplan_config;
mod node_network_config;
mod pod_network;
mod terms;
mod traffic_mirror;
mod vrf_attachment;
mod vrf_route_configuration;

pub use bgp_neighbor::{
    AllowedConnection, BGPNeighbor, BGPNeighborSpec, BGPNeighborStatus, NameReference,
};
pub use bgp_peering::{BGPPeering, BGPPeeringSpec, BGPPeeringStatus, LoopbackPeer, PeeringVlan};
pub use collector::{Collector, CollectorSpec, CollectorStatus, GreProtocol, MirrorDestination};
pub use destination::{
    Destination, DestinationLoopback, DestinationSpec, DestinationStatus, PoolReference, Sbr,
};
pub use layer2_attachment::{
    Anycast, AttachmentBgp, Layer2Attachment, Layer2AttachmentSpec, Layer2AttachmentStatus,
    NodeIPs, Sriov,
};
pub use layer2_network_configuration::{
    Layer2NetworkConfiguration, Layer2NetworkConfigurationSpec, Layer2NetworkConfigurationStatus,
};
pub use mirror::{
    MirrorObject, MirrorSelector, MirrorSelectorSpec, MirrorSelectorStatus, MirrorTarget,
    MirrorTargetSpec, MirrorTargetStatus,
};
pub use network_config_revision::{
    BgpRevision, Layer2Revision, MirrorSelectorRevision, MirrorTargetRevision,
    NetworkConfigRevision, NetworkConfigRevisionSpec, NetworkConfigRevisionStatus, VrfRevision,
};
pub use network_spec::{Ipv4Config, NetworkSpec};
pub use node_netplan_config::{
    Device, NetplanNetwork, NetplanState, NodeNetplanConfig, NodeNetplanConfigSpec,
    NodeNetplanConfigStatus,
};
pub use node_network_config::{
    ActionType, AddressFamily, BfdProfile, BgpCommunityMatcher, BgpPeer, FabricVrf, Filter,
    FilterAction, FilterItem, Gre, GreLayer, Irb, Layer2, Loopback, Matcher, MirrorAcl,
    ModifyRoute, NextHop, NodeNetworkConfig, NodeNetworkConfigSpec, NodeNetworkConfigStatus,
    PolicyRoute, PrefixMatcher, Redistribute, StaticRoute, Vrf, VrfImport,
};
pub use pod_network::{PodNetwork, PodNetworkSpec, PodNetworkStatus};
pub use terms::{
    Community, Direction, Mirroring, NodeProgress, Route, RouteDirection, RouteTarget,
    TrafficMatch, VrfName,
};
pub use traffic_mirror::{
    MirrorSource, MirrorSourceKind, TrafficMirror, TrafficMirrorSpec, TrafficMirrorStatus,
};
pub use vrf_attachment::{
    Advertisement, Connection, ConnectionStatus, VRFAttachment, VRFAttachmentSpec,
    VRFAttachmentStatus,
};
pub use vrf_route_configuration::{
    ItemAction, PrefixItem, VRFRouteConfiguration, VRFRouteConfigurationSpec,
    VRFRouteConfigurationStatus, VrfLoopback,
};

/// The group.
pub const GROUP: &str = "network.t-caas.telekom.com";

/// Group and version.
pub const API_VERSION: &str = "network.t-caas.telekom.com/v1alpha1";

/// Label keys by convention. None is required; where the first stands on a Destination it must say the truth.
pub mod label {
    /// The VRF of a Destination, equal to its `spec.vrf`.
    pub const VRF: &str = "network.t-caas.telekom.com/vrf";
    /// The zone of a Destination.
    pub const ZONE: &str = "network.t-caas.telekom.com/zone";
    /// What a Destination is for: `mirror`.
    pub const ROLE: &str = "network.t-caas.telekom.com/role";
    /// The worker group of a node, unless the OperatorConfig names another key.
    pub const WORKER_GROUP: &str = "network.t-caas.telekom.com/worker-group";
}
