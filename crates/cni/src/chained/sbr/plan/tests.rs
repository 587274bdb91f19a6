use mooring_api::net::RouteProtocol;

use super::*;

fn ip(address: &str, gateway: Option<&str>) -> Ip {
    Ip::new(
        address.parse().unwrap(),
        gateway.map(|g| g.parse().unwrap()),
    )
}

fn connected(dst: &str, src: Option<&str>) -> Route {
    let mut route = Route::to(dst.parse().unwrap()).dev(7);
    route.protocol = RouteProtocol::KERNEL;
    route.prefsrc = src.map(|s| s.parse().unwrap());
    route
}

fn via(dst: &str, gateway: &str) -> Route {
    Route::to(dst.parse().unwrap())
        .via(gateway.parse().unwrap())
        .dev(7)
}

fn decide(ips: &[Ip], routes: &[Route], rules: &[Rule], wanted: &Wanted) -> Plan {
    let seen = Seen {
        index: 7,
        ips,
        routes,
        rules,
    };
    plan(seen, wanted)
}

fn shown(routes: &[Route]) -> Vec<String> {
    let show = |r: &Route| {
        let via = r.gateway.map_or(String::new(), |g| format!(" via {g}"));
        let src = r.prefsrc.map_or(String::new(), |s| format!(" src {s}"));
        format!("{} {}{via}{src}", r.table, r.dst)
    };
    routes.iter().map(show).collect()
}

fn sources(rules: &[Rule]) -> Vec<String> {
    let show = |r: &Rule| format!("{} {}", r.src.unwrap(), r.table);
    rules.iter().map(show).collect()
}

#[test]
fn an_interfaces_routes_move_into_the_first_free_table_with_a_rule_for_its_address() {
    let ips = [ip("10.1.0.5/24", Some("10.1.0.1"))];
    let routes = [
        connected("10.1.0.0/24", Some("10.1.0.5")),
        via("0.0.0.0/0", "10.1.0.1"),
        via("192.168.0.0/16", "10.1.0.9"),
        Route::to("0.0.0.0/0".parse().unwrap())
            .via("172.16.0.1".parse().unwrap())
            .dev(2),
    ];
    let plan = decide(&ips, &routes, &[], &Wanted::default());
    assert_eq!(sources(&plan.rules), ["10.1.0.5/32 100"]);
    assert_eq!(
        shown(&plan.routes),
        [
            "100 10.1.0.0/24 src 10.1.0.5",
            "100 0.0.0.0/0 via 10.1.0.1",
            "100 192.168.0.0/16 via 10.1.0.9"
        ]
    );
    assert_eq!(plan.moved, routes[..3], "the other interface keeps its own");
}

#[test]
fn each_address_has_a_table_of_its_own_and_taken_ones_are_passed_by() {
    let ips = [
        ip("10.1.0.5/24", None),
        ip("10.1.0.6/24", None),
        ip("fd00::5/64", None),
    ];
    let routes = [
        Route::to("10.9.0.0/16".parse().unwrap()).dev(3).table(101),
        connected("10.1.0.0/24", Some("10.1.0.5")),
        connected("fd00::/64", None),
        connected("fe80::/64", None),
    ];
    let other = Rule::from("10.9.0.1/32".parse().unwrap(), 100);
    let plan = decide(&ips, &routes, &[other], &Wanted::default());
    assert_eq!(
        sources(&plan.rules),
        ["10.1.0.5/32 102", "10.1.0.6/32 103", "fd00::5/128 104"]
    );
    assert_eq!(
        shown(&plan.routes),
        [
            "102 10.1.0.0/24 src 10.1.0.5",
            "103 10.1.0.0/24 src 10.1.0.5",
            "104 fd00::/64",
            "104 fe80::/64"
        ]
    );
    assert_eq!(
        shown(&plan.moved),
        ["254 10.1.0.0/24 src 10.1.0.5", "254 fd00::/64"]
    );
}

#[test]
fn an_add_that_was_killed_half_way_goes_on_in_the_same_table() {
    let ips = [ip("10.1.0.5/24", Some("10.1.0.1"))];
    let first = decide(
        &ips,
        &[connected("10.1.0.0/24", Some("10.1.0.5"))],
        &[],
        &Wanted::default(),
    );
    // The rule and the table are there, and the main table is already empty.
    let again = decide(&ips, &first.routes, &first.rules, &Wanted::default());
    assert_eq!(again, Plan::default(), "nothing is left to do");
    // Only the table is there: no rule leads to it, and nothing else is in it.
    let again = decide(&ips, &first.routes, &[], &Wanted::default());
    assert_eq!(sources(&again.rules), ["10.1.0.5/32 100"]);
    assert_eq!(again.routes, []);
    // Only the rule is there: the table is filled without the main table's help.
    let again = decide(&ips, &[], &first.rules, &Wanted::default());
    let complete = ["100 10.1.0.0/24 src 10.1.0.5", "100 0.0.0.0/0 via 10.1.0.1"];
    assert_eq!(shown(&again.routes), complete);
}

#[test]
fn a_gateway_is_the_configured_one_then_the_addresss_then_the_other_end_of_a_small_subnet() {
    for (address, gateway, configured, wanted) in [
        ("10.1.0.5/24", None, None, None),
        ("10.1.0.5/24", Some("10.1.0.1"), None, Some("10.1.0.1")),
        (
            "10.1.0.5/24",
            Some("10.1.0.1"),
            Some("10.1.0.9"),
            Some("10.1.0.9"),
        ),
        (
            "10.1.0.5/24",
            Some("10.1.0.1"),
            Some("fd00::1"),
            Some("10.1.0.1"),
        ),
        ("10.1.0.4/31", None, None, Some("10.1.0.5")),
        ("10.1.0.5/31", None, None, Some("10.1.0.4")),
        ("10.1.0.5/31", None, Some("10.1.0.9"), Some("10.1.0.9")),
        ("10.1.0.5/30", None, None, Some("10.1.0.6")),
        ("10.1.0.6/30", None, None, Some("10.1.0.5")),
        ("10.1.0.4/30", None, None, None),
        ("10.1.0.5/32", None, None, None),
        ("fd00::4/127", None, None, Some("fd00::5")),
        ("fd00::5/127", None, None, Some("fd00::4")),
        ("fd00::5/126", None, None, None),
    ] {
        let options = Wanted {
            gateways: configured.map(|g| g.parse().unwrap()).into_iter().collect(),
            ..Wanted::default()
        };
        let plan = decide(&[ip(address, gateway)], &[], &[], &options);
        let found = plan.routes.iter().find(|r| r.dst.is_default());
        let found = found.and_then(|r| r.gateway).map(|g| g.to_string());
        assert_eq!(
            found.as_deref(),
            wanted,
            "{address} {gateway:?} {configured:?}"
        );
    }
}

#[test]
fn a_gateway_outside_of_the_subnet_is_said_to_be_on_the_link() {
    for (address, onlink) in [("10.1.0.5/32", true), ("10.1.0.5/24", false)] {
        let plan = decide(
            &[ip(address, Some("10.1.0.1"))],
            &[],
            &[],
            &Wanted::default(),
        );
        let default = plan.routes.iter().find(|r| r.dst.is_default()).unwrap();
        assert_eq!(default.onlink, onlink, "{address}");
    }
}

#[test]
fn a_configured_gateway_is_not_overruled_by_the_route_that_was_there() {
    let options = Wanted {
        gateways: vec!["10.1.0.9".parse().unwrap()],
        ..Wanted::default()
    };
    let routes = [via("0.0.0.0/0", "10.1.0.1")];
    let plan = decide(&[ip("10.1.0.5/24", None)], &routes, &[], &options);
    let wanted = ["100 10.1.0.0/24 src 10.1.0.5", "100 0.0.0.0/0 via 10.1.0.9"];
    assert_eq!(shown(&plan.routes), wanted);
    assert_eq!(shown(&plan.moved), ["254 0.0.0.0/0 via 10.1.0.1"]);
}

#[test]
fn a_table_of_the_configuration_gets_rules_and_moves_nothing() {
    let options = Wanted {
        table: Some(5000),
        ..Wanted::default()
    };
    let routes = [connected("10.1.0.0/24", Some("10.1.0.5"))];
    let plan = decide(
        &[ip("10.1.0.5/24", Some("10.1.0.1"))],
        &routes,
        &[],
        &options,
    );
    assert_eq!(sources(&plan.rules), ["10.1.0.5/32 5000"]);
    assert!(plan.routes.is_empty() && plan.moved.is_empty());
    let again = decide(&[ip("10.1.0.5/24", None)], &routes, &plan.rules, &options);
    assert!(again.rules.is_empty());
}

#[test]
fn with_source_hints_subnets_stay_in_the_main_table_and_gateways_leave_it() {
    let options = Wanted {
        source_hints: true,
        ..Wanted::default()
    };
    let ips = [
        ip("10.1.0.5/24", Some("10.1.0.1")),
        ip("fd00::5/64", None),
        ip("fd00::6/64", None),
    ];
    let routes = [
        connected("10.1.0.0/24", Some("10.1.0.5")),
        connected("fd00::/64", None),
        via("0.0.0.0/0", "10.1.0.1"),
    ];
    let plan = decide(&ips, &routes, &[], &options);
    assert_eq!(shown(&plan.hints), ["254 fd00::/64 src fd00::5"]);
    assert_eq!(shown(&plan.moved), ["254 0.0.0.0/0 via 10.1.0.1"]);
}
