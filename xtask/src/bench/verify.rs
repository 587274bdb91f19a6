//! Judging a fleet: rendered packages of many clusters, read, parsed and compared with each other.
//!
//! ```text
//!  so many packages, ten per cluster: Kptfile, WorkloadCluster, four NADs with an address each, a Deployment that attaches them
//! ```
//!
//! Easy to get wrong: a fleet without mistakes is the usual case and the one with the budget. Beside it stands one in which
//! every address is used twice, since findings cost too.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use mooring_package::{Source, Survey};

use super::measure::seconds;
use super::{Curve, Report, Row, peak_kib};

/// How often each is measured; the best run is the one that other programs disturbed least.
const RUNS: usize = 3;
const PER_CLUSTER: usize = 10;
/// The second byte of the first network.
const FIRST: usize = 101;
const NETWORKS: [&str; 4] = ["n2", "n3", "n4", "n6"];
/// 2,000 packages over 200 clusters.
const BUDGET: (usize, Duration) = (2_000, Duration::from_secs(2));

/// What one fleet cost: reading and parsing, judging, all of it.
#[derive(Clone, Copy)]
struct Cost {
    read: Duration,
    judge: Duration,
    findings: usize,
    peak_kib: u64,
}

impl Cost {
    fn whole(&self) -> Duration {
        self.read + self.judge
    }
}

pub(super) fn verify() -> Result<Report> {
    let mut report = Report::default();
    let place = tempfile::tempdir().context("cannot make a directory")?;
    let columns = [
        "packages",
        "clusters",
        "whole",
        "per package",
        "read and parse",
        "judge",
        "findings",
        "peak memory",
    ];
    let mut curve = Curve::new(
        "So many packages of 4 interfaces, 10 packages per cluster",
        &columns,
    );
    let mut wrong = Curve::new(
        "The same, with every address used by two clusters",
        &columns,
    );
    // Small before large: memory that was freed stays with the process, and peaks are only told apart when they rise.
    for packages in [20, 200, BUDGET.0, 10_000] {
        let fleet = Fleet::new(place.path(), packages, false)?;
        let cost = fleet.best()?;
        ensure!(cost.findings == 0, "{} findings", cost.findings);
        fleet.point(&mut curve, cost);
        if packages == BUDGET.0 {
            let measured = format!(
                "{} (read and parse {}, judge {})",
                seconds(cost.whole()),
                seconds(cost.read),
                seconds(cost.judge)
            );
            report.rows.push(Row::new(
                "verify 2,000 packages over 200 clusters",
                &format!("≤ {}", seconds(BUDGET.1)),
                measured,
                cost.whole() <= BUDGET.1,
            ));
        }
        if packages > BUDGET.0 {
            continue;
        }
        let fleet = Fleet::new(place.path(), packages, true)?;
        let cost = fleet.best()?;
        // The second half repeats the addresses of the first.
        ensure!(
            cost.findings >= packages * NETWORKS.len() / 2,
            "only {} findings",
            cost.findings
        );
        fleet.point(&mut wrong, cost);
    }
    report.curves.extend([curve, wrong]);
    Ok(report)
}

/// Rendered packages on disk.
struct Fleet {
    dir: PathBuf,
    mgmt: PathBuf,
    packages: usize,
}

impl Fleet {
    fn new(place: &Path, packages: usize, twice: bool) -> Result<Self> {
        let dir = place.join(format!("{packages}-{twice}"));
        let mgmt = place.join("mgmt");
        fs::create_dir_all(&mgmt)?;
        fs::write(mgmt.join("site.yaml"), site())?;
        for number in 0..packages {
            let cluster = format!("edge-{:04}", number / PER_CLUSTER);
            let package = dir.join(&cluster).join(format!("upf-{number:05}"));
            fs::create_dir_all(&package)?;
            let name = format!("upf-{number:05}");
            fs::write(
                package.join("Kptfile"),
                format!("apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: {name}\n"),
            )?;
            fs::write(package.join("workloadcluster.yaml"), cluster_of(&cluster))?;
            let host = if twice {
                number % (packages / 2)
            } else {
                number
            };
            for (at, network) in NETWORKS.iter().enumerate() {
                let path = package.join(format!("networkattachmentdefinition_{network}.yaml"));
                fs::write(path, nad(&name, network, at, host))?;
            }
            fs::write(package.join("deployment.yaml"), deployment(&name))?;
        }
        Ok(Self {
            dir,
            mgmt,
            packages,
        })
    }

    fn best(&self) -> Result<Cost> {
        let mut best: Option<Cost> = None;
        for _ in 0..RUNS {
            super::render::forget_peak()?;
            let begin = Instant::now();
            let survey = Survey::read(&[Source::path(&self.dir)], Some(&self.mgmt));
            let read = begin.elapsed();
            let begin = Instant::now();
            let verified = survey.verify();
            let judge = begin.elapsed();
            ensure!(verified.packages == self.packages, "a package is missing");
            ensure!(
                verified.clusters == self.packages.div_ceil(PER_CLUSTER),
                "{} clusters",
                verified.clusters
            );
            let now = Cost {
                read,
                judge,
                findings: verified.findings.len(),
                peak_kib: peak_kib()?,
            };
            best = Some(match best {
                Some(best) if best.whole() <= now.whole() => best,
                _ => now,
            });
        }
        best.context("nothing was measured")
    }

    fn point(&self, curve: &mut Curve, cost: Cost) {
        let each = cost.whole() / u32::try_from(self.packages).unwrap_or(u32::MAX);
        curve.push([
            self.packages.to_string(),
            self.packages.div_ceil(PER_CLUSTER).to_string(),
            seconds(cost.whole()),
            format!("{} µs", each.as_micros()),
            seconds(cost.read),
            seconds(cost.judge),
            cost.findings.to_string(),
            format!("{} MiB", cost.peak_kib.div_ceil(1024)),
        ]);
    }
}

/// A network instance with its prefix for each network.
fn site() -> String {
    let instance = |(at, name): (usize, &&str)| {
        format!(
            "apiVersion: ipam.resource.nephio.org/v1alpha1\nkind: NetworkInstance\nmetadata:\n  name: vpc-{name}\nspec:\n  \
             topology: upf\n  prefixes:\n  - prefix: 172.{}.0.0/16\n",
            FIRST + at
        )
    };
    let all: Vec<String> = NETWORKS.iter().enumerate().map(instance).collect();
    all.join("---\n")
}

fn cluster_of(name: &str) -> String {
    format!(
        "apiVersion: infra.nephio.org/v1alpha1\nkind: WorkloadCluster\nmetadata:\n  name: {name}\n  annotations:\n    \
         config.kubernetes.io/local-config: \"true\"\nspec:\n  clusterName: {name}\n  cnis:\n  - macvlan\n  \
         masterInterface: ens3\n  networkInterfaces:\n  - name: ens3\n    mtu: 9000\n  podCIDRs:\n  - 10.244.0.0/16\n  \
         serviceCIDRs:\n  - 10.96.0.0/12\n"
    )
}

fn nad(package: &str, network: &str, at: usize, host: usize) -> String {
    // Every network is a /16, and no host is its network, gateway or broadcast address.
    let (third, fourth) = (host / 250 + 1, host % 250 + 1);
    let second = FIRST + at;
    let mut text = format!(
        "apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\nmetadata:\n  name: {package}-{network}\n  \
         namespace: upf\nspec:\n  config: |\n"
    );
    let _ = writeln!(
        text,
        "    {{\n      \"cniVersion\": \"0.3.1\",\n      \"type\": \"macvlan\",\n      \"master\": \"ens3\",\n      \
         \"mode\": \"bridge\",\n      \"mtu\": 1500,\n      \"ipam\": {{\n        \"type\": \"static\",\n        \
         \"addresses\": [\n          {{\n            \"address\": \"172.{second}.{third}.{fourth}/16\",\n            \
         \"gateway\": \"172.{second}.0.1\"\n          }}\n        ]\n      }}\n    }}"
    );
    text
}

fn deployment(name: &str) -> String {
    let entries: Vec<String> = NETWORKS
        .iter()
        .map(|network| format!("{{\"name\": \"{name}-{network}\", \"interface\": \"{network}\"}}"))
        .collect();
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {name}\n  namespace: upf\nspec:\n  replicas: 1\n  \
         strategy:\n    type: Recreate\n  selector:\n    matchLabels:\n      app: {name}\n  template:\n    metadata:\n      \
         labels:\n        app: {name}\n      annotations:\n        k8s.v1.cni.cncf.io/networks: '[{}]'\n    spec:\n      \
         containers:\n      - name: upf\n        image: upf:1.0\n",
        entries.join(", ")
    )
}
