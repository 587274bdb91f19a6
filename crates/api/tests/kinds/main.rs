//! The kinds against the rules of Kubernetes, the published CRDs and the manifests of real projects.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test reports by panicking, and counts aloud what it read"
)]

mod foreign;
mod refusals;
mod rules;
mod seeds;
mod server;
mod structural;

use serde_json::Value;

/// The documents of a YAML text as Kubernetes reads them.
fn documents(text: &str) -> Result<Vec<Value>, String> {
    let options = serde_saphyr::options! { legacy_octal_numbers: true };
    serde_saphyr::from_multiple_with_options(text, options).map_err(|e| e.to_string())
}

/// One document.
fn yaml(text: &str) -> Value {
    let mut all = documents(text).unwrap();
    assert_eq!(all.len(), 1, "{text}");
    all.remove(0)
}
