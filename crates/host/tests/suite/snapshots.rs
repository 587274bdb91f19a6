use mooring_api::net::Snapshot;
use mooring_host::{Change, diff, restore, snapshot, sysctl, sysctls};
use mooring_testkit::Sandbox;

use super::{index, netlink, open, shown};

/// Waits until no address of the link is tentative.
fn settle(node: &mooring_testkit::Netns) {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(10);
    loop {
        let tentative = node.ip("addr show dev ens3 tentative");
        if tentative.trim().is_empty() {
            return;
        }
        assert!(
            std::time::Instant::now() < end,
            "still tentative: {tentative}"
        );
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// Gives a link everything that a NIC of a host may have.
fn furnish(node: &mooring_testkit::Netns) {
    for words in [
        "link add ens3 type veth peer name far",
        "link set far up",
        "link set ens3 mtu 1400 txqueuelen 500 alias uplink",
        "link property add dev ens3 altname enp3s0",
        "link set ens3 up",
        "addr add 10.0.0.5/24 brd + dev ens3",
        "addr add 10.0.0.6/24 dev ens3 label ens3:two",
        "addr add 10.2.0.1 peer 10.2.0.2/32 dev ens3 metric 40",
        "addr add fd00::5/64 dev ens3 nodad",
        "addr add fd00::6/64 dev ens3 nodad valid_lft 7200 preferred_lft 3600",
        "route add default via 10.0.0.1 dev ens3 metric 100 proto static",
        "route add 10.9.0.0/16 via 10.0.0.2 dev ens3 mtu lock 1300",
        "route append 10.9.0.0/16 via 10.0.0.3 dev ens3",
        "route add 192.0.2.0/24 dev ens3 table 1234 src 10.0.0.5",
        "route add 198.51.100.0/24 via 172.16.0.1 dev ens3 onlink",
        "-6 route add default via fd00::1 dev ens3 metric 512",
        "-6 route add fd99::/32 dev ens3 table 1234",
        "rule add from 10.0.0.5 lookup 1234 priority 100",
        "rule add iif ens3 lookup 77 priority 101",
        "-6 rule add from fd00::/64 lookup 1234 priority 102",
        "neigh add 10.0.0.9 lladdr 02:00:00:00:00:09 dev ens3 nud permanent",
        "neigh add proxy 10.0.0.99 dev ens3",
    ] {
        node.ip(words);
    }
}

/// What a person would compare, without what runs.
fn everything(node: &mooring_testkit::Netns) -> String {
    let mut text = String::new();
    for words in [
        "addr show ens3",
        "-4 route show table all dev ens3",
        "-6 route show table all dev ens3",
        "rule show",
        "-6 rule show",
        "neigh show dev ens3 nud permanent",
        "neigh show proxy",
    ] {
        for line in node.ip(words).lines() {
            let word_runs =
                |word: &str| word.ends_with("sec") || word.parse::<u32>().is_ok_and(|n| n > 3000);
            let kept: Vec<_> = line.split_whitespace().filter(|w| !word_runs(w)).collect();
            text.push_str(&kept.join(" "));
            text.push('\n');
        }
    }
    text
}

#[test]
fn a_nic_that_was_away_is_put_back_whole() {
    if let Some(sandbox) = Sandbox::new("a NIC that comes back") {
        goes_and_comes_back(&sandbox);
    }
}

/// The whole journey, on whichever kernel runs it.
pub(super) fn goes_and_comes_back(sandbox: &Sandbox) {
    let (node, pod) = (sandbox.netns("node"), sandbox.netns("pod"));
    let (host, inside) = (open(&node), open(&pod));
    // Link-local addresses are there at once.
    for which in ["all", "default"] {
        let key = format!("net/ipv6/conf/{which}/accept_dad");
        sysctl::write(&host, &key, "0").unwrap();
    }
    furnish(&node);
    settle(&node);
    sysctl::write(&host, "net/ipv4/conf/ens3/arp_notify", "1").unwrap();
    // A secret cannot be read where none is set; this one comes back all the same.
    sysctl::write(&host, "net/ipv6/conf/ens3/stable_secret", "fd00::7").unwrap();
    sysctl::write(&host, "net/ipv6/conf/ens3/addr_gen_mode", "1").unwrap();
    sysctl::write(&host, "net/ipv4/neigh/ens3/gc_stale_time", "61").unwrap();
    let mut netlink_host = netlink(&node);
    let number = index(&mut netlink_host, "ens3");
    let before = snapshot(&host, number).unwrap();
    let text = everything(&node);
    assert_eq!(before.rules.len(), 3, "{:?}", before.rules);
    assert_eq!(before.neighbours.len(), 2, "{:?}", before.neighbours);
    // What is kept on disk is the same.
    let json = serde_json::to_string(&before).unwrap();
    assert_eq!(serde_json::from_str::<Snapshot>(&json).unwrap(), before);

    let away = Change::Move {
        index: number,
        netns: &inside,
        name: Some("net1".into()),
    };
    netlink_host.apply(&[away]).unwrap();
    let mut netlink_pod = inside.netlink().unwrap();
    let there = index(&mut netlink_pod, "net1");
    pod.ip("addr add 203.0.113.1/24 dev net1");
    pod.ip("link set net1 up mtu 1500");
    let home = Change::Move {
        index: there,
        netns: &host,
        name: None,
    };
    netlink_pod.apply(&[home]).unwrap();
    let back = index(&mut netlink_host, "net1");
    let lost = snapshot(&host, back).unwrap();
    assert!(lost.addrs.is_empty(), "{:?}", lost.addrs);
    assert_ne!(sysctls(&lost), sysctls(&before));

    let made = restore(&host, back, &before).unwrap();
    assert!(made.len() > 10, "{made:?}");
    let seen = snapshot(&host, back).unwrap();
    let left: Vec<_> = diff(&before, &seen)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(left, [""; 0]);
    assert_eq!(sysctls(&seen), sysctls(&before));
    settle(&node);
    assert_eq!(everything(&node), text);
    assert_eq!(shown(&node, "link show ens3")[0]["altnames"][0], "enp3s0");
    // Once more changes nothing.
    assert!(restore(&host, back, &before).unwrap().is_empty());
}

/// Some of each family and unit, set to what they are not by themselves.
const CHANGED: [(&str, &str); 12] = [
    ("net/ipv4/conf/IF/arp_announce", "2"),
    ("net/ipv4/conf/IF/arp_evict_nocarrier", "0"),
    ("net/ipv4/conf/IF/medium_id", "-1"),
    ("net/ipv4/conf/IF/rp_filter", "2"),
    ("net/ipv6/conf/IF/accept_ra", "2"),
    ("net/ipv6/conf/IF/keep_addr_on_down", "1"),
    ("net/ipv6/conf/IF/mldv1_unsolicited_report_interval", "9000"),
    ("net/ipv6/conf/IF/mtu", "1400"),
    ("net/ipv6/conf/IF/router_solicitation_delay", "7"),
    ("net/ipv6/conf/IF/router_solicitations", "-1"),
    ("net/ipv6/conf/IF/stable_secret", "fd00::7"),
    ("net/ipv6/neigh/IF/gc_stale_time", "61"),
];

#[test]
fn the_parameters_in_a_snapshot_are_those_in_the_files() {
    if let Some(sandbox) = Sandbox::new("a link's parameters") {
        parameters_are_those_in_the_files(&sandbox);
    }
}

/// Most of them come by a message, whose lists have no names: one entry too many or too few would shift all others.
pub(super) fn parameters_are_those_in_the_files(sandbox: &Sandbox) -> Snapshot {
    let node = sandbox.netns("node");
    node.ip("link add ens3 type veth peer name far");
    let host = open(&node);
    for (key, value) in CHANGED {
        let set = sysctl::write(&host, &key.replace("IF", "ens3"), value);
        // An older kernel lacks some.
        let absent = set.as_ref().is_err_and(sysctl::SysctlError::is_absent);
        assert!(set.is_ok() || absent, "{set:?}");
    }
    let number = index(&mut netlink(&node), "ens3");
    let taken = snapshot(&host, number).unwrap();
    let seen = sysctls(&taken);
    for root in ["ipv4/conf", "ipv6/conf", "ipv4/neigh", "ipv6/neigh"] {
        let files = host.run(|| sysctl::all_here(&format!("net/{root}/ens3")));
        let files = files.unwrap();
        assert!(files.len() > 10, "{root}: {files:?}");
        for (leaf, value) in files {
            // Another one shows the same number in a finer unit.
            if ["base_reachable_time", "retrans_time", "unres_qlen"].contains(&leaf.as_str()) {
                continue;
            }
            let told = seen.get(&format!("net/{root}/IF/{leaf}"));
            assert_eq!(told, Some(&value), "{root} {leaf}");
        }
    }
    taken
}

#[test]
fn a_restore_goes_on_after_a_refusal() {
    let Some(sandbox) = Sandbox::new("a restore with a refusal") else {
        return;
    };
    let node = sandbox.netns("node");
    node.ip("link add ens3 type veth peer name far");
    node.ip("link set far up");
    node.ip("link set ens3 up");
    let host = open(&node);
    let number = index(&mut netlink(&node), "ens3");
    let mut wanted = snapshot(&host, number).unwrap();
    // A master that is gone, and behind it a route that can be had.
    wanted.link.master = Some(4242);
    wanted
        .routes
        .push(mooring_api::net::Route::to("10.9.0.0/16".parse().unwrap()).dev(number));
    let refused = restore(&host, number, &wanted).unwrap_err();
    assert!(refused.to_string().contains("master 4242"), "{refused}");
    assert!(node.ip("route show").contains("10.9.0.0/16 dev ens3"));
    let gone = snapshot(&host, 4242).unwrap_err();
    assert!(
        gone.to_string().starts_with("there is no link 4242"),
        "{gone}"
    );
}
