//! What this machine's kernel does not have, in User-mode Linux: vlan, ipvlan, vrf, dummy, VLANs of a bridge.

use mooring_api::net::{
    Bridge, BridgeVlan, IpvlanFlag, IpvlanMode, LinkChange, LinkKind, NewLink, VlanProtocol,
};
use mooring_host::Change;
use mooring_testkit::Sandbox;

use super::{index, netlink, open, shown};

/// A sandbox; inside our own kernel a missing one is a failure, not a skip.
fn sandbox() -> Sandbox {
    Sandbox::new("namespaces in User-mode Linux").expect("the kernel has namespaces")
}

fn data(netns: &mooring_testkit::Netns, name: &str) -> serde_json::Value {
    shown(netns, &format!("link show {name}"))[0]["linkinfo"]["info_data"].clone()
}

#[test]
#[ignore = "kernel: uml"]
fn vlans_have_an_id_and_a_tag() {
    let sandbox = sandbox();
    let (node, pod) = (sandbox.netns("node"), sandbox.netns("pod"));
    let mut host = netlink(&node);
    let parent = host.create(&NewLink::new("d0", LinkKind::Dummy)).unwrap();
    assert_eq!(parent.kind, LinkKind::Dummy);
    let inside = open(&pod);
    for (name, id, protocol, word) in [
        ("q100", 100, VlanProtocol::Dot1q, "802.1Q"),
        ("ad200", 200, VlanProtocol::Dot1ad, "802.1ad"),
    ] {
        let kind = LinkKind::Vlan { id, protocol };
        let change = Change::NewLinkIn {
            link: NewLink::new(name, kind.clone()).on(parent.index),
            netns: Some(&inside),
            peer: None,
        };
        host.apply(&[change]).unwrap();
        let there = data(&pod, name);
        assert_eq!(
            (&there["id"], &there["protocol"]),
            (&id.into(), &word.into())
        );
        let seen = inside.netlink().unwrap().link(name).unwrap().unwrap();
        assert_eq!((seen.kind, seen.parent), (kind, Some(parent.index)));
    }
}

#[test]
#[ignore = "kernel: uml"]
fn ipvlans_have_a_mode_and_a_flag() {
    let sandbox = sandbox();
    let (node, pod) = (sandbox.netns("node"), sandbox.netns("pod"));
    let mut host = netlink(&node);
    let parent = host.create(&NewLink::new("d0", LinkKind::Dummy)).unwrap();
    let inside = open(&pod);
    // All children of a parent share its mode, and its flag.
    for (mode, flag, words) in [
        (IpvlanMode::L2, IpvlanFlag::Bridge, ["l2", "bridge"]),
        (IpvlanMode::L3, IpvlanFlag::Private, ["l3", "private"]),
        (IpvlanMode::L3s, IpvlanFlag::Vepa, ["l3s", "vepa"]),
    ] {
        let kind = LinkKind::Ipvlan { mode, flag };
        let change = Change::NewLinkIn {
            link: NewLink::new("i0", kind.clone()).on(parent.index),
            netns: Some(&inside),
            peer: None,
        };
        host.apply(&[change]).unwrap();
        let shown = pod.ip("-d link show i0");
        assert!(
            shown.contains(&format!("mode {} {}", words[0], words[1])),
            "{shown}"
        );
        let mut netlink = inside.netlink().unwrap();
        let seen = netlink.link("i0").unwrap().unwrap();
        assert_eq!(seen.kind, kind);
        netlink.apply(&[Change::DelLink(seen.index)]).unwrap();
    }
}

#[test]
#[ignore = "kernel: uml"]
fn a_vrf_has_a_table_and_takes_links() {
    let sandbox = sandbox();
    let node = sandbox.netns("node");
    let mut netlink = netlink(&node);
    let kind = LinkKind::Vrf { table: 100_000 };
    let vrf = netlink.create(&NewLink::new("red", kind.clone())).unwrap();
    assert_eq!(vrf.kind, kind);
    assert_eq!(data(&node, "red")["table"], 100_000);
    let mut member = NewLink::new("d0", LinkKind::Dummy);
    member.set.master = Some(vrf.index);
    netlink.create(&member).unwrap();
    assert_eq!(shown(&node, "link show d0")[0]["master"], "red");
}

#[test]
#[ignore = "kernel: uml"]
fn a_bridge_filters_vlans_of_its_ports() {
    let sandbox = sandbox();
    let node = sandbox.netns("node");
    let mut netlink = netlink(&node);
    let options = Bridge {
        vlan_filtering: Some(true),
        default_pvid: Some(0),
        multicast_snooping: Some(false),
        ..Bridge::default()
    };
    let bridge = netlink
        .create(&NewLink::new("br0", LinkKind::Bridge(options)))
        .unwrap();
    let there = data(&node, "br0");
    assert_eq!(
        (&there["vlan_filtering"], &there["vlan_default_pvid"]),
        (&1.into(), &0.into())
    );
    assert_eq!(there["mcast_snooping"], 0);
    let mut link = NewLink::veth("a0", "b0");
    link.set.master = Some(bridge.index);
    let port = netlink.create(&link).unwrap().index;
    assert_eq!(netlink.bridge_vlans(Some(port)).unwrap(), []);
    let wanted = [
        BridgeVlan::access(port, 10),
        BridgeVlan::tagged(port, 20),
        BridgeVlan::range(port, 100, 199),
    ];
    let own = BridgeVlan {
        on_bridge: true,
        ..BridgeVlan::tagged(bridge.index, 10)
    };
    let mut adds: Vec<_> = wanted.iter().copied().map(Change::AddBridgeVlan).collect();
    adds.push(Change::AddBridgeVlan(own));
    netlink.apply(&adds).unwrap();
    let said = node.run("bridge", &["-j", "-compressvlans", "vlan", "show"]);
    let there: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    let of = |name: &str| {
        let ports = there.as_array().unwrap();
        ports.iter().find(|p| p["ifname"] == name).unwrap()["vlans"].clone()
    };
    let vlans = of("a0");
    assert_eq!(vlans[0]["vlan"], 10);
    assert!(vlans[0]["flags"].to_string().contains("PVID"), "{vlans}");
    assert!(
        vlans[0]["flags"].to_string().contains("Untagged"),
        "{vlans}"
    );
    assert_eq!(
        (&vlans[1]["vlan"], &vlans[1]["flags"]),
        (&20.into(), &serde_json::Value::Null)
    );
    assert_eq!(
        (&vlans[2]["vlan"], &vlans[2]["vlanEnd"]),
        (&100.into(), &199.into())
    );
    assert_eq!(of("br0")[0]["vlan"], 10);
    assert_eq!(netlink.bridge_vlans(Some(port)).unwrap(), wanted);
    assert_eq!(netlink.bridge_vlans(Some(bridge.index)).unwrap(), [own]);
    // The middle of a range can go.
    let middle = BridgeVlan::range(port, 120, 129);
    netlink
        .apply(&[
            Change::DelBridgeVlan(middle),
            Change::DelBridgeVlan(wanted[1]),
            Change::DelBridgeVlan(own),
        ])
        .unwrap();
    assert_eq!(
        netlink.bridge_vlans(Some(port)).unwrap(),
        [
            wanted[0],
            BridgeVlan::range(port, 100, 119),
            BridgeVlan::range(port, 130, 199)
        ]
    );
    let off = LinkChange {
        kind: Some(LinkKind::Bridge(Bridge {
            vlan_filtering: Some(false),
            ..Bridge::default()
        })),
        ..LinkChange::default()
    };
    let index = index(&mut netlink, "br0");
    netlink
        .apply(&[Change::SetLink { index, change: off }])
        .unwrap();
    assert_eq!(data(&node, "br0")["vlan_filtering"], 0);
}

#[test]
#[ignore = "kernel: uml"]
fn another_kernel_gives_a_nic_back_whole_too() {
    super::snapshots::goes_and_comes_back(&sandbox());
}

#[test]
#[ignore = "kernel: uml"]
fn another_kernel_tells_its_parameters_too() {
    let taken = super::snapshots::parameters_are_those_in_the_files(&sandbox());
    assert!(taken.conf.is_some(), "the tables lack one of its files");
}
