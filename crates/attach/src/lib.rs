//! Decides: CNI configuration shapes, the grammar of the networks annotation, checks of NADs.
//!
//! ```text
//!  blueprint ─ config::build ──► NAD spec.config      (what the plugin will be told)
//!            └ networks::merge ► pod annotation       (which NADs the pod asks for)
//!  verify    ─ nad::check, nad::addresses, networks::parse
//! ```
//!
//! Everything is a function over text and values: no client, no files. Easy to get wrong: an address
//! has one carrier. It stands in the NAD *or* in the annotation; with Multus both means twice.

pub mod cni;
pub mod config;
pub mod nad;
pub mod networks;
mod print;
pub mod rollout;
