//! Reading a link message.

use mooring_api::net::{
    Bridge, BridgePort, IpvlanFlag, IpvlanMode, Link, LinkKind, MacvlanMode, OperState,
    VlanProtocol,
};
use netlink_packet_route::link::LinkFlags;

use super::super::{vf, wire};

const ADDRESS: u16 = 1;
const IFNAME: u16 = 3;
const MTU: u16 = 4;
const LINK: u16 = 5;
const MASTER: u16 = 10;
const TXQLEN: u16 = 13;
const OPERSTATE: u16 = 16;
const LINKINFO: u16 = 18;
const IFALIAS: u16 = 20;
const NUM_VF: u16 = 21;
const VFINFO_LIST: u16 = 22;
const GROUP: u16 = 27;
const LINK_NETNSID: u16 = 37;
const PHYS_PORT_NAME: u16 = 38;
const MIN_MTU: u16 = 50;
const MAX_MTU: u16 = 51;
const PROP_LIST: u16 = 52;
const ALT_IFNAME: u16 = 53;
const PERM_ADDRESS: u16 = 54;
const PARENT_DEV_NAME: u16 = 56;
const INFO_KIND: u16 = 1;
const INFO_DATA: u16 = 2;
const INFO_PORT_KIND: u16 = 4;
const INFO_PORT_DATA: u16 = 5;
const HEADER: usize = 16;

/// Without a name it is no link, and the answer is `None`.
pub(in super::super) fn link(body: &[u8]) -> Option<Link> {
    let flags = LinkFlags::from_bits_retain(wire::word(body, 2)?);
    let mut link = Link {
        hardware: wire::u16(body.get(2..)?)?,
        index: wire::word(body, 1)?,
        up: flags.contains(LinkFlags::Up),
        carrier: flags.contains(LinkFlags::LowerUp),
        promiscuous: flags.contains(LinkFlags::Promisc),
        all_multicast: flags.contains(LinkFlags::Allmulti),
        arp: !flags.contains(LinkFlags::Noarp),
        multicast: flags.contains(LinkFlags::Multicast),
        ..Link::default()
    };
    for (kind, value) in wire::attributes(body.get(HEADER..)?) {
        match kind {
            IFNAME => link.name = wire::string(value),
            ADDRESS => link.mac = wire::mac(value),
            PERM_ADDRESS => link.permanent_mac = wire::mac(value),
            MTU => link.mtu = wire::u32(value)?,
            MIN_MTU => link.min_mtu = wire::u32(value)?,
            MAX_MTU => link.max_mtu = wire::u32(value)?,
            TXQLEN => link.txqlen = wire::u32(value)?,
            GROUP => link.group = wire::u32(value)?,
            OPERSTATE => link.state = state(wire::u8(value)?),
            IFALIAS => link.alias = Some(wire::string(value)).filter(|text| !text.is_empty()),
            MASTER => link.master = wire::u32(value).filter(|index| *index != 0),
            LINK => link.parent = wire::u32(value).filter(|index| *index != 0),
            LINK_NETNSID => link.parent_netns = wire::i32(value),
            PHYS_PORT_NAME => link.port_name = Some(wire::string(value)),
            PARENT_DEV_NAME => link.device = Some(wire::string(value)),
            NUM_VF => link.vf_count = wire::u32(value),
            VFINFO_LIST => link.vfs = vf::read(value),
            PROP_LIST => {
                let names = wire::attributes(value).filter(|(kind, _)| *kind == ALT_IFNAME);
                link.altnames = names.map(|(_, name)| wire::string(name)).collect();
            }
            LINKINFO => info(&mut link, value),
            _ => {}
        }
    }
    (!link.name.is_empty()).then_some(link)
}

fn state(number: u8) -> OperState {
    match number {
        1 => OperState::NotPresent,
        2 => OperState::Down,
        3 => OperState::LowerLayerDown,
        4 => OperState::Testing,
        5 => OperState::Dormant,
        6 => OperState::Up,
        _ => OperState::Unknown,
    }
}

fn info(link: &mut Link, nested: &[u8]) {
    let (mut word, mut data) = (String::new(), &[][..]);
    let (mut port, mut port_data) = (String::new(), &[][..]);
    for (kind, value) in wire::attributes(nested) {
        match kind {
            INFO_KIND => word = wire::string(value),
            INFO_DATA => data = value,
            INFO_PORT_KIND => port = wire::string(value),
            INFO_PORT_DATA => port_data = value,
            _ => {}
        }
    }
    link.kind = kind(word, data);
    if port == "bridge" {
        link.port = Some(bridge_port(port_data));
    }
}

fn kind(word: String, data: &[u8]) -> LinkKind {
    match word.as_str() {
        "" => LinkKind::Device,
        "veth" => LinkKind::Veth,
        "dummy" => LinkKind::Dummy,
        "bridge" => LinkKind::Bridge(bridge(data)),
        "macvlan" => macvlan(data),
        "ipvlan" => ipvlan(data),
        "vlan" => vlan(data),
        "vrf" => LinkKind::Vrf {
            table: wire::attributes(data)
                .find(|(kind, _)| *kind == 1)
                .and_then(|(_, value)| wire::u32(value))
                .unwrap_or(0),
        },
        _ => LinkKind::Other(word),
    }
}

fn macvlan(data: &[u8]) -> LinkKind {
    let (mut mode, mut broadcast_queue) = (MacvlanMode::default(), None);
    for (kind, value) in wire::attributes(data) {
        match (kind, wire::u32(value)) {
            (1, Some(number)) => {
                mode = match number {
                    1 => MacvlanMode::Private,
                    2 => MacvlanMode::Vepa,
                    8 => MacvlanMode::Passthru,
                    16 => MacvlanMode::Source,
                    _ => MacvlanMode::Bridge,
                }
            }
            (7, length) => broadcast_queue = length,
            _ => {}
        }
    }
    LinkKind::Macvlan {
        mode,
        broadcast_queue,
    }
}

fn ipvlan(data: &[u8]) -> LinkKind {
    let (mut mode, mut flag) = (IpvlanMode::default(), IpvlanFlag::default());
    for (kind, value) in wire::attributes(data) {
        match (kind, wire::u16(value)) {
            (1, Some(1)) => mode = IpvlanMode::L3,
            (1, Some(2)) => mode = IpvlanMode::L3s,
            (2, Some(bits)) if bits & 1 != 0 => flag = IpvlanFlag::Private,
            (2, Some(bits)) if bits & 2 != 0 => flag = IpvlanFlag::Vepa,
            _ => {}
        }
    }
    LinkKind::Ipvlan { mode, flag }
}

fn vlan(data: &[u8]) -> LinkKind {
    let (mut id, mut protocol) = (0, VlanProtocol::default());
    for (kind, value) in wire::attributes(data) {
        match kind {
            1 => id = wire::u16(value).unwrap_or(0),
            5 => protocol = ethertype(value).unwrap_or_default(),
            _ => {}
        }
    }
    LinkKind::Vlan { id, protocol }
}

/// Ethernet types travel in network byte order.
fn ethertype(value: &[u8]) -> Option<VlanProtocol> {
    VlanProtocol::of(u16::from_be(wire::u16(value)?))
}

fn bridge(data: &[u8]) -> Bridge {
    let mut options = Bridge::default();
    for (kind, value) in wire::attributes(data) {
        let on = wire::u8(value).map(|byte| byte != 0);
        match kind {
            1 => options.forward_delay = wire::u32(value),
            4 => options.ageing = wire::u32(value),
            5 => options.stp = wire::u32(value).map(|number| number != 0),
            7 => options.vlan_filtering = on,
            8 => options.vlan_protocol = ethertype(value),
            23 => options.multicast_snooping = on,
            39 => options.default_pvid = wire::u16(value),
            _ => {}
        }
    }
    options
}

/// The attributes of a port, in a link message and in a bridge's own dump alike.
pub(in super::super) fn bridge_port(data: &[u8]) -> BridgePort {
    let mut port = BridgePort::default();
    for (kind, value) in wire::attributes(data) {
        let on = wire::u8(value).map(|byte| byte != 0);
        match kind {
            2 => port.priority = wire::u16(value),
            3 => port.cost = wire::u32(value),
            4 => port.hairpin = on,
            5 => port.guard = on,
            6 => port.root_block = on,
            7 => port.fast_leave = on,
            8 => port.learning = on,
            9 => port.flood = on,
            10 => port.proxy_arp = on,
            27 => port.multicast_flood = on,
            30 => port.broadcast_flood = on,
            32 => port.neighbour_suppress = on,
            33 => port.isolated = on,
            39 => port.locked = on,
            _ => {}
        }
    }
    port
}
