//! Virtual functions on the wire.
//!
//! No NIC that can be emulated has VF link state or 802.1ad, so the bytes of those messages are tested here.

use mooring_api::net::{Vf, VfChange, VfLinkState, VfRate, VfVlan, VlanProtocol};
use netlink_packet_route::link::{
    self, LinkAttribute, LinkMessage, LinkVfInfo, VfInfo, VfInfoLinkState, VfInfoMac, VfInfoRate,
    VfInfoSpoofCheck, VfInfoTrust, VfInfoVlan, VfVlanInfo,
};

use super::wire;

const MAC: u16 = 1;
const VLAN: u16 = 2;
const TX_RATE: u16 = 3;
const SPOOFCHK: u16 = 4;
const LINK_STATE: u16 = 5;
const RATE: u16 = 6;
const RSS_QUERY: u16 = 7;
const TRUST: u16 = 9;
const VLAN_LIST: u16 = 12;

pub(super) fn change(pf: u32, vf: u32, change: &VfChange) -> LinkMessage {
    let mut info = Vec::new();
    if let Some(mac) = change.mac {
        info.push(VfInfo::Mac(VfInfoMac::new(vf, &mac.octets())));
    }
    if let Some(vlan) = change.vlan {
        info.push(match vlan.protocol {
            // The older attribute: drivers without VLAN lists know only this one.
            VlanProtocol::Dot1q => {
                VfInfo::Vlan(VfInfoVlan::new(vf, vlan.id.into(), vlan.qos.into()))
            }
            protocol @ VlanProtocol::Dot1ad => {
                VfInfo::VlanList(vec![link::VfVlan::Info(VfVlanInfo::new(
                    vf,
                    vlan.id.into(),
                    vlan.qos.into(),
                    protocol.ethertype().into(),
                ))])
            }
        });
    }
    if let Some(rate) = change.rate {
        info.push(VfInfo::Rate(VfInfoRate::new(vf, rate.min, rate.max)));
    }
    if let Some(on) = change.spoof_check {
        info.push(VfInfo::SpoofCheck(VfInfoSpoofCheck::new(vf, on)));
    }
    if let Some(on) = change.trust {
        info.push(VfInfo::Trust(VfInfoTrust::new(vf, on)));
    }
    if let Some(state) = change.link_state {
        let state = match state {
            VfLinkState::Auto => link::VfLinkState::Auto,
            VfLinkState::Enable => link::VfLinkState::Enable,
            VfLinkState::Disable => link::VfLinkState::Disable,
        };
        info.push(VfInfo::LinkState(VfInfoLinkState::new(vf, state)));
    }
    let mut message = LinkMessage::default();
    message.header.index = pf;
    message
        .attributes
        .push(LinkAttribute::VfInfoList(vec![LinkVfInfo(info)]));
    message
}

/// The VFs of a PF's `IFLA_VFINFO_LIST`.
pub(super) fn read(list: &[u8]) -> Vec<Vf> {
    wire::attributes(list)
        .filter_map(|(_, one)| read_one(one))
        .collect()
}

fn read_one(nested: &[u8]) -> Option<Vf> {
    let mut vf = Vf::default();
    let mut named = false;
    let mut protocol = VlanProtocol::default();
    for (kind, value) in wire::attributes(nested) {
        let second = wire::word(value, 1);
        // All ones: the driver does not say.
        let on = second.filter(|n| *n != u32::MAX).map(|n| n != 0);
        match kind {
            MAC => {
                vf.number = wire::word(value, 0)?;
                named = true;
                vf.mac = wire::mac(value.get(4..10)?);
            }
            VLAN => {
                vf.vlan.id = u16::try_from(second?).unwrap_or(0);
                vf.vlan.qos = u8::try_from(wire::word(value, 2)?).unwrap_or(0);
            }
            VLAN_LIST => {
                let first = wire::attributes(value).next();
                protocol = first.and_then(|(_, info)| tag(info)).unwrap_or_default();
            }
            TX_RATE if vf.rate == VfRate::default() => vf.rate.max = second?,
            RATE => {
                vf.rate = VfRate {
                    min: second?,
                    max: wire::word(value, 2)?,
                }
            }
            SPOOFCHK => vf.spoof_check = on,
            TRUST => vf.trust = on,
            RSS_QUERY => vf.rss_query = on,
            LINK_STATE => {
                vf.link_state = match second? {
                    0 => Some(VfLinkState::Auto),
                    1 => Some(VfLinkState::Enable),
                    2 => Some(VfLinkState::Disable),
                    _ => None,
                }
            }
            _ => {}
        }
    }
    vf.vlan = VfVlan {
        protocol,
        ..vf.vlan
    };
    named.then_some(vf)
}

fn tag(info: &[u8]) -> Option<VlanProtocol> {
    VlanProtocol::of(u16::from_be(wire::u16(info.get(12..)?)?))
}

#[cfg(test)]
mod tests;
