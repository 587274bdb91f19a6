//! `k8s.cni.cncf.io/v1`: the object that Multus and our meta plugin read.

mod network_attachment_definition;

pub use network_attachment_definition::{
    NetworkAttachmentDefinition, NetworkAttachmentDefinitionSpec,
};

/// The group.
pub const GROUP: &str = "k8s.cni.cncf.io";
