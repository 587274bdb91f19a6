//! Components that tests need beyond Rust: built or unpacked once into `$XDG_CACHE_HOME/mooring/<name>-<version>`.
//!
//! `cargo xtask test` fetches what the everyday suite uses (`setup/debian.rs`, `setup/go.rs`); the others are named here with
//! the suite that will use them. A component gets its recipe together with the first test that needs it.

mod debian;
mod go;

use std::path::PathBuf;

#[cfg(feature = "bench")]
use anyhow::Context as _;
use anyhow::{Result, bail};

use crate::shell::{output, root};

/// Something that is built once and kept.
struct Component {
    name: &'static str,
    recipe: Recipe,
    used_by: &'static str,
}

enum Recipe {
    /// Debian's package of that name, unpacked privately; the version is the one that apt offers.
    Debian,
    /// Built by Go from a module of ours.
    Go(go::Module),
    /// None yet: the version that was seen to work with the others.
    Later(&'static str),
}

const COMPONENTS: &[Component] = &[
    debian(
        "containernetworking-plugins",
        "rendered NADs in the reference plugins",
    ),
    debian("iputils-arping", "who answers for an address"),
    debian("iputils-ping", "whether one subnet reaches the other"),
    later("etcd", "3.6.16", "controllers on a real API server"),
    later(
        "kube-apiserver",
        "1.36.3",
        "controllers on a real API server",
    ),
    later("containerd", "2.3.7", "the node: CNI, DRA and NRI"),
    Component {
        name: "kpt",
        recipe: Recipe::Go(go::KPT),
        used_by: "functions called by kpt itself",
    },
    later(
        "cni-plugins",
        "1.9.1",
        "benchmarks against the reference plugins",
    ),
    later(
        "multus",
        "4.2.3",
        "benchmarks and conformance of the meta plugin",
    ),
    later(
        "whereabouts",
        "0.8.0",
        "benchmarks of cluster-wide allocation",
    ),
];

const fn debian(name: &'static str, used_by: &'static str) -> Component {
    let recipe = Recipe::Debian;
    Component {
        name,
        recipe,
        used_by,
    }
}

const fn later(name: &'static str, version: &'static str, used_by: &'static str) -> Component {
    let recipe = Recipe::Later(version);
    Component {
        name,
        recipe,
        used_by,
    }
}

/// Installs one component, or everything that has a recipe; then lists what there is.
pub(crate) fn run(name: Option<&str>) -> Result<()> {
    if let Some(name) = name {
        let Some(found) = COMPONENTS.iter().find(|c| c.name == name) else {
            let known: Vec<&str> = COMPONENTS.iter().map(|c| c.name).collect();
            bail!(
                "no component is called {name:?}; there are {}",
                known.join(", ")
            );
        };
        let place = found.install()?;
        println!("{name} is in {}", place.display());
        return Ok(());
    }
    for (program, args) in [("rustc", ["--version"]), ("git", ["--version"])] {
        let version = output(
            std::process::Command::new(program)
                .args(args)
                .current_dir(root()),
        )?;
        println!("  here    {version}");
    }
    for component in COMPONENTS {
        let Component { name, used_by, .. } = component;
        match component.recipe {
            Recipe::Debian | Recipe::Go(_) => {
                component.install()?;
                println!("  here    {name}: {used_by}");
            }
            Recipe::Later(version) => println!("  later   {name} {version}: {used_by}"),
        }
    }
    println!("Cache: {}", cache().display());
    Ok(())
}

/// The directory of a component, made where it is absent: for a bench that compares with it.
#[cfg(feature = "bench")]
pub(crate) fn place(name: &str) -> Result<PathBuf> {
    let found = COMPONENTS.iter().find(|c| c.name == name);
    found
        .with_context(|| format!("no component is called {name}"))?
        .install()
}

/// What the tests need. A component that cannot be had is said here and skipped there, where the reason counts.
pub(crate) fn for_tests() {
    for component in COMPONENTS {
        if !matches!(component.recipe, Recipe::Later(_))
            && let Err(error) = component.install()
        {
            eprintln!("setup: {}: {error:#}", component.name);
        }
    }
}

impl Component {
    fn install(&self) -> Result<PathBuf> {
        match self.recipe {
            Recipe::Debian => debian::install(self.name, &cache()),
            Recipe::Go(module) => go::install(self.name, &module, &cache()),
            Recipe::Later(version) => {
                let place = cache().join(format!("{}-{version}", self.name));
                if place.is_dir() {
                    return Ok(place);
                }
                bail!(
                    "{} has no recipe yet: no test of today needs it ({})",
                    self.name,
                    self.used_by
                )
            }
        }
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
