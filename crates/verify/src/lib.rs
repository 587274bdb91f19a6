//! Decides: objects with their origin become findings.
//!
//! ```text
//!  Input { origin, scope, value } ── carried ──► addresses and ranges, each with its user
//!                                        │
//!                                        └─ twice ──► the same address twice, ranges that overlap
//! ```
//!
//! Called by `moor verify`, the fleet and the dashboard with everything that is, or will be, deployed:
//! every package of every cluster. Called with many thousands of objects, so every rule sorts once and
//! walks once, and says one thing per object and not one per pair.
//!
//! Easy to get wrong: only what a pod would get counts as a use. IPClaims and IPAllocations are records
//! of the same address, and a `local-config` object never reaches a cluster.

mod carried;
mod input;
mod report;
#[cfg(test)]
mod tests;
mod twice;

pub use input::{Input, Origin};
pub use report::{Found, Report, Summary};

/// Everything there is to say about these objects. The order of the input does not matter.
pub fn verify<'a>(inputs: impl IntoIterator<Item = Input<'a>>) -> Report {
    let inputs: Vec<Input<'a>> = inputs.into_iter().collect();
    let (carried, mut found) = carried::gather(&inputs);
    let (duplicates, overlaps) = twice::judge(&inputs, &carried);
    found.sort_by(|a, b| a.origin.cmp(&b.origin));
    let summary = Summary::count(&inputs, &carried, duplicates.len(), overlaps.len());
    found.extend(duplicates);
    found.extend(overlaps);
    Report { found, summary }
}
