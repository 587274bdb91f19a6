//! What source-based routing needs, decided from what is there: pure.
//!
//! ```text
//!  main     10.1.0.0/24 dev net1, default via 10.1.0.1 dev net1         ─┐ moved
//!  rule     from 10.1.0.5 lookup 100                                     │
//!  100      10.1.0.0/24 dev net1, default via 10.1.0.1 dev net1         ◄┘
//! ```
//!
//! Called by ADD. Each address has its own rule and its own table, the first free ones from 100 up, as with the
//! reference plugin. Easy to get wrong: an ADD that was killed half way has moved some routes already; a rule for the
//! same address tells which table that was, and everything else is set again.

use std::net::IpAddr;

use mooring_api::net::{Route, RouteKind, Rule, TABLE_MAIN};
use mooring_api::{Cidr, Family, HostCidr};
use mooring_attach::cni::Ip;

use crate::plugins::bridge::default_of;

/// The first table that is taken.
pub(super) const FIRST: u32 = 100;
/// Who made a rule, as the kernel keeps it: ours, so that DEL finds those whose interface is gone.
pub(super) const PROTOCOL: u8 = 109;

/// What the plan is made from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'a> {
    /// The interface.
    pub(super) index: u32,
    /// Its addresses, as the plugins before say.
    pub(super) ips: &'a [Ip],
    /// Every route of the namespace.
    pub(super) routes: &'a [Route],
    /// Every rule of the namespace.
    pub(super) rules: &'a [Rule],
}

/// What the configuration says.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    pub(super) table: Option<u32>,
    /// At most one per family.
    pub(super) gateways: Vec<IpAddr>,
    pub(super) source_hints: bool,
}

/// What to do, in this order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// Into the tables.
    pub(super) routes: Vec<Route>,
    pub(super) rules: Vec<Rule>,
    /// Routes of the main table that get a source address.
    pub(super) hints: Vec<Route>,
    /// Out of the main table.
    pub(super) moved: Vec<Route>,
}

/// Decides.
pub(super) fn plan(seen: Seen, wanted: &Wanted) -> Plan {
    let mut plan = Plan::default();
    if let Some(table) = wanted.table {
        // Somebody else fills that table: the routes of the interface's own plugin name it.
        for ip in seen.ips {
            plan.rules.extend(rule(seen.rules, ip.address, table));
        }
        return plan;
    }
    let own: Vec<&Route> = seen
        .routes
        .iter()
        .filter(|r| is_own(r, seen.index))
        .collect();
    for ip in seen.ips {
        let table = table(seen, &plan, ip.address);
        plan.routes.extend(copies(&own, ip, table, seen, wanted));
        plan.routes
            .extend(default_route(&plan.routes, ip, table, seen, wanted));
        plan.rules.extend(rule(seen.rules, ip.address, table));
    }
    // The kernel wants to know a gateway's subnet before the gateway.
    plan.routes.sort_by_key(|r| (r.table, r.gateway.is_some()));
    if wanted.source_hints {
        plan.hints = hints(&own, seen.ips);
    }
    plan.moved = own
        .into_iter()
        .filter(|r| !is_link_local(r.dst))
        .filter(|r| !wanted.source_hints || r.gateway.is_some())
        .cloned()
        .collect();
    plan
}

/// A route that the interface's plugins made. One with several next hops is nobody's alone.
fn is_own(route: &Route, index: u32) -> bool {
    route.table == TABLE_MAIN && route.oif == Some(index) && route.kind == RouteKind::UNICAST
}

/// Neighbours are found through it, whatever the source: it stays where it is.
fn is_link_local(dst: Cidr) -> bool {
    matches!(dst.network(), IpAddr::V6(addr) if (addr.segments()[0] & 0xffc0) == 0xfe80)
}

fn rule(rules: &[Rule], address: HostCidr, table: u32) -> Option<Rule> {
    let src = single(address.addr());
    let there = rules.iter().any(|r| r.src == Some(src) && r.table == table);
    let mut rule = Rule::from(src, table);
    rule.protocol = PROTOCOL;
    (!there).then_some(rule)
}

/// Only that address.
pub(super) fn single(addr: IpAddr) -> Cidr {
    Cidr::containing(addr, Family::of(addr).bits())
}

/// The table of an address: the one that a rule already sends it to, else the first free one.
fn table(seen: Seen, plan: &Plan, address: HostCidr) -> u32 {
    let src = single(address.addr());
    let mine = |r: &&Rule| r.src == Some(src) && r.table >= FIRST && r.protocol == PROTOCOL;
    if let Some(rule) = seen.rules.iter().find(mine) {
        return rule.table;
    }
    let ruled = |table: u32| {
        let mut rules = seen.rules.iter().chain(&plan.rules);
        rules.any(|r| r.table == table)
    };
    // Routes of this interface alone that no rule leads to: an ADD was killed there.
    let foreign = |table: u32| {
        let mut routes = seen.routes.iter();
        routes.any(|r| r.table == table && r.oif != Some(seen.index))
    };
    let taken = |table: u32| ruled(table) || foreign(table);
    (FIRST..=u32::MAX)
        .find(|table| !taken(*table))
        .unwrap_or(FIRST)
}

/// The interface's routes that belong to an address, in its table.
fn copies(own: &[&Route], ip: &Ip, table: u32, seen: Seen, wanted: &Wanted) -> Vec<Route> {
    let subnet = ip.address.subnet();
    let family = ip.address.family();
    let inside = |addr: Option<IpAddr>| addr.is_some_and(|a| subnet.contains(a));
    let belongs = |r: &&&Route| {
        let generic = r.prefsrc.is_none() && r.gateway.is_none();
        let overruled = r.dst.is_default() && chosen(wanted, family).is_some();
        r.family() == family && !overruled && (generic || inside(r.prefsrc) || inside(r.gateway))
    };
    let copy = |r: &&Route| (*r).clone().table(table);
    let mut copies: Vec<Route> = own.iter().filter(belongs).map(copy).collect();
    let is_subnet = |r: &Route| r.dst == subnet && r.gateway.is_none();
    let there = |r: &Route| r.table == table && is_subnet(r);
    let known = copies.iter().any(is_subnet) || seen.routes.iter().any(there);
    if subnet.prefix_len() < family.bits() && !known {
        // Gone from the main table, after an ADD before; without it the kernel takes no gateway.
        let mut route = Route::to(subnet).dev(seen.index).table(table);
        route.prefsrc = (family == Family::V4).then_some(ip.address.addr());
        copies.push(route);
    }
    copies
}

/// A default route through the gateway, where the interface's own routes bring none.
fn default_route(
    copied: &[Route],
    ip: &Ip,
    table: u32,
    seen: Seen,
    wanted: &Wanted,
) -> Option<Route> {
    let family = ip.address.family();
    let dst = default_of(family);
    let is_default = |r: &&Route| r.table == table && r.dst == dst;
    if copied.iter().any(|r| is_default(&r)) {
        return None;
    }
    let gateway = chosen(wanted, family)
        .or(ip.gateway)
        .or_else(|| other_end(ip.address))?;
    let mut there = seen.routes.iter().filter(is_default);
    if there.any(|r| r.gateway == Some(gateway)) {
        return None;
    }
    let mut route = Route::to(dst).via(gateway).dev(seen.index).table(table);
    route.onlink = !ip.address.subnet().contains(gateway);
    Some(route)
}

fn chosen(wanted: &Wanted, family: Family) -> Option<IpAddr> {
    let fits = |gateway: &&IpAddr| Family::of(**gateway) == family;
    wanted.gateways.iter().find(fits).copied()
}

/// The only other host of a /31, /30 or /127: on such a link there is one router it can be.
fn other_end(address: HostCidr) -> Option<IpAddr> {
    let family = address.family();
    let own = Family::number(address.addr());
    let first = Family::number(address.subnet().network());
    let other = match (family, address.prefix_len()) {
        (Family::V4, 31) | (Family::V6, 127) => own ^ 1,
        (Family::V4, 30) => match own - first {
            1 => first + 2,
            2 => first + 1,
            _ => return None,
        },
        _ => return None,
    };
    Some(family.addr(other))
}

/// The subnets' routes of the main table, with the address that packets without one get. Of two addresses in one subnet
/// the first counts.
fn hints(own: &[&Route], ips: &[Ip]) -> Vec<Route> {
    let mut hints: Vec<Route> = Vec::new();
    for ip in ips {
        let subnet = ip.address.subnet();
        let done = hints.iter().any(|r| r.dst == subnet);
        let connected = own.iter().find(|r| r.dst == subnet && r.gateway.is_none());
        if let Some(route) = connected
            && !done
            && route.prefsrc.is_none()
        {
            let mut hint = (*route).clone();
            hint.prefsrc = Some(ip.address.addr());
            hints.push(hint);
        }
    }
    hints
}

#[cfg(test)]
mod tests;
