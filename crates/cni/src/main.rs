//! Program: every CNI plugin in one small multi-call binary.
//!
//! ```text
//!  runtime ── exec macvlan ──► main ── dispatch ──► plugins::macvlan ──► call.ipam_add ─┬─ ipam::host_local (in process)
//!     ▲                                  │              │                               └─ delegate (exec, foreign)
//!     └── output (result or error) ◄─────┘              └─ configure ──► mooring_host (netlink)
//! ```
//!
//! The program is installed once and linked under the name of every plugin in [`plugin::TABLE`]; its own
//! name says which plugin it is, and under `moor-cni` the configuration's `type` does. Without
//! `CNI_COMMAND` it is a tool for a person: `install`, `uninstall`, `doctor`, `--help`.
//!
//! Easy to get wrong: standard output belongs to the runtime. Only `output` writes there, once.

mod call;
mod chained;
mod configure;
mod delegate;
mod dispatch;
mod install;
mod ipam;
mod log;
mod output;
mod person;
mod plugin;
mod plugins;

use std::process::ExitCode;

fn main() -> ExitCode {
    mooring_host::visit_in_person();
    dispatch::run()
}
