//! `infra.nephio.org/v1alpha1`: clusters and the networks between them.

mod network;
mod network_instance;
mod workload_cluster;

pub use network::{
    BridgeDomain, Member, MemberKind, Network, NetworkSpec, NetworkStatus, RoutingTable,
};
pub use network_instance::{NetworkInstance, NetworkInstanceSpec};
pub use workload_cluster::{Nic, WorkloadCluster, WorkloadClusterSpec, WorkloadClusterStatus};

/// The group.
pub const GROUP: &str = "infra.nephio.org";
