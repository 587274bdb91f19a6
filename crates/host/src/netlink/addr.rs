//! Addresses on the wire.

use std::net::IpAddr;

use mooring_api::net::{Addr, AddrFlags, Scope};
use mooring_api::{Cidr, Family};
use netlink_packet_core::DefaultNla;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{
    AddressAttribute, AddressFlags, AddressHeaderFlags, AddressMessage, CacheInfo,
};

use super::{family, wire};

const ADDRESS: u16 = 1;
const LOCAL: u16 = 2;
const LABEL: u16 = 3;
const BROADCAST: u16 = 4;
const CACHEINFO: u16 = 6;
const FLAGS: u16 = 8;
const METRIC: u16 = 9;
const PROTOCOL: u16 = 11;
const HEADER: usize = 8;
/// A lifetime without end.
const FOREVER: u32 = u32::MAX;

type Field = fn(&mut AddrFlags) -> &mut bool;

/// The bits of the flags, each beside the field that holds it.
const BITS: [(AddressFlags, Field); 12] = [
    (AddressFlags::Secondary, |f| &mut f.secondary),
    (AddressFlags::Nodad, |f| &mut f.nodad),
    (AddressFlags::Optimistic, |f| &mut f.optimistic),
    (AddressFlags::Dadfailed, |f| &mut f.dad_failed),
    (AddressFlags::Homeaddress, |f| &mut f.home),
    (AddressFlags::Deprecated, |f| &mut f.deprecated),
    (AddressFlags::Tentative, |f| &mut f.tentative),
    (AddressFlags::Permanent, |f| &mut f.permanent),
    (AddressFlags::Managetempaddr, |f| &mut f.manage_temp),
    (AddressFlags::Noprefixroute, |f| &mut f.no_prefix_route),
    (AddressFlags::Mcautojoin, |f| &mut f.mc_autojoin),
    (AddressFlags::StablePrivacy, |f| &mut f.stable_privacy),
];

pub(super) fn dump(index: Option<u32>) -> RouteNetlinkMessage {
    let mut message = AddressMessage::default();
    // With strict checking the index filters.
    message.header.index = index.unwrap_or(0);
    RouteNetlinkMessage::GetAddress(message)
}

pub(super) fn add(addr: &Addr) -> AddressMessage {
    let mut message = delete(addr);
    let attributes = &mut message.attributes;
    if let Some(broadcast) = addr.broadcast {
        attributes.push(AddressAttribute::Broadcast(broadcast));
    }
    let mut settable = addr.flags.settable();
    let mut flags = AddressFlags::empty();
    for (bit, field) in BITS {
        if *field(&mut settable) {
            flags |= bit;
        }
    }
    if !flags.is_empty() {
        attributes.push(AddressAttribute::Flags(flags));
        message.header.flags = AddressHeaderFlags::from_bits_truncate(low_byte(flags.bits()));
    }
    if let Some(metric) = addr.metric {
        attributes.push(AddressAttribute::RoutePriority(metric));
    }
    if addr.valid.is_some() || addr.preferred.is_some() {
        let mut lifetime = CacheInfo::default();
        lifetime.ifa_valid = addr.valid.unwrap_or(FOREVER);
        lifetime.ifa_preferred = addr.preferred.unwrap_or(FOREVER).min(lifetime.ifa_valid);
        attributes.push(AddressAttribute::CacheInfo(lifetime));
    }
    if addr.protocol != 0 {
        attributes.push(AddressAttribute::Other(DefaultNla::new(
            PROTOCOL,
            vec![addr.protocol],
        )));
    }
    message
}

/// What names an address: enough to take it away.
pub(super) fn delete(addr: &Addr) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.family = family(addr.address.family());
    message.header.prefix_len = addr.address.prefix_len();
    message.header.index = addr.index;
    message.header.scope = addr.scope.0.into();
    let local = addr.address.addr();
    message.attributes = vec![
        AddressAttribute::Local(local),
        AddressAttribute::Address(addr.peer.unwrap_or(local)),
    ];
    if let Some(label) = &addr.label {
        message
            .attributes
            .push(AddressAttribute::Label(label.clone()));
    }
    message
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the header holds the low eight flags"
)]
fn low_byte(bits: u32) -> u8 {
    bits as u8
}

pub(super) fn read(body: &[u8]) -> Option<Addr> {
    let prefix_len = *body.get(1)?;
    let mut bits = u32::from(*body.get(2)?);
    let scope = Scope(*body.get(3)?);
    let index = wire::word(body, 1)?;
    let (mut address, mut local, mut label, mut broadcast) = (None, None, None, None);
    let (mut metric, mut valid, mut preferred, mut protocol) = (None, None, None, 0);
    for (kind, value) in wire::attributes(body.get(HEADER..)?) {
        match kind {
            ADDRESS => address = wire::ip(value),
            LOCAL => local = wire::ip(value),
            LABEL => label = Some(wire::string(value)),
            BROADCAST => {
                if let Some(IpAddr::V4(found)) = wire::ip(value) {
                    broadcast = Some(found);
                }
            }
            CACHEINFO => {
                preferred = wire::word(value, 0).filter(|s| *s != FOREVER);
                valid = wire::word(value, 1).filter(|s| *s != FOREVER);
            }
            FLAGS => bits = wire::u32(value)?,
            METRIC => metric = wire::u32(value).filter(|m| *m != 0),
            PROTOCOL => protocol = wire::u8(value)?,
            _ => {}
        }
    }
    // IPv6 names a plain address once; IPv4 twice, and differently when there is a peer.
    let ours = local.or(address)?;
    let peer = address.filter(|a| *a != ours);
    let mut flags = AddrFlags::default();
    for (bit, field) in BITS {
        *field(&mut flags) = AddressFlags::from_bits_retain(bits).contains(bit);
    }
    (prefix_len <= Family::of(ours).bits()).then(|| Addr {
        index,
        address: Cidr::containing(ours, prefix_len).host(ours),
        peer,
        broadcast,
        label,
        scope,
        flags,
        metric,
        valid,
        preferred,
        protocol,
    })
}
