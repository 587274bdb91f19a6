//! Components that tests need beyond Rust: built or unpacked once into `$XDG_CACHE_HOME/mooring/<name>-<version>`.
//!
//! No suite of today needs one, so nothing here can be installed yet: the table names what later suites use and
//! what is already in the cache. A component gets its recipe together with the first test that needs it.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::shell::{output, root};

/// Something that is built once and kept.
struct Component {
    name: &'static str,
    version: &'static str,
    used_by: &'static str,
}

/// Versions that were seen to work together.
const COMPONENTS: &[Component] = &[
    part("etcd", "3.6.16", "controllers on a real API server"),
    part(
        "kube-apiserver",
        "1.36.3",
        "controllers on a real API server",
    ),
    part("containerd", "2.3.7", "the node: CNI, DRA and NRI"),
    part("kpt", "1.0.0-beta.60", "functions called by kpt itself"),
    part(
        "cni-plugins",
        "1.9.1",
        "benchmarks against the reference plugins",
    ),
    part(
        "multus",
        "4.2.3",
        "benchmarks and conformance of the meta plugin",
    ),
    part(
        "whereabouts",
        "0.8.0",
        "benchmarks of cluster-wide allocation",
    ),
];

const fn part(name: &'static str, version: &'static str, used_by: &'static str) -> Component {
    Component {
        name,
        version,
        used_by,
    }
}

/// Lists the components, or says why one cannot be installed.
pub(crate) fn run(name: Option<&str>) -> Result<()> {
    if let Some(name) = name {
        let Some(found) = COMPONENTS.iter().find(|c| c.name == name) else {
            let known: Vec<&str> = COMPONENTS.iter().map(|c| c.name).collect();
            bail!(
                "no component is called {name:?}; there are {}",
                known.join(", ")
            );
        };
        if found.place().is_dir() {
            println!("{name} {} is in {}", found.version, found.place().display());
            return Ok(());
        }
        bail!(
            "{name} has no recipe yet: no test of today needs it ({})",
            found.used_by
        );
    }
    println!("Nothing needs to be installed: the tests of today use Rust and Git only.");
    for (program, args) in [("rustc", ["--version"]), ("git", ["--version"])] {
        let version = output(
            std::process::Command::new(program)
                .args(args)
                .current_dir(root()),
        )?;
        println!("  here    {version}");
    }
    println!("Later suites will use:");
    for component in COMPONENTS {
        let cached = component.place().is_dir();
        let state = if cached { "cached" } else { "absent" };
        let Component {
            name,
            version,
            used_by,
        } = component;
        println!("  {state}  {name} {version}: {used_by}");
    }
    println!("Cache: {}", cache().display());
    Ok(())
}

impl Component {
    fn place(&self) -> PathBuf {
        cache().join(format!("{}-{}", self.name, self.version))
    }
}

/// `$XDG_CACHE_HOME/mooring`, else `~/.cache/mooring`.
fn cache() -> PathBuf {
    let set = |name| {
        std::env::var_os(name)
            .filter(|v| !v.is_empty())
            .map(PathBuf::from)
    };
    let base = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    base.unwrap_or_else(|| root().join("target/cache"))
        .join("mooring")
}
