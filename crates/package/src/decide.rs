//! One package's way through the steps and the book: identity, allocation, what is given back.

use std::collections::BTreeSet;
use std::path::Path;

use mooring_api::{Code, Finding, Span, Time, annotation};
use mooring_blueprint::claim::Wish;
use mooring_blueprint::port::Port;
use mooring_blueprint::{Context, Object, pools};
use mooring_book::{PackageRecord, Txn};
use mooring_ipam::{InstanceKey, Lease, Pools};
use sha2::{Digest, Sha256};

use crate::Error;
use crate::disk::{Disk, MAX_FILE, RealDisk};
use crate::report::{Dialect, Request};
use crate::site::Site;
use crate::steps::{self, Outcome};
use crate::trees::place;
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
    /// Which package of the run it is.
    pub(crate) nth: usize,
}

/// What was decided for a package.
pub(crate) struct Decided {
    /// Its id.
    pub(crate) id: String,
    /// Cluster, ports, leases.
    pub(crate) outcome: Outcome,
}

impl Run<'_, '_> {
    /// Runs the steps, then settles with the book what the package holds.
    pub(crate) fn decide(
        &mut self,
        unit: &mut Unit,
        previous: Option<String>,
        findings: &mut Vec<Finding>,
    ) -> Result<Decided, Error> {
        let path = place(self.target, &unit.dir);
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
            self.note(unit, &id, &path, &outcome)?;
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
        let source = place(&self.request.source, &unit.dir);
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

    /// Releases what the package held and no longer wants in this cluster.
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
        if let Some(known) = self.txn.package(&cluster.name, id)? {
            // Rendering elsewhere does not move the original.
            let source = place(&self.request.source, &unit.dir);
            if Path::new(&known.path) == source && source != path && carries(&source, id) {
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

    fn mint(&self, unit: &Unit) -> String {
        let mut hash = Sha256::new();
        hash.update(self.request.entropy);
        hash.update((self.nth as u64).to_be_bytes());
        hash.update(unit.dir.as_bytes());
        let digest = hash.finalize();
        let head = digest.first_chunk().expect("a digest has 32 bytes");
        format!("{:016x}", u64::from_be_bytes(*head))
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
