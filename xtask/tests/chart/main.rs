//! The chart and the kustomization: what Helm makes of them, and what a real API server says to it.
//!
//! | file | holds |
//! |---|---|
//! | `rendered` | calling the built Helm; objects as values |
//! | `cases` | values and what comes of them: `cases/` rendered and judged, `refused/` refused by the schema |
//! | `judge` | what must hold for every object of every case |
//! | `text` | what ties the chart to the sources: versions, flags, metrics, documentation |
//! | `cluster` | on the real API server: install, upgrade, uninstall, who may do what |
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the functions between the tests fail like tests"
)]

mod cases;
mod cluster;
mod judge;
mod rendered;
mod rights;
mod text;
