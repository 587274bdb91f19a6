//! Programs that Go builds from small modules of ours, through whatever module proxy the machine is set to.
//!
//! A module pins what it builds by `go.mod` and `go.sum`, so that a build is repeatable and checked; nothing that is
//! fetched is kept in the tree. Easy to get wrong: a directory in the cache must be complete, also after a Ctrl-C. So
//! everything happens in a directory beside it that is renamed at the end.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result};

use crate::shell::output;

/// A program, and the module of ours that it is built in.
#[derive(Clone, Copy)]
pub(super) struct Program {
    /// Of what is built; the program says it too.
    pub(super) version: &'static str,
    /// What is built: `.`, or a package of a module that ours requires. Several keep their own names.
    packages: &'static [&'static str],
    /// The variables that hold versions, where the linker must set them.
    says_version: &'static [(&'static str, &'static str)],
    /// The module's files.
    files: &'static [(&'static str, &'static str)],
    /// The module that the version is one of.
    #[cfg(test)]
    of: &'static str,
}

macro_rules! files {
    ($dir:literal $(, $more:literal)*) => {
        &[
            ("go.mod", include_str!(concat!($dir, "/go.mod"))),
            ("go.sum", include_str!(concat!($dir, "/go.sum"))),
            $(($more, include_str!(concat!($dir, "/", $more))),)*
        ]
    };
}

/// The parts of kpt that call functions. Its own main package needs a nested module that no proxy serves.
pub(super) const KPT: Program = Program {
    version: "1.0.0-beta.60",
    packages: &["."],
    says_version: &[("main.version", "1.0.0-beta.60")],
    files: files!("kpt", "main.go"),
    #[cfg(test)]
    of: "github.com/kptdev/kpt",
};

/// The server alone; the command-line client is another program.
pub(super) const ETCD: Program = Program {
    version: "3.6.16",
    packages: &["."],
    says_version: &[],
    files: files!("etcd", "main.go"),
    #[cfg(test)]
    of: "go.etcd.io/etcd/server/v3",
};

pub(super) const KUBE_APISERVER: Program = kubernetes(&["k8s.io/kubernetes/cmd/kube-apiserver"]);
pub(super) const KUBE_CONTROLLER_MANAGER: Program =
    kubernetes(&["k8s.io/kubernetes/cmd/kube-controller-manager"]);
pub(super) const KUBE_SCHEDULER: Program = kubernetes(&["k8s.io/kubernetes/cmd/kube-scheduler"]);
pub(super) const KUBECTL: Program = kubernetes(&["k8s.io/kubernetes/cmd/kubectl"]);
pub(super) const KUBELET: Program = kubernetes(&["k8s.io/kubernetes/cmd/kubelet"]);

/// One module for all of them, so that they share what they are built from.
const fn kubernetes(packages: &'static [&'static str]) -> Program {
    Program {
        version: "1.36.3",
        packages,
        // Without these it calls itself v0.0.0, and refuses clients for their age.
        says_version: &[
            ("k8s.io/component-base/version.gitVersion", "v1.36.3"),
            ("k8s.io/component-base/version.gitMajor", "1"),
            ("k8s.io/component-base/version.gitMinor", "36"),
        ],
        files: files!("kubernetes"),
        #[cfg(test)]
        of: "k8s.io/kubernetes",
    }
}

pub(super) const HELM: Program = Program {
    version: "3.22.0",
    packages: &["helm.sh/helm/v3/cmd/helm"],
    // The others are the Kubernetes of its client library, as its authors set them: what a chart is told without a cluster.
    says_version: &[
        ("helm.sh/helm/v3/internal/version.version", "v3.22.0"),
        ("helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor", "1"),
        ("helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor", "37"),
        ("helm.sh/helm/v3/pkg/lint/rules.k8sVersionMajor", "1"),
        ("helm.sh/helm/v3/pkg/lint/rules.k8sVersionMinor", "37"),
    ],
    files: files!("helm"),
    #[cfg(test)]
    of: "helm.sh/helm/v3",
};

pub(super) const WHEREABOUTS: Program = Program {
    version: "0.8.0",
    packages: &["github.com/k8snetworkplumbingwg/whereabouts/cmd"],
    says_version: &[],
    files: files!("whereabouts"),
    #[cfg(test)]
    of: "github.com/k8snetworkplumbingwg/whereabouts",
};

/// The reference plugins that ours replace: peers of the conformance suite and of the bench.
pub(super) const CNI_PLUGINS: Program = Program {
    version: "1.9.1",
    packages: &[
        "github.com/containernetworking/plugins/plugins/ipam/host-local",
        "github.com/containernetworking/plugins/plugins/ipam/static",
        "github.com/containernetworking/plugins/plugins/main/bridge",
        "github.com/containernetworking/plugins/plugins/main/host-device",
        "github.com/containernetworking/plugins/plugins/main/ipvlan",
        "github.com/containernetworking/plugins/plugins/main/macvlan",
        "github.com/containernetworking/plugins/plugins/main/vlan",
        "github.com/containernetworking/plugins/plugins/meta/sbr",
        "github.com/containernetworking/plugins/plugins/meta/tuning",
    ],
    says_version: &[(
        "github.com/containernetworking/plugins/pkg/utils/buildversion.BuildVersion",
        "v1.9.1",
    )],
    files: files!("cni-plugins"),
    #[cfg(test)]
    of: "github.com/containernetworking/plugins",
};

/// The directory of a program, with `bin/<name>` in it; built where it is absent.
pub(super) fn install(name: &str, program: &Program, cache: &Path) -> Result<PathBuf> {
    let place = cache.join(format!("{name}-{}", program.version));
    if place.is_dir() {
        return Ok(place);
    }
    let work = cache.join(format!(".{name}-{}", std::process::id()));
    let outcome = build(name, program, &work, &place);
    let _ = fs::remove_dir_all(&work);
    outcome.map(|()| place)
}

fn build(name: &str, program: &Program, work: &Path, place: &Path) -> Result<()> {
    let source = work.join("source");
    let files = work.join("files");
    for dir in [&source, &files] {
        fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    }
    for (file, text) in program.files {
        let path = source.join(file);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let mut flags = "-s -w".to_owned();
    for (variable, value) in program.says_version {
        let _ = write!(flags, " -X {variable}={value}");
    }
    let mut go = Command::new("nice");
    let bin = files.join("bin");
    let several = program.packages.len() > 1;
    if several {
        // Go takes a directory that exists as the place for all of them.
        fs::create_dir(&bin).with_context(|| format!("cannot make {}", bin.display()))?;
    }
    go.args(["go", "build", "-mod=readonly", "-trimpath", "-ldflags"])
        .arg(flags)
        .arg("-o")
        .arg(if several { bin } else { bin.join(name) })
        .args(program.packages)
        .current_dir(&source)
        .env("CGO_ENABLED", "0")
        .env("GOTOOLCHAIN", "local")
        .env("GOWORK", "off");
    let version = program.version;
    eprintln!("setup: building {name} {version}, some minutes …");
    let began = Instant::now();
    output(&mut go)?;
    let took = began.elapsed().as_secs();
    eprintln!("setup: {name} {version} took {took} s");
    match fs::rename(&files, place) {
        Err(_) if place.is_dir() => Ok(()),
        outcome => outcome.with_context(|| format!("cannot make {}", place.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Program; 10] = [
        KPT,
        ETCD,
        KUBE_APISERVER,
        KUBE_CONTROLLER_MANAGER,
        KUBE_SCHEDULER,
        KUBECTL,
        KUBELET,
        HELM,
        WHEREABOUTS,
        CNI_PLUGINS,
    ];

    #[test]
    fn a_module_requires_the_version_that_the_cache_names() {
        for program in ALL {
            let (_, text) = program.files[0];
            let wanted = format!("{} v{}", program.of, program.version);
            assert!(text.contains(&wanted), "no {wanted} in {text}");
            let version = format!("v{}", program.version);
            for (variable, value) in program.says_version {
                let own = variable.ends_with("version") || variable.ends_with("gitVersion");
                assert!(
                    !own || version.ends_with(value),
                    "{variable} is {value} in {version}"
                );
            }
        }
    }

    #[test]
    fn a_replacement_is_a_pinned_version_that_go_sum_checks() {
        for program in ALL {
            let [(_, module), (_, sums), ..] = program.files else {
                panic!("a module is go.mod and go.sum");
            };
            let sides = module.lines().filter_map(|line| line.split_once("=>"));
            for (left, right) in sides {
                let words: Vec<&str> = right.split_whitespace().collect();
                let [path, version] = words[..] else {
                    panic!("{right}: a directory is not checked");
                };
                assert_eq!(left.split_whitespace().last(), Some(path), "another module");
                // One that nothing needs has no line; one that is needed has the line of this version.
                for line in sums.lines().filter(|l| l.split(' ').next() == Some(path)) {
                    let found = line.split(' ').nth(1).unwrap_or_default();
                    assert_eq!(found.trim_end_matches("/go.mod"), version, "{line}");
                }
            }
        }
    }

    #[test]
    fn nothing_of_this_machine_is_in_a_module() {
        for (name, text) in ALL.iter().flat_map(|p| p.files) {
            assert!(!text.contains("://"), "an address in {name}");
        }
    }

    #[test]
    fn what_is_in_the_cache_serves_without_go() {
        let cache = tempfile::tempdir().expect("a temporary directory can be made");
        let place = cache.path().join(format!("kpt-{}", KPT.version));
        fs::create_dir(&place).expect("it is writable");
        let got = install("kpt", &KPT, cache.path()).expect("nothing is built");
        assert_eq!(got, place);
    }
}
