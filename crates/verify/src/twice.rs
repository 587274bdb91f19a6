//! The rule "no address twice", over all clusters at once.
//!
//! Two users of one address is a duplicate. A range that plugins hand out from must not meet a range or
//! an address that its pool does not know of: none of another cluster, and inside one cluster none
//! of another pool on the same link ([`pool`](crate::pool)).
//!
//! Sorted by first address, a range can only meet what began before it and reaches that far. So the
//! walk remembers two ranges: the one that reaches furthest, and the one that reaches furthest of any
//! *other* keeper, a cluster or a pool. One of them answers for all, and no pair is ever formed twice:
//!
//! ```text
//!   edge01  ├──────────────┤            furthest
//!   edge02      ├─────┤                 meets edge01; furthest elsewhere
//!   edge01         ├───────────────┤    meets edge02, not its own cluster
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use mooring_api::{Code, Finding};
use mooring_attach::nad::Use;

use crate::carried::{Carried, RESERVATION};
use crate::input::Origin;
use crate::pool::{Keeper, Pools};
use crate::report::Found;
use crate::world::World;

/// Duplicates, then overlaps.
pub(crate) fn judge(world: &World<'_>, carried: &[Carried<'_>]) -> (Vec<Found>, Vec<Found>) {
    let mut sorted: Vec<&Carried<'_>> = carried.iter().collect();
    sorted.sort_by(|a, b| order(a).cmp(&order(b)));
    let mut overlaps = between_clusters(&sorted);
    overlaps.extend(inside_clusters(world, &sorted));
    (duplicates(&sorted), overlaps)
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

fn between_clusters(sorted: &[&Carried<'_>]) -> Vec<Found> {
    let mut out = Vec::new();
    let mut said = BTreeSet::new();
    let mut reach = Reach::default();
    let mut scope = None;
    for one in sorted.iter().copied() {
        if scope != Some(one.scope) {
            (scope, reach) = (Some(one.scope), Reach::default());
        }
        let mine = one.origin.cluster.as_str();
        if let Some(other) = reach.meets(&mine, one)
            // Exclusions cut a range in pieces: one word about two objects is enough.
            && said.insert((one.id, other.id))
        {
            let help = if is_kept(one.origin) || is_kept(other.origin) {
                "use what is not reserved, or end the reservation with `moor release`"
            } else {
                "give each cluster a range of its own, or exclude what the other one uses"
            };
            out.push(meets(one, other, "", help));
        }
        reach.add(mine, one);
    }
    out
}

fn inside_clusters(world: &World<'_>, sorted: &[&Carried<'_>]) -> Vec<Found> {
    let pools = Pools::read(world);
    let mut out = Vec::new();
    let mut said = BTreeSet::new();
    let mut links: BTreeMap<_, Reach<'_, Keeper<'_>>> = BTreeMap::new();
    for one in sorted.iter().copied() {
        let Some((link, keeper)) = pools.of(one) else {
            continue;
        };
        let place = (one.scope, one.origin.cluster.as_str(), link);
        let reach = links.entry(place).or_default();
        if let Some((theirs, other)) = reach.meets_of(&keeper, one)
            && !pools.agree(one, &keeper, other, theirs)
            && said.insert((one.id, other.id))
        {
            let on = match link {
                "" => "the NIC of the default route",
                link => link,
            };
            let then = format!("; both are on {on}, and neither knows what the other gave away");
            out.push(meets(one, other, &then, keeper.help(theirs)));
        }
        reach.add(keeper, one);
    }
    out
}

/// Whether it is something that a book keeps for somebody outside of packages.
fn is_kept(origin: &Origin) -> bool {
    origin.object.kind == RESERVATION
}

fn meets(one: &Carried<'_>, other: &Carried<'_>, then: &str, help: &str) -> Found {
    let (origin, there) = (one.origin, other.origin);
    let ((first, _), (from, to)) = (ends(one), ends(other));
    let message = match one.what {
        Use::Address(_) if is_kept(there) => {
            format!("{first}, used here by {origin}, is kept for {there} with all of {from}-{to}")
        }
        Use::Address(_) => format!(
            "{first}, used here by {origin}, may be handed out again from {from}-{to} by {there}{then}"
        ),
        Use::Range { range, .. } if is_kept(there) => {
            format!("{range}, handed out here by {origin}, meets {from}-{to}, kept for {there}")
        }
        Use::Range { range, .. } if is_kept(origin) => {
            format!("{range}, kept for {origin}, meets {from}-{to}, handed out by {there}")
        }
        Use::Range { range, .. } => format!(
            "{range}, handed out here by {origin}, meets {from}-{to}, handed out by {there}{then}"
        ),
    };
    let help = help.to_owned();
    found(Code::OverlappingRanges, message, help, one, origin)
}

/// What reaches furthest, and what reaches furthest of any keeper but that one's.
struct Reach<'c, K> {
    furthest: Option<(K, &'c Carried<'c>)>,
    other: Option<(K, &'c Carried<'c>)>,
}

impl<K> Default for Reach<'_, K> {
    fn default() -> Self {
        let (furthest, other) = (None, None);
        Self { furthest, other }
    }
}

impl<'c, K: PartialEq> Reach<'c, K> {
    /// A range of another keeper that holds the first address of this one.
    fn meets(&self, mine: &K, one: &Carried<'_>) -> Option<&'c Carried<'c>> {
        self.meets_of(mine, one).map(|(_, other)| other)
    }

    fn meets_of(&self, mine: &K, one: &Carried<'_>) -> Option<(&K, &'c Carried<'c>)> {
        let elsewhere = match &self.furthest {
            Some((keeper, _)) if keeper == mine => &self.other,
            furthest => furthest,
        };
        let (keeper, other) = elsewhere.as_ref()?;
        is_within(ends(one).0, ends(other)).then_some((keeper, *other))
    }

    /// Only ranges are handed out from.
    fn add(&mut self, mine: K, one: &'c Carried<'c>) {
        if !matches!(one.what, Use::Range { .. }) {
            return;
        }
        let last = ends(one).1;
        let beyond = |held: &Option<(K, &Carried<'_>)>| {
            held.as_ref().is_none_or(|(_, held)| ends(held).1 < last)
        };
        let leads = self
            .furthest
            .as_ref()
            .is_some_and(|(keeper, _)| *keeper == mine);
        if beyond(&self.furthest) {
            let before = self.furthest.replace((mine, one));
            if !leads {
                self.other = before;
            }
        } else if !leads && beyond(&self.other) {
            self.other = Some((mine, one));
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
