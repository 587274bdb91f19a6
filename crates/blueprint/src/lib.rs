//! Decides: one pure function per step of specialisation, over the objects of one package.
//!
//! ```text
//!  inject ─► declare ─► wants ┄► (the book) ┄► answer ─► nads ─► attach ─► sweep
//!  cluster   claims     wishes                 status    NADs    pods      what nobody wants
//! ```
//!
//! `package` runs the steps to a fixpoint and is the only one to meet the book. Every step may run
//! again over its own output and then changes nothing. Easy to get wrong: a step reads *ports*
//! ([`port::read`]), never Interfaces, so that a package that begins with an IPClaim is no special case.

pub mod attach;
pub mod backend;
pub mod bundle;
pub mod choices;
pub mod claim;
pub mod cluster;
pub mod inject;
pub mod listed;
pub mod nad;
pub mod namespace;
pub mod nephio;
pub mod networks;
pub mod pools;
pub mod port;
pub mod replacements;
pub mod standing;
pub mod sweep;
pub mod variant;
pub mod workload;

pub use bundle::{Bundle, Marks, Object};
pub use listed::Listed;

/// What the steps know beside the package itself.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// Everything that addresses are taken from.
    pub pools: &'a mooring_ipam::Pools,
    /// The management side's objects.
    pub site: &'a [Object],
    /// The cluster that was asked for.
    pub cluster: Option<&'a str>,
    /// The package's minted id.
    pub package: &'a str,
}
