//! `fleet`: variants of blueprints, rendered together in one book transaction and one journal.
//!
//! ```text
//!  DIR: variants, sets, repositories, clusters, pools ─┐
//!  blueprints/<repo>/<package>                        ─┴► clones ─► the render engine ─► OUT/<repo>/<package>
//!                                                          └ OUT/fleet-record.yaml: who made what ┘
//! ```
//!
//! The clones are never written as they are: they are the engine's source, so a fleet is a render whose packages
//! stand nowhere yet. Easy to get wrong: a package whose variant is gone must go with its addresses, and only
//! the record knows that there ever was one; so the record is written in the same act as the packages.

pub(crate) mod blueprint;
pub(crate) mod clone;
mod record;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use mooring_api::kinds::porch::{AdoptionPolicy, DeletionPolicy};
use mooring_api::{Code, Finding, Span, Time};
use mooring_blueprint::variant::{self, Variant};
use mooring_book::Store;
use mooring_krm::layout;
use serde::Serialize;

use crate::disk::{Disk, LOCK_WAIT, MAX_FILE, RealDisk, Tree, TreeLock, read_tree};
use crate::documents::Documents;
use crate::journal::{self, Change};
use crate::render::{Act, Beside, refused, sorted};
use crate::report::{Dialect, PackageReport, Report, Request};
use crate::site::Site;
use crate::trees::{Trees, place, settled};
use crate::{Error, Progress};

use blueprint::Blueprints;
use clone::Cloned;
use record::{RECORD, Record};

/// Which fleet to render, and how.
#[derive(Clone, Debug)]
pub struct FleetRequest {
    /// Where the variants are, with repositories, clusters and pools.
    pub source: PathBuf,
    /// Where the blueprints are; `source` where None.
    pub blueprints: Option<PathBuf>,
    /// Where the packages go.
    pub out: PathBuf,
    /// More pools and clusters.
    pub mgmt: Option<PathBuf>,
    /// Chosen dialect; by each package's marks where None.
    pub dialect: Option<Dialect>,
    /// Change and reserve nothing.
    pub check: bool,
    /// A source without any variant means that all packages go; it is an error otherwise.
    pub allow_empty: bool,
    /// Leave what the book gives reserved for this long; commit it where None.
    pub draft: Option<Span>,
    /// Ship IPClaim and IPAllocation to the cluster as inert records.
    pub deploy_records: bool,
    /// Now.
    pub now: Time,
    /// Random bytes to mint package ids from.
    pub entropy: [u8; 16],
}

/// What a run over a fleet did or would do.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FleetReport {
    /// One per place, in order.
    pub downstreams: Vec<DownstreamReport>,
    /// As for any render.
    #[serde(flatten)]
    pub report: Report,
    /// Old and new text of every file that changes.
    #[serde(skip)]
    pub texts: Vec<FileTexts>,
}

/// One package of a fleet.
#[derive(Clone, Debug, Serialize)]
pub struct DownstreamReport {
    /// `repository/package`.
    pub path: String,
    /// `namespace/name` of the variant.
    pub variant: String,
    /// Where its blueprint stands; empty for one that goes.
    pub blueprint: String,
    /// The cluster it is for.
    pub cluster: String,
    /// How many conditions are True, and how many there are.
    pub conditions: (usize, usize),
    /// What happened to it.
    pub what: Happened,
}

/// What happened to a package of a fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Happened {
    /// It is new.
    Created,
    /// Some of its files changed.
    Updated,
    /// Nothing.
    Unchanged,
    /// Its variant is gone, and so is it.
    Removed,
    /// Its variant is gone, and it stays.
    Orphaned,
}

/// A file before and after.
#[derive(Clone, Debug)]
pub struct FileTexts {
    /// Where.
    pub path: PathBuf,
    /// Its text; None where it was not there.
    pub before: Option<String>,
    /// Its text; None where it goes.
    pub after: Option<String>,
}

/// Renders every variant of a fleet, in one book transaction.
pub fn fleet(
    store: &dyn Store,
    fleet: &FleetRequest,
    progress: Progress<'_>,
) -> Result<FleetReport, Error> {
    let mut report = Report::default();
    let refuse = |report, findings| {
        Ok(FleetReport {
            report: refused(report, findings),
            ..FleetReport::default()
        })
    };
    // Before the lock, which makes the directory that it locks.
    let site = match site(fleet) {
        Ok(site) => site,
        Err(findings) => return refuse(report, findings),
    };
    if site.findings.iter().any(Finding::is_error) {
        return refuse(report, site.findings);
    }
    report.findings.extend(site.findings.iter().cloned());
    let request = request(fleet);
    let _lock = if fleet.check {
        None
    } else {
        match TreeLock::take(&fleet.out, LOCK_WAIT) {
            Ok(lock) => Some(lock),
            Err(finding) => return refuse(report, vec![*finding]),
        }
    };
    let there = RealDisk.meta(&fleet.out.join(".")).is_ok();
    let out = if there {
        settled(store, &request, &fleet.out, &mut report.findings)
    } else {
        Ok(Tree::default())
    };
    let out = match out {
        Ok(out) => out,
        Err(findings) => return refuse(report, findings),
    };
    let mut plan = match Plan::make(fleet, &site, &out, &mut report.findings) {
        Ok(plan) => plan,
        Err(findings) => return refuse(report, findings),
    };
    let beside = plan.beside(store, fleet, &out)?;
    let clones = std::mem::take(&mut plan.clones);
    let ids = known_ids(store, &fleet.out)?;
    let trees = Trees::cloned(clones.source, out, clones.elsewhere, ids);
    let units = if plan.variants.is_empty() {
        Vec::new()
    } else {
        trees.units(&request, &mut report.findings)
    };
    let (mut report, changes) = if report.has_errors() {
        (sorted(report), Vec::new())
    } else {
        let act = Act {
            store,
            request: &request,
            target: &fleet.out,
            site: &site,
            trees: &trees,
            carries: &crate::decide::carries,
            neighbours: &[],
            in_memory: false,
            renew: false,
        };
        act.run(units, beside, report, progress)?
    };
    for finding in &mut report.findings {
        plan.blueprints.relocate(finding);
    }
    if report.has_errors() {
        return Ok(FleetReport {
            report: sorted(report),
            ..FleetReport::default()
        });
    }
    let texts = changes.iter().map(|c| texts(&trees, c, &fleet.out));
    Ok(FleetReport {
        texts: texts.collect(),
        downstreams: plan.tell(&trees, &changes, &report, fleet),
        report,
    })
}

/// The packages that the book knows below the output: one whose files were lost is still the same package.
fn known_ids(store: &dyn Store, out: &Path) -> Result<BTreeMap<String, String>, Error> {
    let root = place(out, "");
    let inside = store.packages()?.into_iter().filter_map(|record| {
        let dir = Path::new(&record.path).strip_prefix(&root).ok()?;
        Some((dir.to_str()?.to_owned(), record.id))
    });
    Ok(inside.collect())
}

fn request(fleet: &FleetRequest) -> Request {
    Request {
        source: fleet.source.clone(),
        out: Some(fleet.out.clone()),
        mgmt: None,
        published: Vec::new(),
        cluster: None,
        dialect: fleet.dialect,
        check: fleet.check,
        new_id: false,
        draft: fleet.draft,
        pinned: false,
        deploy_records: fleet.deploy_records,
        now: fleet.now,
        entropy: fleet.entropy,
    }
}

/// The objects of the fleet: those of its directory that stand in no package, and those of the management one.
fn site(fleet: &FleetRequest) -> Result<Site, Vec<Finding>> {
    let mut findings = Vec::new();
    let mut documents = Documents::default();
    let mut add = |dir: &Path, tree: &Tree, paths: &mut dyn Iterator<Item = &String>| {
        let files = paths.filter_map(|p| Some((p.as_str(), tree.files.get(p)?.as_slice())));
        let shown = |path: &str| dir.join(path).display().to_string();
        let parsed = Documents::parse(files, shown, &mut findings);
        for file in parsed.files {
            documents.add(file.path, file.shown, file.file);
        }
    };
    let own = read_tree(&RealDisk, &fleet.source)?;
    let outside = layout(&own.files).outside;
    add(&fleet.source, &own, &mut outside.iter());
    if let Some(mgmt) = &fleet.mgmt {
        if let Ok(Some(root)) = journal::pending(&RealDisk, mgmt) {
            return Err(vec![crate::site::interrupted(&root)]);
        }
        let real = |dir: &Path| RealDisk.resolve(dir).unwrap_or_else(|_| dir.to_owned());
        // What lies inside was read already.
        if !real(mgmt).starts_with(real(&fleet.source)) {
            let tree = read_tree(&RealDisk, mgmt)?;
            add(mgmt, &tree, &mut tree.files.keys());
        }
    }
    Ok(Site::from_documents(documents, findings))
}

/// What the fleet shall become.
struct Plan {
    variants: Vec<Variant>,
    blueprints: Blueprints,
    clones: Cloned,
    /// What the last run made, and what this one makes.
    before: Record,
    after: Record,
}

impl Plan {
    fn make(
        fleet: &FleetRequest,
        site: &Site,
        out: &Tree,
        findings: &mut Vec<Finding>,
    ) -> Result<Self, Vec<Finding>> {
        let before = Record::read(out, &fleet.out)?;
        let root = fleet.blueprints.as_deref().unwrap_or(&fleet.source);
        let mut blueprints = Blueprints::new(root);
        let kptfile = |upstream: &_| blueprint::kptfile(root, upstream);
        let (variants, said) = variant::read(&site.objects, &kptfile);
        let mut said: Vec<Finding> = said;
        if !fleet.allow_empty && !site.objects.iter().any(asks) {
            said.push(nothing_asked(&fleet.source));
        }
        if !said.iter().any(Finding::is_error) {
            for variant in &variants {
                said.extend(blueprints.read(variant));
                said.extend(in_the_way(variant, out, &before));
            }
        }
        let located = said.into_iter().map(|f| site.documents.locate(f));
        findings.extend(located);
        if findings.iter().any(Finding::is_error) {
            return Err(std::mem::take(findings));
        }
        let clones = Cloned::make(&variants, &blueprints, &site.objects);
        findings.extend(
            clones
                .findings
                .iter()
                .cloned()
                .map(|f| site.documents.locate(f)),
        );
        let after = Record::of(&variants, &clones.files);
        Ok(Self {
            variants,
            blueprints,
            clones,
            before,
            after,
        })
    }

    /// The record, files that the blueprints no longer have, and packages that no variant wants.
    fn beside(&self, store: &dyn Store, fleet: &FleetRequest, out: &Tree) -> Result<Beside, Error> {
        let mut beside = Beside::default();
        let known = store.packages()?;
        for (path, entry) in &self.before.packages {
            if let Some(now) = self.after.packages.get(path) {
                let stale = entry.files.difference(&now.files);
                let stale = stale.map(|file| (format!("{path}/{file}"), None));
                beside.files.extend(stale);
            } else if self.policy(entry) == DeletionPolicy::Delete {
                let start = format!("{path}/");
                let all = out.files.keys().chain(&out.others);
                let inside: Vec<&String> = all.filter(|file| file.starts_with(&start)).collect();
                let ids: BTreeSet<String> = inside
                    .iter()
                    .filter_map(|f| blueprint::id(out, f))
                    .collect();
                let root = place(&fleet.out, path);
                let ours = known.iter().filter(|record| {
                    // Elsewhere and still there, it is another package that was given this id.
                    let here = Path::new(&record.path).starts_with(&root);
                    let moved = RealDisk
                        .meta(&Path::new(&record.path).join("Kptfile"))
                        .is_err();
                    ids.contains(&record.id) && (here || moved)
                });
                let gone = ours.map(|record| (record.cluster.clone(), record.id.clone()));
                beside.gone.extend(gone);
                beside
                    .files
                    .extend(inside.into_iter().map(|file| (file.clone(), None)));
            }
        }
        if self.after != self.before {
            let text = (!self.after.packages.is_empty()).then(|| self.after.text().into_bytes());
            beside.files.insert(RECORD.to_owned(), text);
        }
        Ok(beside)
    }

    /// What shall happen to a package that its variant no longer wants there.
    fn policy(&self, entry: &record::Entry) -> DeletionPolicy {
        let named = |v: &&Variant| record::name(v) == entry.variant;
        let now = self.variants.iter().find(named);
        now.map_or(entry.deletion_policy, |v| {
            v.spec.deletion_policy.unwrap_or_default()
        })
    }

    fn tell(
        &self,
        trees: &Trees,
        changes: &[Change],
        report: &Report,
        fleet: &FleetRequest,
    ) -> Vec<DownstreamReport> {
        let changed: BTreeSet<&str> = changes.iter().map(Change::path).collect();
        let touched = |path: &str| {
            let start = format!("{path}/");
            let mut after = changed.range(start.as_str()..);
            after.next().is_some_and(|file| file.starts_with(&start))
        };
        let packages: BTreeMap<&Path, &PackageReport> = report
            .packages
            .iter()
            .map(|p| (p.path.as_path(), p))
            .collect();
        let mut rows = BTreeMap::new();
        for variant in &self.variants {
            let path = variant.path();
            let what = if trees.before(&format!("{path}/Kptfile")).is_none() {
                Happened::Created
            } else if touched(&path) {
                Happened::Updated
            } else {
                Happened::Unchanged
            };
            let package = packages.get(fleet.out.join(&path).as_path());
            let row = DownstreamReport {
                path: path.clone(),
                variant: record::name(variant),
                blueprint: self.blueprints.shown(variant),
                cluster: package.map(|p| p.cluster.clone()).unwrap_or_default(),
                conditions: package.map(|p| p.conditions).unwrap_or_default(),
                what,
            };
            rows.insert(path, row);
        }
        for (path, entry) in &self.before.packages {
            rows.entry(path.clone())
                .or_insert_with(|| DownstreamReport {
                    path: path.clone(),
                    variant: entry.variant.clone(),
                    blueprint: String::new(),
                    cluster: String::new(),
                    conditions: (0, 0),
                    what: match self.policy(entry) {
                        DeletionPolicy::Delete => Happened::Removed,
                        DeletionPolicy::Orphan => Happened::Orphaned,
                    },
                });
        }
        rows.into_values().collect()
    }
}

/// Whether an object asks for a package.
fn asks(object: &mooring_blueprint::Object) -> bool {
    object.group() == mooring_api::kinds::porch::GROUP
        && ["PackageVariant", "PackageVariantSet"].contains(&object.kind())
}

fn nothing_asked(dir: &Path) -> Finding {
    let message = format!(
        "{} holds no PackageVariant and no PackageVariantSet",
        dir.display()
    );
    let help = if RealDisk.meta(&dir.join("Kptfile")).is_ok() {
        "It is a package itself, and what stands in a package does not count. Put the variants beside it, and name it with --mgmt."
    } else {
        "Name the directory of a fleet. Where its last variant was taken away on purpose, add --allow-empty."
    };
    Finding::error(Code::PackageMissing, message).help(help)
}

/// A package that no variant made stands where this one goes.
fn in_the_way(variant: &Variant, out: &Tree, before: &Record) -> Option<Finding> {
    let path = variant.path();
    let adopts = variant.spec.adoption_policy == Some(AdoptionPolicy::AdoptExisting);
    if adopts || before.packages.contains_key(&path) {
        return None;
    }
    let start = format!("{path}/");
    let mut first = out.files.range(start.clone()..).map(|(file, _)| file);
    let mut other = out.others.range(start.clone()..);
    let found = first.next().filter(|file| file.starts_with(&start));
    let found = found.or_else(|| other.next().filter(|file| file.starts_with(&start)))?;
    Some(
        Finding::error(
            Code::DownstreamTaken,
            format!("something that no variant made stands at {path} already, such as {found}"),
        )
        .on(&variant.origin)
        .at(variant.place.clone())
        .help("Write adoptionPolicy: adoptExisting to make it the variant, or give the variant another place."),
    )
}

/// A change as texts, for a person to read.
fn texts(trees: &Trees, change: &Change, root: &Path) -> FileTexts {
    let path = root.join(change.path());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let known = trees.before(change.path()).map(text);
    let read = || {
        RealDisk
            .read(&path, MAX_FILE)
            .ok()
            .map(|bytes| text(&bytes))
    };
    let after = match change {
        Change::Write { bytes, .. } => Some(text(bytes)),
        Change::Remove { .. } => None,
    };
    FileTexts {
        before: known.or_else(read),
        after,
        path,
    }
}
