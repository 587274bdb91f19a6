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
mod amend;
mod audit;
mod backup;
mod content;
mod error;
mod file;
mod keep;
#[cfg(feature = "kubernetes")]
mod kubernetes;
mod lazy;
mod ledger;
mod locate;
mod memory;
mod merge;
mod place;
mod reservation;
mod restore;
mod store;
mod text;

pub use allocate::allocate;
pub use amend::Amendment;
pub use audit::{AuditFilter, Entry, Event};
pub use backup::{Restoration, backup, is_book};
pub use content::{Content, Difference};
pub use error::Error;
pub use file::{FileStore, Options};
#[cfg(feature = "kubernetes")]
pub use kubernetes::{ClaimedLease, Fence, KubeOptions, KubeStore, Observer, Term, Writers};
pub use lazy::{Access, LazyStore};
pub use locate::{BOOK_VARIABLE, locate};
pub use memory::MemoryStore;
pub use merge::{Clash, Merge, Side, Why, merge, rename};
pub use place::{Disk, RealDisk, write_whole};
pub use reservation::{Reservation, as_reserved};
pub use restore::{Conflict, Restored};
pub use store::{Filter, Outcome, PackageRecord, Pending, Store, Txn};
pub use text::{LARGEST_TEXT, TAIL, TEXT_VERSION, Text, read_text};
