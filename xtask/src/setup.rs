//! Components that tests need beyond Rust: built or unpacked once into `$XDG_CACHE_HOME/mooring/<name>-<version>`.
//!
//! `cargo xtask test` makes what the everyday suite uses (`setup/debian.rs`, `setup/go.rs`); the others have a recipe and
//! wait until somebody names them, or none yet: a component gets its recipe together with the first test that needs it.

mod debian;
mod frr;
mod go;
mod kernels;

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail, ensure};

use crate::shell::{output, root};

/// Something that is built once and kept.
struct Component {
    name: &'static str,
    recipe: Recipe,
    /// Made for every test run, not only when it is named.
    everyday: bool,
    used_by: &'static str,
}

enum Recipe {
    /// Debian's package of that name, unpacked privately; the version is the one that apt offers.
    Debian,
    /// Debian's packages of one suite, whatever this machine runs.
    Bundle(debian::Bundle),
    /// Built by Go in a module of ours.
    Go(go::Program),
    /// None yet: the version that was seen to work with the others.
    Later(&'static str),
}

// In the order in which they are made: what most tests wait for first.
const COMPONENTS: &[Component] = &[
    debian(
        "containernetworking-plugins",
        "rendered NADs in the reference plugins",
    ),
    everyday(
        "cni-plugins",
        go::CNI_PLUGINS,
        "conformance and switching beside the reference plugins",
    ),
    debian("iputils-arping", "who answers for an address"),
    debian("iputils-ping", "whether one subnet reaches the other"),
    // Each with the libraries that a machine with iproute2 does not have already.
    debian(
        "nftables",
        "the bridge plugin's masquerading and MAC checks",
    ),
    debian("libnftables1", "nftables"),
    debian("libnftnl11", "nftables, iptables"),
    debian("libjansson4", "nftables"),
    debian("iptables", "rules that the reference bridge plugin left"),
    debian("openvswitch-switch", "the ovs plugin on a real switch"),
    debian("openvswitch-common", "openvswitch-switch"),
    debian("libxdp1", "openvswitch-switch"),
    debian("libbpf1", "openvswitch-switch"),
    debian("openssh-server", "Git over ssh"),
    debian("libwrap0", "openssh-server"),
    bundle(
        "user-mode-linux",
        kernels::USER_MODE_LINUX,
        "a kernel with ipvlan, vlan, vrf, sctp and openvswitch",
    ),
    debian("kmod", "modules of the kernels that tests boot"),
    bundle("qemu", kernels::QEMU, "a machine with SR-IOV cards"),
    bundle("linux", kernels::LINUX, "the kernel in qemu"),
    bundle("frr", frr::FRR, "compiled nodes in a kernel of our own"),
    everyday("etcd", go::ETCD, "controllers on a real API server"),
    everyday(
        "kube-apiserver",
        go::KUBE_APISERVER,
        "controllers on a real API server",
    ),
    everyday("kubectl", go::KUBECTL, "controllers on a real API server"),
    everyday(
        "kube-controller-manager",
        go::KUBE_CONTROLLER_MANAGER,
        "garbage collection, `cargo xtask up`",
    ),
    everyday("kpt", go::KPT, "functions called by kpt itself"),
    everyday("helm", go::HELM, "the chart"),
    everyday("whereabouts", go::WHEREABOUTS, "books beside its pools"),
    on_demand("kube-scheduler", go::KUBE_SCHEDULER, "the node: DRA"),
    on_demand("kubelet", go::KUBELET, "the node: CNI, DRA and NRI"),
    later("containerd", "2.3.7", "the node: CNI, DRA and NRI"),
    later(
        "multus",
        "4.2.3",
        "benchmarks and conformance of the meta plugin",
    ),
];

/// Rooms whose tests use components.
const ROOMS: &[&str] = &[
    "book",
    "cli",
    "cni",
    "controller",
    "host",
    "intent",
    "package",
    "testkit",
];

const fn debian(name: &'static str, used_by: &'static str) -> Component {
    Component {
        name,
        recipe: Recipe::Debian,
        everyday: true,
        used_by,
    }
}

const fn bundle(name: &'static str, bundle: debian::Bundle, used_by: &'static str) -> Component {
    Component {
        name,
        recipe: Recipe::Bundle(bundle),
        everyday: true,
        used_by,
    }
}

const fn everyday(name: &'static str, program: go::Program, used_by: &'static str) -> Component {
    Component {
        name,
        recipe: Recipe::Go(program),
        everyday: true,
        used_by,
    }
}

const fn on_demand(name: &'static str, program: go::Program, used_by: &'static str) -> Component {
    Component {
        name,
        recipe: Recipe::Go(program),
        everyday: false,
        used_by,
    }
}

const fn later(name: &'static str, version: &'static str, used_by: &'static str) -> Component {
    Component {
        name,
        recipe: Recipe::Later(version),
        everyday: false,
        used_by,
    }
}

/// Installs one component, or all that every test run uses; then lists what there is.
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
    let mut absent = Vec::new();
    for component in COMPONENTS {
        let Component { name, used_by, .. } = component;
        match component.recipe {
            Recipe::Later(version) => println!("  later   {name} {version}: {used_by}"),
            _ if !component.everyday => {
                println!("  asked   {name}: {used_by}; `cargo xtask setup {name}`");
            }
            _ => match component.install() {
                Ok(_) => println!("  here    {name}: {used_by}"),
                Err(error) => {
                    println!("  absent  {name}: {error:#}");
                    absent.push(*name);
                }
            },
        }
    }
    println!("Cache: {}", cache().display());
    ensure!(absent.is_empty(), "not to be had: {}", absent.join(", "));
    Ok(())
}

/// The directory of a component, made where it is absent: for a bench that compares with it, and for `up`.
pub(crate) fn place(name: &str) -> Result<PathBuf> {
    let found = COMPONENTS.iter().find(|c| c.name == name);
    found
        .with_context(|| format!("no component is called {name}"))?
        .install()
}

/// What the tests of a room need, or of all. A component that cannot be had is said here and skipped there, where the
/// reason counts.
pub(crate) fn for_tests(room: Option<&str>) {
    if room.is_some_and(|room| !ROOMS.contains(&room)) {
        return;
    }
    for component in COMPONENTS.iter().filter(|component| component.everyday) {
        if let Err(error) = component.install() {
            eprintln!("setup: {}: {error:#}", component.name);
        }
    }
}

/// The files of one of Debian's packages, fetched where they are absent: for an image.
pub(crate) fn debian_package(name: &str) -> Result<PathBuf> {
    debian::install(name, &cache())
}

impl Component {
    fn install(&self) -> Result<PathBuf> {
        match self.recipe {
            Recipe::Debian => debian::install(self.name, &cache()),
            Recipe::Bundle(bundle) => debian::install_bundle(self.name, &bundle, &cache()),
            Recipe::Go(program) => go::install(self.name, &program, &cache()),
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
