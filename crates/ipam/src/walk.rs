//! The orders: one prefix's candidates, one at a time.
//!
//! Each offer is marked in the space, so the next one is what the order would give had the first been taken
//! by somebody else. Lowest-first goes on from where it was. Rendezvous tries a bounded number of places that a
//! hash of holder and place number gives, then every free place behind the first of them and around: writers
//! start far apart, and the last free address is still found.

use mooring_api::{AddrRange, Family, Time};
use sha2::{Digest, Sha256};

use crate::candidates::candidate;
use crate::room::{Room, size_of};
use crate::serving::Source;
use crate::space::{Span, span};
use crate::{Candidate, Claim, Holder, Kind, Order, Pools, Prefix, Table, Thing, Want};

/// Hashed places before the walk goes on in order. A prefix nine tenths full is missed by all of them once
/// in 800 claims, which then costs O(log) and not O(size).
const PROBES: u32 = 64;

/// With more holes than that a prefix is worth a [`Room`], which sorts them.
const FEW_HOLES: usize = 8;

/// What lowest-first offers first, found without a [`Room`], for the claim that nearly everybody makes: an
/// address of a network that has no ranges and few holes, where no block is in the way and nothing in the
/// table has ended. None says only that it is not that simple.
pub(crate) fn lowest(
    table: &Table,
    prefix: &Prefix,
    claim: &Claim,
    now: Time,
) -> Option<Candidate> {
    let simple = claim.want == Want::Address
        && claim.order == Order::LowestFirst
        && prefix.kind == Kind::Network
        && prefix.ranges.is_empty()
        && prefix.exclude.len() + prefix.kept.len() <= FEW_HOLES;
    if !simple {
        return None;
    }
    let family = prefix.cidr.family();
    let taken = table.only_obstacle(family, now)?;
    let (mut at, last) = span(prefix.cidr.hosts());
    loop {
        at = taken.next_free(at).filter(|free| *free <= last)?;
        let addr = family.addr(at);
        let kept = prefix.kept.iter().map(|kept| kept.range);
        let gateway = prefix.gateway.map(AddrRange::single);
        let mut holes = prefix.exclude.iter().copied().chain(kept).chain(gateway);
        match holes.find(|hole| hole.contains(addr)) {
            Some(hole) => at = Family::number(hole.last()).checked_add(1)?,
            None => return Some(candidate(prefix, claim, Thing::Addr(addr))),
        }
    }
}

/// The candidates of one prefix after the other.
pub(crate) struct Walks<'a> {
    pools: &'a Pools,
    table: &'a Table,
    claim: &'a Claim,
    now: Time,
    prefixes: std::vec::IntoIter<Source<'a>>,
    /// Boxed: most offers are dropped before there is one.
    walk: Option<Box<Walk<'a>>>,
    left_out: Option<Thing>,
}

impl<'a> Walks<'a> {
    /// `left_out` was offered before all of these.
    pub(crate) fn new(
        pools: &'a Pools,
        table: &'a Table,
        claim: &'a Claim,
        now: Time,
        prefixes: Vec<Source<'a>>,
        left_out: Option<Thing>,
    ) -> Self {
        Self {
            pools,
            table,
            claim,
            now,
            prefixes: prefixes.into_iter(),
            walk: None,
            left_out,
        }
    }
}

impl Iterator for Walks<'_> {
    type Item = Candidate;

    fn next(&mut self) -> Option<Candidate> {
        loop {
            let offered = self.walk.as_mut().and_then(|walk| {
                let left_out = self.left_out;
                walk.find(|candidate| Some(candidate.thing) != left_out)
            });
            if offered.is_some() {
                return offered;
            }
            let prefix = self.prefixes.next()?;
            let room = Room::new(self.pools, self.table, prefix, self.claim, self.now);
            self.walk = Some(Box::new(Walk::new(room, self.claim)));
        }
    }
}

/// The candidates of one prefix.
struct Walk<'a> {
    room: Room<'a>,
    claim: &'a Claim,
    /// From where to look on; None when there is nothing left.
    cursor: Option<u128>,
    probe: u32,
    /// The latest offer, to be marked when another one is asked for.
    unmarked: Option<Span>,
    /// Where the walk began, and whether it went around.
    origin: u128,
    wrapped: bool,
}

impl<'a> Walk<'a> {
    fn new(room: Room<'a>, claim: &'a Claim) -> Self {
        Self {
            room,
            claim,
            cursor: Some(0),
            probe: 0,
            unmarked: None,
            origin: 0,
            wrapped: true,
        }
    }

    fn next_start(&mut self, size: u128, align: u128) -> Option<u128> {
        match (self.claim.order, self.claim.want) {
            (Order::BestFit, Want::Range { .. }) => self.room.space().best_run(size),
            (Order::BestFit, _) => self.room.space().best_block(size),
            (Order::Rendezvous, _) => self.probe(size).or_else(|| self.next_in_order(size, align)),
            (Order::LowestFirst | Order::Index(_), _) => self.next_in_order(size, align),
        }
    }

    fn next_in_order(&mut self, size: u128, align: u128) -> Option<u128> {
        loop {
            let found = self.room.space().next_fit(self.cursor?, size, align);
            match found {
                Some(start) if !(self.wrapped && self.origin > 0 && start >= self.origin) => {
                    self.cursor = start.checked_add(size);
                    return Some(start);
                }
                _ if self.wrapped => {
                    self.cursor = None;
                    return None;
                }
                _ => {
                    self.wrapped = true;
                    self.cursor = Some(0);
                }
            }
        }
    }

    fn probe(&mut self, size: u128) -> Option<u128> {
        if self.probe >= PROBES {
            return None;
        }
        let slots = self.room.slots(self.claim.want);
        let count = slots.len();
        let hash = Hash::new(&self.claim.holder, &self.room.prefix().cidr.to_string());
        while self.probe < PROBES && count > 0 {
            let place = hash.of(self.probe) % count;
            let start = slots.get(place).expect("a place below the count exists");
            if self.probe == 0 {
                self.origin = start;
                self.cursor = Some(start);
                self.wrapped = start == 0;
            }
            self.probe += 1;
            if self.room.space().is_free(start, start + (size - 1)) {
                return Some(start);
            }
        }
        None
    }
}

impl Iterator for Walk<'_> {
    type Item = Candidate;

    fn next(&mut self) -> Option<Candidate> {
        let family = self.room.prefix().cidr.family();
        let (size, align) = size_of(self.claim.want, family);
        if let Some((first, last)) = self.unmarked.take() {
            self.room.space().offered(first, last);
        }
        let start = self.next_start(size, align)?;
        // Lowest-first never looks back, so it needs no mark.
        if self.claim.order != Order::LowestFirst {
            self.unmarked = Some((start, start + (size - 1)));
        }
        let thing = self.room.thing(self.claim.want, start);
        Some(candidate(self.room.prefix(), self.claim, thing))
    }
}

/// The same on every machine and in every release: SHA-256 of holder, prefix and number of the try.
pub(crate) struct Hash(Sha256);

impl Hash {
    pub(crate) fn new(holder: &Holder, prefix: &str) -> Self {
        let mut sha = Sha256::new();
        for part in [holder.key().as_str(), prefix] {
            sha.update(part);
            sha.update([0]);
        }
        Self(sha)
    }

    pub(crate) fn of(&self, probe: u32) -> u128 {
        let mut sha = self.0.clone();
        sha.update(probe.to_be_bytes());
        sha.update([0]);
        let digest = sha.finalize();
        digest[..16]
            .iter()
            .fold(0, |n, byte| n << 8 | u128::from(*byte))
    }
}
