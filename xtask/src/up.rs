//! `cargo xtask up` and `down`: a real control plane on this machine, with our kinds in it and our controllers beside it.
//!
//! ```text
//!  target/up/  admin.kubeconfig  etcd/  *.log  *.pid     etcd, kube-apiserver, kube-controller-manager, moor-controller
//! ```
//!
//! What starts and stops them is the testkit's, the one that tests use; it comes with the feature `up`, which these
//! commands turn on for a child of their own. Easy to get wrong: the processes outlive this one, so whatever fails half-way
//! must stop what has been started.

#[cfg(any(feature = "up", test))]
mod here;

use std::path::PathBuf;

use anyhow::Result;

use crate::shell::{cargo, run};

/// Where its files are.
#[derive(clap::Args)]
pub(crate) struct Place {
    /// Where its data, its logs and its kubeconfig are; `target/up` where none is given
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Works in this process: how `up` and `down` call themselves
    #[arg(long, hide = true)]
    child: bool,
}

impl Place {
    fn dir(&self) -> Result<PathBuf> {
        let dir = self.dir.clone();
        let dir = dir.unwrap_or_else(|| crate::shell::root().join("target/up"));
        Ok(std::path::absolute(dir)?)
    }
}

pub(crate) fn up(place: &Place) -> Result<()> {
    if place.child {
        return here::up(&place.dir()?);
    }
    for name in [
        "etcd",
        "kube-apiserver",
        "kubectl",
        "kube-controller-manager",
        "helm",
    ] {
        crate::setup::place(name)?;
    }
    run(&mut cargo(&[
        "build",
        "--quiet",
        "-p",
        "mooring-controller",
        "-p",
        "mooring-cli",
    ]))?;
    in_child("up", place)
}

pub(crate) fn down(place: &Place) -> Result<()> {
    if place.child {
        return here::down(&place.dir()?);
    }
    in_child("down", place)
}

fn in_child(word: &str, place: &Place) -> Result<()> {
    let dir = place.dir()?;
    let with = ["run", "--quiet", "-p", "xtask", "--features", "up", "--"];
    run(cargo(&with).args([word, "--child", "--dir"]).arg(dir))
}

#[cfg(not(any(feature = "up", test)))]
mod here {
    use std::path::Path;

    use anyhow::{Result, bail};

    pub(super) fn up(_: &Path) -> Result<()> {
        bail!("this build of xtask lacks the feature `up`")
    }

    pub(super) fn down(dir: &Path) -> Result<()> {
        up(dir)
    }
}
