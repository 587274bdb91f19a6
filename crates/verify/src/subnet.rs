//! Addresses and their subnet: outside of it, or an address of the subnet that no pod may have.
//!
//! Easy to get wrong: which address is the router's is only known inside one NAD. A pod may well be the
//! router of somebody else's subnet, so nothing is compared between NADs.

use std::net::IpAddr;

use mooring_api::{Cidr, Code, Finding, HostCidr, Severity};
use mooring_attach::nad::Use;
use mooring_attach::networks::Entry;
use serde_json::Value;

use crate::carried::host;
use crate::report::Found;
use crate::world::{Nad, World, list, word};

pub(crate) fn judge(world: &World<'_>, out: &mut Vec<Found>) {
    for nad in &world.nads {
        let gateways = gateways(nad);
        let mut subnets = Vec::new();
        let mut first = None;
        for used in &nad.uses {
            let (wrong, subnet) = match used.what {
                Use::Address(host) => (unusable(host, &gateways), host.subnet()),
                Use::Range { range, subnet } => {
                    let inside = |a: &IpAddr| range.contains(*a);
                    let bad = ends(subnet).into_iter().find(|(a, _)| inside(a));
                    let gateway = gateways.iter().find(|a| inside(a)).map(|a| (*a, "gateway"));
                    (bad.or(gateway).map(|(a, what)| (a, what, subnet)), subnet)
                }
            };
            subnets.push(subnet);
            first = first.or(wrong);
        }
        if let Some(wrong) = first {
            out.push(Found::at(not_usable(wrong), nad.origin, "spec.config"));
        }
        if !subnets.is_empty()
            && let Some((router, dst)) = unreachable(nad, &subnets)
        {
            let finding = no_way(router, dst, &subnets);
            out.push(Found::at(finding, nad.origin, "spec.config"));
        }
    }
    for pod in &world.pods {
        for (_, entry, nad) in pod.entries() {
            let nad = nad.map(|nad| &world.nads[nad]);
            if let Some(finding) = entry_finding(entry, nad) {
                out.push(Found::at(finding, pod.origin, &pod.field));
            }
        }
    }
}

/// The first thing wrong with the addresses of one attachment.
fn entry_finding(entry: &Entry, nad: Option<&Nad<'_>>) -> Option<Finding> {
    let hosts: Vec<HostCidr> = entry.ips().into_iter().filter_map(host).collect();
    if hosts.is_empty() {
        return None;
    }
    let gateways = nad.map(gateways).unwrap_or_default();
    if let Some(wrong) = hosts.iter().find_map(|host| unusable(*host, &gateways)) {
        return Some(not_usable(wrong));
    }
    let nad = nad?;
    let name = entry.name();
    match nad.ipam() {
        "static" => {
            let bare = entry
                .ips()
                .into_iter()
                .find(|ip| ip.parse::<IpAddr>().is_ok());
            if let Some(ip) = bare {
                let message = format!(
                    "{ip} has no length, and static IPAM refuses it: the pod does not start"
                );
                let help =
                    format!("write {ip}/LENGTH with the length of the subnet, such as {ip}/24");
                return Some(Finding::error(Code::InvalidNetworksAnnotation, message).help(help));
            }
            let subnets: Vec<Cidr> = hosts.iter().map(HostCidr::subnet).collect();
            // The NAD's own addresses were judged with the NAD.
            let own = nad.has_address();
            let (router, dst) = unreachable(nad, &subnets).filter(|_| !own)?;
            Some(no_way(router, dst, &subnets))
        }
        ipam @ ("host-local" | "whereabouts") => outside(&hosts, nad, name, ipam),
        _ => None,
    }
}

/// host-local refuses what is not in its ranges; whereabouts hands out what it is asked for, unseen.
fn outside(hosts: &[HostCidr], nad: &Nad<'_>, name: &str, ipam: &str) -> Option<Finding> {
    let mut ranges = Vec::new();
    let mut subnets: Vec<String> = Vec::new();
    for used in &nad.uses {
        if let Use::Range { range, subnet } = used.what {
            ranges.push((range, subnet));
            subnets.push(subnet.to_string());
        }
    }
    subnets.dedup();
    if ranges.is_empty() {
        return None;
    }
    let inside = |addr: IpAddr| {
        let strict = ipam == "host-local";
        let mut all = ranges.iter();
        all.any(|(range, subnet)| {
            if strict {
                range.contains(addr)
            } else {
                subnet.contains(addr)
            }
        })
    };
    let addr = hosts
        .iter()
        .map(HostCidr::addr)
        .find(|addr| !inside(*addr))?;
    let near = ranges.iter().find(|(_, subnet)| subnet.contains(addr));
    let (what, severity) = match (near, ipam) {
        (Some((range, _)), _) => (format!("{range}, which {name} hands out"), Severity::Error),
        (None, "host-local") => (
            format!("{}, the subnet of {name}", subnets.join(" and ")),
            Severity::Error,
        ),
        (None, _) => (
            format!("{}, the subnet of {name}", subnets.join(" and ")),
            Severity::Warning,
        ),
    };
    let then = match severity {
        Severity::Error => "the pod does not start",
        _ => "the pod reaches nobody there",
    };
    let finding = Finding::error(
        Code::AddressOutsideSubnet,
        format!("{addr} is outside {what}: {then}"),
    );
    let finding = Finding {
        severity,
        ..finding
    };
    Some(finding.help("ask for an address of the range, or widen the range of the NAD"))
}

/// The network and broadcast addresses, which IPv6 does not have and a point-to-point link does not need.
fn ends(subnet: Cidr) -> Vec<(IpAddr, &'static str)> {
    if !subnet.network().is_ipv4() || subnet.prefix_len() > 30 {
        return Vec::new();
    }
    vec![(subnet.network(), "network"), (subnet.last(), "broadcast")]
}

type Wrong = (IpAddr, &'static str, Cidr);

fn unusable(host: HostCidr, gateways: &[IpAddr]) -> Option<Wrong> {
    let (addr, subnet) = (host.addr(), host.subnet());
    let end = ends(subnet).into_iter().find(|(end, _)| *end == addr);
    let gateway = gateways.contains(&addr).then_some((addr, "gateway"));
    end.or(gateway).map(|(addr, what)| (addr, what, subnet))
}

fn not_usable((addr, what, subnet): Wrong) -> Finding {
    let message = format!("{addr} is the {what} address of {subnet}, and a pod would get it");
    let help = match what {
        "gateway" => "exclude it from the range, or choose another address for the pod",
        _ => "choose an address between the first and the last host of the subnet",
    };
    Finding::error(Code::AddressNotUsable, message).help(help)
}

/// Every router that the IPAM sections name for a subnet.
fn gateways(nad: &Nad<'_>) -> Vec<IpAddr> {
    let mut out = Vec::new();
    for ipam in nad.ipams() {
        let sets = list(ipam, "ranges")
            .iter()
            .filter_map(Value::as_array)
            .flatten();
        let entries = list(ipam, "addresses").iter().chain(sets);
        let entries = entries
            .chain(list(ipam, "ipRanges"))
            .filter_map(Value::as_object);
        let all = std::iter::once(ipam).chain(entries);
        out.extend(all.filter_map(|map| word(map, "gateway")?.parse::<IpAddr>().ok()));
    }
    out
}

/// A router that is on none of the interface's subnets, with where its route leads.
fn unreachable(nad: &Nad<'_>, subnets: &[Cidr]) -> Option<(IpAddr, String)> {
    let mut routes = Vec::new();
    for ipam in nad.ipams() {
        for route in list(ipam, "routes") {
            let text = |key: &str| word(route.as_object()?, key);
            let Some(Ok(dst)) = text("dst").map(str::parse::<HostCidr>) else {
                continue;
            };
            let router = text("gw").and_then(|gw| gw.parse::<IpAddr>().ok());
            routes.push((dst.subnet(), router));
        }
    }
    let on_link = |router: IpAddr| {
        let is_local = matches!(router, IpAddr::V6(v6) if v6.is_unicast_link_local());
        let mut links = routes.iter().filter(|(_, via)| via.is_none());
        is_local
            || subnets.iter().any(|s| s.contains(router))
            || links.any(|(dst, _)| !dst.is_default() && dst.contains(router))
    };
    let mut via = routes.iter().filter_map(|(dst, via)| Some((*dst, (*via)?)));
    let (dst, router) = via.find(|(_, router)| !on_link(*router))?;
    Some((router, dst.to_string()))
}

fn no_way(router: IpAddr, dst: String, subnets: &[Cidr]) -> Finding {
    let subnets: Vec<String> = subnets.iter().map(ToString::to_string).collect();
    let message = format!(
        "the route to {dst} goes via {router}, which is outside {}: the pod does not start",
        subnets.join(" and ")
    );
    Finding::error(Code::AddressOutsideSubnet, message)
        .help("name a router of the interface's own subnet")
}
