//! Two books become one, and a cluster gets another name: decided here over values, written by [`Store::amend`].
//!
//! ```text
//!  theirs ─► same thing, same holder          nothing to do
//!         ─► free here, holder has nothing    added
//!         ─► somebody else has it        ┐
//!         ─► the holder has another one  ┴─►  a clash: both are named; --keep decides, else nothing is written
//! ```
//!
//! Easy to get wrong: a lease of theirs can be in the way of several of ours (a block over addresses), and all of them
//! must go where theirs wins.

use std::collections::{BTreeMap, BTreeSet};

use mooring_api::{Code, Finding, Time};
use mooring_ipam::{InstanceKey, Lease, State, Table, Thing};

use crate::amend::Amendment;
use crate::content::Content;
use crate::reservation::Reservation;
use crate::store::PackageRecord;

#[cfg(doc)]
use crate::Store;

/// Which of two books is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The book that is merged into.
    Ours,
    /// The one that comes.
    Theirs,
}

/// What a merge comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merge {
    /// What to write.
    pub amendment: Amendment,
    /// How many leases are the same in both.
    pub same: usize,
    /// Where the books disagree. Without a [`Side`] to believe, nothing may be written while there is one.
    pub clashes: Vec<Clash>,
    /// Clashes that no side can win, because an open transaction counts on ours.
    pub undecided: usize,
}

/// Two leases that cannot both be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clash {
    /// In this book.
    pub ours: Lease,
    /// In the other.
    pub theirs: Lease,
    /// How they disagree.
    pub why: Why,
}

/// How two books disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// One thing, two holders.
    Overlap,
    /// One holder, two things.
    Moved,
    /// One reservation, two reasons or ends.
    Terms,
}

impl Clash {
    /// As something to tell a person; `when` writes a time.
    pub fn finding(&self, when: impl Fn(Time) -> String) -> Finding {
        let Self { ours, theirs, why } = self;
        let side = |l: &Lease| format!("{} (since {})", l.holder, when(l.since));
        let (code, message) = match why {
            Why::Overlap if ours.thing == theirs.thing => (
                Code::DuplicateAddress,
                format!(
                    "{} in {}: this book has it for {}, the other for {}",
                    ours.thing,
                    ours.instance,
                    side(ours),
                    side(theirs)
                ),
            ),
            Why::Overlap => (
                Code::DuplicateAddress,
                format!(
                    "in {} this book has {} for {}, the other {} for {}",
                    ours.instance,
                    ours.thing,
                    side(ours),
                    theirs.thing,
                    side(theirs)
                ),
            ),
            Why::Moved => (
                Code::AddressDiffers,
                format!(
                    "{} in {}: this book gives it {} since {}, the other {} since {}",
                    ours.holder,
                    ours.instance,
                    ours.thing,
                    when(ours.since),
                    theirs.thing,
                    when(theirs.since)
                ),
            ),
            Why::Terms => (
                Code::AddressDiffers,
                format!(
                    "{} in {} is reserved by {} in both books, with another reason or end",
                    ours.thing, ours.instance, ours.holder
                ),
            ),
        };
        Finding::error(code, message)
            .help("decide with --keep ours or --keep theirs, or release one of the two first")
    }
}

/// What it takes to have theirs in ours too.
pub fn merge(ours: &Content, theirs: &Content, keep: Option<Side>, now: Time) -> Merge {
    let mut merging = Merging::of(ours, keep);
    let terms = by_key(&theirs.reservations);
    let rested = |l: &&Lease| matches!(l.state, State::Cooling { until } if until <= now);
    let ended = |l: &&Lease| terms.get(&key(l)).is_some_and(|r| r.has_ended(now));
    for lease in theirs.leases.iter().filter(|l| !rested(l) && !ended(l)) {
        let mut lease = lease.clone();
        // Its transaction is not in this book: the holder finds it again, and nobody else gets it early.
        if let State::Reserved { until, .. } = lease.state {
            lease.state = State::Cooling { until };
        }
        merging.add(&lease, terms.get(&key(&lease)).copied(), now);
    }
    merging.packages(&ours.packages, &theirs.packages);
    merging.out
}

/// What it takes to call a cluster by another name: every lease stays where it is, and its holder is renamed.
pub fn rename(ours: &Content, from: &str, to: &str) -> Merge {
    let mut out = Merge::default();
    let renamed = ours.clone().with_cluster_renamed(from, to);
    let mut kept: BTreeMap<_, Vec<&Lease>> = BTreeMap::new();
    for lease in ours.leases.iter().filter(|l| l.holder.cluster == to) {
        kept.entry((&lease.instance, &lease.holder))
            .or_default()
            .push(lease);
    }
    for (was, will) in ours.leases.iter().zip(&renamed.leases) {
        if was == will {
            out.same += 1;
            continue;
        }
        for ours in kept
            .get(&(&will.instance, &will.holder))
            .into_iter()
            .flatten()
        {
            out.clashes.push(Clash {
                ours: (*ours).clone(),
                theirs: will.clone(),
                why: Why::Moved,
            });
        }
        out.amendment.drop.push(was.clone());
        out.amendment.put.push(will.clone());
    }
    for package in ours.packages.iter().filter(|p| p.cluster == from) {
        let (cluster, id) = (package.cluster.clone(), package.id.clone());
        out.amendment.forget.push((cluster, id));
        out.amendment.note.push(PackageRecord {
            cluster: to.to_owned(),
            ..package.clone()
        });
    }
    out
}

type Key = (InstanceKey, Thing);

fn key(lease: &Lease) -> Key {
    (lease.instance.clone(), lease.thing)
}

fn by_key(reservations: &[Reservation]) -> BTreeMap<Key, &Reservation> {
    reservations.iter().map(|r| (r.key(), r)).collect()
}

struct Merging<'a> {
    keep: Option<Side>,
    tables: BTreeMap<InstanceKey, Table>,
    terms: BTreeMap<Key, &'a Reservation>,
    /// What came, so that it is not dropped as if it were ours.
    came: BTreeSet<Key>,
    out: Merge,
}

impl<'a> Merging<'a> {
    fn of(ours: &'a Content, keep: Option<Side>) -> Self {
        let mut tables: BTreeMap<InstanceKey, Table> = BTreeMap::new();
        for lease in &ours.leases {
            let instance = &lease.instance;
            let table = tables.entry(instance.clone());
            let table = table.or_insert_with(|| Table::new(instance.clone()));
            // A store never gives two that overlap.
            let _ = table.insert(lease.clone());
        }
        Self {
            keep,
            tables,
            terms: by_key(&ours.reservations),
            came: BTreeSet::new(),
            out: Merge::default(),
        }
    }

    fn table(&mut self, instance: &InstanceKey) -> &mut Table {
        let new = || Table::new(instance.clone());
        self.tables.entry(instance.clone()).or_insert_with(new)
    }

    fn add(&mut self, theirs: &Lease, reservation: Option<&Reservation>, now: Time) {
        let own = self.table(&theirs.instance).get(&theirs.thing);
        if let Some(own) = own.filter(|own| own.holder == theirs.holder) {
            self.meet(&own, theirs, reservation);
            return;
        }
        let (clashes, cleared) = self.clashes(theirs, now);
        let wins = clashes.is_empty() || self.keep == Some(Side::Theirs);
        let blocked = |c: &Clash| {
            matches!(c.ours.state, State::Reserved { .. }) || self.came.contains(&key(&c.ours))
        };
        let stuck = clashes.iter().filter(|c| blocked(c)).count();
        if wins && stuck == 0 {
            let gone = cleared
                .into_iter()
                .chain(clashes.iter().map(|c| c.ours.clone()));
            let gone: BTreeMap<Key, Lease> = gone.map(|l| (key(&l), l)).collect();
            for lease in gone.into_values() {
                self.table(&lease.instance).remove(&lease.thing);
                self.out.amendment.drop.push(lease);
            }
            let _ = self.table(&theirs.instance).insert(theirs.clone());
            self.came.insert(key(theirs));
            self.out.amendment.put.push(theirs.clone());
            let terms = reservation.cloned();
            self.out.amendment.reservations.extend(terms);
        } else if self.keep == Some(Side::Theirs) {
            self.out.undecided += stuck;
        }
        self.out.clashes.extend(clashes);
    }

    /// What of ours keeps theirs out, and what of ours only rested there and goes.
    fn clashes(&mut self, theirs: &Lease, now: Time) -> (Vec<Clash>, Vec<Lease>) {
        let table = self.table(&theirs.instance);
        let (mut clashes, mut cleared, mut lifted) = (Vec::new(), Vec::new(), Vec::new());
        while let Some(ours) = table.blocker(&theirs.thing, theirs.subnet, &theirs.holder) {
            lifted.extend(table.remove(&ours.thing));
            let rests = match ours.state {
                State::Cooling { until } => until <= now || ours.holder == theirs.holder,
                State::Held | State::Reserved { .. } => false,
            };
            if rests {
                cleared.push(ours);
            } else {
                let why = Why::Overlap;
                let theirs = theirs.clone();
                clashes.push(Clash { ours, theirs, why });
            }
        }
        // Somebody by hand may have many; what a package asks for has one address of each kind.
        if !theirs.holder.package.is_empty() && theirs.state == State::Held {
            let kind = std::mem::discriminant(&theirs.thing);
            let other =
                |l: &Lease| l.state == State::Held && std::mem::discriminant(&l.thing) == kind;
            let moved = table.held_by(&theirs.holder).into_iter().filter(other);
            clashes.extend(moved.map(|ours| Clash {
                ours,
                theirs: theirs.clone(),
                why: Why::Moved,
            }));
        }
        for lease in lifted {
            let _ = table.insert(lease);
        }
        (clashes, cleared)
    }

    /// Both have it for the same holder.
    fn meet(&mut self, ours: &Lease, theirs: &Lease, reservation: Option<&Reservation>) {
        let has = self.terms.get(&key(theirs)).copied();
        let stronger = ours.state != State::Held
            && !matches!(ours.state, State::Reserved { .. })
            && theirs.state == State::Held;
        if stronger {
            self.out.amendment.put.push(theirs.clone());
            self.out.amendment.reservations.extend(reservation.cloned());
            return;
        }
        match reservation.filter(|r| has != Some(*r)) {
            Some(terms) if has.is_none() || self.keep == Some(Side::Theirs) => {
                self.out.amendment.reservations.push(terms.clone());
            }
            Some(_) => {}
            None => {
                self.out.same += 1;
                return;
            }
        }
        if has.is_some() {
            self.out.clashes.push(Clash {
                ours: ours.clone(),
                theirs: theirs.clone(),
                why: Why::Terms,
            });
        }
    }

    /// A package was last where it was written last.
    fn packages(&mut self, ours: &[PackageRecord], theirs: &[PackageRecord]) {
        let known: BTreeMap<_, _> = ours.iter().map(|p| ((&p.cluster, &p.id), p)).collect();
        let newer = |p: &&PackageRecord| {
            known
                .get(&(&p.cluster, &p.id))
                .is_none_or(|has| p.at > has.at)
        };
        let came = theirs.iter().filter(newer);
        self.out.amendment.note.extend(came.cloned());
    }
}
