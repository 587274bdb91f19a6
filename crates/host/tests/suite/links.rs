use mooring_api::net::{AddrGenMode, LinkChange, LinkKind, MacvlanMode, NewLink};
use mooring_host::Change;
use mooring_testkit::Sandbox;

use super::{index, netlink, open, shown};

#[test]
fn a_pair_reaches_from_one_namespace_into_another() {
    let Some(sandbox) = Sandbox::new("a veth between namespaces") else {
        return;
    };
    let (node, pod) = (sandbox.netns("node"), sandbox.netns("pod"));
    let mut link = NewLink::veth("host0", "eth0");
    link.set.mtu = Some(1400);
    link.set.up = Some(true);
    let peer = link.peer.as_mut().unwrap();
    peer.set.mac = Some("02:00:00:00:00:aa".parse().unwrap());
    peer.set.mtu = Some(1400);
    peer.set.up = Some(true);
    let inside = open(&pod);
    let change = Change::NewLinkIn {
        link,
        netns: None,
        peer: Some(&inside),
    };
    netlink(&node).apply(&[change]).unwrap();
    // The wish that the other end be up cannot be had before there are two ends.
    assert_eq!(shown(&pod, "link show eth0")[0]["operstate"], "DOWN");
    let mut inside = inside.netlink().unwrap();
    let index = index(&mut inside, "eth0");
    let change = LinkChange::up();
    inside.apply(&[Change::SetLink { index, change }]).unwrap();
    let there = &shown(&pod, "link show eth0")[0];
    assert_eq!(there["address"], "02:00:00:00:00:aa");
    assert_eq!(there["mtu"], 1400);
    assert_eq!(there["operstate"], "UP");
    let here = &shown(&node, "link show host0")[0];
    assert_eq!(here["linkinfo"]["info_kind"], "veth");
    assert_eq!(here["mtu"], 1400);
    let seen = netlink(&node).link("host0").unwrap().unwrap();
    assert_eq!(seen.kind, LinkKind::Veth);
    assert_eq!(seen.parent.map(u64::from), there["ifindex"].as_u64());
    assert!(seen.parent_netns.is_some());
    assert!(seen.up && seen.carrier);
}

#[test]
fn a_pair_made_elsewhere_stays_together() {
    let Some(sandbox) = Sandbox::new("a veth made in another namespace") else {
        return;
    };
    let (node, pod) = (sandbox.netns("node"), sandbox.netns("pod"));
    let inside = open(&pod);
    let change = Change::NewLinkIn {
        link: NewLink::veth("a0", "b0"),
        netns: Some(&inside),
        peer: None,
    };
    netlink(&node).apply(&[change]).unwrap();
    assert_eq!(
        shown(&pod, "link show type veth").as_array().unwrap().len(),
        2
    );
    assert_eq!(
        shown(&node, "link show type veth")
            .as_array()
            .unwrap()
            .len(),
        0
    );
}

#[test]
fn a_macvlan_is_made_in_the_pod_on_a_parent_of_the_node() {
    let Some(sandbox) = Sandbox::new("a macvlan across namespaces") else {
        return;
    };
    let fabric = sandbox.fabric("fabric");
    let node = sandbox.plugged(&fabric, "node");
    let pod = sandbox.netns("pod");
    let mut host = netlink(&node);
    let parent = index(&mut host, "eth1");
    let inside = open(&pod);
    for (name, mode, word) in [
        ("n1", MacvlanMode::Bridge, "bridge"),
        ("n2", MacvlanMode::Vepa, "vepa"),
        ("n3", MacvlanMode::Private, "private"),
    ] {
        let kind = LinkKind::Macvlan {
            mode,
            broadcast_queue: Some(2000),
        };
        let mut link = NewLink::new(name, kind.clone()).on(parent);
        link.set.mac = Some("02:00:00:00:00:01".parse().unwrap());
        link.set.up = Some(true);
        let change = Change::NewLinkIn {
            link,
            netns: Some(&inside),
            peer: None,
        };
        host.apply(&[change]).unwrap();
        let there = &shown(&pod, &format!("link show {name}"))[0];
        assert_eq!(there["linkinfo"]["info_data"]["mode"], word);
        assert_eq!(there["linkinfo"]["info_data"]["bcqueuelen"], 2000);
        assert_eq!(there["address"], "02:00:00:00:00:01");
        assert_eq!(there["link_index"].as_u64(), Some(u64::from(parent)));
        let mut pod_netlink = inside.netlink().unwrap();
        let seen = pod_netlink.link(name).unwrap().unwrap();
        assert_eq!(seen.kind, kind);
        assert_eq!(seen.parent, Some(parent));
        pod_netlink.apply(&[Change::DelLink(seen.index)]).unwrap();
        assert_eq!(pod_netlink.link(name).unwrap(), None);
    }
    // A parent that is passed through has one child.
    let passthru = |name: &str| {
        let mode = MacvlanMode::Passthru;
        let kind = LinkKind::Macvlan {
            mode,
            broadcast_queue: None,
        };
        Change::NewLink(NewLink::new(name, kind).on(parent))
    };
    host.apply(&[passthru("p1")]).unwrap();
    let refused = host.apply(&[passthru("p2")]).unwrap_err();
    assert_eq!(refused.errno(), Some(nix::libc::EINVAL), "{refused:?}");
}

#[test]
fn every_attribute_of_a_link_is_set_and_read() {
    let Some(sandbox) = Sandbox::new("attributes of a link") else {
        return;
    };
    let netns = sandbox.netns("node");
    let mut netlink = netlink(&netns);
    let made = netlink.create(&NewLink::veth("a0", "b0")).unwrap();
    let bridge = LinkKind::Bridge(mooring_api::net::Bridge::default());
    let master = netlink.create(&NewLink::new("br0", bridge)).unwrap();
    let change = LinkChange {
        name: Some("a1".into()),
        mac: Some("02:00:00:00:00:11".parse().unwrap()),
        mtu: Some(1280),
        up: Some(true),
        promiscuous: Some(true),
        all_multicast: Some(true),
        arp: Some(false),
        multicast: Some(false),
        txqlen: Some(77),
        alias: Some("a NIC of somebody's".into()),
        master: Some(master.index),
        group: Some(9),
        addr_gen: Some(AddrGenMode::None),
        kind: None,
    };
    let index = made.index;
    let name = "a-name-that-is-longer-than-fifteen-bytes";
    netlink
        .apply(&[
            Change::SetLink {
                index,
                change: change.clone(),
            },
            Change::AddAltName {
                index,
                name: name.into(),
            },
            Change::AddAltName {
                index,
                name: "short".into(),
            },
        ])
        .unwrap();
    let there = &shown(&netns, "link show a1")[0];
    for (key, value) in [
        ("address", serde_json::json!("02:00:00:00:00:11")),
        ("mtu", 1280.into()),
        ("txqlen", 77.into()),
        ("ifalias", "a NIC of somebody's".into()),
        ("master", "br0".into()),
        ("group", "9".into()),
        ("inet6_addr_gen_mode", "none".into()),
    ] {
        assert_eq!(there[key], value, "{key} of {there}");
    }
    let flags = there["flags"].as_array().unwrap();
    for flag in ["UP", "PROMISC", "ALLMULTI", "NOARP"] {
        assert!(flags.contains(&flag.into()), "{flag} in {flags:?}");
    }
    assert!(!flags.contains(&"MULTICAST".into()), "{flags:?}");
    let mut names: Vec<_> = there["altnames"].as_array().unwrap().clone();
    names.sort_by_key(ToString::to_string);
    assert_eq!(names, [name, "short"]);

    let seen = netlink.link(name).unwrap().unwrap();
    assert_eq!(seen.name, "a1");
    assert_eq!(netlink.link("short").unwrap().unwrap(), seen);
    assert_eq!(netlink.link_at(index).unwrap().unwrap(), seen);
    assert_eq!(seen.alias.as_deref(), Some("a NIC of somebody's"));
    assert_eq!((seen.mtu, seen.txqlen, seen.group), (1280, 77, 9));
    assert_eq!(seen.master, Some(master.index));
    assert!(seen.up && seen.promiscuous && seen.all_multicast);
    assert!(!seen.arp && !seen.multicast);
    assert_eq!(seen.hardware, 1);
    assert!(seen.max_mtu >= 1500 && seen.min_mtu > 0, "{seen:?}");

    let back = LinkChange {
        promiscuous: Some(false),
        all_multicast: Some(false),
        arp: Some(true),
        multicast: Some(true),
        alias: Some(String::new()),
        master: Some(0),
        ..LinkChange::down()
    };
    netlink
        .apply(&[
            Change::SetLink {
                index,
                change: back,
            },
            Change::DelAltName {
                index,
                name: name.into(),
            },
        ])
        .unwrap();
    let seen = netlink.link_at(index).unwrap().unwrap();
    assert_eq!(seen.alias, None);
    assert_eq!(seen.master, None);
    assert_eq!(seen.altnames, ["short"]);
    assert!(!seen.up && !seen.promiscuous && !seen.all_multicast);
    let there = &shown(&netns, "link show a1")[0];
    assert!(there.get("ifalias").is_none(), "{there}");
    assert!(there.get("master").is_none(), "{there}");
}

#[test]
fn a_link_moves_and_is_renamed_there() {
    let Some(sandbox) = Sandbox::new("a link that moves") else {
        return;
    };
    let (node, pod) = (sandbox.netns("node"), sandbox.netns("pod"));
    let mut host = netlink(&node);
    let made = host.create(&NewLink::veth("a0", "b0")).unwrap();
    let inside = open(&pod);
    let to_pod = |name: Option<&str>| Change::Move {
        index: made.index,
        netns: &inside,
        name: name.map(str::to_owned),
    };
    host.apply(&[to_pod(Some("net1"))]).unwrap();
    assert_eq!(host.link("a0").unwrap(), None);
    assert_eq!(shown(&pod, "link show net1")[0]["operstate"], "DOWN");
    // A name that is taken there: the kernel says so.
    node.ip("link add a0 type veth peer name c0");
    let index = index(&mut host, "a0");
    let again = Change::Move {
        index,
        netns: &inside,
        name: Some("net1".into()),
    };
    let refused = host.apply(&[again]).unwrap_err();
    assert!(refused.is_present(), "{refused:?}");
    assert!(refused.to_string().contains("as net1"), "{refused}");
    // And it has moved the link all the same, under its old name: whoever is refused has to look.
    assert_eq!(host.link("a0").unwrap(), None);
    assert!(inside.netlink().unwrap().link("a0").unwrap().is_some());
}

#[test]
fn errors_name_the_operation_and_know_absent_from_present() {
    let Some(sandbox) = Sandbox::new("netlink errors") else {
        return;
    };
    let netns = sandbox.netns("node");
    let mut netlink = netlink(&netns);
    let absent = netlink.apply(&[Change::DelLink(4242)]).unwrap_err();
    assert!(absent.is_absent() && !absent.is_present(), "{absent:?}");
    assert_eq!(absent.to_string(), "cannot delete link 4242");
    netlink.create(&NewLink::veth("a0", "b0")).unwrap();
    let present = netlink.create(&NewLink::veth("a0", "c0")).unwrap_err();
    assert!(present.is_present() && !present.is_absent(), "{present:?}");
    assert!(present.to_string().starts_with("cannot make veth a0"));
    let kind = LinkKind::Other("no-such-kind".into());
    let unknown = netlink.create(&NewLink::new("x0", kind)).unwrap_err();
    assert_eq!(unknown.errno(), Some(nix::libc::EOPNOTSUPP));
    // The kernel's own words are passed on.
    assert_eq!(
        unknown.to_string(),
        "cannot make no-such-kind x0 (the kernel says: Unknown device type)"
    );
    assert_eq!(netlink.link("nobody").unwrap(), None);
    assert_eq!(netlink.link_at(4242).unwrap(), None);
    assert_eq!(netlink.addrs(Some(4242)).unwrap(), []);
    assert_eq!(netlink.routes(Some(4242)).unwrap(), []);
    assert_eq!(netlink.neighbours(Some(4242)).unwrap(), []);
    assert_eq!(netlink.vfs(4242).unwrap(), []);
}

#[test]
fn a_batch_goes_on_behind_a_refusal_and_says_which_it_was() {
    let Some(sandbox) = Sandbox::new("a batch with a refusal") else {
        return;
    };
    let netns = sandbox.netns("node");
    let mut netlink = netlink(&netns);
    let mut batch = netlink.batch();
    for n in 0..100 {
        batch.push(&Change::NewLink(NewLink::veth(
            format!("a{n}"),
            format!("b{n}"),
        )));
        if n == 70 {
            batch.push(&Change::DelLink(4242));
        }
    }
    let verdicts = batch.send_each();
    assert_eq!(verdicts.len(), 101);
    let refused: Vec<_> = verdicts
        .iter()
        .enumerate()
        .filter(|(_, v)| v.is_err())
        .collect();
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(refused[0].0, 71);
    // A dump of many links needs several datagrams.
    let links = netlink.links().unwrap();
    assert_eq!(links.len(), 201);
    assert!(links.is_sorted_by_key(|link| link.index));
    let shown = shown(&netns, "link show");
    assert_eq!(shown.as_array().unwrap().len(), 201);
    for (link, shown) in links.iter().zip(shown.as_array().unwrap()) {
        assert_eq!(shown["ifname"], link.name.as_str());
        assert_eq!(shown["address"], link.mac.unwrap().to_string());
    }
}
