//! A map for the terminal: one sign per cell, and a legend. Nothing depends on colour.

use std::fmt::Write as _;

use mooring_api::Family;
use mooring_ipam::{Cell, Map};

/// What a cell looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// Nobody is given it.
    Aside,
    /// The gateway.
    Gateway,
    /// All of it can be taken.
    Free,
    /// So many tenths of what may be taken is, 1 to 9.
    Tenths(u8),
    /// It is held, or all that may be taken is.
    Full,
    /// Reserved by a run that has not ended.
    Reserved,
    /// It rests.
    Cooling,
}

impl Look {
    pub(super) fn of(cell: &Cell, map: &Map) -> Self {
        if cell.size() == 1 {
            return match (cell.held, cell.reserved, cell.cooling) {
                (1.., _, _) => Self::Full,
                (_, 1.., _) => Self::Reserved,
                (_, _, 1..) => Self::Cooling,
                _ if map.gateway == Some(cell.range.first()) => Self::Gateway,
                _ if cell.open == 0 => Self::Aside,
                _ => Self::Free,
            };
        }
        match (cell.taken(), cell.open) {
            (0, 0) => Self::Aside,
            (0, _) => Self::Free,
            _ if cell.free() == 0 => Self::Full,
            (taken, open) => {
                let tenths = taken.saturating_mul(10).div_ceil(open).clamp(1, 9);
                Self::Tenths(u8::try_from(tenths).unwrap_or(9))
            }
        }
    }

    pub(super) fn sign(self) -> char {
        match self {
            Self::Aside => 'x',
            Self::Gateway => 'g',
            Self::Free => '·',
            Self::Tenths(n) => char::from(b'0' + n.min(9)),
            Self::Full => '#',
            Self::Reserved => 'r',
            Self::Cooling => 'c',
        }
    }
}

/// What the signs mean.
pub(super) fn legend(map: &Map) -> &'static [(Look, &'static str)] {
    if map.cell_bits == 0 {
        &[
            (Look::Full, "held"),
            (Look::Reserved, "reserved"),
            (Look::Cooling, "resting"),
            (Look::Gateway, "gateway"),
            (Look::Aside, "not handed out"),
            (Look::Free, "free"),
        ]
    } else {
        &[
            (Look::Free, "nothing taken"),
            (Look::Tenths(1), "a tenth taken"),
            (Look::Tenths(9), "nearly all"),
            (Look::Full, "all taken"),
            (Look::Aside, "not handed out"),
        ]
    }
}

/// `one address`, `64 addresses`, `2^48 addresses`.
pub(super) fn cell_size(map: &Map) -> String {
    match map.cell_bits {
        0 => "one address".to_owned(),
        bits @ 1..=16 => format!("{} addresses", 1u32 << bits),
        bits => format!("2^{bits} addresses"),
    }
}

pub(super) fn draw(title: &str, map: &Map) -> String {
    let mut text = format!("{title}: a cell is {}\n\n", cell_size(map));
    let width = map
        .rows
        .iter()
        .map(|r| r.first.to_string().len())
        .max()
        .unwrap_or(0);
    let mut next = None;
    for row in &map.rows {
        let first = Family::number(row.first);
        if next.is_some_and(|next| next != first) {
            let _ = writeln!(text, "{:width$}  nothing taken in between", "…");
        }
        let signs: String = row.cells.iter().map(|c| Look::of(c, map).sign()).collect();
        let _ = writeln!(text, "{:width$}  {signs}", row.first);
        let last = row.cells.last().map(|c| Family::number(c.range.last()));
        next = last.and_then(|last| last.checked_add(1));
    }
    if map.is_partial && next.is_some_and(|n| n <= Family::number(map.prefix.last())) {
        let _ = writeln!(text, "{:width$}  nothing taken behind", "…");
    }
    let legend = legend(map)
        .iter()
        .map(|(look, word)| format!("{} {word}", look.sign()));
    let _ = writeln!(text, "\n{}", legend.collect::<Vec<_>>().join("   "));
    text
}
