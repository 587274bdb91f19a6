//! The diff over values: no kernel is asked.

use mooring_api::net::{
    Addr, BridgePort, BridgeVlan, Link, LinkKind, Neighbour, NeighbourState, NextHop, Route,
    RouteProtocol, Rule, Scope, Snapshot,
};

use super::diff;

/// A NIC with an address, a default route, a table of its own with a rule, a neighbour.
fn nic() -> Snapshot {
    let link = Link {
        index: 5,
        name: "ens3".into(),
        mac: Some("02:00:00:00:00:05".parse().unwrap()),
        mtu: 9000,
        up: true,
        txqlen: 1000,
        alias: Some("uplink".into()),
        altnames: vec!["enp3s0".into()],
        ..Link::default()
    };
    let addr = Addr::new(5, "10.0.0.5/24".parse().unwrap());
    let connected = Route {
        protocol: RouteProtocol::KERNEL,
        scope: Some(Scope::LINK),
        ..Route::to("10.0.0.0/24".parse().unwrap()).dev(5)
    };
    let default = Route::to("0.0.0.0/0".parse().unwrap())
        .via("10.0.0.1".parse().unwrap())
        .dev(5);
    let other = Route::to("10.9.0.0/16".parse().unwrap()).dev(5).table(1000);
    Snapshot {
        link,
        addrs: vec![addr],
        routes: vec![default, connected, other],
        rules: vec![Rule::from("10.0.0.5/32".parse().unwrap(), 1000).priority(100)],
        neighbours: vec![Neighbour::permanent(
            5,
            "10.0.0.1".parse().unwrap(),
            "02:00:00:00:00:01".parse().unwrap(),
        )],
        ..Snapshot::default()
    }
}

/// The same NIC as it comes back from another namespace.
fn returned() -> Snapshot {
    let mut seen = Snapshot {
        link: nic().link,
        rules: nic().rules,
        ..Snapshot::default()
    };
    seen.link.index = 7;
    seen.link.up = false;
    seen.link.name = "net1".into();
    seen.link.alias = None;
    seen
}

fn said(wanted: &Snapshot, seen: &Snapshot) -> Vec<String> {
    let changes = diff(wanted, seen);
    changes.iter().map(ToString::to_string).collect()
}

#[test]
fn equal_states_need_no_change() {
    assert_eq!(said(&nic(), &nic()), [""; 0]);
}

#[test]
fn a_nic_that_came_back_is_put_in_order() {
    assert_eq!(
        said(&nic(), &returned()),
        [
            "change link 7: name ens3, alias \"uplink\"",
            "set address 10.0.0.5/24 of link 7",
            "change link 7: up",
            "add neighbour 10.0.0.1 to link 7",
            "append route to 10.9.0.0/16 by link 7 in table 1000",
            "append route to 0.0.0.0/0 via 10.0.0.1 by link 7 in table 254",
        ]
    );
}

#[test]
fn routes_of_the_kernel_are_neither_added_nor_taken_away() {
    let mut seen = nic();
    seen.routes
        .retain(|route| route.protocol != RouteProtocol::KERNEL);
    assert_eq!(said(&nic(), &seen), [""; 0]);
    assert_eq!(said(&seen, &nic()), [""; 0]);
}

#[test]
fn what_a_daemon_learnt_stays_and_is_not_added() {
    let mut seen = nic();
    let mut leased = Addr::new(5, "10.0.0.77/24".parse().unwrap());
    leased.valid = Some(3600);
    leased.preferred = Some(3600);
    seen.addrs.push(leased);
    let mut advertised = Route::to("::/0".parse().unwrap())
        .via("fe80::1".parse().unwrap())
        .dev(5);
    advertised.protocol = RouteProtocol::RA;
    advertised.expires = Some(1800);
    seen.routes.push(advertised);
    let mut dhcp = Route::to("10.8.0.0/16".parse().unwrap()).dev(5);
    dhcp.protocol = RouteProtocol(16);
    seen.routes.push(dhcp);
    let mut local = Addr::new(5, "fe80::5/64".parse().unwrap());
    local.scope = Scope::LINK;
    seen.addrs.push(local);
    assert_eq!(said(&nic(), &seen), [""; 0]);
    // The other way round the lease, the link-local address and the DHCP route were there before, and are wanted back.
    let mut before = seen.clone();
    before.addrs.rotate_left(1);
    assert_eq!(
        said(&before, &nic()),
        [
            "set address 10.0.0.77/24 of link 5",
            "set address fe80::5/64 of link 5",
            "append route to 10.8.0.0/16 by link 5 in table 254",
        ]
    );
}

#[test]
fn surplus_of_an_administrator_goes() {
    let mut seen = nic();
    seen.addrs
        .push(Addr::new(5, "192.0.2.1/24".parse().unwrap()));
    seen.routes
        .push(Route::to("192.0.2.128/25".parse().unwrap()).dev(5));
    seen.neighbours
        .push(Neighbour::proxy(5, "10.0.0.9".parse().unwrap()));
    seen.link.altnames.push("extra".into());
    assert_eq!(
        said(&nic(), &seen),
        [
            "delete the name extra of link 5",
            "delete address 192.0.2.1/24 of link 5",
            "delete neighbour 10.0.0.9 of link 5",
            "delete route to 192.0.2.128/25 by link 5 in table 254",
        ]
    );
}

#[test]
fn rules_are_added_and_never_taken_away() {
    let mut bare = nic();
    bare.rules.clear();
    assert_eq!(
        said(&nic(), &bare),
        ["add ipv4 rule 100 from 10.0.0.5/32 to table 1000"]
    );
    assert_eq!(said(&bare, &nic()), [""; 0]);
}

#[test]
fn a_new_mac_takes_the_link_down_and_its_routes_come_again() {
    let mut seen = nic();
    seen.link.mac = Some("02:00:00:00:00:99".parse().unwrap());
    let mut wanted = nic();
    wanted
        .addrs
        .push(Addr::new(5, "fd00::5/64".parse().unwrap()));
    seen.addrs = wanted.addrs.clone();
    assert_eq!(
        said(&wanted, &seen),
        [
            "change link 5: down",
            "change link 5: MAC 02:00:00:00:00:05",
            "set address fd00::5/64 of link 5",
            "change link 5: up",
            "append route to 10.9.0.0/16 by link 5 in table 1000",
            "append route to 0.0.0.0/0 via 10.0.0.1 by link 5 in table 254",
        ]
    );
}

#[test]
fn an_address_with_other_flags_is_set_again() {
    let mut seen = nic();
    seen.addrs[0].flags.no_prefix_route = true;
    assert_eq!(said(&nic(), &seen), ["set address 10.0.0.5/24 of link 5"]);
    let mut seen = nic();
    // What the kernel only tells is no difference, nor is a label that is the link's name.
    seen.addrs[0].flags.permanent = true;
    seen.addrs[0].flags.secondary = true;
    seen.addrs[0].label = Some("ens3".into());
    assert_eq!(said(&nic(), &seen), [""; 0]);
}

#[test]
fn lifetimes_run_without_being_a_difference() {
    let mut wanted = nic();
    wanted.addrs[0].valid = Some(600);
    wanted.addrs[0].preferred = Some(300);
    let mut seen = wanted.clone();
    seen.addrs[0].valid = Some(12);
    seen.addrs[0].preferred = Some(3);
    assert_eq!(said(&wanted, &seen), [""; 0]);
    seen.addrs[0].valid = None;
    seen.addrs[0].preferred = None;
    assert_eq!(said(&wanted, &seen), ["set address 10.0.0.5/24 of link 5"]);
}

#[test]
fn several_next_hops_replace_what_is_left_of_them() {
    let mut wanted = nic();
    let hop = |oif, gateway: &str| NextHop {
        oif,
        gateway: Some(gateway.parse().unwrap()),
        weight: 1,
        onlink: false,
        extra: Vec::new(),
    };
    let mut route = Route::to("10.50.0.0/16".parse().unwrap());
    route.next_hops = vec![hop(5, "10.0.0.2"), hop(6, "10.1.0.2")];
    wanted.routes.push(route);
    let changes = diff(&wanted, &returned());
    let super::Change::SetRoute(set) = changes.last().unwrap() else {
        panic!("{changes:?}");
    };
    // Its own hop speaks of the new index, the foreign one stays.
    assert_eq!(set.next_hops, [hop(7, "10.0.0.2"), hop(6, "10.1.0.2")]);
}

#[test]
fn a_default_that_the_kernel_fills_in_is_no_difference() {
    let mut wanted = nic();
    let mut seen = nic();
    let route = Route::to("fd01::/64".parse().unwrap()).dev(5);
    wanted.routes.push(route.clone());
    seen.routes.push(Route {
        metric: Some(1024),
        scope: Some(Scope::UNIVERSE),
        ..route
    });
    assert_eq!(said(&wanted, &seen), [""; 0]);
}

#[test]
fn only_permanent_neighbours_count() {
    let mut seen = nic();
    seen.neighbours[0].state = NeighbourState::REACHABLE;
    assert_eq!(said(&nic(), &seen), ["add neighbour 10.0.0.1 to link 5"]);
    assert_eq!(said(&seen, &nic()), ["delete neighbour 10.0.0.1 of link 5"]);
}

#[test]
fn a_port_gets_its_options_and_vlans_after_it_joined() {
    let mut wanted = nic();
    wanted.link.master = Some(3);
    wanted.link.port = Some(BridgePort {
        hairpin: Some(true),
        learning: Some(true),
        ..BridgePort::default()
    });
    wanted.vlans = vec![BridgeVlan::access(5, 100), BridgeVlan::range(5, 200, 299)];
    let mut seen = nic();
    assert_eq!(
        said(&wanted, &seen),
        [
            "change link 5: master 3",
            "change bridge port 5",
            "add VLAN 100 to bridge port 5",
            "add VLAN 200-299 to bridge port 5",
        ]
    );
    seen.link.master = Some(3);
    seen.link.port = wanted.link.port.clone();
    seen.vlans = vec![BridgeVlan::access(5, 1), BridgeVlan::access(5, 100)];
    assert_eq!(
        said(&wanted, &seen),
        [
            "delete VLAN 1 of bridge port 5",
            "add VLAN 200-299 to bridge port 5"
        ]
    );
}

#[test]
fn a_kind_never_changes_but_its_options_may() {
    let mut wanted = nic();
    let mut seen = nic();
    wanted.link.kind = LinkKind::Vlan {
        id: 7,
        protocol: mooring_api::net::VlanProtocol::Dot1q,
    };
    seen.link.kind = LinkKind::Dummy;
    assert_eq!(said(&wanted, &seen), [""; 0]);
    wanted.link.kind = LinkKind::Macvlan {
        mode: mooring_api::net::MacvlanMode::Private,
        broadcast_queue: Some(1000),
    };
    seen.link.kind = LinkKind::Macvlan {
        mode: mooring_api::net::MacvlanMode::Bridge,
        broadcast_queue: Some(1000),
    };
    assert_eq!(said(&wanted, &seen), ["change link 5: macvlan options"]);
}

#[test]
fn addresses_come_back_in_the_order_the_kernel_prefers() {
    let mut wanted = nic();
    for text in ["10.0.0.6/24", "fd00::1/64", "fd00::2/64"] {
        wanted.addrs.push(Addr::new(5, text.parse().unwrap()));
    }
    let mut seen = nic();
    seen.addrs.clear();
    assert_eq!(
        said(&wanted, &seen),
        [
            "set address 10.0.0.5/24 of link 5",
            "set address 10.0.0.6/24 of link 5",
            "set address fd00::2/64 of link 5",
            "set address fd00::1/64 of link 5",
        ]
    );
}
