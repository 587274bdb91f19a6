use mooring_api::net::{Addr, LinkChange, Neighbour, NeighbourState, NewLink, Scope};
use mooring_host::{Change, Netlink};
use mooring_testkit::Sandbox;

use super::{netlink, shown};

fn veth(netlink: &mut Netlink) -> u32 {
    let mut link = NewLink::veth("a0", "b0");
    link.set.up = Some(true);
    let index = netlink.create(&link).unwrap().index;
    let peer = netlink.link("b0").unwrap().unwrap().index;
    let change = LinkChange::up();
    netlink
        .apply(&[Change::SetLink {
            index: peer,
            change,
        }])
        .unwrap();
    index
}

#[test]
fn addresses_have_every_attribute() {
    let Some(sandbox) = Sandbox::new("addresses") else {
        return;
    };
    let netns = sandbox.netns("pod");
    let mut netlink = netlink(&netns);
    let index = veth(&mut netlink);
    let plain = Addr::new(index, "10.0.0.5/24".parse().unwrap());
    let mut labelled = Addr::new(index, "10.1.0.5/16".parse().unwrap());
    labelled.label = Some("a0:one".into());
    labelled.scope = Scope::LINK;
    labelled.metric = Some(50);
    labelled.flags.no_prefix_route = true;
    let mut peer = Addr::new(index, "10.2.0.1/32".parse().unwrap());
    peer.peer = Some("10.2.0.2".parse().unwrap());
    let mut limited = Addr::new(index, "fd00::5/64".parse().unwrap()).nodad();
    limited.valid = Some(3600);
    limited.preferred = Some(1800);
    let six = Addr::new(index, "fd01::5/64".parse().unwrap()).nodad();
    let wanted = [plain, labelled, peer, limited, six];
    let adds: Vec<_> = wanted.iter().cloned().map(Change::AddAddr).collect();
    netlink.apply(&adds).unwrap();

    let there = shown(&netns, "addr show a0");
    let infos = there[0]["addr_info"].as_array().unwrap();
    let of = |local: &str| infos.iter().find(|info| info["local"] == local).unwrap();
    assert_eq!(of("10.0.0.5")["prefixlen"], 24);
    assert_eq!(of("10.0.0.5")["broadcast"], "10.0.0.255");
    assert_eq!(of("10.1.0.5")["label"], "a0:one");
    assert_eq!(of("10.1.0.5")["scope"], "link");
    assert_eq!(of("10.1.0.5")["metric"], 50);
    assert_eq!(of("10.1.0.5")["noprefixroute"], true);
    assert_eq!(of("10.2.0.1")["address"], "10.2.0.2");
    assert!(of("10.2.0.1").get("broadcast").is_none());
    assert_eq!(of("fd00::5")["nodad"], true);
    assert!(of("fd00::5").get("tentative").is_none());
    assert!(of("fd00::5")["valid_life_time"].as_u64().unwrap() <= 3600);
    assert!(of("fd00::5")["preferred_life_time"].as_u64().unwrap() <= 1800);
    assert_eq!(of("fd01::5")["valid_life_time"], u32::MAX);

    let seen = netlink.addrs(Some(index)).unwrap();
    for addr in &wanted {
        let found = seen.iter().find(|a| a.address == addr.address).unwrap();
        assert_eq!(found.peer, addr.peer, "{found:?}");
        assert_eq!(found.broadcast, addr.broadcast, "{found:?}");
        assert_eq!(found.scope, addr.scope, "{found:?}");
        assert_eq!(found.metric, addr.metric, "{found:?}");
        assert_eq!(found.flags.settable(), addr.flags.settable(), "{found:?}");
        assert_eq!(found.valid.is_some(), addr.valid.is_some(), "{found:?}");
        assert_eq!(found.flags.permanent, addr.valid.is_none(), "{found:?}");
    }
    let again = netlink.apply(&adds[..1]).unwrap_err();
    assert!(again.is_present(), "{again:?}");
    assert_eq!(
        again.to_string().split(" (").next().unwrap(),
        format!("cannot add address 10.0.0.5/24 to link {index}")
    );
    // Set is no refusal, and changes.
    let mut longer = wanted[3].clone();
    (longer.valid, longer.preferred) = (None, None);
    netlink.apply(&[Change::SetAddr(longer)]).unwrap();
    let seen = netlink.addrs(Some(index)).unwrap();
    let found = seen
        .iter()
        .find(|a| a.address == wanted[3].address)
        .unwrap();
    assert_eq!((found.valid, found.preferred), (None, None));

    let dels: Vec<_> = seen.iter().cloned().map(Change::DelAddr).collect();
    netlink.apply(&dels).unwrap();
    assert_eq!(netlink.addrs(Some(index)).unwrap(), []);
    let absent = netlink.apply(&dels[..1]).unwrap_err();
    assert!(absent.is_absent(), "{absent:?}");
}

#[test]
fn addresses_of_one_link_are_those_of_no_other() {
    let Some(sandbox) = Sandbox::new("addresses of one link") else {
        return;
    };
    let netns = sandbox.netns("pod");
    let mut netlink = netlink(&netns);
    let index = veth(&mut netlink);
    let addr = Addr::new(index, "10.0.0.5/24".parse().unwrap());
    netlink.apply(&[Change::AddAddr(addr)]).unwrap();
    let all = netlink.addrs(None).unwrap();
    assert!(
        all.iter().any(|a| a.index == 1),
        "lo has addresses: {all:?}"
    );
    let ours = netlink.addrs(Some(index)).unwrap();
    assert!(
        ours.iter().all(|a| a.index == index) && !ours.is_empty(),
        "{ours:?}"
    );
    assert!(ours.len() < all.len());
}

#[test]
fn neighbours_stay_and_proxies_answer() {
    let Some(sandbox) = Sandbox::new("neighbours") else {
        return;
    };
    let netns = sandbox.netns("pod");
    let mut netlink = netlink(&netns);
    let index = veth(&mut netlink);
    let mac = "02:00:00:00:00:01".parse().unwrap();
    let four = Neighbour::permanent(index, "10.0.0.1".parse().unwrap(), mac);
    let six = Neighbour::permanent(index, "fd00::1".parse().unwrap(), mac);
    let proxy = Neighbour::proxy(index, "10.0.0.9".parse().unwrap());
    let all = [four.clone(), six, proxy];
    let adds: Vec<_> = all.iter().cloned().map(Change::AddNeighbour).collect();
    netlink.apply(&adds).unwrap();
    // Twice is once.
    netlink.apply(&adds).unwrap();
    let there = shown(&netns, "neigh show dev a0 nud permanent");
    let text = there.to_string();
    assert!(
        text.contains("10.0.0.1") && text.contains("fd00::1"),
        "{text}"
    );
    assert!(
        text.contains("02:00:00:00:00:01") && text.contains("PERMANENT"),
        "{text}"
    );
    assert!(netns.ip("neigh show proxy").contains("10.0.0.9"));
    let mut seen = netlink.neighbours(Some(index)).unwrap();
    seen.retain(|n| n.state == NeighbourState::PERMANENT);
    assert_eq!(seen.len(), 3, "{seen:?}");
    for wanted in &all {
        assert!(seen.contains(wanted), "{wanted:?} in {seen:?}");
    }
    let dels: Vec<_> = all.iter().cloned().map(Change::DelNeighbour).collect();
    netlink.apply(&dels).unwrap();
    let absent = netlink.apply(&[Change::DelNeighbour(four)]).unwrap_err();
    assert!(absent.is_absent(), "{absent:?}");
    let down = LinkChange::down();
    netlink
        .apply(&[Change::SetLink {
            index,
            change: down,
        }])
        .unwrap();
}
