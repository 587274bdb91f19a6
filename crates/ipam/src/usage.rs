//! How full each prefix is, and where: what `pool list`, `pool map` and the dashboard show.
//!
//! Only counting; drawing is for the hands. Easy to get wrong: a prefix may have shrunk under its holders, so
//! "used" counts what lies in it today, and [`Usage::outside`] says who does not any more.

mod cells;

use mooring_api::{Cidr, Code, Family, Finding, ObjectRef, Time};

use crate::room::Room;
use crate::serving::Source;
use crate::space::aligned;
use crate::{Claim, Holder, Kind, Lease, Order, Pools, Prefix, State, Table, Want};

pub use cells::{Cell, Map, Row};

/// How many of the largest holders are named.
const TOP: usize = 3;

/// How full one prefix is, in addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Which.
    pub prefix: Cidr,
    /// Where it is written.
    pub origin: ObjectRef,
    /// For what.
    pub kind: Kind,
    /// Whether nothing new is handed out.
    pub drain: bool,
    /// How many may be chosen: hosts inside the ranges, without exclusions, gateway and what is kept.
    pub size: u128,
    /// How many are held, anywhere in the prefix.
    pub used: u128,
    /// How many are reserved by open transactions.
    pub reserved: u128,
    /// How many rest after their release.
    pub cooling: u128,
    /// How many are free to be chosen.
    pub free: u128,
    /// The largest free aligned block, the lowest among equals.
    pub largest_free: Option<Cidr>,
    /// Who has most: `cluster / package` and how many.
    pub holders: Vec<(String, u128)>,
    /// What is held outside of the prefix, though it was taken from it: the prefix shrank.
    pub outside: Vec<Lease>,
    /// What is held inside of the prefix, but where its ranges and exclusions give nothing.
    pub unlisted: Vec<Lease>,
}

impl Usage {
    /// What a person should know: that it is full, and who it shrank under.
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        if self.free == 0 && self.size > 0 && !self.drain {
            let taken = self.used + self.reserved + self.cooling;
            let holders = self.holders.iter().map(|(name, n)| format!("{name}: {n}"));
            let holders: Vec<String> = holders.collect();
            let message = format!(
                "{} is full: {taken} taken ({})",
                self.prefix,
                holders.join(", ")
            );
            let help = "release what is not needed, grow it with moor pool grow, or add a prefix with the same labels";
            findings.push(
                Finding::warning(Code::PoolExhausted, message)
                    .on(&self.origin)
                    .help(help),
            );
        }
        if !self.outside.is_empty() {
            let shown = self.outside.iter().take(5);
            let shown: Vec<String> = shown
                .map(|l| format!("{} ({})", l.thing, l.holder))
                .collect();
            let more = match self.outside.len() - shown.len() {
                0 => String::new(),
                more => format!("; and {more} more"),
            };
            let message = format!(
                "{} no longer covers what was taken from it: {}{more}",
                self.prefix,
                shown.join("; ")
            );
            let help = "the next render gives them other addresses; widen the prefix again if they should stay";
            findings.push(
                Finding::warning(Code::AddressOutsidePrefix, message)
                    .on(&self.origin)
                    .help(help),
            );
        }
        findings
    }
}

impl Pools {
    /// One row per prefix of the table's instance, in the order they were read. Linear in the free runs and in
    /// what is held.
    pub fn usage(&self, table: &Table, now: Time) -> Vec<Usage> {
        let here = || {
            let all = self.prefixes.iter();
            all.filter(|p| p.instance == *table.instance())
        };
        let mut rows: Vec<Usage> = here()
            .map(|prefix| self.usage_of(prefix, table, now))
            .collect();
        for lease in table.leases().filter(|l| l.state == State::Held) {
            let Some(range) = lease.thing.range() else {
                continue;
            };
            if let Some(home) = self.home(&lease.instance, &lease.thing) {
                let home = &self.prefixes[home];
                let nth = here().position(|p| std::ptr::eq(p, home));
                if let Some(nth) = nth.filter(|_| !home.gives(&range) && !home.keeps(&lease)) {
                    rows[nth].unlisted.push(lease);
                }
                continue;
            }
            // Nothing covers it: it belongs to what became of the subnet it was taken from.
            let was = |p: &&Prefix| lease.subnet.is_some_and(|s| s.overlaps(&p.cidr));
            if let Some(nth) = here().position(|p| was(&p)) {
                rows[nth].outside.push(lease);
            }
        }
        rows
    }

    fn usage_of(&self, prefix: &Prefix, table: &Table, now: Time) -> Usage {
        let family = prefix.cidr.family();
        let claim = anyone(table, prefix.kind, family);
        let mut room = Room::new(self, table, Source::Read(prefix), &claim, now);
        let (reserved, cooling) = table.passing(prefix.cidr, now);
        let taken = room.taken();
        let blocks = room.space().runs().flat_map(|(a, b)| aligned(a, b));
        // Reversed, because the last of equal maxima wins.
        let largest = blocks.max_by_key(|(start, bits)| (*bits, std::cmp::Reverse(*start)));
        Usage {
            prefix: prefix.cidr,
            origin: prefix.origin.clone(),
            kind: prefix.kind,
            drain: prefix.drain,
            size: room.space().size(),
            used: taken.saturating_sub(reserved + cooling),
            reserved,
            cooling,
            free: room.space().free(),
            largest_free: largest.map(|(start, bits)| {
                let bits = u8::try_from(bits).unwrap_or(u8::MAX);
                Cidr::containing(family.addr(start), family.bits().saturating_sub(bits))
            }),
            holders: table.top_holders(prefix.cidr, TOP),
            outside: Vec::new(),
            unlisted: Vec::new(),
        }
    }
}

impl Prefix {
    /// Whether `spec.allocations` speaks of it, which may lie outside of the ranges.
    fn keeps(&self, lease: &Lease) -> bool {
        let range = lease.thing.range();
        range.is_some_and(|range| self.kept.iter().any(|k| k.range.overlaps(&range)))
    }
}

/// A claim of nobody in particular, to see a prefix as a stranger does.
pub(crate) fn anyone(table: &Table, kind: Kind, family: Family) -> Claim {
    Claim {
        holder: Holder::outside("", "", family),
        instance: table.instance().clone(),
        kind,
        want: Want::Address,
        selector: mooring_api::Selector::default(),
        fixed: None,
        before: None,
        names: Vec::new(),
        order: Order::LowestFirst,
    }
}
