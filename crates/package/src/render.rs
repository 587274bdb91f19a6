//! `render`: many packages, one book transaction, one journal.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use mooring_api::{Code, Finding, Severity, Span, annotation};
use mooring_blueprint::claim::Wish;
use mooring_blueprint::{Context, Object, pools};
use mooring_book::{PackageRecord, Store, Txn};
use mooring_ipam::{Lease, Pools};
use mooring_krm::layout;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::disk::{Disk, LOCK_WAIT, MAX_FILE, RealDisk, Tree, TreeLock, read_tree};
use crate::documents::Documents;
use crate::journal::{self, Change, CommitError, Plan};
use crate::report::{Changed, Dialect, FileChange, PackageReport, Report, Request};
use crate::site::Site;
use crate::steps::{self, Outcome};
use crate::unit::Unit;
use crate::{Error, Progress, summary};

/// How long a reservation lives when its run is killed between reserving and committing. The next
/// render of the same package takes its addresses over at once, however long this is.
const RESERVATION: Span = Span(3600);

/// Specialises one package, or every package below a directory, in one book transaction.
pub fn render(
    store: &dyn Store,
    request: &Request,
    progress: Progress<'_>,
) -> Result<Report, Error> {
    let mut report = Report::default();
    let target = request.out.as_deref().unwrap_or(&request.source).to_owned();
    let _lock = if request.check {
        None
    } else {
        match TreeLock::take(&target, LOCK_WAIT) {
            Ok(lock) => Some(lock),
            Err(finding) => return Ok(refused(report, vec![*finding])),
        }
    };
    let trees = match Trees::gather(store, request, &target, &mut report.findings) {
        Ok(trees) => trees,
        Err(findings) => return Ok(refused(report, findings)),
    };
    let site = request.mgmt.as_deref().map(Site::read).unwrap_or_default();
    report.findings.extend(site.findings.iter().cloned());
    let mut units = trees.units(request, &mut report.findings);
    if report.has_errors() {
        return Ok(sorted(report));
    }

    let mut txn = store.begin(request.now)?;
    let mut decided = Vec::new();
    let total = units.len();
    for (nth, unit) in units.iter_mut().enumerate() {
        progress(nth, total);
        let mut run = Run {
            request,
            site: &site,
            target: &target,
            txn: &mut *txn,
            nth,
        };
        decided.push(run.decide(unit, trees.previous_id(&unit.dir), &mut report.findings)?);
    }
    progress(total, total);
    if report.has_errors() {
        return Ok(sorted(report));
    }

    let mut files: BTreeMap<String, Option<Vec<u8>>> = trees.copies(request)?;
    let texts = crate::parallel::map(units.iter().zip(&decided).collect(), |(unit, d)| {
        unit.files(&d.id)
    });
    for text in texts {
        match text {
            Ok(text) => files.extend(
                text.into_iter()
                    .map(|(p, t)| (p, t.map(String::into_bytes))),
            ),
            Err(findings) => report.findings.extend(findings),
        }
    }
    if report.has_errors() {
        return Ok(sorted(report));
    }
    let changes = trees.changes(files, &target, &mut report);
    for (unit, decided) in units.iter().zip(&decided) {
        report.packages.push(package_report(unit, decided, &target));
    }
    report.book_changed = !txn.is_unchanged();
    if !request.check && report.is_changed() {
        write(
            store,
            txn,
            Plan {
                root: target,
                changes,
                txn: None,
            },
            request,
            &mut report,
        )?;
    }
    Ok(sorted(report))
}

fn refused(mut report: Report, findings: Vec<Finding>) -> Report {
    report.findings.extend(findings);
    sorted(report)
}

/// Findings in the order of file and line; errors, warnings and notes of one line in that order.
fn sorted(mut report: Report) -> Report {
    let key = |f: &Finding| {
        let place = f.location.as_ref().map(|l| (l.file.clone(), l.line));
        (f.severity != Severity::Error, place, f.severity, f.code)
    };
    report.findings.sort_by_key(key);
    report.findings.dedup();
    if report.has_errors() {
        report.changes.clear();
        report.book_changed = false;
    }
    report
}

/// Reserve, journal, rename, commit.
fn write(
    store: &dyn Store,
    txn: Box<dyn Txn + '_>,
    mut plan: Plan,
    request: &Request,
    report: &mut Report,
) -> Result<(), Error> {
    if report.book_changed {
        plan.txn = Some(txn.reserve(RESERVATION)?);
    } else {
        drop(txn);
    }
    match journal::commit_files(&RealDisk, &plan, |txn| store.commit(txn, request.now)) {
        Ok(_) => Ok(()),
        Err(CommitError::Refused(findings)) => {
            if let Some(txn) = plan.txn {
                store.abort(txn, request.now)?;
            }
            report.findings.extend(findings);
            report.changes.clear();
            report.book_changed = false;
            Ok(())
        }
        Err(CommitError::Interrupted(finding)) => {
            report.findings.push(*finding);
            Ok(())
        }
        Err(CommitError::Book(error)) => Err(error.into()),
    }
}

/// The source, and what was written before.
struct Trees {
    source: Tree,
    /// Where a run with `--out` wrote before.
    out: Option<Tree>,
}

impl Trees {
    fn gather(
        store: &dyn Store,
        request: &Request,
        target: &Path,
        findings: &mut Vec<Finding>,
    ) -> Result<Self, Vec<Finding>> {
        let settled = |dir: &Path, findings: &mut Vec<Finding>| {
            if request.check {
                return read_tree(&RealDisk, dir);
            }
            let commit = |txn| store.commit(txn, request.now);
            let (tree, recovered) = journal::read_settled(&RealDisk, dir, commit)?;
            findings.extend(recovered.iter().filter_map(journal::Recovered::finding));
            Ok(tree)
        };
        match &request.out {
            None => Ok(Self {
                source: settled(target, findings)?,
                out: None,
            }),
            Some(out) => {
                let source = read_tree(&RealDisk, &request.source)?;
                let there = RealDisk.meta(&out.join(".")).is_ok();
                let out = if there {
                    settled(out, findings)?
                } else {
                    Tree::default()
                };
                Ok(Self {
                    source,
                    out: Some(out),
                })
            }
        }
    }

    /// The packages, parsed and checked. With `--out`, what an earlier run generated there belongs to
    /// the package too: its comments, and the addresses it says, are kept.
    fn units(&self, request: &Request, findings: &mut Vec<Finding>) -> Vec<Unit> {
        let packages = layout(&self.source.files).packages;
        if packages.is_empty() {
            findings.push(
                Finding::error(
                    Code::PackageMissing,
                    format!("{} holds no Kptfile", request.source.display()),
                )
                .help("Name a package directory, or make one: a Kptfile with apiVersion kpt.dev/v1, kind and metadata.name."),
            );
            return Vec::new();
        }
        let work: Vec<_> = packages
            .into_iter()
            .map(|p| (p.directory, p.files))
            .collect();
        let parsed = crate::parallel::map(work, |(dir, mut paths)| {
            let mut findings = Vec::new();
            let generated = self.generated(&dir, &paths);
            let from_source = paths.len();
            paths.extend(generated);
            let bytes = paths.iter().enumerate().filter_map(|(i, path)| {
                let tree = if i < from_source {
                    &self.source
                } else {
                    self.out.as_ref()?
                };
                Some((path.as_str(), tree.files.get(path)?.as_slice()))
            });
            let shown = |path: &str| {
                let own = self.source.files.contains_key(path);
                let root = if own {
                    &request.source
                } else {
                    request.out.as_ref().unwrap_or(&request.source)
                };
                root.join(path).display().to_string()
            };
            let documents = Documents::parse(bytes, shown, &mut findings);
            documents.check(&mut findings);
            (Unit::new(dir, paths, documents), findings)
        });
        let mut units = Vec::new();
        for (unit, found) in parsed {
            findings.extend(found);
            units.extend(unit);
        }
        units
    }

    /// Files of an earlier run in OUT that hold nothing but generated objects.
    fn generated(&self, dir: &str, source: &[String]) -> Vec<String> {
        let Some(out) = &self.out else {
            return Vec::new();
        };
        let inside = |path: &&String| {
            let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
            parent == dir && !source.contains(path) && !path.ends_with("Kptfile")
        };
        let ours = |path: &&String| {
            mooring_krm::File::parse(&out.files[*path]).is_ok_and(|file| {
                let mut objects = file.documents().iter().filter(|d| d.value().is_object());
                let owned = |v: &Value| {
                    Object {
                        value: v.clone(),
                        source: None,
                    }
                    .owner()
                    .is_some()
                };
                objects.clone().next().is_some() && objects.all(|d| owned(d.value()))
            })
        };
        out.files
            .keys()
            .filter(inside)
            .filter(ours)
            .cloned()
            .collect()
    }

    /// The id that an earlier run minted into OUT.
    fn previous_id(&self, dir: &str) -> Option<String> {
        let path = if dir.is_empty() {
            "Kptfile".to_owned()
        } else {
            format!("{dir}/Kptfile")
        };
        let file = mooring_krm::File::parse(self.out.as_ref()?.files.get(&path)?).ok()?;
        let value = file.documents().first()?.value().clone();
        Object {
            value,
            source: None,
        }
        .annotation(annotation::PACKAGE_ID)
        .map(ToOwned::to_owned)
    }

    /// With `--out`, every file of the source goes along.
    fn copies(&self, request: &Request) -> Result<BTreeMap<String, Option<Vec<u8>>>, Error> {
        if self.out.is_none() {
            return Ok(BTreeMap::new());
        }
        let mut files: BTreeMap<String, Option<Vec<u8>>> = self
            .source
            .files
            .iter()
            .map(|(p, b)| (p.clone(), Some(b.clone())))
            .collect();
        for path in &self.source.others {
            let full = request.source.join(path);
            let bytes = RealDisk
                .read(&full, MAX_FILE)
                .map_err(|source| Error::Disk {
                    act: "read",
                    path: full,
                    source,
                })?;
            files.insert(path.clone(), Some(bytes));
        }
        Ok(files)
    }

    /// What really changes on disk.
    fn changes(
        &self,
        files: BTreeMap<String, Option<Vec<u8>>>,
        target: &Path,
        report: &mut Report,
    ) -> Vec<Change> {
        let before = self.out.as_ref().unwrap_or(&self.source);
        let mut changes = Vec::new();
        for (path, bytes) in files {
            let old = before.files.get(&path).cloned().or_else(|| {
                before
                    .others
                    .contains(&path)
                    .then(|| RealDisk.read(&target.join(&path), MAX_FILE).ok())?
            });
            let what = match (&old, &bytes) {
                (None, None) => continue,
                (Some(old), Some(new)) if old == new => continue,
                (None, Some(_)) => Changed::Created,
                (Some(_), Some(_)) => Changed::Updated,
                (Some(_), None) => Changed::Removed,
            };
            report.changes.push(FileChange {
                path: target.join(&path),
                what,
            });
            changes.push(match bytes {
                Some(bytes) => Change::Write { path, bytes },
                None => Change::Remove { path },
            });
        }
        changes
    }
}

/// One package's way through the steps.
struct Run<'a, 't> {
    request: &'a Request,
    site: &'a Site,
    target: &'a Path,
    txn: &'a mut (dyn Txn + 't),
    nth: usize,
}

/// What was decided for a package.
pub(crate) struct Decided {
    /// Its id.
    pub(crate) id: String,
    /// Cluster, ports, leases.
    pub(crate) outcome: Outcome,
}

impl Run<'_, '_> {
    fn decide(
        &mut self,
        unit: &mut Unit,
        previous: Option<String>,
        findings: &mut Vec<Finding>,
    ) -> Result<Decided, Error> {
        let path = self.target.join(&unit.dir);
        let path = std::path::absolute(&path).unwrap_or(path);
        let own = unit
            .bundle
            .marks
            .annotations
            .get(annotation::PACKAGE_ID)
            .cloned();
        let known = previous.or(own).filter(|_| !self.request.new_id);
        let id = known.unwrap_or_else(|| self.mint(unit));
        let mut said = Vec::new();
        let outcome = self.steps(unit, &id, &mut said)?;
        if let Some(cluster) = &outcome.cluster
            && !said.iter().any(Finding::is_error)
        {
            said.extend(self.check_copy(unit, &id, &cluster.name, &path)?);
            self.give_back(&id, &cluster.name, &outcome.held)?;
            self.note(unit, &id, &cluster.name, &path)?;
        }
        findings.extend(said.into_iter().map(|f| {
            let located = unit.locate(f);
            if located.location.is_some() {
                located
            } else {
                self.site.documents.locate(located)
            }
        }));
        Ok(Decided { id, outcome })
    }

    fn steps(
        &mut self,
        unit: &mut Unit,
        id: &str,
        said: &mut Vec<Finding>,
    ) -> Result<Outcome, Error> {
        if self.request.dialect.unwrap_or_else(|| unit.dialect()) == Dialect::Nephio {
            said.push(
                Finding::error(Code::DialectUnavailable, "the nephio dialect is not built in yet")
                    .help("Render the native dialect with --dialect native, or remove the specializer marks."),
            );
            return Ok(Outcome::default());
        }
        let steps = steps::pipeline(unit.kptfile(), &unit.kptfile_ref(), said);
        if said.iter().any(Finding::is_error) {
            return Ok(Outcome::default());
        }
        let own = own_pools(unit, self.site, said);
        let pools = own.as_ref().unwrap_or(&self.site.pools);
        let cluster = self.request.cluster.as_deref();
        let ctx = Context {
            pools,
            site: &self.site.objects,
            cluster,
            package: id,
        };
        let txn = &mut *self.txn;
        let mut ask = |wish: &Wish| -> Result<Result<Lease, Finding>, mooring_book::Error> {
            let answer = mooring_book::allocate(txn, pools, &wish.claim)?;
            Ok(answer.map_err(|refusal| refusal.finding().on(&wish.object).at(wish.field())))
        };
        let outcome = steps::run(&steps, &mut unit.bundle, &ctx, &mut ask, said)?;
        mooring_blueprint::claim::stamp_local(&mut unit.bundle, self.request.deploy_records);
        Ok(outcome)
    }

    /// A copy has the id of a package that is still where the book knows it.
    fn check_copy(
        &self,
        unit: &Unit,
        id: &str,
        cluster: &str,
        path: &Path,
    ) -> Result<Option<Finding>, Error> {
        let Some(record) = self.txn.package(cluster, id)? else {
            return Ok(None);
        };
        let known = Path::new(&record.path);
        let source = std::path::absolute(self.request.source.join(&unit.dir)).unwrap_or_default();
        if known == path || known == source || !carries(known, id) {
            return Ok(None);
        }
        Ok(Some(
            Finding::error(
                Code::CopiedPackage,
                format!("this is a copy of {}: both carry the id {id}, and one address would serve two", record.path),
            )
            .on(&unit.kptfile_ref())
            .at(format!("metadata.annotations[{}]", annotation::PACKAGE_ID))
            .help("Render with --new-id to give the copy addresses of its own, or remove the original."),
        ))
    }

    /// Releases what the package held and no longer wants, in this cluster and in one it moved from.
    fn give_back(&mut self, id: &str, cluster: &str, held: &[Lease]) -> Result<(), Error> {
        let wanted: BTreeSet<_> = held.iter().map(|l| (&l.instance, l.thing)).collect();
        for lease in self.txn.held_by_package(cluster, id)? {
            if !wanted.contains(&(&lease.instance, lease.thing)) {
                let rest = cool_down(&self.site.pools, &lease);
                self.txn.release(&lease.instance, &lease.thing, rest)?;
            }
        }
        Ok(())
    }

    fn note(&mut self, unit: &Unit, id: &str, cluster: &str, path: &Path) -> Result<(), Error> {
        let record = PackageRecord {
            id: id.to_owned(),
            cluster: cluster.to_owned(),
            name: unit.bundle.marks.name.clone(),
            path: path.display().to_string(),
            at: self.request.now,
        };
        let known = self.txn.package(cluster, id)?;
        let source = std::path::absolute(self.request.source.join(&unit.dir)).unwrap_or_default();
        // Rendering elsewhere does not move the original.
        let stays = known.as_ref().is_some_and(|k| {
            (k.path == record.path && k.name == record.name)
                || (Path::new(&k.path) == source && carries(&source, id) && source != path)
        });
        if !stays {
            self.txn.note_package(record)?;
        }
        Ok(())
    }

    fn mint(&self, unit: &Unit) -> String {
        let mut hash = Sha256::new();
        hash.update(self.request.entropy);
        hash.update((self.nth as u64).to_be_bytes());
        hash.update(unit.dir.as_bytes());
        hash.finalize()[..8]
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect()
    }
}

/// Pools that the package itself carries, together with the management side's.
fn own_pools(unit: &Unit, site: &Site, said: &mut Vec<Finding>) -> Option<Pools> {
    let is_pool = |o: &&Object| {
        o.is("ipam.resource.nephio.org", "IPPrefix")
            || o.is("ipam.resource.nephio.org", "NetworkInstance")
    };
    let own: Vec<Object> = unit
        .bundle
        .objects
        .iter()
        .filter(is_pool)
        .cloned()
        .collect();
    if own.is_empty() {
        return None;
    }
    let all: Vec<Object> = site
        .objects
        .iter()
        .filter(is_pool)
        .cloned()
        .chain(own)
        .collect();
    let (pools, findings) = pools::read(&all);
    said.extend(findings);
    Some(pools)
}

fn cool_down(pools: &Pools, lease: &Lease) -> Span {
    let covers = |p: &&mooring_ipam::Prefix| {
        p.instance == lease.instance
            && lease
                .subnet
                .is_some_and(|s| p.cidr == s || p.cidr.covers(&s))
    };
    pools
        .prefixes
        .iter()
        .find(covers)
        .map(|p| p.cool_down)
        .unwrap_or_default()
}

/// Whether the package at `path` has this id.
fn carries(path: &Path, id: &str) -> bool {
    let Ok(bytes) = RealDisk.read(&path.join("Kptfile"), MAX_FILE) else {
        return false;
    };
    mooring_krm::File::parse(&bytes).is_ok_and(|file| {
        file.documents().iter().any(|d| {
            let object = Object {
                value: d.value().clone(),
                source: None,
            };
            object.annotation(annotation::PACKAGE_ID) == Some(id)
        })
    })
}

fn package_report(unit: &Unit, decided: &Decided, target: &Path) -> PackageReport {
    let conditions = &unit.bundle.marks.conditions;
    let met = conditions
        .iter()
        .filter(|c| c.status == mooring_api::Status::True)
        .count();
    PackageReport {
        path: target.join(&unit.dir),
        name: unit.bundle.marks.name.clone(),
        id: decided.id.clone(),
        cluster: decided
            .outcome
            .cluster
            .as_ref()
            .map(|c| c.name.clone())
            .unwrap_or_default(),
        interfaces: summary::interfaces(&unit.bundle, &decided.outcome),
        conditions: (met, conditions.len()),
    }
}
