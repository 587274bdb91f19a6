//! Which addresses a NAD carries: those it names, and those its IPAM plugin hands out by itself.
//!
//! Easy to get wrong: a range is what the plugin would really hand out. host-local skips the gateway
//! and starts at the first host; whereabouts skips only what is excluded.

use std::net::IpAddr;

use mooring_api::{AddrRange, Cidr, Family, HostCidr};
use serde_json::{Map, Value};

use super::{list, plugins, text};
use crate::cni::member;

/// Something a NAD carries, and where in its configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Used {
    /// The address or range.
    pub what: Use,
    /// JSON path in `spec.config`: `ipam.addresses[0].address`.
    pub path: String,
}

/// An address, or addresses to be handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Use {
    /// The pod gets this one.
    Address(HostCidr),
    /// A pod gets one of these.
    Range {
        /// First to last.
        range: AddrRange,
        /// Their subnet.
        subnet: Cidr,
    },
}

/// The addresses and ranges of a configuration. What cannot be read is left out: [`super::check`] says so.
pub fn addresses(config: &str) -> Vec<Used> {
    let Ok(config) = serde_json::from_str::<Value>(config) else {
        return Vec::new();
    };
    let mut out = Vec::new();
    for (path, plugin) in plugins(&config) {
        if let Some(ipam) = member(plugin, "ipam").and_then(Value::as_object) {
            ipam_uses(&format!("{path}ipam"), ipam, &mut out);
        }
    }
    out
}

fn ipam_uses(path: &str, ipam: &Map<String, Value>, out: &mut Vec<Used>) {
    match text(ipam, "type") {
        Some("static") => static_uses(path, ipam, out),
        Some("host-local") => {
            // The old style, which is one more set.
            host_local_uses(path, ipam, out);
            for (i, set) in list(ipam, "ranges").iter().enumerate() {
                for (j, range) in set.as_array().into_iter().flatten().enumerate() {
                    if let Some(range) = range.as_object() {
                        host_local_uses(&format!("{path}.ranges[{i}][{j}]"), range, out);
                    }
                }
            }
        }
        Some("whereabouts") => {
            static_uses(path, ipam, out);
            whereabouts_uses(path, ipam, out);
            for (i, range) in list(ipam, "ipRanges").iter().enumerate() {
                if let Some(range) = range.as_object() {
                    whereabouts_uses(&format!("{path}.ipRanges[{i}]"), range, out);
                }
            }
        }
        _ => {}
    }
}

fn static_uses(path: &str, ipam: &Map<String, Value>, out: &mut Vec<Used>) {
    for (i, entry) in list(ipam, "addresses").iter().enumerate() {
        let address = entry.as_object().and_then(|entry| text(entry, "address"));
        if let Some(Ok(host)) = address.map(str::parse) {
            out.push(Used {
                what: Use::Address(host),
                path: format!("{path}.addresses[{i}].address"),
            });
        }
    }
}

fn host_local_uses(path: &str, range: &Map<String, Value>, out: &mut Vec<Used>) {
    let Some(Ok(subnet)) = text(range, "subnet").map(str::parse::<Cidr>) else {
        return;
    };
    let end = |key: &str| text(range, key)?.parse::<IpAddr>().ok();
    let gateway = end("gateway").unwrap_or(subnet.hosts().first());
    let hull = hull(subnet, end("rangeStart"), end("rangeEnd"));
    let path = format!("{path}.subnet");
    push(out, &path, subnet, hull, &[AddrRange::single(gateway)]);
}

fn whereabouts_uses(path: &str, range: &Map<String, Value>, out: &mut Vec<Used>) {
    let Some(written) = text(range, "range") else {
        return;
    };
    // A network, host bits allowed, or `first-last/length`.
    let (subnet, mut start, mut last) = match written.split_once('-') {
        Some((first, rest)) => {
            let (Ok(first), Ok(last)) = (first.trim().parse::<IpAddr>(), rest.parse::<HostCidr>())
            else {
                return;
            };
            (last.subnet(), Some(first), Some(last.addr()))
        }
        None => match written.parse::<HostCidr>() {
            Ok(host) => (host.subnet(), None, None),
            Err(_) => return,
        },
    };
    let end = |key: &str| text(range, key)?.parse::<IpAddr>().ok();
    start = end("range_start").filter(|a| subnet.contains(*a)).or(start);
    last = end("range_end").filter(|a| subnet.contains(*a)).or(last);
    let exclude: Vec<AddrRange> = list(range, "exclude")
        .iter()
        .filter_map(|e| e.as_str()?.parse().ok())
        .collect();
    let path = format!("{path}.range");
    push(out, &path, subnet, hull(subnet, start, last), &exclude);
}

/// The plugin's defaults: first host to last host.
fn hull(subnet: Cidr, first: Option<IpAddr>, last: Option<IpAddr>) -> Option<AddrRange> {
    let hosts = subnet.hosts();
    AddrRange::new(first.unwrap_or(hosts.first()), last.unwrap_or(hosts.last())).ok()
}

fn push(
    out: &mut Vec<Used>,
    path: &str,
    subnet: Cidr,
    hull: Option<AddrRange>,
    holes: &[AddrRange],
) {
    let Some(hull) = hull else { return };
    for range in without(hull, holes) {
        out.push(Used {
            what: Use::Range { range, subnet },
            path: path.to_owned(),
        });
    }
}

/// What is left of a range, in order.
fn without(hull: AddrRange, holes: &[AddrRange]) -> Vec<AddrRange> {
    let family = hull.family();
    let mut holes: Vec<&AddrRange> = holes.iter().filter(|h| h.overlaps(&hull)).collect();
    holes.sort();
    let last = Family::number(hull.last());
    let mut next = Some(Family::number(hull.first()));
    let mut out = Vec::new();
    let mut keep = |first: u128, last: u128| {
        let range = AddrRange::new(family.addr(first), family.addr(last));
        out.push(range.expect("the caller made sure that first is not above last"));
    };
    for hole in holes {
        let Some(first) = next else { break };
        let start = Family::number(hole.first());
        if start > first {
            keep(first, start - 1);
        }
        let after = Family::number(hole.last()).checked_add(1);
        next = after.map(|after| after.max(first)).filter(|a| *a <= last);
    }
    if let Some(first) = next {
        keep(first, last);
    }
    out
}
