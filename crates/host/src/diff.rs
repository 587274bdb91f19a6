//! What brings one link from what was seen to what is wanted. Pure.
//!
//! Called by [`crate::restore`], by the device mover to prove that a NIC is home, and by the agent. The order is the one
//! in which the kernel takes it: attributes, names, addresses, up, port, neighbours, routes, rules.
//!
//! Easy to get wrong: not everything on a link was put there by somebody who wants it. Routes of the kernel follow from
//! the addresses, what a daemon learnt (DHCP, router advertisements) has an end and comes back by itself, and rules belong
//! to the whole host. Those are never taken away here, and the first two are not added either.

mod link;
#[cfg(test)]
mod tests;

use mooring_api::Family;
use mooring_api::net::{Addr, Neighbour, Route, RouteProtocol, Scope, Snapshot};

use crate::Change;

/// The changes that bring `seen` to `wanted`; none when they agree. Every change speaks of `seen`'s index, so `wanted` may
/// come from another boot or namespace.
pub fn diff(wanted: &Snapshot, seen: &Snapshot) -> Vec<Change<'static>> {
    let moved = wanted.clone().moved_to(seen.link.index, &wanted.link.name);
    let wanted = &moved;
    let mut changes = Vec::new();
    let bounced = link::before(&wanted.link, &seen.link, &mut changes);
    addrs(wanted, seen, bounced, &mut changes);
    link::after(&wanted.link, &seen.link, bounced, &mut changes);
    vlans(wanted, seen, &mut changes);
    neighbours(wanted, seen, &mut changes);
    // Going down takes the routes along.
    let there: &[Route] = if bounced { &[] } else { &seen.routes };
    routes(wanted, there, &mut changes);
    let rules = wanted
        .rules
        .iter()
        .filter(|rule| !seen.rules.contains(rule));
    changes.extend(rules.cloned().map(Change::AddRule));
    changes
}

fn addrs(wanted: &Snapshot, seen: &Snapshot, bounced: bool, changes: &mut Vec<Change<'static>>) {
    let names = (wanted.link.name.as_str(), seen.link.name.as_str());
    let surplus = seen.addrs.iter().filter(|there| {
        let passing = there.valid.is_some() || is_link_local(there) || is_temporary(there);
        !passing && !wanted.addrs.iter().any(|addr| is_same(addr, there))
    });
    changes.extend(surplus.cloned().map(Change::DelAddr));
    // The kernel shows IPv4 addresses oldest first and IPv6 ones newest first, and prefers the first it shows.
    let of = |family| {
        wanted
            .addrs
            .iter()
            .filter(move |a| a.address.family() == family)
    };
    for addr in of(Family::V4).chain(of(Family::V6).rev()) {
        if is_temporary(addr) {
            continue;
        }
        let there = seen.addrs.iter().find(|there| is_same(addr, there));
        // Going down takes IPv6 addresses along, unless a sysctl keeps them.
        let lost = bounced && addr.address.family() == Family::V6;
        if lost || there.is_none_or(|there| !is_alike(addr, there, names)) {
            changes.push(Change::SetAddr(addr.clone()));
        }
    }
}

/// What the kernel takes for the same address.
fn is_same(a: &Addr, b: &Addr) -> bool {
    a.address == b.address && a.peer == b.peer
}

/// Whether it has what can be set. Lifetimes run, so only their being there is compared.
fn is_alike(wanted: &Addr, there: &Addr, (wanted_name, name): (&str, &str)) -> bool {
    let label = |addr: &Addr, own: &str| addr.label.clone().filter(|label| label != own);
    wanted.flags.settable() == there.flags.settable()
        && wanted.scope == there.scope
        && wanted.broadcast == there.broadcast
        && wanted.metric == there.metric
        && wanted.valid.is_some() == there.valid.is_some()
        && wanted.preferred.is_some() == there.preferred.is_some()
        && label(wanted, wanted_name) == label(there, name)
}

fn is_link_local(addr: &Addr) -> bool {
    addr.address.family() == Family::V6 && addr.scope == Scope::LINK
}

/// A privacy address: the kernel makes it beside another, and takes none from us.
fn is_temporary(addr: &Addr) -> bool {
    addr.address.family() == Family::V6 && addr.flags.secondary
}

fn vlans(wanted: &Snapshot, seen: &Snapshot, changes: &mut Vec<Change<'static>>) {
    // Joining a bridge brings a VLAN; what is there is known only while the master stays.
    let stays = wanted.link.master == seen.link.master;
    let there = if stays { seen.vlans.as_slice() } else { &[] };
    let surplus = there.iter().filter(|vlan| !wanted.vlans.contains(vlan));
    changes.extend(surplus.copied().map(Change::DelBridgeVlan));
    let missing = wanted.vlans.iter().filter(|vlan| !there.contains(vlan));
    changes.extend(missing.copied().map(Change::AddBridgeVlan));
}

fn neighbours(wanted: &Snapshot, seen: &Snapshot, changes: &mut Vec<Change<'static>>) {
    let stays = |n: &&Neighbour| n.proxy || n.state.is_permanent();
    let there: Vec<_> = seen.neighbours.iter().filter(stays).collect();
    let wanted: Vec<_> = wanted.neighbours.iter().filter(stays).collect();
    let same = |a: &Neighbour, b: &Neighbour| a.address == b.address && a.proxy == b.proxy;
    for old in &there {
        if !wanted.iter().any(|new| same(new, old)) {
            changes.push(Change::DelNeighbour((*old).clone()));
        }
    }
    let missing = wanted.iter().filter(|new| !there.contains(new));
    changes.extend(missing.map(|new| Change::AddNeighbour((*new).clone())));
}

fn routes(wanted: &Snapshot, there: &[Route], changes: &mut Vec<Change<'static>>) {
    let set_by_hand = |route: &&Route| {
        matches!(route.protocol, RouteProtocol::BOOT | RouteProtocol::STATIC)
            && route.expires.is_none()
    };
    let agrees = |a: &Route, b: &Route| plain(a) == plain(b);
    for old in there.iter().filter(set_by_hand) {
        if !wanted.routes.iter().any(|new| agrees(new, old)) {
            changes.push(Change::DelRoute(old.clone()));
        }
    }
    let mut missing: Vec<&Route> = wanted.routes.iter().collect();
    missing.retain(|new| !comes_by_itself(new) && !there.iter().any(|old| agrees(new, old)));
    // A gateway must be reachable when its route is added, and may be so only by a route.
    missing.sort_by_key(|route| route.gateway.is_some() || !route.next_hops.is_empty());
    changes.extend(missing.into_iter().cloned().map(|route| {
        if route.next_hops.is_empty() {
            Change::AppendRoute(route)
        } else {
            // The half of it that leaves by other links may still stand; appending would make two.
            Change::SetRoute(route)
        }
    }));
}

/// What the kernel makes for an address, and what a router tells again.
fn comes_by_itself(route: &Route) -> bool {
    route.protocol == RouteProtocol::KERNEL
        || (route.protocol == RouteProtocol::RA && route.expires.is_some())
}

/// A route with everything filled in that the kernel fills in, and without what runs.
fn plain(route: &Route) -> Route {
    let (_, _, _, metric) = route.key();
    Route {
        scope: Some(route.effective_scope()),
        metric: Some(metric),
        expires: route.expires.map(|_| 0),
        ..route.clone()
    }
}
