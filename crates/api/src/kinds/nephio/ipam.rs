//! `ipam.resource.nephio.org/v1alpha1`: instances, prefixes, claims, allocations. The older group
//! `ipam.nephio.org` is read as the same kinds.
//!
//! Easy to get wrong: a struct does not remember which of the two groups it was read from, and is
//! written with the first. Whoever makes an object beside a claim takes the group from the document.

mod ip_allocation;
mod ip_claim;
mod ip_prefix;
mod network_instance;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use ip_allocation::{IPAllocation, IPAllocationSpec};
pub use ip_claim::{IPClaim, IPClaimSpec, IPClaimStatus};
pub use ip_prefix::{Allocation, ClaimRef, IPPrefix, IPPrefixSpec, IPPrefixStatus};
pub use network_instance::{NetworkInstance, NetworkInstanceSpec, NetworkInstanceStatus};

use crate::Cidr;

/// The group.
pub const GROUP: &str = "ipam.resource.nephio.org";
/// The group that seed 001 writes; read as [`GROUP`].
pub const OLD_GROUP: &str = "ipam.nephio.org";

/// What a prefix is for.
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
pub enum PrefixKind {
    /// A subnet: addresses with its length, and a gateway.
    #[default]
    Network,
    /// Single addresses, /32 or /128.
    Loopback,
    /// Prefixes handed on to somebody else.
    Pool,
    /// What an instance owns; prefixes are cut out of it.
    Aggregate,
}

/// A network with labels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Prefix {
    /// The network.
    pub prefix: Cidr,
    /// What claims may select it by; `nephio.org/prefix-kind` says pool, loopback or network.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}
