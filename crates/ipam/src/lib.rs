//! Decides: the address arithmetic. No Kubernetes words, no clock, no IO.
//!
//! ```text
//!  Pools (what there is)  ─┐
//!  Table (what is taken)   ├─► candidates(…) ─► the book tries them in order: Won or Lost
//!  Claim (what is wanted) ─┘        └─► Refusal: each prefix, why not, how full, who holds most
//! ```
//!
//! The same holder always gets what it already holds; only then does an [`Order`] choose. Easy to get
//! wrong: a view may be stale, so a candidate is an offer, never an answer. The store decides.

pub mod admit;
mod candidates;
mod change;
mod check;
mod claim;
mod holder;
mod lease;
#[cfg(test)]
mod model;
mod pool;
mod refusal;
mod reserve;
mod room;
#[cfg(test)]
mod sample;
mod serving;
mod space;
mod table;
mod usage;
mod vlan;
mod walk;

pub use candidates::{Decision, Offers, candidates, exhausted};
pub use change::{Change, Effect, Plan, Refused, plan};
pub use claim::{Candidate, Claim, Order, Want};
pub use holder::Holder;
pub use lease::{Grant, Lease, State, Thing, TxnId};
pub use pool::{Instance, InstanceKey, Kept, Kind, Pools, Prefix};
pub use refusal::{Fullness, Mismatch, Refusal, Unusable};
pub use table::{HeapBytes, Table};
pub use usage::{Cell, Map, Row, Usage};
