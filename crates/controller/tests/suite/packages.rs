//! The packages role: variants become packages in Git, with addresses that are reserved, committed and given back.

mod faults;
mod injected;
mod kept;
mod links;
mod lives;
mod others;
pub(crate) mod scene;
mod ssh;
