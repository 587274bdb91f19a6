//! Packages to render, made in a temporary directory: pools and a cluster, and packages with a Kptfile, one
//! file of Interfaces and a Deployment each.
//!
//! Easy to get wrong: every package has a name of its own, and every Interface of a package is on one of four
//! networks, so that no network is too small for the largest fleet.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use mooring_api::Time;
use mooring_book::{FileStore, Options};
use mooring_package::{Report, Request, render};
use tempfile::TempDir;

/// The networks, and the second byte of their /16.
const NETWORKS: [(&str, u8); 4] = [("n2", 2), ("n3", 3), ("n4", 4), ("n6", 6)];

/// A directory with `mgmt`, `fleet` and a book.
pub(super) struct Fleet {
    dir: PathBuf,
    packages: usize,
}

impl Fleet {
    /// So many packages with so many Interfaces each, in a directory of their own below `place`, which stays: a
    /// file system that has just removed ten thousand files makes new ones slowly.
    pub(super) fn new(place: &TempDir, packages: usize, interfaces: usize) -> Result<Self> {
        let dir = tempfile::tempdir_in(place)
            .context("cannot make a directory")?
            .keep();
        let fleet = Self { dir, packages };
        fs::create_dir(fleet.mgmt())?;
        fs::write(fleet.mgmt().join("site.yaml"), site())?;
        for number in 0..packages {
            let name = format!("upf-{number:05}");
            let dir = fleet.source().join(&name);
            fs::create_dir_all(&dir)?;
            fs::write(dir.join("Kptfile"), kptfile(&name))?;
            fs::write(dir.join("interfaces.yaml"), interfaces_of(interfaces))?;
            fs::write(dir.join("deployment.yaml"), deployment(&name))?;
        }
        Ok(fleet)
    }

    pub(super) fn path(&self) -> &Path {
        &self.dir
    }

    pub(super) fn mgmt(&self) -> PathBuf {
        self.path().join("mgmt")
    }

    pub(super) fn source(&self) -> PathBuf {
        self.path().join("fleet")
    }

    /// Renders in place, or to `out`, with a book of this name. As a process does it: the book is opened and closed.
    pub(super) fn render(&self, out: Option<&str>, book: &str) -> Result<Report> {
        let store = FileStore::open(&self.path().join(book), &Options::default())?;
        let request = Request {
            source: self.source(),
            out: out.map(|o| self.path().join(o)),
            mgmt: Some(self.mgmt()),
            cluster: None,
            dialect: None,
            check: false,
            new_id: false,
            draft: None,
            pinned: false,
            deploy_records: false,
            now: Time(1_800_000_000),
            entropy: *b"the same always!",
            published: Vec::new(),
        };
        let report = render(&store, &request, &|_, _| {})?;
        ensure!(
            !report.has_errors(),
            "refused: {:?}",
            report.findings.first()
        );
        ensure!(
            report.packages.len() == self.packages,
            "a package is missing"
        );
        Ok(report)
    }
}

fn site() -> String {
    let mut text =
        "apiVersion: infra.nephio.org/v1alpha1\nkind: WorkloadCluster\nmetadata:\n  name: edge-1\n\
                    spec:\n  clusterName: edge-1\n  cnis:\n  - macvlan\n  masterInterface: ens3\n"
            .to_owned();
    for (name, byte) in NETWORKS {
        let _ = write!(
            text,
            "---\napiVersion: ipam.resource.nephio.org/v1alpha1\nkind: IPPrefix\nmetadata:\n  name: pool-{name}\n\
             spec:\n  kind: network\n  prefix: 10.{byte}.0.0/16\n  networkInstance:\n    name: vpc-{name}\n"
        );
    }
    text
}

fn kptfile(name: &str) -> String {
    format!(
        "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: {name}\ninfo:\n  description: A user plane.\n"
    )
}

fn interfaces_of(count: usize) -> String {
    let document = |n: usize| {
        let (network, _) = NETWORKS[n % NETWORKS.len()];
        format!(
            "apiVersion: req.nephio.org/v1alpha1\nkind: Interface\nmetadata:\n  name: {network}-{n}\nspec:\n  \
             networkInstance:\n    name: vpc-{network}\n  cniType: macvlan\n"
        )
    };
    (0..count).map(document).collect::<Vec<_>>().join("---\n")
}

fn deployment(name: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {name}\n  labels:\n    app: {name}\nspec:\n  \
         replicas: 1\n  strategy:\n    type: Recreate\n  selector:\n    matchLabels:\n      app: {name}\n  template:\n    \
         metadata:\n      labels:\n        app: {name}\n    spec:\n      containers:\n      # The user plane itself.\n      \
         - name: upf\n        image: upf:1.0\n        env:\n        - name: LOG\n          value: info\n"
    )
}
