//! Plugins that make an interface, a file each. Their lines in the table: [`crate::plugin::TABLE`].

pub(crate) mod amd;
pub(crate) mod bridge;
pub(crate) mod child;
pub(crate) mod host_device;
pub(crate) mod ipvlan;
pub(crate) mod macvlan;
pub(crate) mod ovs;
pub(crate) mod sriov;
pub(crate) mod vlan;
