//! `workload.nephio.org/v1alpha1`: network functions, as their operators read them.

mod nf_deployment;

pub use nf_deployment::{
    Bgp, BgpNeighbor, InterfaceConfig, IpConfig, NFDeployment, NFDeploymentSpec,
    NFDeploymentStatus, NetworkInstanceConfig, ObjectName, Peer, PoolPrefix, ServedNetwork,
};

/// The group.
pub const GROUP: &str = "workload.nephio.org";
