//! The rule "no address twice", over all clusters at once.
//!
//! Two users of one address is a duplicate. A range that plugins hand out from must not meet a range or
//! an address of another cluster, because their pools do not know of each other; inside one cluster
//! they may.
//!
//! Sorted by first address, a range can only meet what began before it and reaches that far. So the
//! walk remembers two ranges: the one that reaches furthest, and the one that reaches furthest in any
//! *other* cluster. One of them answers for all, and no pair is ever formed twice:
//!
//! ```text
//!   edge01  ├──────────────┤            furthest
//!   edge02      ├─────┤                 meets edge01; furthest elsewhere
//!   edge01         ├───────────────┤    meets edge02, not its own cluster
//! ```

use std::collections::BTreeSet;
use std::net::IpAddr;

use mooring_api::{Code, Finding};
use mooring_attach::nad::Use;

use crate::carried::Carried;
use crate::input::Origin;
use crate::report::Found;

/// Duplicates, then overlaps.
pub(crate) fn judge(carried: &[Carried<'_>]) -> (Vec<Found>, Vec<Found>) {
    let mut sorted: Vec<&Carried<'_>> = carried.iter().collect();
    sorted.sort_by(|a, b| order(a).cmp(&order(b)));
    (duplicates(&sorted), overlaps(&sorted))
}

/// Scope, first address, ranges before addresses, then where it stands: never the order of the input.
type Order<'a> = (Option<&'a str>, IpAddr, bool, &'a Origin, &'a str, IpAddr);

fn order<'a>(one: &'a Carried<'_>) -> Order<'a> {
    let (first, last) = ends(one);
    let is_address = matches!(one.what, Use::Address(_));
    (one.scope, first, is_address, one.origin, &one.user, last)
}

fn ends(one: &Carried<'_>) -> (IpAddr, IpAddr) {
    match one.what {
        Use::Address(host) => (host.addr(), host.addr()),
        Use::Range { range, .. } => (range.first(), range.last()),
    }
}

/// Who gets it. The same NAD in two files of a package, or one per node, is one user.
fn user<'a>(one: &'a Carried<'_>) -> [&'a str; 4] {
    let origin = one.origin;
    [
        &origin.cluster,
        &origin.package,
        &origin.object.namespace,
        &one.user,
    ]
}

fn duplicates(sorted: &[&Carried<'_>]) -> Vec<Found> {
    let mut out = Vec::new();
    let mut holder: Option<&Carried<'_>> = None;
    let mut users = BTreeSet::new();
    let addresses = sorted.iter().copied();
    for one in addresses.filter(|c| matches!(c.what, Use::Address(_))) {
        let same = holder.filter(|h| h.scope == one.scope && ends(h).0 == ends(one).0);
        let Some(first) = same else {
            holder = Some(one);
            users.clear();
            users.insert(user(one));
            continue;
        };
        if !users.insert(user(one)) {
            continue;
        }
        let (origin, other) = (one.origin, first.origin);
        let address = ends(one).0;
        let message = format!("{address} is used twice: here by {origin}, and by {other}");
        let help = format!(
            "give one of them another address; `moor who-has {address}` tells whose it is. If the two \
             networks never meet, mark their NetworkInstance with mooring.dev/isolated"
        );
        out.push(found(Code::DuplicateAddress, message, help, one, origin));
    }
    out
}

fn overlaps(sorted: &[&Carried<'_>]) -> Vec<Found> {
    let mut out = Vec::new();
    let mut said = BTreeSet::new();
    let mut reach = Reach::default();
    let mut scope = None;
    for one in sorted.iter().copied() {
        if scope != Some(one.scope) {
            (scope, reach) = (Some(one.scope), Reach::default());
        }
        let (first, last) = ends(one);
        let met = reach
            .elsewhere(&one.origin.cluster)
            .filter(|other| is_within(first, ends(other)));
        if let Some(other) = met
            // Exclusions cut a range in pieces: one word about two objects is enough.
            && said.insert((one.id, other.id))
        {
            let (origin, there) = (one.origin, other.origin);
            let (from, to) = ends(other);
            let message = match one.what {
                Use::Address(_) => format!(
                    "{first}, used here by {origin}, may be handed out again from {from}-{to} by {there}"
                ),
                Use::Range { range, .. } => format!(
                    "{range}, handed out here by {origin}, meets {from}-{to}, handed out by {there}"
                ),
            };
            let help = "give each cluster a range of its own, or exclude what the other one uses";
            let help = help.to_owned();
            out.push(found(Code::OverlappingRanges, message, help, one, origin));
        }
        if matches!(one.what, Use::Range { .. }) {
            reach.add(one, last);
        }
    }
    out
}

/// What reaches furthest, and what reaches furthest in any cluster but that one's.
#[derive(Default)]
struct Reach<'c> {
    furthest: Option<&'c Carried<'c>>,
    other: Option<&'c Carried<'c>>,
}

impl<'c> Reach<'c> {
    fn elsewhere(&self, mine: &str) -> Option<&'c Carried<'c>> {
        match self.furthest {
            Some(one) if one.origin.cluster == mine => self.other,
            furthest => furthest,
        }
    }

    fn add(&mut self, one: &'c Carried<'c>, last: IpAddr) {
        let beyond = |held: Option<&Carried<'_>>| held.is_none_or(|held| ends(held).1 < last);
        let leads = self
            .furthest
            .is_some_and(|held| held.origin.cluster == one.origin.cluster);
        if beyond(self.furthest) {
            if !leads {
                self.other = self.furthest;
            }
            self.furthest = Some(one);
        } else if !leads && beyond(self.other) {
            self.other = Some(one);
        }
    }
}

/// IPv4 sorts before IPv6, so a range of one family never reaches into the other.
fn is_within(address: IpAddr, (first, last): (IpAddr, IpAddr)) -> bool {
    first <= address && address <= last && first.is_ipv4() == address.is_ipv4()
}

fn found(code: Code, message: String, help: String, one: &Carried<'_>, origin: &Origin) -> Found {
    let finding = Finding::error(code, message).help(help);
    Found::at(finding, origin, one.field.as_str())
}
