//! Rules on the wire.

use std::net::IpAddr;

use mooring_api::Cidr;
use mooring_api::net::{Rule, RuleAction};
use netlink_packet_core::DefaultNla;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::rule::{RuleAttribute, RuleFlags, RuleMessage};

use super::{family, family_of, wire};

const DST: u16 = 1;
const SRC: u16 = 2;
const IIF: u16 = 3;
const PRIORITY: u16 = 6;
const FWMARK: u16 = 10;
const TABLE: u16 = 15;
const FWMASK: u16 = 16;
const OIF: u16 = 17;
const PROTOCOL: u16 = 21;
/// Kept as they came: goto, realm, tunnel, suppression, l3mdev, uid range, IP protocol, ports, DSCP, flow label.
const KEPT: [u16; 16] = [
    4, 11, 12, 13, 14, 19, 20, 22, 23, 24, 25, 26, 27, 28, 29, 30,
];
/// "No suppression" is all ones, and says nothing.
const SUPPRESS: [u16; 2] = [13, 14];
const HEADER: usize = 12;

/// Of every family.
pub(super) fn dump() -> RouteNetlinkMessage {
    RouteNetlinkMessage::GetRule(RuleMessage::default())
}

pub(super) fn encode(rule: &Rule) -> RuleMessage {
    let mut message = RuleMessage::default();
    let header = &mut message.header;
    header.family = family(rule.family);
    header.src_len = rule.src.map_or(0, |net| net.prefix_len());
    header.dst_len = rule.dst.map_or(0, |net| net.prefix_len());
    header.tos = rule.tos;
    header.action = rule.action.0.into();
    if rule.invert {
        header.flags |= RuleFlags::Invert;
    }
    let attributes = &mut message.attributes;
    if let Some(src) = rule.src {
        attributes.push(RuleAttribute::Source(src.network()));
    }
    if let Some(dst) = rule.dst {
        attributes.push(RuleAttribute::Destination(dst.network()));
    }
    if let Some(priority) = rule.priority {
        attributes.push(RuleAttribute::Priority(priority));
    }
    if let Some(iif) = &rule.iif {
        attributes.push(RuleAttribute::Iifname(iif.clone()));
    }
    if let Some(oif) = &rule.oif {
        attributes.push(RuleAttribute::Oifname(oif.clone()));
    }
    if let Some(mark) = rule.fwmark {
        attributes.push(RuleAttribute::FwMark(mark));
    }
    if let Some(mask) = rule.fwmask {
        attributes.push(RuleAttribute::FwMask(mask));
    }
    if rule.table != 0 {
        // A table above 255 does not fit the header; the attribute holds every one.
        attributes.push(RuleAttribute::Table(rule.table));
    }
    if rule.protocol != 0 {
        attributes.push(RuleAttribute::Protocol(rule.protocol.into()));
    }
    for kept in &rule.extra {
        let attribute = DefaultNla::new(kept.kind, kept.value.clone());
        attributes.push(RuleAttribute::Other(attribute));
    }
    message
}

pub(super) fn read(body: &[u8]) -> Option<Rule> {
    let family = family_of(*body.first()?)?;
    let (dst_len, src_len) = (*body.get(1)?, *body.get(2)?);
    let flags = RuleFlags::from_bits_retain(wire::word(body, 2)?);
    let mut rule = Rule::lookup(family, u32::from(*body.get(4)?));
    rule.tos = *body.get(3)?;
    rule.action = RuleAction(*body.get(7)?);
    rule.invert = flags.contains(RuleFlags::Invert);
    let network = |value: &[u8], len: u8| {
        let addr: IpAddr = wire::ip(value)?;
        (len > 0).then(|| Cidr::containing(addr, len))
    };
    // A rule without a priority attribute has priority 0.
    rule.priority = Some(0);
    let attributes = body.get(HEADER..)?;
    for (kind, value) in wire::attributes(attributes) {
        match kind {
            DST => rule.dst = network(value, dst_len),
            SRC => rule.src = network(value, src_len),
            IIF => rule.iif = Some(wire::string(value)),
            OIF => rule.oif = Some(wire::string(value)),
            PRIORITY => rule.priority = wire::u32(value),
            FWMARK => rule.fwmark = wire::u32(value),
            FWMASK => rule.fwmask = wire::u32(value),
            TABLE => rule.table = wire::u32(value)?,
            PROTOCOL => rule.protocol = wire::u8(value)?,
            _ => {}
        }
    }
    rule.extra = wire::kept(attributes, |kind| KEPT.contains(&kind));
    rule.extra.retain(|kept| {
        !(SUPPRESS.contains(&kept.kind) && wire::u32(&kept.value) == Some(u32::MAX))
    });
    Some(rule)
}
