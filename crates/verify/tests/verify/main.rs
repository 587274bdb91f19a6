//! Rules over whole fleets: small ones written for a rule, and all the manifests that are known to be right.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test reports by panicking, and has nobody to return an error to"
)]

#[path = "../../../package/tests/seeds/block.rs"]
mod block;
mod corpus;
mod fleet;
mod rules;
mod seeds;
