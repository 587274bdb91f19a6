//! The bytes of VF messages, as the kernel's `if_link.h` lays them out, on a little-endian machine.

use netlink_packet_route::RouteNetlinkMessage;

use super::super::socket::bytes_of;
use super::*;

/// What follows the link header: list, info and attribute headers, then the structure.
fn attribute(wanted: &VfChange) -> Vec<u8> {
    let bytes = bytes_of(RouteNetlinkMessage::SetLink(change(9, 3, wanted)));
    let (header, rest) = bytes.split_at(16);
    assert_eq!(header[4..8], 9u32.to_ne_bytes(), "the PF");
    rest.to_vec()
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// Headers of IFLA_VFINFO_LIST (22), IFLA_VF_INFO (1) and one attribute around a structure.
fn wrapped(kind: u16, structure: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let length = |n: usize| u16::try_from(n).unwrap();
    for (length, kind) in [
        (length(structure.len() + 12), 22),
        (length(structure.len() + 8), 1),
        (length(structure.len() + 4), kind),
    ] {
        bytes.extend(u16::to_ne_bytes(length));
        bytes.extend(u16::to_ne_bytes(kind));
    }
    bytes.extend(structure);
    bytes
}

#[test]
fn link_state_is_a_vf_and_a_number() {
    for (state, number) in [
        (VfLinkState::Auto, 0),
        (VfLinkState::Enable, 1),
        (VfLinkState::Disable, 2),
    ] {
        let wanted = VfChange {
            link_state: Some(state),
            ..VfChange::default()
        };
        assert_eq!(attribute(&wanted), wrapped(5, &words(&[3, number])));
    }
}

#[test]
fn an_802_1ad_vlan_goes_in_a_list_with_its_protocol_in_network_order() {
    let wanted = VfChange {
        vlan: Some(VfVlan {
            id: 100,
            qos: 5,
            protocol: VlanProtocol::Dot1ad,
        }),
        ..VfChange::default()
    };
    let mut info = vec![20, 0, 1, 0];
    info.extend(words(&[3, 100, 5]));
    info.extend([0x88, 0xa8, 0, 0]);
    assert_eq!(attribute(&wanted), wrapped(12, &info));
}

#[test]
fn an_802_1q_vlan_goes_in_the_old_attribute() {
    let wanted = VfChange {
        vlan: Some(VfVlan {
            id: 100,
            qos: 5,
            ..VfVlan::default()
        }),
        ..VfChange::default()
    };
    assert_eq!(attribute(&wanted), wrapped(2, &words(&[3, 100, 5])));
}

#[test]
fn rates_go_together() {
    let wanted = VfChange {
        rate: Some(VfRate {
            min: 100,
            max: 2500,
        }),
        ..VfChange::default()
    };
    assert_eq!(attribute(&wanted), wrapped(6, &words(&[3, 100, 2500])));
}

#[test]
fn a_mac_has_room_for_thirty_two_bytes() {
    let wanted = VfChange {
        mac: Some("02:00:00:00:00:07".parse().unwrap()),
        ..VfChange::default()
    };
    let mut structure = words(&[3]);
    structure.extend([2, 0, 0, 0, 0, 7]);
    structure.resize(36, 0);
    assert_eq!(attribute(&wanted), wrapped(1, &structure));
}

#[test]
fn switches_are_numbers() {
    let wanted = VfChange {
        spoof_check: Some(true),
        ..VfChange::default()
    };
    assert_eq!(attribute(&wanted), wrapped(4, &words(&[3, 1])));
    let wanted = VfChange {
        trust: Some(false),
        ..VfChange::default()
    };
    assert_eq!(attribute(&wanted), wrapped(9, &words(&[3, 0])));
}

/// One attribute with its header.
fn nla(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = u16::try_from(value.len() + 4)
        .unwrap()
        .to_ne_bytes()
        .to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes
}

#[test]
fn a_vf_is_read_with_what_its_driver_does_not_say() {
    let mut mac = words(&[2]);
    mac.extend([2, 0, 0, 0, 0, 9]);
    mac.resize(36, 0);
    let mut listed = words(&[2, 200, 3]);
    listed.extend([0x88, 0xa8, 0, 0]);
    let info = [
        nla(1, &mac),
        nla(2, &words(&[2, 200, 3])),
        nla(VLAN_LIST | 0x8000, &nla(1, &listed)),
        nla(6, &words(&[2, 0, 1000])),
        nla(3, &words(&[2, 1000])),
        nla(4, &words(&[2, 1])),
        nla(9, &words(&[2, u32::MAX])),
        nla(5, &words(&[2, 2])),
        nla(99, &[1, 2, 3, 4]),
    ]
    .concat();
    let list = nla(0x8001, &info);
    let vfs = read(&list);
    let wanted = Vf {
        number: 2,
        mac: Some("02:00:00:00:00:09".parse().unwrap()),
        vlan: VfVlan {
            id: 200,
            qos: 3,
            protocol: VlanProtocol::Dot1ad,
        },
        rate: VfRate { min: 0, max: 1000 },
        spoof_check: Some(true),
        trust: None,
        link_state: Some(VfLinkState::Disable),
        rss_query: None,
    };
    assert_eq!(vfs, [wanted]);
}
