use mooring_api::Family;
use mooring_api::net::{
    Addr, LinkChange, NewLink, NextHop, Route, RouteKind, RouteProtocol, Rule, Scope,
};
use mooring_host::{Change, Netlink};
use mooring_testkit::Sandbox;

use super::{netlink, shown};

/// Two links that are up, with addresses of both families.
fn links(netlink: &mut Netlink) -> (u32, u32) {
    let mut link = NewLink::veth("a0", "b0");
    link.set.up = Some(true);
    let a = netlink.create(&link).unwrap().index;
    let b = netlink.link("b0").unwrap().unwrap().index;
    let addr = |index, text: &str| Change::AddAddr(Addr::new(index, text.parse().unwrap()).nodad());
    netlink
        .apply(&[
            Change::SetLink {
                index: b,
                change: LinkChange::up(),
            },
            addr(a, "10.0.0.5/24"),
            addr(a, "fd00::5/64"),
            addr(b, "10.1.0.5/24"),
            addr(b, "fd01::5/64"),
        ])
        .unwrap();
    (a, b)
}

#[test]
fn routes_have_every_attribute() {
    let Some(sandbox) = Sandbox::new("routes") else {
        return;
    };
    let netns = sandbox.netns("pod");
    let mut netlink = netlink(&netns);
    let (a, b) = links(&mut netlink);
    let to = |text: &str| Route::to(text.parse().unwrap());
    let mut full = to("192.0.2.0/24")
        .via("10.0.0.1".parse().unwrap())
        .dev(a)
        .metric(77);
    full.mtu = Some(1300);
    full.advmss = Some(1200);
    full.prefsrc = Some("10.0.0.5".parse().unwrap());
    full.protocol = RouteProtocol::STATIC;
    let mut onlink = to("198.51.100.0/24")
        .via("172.16.0.1".parse().unwrap())
        .dev(a);
    onlink.onlink = true;
    let table = to("0.0.0.0/0")
        .via("10.0.0.1".parse().unwrap())
        .dev(a)
        .table(100_000);
    let mut locked = to("203.0.113.0/24").dev(a);
    // Lock the MTU (bit 2), window 4000.
    locked.metrics = [(1, 1 << 2), (3, 4000)].into();
    locked.mtu = Some(1400);
    let mut hole = to("10.66.0.0/16");
    hole.kind = RouteKind::BLACKHOLE;
    let six = to("::/0").via("fd00::1".parse().unwrap()).dev(a);
    let across = to("10.77.0.0/16").via("fd00::1".parse().unwrap()).dev(a);
    let hop = |oif, gateway: &str, weight| NextHop {
        oif,
        gateway: Some(gateway.parse().unwrap()),
        weight,
        onlink: false,
        extra: Vec::new(),
    };
    let mut many = to("10.88.0.0/16");
    many.next_hops = vec![hop(a, "10.0.0.1", 1), hop(b, "10.1.0.1", 3)];
    let mut many6 = to("fd88::/32");
    many6.next_hops = vec![hop(a, "fd00::1", 1), hop(b, "fd01::1", 1)];
    let wanted = [full, onlink, table, locked, hole, six, across, many, many6];
    let adds: Vec<_> = wanted.iter().cloned().map(Change::AddRoute).collect();
    netlink.apply(&adds).unwrap();

    let there = shown(&netns, "route show table all");
    let of = |dst: &str| {
        let routes = there.as_array().unwrap();
        routes
            .iter()
            .find(|r| r["dst"] == dst)
            .unwrap_or_else(|| panic!("{dst} in {there}"))
    };
    let r = of("192.0.2.0/24");
    assert_eq!(
        (&r["gateway"], &r["dev"]),
        (&"10.0.0.1".into(), &"a0".into())
    );
    assert_eq!(
        (&r["metric"], &r["prefsrc"]),
        (&77.into(), &"10.0.0.5".into())
    );
    assert_eq!(r["protocol"], "static");
    assert_eq!(r["metrics"][0]["mtu"], 1300);
    assert_eq!(r["metrics"][0]["advmss"], 1200);
    assert_eq!(of("198.51.100.0/24")["flags"][0], "onlink");
    let default = there
        .as_array()
        .unwrap()
        .iter()
        .find(|r| r["table"] == "100000")
        .unwrap();
    assert_eq!(default["dst"], "default");
    let locked_text = netns.ip("route show 203.0.113.0/24");
    assert!(
        locked_text.contains("mtu lock 1400 window 4000"),
        "{locked_text}"
    );
    assert_eq!(of("203.0.113.0/24")["scope"], "link");
    assert_eq!(of("10.66.0.0/16")["type"], "blackhole");
    assert_eq!(of("10.77.0.0/16")["via"]["host"], "fd00::1");
    let hops = of("10.88.0.0/16")["nexthops"].as_array().unwrap().clone();
    assert_eq!(hops.len(), 2);
    assert_eq!(hops[1]["gateway"], "10.1.0.1");
    assert_eq!(hops[1]["weight"], 3);
    let v6 = shown(&netns, "-6 route show table main");
    assert!(v6.to_string().contains("fd01::1"), "{v6}");

    let seen = netlink.routes(None).unwrap();
    for route in &wanted {
        let found = seen.iter().find(|r| r.key() == route.key());
        let found = found.unwrap_or_else(|| panic!("{route:?} in {seen:?}"));
        assert_eq!(found.gateway, route.gateway, "{found:?}");
        assert_eq!(found.next_hops, route.next_hops, "{found:?}");
        assert_eq!(
            (found.mtu, found.advmss),
            (route.mtu, route.advmss),
            "{found:?}"
        );
        assert_eq!(found.metrics, route.metrics, "{found:?}");
        assert_eq!(found.kind, route.kind, "{found:?}");
        assert_eq!(found.onlink, route.onlink, "{found:?}");
        assert_eq!(found.protocol, route.protocol, "{found:?}");
    }
    let of_b = netlink.routes(Some(b)).unwrap();
    assert!(of_b.iter().all(|route| route.uses(b)), "{of_b:?}");
    assert!(
        of_b.iter().any(|route| route.key() == wanted[7].key()),
        "{of_b:?}"
    );

    let again = netlink.apply(&adds[..1]).unwrap_err();
    assert!(again.is_present(), "{again:?}");
    netlink
        .apply(&[Change::SetRoute(wanted[0].clone())])
        .unwrap();
    for route in &wanted {
        netlink.apply(&[Change::DelRoute(route.clone())]).unwrap();
    }
    let absent = netlink
        .apply(&[Change::DelRoute(wanted[0].clone())])
        .unwrap_err();
    assert!(absent.is_absent(), "{absent:?}");
    let left = netlink.routes(None).unwrap();
    assert!(
        left.iter().all(|r| r.protocol == RouteProtocol::KERNEL),
        "{left:?}"
    );
}

#[test]
fn a_second_gateway_is_appended_and_keeps_its_place() {
    let Some(sandbox) = Sandbox::new("routes with one key") else {
        return;
    };
    let netns = sandbox.netns("pod");
    let mut netlink = netlink(&netns);
    let (a, _) = links(&mut netlink);
    let to = |router: &str| {
        Route::to("10.9.0.0/16".parse().unwrap())
            .via(router.parse().unwrap())
            .dev(a)
    };
    let first = Change::AppendRoute(to("10.0.0.1"));
    let second = Change::AppendRoute(to("10.0.0.2"));
    netlink.apply(&[first.clone(), second]).unwrap();
    let there = shown(&netns, "route show 10.9.0.0/16");
    assert_eq!(there[0]["gateway"], "10.0.0.1");
    assert_eq!(there[1]["gateway"], "10.0.0.2");
    assert!(netlink.apply(&[first]).unwrap_err().is_present());
    let seen = netlink.routes(Some(a)).unwrap();
    let ours = seen.iter().filter(|r| r.protocol == RouteProtocol::BOOT);
    assert_eq!(ours.count(), 2);
}

#[test]
fn a_route_that_is_prepended_is_the_one_that_is_taken() {
    let Some(sandbox) = Sandbox::new("routes put before others") else {
        return;
    };
    let netns = sandbox.netns("pod");
    let mut netlink = netlink(&netns);
    let (a, b) = links(&mut netlink);
    let to = |dst: &str, router: &str, index| {
        let route = Route::to(dst.parse().unwrap());
        route.via(router.parse().unwrap()).dev(index)
    };
    let (four, six) = ("10.9.0.0/16", "fd09::/32");
    netlink
        .apply(&[
            Change::AddRoute(to(four, "10.0.0.1", a)),
            Change::AddRoute(to(six, "fd00::1", a)),
        ])
        .unwrap();
    let later = [
        Change::PrependRoute(to(four, "10.1.0.1", b)),
        Change::PrependRoute(to(four, "10.1.0.2", b)),
        Change::PrependRoute(to(six, "fd01::1", b)),
    ];
    netlink.apply(&later).unwrap();
    let there = shown(&netns, "route show 10.9.0.0/16");
    let routers: Vec<_> = (0..3).map(|nth| there[nth]["gateway"].clone()).collect();
    assert_eq!(routers, ["10.1.0.2", "10.1.0.1", "10.0.0.1"]);
    let taken = netns.ip("route get 10.9.0.1");
    assert!(taken.contains("via 10.1.0.2 dev b0"), "{taken}");
    // In IPv6 they are next hops of one route.
    let there = shown(&netns, "-6 route show fd09::/32");
    let hops = there[0]["nexthops"].as_array().unwrap();
    assert_eq!(hops.len(), 2, "{there}");
    for change in later {
        let again = netlink.apply(&[change]).unwrap_err();
        assert!(again.is_present(), "{again}");
    }
}

#[test]
fn a_route_that_ends_is_read_with_its_end() {
    let Some(sandbox) = Sandbox::new("a route that ends") else {
        return;
    };
    let netns = sandbox.netns("pod");
    let mut netlink = netlink(&netns);
    let (a, _) = links(&mut netlink);
    let mut route = Route::to("fd77::/32".parse().unwrap())
        .via("fd00::1".parse().unwrap())
        .dev(a);
    route.expires = Some(600);
    netlink.apply(&[Change::AddRoute(route.clone())]).unwrap();
    let shown = netns.ip("-6 route show fd77::/32");
    assert!(shown.contains("expires"), "{shown}");
    let seen = netlink.routes(Some(a)).unwrap();
    let found = seen.iter().find(|r| r.dst == route.dst).unwrap();
    assert!(
        found.expires.is_some_and(|s| (1..=600).contains(&s)),
        "{found:?}"
    );
}

#[test]
fn rules_have_every_attribute() {
    let Some(sandbox) = Sandbox::new("rules") else {
        return;
    };
    let netns = sandbox.netns("pod");
    let mut netlink = netlink(&netns);
    let mut full = Rule::from("10.0.0.5/32".parse().unwrap(), 100_000).priority(100);
    full.dst = Some("10.9.0.0/16".parse().unwrap());
    full.iif = Some("a0".into());
    full.fwmark = Some(0x10);
    full.fwmask = Some(0xff);
    let mut out = Rule::lookup(Family::V4, 100).priority(200);
    out.oif = Some("a0".into());
    out.invert = true;
    out.protocol = 4;
    let six = Rule::from("fd00::/64".parse().unwrap(), 254).priority(300);
    let wanted = [full, out, six];
    let adds: Vec<_> = wanted.iter().cloned().map(Change::AddRule).collect();
    netlink.apply(&adds).unwrap();
    let there = shown(&netns, "rule show");
    let of = |priority: u32| {
        let rules = there.as_array().unwrap();
        rules
            .iter()
            .find(|r| r["priority"] == priority)
            .unwrap()
            .clone()
    };
    let r = of(100);
    assert_eq!(
        (&r["src"], &r["dst"]),
        (&"10.0.0.5".into(), &"10.9.0.0".into())
    );
    assert_eq!((&r["dstlen"], &r["table"]), (&16.into(), &"100000".into()));
    assert_eq!((&r["iif"], &r["fwmark"]), (&"a0".into(), &"0x10".into()));
    assert_eq!(r["fwmask"], "0xff");
    assert_eq!(of(200)["oif"], "a0");
    assert!(of(200).get("not").is_some());
    let six = shown(&netns, "-6 rule show");
    assert!(six.to_string().contains("fd00::"), "{six}");
    let seen = netlink.rules().unwrap();
    for rule in &wanted {
        let found = seen
            .iter()
            .find(|r| r.family == rule.family && r.priority == rule.priority);
        // A mask of all ones comes with every mark.
        assert_eq!(found, Some(rule));
    }
    // Rules of attributes that we do not name come back as they were.
    netns.ip("rule add priority 400 from all ipproto tcp dport 80-90 uidrange 5-9 lookup 77");
    netns.ip("rule add priority 500 from all lookup main suppress_prefixlength 0");
    let text = |netns: &mooring_testkit::Netns| netns.ip("rule show");
    let before = text(&netns);
    let seen = netlink.rules().unwrap();
    let kept: Vec<_> = seen
        .iter()
        .filter(|r| r.priority >= Some(400) && r.priority <= Some(500))
        .collect();
    assert_eq!(kept.len(), 2, "{seen:?}");
    for rule in kept {
        netlink.apply(&[Change::DelRule(rule.clone())]).unwrap();
        assert_ne!(text(&netns), before);
        netlink.apply(&[Change::AddRule(rule.clone())]).unwrap();
        assert_eq!(text(&netns), before);
    }
    for add in &adds {
        assert!(
            netlink
                .apply(std::slice::from_ref(add))
                .unwrap_err()
                .is_present()
        );
    }
    for rule in &wanted {
        netlink.apply(&[Change::DelRule(rule.clone())]).unwrap();
    }
    let absent = netlink
        .apply(&[Change::DelRule(wanted[0].clone())])
        .unwrap_err();
    assert!(absent.is_absent(), "{absent:?}");
}

#[test]
fn many_routes_are_read_whole() {
    let Some(sandbox) = Sandbox::new("a large table") else {
        return;
    };
    let netns = sandbox.netns("pod");
    let mut netlink = netlink(&netns);
    let (a, _) = links(&mut netlink);
    let all: Vec<_> = (0..4000_u32)
        .map(|n| {
            let dst = format!("100.{}.{}.0/24", 64 + n / 256, n % 256);
            Change::AddRoute(Route::to(dst.parse().unwrap()).dev(a))
        })
        .collect();
    netlink.apply(&all).unwrap();
    let seen = netlink.routes(Some(a)).unwrap();
    let ours = seen
        .iter()
        .filter(|r| r.scope == Some(Scope::LINK) && r.protocol == RouteProtocol::BOOT);
    assert_eq!(ours.count(), 4000);
}
