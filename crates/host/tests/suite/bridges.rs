use mooring_api::net::{Bridge, BridgePort, LinkChange, LinkKind, NewLink};
use mooring_host::Change;
use mooring_testkit::Sandbox;

use super::{netlink, shown};

#[test]
fn a_bridge_and_its_ports_have_options() {
    let Some(sandbox) = Sandbox::new("bridge options") else {
        return;
    };
    let netns = sandbox.netns("node");
    let mut netlink = netlink(&netns);
    let options = Bridge {
        stp: Some(true),
        ageing: Some(12_000),
        forward_delay: Some(400),
        multicast_snooping: None,
        ..Bridge::default()
    };
    let bridge = netlink
        .create(&NewLink::new("br0", LinkKind::Bridge(options.clone())))
        .unwrap();
    let LinkKind::Bridge(seen) = &bridge.kind else {
        panic!("{bridge:?}");
    };
    assert_eq!(
        (seen.stp, seen.ageing, seen.forward_delay),
        (Some(true), Some(12_000), Some(400))
    );
    let data = &shown(&netns, "link show br0")[0]["linkinfo"]["info_data"];
    assert_eq!(
        (&data["stp_state"], &data["ageing_time"]),
        (&1.into(), &12_000.into())
    );
    let change = LinkChange {
        kind: Some(LinkKind::Bridge(Bridge {
            stp: Some(false),
            ..Bridge::default()
        })),
        ..LinkChange::default()
    };
    let index = bridge.index;
    netlink.apply(&[Change::SetLink { index, change }]).unwrap();
    let data = &shown(&netns, "link show br0")[0]["linkinfo"]["info_data"];
    assert_eq!(
        (&data["stp_state"], &data["ageing_time"]),
        (&0.into(), &12_000.into())
    );

    let mut link = NewLink::veth("a0", "b0");
    link.set.master = Some(bridge.index);
    let made = netlink.create(&link).unwrap();
    assert_eq!(made.master, Some(bridge.index));
    let port = BridgePort {
        hairpin: Some(true),
        isolated: Some(true),
        guard: Some(true),
        root_block: Some(true),
        learning: Some(false),
        flood: Some(false),
        broadcast_flood: Some(false),
        proxy_arp: Some(true),
        neighbour_suppress: Some(true),
        locked: Some(true),
        cost: Some(42),
        priority: Some(7),
        ..BridgePort::default()
    };
    let index = made.index;
    netlink
        .apply(&[Change::BridgePort {
            index,
            port: port.clone(),
        }])
        .unwrap();
    let data = &shown(&netns, "link show a0")[0]["linkinfo"]["info_slave_data"];
    for (key, value) in [
        ("hairpin", true),
        ("isolated", true),
        ("guard", true),
        ("root_block", true),
        ("learning", false),
        ("flood", false),
        ("bcast_flood", false),
        ("proxy_arp", true),
        ("neigh_suppress", true),
    ] {
        assert_eq!(data[key], value, "{key} of {data}");
    }
    assert_eq!((&data["cost"], &data["priority"]), (&42.into(), &7.into()));
    let seen = netlink.link_at(index).unwrap().unwrap().port.unwrap();
    let asked = BridgePort {
        fast_leave: None,
        multicast_flood: None,
        ..seen.clone()
    };
    assert_eq!(asked, port);
    // A kernel without VLAN filtering has bridges all the same.
    netlink.bridge_vlans(None).unwrap();
}
