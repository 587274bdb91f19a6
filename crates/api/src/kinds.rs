//! The Kubernetes kinds, one file each, behind a feature per project, and the door that checks them.
//!
//! [`check`] is what every hand calls on a parsed object before anything else reads it; the structs are
//! what deciding rooms read afterwards. Both come from the same derive, so they cannot disagree.
//!
//! Easy to get wrong: `NetworkInstance` exists twice, as an index of addresses
//! (`nephio::ipam::NetworkInstance`) and as the seed's list of members
//! (`nephio::infra::NetworkInstance`). The group decides, never the kind alone.
#![allow(
    clippy::duplicated_attributes,
    reason = "every printcolumn of a kind has a type_, and the lint takes them for one"
)]

mod check;
mod condition;
#[cfg(feature = "configsync")]
pub mod configsync;
#[cfg(feature = "porch")]
mod expression;
#[cfg(feature = "kpt")]
pub mod kpt;
#[cfg(feature = "mooring")]
pub mod mooring;
#[cfg(feature = "multus")]
pub mod multus;
#[cfg(feature = "nephio")]
pub mod nephio;
#[cfg(feature = "porch")]
pub mod porch;
mod reference;
mod registry;
mod schema;
#[cfg(feature = "schiff")]
pub mod schiff;
#[cfg(feature = "nephio")]
mod text;

pub use check::{check, check_update, read};
pub use condition::StatusCondition;
#[cfg(feature = "porch")]
pub use expression::{TextExpression, Variables};
pub use reference::Reference;
pub use registry::{Kind, all, find};
