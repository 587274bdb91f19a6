//! How full each prefix is: what `pool list` and the dashboard show.

use mooring_api::{Cidr, Family, ObjectRef, Time};

use crate::room::Room;
use crate::serving::Source;
use crate::space::aligned;
use crate::{Claim, Holder, Kind, Order, Pools, Table, Want};

/// How full one prefix is, in addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Which.
    pub prefix: Cidr,
    /// Where it is written.
    pub origin: ObjectRef,
    /// For what.
    pub kind: Kind,
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
}

impl Pools {
    /// One row per prefix of the table's instance, in the order they were read. Linear in the free runs.
    pub fn usage(&self, table: &Table, now: Time) -> Vec<Usage> {
        let here = self
            .prefixes
            .iter()
            .filter(|p| p.instance == *table.instance());
        here.map(|prefix| {
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
                size: room.space().size(),
                used: taken.saturating_sub(reserved + cooling),
                reserved,
                cooling,
                free: room.space().free(),
                largest_free: largest.map(|(start, bits)| {
                    let bits = u8::try_from(bits).unwrap_or(u8::MAX);
                    Cidr::containing(family.addr(start), family.bits().saturating_sub(bits))
                }),
            }
        })
        .collect()
    }
}

/// A claim of nobody in particular, to see a prefix as a stranger does.
fn anyone(table: &Table, kind: Kind, family: Family) -> Claim {
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
