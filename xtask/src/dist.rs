//! `moor-cni` as it is shipped: the one place that says how it is built.
//!
//! Called by `cargo xtask dist`, and by the bench, which measures what a node gets. The program is linked statically, with
//! musl: one file runs on every node of its kind of processor, whatever C library is there, and it starts faster (decision 018).
//!
//! Easy to get wrong: what it is measured against (`base`) is built in the same way, or the difference is the linker's.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use crate::shell::{cargo, output, root, run};

const PROFILE: &str = "dist";

/// A program that runs on any node.
pub(crate) struct Program {
    package: &'static str,
    /// `--bin` or `--example`.
    kind: &'static str,
    name: &'static str,
}

/// The CNI plugins.
pub(crate) const MOOR_CNI: Program = Program {
    package: "mooring-cni",
    kind: "--bin",
    name: "moor-cni",
};

/// The floor under them: `crates/host/examples/base.rs`.
#[cfg(feature = "bench")]
pub(crate) const BASE: Program = Program {
    package: "mooring-host",
    kind: "--example",
    name: "base",
};

/// Builds what goes to nodes and says where it is.
pub(crate) fn dist() -> Result<()> {
    let place = MOOR_CNI.build()?;
    println!("{}", place.display());
    Ok(())
}

impl Program {
    /// Builds it; gives its place.
    pub(crate) fn build(&self) -> Result<PathBuf> {
        let target = target();
        ensure_installed(&target)?;
        let mut build = cargo(&["build", "--quiet", "--profile", PROFILE]);
        build.args([
            "--target",
            &target,
            "-p",
            self.package,
            self.kind,
            self.name,
        ]);
        run(&mut build)?;
        Ok(self.place())
    }

    /// Where it is once it is built.
    pub(crate) fn place(&self) -> PathBuf {
        let directory = std::env::var_os("CARGO_TARGET_DIR");
        let directory = directory.map_or_else(|| root().join("target"), PathBuf::from);
        let directory = directory.join(target()).join(PROFILE);
        match self.kind {
            "--example" => directory.join("examples").join(self.name),
            _ => directory.join(self.name),
        }
    }
}

/// This machine's processor, with the C library that is linked statically.
fn target() -> String {
    format!("{}-unknown-linux-musl", std::env::consts::ARCH)
}

fn ensure_installed(target: &str) -> Result<()> {
    let print = ["--print", "target-libdir", "--target", target];
    let libraries = output(Command::new("rustc").args(print).current_dir(root()))?;
    ensure!(
        Path::new(&libraries).is_dir(),
        "Rust's library for {target} is not installed: `rustup target add {target}`"
    );
    Ok(())
}
