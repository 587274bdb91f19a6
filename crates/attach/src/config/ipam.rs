//! The IPAM section: which keys each plugin reads, and what each one does with several ranges.
//!
//! Easy to get wrong: "several ranges" means three things. host-local takes one address per *set* and
//! falls back inside a set; whereabouts takes one address from *each*; static has none. So ranges are
//! grouped by family here, and whereabouts gets one hull per family with the gaps excluded.

use std::net::IpAddr;

use mooring_api::{AddrRange, Cidr, Family, HostCidr};
use serde_json::{Map, Value, json};

use super::{ConfigError, Route, routes};
use crate::config;

/// How the interface gets its addresses.
#[derive(Clone, Debug, PartialEq)]
pub enum Ipam {
    /// The addresses stand here.
    Static {
        /// Each with its gateway, which alone adds no route.
        addresses: Vec<(HostCidr, Option<IpAddr>)>,
        /// Routes, only where asked.
        routes: Vec<Route>,
        /// Name servers.
        dns: Dns,
    },
    /// The addresses stand in the pod's annotation.
    StaticFromAnnotation {
        /// Routes; each needs its `gw`, since the annotation carries no gateway.
        routes: Vec<Route>,
        /// Name servers.
        dns: Dns,
    },
    /// The reference plugin's files on each node: ranges must be the node's own.
    HostLocal {
        /// Where addresses are taken from.
        ranges: Vec<Range>,
        /// Routes, only where asked.
        routes: Vec<Route>,
    },
    /// whereabouts: one pool per cluster.
    Whereabouts {
        /// Where addresses are taken from; one subnet per family.
        ranges: Vec<Range>,
        /// Never handed out.
        exclude: Vec<AddrRange>,
        /// Keeps equal ranges of two networks apart.
        network_name: Option<String>,
        /// Routes, only where asked.
        routes: Vec<Route>,
    },
    /// Our own plugin: the agent finds the address by identity.
    Moor {
        /// Whose address.
        of: Box<MoorRef>,
        /// Routes, only where asked.
        routes: Vec<Route>,
        /// Name servers.
        dns: Dns,
    },
    /// No addresses: a link only.
    None,
}

/// Name servers and search domains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dns {
    /// Servers.
    pub nameservers: Vec<IpAddr>,
    /// Search domains.
    pub search: Vec<String>,
}

/// Addresses that a plugin hands out itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Range {
    /// The subnet; its length is the address's length.
    pub subnet: Cidr,
    /// First to last, inside the subnet.
    pub range: AddrRange,
    /// The subnet's gateway.
    pub gateway: Option<IpAddr>,
}

/// The identity that the agent rebuilds (DESIGN §5); empty fields are not written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MoorRef {
    /// Workload cluster.
    pub cluster: String,
    /// The package's minted id.
    pub package: String,
    /// Network instance.
    pub instance: String,
    /// The Interface's (or IPClaim's) name.
    pub interface: String,
    /// Its namespace as written.
    pub namespace: String,
    /// `Kind/name` as written on the Interface.
    pub workload: String,
}

impl Ipam {
    /// Whether the annotation carries the addresses.
    pub fn from_annotation(&self) -> bool {
        matches!(self, Self::StaticFromAnnotation { .. })
    }

    pub(super) fn object(&self) -> Result<Option<Map<String, Value>>, ConfigError> {
        let mut out = Section::default();
        match self {
            Self::Static {
                addresses,
                routes,
                dns,
            } => {
                if addresses.is_empty() {
                    return Err(empty("static", "address"));
                }
                out.set("type", "static".into());
                let list: Result<Vec<Value>, _> = addresses.iter().map(address).collect();
                out.set("addresses", Value::Array(list?));
                out.routes(routes)?;
                out.dns(dns);
            }
            Self::StaticFromAnnotation { routes, dns } => {
                out.set("type", "static".into());
                out.routes(routes)?;
                out.dns(dns);
            }
            Self::HostLocal { ranges, routes } => {
                out.set("type", "host-local".into());
                out.set("ranges", host_local(ranges)?);
                out.routes(routes)?;
            }
            Self::Whereabouts {
                ranges,
                exclude,
                network_name,
                routes,
            } => {
                out.set("type", "whereabouts".into());
                whereabouts(&mut out, ranges, exclude)?;
                if let Some(name) = network_name {
                    out.set("network_name", name.as_str().into());
                }
                out.routes(routes)?;
            }
            Self::Moor { of, routes, dns } => {
                out.set("type", "moor".into());
                for (key, value) in [
                    ("cluster", &of.cluster),
                    ("package", &of.package),
                    ("instance", &of.instance),
                    ("interface", &of.interface),
                    ("namespace", &of.namespace),
                    ("workload", &of.workload),
                ] {
                    if !value.is_empty() {
                        out.set(key, value.as_str().into());
                    }
                }
                out.routes(routes)?;
                out.dns(dns);
            }
            Self::None => return Ok(None),
        }
        Ok(Some(out.0))
    }
}

#[derive(Default)]
struct Section(Map<String, Value>);

impl Section {
    fn set(&mut self, key: &str, value: Value) {
        self.0.insert(key.to_owned(), value);
    }

    fn routes(&mut self, list: &[Route]) -> Result<(), ConfigError> {
        if !list.is_empty() {
            self.set("routes", routes(list)?);
        }
        Ok(())
    }

    fn dns(&mut self, dns: &Dns) {
        let mut map = Map::new();
        if !dns.nameservers.is_empty() {
            let list: Vec<String> = dns.nameservers.iter().map(ToString::to_string).collect();
            map.insert("nameservers".into(), list.into());
        }
        if !dns.search.is_empty() {
            map.insert("search".into(), dns.search.clone().into());
        }
        if !map.is_empty() {
            self.set("dns", Value::Object(map));
        }
    }
}

fn empty(ipam: &'static str, what: &'static str) -> ConfigError {
    ConfigError::Empty { ipam, what }
}

fn address((host, gateway): &(HostCidr, Option<IpAddr>)) -> Result<Value, ConfigError> {
    let mut map = Map::new();
    map.insert("address".into(), host.to_string().into());
    if let Some(gateway) = *gateway {
        gateway_inside(gateway, host.subnet())?;
        map.insert("gateway".into(), gateway.to_string().into());
    }
    Ok(Value::Object(map))
}

fn gateway_inside(gateway: IpAddr, subnet: Cidr) -> Result<(), ConfigError> {
    if subnet.contains(gateway) {
        Ok(())
    } else {
        Err(ConfigError::GatewayOutside { gateway, subnet })
    }
}

fn check_range(range: &Range) -> Result<(), ConfigError> {
    let Range {
        subnet,
        range,
        gateway,
    } = *range;
    if !subnet.contains(range.first()) || !subnet.contains(range.last()) {
        let range = range.to_string();
        return Err(ConfigError::RangeOutside { range, subnet });
    }
    gateway.map_or(Ok(()), |gateway| gateway_inside(gateway, subnet))
}

/// One set per family, so the pod gets one address of each; the ranges of a set are tried in turn.
fn host_local(ranges: &[Range]) -> Result<Value, ConfigError> {
    let mut sets = Vec::new();
    for family in [Family::V4, Family::V6] {
        let mut set = Vec::new();
        for range in ranges.iter().filter(|r| r.subnet.family() == family) {
            check_range(range)?;
            let mut map = Map::new();
            map.insert("subnet".into(), range.subnet.to_string().into());
            map.insert("rangeStart".into(), range.range.first().to_string().into());
            map.insert("rangeEnd".into(), range.range.last().to_string().into());
            if let Some(gateway) = range.gateway {
                map.insert("gateway".into(), gateway.to_string().into());
            }
            set.push(Value::Object(map));
        }
        if !set.is_empty() {
            sets.push(Value::Array(set));
        }
    }
    if sets.is_empty() {
        return Err(empty("host-local", "range"));
    }
    Ok(Value::Array(sets))
}

fn whereabouts(
    out: &mut Section,
    ranges: &[Range],
    exclude: &[AddrRange],
) -> Result<(), ConfigError> {
    let mut hulls = Vec::new();
    let mut gateways = Vec::new();
    for family in [Family::V4, Family::V6] {
        let mut mine: Vec<&Range> = ranges
            .iter()
            .filter(|r| r.subnet.family() == family)
            .collect();
        mine.sort_by_key(|r| r.range);
        let Some(first) = mine.first().copied() else {
            continue;
        };
        let mut gaps = Vec::new();
        let mut last = first.range.last();
        for range in &mine {
            check_range(range)?;
            if range.subnet != first.subnet {
                return Err(ConfigError::TwoSubnets {
                    first: first.subnet,
                    second: range.subnet,
                });
            }
            gaps.extend(gap(last, range.range.first()));
            last = last.max(range.range.last());
        }
        let hull = AddrRange::new(first.range.first(), last)
            .expect("the highest end is not below the lowest start");
        let gateway = mine.iter().find_map(|r| r.gateway);
        // whereabouts would hand out the gateway's address.
        gaps.extend(gateway.map(AddrRange::single));
        gaps.extend(exclude.iter().filter(|e| e.family() == family));
        gateways.extend(gateway);

        let mut map = Map::new();
        map.insert("range".into(), first.subnet.to_string().into());
        map.insert("range_start".into(), hull.first().to_string().into());
        map.insert("range_end".into(), hull.last().to_string().into());
        let mut blocks: Vec<Cidr> = gaps
            .iter()
            .filter(|g| g.overlaps(&hull))
            .flat_map(config::blocks)
            .collect();
        blocks.sort();
        blocks.dedup();
        if !blocks.is_empty() {
            let shown: Vec<String> = blocks.iter().map(ToString::to_string).collect();
            map.insert("exclude".into(), shown.into());
        }
        hulls.push(map);
    }
    // It has one gateway for all families, and copies it to every address: none is better than a wrong one.
    let gateway = (hulls.len() == 1).then(|| gateways.first()).flatten();
    match hulls.len() {
        0 => return Err(empty("whereabouts", "range")),
        1 => out.0.extend(hulls.remove(0)),
        _ => out.set("ipRanges", json!(hulls)),
    }
    if let Some(gateway) = gateway {
        out.set("gateway", gateway.to_string().into());
    }
    Ok(())
}

/// What lies between two ranges.
fn gap(after: IpAddr, before: IpAddr) -> Option<AddrRange> {
    let family = Family::of(after);
    let first = Family::number(after).checked_add(1)?;
    let last = Family::number(before).checked_sub(1)?;
    AddrRange::new(family.addr(first), family.addr(last)).ok()
}
