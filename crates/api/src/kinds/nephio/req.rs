//! `req.nephio.org/v1alpha1`: what a network function asks for.

mod capacity;
mod data_network;
mod dependency;
mod interface;

pub use capacity::{Capacity, CapacitySpec, CapacityStatus, Quantity};
pub use data_network::{DataNetwork, DataNetworkSpec, DataNetworkStatus, Pool, PoolStatus};
pub use dependency::{Dependency, DependencySpec, DependencyStatus};
pub use interface::{
    AttachmentType, CniType, Interface, InterfaceSpec, InterfaceStatus, IpFamilyPolicy, SriovSpec,
};

/// The group.
pub const GROUP: &str = "req.nephio.org";
