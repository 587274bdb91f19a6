//! Routes on the wire.

use std::net::IpAddr;

use mooring_api::net::{NextHop, Route, RouteKind, RouteProtocol, Scope};
use mooring_api::{Cidr, Family};
use netlink_packet_core::DefaultNla;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::route::{
    RouteAttribute, RouteFlags, RouteMessage, RouteMetric, RouteNextHop, RouteNextHopFlags,
    RouteVia,
};

use super::{family, family_of, wire};

const DST: u16 = 1;
const SRC: u16 = 2;
const OIF: u16 = 4;
const GATEWAY: u16 = 5;
const PRIORITY: u16 = 6;
const PREFSRC: u16 = 7;
const METRICS: u16 = 8;
const MULTIPATH: u16 = 9;
const CACHEINFO: u16 = 12;
const TABLE: u16 = 15;
const VIA: u16 = 18;
/// Kept as they came: realm, router preference, encapsulation and its type, TTL propagation.
const KEPT: [u16; 5] = [11, 20, 21, 22, 26];
const METRIC_MTU: u16 = 2;
const METRIC_ADVMSS: u16 = 8;
const HEADER: usize = 12;
const HOP_HEADER: usize = 8;
/// Ticks of `rta_expires` per second, for user space on every architecture we build for.
const TICKS: u32 = 100;

pub(super) fn dump(of: Family, index: Option<u32>) -> RouteNetlinkMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = family(of);
    if let Some(index) = index {
        message.attributes.push(RouteAttribute::Oif(index));
    }
    RouteNetlinkMessage::GetRoute(message)
}

pub(super) fn add(route: &Route) -> RouteMessage {
    let mut message = key(route);
    message.header.protocol = route.protocol.0.into();
    message.header.scope = route.effective_scope().0.into();
    let attributes = &mut message.attributes;
    if let Some(prefsrc) = route.prefsrc {
        attributes.push(RouteAttribute::PrefSource(prefsrc.into()));
    }
    let mut metrics: Vec<RouteMetric> = Vec::new();
    metrics.extend(route.mtu.map(RouteMetric::Mtu));
    metrics.extend(route.advmss.map(RouteMetric::Advmss));
    for (kind, value) in &route.metrics {
        let attribute = DefaultNla::new(*kind, value.to_ne_bytes().to_vec());
        metrics.push(RouteMetric::Other(attribute));
    }
    if !metrics.is_empty() {
        attributes.push(RouteAttribute::Metrics(metrics));
    }
    if let Some(seconds) = route.expires {
        attributes.push(RouteAttribute::Expires(seconds));
    }
    attributes.extend(route.extra.iter().map(other));
    message
}

/// Enough to take a route away: scope and protocol match whatever is there.
pub(super) fn delete(route: &Route) -> RouteMessage {
    let mut message = key(route);
    message.header.scope = Scope::NOWHERE.0.into();
    message
}

fn key(route: &Route) -> RouteMessage {
    let mut message = RouteMessage::default();
    let header = &mut message.header;
    header.address_family = family(route.family());
    header.destination_prefix_length = route.dst.prefix_len();
    header.source_prefix_length = route.src.map_or(0, |src| src.prefix_len());
    header.tos = route.tos;
    header.kind = route.kind.0.into();
    if route.onlink {
        header.flags |= RouteFlags::Onlink;
    }
    let attributes = &mut message.attributes;
    // A table above 255 does not fit the header; the attribute holds every one.
    attributes.push(RouteAttribute::Table(route.table));
    if route.dst.prefix_len() > 0 {
        attributes.push(RouteAttribute::Destination(route.dst.network().into()));
    }
    if let Some(src) = route.src {
        attributes.push(RouteAttribute::Source(src.network().into()));
    }
    if let Some(metric) = route.metric {
        attributes.push(RouteAttribute::Priority(metric));
    }
    if let Some(index) = route.oif {
        attributes.push(RouteAttribute::Oif(index));
    }
    attributes.extend(route.gateway.map(|router| gateway(route.family(), router)));
    if !route.next_hops.is_empty() {
        let hops = route
            .next_hops
            .iter()
            .map(|hop| next_hop(route.family(), hop));
        attributes.push(RouteAttribute::MultiPath(hops.collect()));
    }
    message
}

fn gateway(of: Family, router: IpAddr) -> RouteAttribute {
    match router {
        // IPv4 through an IPv6 router has an attribute of its own.
        IpAddr::V6(router) if of == Family::V4 => RouteAttribute::Via(RouteVia::Inet6(router)),
        router => RouteAttribute::Gateway(router.into()),
    }
}

fn next_hop(of: Family, hop: &NextHop) -> RouteNextHop {
    let mut message = RouteNextHop::default();
    message.interface_index = hop.oif;
    // On the wire 0 is a share of one.
    message.hops = u8::try_from(hop.weight.saturating_sub(1)).unwrap_or(u8::MAX);
    if hop.onlink {
        message.flags |= RouteNextHopFlags::Onlink;
    }
    message
        .attributes
        .extend(hop.gateway.map(|router| gateway(of, router)));
    message.attributes.extend(hop.extra.iter().map(other));
    message
}

fn other(kept: &mooring_api::net::Attribute) -> RouteAttribute {
    RouteAttribute::Other(DefaultNla::new(kept.kind, kept.value.clone()))
}

pub(super) fn read(body: &[u8]) -> Option<Route> {
    let family = family_of(*body.first()?)?;
    let (dst_len, src_len) = (*body.get(1)?, *body.get(2)?);
    let flags = RouteFlags::from_bits_retain(wire::word(body, 2)?);
    // A cached copy of a route is no route of anybody's.
    if flags.contains(RouteFlags::Cloned) {
        return None;
    }
    let any = match family {
        Family::V4 => IpAddr::from([0; 4]),
        Family::V6 => IpAddr::from([0; 16]),
    };
    let mut route = Route::to(Cidr::containing(any, 0));
    route.tos = *body.get(3)?;
    route.table = u32::from(*body.get(4)?);
    route.protocol = RouteProtocol(*body.get(5)?);
    route.scope = Some(Scope(*body.get(6)?));
    route.kind = RouteKind(*body.get(7)?);
    route.onlink = flags.contains(RouteFlags::Onlink);
    let attributes = body.get(HEADER..)?;
    for (kind, value) in wire::attributes(attributes) {
        match kind {
            DST => route.dst = Cidr::containing(wire::ip(value)?, dst_len),
            SRC => route.src = Some(Cidr::containing(wire::ip(value)?, src_len)),
            OIF => route.oif = wire::u32(value),
            GATEWAY => route.gateway = wire::ip(value),
            VIA => route.gateway = via(value),
            PRIORITY => route.metric = wire::u32(value),
            PREFSRC => route.prefsrc = wire::ip(value),
            TABLE => route.table = wire::u32(value)?,
            METRICS => read_metrics(&mut route, value),
            MULTIPATH => route.next_hops = read_hops(value),
            CACHEINFO if family == Family::V6 => {
                let ticks = wire::word(value, 2).filter(|t| t.cast_signed() > 0);
                route.expires = ticks.map(|t| t.div_ceil(TICKS));
            }
            _ => {}
        }
    }
    route.extra = wire::kept(attributes, |kind| KEPT.contains(&kind));
    Some(route)
}

fn via(value: &[u8]) -> Option<IpAddr> {
    wire::ip(value.get(2..)?)
}

fn read_metrics(route: &mut Route, nested: &[u8]) {
    for (kind, value) in wire::attributes(nested) {
        // Only the congestion algorithm is no number.
        let Ok(number) = <[u8; 4]>::try_from(value).map(u32::from_ne_bytes) else {
            continue;
        };
        match kind {
            METRIC_MTU => route.mtu = Some(number),
            METRIC_ADVMSS => route.advmss = Some(number),
            kind => {
                route.metrics.insert(kind, number);
            }
        }
    }
}

fn read_hops(mut bytes: &[u8]) -> Vec<NextHop> {
    let mut hops = Vec::new();
    while let Some((length, hop)) = read_hop(bytes) {
        hops.push(hop);
        bytes = bytes.get(wire::aligned(length)..).unwrap_or_default();
    }
    hops
}

fn read_hop(bytes: &[u8]) -> Option<(usize, NextHop)> {
    let length = usize::from(wire::u16(bytes)?);
    let flags = RouteNextHopFlags::from_bits_retain(*bytes.get(2)?);
    let weight = u16::from(*bytes.get(3)?) + 1;
    let oif = wire::word(bytes, 1)?;
    let attributes = bytes.get(HOP_HEADER..length)?;
    let mut gateway = None;
    for (kind, value) in wire::attributes(attributes) {
        match kind {
            GATEWAY => gateway = wire::ip(value),
            VIA => gateway = via(value),
            _ => {}
        }
    }
    let hop = NextHop {
        oif,
        gateway,
        weight,
        onlink: flags.contains(RouteNextHopFlags::Onlink),
        extra: wire::kept(attributes, |kind| KEPT.contains(&kind)),
    };
    Some((length, hop))
}
