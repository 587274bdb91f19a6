//! What another system knows of addresses, as leases and reservations: `moor import nephio`.
//!
//! ```text
//!  files, directories ─► gather (packages; other objects, lists opened) ─► blueprint::backend (whose is what)
//!     ─► Imported (leases, reservations, packages) ─► the book's merge ─► one amendment
//! ```
//!
//! Reads files only; the caller merges with [`Imported::merge`] and writes. Easy to get wrong: half of an import is worse
//! than none, so an error in any file leaves nothing to merge.

mod adopt;
mod gather;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use mooring_api::{Code, Finding, Time};
use mooring_blueprint::backend::{self, Owned, Whose};
use mooring_book::{Clash, Content, Merge, PackageRecord, Reservation, Why};
use mooring_ipam::{Holder, InstanceKey, Lease, State, Table, Thing};

pub(crate) use adopt::Named;
use gather::Gathered;

/// Why a reservation is there that an import made.
const REASON: &str = "imported from Nephio";
const GATEWAY_REASON: &str = "gateway, imported from Nephio";

/// What was read.
#[derive(Clone, Debug, Default)]
pub struct Imported {
    /// What somebody has, by instance and thing.
    pub leases: Vec<Lease>,
    /// Those of them that no package has.
    pub reservations: Vec<Reservation>,
    /// The packages.
    pub packages: Vec<PackageRecord>,
    /// How many prefixes are pools: their objects belong into the management directory.
    pub pools: usize,
    /// What is wrong; with an error there is nothing else.
    pub findings: Vec<Finding>,
}

/// Reads Nephio's tables, claims and rendered packages. Networks of the management directory say which subnets a render would
/// cut for the clusters; without it, those of the packages do.
pub fn import_nephio(sources: &[PathBuf], mgmt: Option<&Path>, now: Time) -> Imported {
    let mut gathered = Gathered::default();
    for source in sources {
        gathered.add(source);
    }
    if let Some(mgmt) = mgmt {
        gathered.add_mgmt(mgmt);
    }
    gathered.finish(now);
    let (owned, differ) = backend::whose(&gathered.claimed, &gathered.listed, &gathered.known);
    for (place, finding) in differ {
        let finding = gathered.locate(place, finding);
        gathered.findings.push(finding);
    }
    let mut out = Imported {
        pools: gathered.pools,
        ..Imported::default()
    };
    settle(&owned, &mut gathered, &mut out, now);
    let nothing = out.leases.is_empty() && gathered.read == 0;
    if nothing && gathered.findings.is_empty() {
        gathered.findings.push(
            Finding::error(Code::ImportInvalid, "nothing here is Nephio's").help(
                "Name rendered packages, or files with the ConfigMaps ipam-… and vlan-… of the backend, IPClaims, \
                 VLANClaims and IPPrefixes.",
            ),
        );
    }
    if gathered.findings.iter().any(Finding::is_error) {
        let findings = gathered.findings;
        return Imported {
            findings,
            ..Imported::default()
        };
    }
    out.packages = gathered.packages;
    out.findings = gathered.findings;
    out.leases
        .sort_by(|a, b| (&a.instance, a.thing).cmp(&(&b.instance, b.thing)));
    out
}

/// Leases that do not meet each other; what does is told.
fn settle(owned: &[Owned], gathered: &mut Gathered, out: &mut Imported, now: Time) {
    let mut tables: BTreeMap<InstanceKey, Table> = BTreeMap::new();
    // What lies inside of a block is taken from it, so the block comes first.
    let mut order: Vec<&Owned> = owned.iter().collect();
    order.sort_by_key(|o| std::cmp::Reverse(o.thing.range().map_or(0, |r| r.count())));
    for entry in order {
        let (lease, reservation) = lease(entry, now);
        let table = tables.entry(lease.instance.clone());
        let table = table.or_insert_with(|| Table::new(lease.instance.clone()));
        let same = table.get(&lease.thing);
        if same.is_some_and(|same| same.holder == lease.holder) {
            continue;
        }
        let in_the_way = table.blocker(&lease.thing, lease.subnet, &lease.holder);
        let kind = std::mem::discriminant(&lease.thing);
        let one = reservation.is_none() && has_one(&lease);
        let mut own = table.held_by(&lease.holder).into_iter();
        let moved = own.find(|l| one && std::mem::discriminant(&l.thing) == kind);
        let finding = match (in_the_way, moved) {
            (Some(other), _) => duplicate(&lease, &other),
            (None, Some(other)) => differs(&lease, &other),
            (None, None) => {
                // Nothing is in the way.
                let _ = table.insert(lease.clone());
                out.leases.push(lease);
                out.reservations.extend(reservation);
                continue;
            }
        };
        let finding = gathered.locate(entry.place, finding.at(entry.field));
        gathered.findings.push(finding);
    }
}

/// Whether its holder can have only one of the kind: an interface an address, a network in a cluster a VLAN. A cluster may
/// have several subnets.
fn has_one(lease: &Lease) -> bool {
    !lease.holder.package.is_empty() || matches!(lease.thing, Thing::Vlan(_))
}

/// Who, without the word by which the book knows a reservation.
fn who(holder: &Holder) -> String {
    if holder.package.is_empty() && holder.cluster.is_empty() {
        return holder.workload.clone();
    }
    holder.to_string()
}

fn duplicate(lease: &Lease, other: &Lease) -> Finding {
    let Lease {
        instance,
        thing,
        holder,
        ..
    } = lease;
    let (holder, theirs) = (who(holder), who(&other.holder));
    let message = if other.thing == *thing {
        format!("{thing} in {instance} is here for {holder}, and elsewhere for {theirs}")
    } else {
        let other = other.thing;
        format!("{thing} in {instance} is here for {holder}, and {other} elsewhere for {theirs}")
    };
    Finding::error(Code::DuplicateAddress, message)
        .help("Find out which of the two really has it, release the other one in Nephio, and import again.")
}

fn differs(lease: &Lease, other: &Lease) -> Finding {
    let Lease {
        instance,
        thing,
        holder,
        ..
    } = lease;
    let message = format!(
        "{holder} in {instance} has {thing} here, and {} elsewhere",
        other.thing
    );
    Finding::error(Code::AddressDiffers, message)
        .help("Only one of them is what the pod has: leave the other one out, and import again.")
}

fn lease(entry: &Owned, now: Time) -> (Lease, Option<Reservation>) {
    let reservation = match &entry.whose {
        Whose::Holder(_) => None,
        Whose::Object { owner, is_gateway } => Some(Reservation {
            instance: entry.instance.clone(),
            thing: entry.thing,
            owner: owner.to_string(),
            reason: if *is_gateway { GATEWAY_REASON } else { REASON }.to_owned(),
            until: None,
        }),
    };
    let holder = match (&entry.whose, &reservation) {
        (Whose::Holder(holder), _) => holder.clone(),
        (_, Some(reservation)) => reservation.holder(),
        (Whose::Object { .. }, None) => unreachable!("an object's thing is reserved"),
    };
    let lease = Lease {
        instance: entry.instance.clone(),
        thing: entry.thing,
        subnet: entry.subnet,
        gateway: entry.gateway,
        holder,
        state: State::Held,
        since: now,
    };
    (lease, reservation)
}

impl Imported {
    /// What it takes to have all of this in the book. What an earlier import could only reserve gives way to the
    /// package that turns out to have it.
    pub fn merge(&self, ours: &Content, now: Time) -> Merge {
        let known = |p: &&PackageRecord| {
            let mut packages = ours.packages.iter();
            packages.any(|o| (&o.cluster, &o.id) == (&p.cluster, &p.id))
        };
        let theirs = Content {
            leases: self.leases.clone(),
            reservations: self.reservations.clone(),
            // What a render knows of a package is more than what an import knows.
            packages: self
                .packages
                .iter()
                .filter(|p| !known(p))
                .cloned()
                .collect(),
            audit: Vec::new(),
        };
        let (before, given_up) = self.without_earlier(ours);
        let mut merge = mooring_book::merge(&before, &theirs, None, now);
        merge.amendment.drop.extend(given_up);
        merge.clashes.extend(self.other_vlans(&before));
        merge
    }

    /// A network of a cluster that has another VLAN in the book. The merge itself lets who is no package have many.
    fn other_vlans(&self, ours: &Content) -> Vec<Clash> {
        let mut clashes = Vec::new();
        let vlan = |l: &&Lease| matches!(l.thing, Thing::Vlan(_)) && !l.holder.cluster.is_empty();
        for theirs in self.leases.iter().filter(vlan) {
            let other = |l: &&Lease| {
                let same = l.instance == theirs.instance && l.holder == theirs.holder;
                same && l.thing != theirs.thing && l.state == State::Held
            };
            clashes.extend(
                ours.leases
                    .iter()
                    .filter(vlan)
                    .filter(other)
                    .map(|l| Clash {
                        ours: l.clone(),
                        theirs: theirs.clone(),
                        why: Why::Moved,
                    }),
            );
        }
        clashes
    }

    fn without_earlier(&self, ours: &Content) -> (Content, Vec<Lease>) {
        let ours_by_import: BTreeSet<_> = ours
            .reservations
            .iter()
            .filter(|r| [REASON, GATEWAY_REASON].contains(&r.reason.as_str()))
            .map(|r| (&r.instance, r.thing))
            .collect();
        let theirs: BTreeMap<_, _> = self
            .leases
            .iter()
            .map(|l| ((&l.instance, l.thing), &l.holder))
            .collect();
        let passes = |l: &Lease| {
            let key = (&l.instance, l.thing);
            let holder = theirs.get(&key).filter(|h| !h.cluster.is_empty());
            ours_by_import.contains(&key) && holder.is_some_and(|h| **h != l.holder)
        };
        let (given_up, leases): (Vec<Lease>, Vec<Lease>) =
            ours.leases.iter().cloned().partition(passes);
        let passed: BTreeSet<_> = given_up.iter().map(|l| (&l.instance, l.thing)).collect();
        let gone = |r: &&Reservation| !passed.contains(&(&r.instance, r.thing));
        let before = Content {
            leases,
            reservations: ours.reservations.iter().filter(gone).cloned().collect(),
            packages: ours.packages.clone(),
            audit: Vec::new(),
        };
        (before, given_up)
    }
}
