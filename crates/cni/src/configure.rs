//! What every main plugin does with its interface at the end: addresses, up, routes.
//!
//! ```text
//!  CniResult ── plan (pure) ──► sysctls ─ probe, if wanted ─ one batch: addresses, up, routes ─► what may be announced
//! ```
//!
//! Called by the main plugins' ADD, and [`check_configured`] by their CHECK. The rules are the reference's: an
//! address belongs to the interface its index names; a route without a router goes via the first gateway of
//! its family, else over the link; several routes to one destination stand side by side, in IPv4 the newest first.
//!
//! One thing differs: nobody waits for duplicate address detection. Whoever wrote a static address or a pool into a
//! configuration of ours has decided whose it is: there is none, and the address is announced. One that another IPAM
//! plugin gave is *optimistic*: it can be used at once, and the kernel still tells when another host has it ([`unique`]).
//!
//! Easy to get wrong: an address without an interface index is configured by nobody, so a plugin that took
//! a result from IPAM sets the indexes first ([`CniResult::assign`]).

#[cfg(test)]
mod tests;
mod unique;

use std::net::IpAddr;

use mooring_api::net::{Addr, Link, LinkChange, Route, Scope};
use mooring_api::{Family, HostCidr};
use mooring_attach::cni::{CniError, CniResult, CniRoute, Ip};
use mooring_host::{Change, Netlink, NetlinkError, Netns, sysctl};

use crate::call::Call;
use unique::Dad;

pub(crate) use unique::{Ready, Wish};

/// How to configure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options<'a> {
    /// What the configuration says about the uniqueness of its addresses.
    pub(crate) wish: Wish,
    /// Whether the kernel looks for another host with an address where the configuration does not say.
    pub(crate) detect: bool,
    /// The link to probe through, with its namespace, where answers do not come to the interface itself.
    pub(crate) below: Option<(&'a Netns, &'a str)>,
    /// Parameters of the interface that are set before it has addresses, as in `("ipv4", "arp_notify", "1")`. Nothing
    /// depends on one that this kernel lacks.
    pub(crate) sysctls: &'a [(&'a str, &'a str, &'a str)],
}

impl Options<'_> {
    /// What the configuration says; where it says nothing, detection of what another program gave.
    pub(crate) fn of(call: &Call) -> Result<Self, CniError> {
        Ok(Self {
            wish: Wish::read(call.config())?,
            detect: !call.has_own_ipam(),
            below: None,
            sysctls: &[],
        })
    }
}

/// The kernel tells neighbours by itself when the MAC changes later or the link is set up again.
pub(crate) const NOTIFY: [(&str, &str, &str); 2] =
    [("ipv4", "arp_notify", "1"), ("ipv6", "ndisc_notify", "1")];

/// Gives the interface its addresses, brings it up and adds the routes. `netlink` is a socket in the namespace.
pub(crate) fn configure(
    netns: &Netns,
    netlink: &mut Netlink,
    link: &Link,
    result: &CniResult,
    options: Options<'_>,
) -> Result<Ready, CniError> {
    let ifname = link.name.as_str();
    let ips = own_ips(ifname, result)?;
    let v6 = ips.iter().any(|ip| ip.address.family() == Family::V6);
    let mut dad = options.wish.dad(options.detect, false);
    if v6 || !options.sysctls.is_empty() {
        dad = prepare(netns, ifname, options.sysctls, v6.then_some(dad))?.unwrap_or(dad);
    }
    // Sysctls first: a link that runtimes left without IPv6 takes no multicast, and an answer is multicast.
    if options.wish.blocks() && !ips.is_empty() {
        up(netlink, link)?;
        let through = options.below.unwrap_or((netns, ifname));
        if options.wish.ask(through, &ips)? && dad == Dad::Optimistic {
            dad = options.wish.dad(options.detect, true);
        }
    }
    let mut batch = netlink.batch();
    for change in plan(link.index, &ips, &result.routes, dad) {
        batch.push(&change);
    }
    for verdict in batch.send_each() {
        match verdict {
            // A repeated ADD finds its own routes.
            Err(e) if !e.is_present() => return Err(refused(ifname, &e)),
            _ => {}
        }
    }
    Ok(Ready::of(&ips, dad))
}

/// Whether the interface is there with the result's addresses and routes; all that is missing, at once.
pub(crate) fn check_configured(
    netns: &Netns,
    ifname: &str,
    result: &CniResult,
) -> Result<Link, CniError> {
    let mut netlink = netns
        .netlink()
        .map_err(|e| CniError::netns(netns.path().display(), "cannot work in it").because(&e))?;
    let link = find(&mut netlink, ifname)?;
    let read = |e: NetlinkError| refused(ifname, &e);
    let addrs = netlink.addrs(Some(link.index)).map_err(read)?;
    let routes = netlink.routes(Some(link.index)).map_err(read)?;
    let ips = own_ips(ifname, result)?;
    let missing = missing(&ips, &result.routes, &addrs, &routes);
    if missing.is_empty() {
        return Ok(link);
    }
    Err(CniError::internal(format!(
        "{ifname} is not as it was made: {}",
        missing.join("; ")
    )))
}

fn find(netlink: &mut Netlink, ifname: &str) -> Result<Link, CniError> {
    let link = netlink.link(ifname).map_err(|e| refused(ifname, &e))?;
    link.filter(|link| link.name == ifname)
        .ok_or_else(|| CniError::internal(format!("failed to find interface {ifname:?}")))
}

fn up(netlink: &mut Netlink, link: &Link) -> Result<(), CniError> {
    let up = Change::SetLink {
        index: link.index,
        change: LinkChange::up(),
    };
    let done = netlink.apply(&[up]);
    done.map_err(|e| refused(&link.name, &e))
}

fn refused(ifname: &str, error: &NetlinkError) -> CniError {
    CniError::internal(format!("failed to configure interface {ifname:?}")).because(error)
}

/// The addresses of this interface. An index that names another interface is an error, none at all is
/// somebody else's business.
fn own_ips<'a>(ifname: &str, result: &'a CniResult) -> Result<Vec<&'a Ip>, CniError> {
    let mut ips = Vec::new();
    for ip in &result.ips {
        let Some(index) = ip.interface else { continue };
        match result.interfaces.get(index) {
            Some(interface) if interface.name == ifname => ips.push(ip),
            Some(interface) => {
                return Err(CniError::internal(format!(
                    "failed to add IP addr {} to {ifname:?}: it belongs to {:?}",
                    ip.address, interface.name
                )));
            }
            None => {
                return Err(CniError::internal(format!(
                    "failed to add IP addr {} to {ifname:?}: the result has no interface {index}",
                    ip.address
                )));
            }
        }
    }
    Ok(ips)
}

/// All parameters in one visit to the namespace. `v6` says what is wanted for IPv6 addresses, where there are any; the answer
/// what this kernel can do of it.
fn prepare(
    netns: &Netns,
    ifname: &str,
    sysctls: &[(&str, &str, &str)],
    v6: Option<Dad>,
) -> Result<Option<Dad>, CniError> {
    let done = netns.run(|| {
        for (family, leaf, value) in sysctls {
            let _ = sysctl::write_here(&format!("net/{family}/conf/{ifname}/{leaf}"), value);
        }
        v6.map(|dad| prepare_v6(ifname, dad)).transpose()
    });
    let switched =
        done.map_err(|e| CniError::netns(netns.path().display(), "cannot enter it").because(&e))?;
    switched.map_err(|e: sysctl::SysctlError| {
        CniError::internal(format!("failed to enable IPv6 for interface {ifname:?}")).because(&e)
    })
}

/// Runtimes switch IPv6 off in new namespaces; addresses would be refused. In the calling thread's namespace.
fn prepare_v6(ifname: &str, dad: Dad) -> Result<Dad, sysctl::SysctlError> {
    for name in ["lo", ifname] {
        let key = format!("net/ipv6/conf/{name}/disable_ipv6");
        match sysctl::read_here(&key) {
            Ok(value) if value == "0" => {}
            Ok(_) => sysctl::write_here(&key, "0")?,
            // The address will say what is wrong with a kernel without IPv6.
            Err(_) => {}
        }
    }
    // Without it a link that goes down for a moment loses its addresses.
    let keep = format!("net/ipv6/conf/{ifname}/keep_addr_on_down");
    let _ = sysctl::write_here(&keep, "1");
    if dad == Dad::Settled {
        return Ok(dad);
    }
    let optimistic = format!("net/ipv6/conf/{ifname}/optimistic_dad");
    match sysctl::write_here(&optimistic, "1") {
        Ok(()) => Ok(Dad::Optimistic),
        // A kernel built without it: rather no detection than an address that cannot be bound
        // for two seconds.
        Err(_) => Ok(Dad::Settled),
    }
}

/// The batch: addresses, up, routes.
fn plan(index: u32, ips: &[&Ip], routes: &[CniRoute], dad: Dad) -> Vec<Change<'static>> {
    let mut changes = Vec::new();
    for ip in ips {
        let addr = Addr::new(index, ip.address);
        let addr = match (ip.address.family(), dad) {
            (Family::V4, _) => addr,
            (Family::V6, Dad::Optimistic) => addr.optimistic(),
            (Family::V6, Dad::Settled) => addr.nodad(),
        };
        // Set, not add: an ADD that is repeated after a crash finds its own addresses.
        changes.push(Change::SetAddr(addr));
    }
    changes.push(Change::SetLink {
        index,
        change: LinkChange::up(),
    });
    for route in routes {
        // A default route of a further interface is meant to win over the one that the pod has.
        changes.push(Change::PrependRoute(planned(index, ips, route)));
    }
    changes
}

fn planned(index: u32, ips: &[&Ip], wanted: &CniRoute) -> Route {
    let mut route = Route::to(wanted.dst).dev(index);
    // A route whose scope is the link has no router.
    if wanted.scope != Some(Scope::LINK.0) {
        route.gateway = wanted.gw.or_else(|| gateway(ips, wanted.dst.family()));
    }
    if let Some(table) = wanted.table {
        route.table = table;
    }
    route.metric = wanted.priority;
    route.mtu = wanted.mtu;
    route.advmss = wanted.advmss;
    route.scope = wanted.scope.map(Scope);
    route
}

/// The first gateway of a family.
fn gateway(ips: &[&Ip], family: Family) -> Option<IpAddr> {
    let mut gateways = ips.iter().filter_map(|ip| ip.gateway);
    gateways.find(|gateway| Family::of(*gateway) == family)
}

/// What CHECK has to complain about.
///
/// Routes are looked for in every table, because a chained plugin may have moved them (sbr, vrf).
fn missing(ips: &[&Ip], wanted: &[CniRoute], addrs: &[Addr], routes: &[Route]) -> Vec<String> {
    let mut missing = Vec::new();
    for ip in ips {
        let address = ip.address;
        match addrs.iter().find(|addr| addr.address == address) {
            None => missing.push(format!("address {address} is gone")),
            Some(addr) if addr.flags.dad_failed => {
                missing.push(format!("address {address} is used by another host"));
            }
            Some(_) if !connected(address, routes) => {
                missing.push(format!("the route to {} is gone", address.subnet()));
            }
            Some(_) => {}
        }
    }
    for route in wanted {
        let like = |seen: &&Route| {
            seen.dst == route.dst
                && route.gw.is_none_or(|gw| leads_via(seen, gw))
                && route.table.is_none_or(|table| seen.table == table)
        };
        if !routes.iter().any(|seen| like(&seen)) {
            let via = route.gw.map(|gw| format!(" via {gw}")).unwrap_or_default();
            missing.push(format!("the route to {}{via} is gone", route.dst));
        }
    }
    missing
}

fn leads_via(route: &Route, gateway: IpAddr) -> bool {
    let hops = route.next_hops.iter().filter_map(|hop| hop.gateway);
    route
        .gateway
        .into_iter()
        .chain(hops)
        .any(|gw| gw == gateway)
}

/// A single address has no subnet to lead to.
fn connected(address: HostCidr, routes: &[Route]) -> bool {
    let single = address.prefix_len() == address.family().bits();
    single || routes.iter().any(|route| route.dst == address.subnet())
}
