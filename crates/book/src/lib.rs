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

mod allocate;
mod audit;
mod error;
mod file;
mod keep;
mod lazy;
mod ledger;
mod locate;
mod memory;
mod restore;
mod store;

pub use allocate::allocate;
pub use audit::{AuditFilter, Entry, Event};
pub use error::Error;
pub use file::{FileStore, Options};
pub use lazy::{Access, LazyStore};
pub use locate::{BOOK_VARIABLE, locate};
pub use memory::MemoryStore;
pub use restore::{Conflict, Restored};
pub use store::{Filter, Outcome, PackageRecord, Pending, Store, Txn};
