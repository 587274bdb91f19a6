//! `vlan.resource.nephio.org/v1alpha1`: VLAN ids and who wants them.

mod vlan_claim;
mod vlan_index;

pub use vlan_claim::{VLANClaim, VLANClaimSpec, VLANClaimStatus};
pub use vlan_index::{VLANIndex, VLANIndexSpec, VLANIndexStatus};

/// The group.
pub const GROUP: &str = "vlan.resource.nephio.org";
