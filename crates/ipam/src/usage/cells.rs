//! A prefix as a field of cells, for a map: what lies in each, counted once.
//!
//! ```text
//!  up to 2^16 addresses, and every IPv4 prefix   all of it; a cell is 2^k addresses, so that there are few rows
//!  a larger IPv6 prefix                          only rows with something in them, a cell as small as that allows
//! ```
//!
//! Easy to get wrong: an IPv6 subnet has more addresses than any map has cells. Equal parts of a /64 would show one
//! cell in use and a thousand empty ones.

use std::collections::BTreeMap;
use std::net::IpAddr;

use mooring_api::{AddrRange, Cidr, Family, Time};

use super::anyone;
use crate::room::Room;
use crate::serving::Source;
use crate::space::{Span, span, within};
use crate::{Holder, Lease, Pools, Prefix, State, Table};

/// Larger IPv6 prefixes are shown in parts.
const WHOLE_BITS: u8 = 16;

/// A prefix, in rows of equal cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    /// Which.
    pub prefix: Cidr,
    /// A cell is 2^bits addresses.
    pub cell_bits: u8,
    /// Ascending. Between two of them there may be others, in which nothing is.
    pub rows: Vec<Row>,
    /// Whether rows without anything in them are left out.
    pub is_partial: bool,
    /// The gateway.
    pub gateway: Option<IpAddr>,
}

/// Some cells in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its first address.
    pub first: IpAddr,
    /// Its cells, ascending.
    pub cells: Vec<Cell>,
}

/// Some addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Which.
    pub range: AddrRange,
    /// How many are held.
    pub held: u128,
    /// How many are reserved by open transactions.
    pub reserved: u128,
    /// How many rest.
    pub cooling: u128,
    /// How many may be chosen, taken or not.
    pub open: u128,
    /// How many of those may be chosen are held, reserved or rest.
    pub open_taken: u128,
    /// Who is here: the first few, as they are told to people.
    pub who: Vec<String>,
}

impl Cell {
    /// How many addresses it stands for.
    pub fn size(&self) -> u128 {
        self.range.count()
    }

    /// How many are held, reserved or rest.
    pub fn taken(&self) -> u128 {
        self.held + self.reserved + self.cooling
    }

    /// How many may be chosen and are free.
    pub fn free(&self) -> u128 {
        self.open.saturating_sub(self.open_taken)
    }
}

/// How many holders a cell names.
const NAMED: usize = 3;

impl Pools {
    /// The map of one prefix: rows of `columns` cells, which is a power of two, and at most `rows` of them.
    /// `name` says a holder as people know it.
    pub fn cells(
        &self,
        prefix: &Prefix,
        table: &Table,
        (columns, rows): (u32, u32),
        name: &dyn Fn(&Holder) -> String,
        now: Time,
    ) -> Map {
        let family = prefix.cidr.family();
        let host_bits = family.bits() - prefix.cidr.prefix_len();
        let whole = span(prefix.cidr.range());
        let claim = anyone(table, prefix.kind, family);
        let mut room = Room::new(self, table, Source::Read(prefix), &claim, now);
        let open = room.space().segments().to_vec();
        let leases = self.live(table, prefix, now);
        let column_bits = u8::try_from(columns.max(1).ilog2()).unwrap_or(0);
        let is_whole = family == Family::V4 || host_bits <= WHOLE_BITS;
        let (cell_bits, numbers) = if is_whole {
            let cells = u128::from(columns) * u128::from(rows);
            let least = u8::try_from(cells.max(1).ilog2()).unwrap_or(0);
            let bits = host_bits.saturating_sub(least);
            let row_bits = bits + column_bits;
            let last = (whole.1 - whole.0) >> row_bits;
            (bits, (0..=last).collect())
        } else {
            used_rows(whole, &leases, column_bits, rows)
        };
        let row_bits = cell_bits + column_bits;
        let mut drawn: Vec<Row> = numbers
            .into_iter()
            .map(|nth| {
                let first = whole.0 + (nth << row_bits);
                row(first, whole.1, cell_bits, columns, family)
            })
            .collect();
        for row in &mut drawn {
            for cell in &mut row.cells {
                let parts = within(&open, span(cell.range));
                cell.open = parts.iter().map(|s| s.1 - s.0 + 1).sum();
            }
        }
        fill(&mut drawn, &leases, &open, name);
        Map {
            prefix: prefix.cidr,
            cell_bits,
            rows: drawn,
            is_partial: !is_whole,
            gateway: prefix.gateway,
        }
    }
}

impl Pools {
    /// Leases that were taken from the prefix and still count, ascending.
    fn live(&self, table: &Table, prefix: &Prefix, now: Time) -> Vec<(Span, Lease)> {
        let here = |l: &Lease| {
            let home = self.home(&prefix.instance, &l.thing);
            home.is_some_and(|at| self.prefixes[at] == *prefix) && l.state.is_live(now)
        };
        let leases = table.leases().filter(here);
        let mut leases: Vec<(Span, Lease)> = leases
            .filter_map(|l| Some((span(l.thing.range()?), l)))
            .collect();
        leases.sort_by_key(|(at, _)| *at);
        leases
    }
}

/// The smallest cells whose rows in use are few enough, and which rows those are. The first one is always there.
fn used_rows(whole: Span, leases: &[(Span, Lease)], column_bits: u8, most: u32) -> (u8, Vec<u128>) {
    for bits in 0..=127 - column_bits {
        let row_bits = bits + column_bits;
        let nth = |x: u128| (x.clamp(whole.0, whole.1) - whole.0) >> row_bits;
        let (mut rows, mut many) = (vec![0], false);
        for (at, _) in leases {
            let last = rows.last().copied().unwrap_or(0);
            let (from, to) = (nth(at.0).max(last + 1), nth(at.1));
            if nth(at.0) <= last && to <= last {
                continue;
            }
            if to - from >= u128::from(most) {
                many = true;
                break;
            }
            rows.extend(from..=to);
        }
        if !many && rows.len() <= most as usize {
            return (bits, rows);
        }
    }
    (127 - column_bits, vec![0])
}

fn row(first: u128, end: u128, cell_bits: u8, columns: u32, family: Family) -> Row {
    let size = 1u128 << cell_bits;
    let starts = (0..u128::from(columns)).map_while(|nth| {
        let start = first.checked_add(nth.checked_mul(size)?)?;
        (start <= end).then_some(start)
    });
    let cells = starts.filter_map(|start| {
        let last = start.saturating_add(size - 1).min(end);
        let range = AddrRange::new(family.addr(start), family.addr(last)).ok()?;
        Some(Cell {
            range,
            held: 0,
            reserved: 0,
            cooling: 0,
            open: 0,
            open_taken: 0,
            who: Vec::new(),
        })
    });
    Row {
        first: family.addr(first),
        cells: cells.collect(),
    }
}

/// Counts every lease in the cells that it lies in.
fn fill(
    rows: &mut [Row],
    leases: &[(Span, Lease)],
    open: &[Span],
    name: &dyn Fn(&Holder) -> String,
) {
    let mut starts: BTreeMap<u128, (usize, usize)> = BTreeMap::new();
    for (r, row) in rows.iter().enumerate() {
        for (c, cell) in row.cells.iter().enumerate() {
            starts.insert(Family::number(cell.range.first()), (r, c));
        }
    }
    for (at, lease) in leases {
        let first = starts
            .range(..=at.0)
            .next_back()
            .map_or(0, |(start, _)| *start);
        for (_, (r, c)) in starts.range(first..=at.1) {
            let cell = &mut rows[*r].cells[*c];
            let Some(part) = within(&[*at], span(cell.range)).pop() else {
                continue;
            };
            let size = part.1 - part.0 + 1;
            match lease.state {
                State::Held => cell.held += size,
                State::Reserved { .. } => cell.reserved += size,
                State::Cooling { .. } => cell.cooling += size,
            }
            let choosable = within(open, part);
            cell.open_taken += choosable.iter().map(|s| s.1 - s.0 + 1).sum::<u128>();
            if cell.who.len() < NAMED {
                cell.who
                    .push(format!("{} {}", lease.thing, name(&lease.holder)));
            }
        }
    }
}
