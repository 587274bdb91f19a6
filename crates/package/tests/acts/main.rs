//! What happens over several acts on real files and a real book: the seed's example, stickiness, interrupted runs.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a failed set-up is a failed test; inputs need no atomic writer"
)]

mod flavours;
mod fleet;
mod forge;
mod git;
mod http;
mod interrupted;
mod links;
mod reserved;
mod revision;
mod seed;
mod ssh;
mod sticky;
