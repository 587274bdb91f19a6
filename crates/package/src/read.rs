//! Reading rendered packages back: to prove that no address is used twice ([`survey`](crate::survey)), and to
//! rebuild a lost book.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use mooring_api::{Code, Finding, Time, annotation};
use mooring_blueprint::cluster::Cluster;
use mooring_blueprint::port::Port;
use mooring_blueprint::{Context, Object, claim, inject, port};
use mooring_book::{Filter, PackageRecord, Store};
use mooring_ipam::{Lease, Pools, State, Thing};
use mooring_krm::layout;

use crate::Error;
use crate::decide::{Decided, record};
use crate::differ::{Said, differ};
use crate::disk::{RealDisk, read_tree};
use crate::documents::Documents;
use crate::nephio;
use crate::render::package_report;
use crate::report::Dialect;
use crate::report::Report;
use crate::steps::Outcome;
use crate::survey::{Source, Survey, Verified};
use crate::unit::Unit;

/// A rendered package, with the directory it was found in.
struct Rendered {
    root: PathBuf,
    unit: Unit,
}

/// Every package below the sources.
fn packages(sources: &[PathBuf], findings: &mut Vec<Finding>) -> Vec<Rendered> {
    let mut all = Vec::new();
    for root in sources {
        let tree = match read_tree(&RealDisk, root) {
            Ok(tree) => tree,
            Err(found) => {
                findings.extend(found);
                continue;
            }
        };
        let work: Vec<_> = layout(&tree.files)
            .packages
            .into_iter()
            .map(|p| (p.directory, p.files))
            .collect();
        if work.is_empty() {
            findings.push(
                Finding::error(
                    Code::PackageMissing,
                    format!("{} holds no Kptfile", root.display()),
                )
                .help("Name a rendered package, or a directory of packages."),
            );
        }
        let parsed = crate::parallel::map(work, |(dir, paths)| {
            let mut findings = Vec::new();
            let files = paths.iter().map(|p| (p.as_str(), tree.files[p].as_slice()));
            let shown = |path: &str| root.join(path).display().to_string();
            let documents = Documents::parse(files, shown, &mut findings);
            (Unit::new(dir, paths.clone(), documents), findings)
        });
        for (unit, found) in parsed {
            findings.extend(found);
            all.extend(unit.map(|unit| Rendered {
                root: root.clone(),
                unit,
            }));
        }
    }
    all
}

/// Reads rendered packages back and checks that no address is used twice. Where the management directory
/// is at hand, isolated instances are told apart.
pub fn verify(sources: &[PathBuf], mgmt: Option<&Path>) -> Verified {
    let sources: Vec<Source> = sources.iter().map(Source::path).collect();
    Survey::read(&sources, mgmt).verify()
}

pub(crate) fn cluster(unit: &Unit) -> Option<Cluster> {
    inject::find(&unit.bundle, &mut Vec::new())
}

/// Puts the leases of rendered packages back into a book that lost them.
///
/// What the packages say is believed: the statuses of their claims are the addresses that pods have. Two
/// that say the same address are both reported and the first keeps it. Where the book says something else
/// about the same holder, that is reported with the reason and the book is kept.
pub fn rebuild(
    store: &dyn Store,
    sources: &[PathBuf],
    now: Time,
    check: bool,
) -> Result<Report, Error> {
    let mut report = Report::default();
    let mut all = Said::default();
    let mut records = Vec::new();
    for package in packages(sources, &mut report.findings) {
        let unit = &package.unit;
        let Some(Told {
            cluster,
            ports,
            said,
            record,
        }) = told(unit, &package.root, now)
        else {
            continue;
        };
        let (id, key) = (
            record.id.clone(),
            (record.cluster.clone(), record.id.clone()),
        );
        all.packages.insert(key);
        records.push(record);
        let outcome = Outcome {
            cluster: Some(cluster),
            ports,
            held: said.leases.clone(),
            ..Outcome::default()
        };
        let decided = Decided {
            id,
            outcome,
            said: Vec::new(),
        };
        report
            .packages
            .push(package_report(unit, &decided, &package.root));
        all.leases.extend(said.leases);
        all.silent.extend(said.silent);
        all.at_pod_start.extend(said.at_pod_start);
    }
    if report.has_errors() {
        return Ok(report);
    }
    // What has ended is nobody's.
    drop(store.begin(now)?);
    let differ = differ(&store.leases(&Filter::default())?, all, now);
    report.findings.extend(differ.findings);
    if check {
        report.book_changed = differ.changes;
        report.findings.extend(differ.conflicts);
        return Ok(report);
    }
    let restored = store.restore(&differ.restore, &records, now)?;
    report.book_changed = restored.added > 0;
    report.findings.extend(restored.findings());
    Ok(report)
}

/// What a rendered package tells of itself.
pub(crate) struct Told {
    cluster: Cluster,
    ports: Vec<Port>,
    /// What it has.
    pub(crate) said: Said,
    /// What the book remembers of it.
    pub(crate) record: PackageRecord,
}

/// Reads a rendered package that is kept below `root`; None for one that has no identity or no cluster.
pub(crate) fn told(unit: &Unit, root: &Path, now: Time) -> Option<Told> {
    let id = unit.bundle.marks.annotations.get(annotation::PACKAGE_ID)?;
    let cluster = cluster(unit)?;
    let (ports, said) = match unit.dialect() {
        Dialect::Native => said(unit, id, &cluster, now),
        Dialect::Nephio => (Vec::new(), nephio::said(unit, id, now)),
    };
    let mut record = record(id, &cluster.name, unit, root, &ports, now);
    if unit.dialect() == Dialect::Nephio {
        record.vlans = nephio::vlans(&unit.bundle);
    }
    Some(Told {
        cluster,
        ports,
        said,
        record,
    })
}

/// What a package's claims say they have, under the identities that a render would use.
pub(crate) fn said(unit: &Unit, id: &str, cluster: &Cluster, now: Time) -> (Vec<Port>, Said) {
    let pools = Pools::default();
    let site: [Object; 0] = [];
    let ctx = Context {
        pools: &pools,
        site: &site,
        cluster: None,
        package: id,
    };
    // Findings about pools are not for here: the pools are not known, and need not be.
    let mut ignored = Vec::new();
    let ports = port::read(&unit.bundle, &pools, &mut ignored);
    let wishes = claim::wants(&unit.bundle, &ports, cluster, &ctx, &mut ignored);
    let answered = |wish: &claim::Wish| {
        let object = unit
            .bundle
            .objects
            .iter()
            .find(|o| o.kind() == wish.kind && o.name() == wish.name)?;
        let status: mooring_api::kinds::nephio::ipam::IPClaimStatus = object.status().ok()?;
        Some(Lease {
            instance: wish.claim.instance.clone(),
            thing: wish.claim.before?,
            subnet: status.prefix.map(|p| p.subnet()),
            gateway: status.gateway,
            holder: wish.claim.holder.clone(),
            state: State::Held,
            since: now,
        })
    };
    let mut said = Said::default();
    for wish in &wishes {
        if let Some(lease) = answered(wish) {
            said.leases.extend(in_pieces(&lease, wish.kept));
            continue;
        }
        let claim = &wish.claim;
        let silent = (claim.instance.clone(), claim.holder.clone());
        said.silent.push(silent);
    }
    for port in &ports {
        let holders = claim::at_pod_start(port, cluster, &ctx);
        let instance = port.instance.iter().cycle().cloned();
        said.at_pod_start.extend(instance.zip(holders));
    }
    (ports, said)
}

/// A range with an address that is held on its own is several leases, and shown as one.
fn in_pieces(lease: &Lease, kept: Option<IpAddr>) -> Vec<Lease> {
    let Thing::Range(range) = lease.thing else {
        return vec![lease.clone()];
    };
    let piece = |thing| Lease {
        thing,
        ..lease.clone()
    };
    claim::pieces(range, kept).into_iter().map(piece).collect()
}
