//! The fuzz runs of `cargo xtask test --soak`: each target for a minute, on stable Rust.
//!
//! The `fuzz` crate is no member of the workspace, because its flags instrument everything it links; it has a
//! lock file and a target directory of its own. New inputs go to that directory, crashes to `fuzz/artifacts`;
//! a crash becomes a seed in `fuzz/corpus` together with its fix, and ordinary tests replay it from then on.

use std::fs;

use anyhow::{Context as _, Result};

use crate::shell::{cargo, output, root, run as exec};

/// A parser of foreign bytes.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    room: &'static str,
}

const TARGETS: &[Target] = &[
    Target {
        name: "yaml",
        room: "krm",
    },
    Target {
        name: "resource_list",
        room: "krm",
    },
    Target {
        name: "networks_annotation",
        room: "attach",
    },
    Target {
        name: "cni_config",
        room: "attach",
    },
    Target {
        name: "cni_result",
        room: "attach",
    },
    Target {
        name: "cni_state",
        room: "host",
    },
    Target {
        name: "foreign_state",
        room: "host",
    },
];

/// What `cargo fuzz` would pass, without the sanitizers, which need nightly.
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares";

const SECONDS: u32 = 60;

/// The targets of a room, or all.
pub(crate) fn targets(room: Option<&str>) -> impl Iterator<Item = &'static Target> {
    TARGETS
        .iter()
        .filter(move |t| room.is_none_or(|room| room == t.room))
}

/// Builds and runs one target.
pub(crate) fn run(target: &Target) -> Result<()> {
    let name = target.name;
    let found = root().join("fuzz/target/found").join(name);
    let crashes = root().join("fuzz/artifacts").join(name);
    for dir in [&found, &crashes] {
        fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    }
    let corpus = root().join("fuzz/corpus").join(name);
    // With a target the flags leave build scripts and macros alone, which could not link the coverage.
    let host = host()?;
    let mut command = cargo(&["run", "--release", "--manifest-path", "fuzz/Cargo.toml"]);
    command.args([
        "--target",
        &host,
        "--target-dir",
        "fuzz/target",
        "--bin",
        name,
        "--",
    ]);
    // The first directory receives new inputs, the second is only read.
    command.args([&found, &corpus]);
    command.arg(format!("-artifact_prefix={}/", crashes.display()));
    command.arg(format!("-max_total_time={SECONDS}"));
    command.args(["-timeout=10", "-rss_limit_mb=1024", "-max_len=65536"]);
    exec(command.env("RUSTFLAGS", FLAGS))
}

fn host() -> Result<String> {
    let version = output(std::process::Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|l| l.strip_prefix("host: "));
    Ok(host.context("rustc does not say its host")?.to_owned())
}
