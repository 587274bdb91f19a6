//! Neighbours on the wire.

use mooring_api::Family;
use mooring_api::net::{Neighbour, NeighbourState};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::neighbour::{NeighbourAttribute, NeighbourFlags, NeighbourMessage};

use super::{family, wire};

const DST: u16 = 1;
const LLADDR: u16 = 2;
const HEADER: usize = 12;

/// Of every family. The proxies stand in a table of their own.
pub(super) fn dump(index: Option<u32>, proxies: bool) -> RouteNetlinkMessage {
    let mut message = NeighbourMessage::default();
    if proxies {
        message.header.flags = NeighbourFlags::Proxy;
    }
    if let Some(index) = index {
        message.attributes.push(NeighbourAttribute::IfIndex(index));
    }
    RouteNetlinkMessage::GetNeighbour(message)
}

pub(super) fn encode(neighbour: &Neighbour) -> NeighbourMessage {
    let mut message = NeighbourMessage::default();
    message.header.family = family(Family::of(neighbour.address));
    message.header.ifindex = neighbour.index;
    message.header.state = neighbour.state.0.into();
    if neighbour.proxy {
        message.header.flags |= NeighbourFlags::Proxy;
    }
    if neighbour.router {
        message.header.flags |= NeighbourFlags::Router;
    }
    message.attributes = vec![NeighbourAttribute::Destination(neighbour.address.into())];
    if let Some(mac) = neighbour.mac {
        let bytes = mac.octets().to_vec();
        message
            .attributes
            .push(NeighbourAttribute::LinkLayerAddress(bytes));
    }
    message
}

pub(super) fn read(body: &[u8]) -> Option<Neighbour> {
    let index = wire::word(body, 1)?;
    let state = NeighbourState(wire::u16(body.get(8..)?)?);
    let flags = NeighbourFlags::from_bits_retain(*body.get(10)?);
    let (mut address, mut mac) = (None, None);
    for (kind, value) in wire::attributes(body.get(HEADER..)?) {
        match kind {
            DST => address = wire::ip(value),
            LLADDR => mac = wire::mac(value),
            _ => {}
        }
    }
    let proxy = flags.contains(NeighbourFlags::Proxy);
    Some(Neighbour {
        index,
        address: address?,
        mac,
        // The kernel shows no state for a proxy, which always stays.
        state: if proxy {
            NeighbourState::PERMANENT
        } else {
            state
        },
        proxy,
        router: flags.contains(NeighbourFlags::Router),
    })
}
