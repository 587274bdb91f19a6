//! One package's way through the steps and the book: identity, allocation, what is given back.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use mooring_api::{Code, Finding, Span, Time, annotation};
use mooring_blueprint::claim::Wish;
use mooring_blueprint::port::Port;
use mooring_blueprint::{Context, Object, networks, pools};
use mooring_book::{PackageRecord, Txn};
use mooring_ipam::{InstanceKey, Lease, Pools};
use sha2::{Digest, Sha256};

use crate::Error;
use crate::ahead::{Answer, Ran};
use crate::disk::{Disk, MAX_FILE, RealDisk};
use crate::flavour;
use crate::hold;
use crate::import::Named;
use crate::neighbour::Neighbour;
use crate::nephio;
use crate::pool::left_outside;
use crate::report::{Dialect, Request};
use crate::site::Site;
use crate::steps::{self, Outcome, Plan};
use crate::trees::{is_in_git, place};
use crate::unit::Unit;

/// One package's way through the steps.
pub(crate) struct Run<'a, 't> {
    /// What was asked.
    pub(crate) request: &'a Request,
    /// The management side.
    pub(crate) site: &'a Site,
    /// Where packages are written.
    pub(crate) target: &'a Path,
    /// The open transaction.
    pub(crate) txn: &'a mut (dyn Txn + 't),
    /// Tells a package that is still where the book knows it.
    pub(crate) carries: Carries<'a>,
    /// Packages that are published already, beside those in directories.
    pub(crate) neighbours: &'a [Neighbour],
}

/// Whether the package at a place has this id.
pub(crate) type Carries<'a> = &'a dyn Fn(&Path, &str) -> bool;

/// What was decided for a package.
pub(crate) struct Decided {
    /// Its id.
    pub(crate) id: String,
    /// Cluster, ports, leases.
    pub(crate) outcome: Outcome,
    /// What is to be told.
    pub(crate) said: Vec<Finding>,
}

impl Run<'_, '_> {
    /// Runs the steps, as far as they have not been.
    pub(crate) fn decide(
        &mut self,
        unit: &mut Unit,
        id: String,
        (ran, mut said): Ran,
    ) -> Result<Decided, Error> {
        let outcome = if let Some(outcome) = ran {
            outcome
        } else {
            let dialect = dialect(self.request, unit);
            let (txn, pinned) = (&mut *self.txn, self.request.pinned);
            let mut ask = |pools: &Pools, wish: &Wish| ask(dialect, txn, pools, wish, pinned);
            run_steps(self.request, self.site, unit, &id, &mut said, &mut ask)?
        };
        Ok(Decided { id, outcome, said })
    }

    /// Settles with the book what the package holds, and hands over what is to be told.
    pub(crate) fn settle(
        &mut self,
        unit: &Unit,
        decided: &mut Decided,
        findings: &mut Vec<Finding>,
    ) -> Result<(), Error> {
        let path = place(self.target, &unit.dir);
        let Decided { id, outcome, said } = decided;
        let mut said = std::mem::take(said);
        if let Some(cluster) = &outcome.cluster
            && !said.iter().any(Finding::is_error)
        {
            said.extend(self.check_copy(unit, id, &cluster.name, &path)?);
            said.extend(self.give_back(id, &cluster.name, outcome)?);
            self.note(unit, id, &path, outcome)?;
        }
        findings.extend(said.into_iter().map(|f| {
            let located = unit.locate(f);
            if located.location.is_some() {
                located
            } else {
                self.site.documents.locate(located)
            }
        }));
        Ok(())
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
        let source = place(&self.request.source, &unit.dir);
        if known == path || known == source || !(self.carries)(known, id) {
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

    /// Releases what the package held and no longer wants in this cluster; says which addresses are lost by that.
    fn give_back(
        &mut self,
        id: &str,
        cluster: &str,
        outcome: &Outcome,
    ) -> Result<Vec<Finding>, Error> {
        let held = outcome.held.iter();
        let wanted: BTreeSet<_> = held.map(|l| (&l.instance, l.thing)).collect();
        let mut unnamed = self.txn.held_by_package(cluster, id)?;
        unnamed.retain(|lease| !wanted.contains(&(&lease.instance, lease.thing)));
        let (stay, go): (Vec<Lease>, Vec<Lease>) = unnamed
            .into_iter()
            .partition(|l| flavour::stays(l, outcome) || outcome.refused.contains(&l.holder));
        for lease in &go {
            let rest = cool_down(&self.site.pools, lease);
            self.txn.release(&lease.instance, &lease.thing, rest)?;
        }
        let lost = go.iter().filter_map(|l| flavour::lost(l, outcome, &stay));
        let pools = &self.site.pools;
        let outside = go.iter().filter_map(|l| left_outside(l, outcome, pools));
        Ok(lost.chain(outside).collect())
    }

    /// Remembers where the package is and what it uses, where that changed.
    fn note(&mut self, unit: &Unit, id: &str, path: &Path, outcome: &Outcome) -> Result<(), Error> {
        let Some(cluster) = &outcome.cluster else {
            return Ok(());
        };
        let mut record = record(
            id,
            &cluster.name,
            unit,
            self.target,
            &outcome.ports,
            self.request.now,
        );
        record.vlans.clone_from(&outcome.vlans);
        if let Some(known) = self.txn.package(&cluster.name, id)? {
            // Rendering elsewhere does not move the original.
            let source = place(&self.request.source, &unit.dir);
            let elsewhere = Path::new(&known.path) == source && source != path;
            // A directory is only a working copy of what is kept in Git.
            let stays = match (is_in_git(Path::new(&known.path)), is_in_git(path)) {
                (true, false) => true,
                (_, true) => false,
                (false, false) => elsewhere && carries(&source, id),
            };
            if stays {
                record.path.clone_from(&known.path);
            }
            record.at = known.at;
            if record == known {
                return Ok(());
            }
            record.at = self.request.now;
        }
        self.txn.note_package(record)?;
        Ok(())
    }
}

/// The package's id: as an earlier run wrote it to the output, as the package says, as it was imported, else a new one.
pub(crate) fn id(
    request: &Request,
    unit: &Unit,
    previous: Option<String>,
    imported: &Named,
    nth: usize,
) -> String {
    let own = unit.bundle.marks.annotations.get(annotation::PACKAGE_ID);
    let known = previous.or_else(|| own.cloned());
    let known = known.or_else(|| imported.id(request, unit));
    known.filter(|_| !request.new_id).unwrap_or_else(|| {
        let mut hash = Sha256::new();
        hash.update(request.entropy);
        hash.update((nth as u64).to_be_bytes());
        hash.update(unit.dir.as_bytes());
        let mut id = String::with_capacity(16);
        for byte in &hash.finalize()[..8] {
            let _ = write!(id, "{byte:02x}");
        }
        id
    })
}

/// A package on its way up to its first question to the book.
pub(crate) struct Ready {
    pinned: bool,
    plan: Plan,
    said: Vec<Finding>,
    begun: steps::Begun,
}

impl Ready {
    /// What the book is asked.
    pub(crate) fn wishes(&self) -> &[Wish] {
        &self.begun.wishes
    }

    /// Asks the book for one of them.
    pub(crate) fn ask(
        &self,
        site: &Site,
        txn: &mut dyn Txn,
        wish: &Wish,
    ) -> Result<Answer, mooring_book::Error> {
        let dialect = match self.plan {
            Plan::Native(_) => Dialect::Native,
            Plan::Nephio(_) => Dialect::Nephio,
        };
        ask(dialect, txn, pools_of(site, dialect), wish, self.pinned)
    }
}

/// Goes as far as the package comes without the book; not with pools of its own.
pub(crate) fn ready(request: &Request, site: &Site, unit: &mut Unit, id: &str) -> Option<Ready> {
    let mut said = Vec::new();
    let dialect = dialect(request, unit);
    let plan = planned(dialect, unit, &mut said);
    let own = own_pools(dialect, unit, site, &mut said);
    if own.is_some() || said.iter().any(Finding::is_error) {
        return None;
    }
    let ctx = context(request, site, pools_of(site, dialect), id);
    let begun = plan.begin(&mut unit.bundle, &ctx);
    let pinned = request.pinned;
    Some(Ready {
        pinned,
        plan,
        said,
        begun,
    })
}

/// Runs the rest of the steps, with whatever answers the wishes.
pub(crate) fn run_ready<E>(
    request: &Request,
    site: &Site,
    (unit, id): (&mut Unit, &str),
    ready: Ready,
    said: &mut Vec<Finding>,
    ask: &mut steps::Ask<'_, E>,
) -> Result<Outcome, E> {
    said.extend(ready.said);
    let dialect = dialect(request, unit);
    let ctx = context(request, site, pools_of(site, dialect), id);
    let (plan, begun) = (ready.plan, Some(ready.begun));
    let outcome = steps::run(&plan, &mut unit.bundle, &ctx, begun, ask, said)?;
    stamp(request, dialect, unit);
    Ok(outcome)
}

/// Runs the steps, with whatever answers the wishes. `ask` gets the pools that the package sees.
fn run_steps<E>(
    request: &Request,
    site: &Site,
    unit: &mut Unit,
    id: &str,
    said: &mut Vec<Finding>,
    ask: &mut dyn FnMut(&Pools, &Wish) -> Result<Answer, E>,
) -> Result<Outcome, E> {
    let dialect = dialect(request, unit);
    let plan = planned(dialect, unit, said);
    if said.iter().any(Finding::is_error) {
        return Ok(Outcome::default());
    }
    let own = own_pools(dialect, unit, site, said);
    let pools = own.as_ref().unwrap_or_else(|| pools_of(site, dialect));
    let ctx = context(request, site, pools, id);
    let mut ask = |wish: &Wish| ask(pools, wish);
    let outcome = steps::run(&plan, &mut unit.bundle, &ctx, None, &mut ask, said)?;
    stamp(request, dialect, unit);
    Ok(outcome)
}

/// The dialect that a package is rendered in.
pub(crate) fn dialect(request: &Request, unit: &Unit) -> Dialect {
    request.dialect.unwrap_or_else(|| unit.dialect())
}

/// The management side's pools, as the dialect reads them.
fn pools_of(site: &Site, dialect: Dialect) -> &Pools {
    match dialect {
        Dialect::Native => &site.pools,
        Dialect::Nephio => &site.nephio().0,
    }
}

/// Asks the book as the dialect does.
fn ask(
    dialect: Dialect,
    txn: &mut dyn Txn,
    pools: &Pools,
    wish: &Wish,
    pinned: bool,
) -> Result<Answer, mooring_book::Error> {
    match dialect {
        Dialect::Native if pinned => flavour::ask(txn, pools, &hold::fixed(wish)),
        Dialect::Native => flavour::ask(txn, pools, wish),
        Dialect::Nephio => nephio::ask(txn, pools, wish),
    }
}

/// What is only for processing says so. Nephio's functions hand that mark on themselves.
fn stamp(request: &Request, dialect: Dialect, unit: &mut Unit) {
    if dialect == Dialect::Native {
        mooring_blueprint::claim::stamp_local(&mut unit.bundle, request.deploy_records);
    }
}

fn context<'a>(request: &'a Request, site: &'a Site, pools: &'a Pools, id: &'a str) -> Context<'a> {
    Context {
        pools,
        site: &site.objects,
        cluster: request.cluster.as_deref(),
        package: id,
    }
}

/// The package's steps; what is wrong with its pipeline is said.
fn planned(dialect: Dialect, unit: &Unit, said: &mut Vec<Finding>) -> Plan {
    match dialect {
        Dialect::Native => Plan::Native(steps::pipeline(unit.kptfile(), &unit.kptfile_ref(), said)),
        Dialect::Nephio => Plan::Nephio(nephio::pipeline(unit, said)),
    }
}

/// Pools that the package itself carries, together with the management side's.
fn own_pools(dialect: Dialect, unit: &Unit, site: &Site, said: &mut Vec<Finding>) -> Option<Pools> {
    let (pools, findings) = match dialect {
        Dialect::Native => pools::read(&native_pools(unit, site)?),
        Dialect::Nephio => {
            let (known, findings) = site.nephio();
            said.extend(findings.iter().cloned());
            networks::read(&nephio::own_pools(unit, &site.objects, known)?)
        }
    };
    said.extend(findings);
    Some(pools)
}

fn native_pools(unit: &Unit, site: &Site) -> Option<Vec<Object>> {
    let is_pool = |o: &&Object| {
        o.is("ipam.resource.nephio.org", "IPPrefix")
            || o.is("ipam.resource.nephio.org", "NetworkInstance")
    };
    let own = unit.bundle.objects.iter().filter(is_pool).cloned();
    let own: Vec<Object> = own.collect();
    if own.is_empty() {
        return None;
    }
    let all = site.objects.iter().filter(is_pool).cloned();
    Some(all.chain(own).collect())
}

/// How long what is released rests.
pub(crate) fn cool_down(pools: &Pools, lease: &Lease) -> Span {
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
pub(crate) fn carries(path: &Path, id: &str) -> bool {
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

/// The networks whose VLAN was claimed for one of the ports.
pub(crate) fn vlans(ports: &[Port]) -> BTreeSet<InstanceKey> {
    ports
        .iter()
        .filter(|p| p.wants_vlan)
        .filter_map(|p| p.instance.clone())
        .collect()
}

/// What the book remembers of a package.
pub(crate) fn record(
    id: &str,
    cluster: &str,
    unit: &Unit,
    root: &Path,
    ports: &[Port],
    now: Time,
) -> PackageRecord {
    let attached = |p: &Port| {
        let (kind, name) = p.workload.as_ref()?;
        Some((p.name.clone(), format!("{kind}/{name}")))
    };
    PackageRecord {
        id: id.to_owned(),
        cluster: cluster.to_owned(),
        name: unit.bundle.marks.name.clone(),
        path: place(root, &unit.dir).display().to_string(),
        workloads: ports.iter().filter_map(attached).collect(),
        vlans: vlans(ports),
        at: now,
    }
}
