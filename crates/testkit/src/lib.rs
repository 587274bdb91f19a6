//! Tests only: folder cases, trees that are compared or hashed, oracles, counted skips, programs that were set up;
//! behind features, a sandbox of network namespaces (`netns`), kernels that a test boots (`kernels`), a real Kubernetes
//! control plane (`control-plane`), and Git over HTTP and ssh with credentials (`git-server`).
//!
//! Test code of every room calls this as a dev-dependency; nothing that ships may. Functions here panic
//! with a message for the person who reads the test output, since a test has nobody to return an error to.
//!
//! Easy to get wrong: a test that returns early without [`skip`] passes silently. [`oracles`] does it for you.
#![expect(
    clippy::panic,
    reason = "a test reports by panicking, and has nobody to return an error to"
)]

#[cfg(any(feature = "netns", feature = "control-plane"))]
mod bounded;
mod case;
#[cfg(feature = "control-plane")]
mod control_plane;
mod diff;
#[cfg(feature = "git-server")]
mod git_server;
#[cfg(feature = "kernels")]
mod kernel;
#[cfg(feature = "netns")]
mod netns;
#[cfg(any(feature = "control-plane", feature = "git-server"))]
mod port;
#[cfg(feature = "kernels")]
mod qemu;
#[cfg(any(feature = "netns", feature = "control-plane"))]
mod said;
mod script;
mod skip;
#[cfg(feature = "git-server")]
mod ssh_server;
mod tool;
mod tree;
#[cfg(feature = "kernels")]
mod uml;
#[cfg(feature = "control-plane")]
mod whereabouts;

use std::path::{Path, PathBuf};

pub use case::{Case, cases, each_case};
#[cfg(feature = "control-plane")]
pub use control_plane::{ControlPlane, Detached, Failure, Options};
pub use diff::unified;
#[cfg(feature = "git-server")]
pub use git_server::GitServer;
#[cfg(feature = "netns")]
pub use netns::{Netns, Sandbox};
#[cfg(any(feature = "control-plane", feature = "git-server"))]
pub use port::free_port;
#[cfg(feature = "kernels")]
pub use qemu::{Qemu, qemu_suite};
#[cfg(any(feature = "netns", feature = "control-plane"))]
pub use said::Said;
pub use script::script;
pub use skip::{oracles, skip};
#[cfg(feature = "git-server")]
pub use ssh_server::SshServer;
pub use tool::component;
pub use tree::{assert_same_tree, copy_tree, hash_tree, sources};
#[cfg(feature = "kernels")]
pub use uml::{Uml, uml_suite};
#[cfg(feature = "control-plane")]
pub use whereabouts::Whereabouts;

/// The root of the workspace, above the crate whose tests run.
pub fn workspace_root() -> PathBuf {
    // Cargo sets the variable for every test it runs; the compiled-in path serves a test started by hand.
    let start = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    let is_root = |dir: &&Path| dir.join("Cargo.lock").is_file() && dir.join("crates").is_dir();
    let root = start.ancestors().find(is_root);
    root.unwrap_or_else(|| panic!("no workspace above {}", start.display()))
        .to_owned()
}

/// The value, or a panic that says what could not be done to which path.
#[track_caller]
fn must<T>(outcome: std::io::Result<T>, verb: &str, path: &Path) -> T {
    outcome.unwrap_or_else(|e| panic!("cannot {verb} {}: {e}", path.display()))
}
