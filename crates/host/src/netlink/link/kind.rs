//! The part of a link message that says what the link is.

use mooring_api::net::{Bridge, IpvlanFlag, IpvlanMode, LinkKind, MacvlanMode, VlanProtocol};
use netlink_packet_route::link::{
    BridgeStpState, InfoBridge, InfoData, InfoIpVlan, InfoKind, InfoMacVlan, InfoVlan, InfoVrf,
    IpVlanFlags, IpVlanMode, LinkInfo, MacVlanMode,
};

/// Kind and data; the data of a veth is its peer, which the caller adds.
pub(super) fn info(kind: &LinkKind) -> Vec<LinkInfo> {
    let mut info = vec![LinkInfo::Kind(InfoKind::from(kind.word()))];
    let data = match kind {
        LinkKind::Bridge(options) => Some(InfoData::Bridge(bridge(options))).filter(is_some),
        LinkKind::Macvlan {
            mode,
            broadcast_queue,
        } => {
            let mut data = vec![InfoMacVlan::Mode(macvlan(*mode))];
            data.extend(broadcast_queue.map(InfoMacVlan::BcQueueLen));
            Some(InfoData::MacVlan(data))
        }
        LinkKind::Ipvlan { mode, flag } => Some(InfoData::IpVlan(vec![
            InfoIpVlan::Mode(match mode {
                IpvlanMode::L2 => IpVlanMode::L2,
                IpvlanMode::L3 => IpVlanMode::L3,
                IpvlanMode::L3s => IpVlanMode::L3S,
            }),
            InfoIpVlan::Flags(match flag {
                IpvlanFlag::Bridge => IpVlanFlags::empty(),
                IpvlanFlag::Private => IpVlanFlags::Private,
                IpvlanFlag::Vepa => IpVlanFlags::Vepa,
            }),
        ])),
        LinkKind::Vlan { id, protocol } => Some(InfoData::Vlan(vec![
            InfoVlan::Id(*id),
            InfoVlan::Protocol(tag(*protocol)),
        ])),
        LinkKind::Vrf { table } => Some(InfoData::Vrf(vec![InfoVrf::TableId(*table)])),
        LinkKind::Device | LinkKind::Veth | LinkKind::Dummy | LinkKind::Other(_) => None,
    };
    info.extend(data.map(LinkInfo::Data));
    info
}

fn is_some(data: &InfoData) -> bool {
    !matches!(data, InfoData::Bridge(options) if options.is_empty())
}

fn tag(protocol: VlanProtocol) -> netlink_packet_route::link::VlanProtocol {
    protocol.ethertype().into()
}

fn macvlan(mode: MacvlanMode) -> MacVlanMode {
    match mode {
        MacvlanMode::Private => MacVlanMode::Private,
        MacvlanMode::Vepa => MacVlanMode::Vepa,
        MacvlanMode::Bridge => MacVlanMode::Bridge,
        MacvlanMode::Passthru => MacVlanMode::Passthrough,
        MacvlanMode::Source => MacVlanMode::Source,
    }
}

fn bridge(options: &Bridge) -> Vec<InfoBridge> {
    let mut data = Vec::new();
    // The default VLAN is set before filtering starts: the kernel refuses to change it after ports have used it.
    data.extend(options.default_pvid.map(InfoBridge::VlanDefaultPvid));
    data.extend(options.vlan_filtering.map(InfoBridge::VlanFiltering));
    data.extend(
        options
            .vlan_protocol
            .map(|p| InfoBridge::VlanProtocol(tag(p))),
    );
    data.extend(options.stp.map(|on| {
        InfoBridge::StpState(if on {
            BridgeStpState::KernelStp
        } else {
            BridgeStpState::Disabled
        })
    }));
    data.extend(
        options
            .multicast_snooping
            .map(InfoBridge::MulticastSnooping),
    );
    data.extend(options.ageing.map(InfoBridge::AgeingTime));
    data.extend(options.forward_delay.map(InfoBridge::ForwardDelay));
    data
}
