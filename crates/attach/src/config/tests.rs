//! Every plugin and IPAM against the text that the real ones read.

use mooring_api::HostCidr;

use super::*;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn net(text: &str) -> Cidr {
    text.parse().unwrap()
}

fn nic(text: &str) -> IfName {
    text.parse().unwrap()
}

fn vlan(id: u16) -> VlanId {
    VlanId::try_from(id).unwrap()
}

fn range(subnet: &str, range: &str, gateway: Option<&str>) -> Range {
    Range {
        subnet: net(subnet),
        range: range.parse().unwrap(),
        gateway: gateway.map(ip),
    }
}

fn static_ipam(host: &str, gateway: &str) -> Ipam {
    Ipam::Static {
        addresses: vec![(host.parse::<HostCidr>().unwrap(), Some(ip(gateway)))],
        routes: vec![],
        dns: Dns::default(),
    }
}

fn macvlan() -> Plugin {
    let (master, mode, mtu) = (nic("ens3"), None, None);
    Plugin::Macvlan { master, mode, mtu }
}

/// Without white space, so that a case is a line.
fn one_line(plugin: Plugin, ipam: Ipam) -> String {
    build("net", &Conf { plugin, ipam }).unwrap().to_string()
}

fn refused(plugin: Plugin, ipam: Ipam) -> String {
    build("net", &Conf { plugin, ipam })
        .unwrap_err()
        .to_string()
}

#[test]
fn the_seeds_macvlan_nad_is_printed_key_for_key() {
    let ipam = static_ipam("10.1.2.20/24", "10.1.2.1");
    let plugin = macvlan();
    let config = build("n2", &Conf { plugin, ipam }).unwrap();
    assert_eq!(
        text(&config),
        r#"{
  "cniVersion": "0.3.1",
  "type": "macvlan",
  "master": "ens3",
  "mode": "bridge",
  "ipam": {
    "type": "static",
    "addresses": [
      {
        "address": "10.1.2.20/24",
        "gateway": "10.1.2.1"
      }
    ]
  }
}"#
    );
}

#[test]
fn the_seeds_sriov_nad_has_no_master() {
    let (vlan, mtu) = (None, None);
    assert_eq!(
        one_line(
            Plugin::Sriov { vlan, mtu },
            static_ipam("10.1.3.20/24", "10.1.3.1")
        ),
        r#"{"cniVersion":"0.3.1","type":"sriov","ipam":{"type":"static","addresses":[{"address":"10.1.3.20/24","gateway":"10.1.3.1"}]}}"#
    );
}

#[test]
fn only_a_chained_step_makes_a_list_and_gives_it_a_name() {
    let mtu = Some(9000);
    assert_eq!(
        one_line(
            Plugin::Sriov {
                vlan: Some(vlan(100)),
                mtu
            },
            Ipam::None
        ),
        r#"{"cniVersion":"0.3.1","name":"net","plugins":[{"type":"sriov","vlan":100},{"type":"tuning","mtu":9000}]}"#
    );
    let device = Device::Name(nic("ens5"));
    assert_eq!(
        one_line(Plugin::HostDevice { device, mtu }, Ipam::None),
        r#"{"cniVersion":"0.3.1","name":"net","plugins":[{"type":"host-device","device":"ens5"},{"type":"tuning","mtu":9000}]}"#
    );
}

#[test]
fn every_plugin_has_its_own_keys() {
    let none = || Ipam::None;
    let some_ipam = || static_ipam("10.0.0.2/24", "10.0.0.1");
    let mtu = Some(1400);
    let cases = [
        (
            Plugin::Macvlan {
                master: nic("ens3.100"),
                mode: Some("vepa".into()),
                mtu,
            },
            none(),
            r#""type":"macvlan","master":"ens3.100","mode":"vepa","mtu":1400}"#,
        ),
        (
            Plugin::Ipvlan {
                master: nic("ens3"),
                mode: None,
                mtu,
            },
            some_ipam(),
            r#""type":"ipvlan","master":"ens3","mode":"l2","mtu":1400,"ipam":"#,
        ),
        (
            Plugin::Vlan {
                master: nic("ens3"),
                vlan: vlan(7),
                mtu: None,
            },
            some_ipam(),
            r#""type":"vlan","master":"ens3","vlanId":7,"ipam":"#,
        ),
        (
            Plugin::Bridge {
                bridge: nic("br0"),
                vlan: Some(vlan(9)),
                mtu,
            },
            none(),
            r#""type":"bridge","bridge":"br0","vlan":9,"mtu":1400}"#,
        ),
        (
            Plugin::Ovs {
                bridge: nic("br1"),
                vlan: None,
                mtu,
            },
            none(),
            r#""type":"ovs","bridge":"br1","mtu":1400}"#,
        ),
        (
            Plugin::HostDevice {
                device: Device::Pci("0000:01:00.0".into()),
                mtu: None,
            },
            none(),
            r#""type":"host-device","pciBusID":"0000:01:00.0"}"#,
        ),
        (
            Plugin::AmdHostDevice {
                device: Device::Allocated,
                mtu: None,
            },
            none(),
            r#""type":"amd-host-device"}"#,
        ),
    ];
    for (plugin, ipam, expected) in cases {
        let shown = one_line(plugin, ipam);
        let rest = shown.strip_prefix(r#"{"cniVersion":"0.3.1","#).unwrap();
        assert!(rest.starts_with(expected), "{shown}");
    }
}

#[test]
fn the_annotation_form_declares_the_capability_and_carries_no_address() {
    let ipam = Ipam::StaticFromAnnotation {
        routes: vec![Route {
            dst: net("0.0.0.0/0"),
            gw: Some(ip("10.1.2.1")),
        }],
        dns: Dns {
            nameservers: vec![ip("10.0.0.53")],
            search: vec!["core.example".into()],
        },
    };
    assert_eq!(
        one_line(macvlan(), ipam),
        r#"{"cniVersion":"0.3.1","type":"macvlan","master":"ens3","mode":"bridge","capabilities":{"ips":true},"ipam":{"type":"static","routes":[{"dst":"0.0.0.0/0","gw":"10.1.2.1"}],"dns":{"nameservers":["10.0.0.53"],"search":["core.example"]}}}"#
    );
}

#[test]
fn host_local_has_one_set_per_family() {
    let ipam = Ipam::HostLocal {
        ranges: vec![
            range("10.0.0.0/24", "10.0.0.10-10.0.0.19", Some("10.0.0.1")),
            range("fd00::/64", "fd00::10-fd00::1f", None),
            range("10.0.0.0/24", "10.0.0.30-10.0.0.39", Some("10.0.0.1")),
        ],
        routes: vec![],
    };
    assert!(one_line(macvlan(), ipam).ends_with(
        r#""ipam":{"type":"host-local","ranges":[[{"subnet":"10.0.0.0/24","rangeStart":"10.0.0.10","rangeEnd":"10.0.0.19","gateway":"10.0.0.1"},{"subnet":"10.0.0.0/24","rangeStart":"10.0.0.30","rangeEnd":"10.0.0.39","gateway":"10.0.0.1"}],[{"subnet":"fd00::/64","rangeStart":"fd00::10","rangeEnd":"fd00::1f"}]]}}"#
    ));
}

#[test]
fn whereabouts_gets_one_hull_and_excludes_gap_and_gateway() {
    let ipam = Ipam::Whereabouts {
        ranges: vec![
            range("10.0.0.0/24", "10.0.0.30-10.0.0.39", Some("10.0.0.1")),
            range("10.0.0.0/24", "10.0.0.0-10.0.0.15", None),
        ],
        exclude: vec!["10.0.0.33".parse().unwrap(), "fd00::1".parse().unwrap()],
        network_name: Some("n2".into()),
        routes: vec![],
    };
    assert!(one_line(macvlan(), ipam).ends_with(
        r#""ipam":{"type":"whereabouts","range":"10.0.0.0/24","range_start":"10.0.0.0","range_end":"10.0.0.39","exclude":["10.0.0.1/32","10.0.0.16/29","10.0.0.24/30","10.0.0.28/31","10.0.0.33/32"],"gateway":"10.0.0.1","network_name":"n2"}}"#
    ));
}

#[test]
fn whereabouts_in_two_families_has_no_gateway_for_it_would_be_copied_to_both() {
    let ipam = Ipam::Whereabouts {
        ranges: vec![
            range("10.0.0.0/24", "10.0.0.10-10.0.0.19", Some("10.0.0.1")),
            range("fd00::/64", "fd00::10-fd00::1f", Some("fd00::1")),
        ],
        exclude: vec![],
        network_name: None,
        routes: vec![],
    };
    assert!(one_line(macvlan(), ipam).ends_with(
        r#""ipam":{"type":"whereabouts","ipRanges":[{"range":"10.0.0.0/24","range_start":"10.0.0.10","range_end":"10.0.0.19"},{"range":"fd00::/64","range_start":"fd00::10","range_end":"fd00::1f"}]}}"#
    ));
}

#[test]
fn moor_carries_the_identity() {
    let of = Box::new(MoorRef {
        cluster: "edge01".into(),
        package: "p-1".into(),
        instance: "vpc-ran".into(),
        interface: "n2".into(),
        namespace: "ran".into(),
        workload: String::new(),
    });
    let (routes, dns) = (vec![], Dns::default());
    assert!(one_line(macvlan(), Ipam::Moor { of, routes, dns }).ends_with(
        r#""ipam":{"type":"moor","cluster":"edge01","package":"p-1","instance":"vpc-ran","interface":"n2","namespace":"ran"}}"#
    ));
}

#[test]
fn what_a_plugin_would_refuse_is_not_built() {
    let ipvlan = Plugin::Ipvlan {
        master: nic("ens3"),
        mode: None,
        mtu: None,
    };
    assert!(refused(ipvlan, Ipam::None).contains("needs an ipam section"));
    let odd = Plugin::Macvlan {
        master: nic("ens3"),
        mode: Some("l2".into()),
        mtu: None,
    };
    let ok = static_ipam("10.0.0.2/24", "10.0.0.1");
    assert_eq!(
        refused(odd, ok),
        "macvlan has no mode \"l2\"; it knows bridge, private, vepa, passthru"
    );
    assert!(refused(macvlan(), static_ipam("10.0.0.2/24", "10.0.1.1")).contains("not inside"));

    let host_local = |ranges| Ipam::HostLocal {
        ranges,
        routes: vec![],
    };
    assert!(refused(macvlan(), host_local(vec![])).contains("has no range"));
    let outside = range("10.0.0.0/24", "10.0.0.250-10.0.1.3", None);
    assert!(refused(macvlan(), host_local(vec![outside])).contains("not inside 10.0.0.0/24"));

    let whereabouts = Ipam::Whereabouts {
        ranges: vec![
            range("10.0.0.0/24", "10.0.0.1-10.0.0.9", None),
            range("10.0.1.0/24", "10.0.1.1-10.0.1.9", None),
        ],
        exclude: vec![],
        network_name: None,
        routes: vec![],
    };
    assert!(refused(macvlan(), whereabouts).contains("takes one address from each"));

    let crossed = Ipam::StaticFromAnnotation {
        routes: vec![Route {
            dst: net("fd00::/64"),
            gw: Some(ip("10.0.0.1")),
        }],
        dns: Dns::default(),
    };
    assert!(refused(macvlan(), crossed).contains("differ in family"));
}

#[test]
fn a_sub_interface_has_at_most_15_bytes() {
    let named = |n: &str, id| sub_interface(&nic(n), vlan(id)).map(|n| n.to_string());
    assert_eq!(named("ens3", 100).unwrap(), "ens3.100");
    assert_eq!(named("enp175s0f1", 4094).unwrap().len(), 15);
    assert!(named("enp175s0f10", 4094).is_err());
}

#[test]
fn blocks_cover_a_range_exactly() {
    for (text, expected) in [
        ("10.0.0.1-10.0.0.1", "10.0.0.1/32"),
        ("10.0.0.0-10.0.0.255", "10.0.0.0/24"),
        (
            "10.0.0.1-10.0.0.6",
            "10.0.0.1/32 10.0.0.2/31 10.0.0.4/31 10.0.0.6/32",
        ),
        ("0.0.0.0-255.255.255.255", "0.0.0.0/0"),
        ("::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "::/0"),
        ("fd00::ffff-fd00::1:0", "fd00::ffff/128 fd00::1:0/128"),
    ] {
        let shown: Vec<String> = blocks(&text.parse().unwrap())
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(shown.join(" "), expected, "{text}");
    }
}
