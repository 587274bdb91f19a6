//! Bridge ports and their VLANs on the wire.

use mooring_api::net::{BridgePort, BridgeVlan};
use netlink_packet_core::DefaultNla;
use netlink_packet_route::link::{
    AfSpecBridge, BridgeFlag, BridgeVlanInfo, BridgeVlanInfoFlags, LinkAttribute, LinkExtentMask,
    LinkMessage, LinkProtoInfoBridge,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::wire;

const MASTER: u16 = 10;
const AF_SPEC: u16 = 26;
const VLAN_INFO: u16 = 2;
const HEADER: usize = 16;

pub(super) fn port(index: u32, port: &BridgePort) -> LinkMessage {
    let mut message = bridge_message(index);
    let mut options = Vec::new();
    let mut put = |kind: u16, bytes: Option<Vec<u8>>| {
        options.extend(bytes.map(|b| LinkProtoInfoBridge::Other(DefaultNla::new(kind, b))));
    };
    let flag = |on: Option<bool>| on.map(|on| vec![u8::from(on)]);
    put(2, port.priority.map(|n| n.to_ne_bytes().to_vec()));
    put(3, port.cost.map(|n| n.to_ne_bytes().to_vec()));
    put(4, flag(port.hairpin));
    put(5, flag(port.guard));
    put(6, flag(port.root_block));
    put(7, flag(port.fast_leave));
    put(8, flag(port.learning));
    put(9, flag(port.flood));
    put(10, flag(port.proxy_arp));
    put(27, flag(port.multicast_flood));
    put(30, flag(port.broadcast_flood));
    put(32, flag(port.neighbour_suppress));
    put(33, flag(port.isolated));
    put(39, flag(port.locked));
    message
        .attributes
        .push(LinkAttribute::ProtoInfoBridge(options));
    message
}

pub(super) fn vlan(vlan: &BridgeVlan) -> LinkMessage {
    let mut message = bridge_message(vlan.index);
    let mut flags = BridgeVlanInfoFlags::empty();
    flags.set(BridgeVlanInfoFlags::Pvid, vlan.pvid);
    flags.set(BridgeVlanInfoFlags::Untagged, vlan.untagged);
    flags.set(BridgeVlanInfoFlags::Brentry, vlan.on_bridge);
    let mut spec = Vec::new();
    if vlan.on_bridge {
        spec.push(AfSpecBridge::Flags(BridgeFlag::LowerDev));
    }
    let mut info = |vid, more| {
        let flags = flags | more;
        spec.push(AfSpecBridge::VlanInfo(BridgeVlanInfo { flags, vid }));
    };
    if vlan.first == vlan.last {
        info(vlan.first, BridgeVlanInfoFlags::empty());
    } else {
        info(vlan.first, BridgeVlanInfoFlags::RangeBegin);
        info(vlan.last, BridgeVlanInfoFlags::RangeEnd);
    }
    message.attributes.push(LinkAttribute::AfSpecBridge(spec));
    message
}

fn bridge_message(index: u32) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.header.interface_family = AddressFamily::Bridge;
    message.header.index = index;
    message
}

pub(super) fn dump() -> RouteNetlinkMessage {
    let mut message = bridge_message(0);
    let mask = vec![LinkExtentMask::BrvlanCompressed];
    message.attributes.push(LinkAttribute::ExtMask(mask));
    RouteNetlinkMessage::GetLink(message)
}

/// The VLANs of one port, or of a bridge, which names no master or itself.
pub(super) fn read(body: &[u8]) -> Option<Vec<BridgeVlan>> {
    let index = wire::word(body, 1)?;
    let attributes = body.get(HEADER..)?;
    let mut on_bridge = true;
    let mut vlans = Vec::new();
    let mut begun = None;
    for (kind, value) in wire::attributes(attributes) {
        match kind {
            MASTER => on_bridge = wire::u32(value)? == index,
            AF_SPEC => {
                for (_, info) in wire::attributes(value).filter(|(kind, _)| *kind == VLAN_INFO) {
                    let flags = BridgeVlanInfoFlags::from_bits_retain(wire::u16(info)?);
                    let vid = wire::u16(info.get(2..)?)?;
                    if flags.contains(BridgeVlanInfoFlags::RangeBegin) {
                        begun = Some(vid);
                        continue;
                    }
                    vlans.push(BridgeVlan {
                        index,
                        first: begun.take().unwrap_or(vid),
                        last: vid,
                        pvid: flags.contains(BridgeVlanInfoFlags::Pvid),
                        untagged: flags.contains(BridgeVlanInfoFlags::Untagged),
                        on_bridge: false,
                    });
                }
            }
            _ => {}
        }
    }
    for vlan in &mut vlans {
        vlan.on_bridge = on_bridge;
    }
    Some(vlans)
}
