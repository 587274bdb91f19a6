//! Acts: where addresses are kept. One blocking contract, several stores.
//!
//! ```text
//!  begin ─► allocate / release … ─► reserve (durable) ─► commit | abort
//!             │                        │
//!             └ nothing kept yet       └ survives kill -9: an expired reservation is reaped,
//!               (dropping undoes)        the same holder may take it over
//! ```
//!
//! The store decides Won or Lost; *which* address to try is `mooring-ipam`'s decision.

mod store;

pub use store::{Error, Filter, Outcome, PackageRecord, Store, Txn};
