//! Changes of a pool: the IPPrefix in its file and the leases in the book, in one act.
//!
//! ```text
//!  settle ─► read ─► plan (ipam, in the transaction) ─► draft: takes, releases ─► new text, read back
//!      ─► reserve (book) ─► journal ─► rename ─► commit (book)
//! ```
//!
//! The same order as a render, and the same journal, in the management directory. While that journal is there nobody
//! reads the pools (`site.rs`): half of a change is neither the old pools nor the new ones.
//!
//! Easy to get wrong: [`change_pool_on`] takes no lock. [`change_pool`] does; crash tests have a disk of their own.

mod edit;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use mooring_api::{Code, Finding, Span, Time};
use mooring_book::{Outcome, PackageRecord, Store, Txn};
use mooring_ipam::{Change, Effect, InstanceKey, Lease, Plan, Pools, Prefix, Thing, plan};

use crate::Error;
use crate::disk::{Disk, LOCK_WAIT, RealDisk, Tree, TreeLock, read_tree};
use crate::flavour::is_of;
use crate::journal::{self, CommitError, Recovered};
use crate::report::{Changed, FileChange};
use crate::site::{Site, interrupted};
use crate::steps::Outcome as Steps;

/// How long a cut-off change keeps its reservations. Long, because its journal may wait over a weekend and is
/// worth nothing without them; not for ever, because a run may be killed before it has a journal.
const RESERVATION: Span = Span(7 * 86_400);

/// What is asked of a pool.
#[derive(Clone, Debug)]
pub struct PoolRequest {
    /// The management directory.
    pub mgmt: PathBuf,
    /// Which prefix: its network, or the name of its IPPrefix.
    pub prefix: String,
    /// In which instance, where several have it.
    pub network: Option<InstanceKey>,
    /// What.
    pub change: Change,
    /// Who cannot stay gets something else.
    pub moves: bool,
    /// Only say what would change.
    pub check: bool,
    /// What a person saw and agreed to; another plan is refused.
    pub agreed: Option<Box<Plan>>,
    /// Now.
    pub now: Time,
}

/// What a change did or, with `check`, would do.
#[derive(Clone, Debug, Default)]
pub struct PoolReport {
    /// What it comes to; None where it is refused.
    pub plan: Option<Plan>,
    /// Who changes, or who is in the way.
    pub effects: Vec<Effect>,
    /// Everything to tell. With an error, nothing was written.
    pub findings: Vec<Finding>,
    /// Files that were (or would be) written.
    pub changes: Vec<FileChange>,
    /// Packages that must be rendered again, by cluster and name.
    pub again: Vec<PackageRecord>,
    /// A change that was cut off earlier is finished now; nothing else was done.
    pub finished: bool,
}

impl PoolReport {
    /// Whether anything is wrong.
    pub fn has_errors(&self) -> bool {
        self.findings.iter().any(Finding::is_error)
    }

    /// Whether anything changes.
    pub fn is_changed(&self) -> bool {
        !self.has_errors() && self.plan.as_ref().is_some_and(Plan::is_change)
    }
}

/// Makes a change, or says what it would be.
pub fn change_pool(store: &dyn Store, request: &PoolRequest) -> Result<PoolReport, Error> {
    let _lock = if request.check {
        None
    } else {
        match TreeLock::take(&request.mgmt, LOCK_WAIT) {
            Ok(lock) => Some(lock),
            Err(finding) => return Ok(refused(vec![*finding])),
        }
    };
    change_pool_on(&RealDisk, store, request)
}

/// The same on any disk, for a caller who has the management directory for itself.
pub fn change_pool_on(
    disk: &dyn Disk,
    store: &dyn Store,
    request: &PoolRequest,
) -> Result<PoolReport, Error> {
    let mut report = PoolReport::default();
    let tree = match settled(disk, store, request, &mut report) {
        Ok(tree) => tree,
        Err(findings) => return Ok(refused(findings)),
    };
    if report.finished {
        return Ok(report);
    }
    let site = Site::from_files(&request.mgmt, &tree.files);
    report.findings.extend(site.findings.iter().cloned());
    if report.has_errors() {
        return Ok(report);
    }
    let at = match find(&site.pools, request) {
        Ok(at) => at,
        Err(finding) => return Ok(refused(vec![*finding])),
    };
    let mut txn = store.begin(request.now)?;
    let mut planned = None;
    let instance = &site.pools.prefixes[at].instance;
    txn.with_table(instance, &mut |table| {
        let PoolRequest {
            change, moves, now, ..
        } = request;
        planned = Some(plan(&site.pools, table, at, change, *moves, *now));
    })?;
    let plan = match planned.expect("a transaction shows its table") {
        Ok(plan) => plan,
        Err(no) => {
            let located = no.findings.into_iter().map(|f| site.documents.locate(f));
            report.findings.extend(located);
            report.effects = no.effects;
            return Ok(report);
        }
    };
    report.effects.clone_from(&plan.effects);
    report.again = again(&*txn, &plan)?;
    if request
        .agreed
        .as_ref()
        .is_some_and(|agreed| **agreed != plan)
    {
        let said = "the pool or its holders changed since you saw what would happen";
        let finding = Finding::error(Code::PoolChangeRefused, said);
        report
            .findings
            .push(finding.help("look again; nothing was changed"));
        return Ok(report);
    }
    if let Some(finding) = draft(&mut *txn, &plan)? {
        report.findings.push(finding);
        return Ok(report);
    }
    let changes = match edit::changes(&request.mgmt, &tree, &site, &plan) {
        Ok(changes) => changes,
        Err(findings) => {
            report.findings.extend(findings);
            return Ok(report);
        }
    };
    report.changes = changes
        .iter()
        .map(|c| FileChange {
            path: request.mgmt.join(c.path()),
            what: Changed::Updated,
        })
        .collect();
    report.plan = Some(plan);
    if !request.check && report.is_changed() {
        write(
            disk,
            store,
            txn,
            (&request.mgmt, &changes),
            request.now,
            &mut report,
        )?;
    }
    Ok(report)
}

fn refused(findings: Vec<Finding>) -> PoolReport {
    PoolReport {
        findings,
        ..PoolReport::default()
    }
}

/// The files, after what an earlier run left is finished or undone.
fn settled(
    disk: &dyn Disk,
    store: &dyn Store,
    request: &PoolRequest,
    report: &mut PoolReport,
) -> Result<Tree, Vec<Finding>> {
    let dir = &request.mgmt;
    if request.check {
        return match journal::pending(disk, dir) {
            Ok(Some(root)) => Err(vec![interrupted(&root)]),
            _ => read_tree(disk, dir),
        };
    }
    let commit = |txn| store.commit(txn, request.now);
    let (tree, recovered) = journal::read_settled(disk, dir, commit)?;
    let here = disk.resolve(dir).ok();
    for done in &recovered {
        report.findings.extend(done.finding());
        let Recovered::Finished {
            root,
            txn,
            committed,
            ..
        } = done
        else {
            continue;
        };
        report.finished |= here.as_deref() == Some(root);
        if report.finished && txn.is_some() && !committed {
            let said = "the interrupted change waited too long: its files are written, but the book had let go of what it reserved";
            report.findings.push(
                Finding::warning(Code::RenderRecovered, said)
                    .help("see moor pool list for holders that lie outside of their pool"),
            );
        }
    }
    Ok(tree)
}

/// The prefix that is meant.
fn find(pools: &Pools, request: &PoolRequest) -> Result<usize, Box<Finding>> {
    let wanted = &request.prefix;
    let found = pools.find(wanted, request.network.as_ref());
    let error = |message: String, help: String| {
        Box::new(Finding::error(Code::PoolChangeRefused, message).help(help))
    };
    match found.as_slice() {
        [one] => Ok(*one),
        [] => {
            let known: Vec<String> = pools
                .prefixes
                .iter()
                .take(8)
                .map(|p| p.cidr.to_string())
                .collect();
            let help = format!("there are {}; see moor pool list", known.join(", "));
            Err(error(format!("there is no pool {wanted}"), help))
        }
        several => {
            let names = several.iter().map(|at| &pools.prefixes[*at]);
            let names: Vec<String> = names
                .map(|p| format!("{} of {}", p.origin.name, p.instance))
                .collect();
            let message = format!("{wanted} may be several pools: {}", names.join(", "));
            Err(error(
                message,
                "say which with --network, or by its name".to_owned(),
            ))
        }
    }
}

/// Puts what the plan says into the transaction.
fn draft(txn: &mut dyn Txn, plan: &Plan) -> Result<Option<Finding>, Error> {
    for effect in &plan.effects {
        let Some(to) = &effect.to else { continue };
        if let Outcome::Lost(by) = txn.try_take(&plan.instance, to, &effect.holder)? {
            let message = format!("{} is held by {}", to.thing, by.holder);
            let finding = Finding::error(Code::AddressHeld, message);
            return Ok(Some(
                finding
                    .on(&plan.before.origin)
                    .help("run again; nothing was changed"),
            ));
        }
        if effect.is_move() {
            txn.release(&plan.instance, &effect.from.thing, effect.rest)?;
        }
    }
    Ok(None)
}

/// The packages of those who change.
fn again(txn: &dyn Txn, plan: &Plan) -> Result<Vec<PackageRecord>, Error> {
    let changed = plan.effects.iter().filter(|e| e.to.is_some());
    let owners: BTreeSet<(&str, &str)> = changed
        .map(|e| (e.holder.cluster.as_str(), e.holder.package.as_str()))
        .filter(|(_, package)| !package.is_empty())
        .collect();
    let mut records = Vec::new();
    for (cluster, id) in owners {
        records.extend(txn.package(cluster, id)?);
    }
    records.sort_by(|a, b| (&a.cluster, &a.name, &a.id).cmp(&(&b.cluster, &b.name, &b.id)));
    Ok(records)
}

/// Look, reserve, journal, rename, commit.
fn write(
    disk: &dyn Disk,
    store: &dyn Store,
    draft: Box<dyn Txn + '_>,
    (root, changes): (&Path, &[journal::Change]),
    now: Time,
    report: &mut PoolReport,
) -> Result<(), Error> {
    let checked = match journal::check_files(disk, root, changes) {
        Ok(checked) => checked,
        Err(findings) => {
            report.findings.extend(findings);
            return Ok(());
        }
    };
    let txn = if draft.is_unchanged() {
        drop(draft);
        None
    } else {
        Some(draft.reserve(RESERVATION)?)
    };
    match checked.commit(disk, txn, |txn| store.commit(txn, now)) {
        Ok(_) => Ok(()),
        Err(CommitError::Refused(findings)) => {
            if let Some(txn) = txn {
                store.abort(txn, now)?;
            }
            report.findings.extend(findings);
            Ok(())
        }
        Err(CommitError::Interrupted(finding)) => {
            report.findings.push(*finding);
            Ok(())
        }
        Err(CommitError::Book(error)) => Err(error.into()),
    }
}

/// What a render says of an address that its pool no longer covers: somebody made the prefix smaller by hand, and the
/// interface has another one now.
pub(crate) fn left_outside(lease: &Lease, outcome: &Steps, pools: &Pools) -> Option<Finding> {
    let Thing::Addr(gone) = lease.thing else {
        return None;
    };
    let here = |p: &&Prefix| p.instance == lease.instance && p.cidr.contains(gone);
    if pools.prefixes.iter().any(|p| here(&p)) {
        return None;
    }
    let same = |l: &&Lease| l.holder == lease.holder && l.instance == lease.instance;
    let now = outcome.held.iter().find(same)?;
    let port = outcome.ports.iter().find(|p| is_of(p, lease))?;
    let (instance, has) = (&lease.instance, now.thing);
    let message =
        format!("{gone} is not kept: no prefix of {instance} covers it any more; it has {has} now");
    Some(
        Finding::warning(Code::AddressOutsidePrefix, message)
            .on(&port.object)
            .help("Tell its peers before you deploy, or widen the prefix again; moor pool shrink shows beforehand who would move."),
    )
}
