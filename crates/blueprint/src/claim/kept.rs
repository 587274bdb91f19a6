//! An address that stays while its interface has a range: the book holds the two side by side, claim and NAD show them
//! as one range. `package` takes them, and takes them apart again when it rebuilds a book.

use std::net::IpAddr;

use mooring_api::{AddrRange, Family};
use mooring_ipam::{Lease, Thing};

/// The address inside the range that the interface had before it, and gets back with it.
pub const KEPT_ADDRESS: &str = "mooring.dev/kept-address";

/// What a wish was given.
#[derive(Clone, Debug)]
pub struct Given {
    /// The lease, as claim and NAD show it.
    pub lease: Lease,
    /// For a range: the address in it that is held on its own.
    pub kept: Option<IpAddr>,
}

impl From<Lease> for Given {
    fn from(lease: Lease) -> Self {
        Self { lease, kept: None }
    }
}

/// What the book holds for a range with an address that is held on its own: the address, and what lies beside it.
pub fn pieces(range: AddrRange, kept: Option<IpAddr>) -> Vec<Thing> {
    let Some(addr) = kept.filter(|addr| range.contains(*addr)) else {
        return vec![Thing::Range(range)];
    };
    let (family, at) = (Family::of(addr), Family::number(addr));
    let (first, last) = (Family::number(range.first()), Family::number(range.last()));
    let beside = |from: u128, to: u128| AddrRange::new(family.addr(from), family.addr(to)).ok();
    let below = at.checked_sub(1).filter(|to| first <= *to);
    let above = at.checked_add(1).filter(|from| *from <= last);
    let below = below.and_then(|to| beside(first, to));
    let above = above.and_then(|from| beside(from, last));
    let ranges = [below, above].into_iter().flatten().map(Thing::Range);
    std::iter::once(Thing::Addr(addr)).chain(ranges).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(range: &str, kept: Option<&str>) -> Vec<String> {
        let kept = kept.map(|addr| addr.parse().unwrap());
        let pieces = pieces(range.parse().unwrap(), kept);
        pieces.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_range_falls_into_the_address_and_what_lies_beside_it() {
        let range = "10.0.0.4-10.0.0.7";
        assert_eq!(shown(range, None), [range]);
        assert_eq!(shown(range, Some("10.0.0.9")), [range]);
        assert_eq!(
            shown(range, Some("10.0.0.4")),
            ["10.0.0.4", "10.0.0.5-10.0.0.7"]
        );
        assert_eq!(
            shown(range, Some("10.0.0.7")),
            ["10.0.0.7", "10.0.0.4-10.0.0.6"]
        );
        assert_eq!(
            shown(range, Some("10.0.0.5")),
            ["10.0.0.5", "10.0.0.4", "10.0.0.6-10.0.0.7"]
        );
        assert_eq!(shown("10.0.0.4-10.0.0.4", Some("10.0.0.4")), ["10.0.0.4"]);
    }
}
