//! `render`: many packages, one book transaction, one journal.

use std::collections::BTreeMap;
use std::path::Path;

use mooring_api::{Code, Finding, Severity, Span};
use mooring_book::{Store, Txn};

use crate::ahead::ahead;
use crate::decide::{Carries, Decided, Run, id};
use crate::disk::{Disk, LOCK_WAIT, RealDisk, TreeLock};
use crate::import::Named;
use crate::journal::{self, Change, CommitError};
use crate::neighbour::Neighbour;
use crate::report::{PackageReport, Report, Request};
use crate::site::Site;
use crate::trees::{Trees, place};
use crate::unit::Unit;
use crate::{Error, Progress, hold, moved, summary, vlan};

/// How long a reservation lives when its run is killed between reserving and committing. The next
/// render of the same package takes its addresses over at once, however long this is.
pub(crate) const RESERVATION: Span = Span(3600);

/// Specialises one package, or every package below a directory, in one book transaction.
pub fn render(
    store: &dyn Store,
    request: &Request,
    progress: Progress<'_>,
) -> Result<Report, Error> {
    let mut report = Report::default();
    // Before the lock, which makes the directory that it locks.
    if RealDisk.meta(&request.source.join(".")).is_err() {
        let missing = format!("{} is not there", request.source.display());
        let finding = Finding::error(Code::PackageMissing, missing);
        return Ok(refused(
            report,
            vec![finding.help("Name a package directory.")],
        ));
    }
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
    // Side by side: the first object of each kind compiles its schema, most of a small render.
    let (site, units) = std::thread::scope(|scope| {
        let site = scope.spawn(|| request.mgmt.as_deref().map(Site::read).unwrap_or_default());
        let units = trees.units(request, &mut report.findings);
        let site = site
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (site, units)
    });
    report.findings.extend(site.findings.iter().cloned());
    if report.has_errors() {
        return Ok(sorted(report));
    }
    let act = Act {
        store,
        request,
        target: &target,
        site: &site,
        trees: &trees,
        carries: &crate::decide::carries,
        neighbours: &[],
        in_memory: false,
        renew: false,
    };
    let (report, _) = act.run(units, Beside::default(), report, progress)?;
    Ok(report)
}

/// What changes beside the packages that are rendered: files that a fleet keeps or drops, packages that left it.
#[derive(Default)]
pub(crate) struct Beside {
    /// Files by path; None for one that goes. What a package writes comes first.
    pub(crate) files: BTreeMap<String, Option<Vec<u8>>>,
    /// Cluster and id of packages that are no more.
    pub(crate) gone: Vec<(String, String)>,
}

/// Packages that were gathered and checked, about to be decided and written.
pub(crate) struct Act<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) request: &'a Request,
    pub(crate) target: &'a Path,
    pub(crate) site: &'a Site,
    pub(crate) trees: &'a Trees,
    /// Tells a package that is still where the book knows it.
    pub(crate) carries: Carries<'a>,
    /// Packages that are published already, beside those in directories.
    pub(crate) neighbours: &'a [Neighbour],
    /// The files are handed back and written by somebody else.
    pub(crate) in_memory: bool,
    /// A draft reserves what it has not for good, even where that is reserved already.
    pub(crate) renew: bool,
}

impl Act<'_> {
    /// Decide, reserve, write, commit. The report, and what was or would be written.
    pub(crate) fn run(
        &self,
        mut units: Vec<Unit>,
        beside: Beside,
        mut report: Report,
        progress: Progress<'_>,
    ) -> Result<(Report, Vec<Change>), Error> {
        let Self {
            store,
            request,
            target,
            site,
            trees,
            carries,
            neighbours,
            in_memory,
            renew,
        } = *self;
        let mut txn = store.begin(request.now)?;
        let total = units.len();
        progress(0, total);
        let imported = Named::read(store)?;
        let named = units.iter().enumerate().map(|(nth, unit)| {
            let previous = trees.previous_id(&unit.dir);
            id(request, unit, previous, &imported, nth)
        });
        let ids: Vec<String> = named.collect();
        let pinned = hold::pinned(request, &units, &ids);
        let ran = if crate::parallel::is_shared(total) {
            ahead(request, site, &mut units, &ids, &mut *txn)?
        } else {
            ids.iter().map(|_| (None, Vec::new())).collect()
        };
        let mut decided = Vec::new();
        let mut run = Run {
            request,
            site,
            target,
            txn: &mut *txn,
            carries,
            neighbours,
        };
        for (nth, ((unit, id), ran)) in units.iter_mut().zip(ids).zip(ran).enumerate() {
            progress(nth, total);
            decided.push(run.decide(unit, id, ran)?);
        }
        run.link(&mut units, &mut decided, &mut report.findings)?;
        for (unit, decided) in units.iter().zip(&mut decided) {
            run.settle(unit, decided, &mut report.findings)?;
        }
        progress(total, total);
        if !report.has_errors() {
            let moved = hold::check_pinned(store, &pinned, &units, &decided)?;
            report.findings.extend(moved);
        }
        if report.has_errors() {
            return Ok((sorted(report), Vec::new()));
        }
        let places = units.iter().map(|u| place(target, &u.dir)).zip(&decided);
        let mut moved =
            moved::give_back(store, &mut *txn, &places.collect::<Vec<_>>(), &site.pools)?;
        for (cluster, id) in beside.gone {
            moved::forget(&mut *txn, &cluster, &id, &site.pools)?;
            moved.push((cluster, id));
        }
        vlan::give_back(store, &mut *txn, &decided, &moved)?;

        let mut files = beside.files;
        files.extend(trees.copies(request)?);
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
            return Ok((sorted(report), Vec::new()));
        }
        let changes = trees.changes(files, target, &mut report);
        report.book_changed = match request.draft {
            Some(span) if !renew => hold::is_wanted(store, &decided, request.now, span)?,
            _ => !txn.is_unchanged(),
        };
        let tell = |(unit, d): (Unit, Decided)| package_report(&unit, &d, target);
        let told = units.into_iter().zip(decided);
        if request.check || !report.is_changed() {
            report.packages = crate::parallel::map(told.collect(), tell);
            return Ok((sorted(report), changes));
        }
        if in_memory {
            report.packages = told.map(tell).collect();
            if report.book_changed {
                let txn = txn.reserve(request.draft.unwrap_or(RESERVATION))?;
                match request.draft {
                    Some(_) => report.reserved = Some(txn),
                    None => store.commit(txn, request.now)?,
                }
            }
            return Ok((sorted(report), changes));
        }
        // Beside the writing, which mostly waits for the disk.
        report.packages = std::thread::scope(|scope| -> Result<_, Error> {
            let told = scope.spawn(|| told.map(tell).collect());
            let stands = write(store, txn, (target, &changes), request, &mut report)?;
            let told = told
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok(if stands { told } else { Vec::new() })
        })?;
        Ok((sorted(report), changes))
    }
}

pub(crate) fn refused(mut report: Report, findings: Vec<Finding>) -> Report {
    report.findings.extend(findings);
    sorted(report)
}

/// Findings in the order of file and line; errors, warnings and notes of one line in that order.
pub(crate) fn sorted(mut report: Report) -> Report {
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

/// Look, reserve, journal, rename, commit. Whether it was done, or the next run finishes it.
fn write(
    store: &dyn Store,
    draft: Box<dyn Txn + '_>,
    (target, changes): (&Path, &[Change]),
    request: &Request,
    report: &mut Report,
) -> Result<bool, Error> {
    // Before the reservation: a package that cannot be written leaves the book as it is.
    let checked = match journal::check_files(&RealDisk, target, changes) {
        Ok(checked) => checked,
        Err(findings) => {
            report.findings.extend(findings);
            return Ok(false);
        }
    };
    let txn = if report.book_changed {
        Some(draft.reserve(request.draft.unwrap_or(RESERVATION))?)
    } else {
        drop(draft);
        None
    };
    // Not in the journal of a draft: whoever finishes that run must not commit it.
    let committed = txn.filter(|_| request.draft.is_none());
    match checked.commit(&RealDisk, committed, |txn| store.commit(txn, request.now)) {
        Ok(_) => {
            report.reserved = txn.filter(|_| request.draft.is_some());
            Ok(true)
        }
        Err(CommitError::Refused(findings)) => {
            if let Some(txn) = txn {
                store.abort(txn, request.now)?;
            }
            report.findings.extend(findings);
            report.changes.clear();
            report.book_changed = false;
            Ok(false)
        }
        Err(CommitError::Interrupted(finding)) => {
            report.findings.push(*finding);
            Ok(true)
        }
        Err(CommitError::Book(error)) => Err(error.into()),
    }
}

/// What is told of one package.
pub(crate) fn package_report(unit: &Unit, decided: &Decided, target: &Path) -> PackageReport {
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
