//! A package as bytes: specialised in memory, with its addresses reserved or committed; and its addresses given back.
//!
//! ```text
//!  path → bytes ─┐
//!  Site          ├─► the render engine ─► path → bytes, Report (findings, addresses, the reservation)
//!  book          ┘
//! ```
//!
//! Packages that live in Git go this way: [`revision::addressed`](crate::revision::addressed) and the controller read bytes, specialise
//! them here and push what comes out, so that nobody ever sees half of it. It is the engine of `moor render`, and only the writer is left
//! out. With an error finding the files come back as they were, and the book is untouched.
//!
//! Easy to get wrong: a draft that is specialised again has a new transaction beside its old one. Both count on the same leases, so the old
//! one is aborted by [`discard`] *after* the new one is there, and no address is free in between.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use mooring_api::{Finding, Span, Time, annotation};
use mooring_book::{Filter, Store};
use mooring_ipam::{InstanceKey, Lease, Thing, TxnId};
use mooring_krm::{Document, File, KPTFILE, kptfile, layout};
use serde_json::Value;

use crate::Error;
use crate::decide::Carries;
use crate::disk::{Tree, is_document};
use crate::documents::Documents;
use crate::git::Files;
use crate::journal::Change;
use crate::moved;
use crate::neighbour::Neighbour;
use crate::read;
use crate::render::{Act, Beside, RESERVATION, refused, sorted};
use crate::report::{Dialect, Report, Request};
use crate::site::Site;
use crate::trees::{Trees, is_made};
use crate::unit::Unit;
use crate::vlan;

/// How a package in memory is specialised.
#[derive(Clone)]
pub struct Specialise<'a> {
    /// Pools and clusters.
    pub site: &'a Site,
    /// What the book knows the package as: [`Repository::place`](crate::git::Repository::place).
    pub place: PathBuf,
    /// Where its files were read, for findings and as its working copy; the place where None.
    pub source: Option<PathBuf>,
    /// The package as it was specialised before, in a draft or published: its identity, and what was generated for it.
    pub previous: Option<&'a Files>,
    /// The WorkloadCluster; the one that the package has, or the only one, where None.
    pub cluster: Option<String>,
    /// Chosen dialect; by the package's marks where None.
    pub dialect: Option<Dialect>,
    /// Reserve for this long and leave it so, for a draft; commit where None.
    pub draft: Option<Span>,
    /// For a draft: reserve anew what is only reserved yet, under a transaction of its own.
    pub renew: bool,
    /// The addresses that the files say are those that the package gets, or it is refused: for a rollback.
    pub pinned: bool,
    /// Change nothing in the book.
    pub check: bool,
    /// Ship IPClaim and IPAllocation to the cluster as inert records.
    pub deploy_records: bool,
    /// Packages that are published already, for its Dependencies: all that go by a name of
    /// [`needed_packages`](crate::needed_packages). Its own older self among them is not meant.
    pub neighbours: &'a [Neighbour],
    /// Whether another place that the book knows still has a package of this id, which makes this one a copy.
    pub carries: Option<Carries<'a>>,
    /// Now.
    pub now: Time,
    /// Random bytes to mint ids from.
    pub entropy: [u8; 16],
}

impl<'a> Specialise<'a> {
    /// With nothing chosen: commits.
    pub fn new(site: &'a Site, place: PathBuf, now: Time, entropy: [u8; 16]) -> Self {
        Self {
            site,
            place,
            source: None,
            previous: None,
            cluster: None,
            dialect: None,
            draft: None,
            renew: false,
            pinned: false,
            check: false,
            deploy_records: false,
            neighbours: &[],
            carries: None,
            now,
            entropy,
        }
    }
}

/// A package that was specialised.
#[derive(Clone, Debug, Default)]
pub struct Specialised {
    /// All of its files; as they were given where the report has errors.
    pub files: Files,
    /// What it got, and what is to be told.
    pub report: Report,
}

/// Specialises a package, with the packages inside of it, in one book transaction.
pub fn specialise(
    store: &dyn Store,
    files: &Files,
    how: &Specialise<'_>,
) -> Result<Specialised, Error> {
    let mut out = files.clone();
    let mut ids = BTreeMap::new();
    if let Some(previous) = how.previous {
        ids = identities(previous);
        out.extend(generated(previous, files));
    }
    let report = Report::default();
    let findings: Vec<Finding> = how.site.findings.clone();
    if findings.iter().any(Finding::is_error) {
        let report = refused(report, findings);
        let files = files.clone();
        return Ok(Specialised { files, report });
    }
    let request = Request {
        source: how.source.clone().unwrap_or_else(|| how.place.clone()),
        out: None,
        mgmt: None,
        published: Vec::new(),
        cluster: how.cluster.clone(),
        dialect: how.dialect,
        check: how.check,
        new_id: false,
        draft: how.draft,
        pinned: how.pinned,
        deploy_records: how.deploy_records,
        now: how.now,
        entropy: how.entropy,
    };
    let mut tree = Tree::default();
    for (path, bytes) in &out {
        let name = path.rsplit('/').next().unwrap_or(path);
        if is_document(name) {
            tree.files.insert(path.clone(), bytes.clone());
        } else {
            tree.others.insert(path.clone());
        }
    }
    let trees = Trees::in_memory(tree, own(&out, ids));
    let mut report = Report {
        findings,
        ..Report::default()
    };
    let units = trees.units(&request, &mut report.findings);
    if report.has_errors() {
        let (files, report) = (files.clone(), sorted(report));
        return Ok(Specialised { files, report });
    }
    let on_disk = &crate::decide::carries;
    let act = Act {
        store,
        request: &request,
        target: &how.place,
        site: how.site,
        trees: &trees,
        carries: how.carries.unwrap_or(on_disk),
        neighbours: how.neighbours,
        in_memory: true,
        renew: how.renew,
    };
    let (report, changes) = act.run(units, Beside::default(), report, &|_, _| ())?;
    if report.has_errors() {
        let files = files.clone();
        return Ok(Specialised { files, report });
    }
    for change in changes {
        match change {
            Change::Write { path, bytes } => drop(out.insert(path, bytes)),
            Change::Remove { path } => drop(out.remove(&path)),
        }
    }
    Ok(Specialised { files: out, report })
}

/// The id of every package in these files, by directory.
pub(crate) fn identities(files: &Files) -> BTreeMap<String, String> {
    let id = |(path, bytes): (&String, &Vec<u8>)| {
        let dir = match path.as_str() {
            KPTFILE => "",
            other => other.strip_suffix("/Kptfile")?,
        };
        let file = File::parse(bytes).ok()?;
        let mut values = file.documents().iter().map(Document::value);
        let id = values.find_map(|v| kptfile::annotation(v, annotation::PACKAGE_ID))?;
        Some((dir.to_owned(), id.to_owned()))
    };
    files.iter().filter_map(id).collect()
}

/// Every package in these files.
pub(crate) fn units(files: &Files) -> Vec<Unit> {
    let unit = |package: mooring_krm::Package| {
        let bytes = package
            .files
            .iter()
            .filter_map(|p| Some((p.as_str(), files.get(p)?.as_slice())));
        let documents = Documents::parse(bytes, ToOwned::to_owned, &mut Vec::new());
        Unit::new(package.directory, package.files, documents)
    };
    layout(files)
        .packages
        .into_iter()
        .filter_map(unit)
        .collect()
}

/// Cluster and id of every package in these files that was specialised.
pub(crate) fn holders(files: &Files) -> BTreeSet<(String, String)> {
    let holder = |unit: &Unit| {
        let id = unit.bundle.marks.annotations.get(annotation::PACKAGE_ID)?;
        Some((read::cluster(unit)?.name, id.clone()))
    };
    units(files).iter().filter_map(holder).collect()
}

/// What the package says itself goes before what it was.
fn own(files: &Files, mut ids: BTreeMap<String, String>) -> BTreeMap<String, String> {
    ids.extend(identities(files));
    ids
}

/// Files of the specialised package that hold nothing but generated objects, and that the new one does not have.
fn generated(previous: &Files, files: &Files) -> Files {
    let packages: BTreeSet<String> = layout(files)
        .packages
        .into_iter()
        .map(|p| p.directory)
        .collect();
    let ours = |path: &str, bytes: &[u8]| {
        let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
        if name == KPTFILE || !is_document(name) || !packages.contains(dir) {
            return false;
        }
        let Ok(file) = File::parse(bytes) else {
            return false;
        };
        let objects = file.documents().iter().map(Document::value);
        let mut objects = objects.filter(|v| v.is_object()).peekable();
        objects.peek().is_some() && objects.all(|v: &Value| is_made(v))
    };
    let new = previous
        .iter()
        .filter(|(path, bytes)| !files.contains_key(*path) && ours(path, bytes));
    new.map(|(path, bytes)| (path.clone(), bytes.clone()))
        .collect()
}

/// Gives back what drafts of a package have reserved in a cluster, except under the transactions to `keep`. Says which were aborted.
///
/// A transaction that also has something of another package is left alone: it is that of a render over many, which ends by itself.
pub fn discard(
    store: &dyn Store,
    cluster: &str,
    package: &str,
    keep: &BTreeSet<TxnId>,
    now: Time,
) -> Result<Vec<TxnId>, Error> {
    // What expired is nobody's, and need not be aborted.
    drop(store.begin(now)?);
    let pending = store.pending()?;
    if pending.iter().all(|txn| keep.contains(&txn.id)) {
        return Ok(Vec::new());
    }
    let instances: BTreeSet<InstanceKey> = pending
        .iter()
        .flat_map(|txn| txn.takes.iter().chain(&txn.releases))
        .map(|(instance, _)| instance.clone())
        .collect();
    let mut leases: BTreeMap<(InstanceKey, Thing), Lease> = BTreeMap::new();
    for instance in instances {
        let filter = Filter {
            instance: Some(instance),
            ..Filter::default()
        };
        let all = store.leases(&filter)?.into_iter();
        leases.extend(all.map(|l| ((l.instance.clone(), l.thing), l)));
    }
    let mut aborted = Vec::new();
    for txn in pending.iter().filter(|txn| !keep.contains(&txn.id)) {
        let known = txn.takes.iter().chain(&txn.releases);
        let known: Vec<&Lease> = known.filter_map(|key| leases.get(key)).collect();
        let ours = |l: &&Lease| l.holder.cluster == cluster && l.holder.package == package;
        // A VLAN is the network's, whoever asked for it.
        let networks =
            |l: &&Lease| matches!(l.thing, Thing::Vlan(_)) && l.holder.cluster == cluster;
        if known.iter().any(&ours) && known.iter().all(|l| ours(l) || networks(l)) {
            store.abort(txn.id, now)?;
            aborted.push(txn.id);
        }
    }
    Ok(aborted)
}

/// Releases everything that a package holds in a cluster, and forgets the package: it is no more. Drafts' reservations go too.
pub fn retire(
    store: &dyn Store,
    site: &Site,
    cluster: &str,
    package: &str,
    now: Time,
) -> Result<bool, Error> {
    let aborted = discard(store, cluster, package, &BTreeSet::new(), now)?;
    let mut txn = store.begin(now)?;
    moved::forget(&mut *txn, cluster, package, &site.pools)?;
    let gone = [(cluster.to_owned(), package.to_owned())];
    vlan::give_back(store, &mut *txn, &[], &gone)?;
    if txn.is_unchanged() {
        return Ok(!aborted.is_empty());
    }
    let txn = txn.reserve(RESERVATION)?;
    store.commit(txn, now)?;
    Ok(true)
}
