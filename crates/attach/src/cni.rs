//! The CNI protocol as values: what a runtime says to a plugin and what the plugin answers.
//!
//! ```text
//!  environment ── Env::call ──► Invocation ─┐
//!                                           ├─ Request::new ──► plugin ──► CniResult::to(version)
//!  stdin ───────── Config::parse ───────────┘                         └──► CniError::to_json
//! ```
//!
//! Called by `moor-cni` for every attachment, by `host` for its errors' codes and by the meta plugin for the
//! results of its delegates. The rules are those of CNI 0.1.0 to 1.1.0 and, where the specification is silent,
//! of the reference library, because runtimes are tested against that.
//!
//! Easy to get wrong: a configuration without `cniVersion` is version 0.1.0, whose result has another shape
//! (`ip4`, `ip6`) and room for one address per family.

mod args;
mod config;
mod env;
mod error;
mod fold;
mod fuzz;
mod request;
mod result;
#[cfg(test)]
mod tests;
mod text;
mod verb;
mod version;

pub use args::CniArgs;
pub use config::{Attachment, Config};
pub use env::{Env, Invocation};
pub use error::CniError;
pub use fold::{Object, member, read, same};
#[doc(hidden)]
pub use fuzz::{fuzz_config, fuzz_result};
pub use request::Request;
pub use result::{CniResult, CniRoute, Dns, Interface, Ip};
pub use text::{check_container, check_network, check_plugin};
pub use verb::Verb;
pub use version::Version;
