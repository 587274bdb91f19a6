use mooring_attach::cni::{Interface, Version};
use mooring_testkit::Sandbox;
use serde_json::json;

use super::*;

/// A result as a plugin hands it over: everything belongs to `net1`.
fn result(value: serde_json::Value) -> CniResult {
    let mut result = CniResult::parse(&value, Version::NEWEST).expect("a result");
    result.interfaces.push(Interface {
        name: "net1".into(),
        ..Interface::default()
    });
    result.assign(0);
    result
}

fn changes(result: &CniResult, dad: Dad) -> Vec<Change<'static>> {
    plan(
        7,
        &own_ips("net1", result).expect("own"),
        &result.routes,
        dad,
    )
}

fn options(detect: bool) -> Options<'static> {
    Options {
        wish: Wish::default(),
        detect,
        below: None,
        sysctls: &[],
    }
}

fn text(changes: &[Change<'_>]) -> Vec<String> {
    changes.iter().map(ToString::to_string).collect()
}

#[test]
fn a_route_without_a_router_takes_the_first_gateway_of_its_family_else_the_link() {
    let result = result(json!({
        "ips": [
            {"address": "10.1.2.20/24", "gateway": "10.1.2.1"},
            {"address": "10.9.0.20/24", "gateway": "10.9.0.1"},
            {"address": "fd00::20/64"},
        ],
        "routes": [
            {"dst": "0.0.0.0/0"},
            {"dst": "10.5.0.0/16", "gw": "10.1.2.9"},
            {"dst": "fd01::/64"},
        ],
    }));
    assert_eq!(
        text(&changes(&result, Dad::Settled)),
        [
            "set address 10.1.2.20/24 of link 7",
            "set address 10.9.0.20/24 of link 7",
            "set address fd00::20/64 of link 7",
            "change link 7: up",
            "prepend route to 0.0.0.0/0 via 10.1.2.1 by link 7 in table 254",
            "prepend route to 10.5.0.0/16 via 10.1.2.9 by link 7 in table 254",
            "prepend route to fd01::/64 by link 7 in table 254",
        ]
    );
}

#[test]
fn only_ipv6_addresses_have_to_do_with_detection() {
    let result = result(json!({"ips": [{"address": "10.1.2.20/24"}, {"address": "fd00::20/64"}]}));
    let flags = |dad| -> Vec<(bool, bool)> {
        let changes = changes(&result, dad);
        let addrs = changes.iter().filter_map(|change| match change {
            Change::SetAddr(addr) => Some((addr.flags.nodad, addr.flags.optimistic)),
            _ => None,
        });
        addrs.collect()
    };
    assert_eq!(flags(Dad::Settled), [(false, false), (true, false)]);
    assert_eq!(flags(Dad::Optimistic), [(false, false), (false, true)]);
}

#[test]
fn everything_a_route_can_say_is_said_to_the_kernel() {
    let result = result(json!({
        "routes": [{"dst": "10.5.0.0/16", "gw": "10.1.2.9", "mtu": 1400, "advmss": 1360,
            "priority": 50, "table": 100, "scope": 0}],
    }));
    let changes = changes(&result, Dad::Settled);
    let Some(Change::PrependRoute(route)) = changes.last() else {
        panic!("{changes:?}");
    };
    assert_eq!(
        (
            route.table,
            route.metric,
            route.mtu,
            route.advmss,
            route.scope
        ),
        (100, Some(50), Some(1400), Some(1360), Some(Scope::UNIVERSE))
    );
}

#[test]
fn an_address_of_another_interface_is_refused_and_one_of_none_is_left_out() {
    let mut result = result(json!({"ips": [{"address": "10.1.2.20/24"}]}));
    result.ips[0].interface = None;
    assert_eq!(own_ips("net1", &result), Ok(Vec::new()));
    result.ips[0].interface = Some(0);
    let error = own_ips("net2", &result).expect_err("it is net1's");
    assert!(error.msg.contains("belongs to \"net1\""), "{error}");
    result.ips[0].interface = Some(3);
    assert!(own_ips("net1", &result).is_err());
}

#[test]
fn check_names_all_that_is_missing() {
    let wanted = result(json!({
        "ips": [{"address": "10.1.2.20/24", "gateway": "10.1.2.1"}, {"address": "fd00::20/64"}],
        "routes": [{"dst": "0.0.0.0/0"}, {"dst": "10.5.0.0/16", "gw": "10.1.2.9"}],
    }));
    let ips = own_ips("net1", &wanted).expect("own");
    assert_eq!(
        missing(&ips, &wanted.routes, &[], &[]),
        [
            "address 10.1.2.20/24 is gone",
            "address fd00::20/64 is gone",
            "the route to 0.0.0.0/0 is gone",
            "the route to 10.5.0.0/16 via 10.1.2.9 is gone",
        ]
    );
    let addr = |text: &str| Addr::new(7, text.parse().expect("an address"));
    let route = |text: &str| Route::to(text.parse().expect("a network")).dev(7);
    let mut addrs = [addr("10.1.2.20/24"), addr("fd00::20/64")];
    let routes = [
        route("10.1.2.0/24"),
        route("fd00::/64"),
        // A chained sbr has moved it.
        route("0.0.0.0/0")
            .via("10.1.2.1".parse().expect("an address"))
            .table(100),
        route("10.5.0.0/16").via("10.1.2.9".parse().expect("an address")),
    ];
    assert_eq!(missing(&ips, &wanted.routes, &addrs, &routes), [""; 0]);
    addrs[1].flags.dad_failed = true;
    assert_eq!(
        missing(&ips, &wanted.routes, &addrs, &routes[1..]),
        [
            "the route to 10.1.2.0/24 is gone",
            "address fd00::20/64 is used by another host",
        ]
    );
}

#[test]
fn an_interface_is_configured_at_once_and_again_and_checked() {
    let Some(sandbox) = Sandbox::new("addresses, up and routes of an interface") else {
        return;
    };
    let pod = sandbox.netns("pod");
    pod.ip("link add net1 type veth peer name other");
    pod.ip("link set other up");
    // As runtimes leave it.
    pod.run("sysctl", &["-qw", "net.ipv6.conf.all.disable_ipv6=1"]);
    let netns = Netns::open(pod.path()).expect("the pod's namespace");
    let wanted = result(json!({
        "ips": [{"address": "10.1.2.20/24", "gateway": "10.1.2.1"}, {"address": "fd00::20/64", "gateway": "fd00::1"}],
        "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}, {"dst": "10.5.0.0/16", "gw": "10.1.2.9"},
            {"dst": "10.5.0.0/16", "gw": "10.1.2.10"}],
    }));
    let mut inside = netns.netlink().expect("a socket");
    let link = find(&mut inside, "net1").expect("the interface");
    for detect in [true, false] {
        let ready = configure(&netns, &mut inside, &link, &wanted, options(detect));
        let told = if detect {
            Dad::Optimistic
        } else {
            Dad::Settled
        };
        let ips: Vec<&Ip> = wanted.ips.iter().collect();
        assert_eq!(ready.expect("configured"), Ready::of(&ips, told));
        check_configured(&netns, "net1", &wanted).expect("as it was made");
        let shown = pod.ip("-j -4 addr show net1");
        assert_eq!(shown.matches("10.1.2.20").count(), 1, "{shown}");
        assert!(shown.contains("\"broadcast\":\"10.1.2.255\""), "{shown}");
        // Optimistic or without detection, it can be bound at once.
        let six = pod.ip("-j -6 addr show net1 to fd00::20");
        assert!(
            six.contains("optimistic") || !six.contains("tentative"),
            "{six}"
        );
        let four = pod.ip("-j -4 route show dev net1");
        assert_eq!(four.matches("10.5.0.0/16").count(), 2, "{four}");
        assert!(pod.ip("-j -6 route show default").contains("fd00::1"));
    }
    pod.ip("route del 10.5.0.0/16 via 10.1.2.10");
    pod.ip("addr del fd00::20/64 dev net1");
    let error = check_configured(&netns, "net1", &wanted).expect_err("two things are gone");
    assert!(error.msg.contains("address fd00::20/64 is gone"), "{error}");
    assert!(
        error.msg.contains("10.5.0.0/16 via 10.1.2.10 is gone"),
        "{error}"
    );
    let error = check_configured(&netns, "net9", &wanted).expect_err("no such link");
    assert!(error.msg.contains("net9"), "{error}");
    pod.ip("link del net1");
    let error = configure(&netns, &mut inside, &link, &wanted, options(true));
    let error = error.expect_err("it is gone");
    assert!(error.msg.contains("net1"), "{error}");
}

#[test]
fn a_gateway_that_nobody_can_reach_is_the_kernels_refusal_with_the_route_named() {
    let Some(sandbox) = Sandbox::new("a route via an unreachable gateway") else {
        return;
    };
    let pod = sandbox.netns("pod");
    pod.ip("link add net1 type veth peer name other");
    let netns = Netns::open(pod.path()).expect("the pod's namespace");
    let wanted = result(json!({
        "ips": [{"address": "10.1.2.20/24"}],
        "routes": [{"dst": "10.5.0.0/16", "gw": "10.77.0.1"}],
    }));
    let mut inside = netns.netlink().expect("a socket");
    let link = find(&mut inside, "net1").expect("the interface");
    let error = configure(&netns, &mut inside, &link, &wanted, options(true));
    let error = error.expect_err("unreachable");
    assert!(
        error.details.contains("10.5.0.0/16 via 10.77.0.1"),
        "{error}"
    );
}
