//! amd-host-device: a NIC goes to a pod with its addresses and comes back with everything.
//!
//! The tests `hole_…` are the twelve defects that the original has (`docs/guides/cni-plugins.md`), each by what a user would see.

mod late;
mod mapping;
mod qemu;

use serde_json::{Value, json};

use crate::host_device::bed::{BDF, Bed, addresses, read};
use crate::stage::Pod;

/// A node whose `dev0` is the NIC at [`BDF`].
fn bed(what: &str) -> Option<Bed> {
    let bed = Bed::new(what)?;
    bed.sysfs(BDF, "dev0");
    Some(bed)
}

/// A pod with the configuration of the seed: name, version, type, and what Multus injects.
fn pod(bed: &Bed, container: &str) -> Pod {
    let config = json!({
        "name": "amd-host-device-nad",
        "cniVersion": "0.3.1",
        "type": "amd-host-device",
        "deviceID": BDF,
    });
    bed.stage.pod(container, config)
}

fn mappings(bed: &Bed) -> Value {
    let path = bed
        .stage
        .root()
        .join("var/lib/cni/amd-host-device/ip-interface-mappings.json");
    if path.exists() {
        read(&path)
    } else {
        json!({})
    }
}

const GIVEN: [&str; 4] = [
    "192.0.2.10/24",
    "203.0.113.7/32",
    "192.0.2.11/24",
    "2001:db8::10/64",
];

fn sorted(mut texts: Vec<String>) -> Vec<String> {
    texts.sort();
    texts
}

fn given() -> Vec<String> {
    sorted(GIVEN.map(str::to_owned).to_vec())
}

#[test]
fn the_addresses_of_the_nic_go_along_and_everything_comes_back() {
    let Some(bed) = bed("amd there and back") else {
        return;
    };
    let before = bed.picture("dev0");
    let pod = pod(&bed, "c1");
    let result = pod.add();
    assert_eq!(sorted(pod.addresses()), given());
    let told: Vec<String> = result["ips"]
        .as_array()
        .unwrap()
        .iter()
        .map(|ip| ip["address"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(sorted(told), given());
    assert_eq!(
        result["ips"][0]["version"], "4",
        "a 0.3.1 result says the family"
    );
    assert_eq!(bed.picture("dev0"), json!(null));
    pod.del();
    assert_eq!(bed.picture("dev0"), before);
    assert!(bed.records().is_empty());
    assert_eq!(mappings(&bed), json!({}));
}

#[test]
fn the_same_nad_twice_gives_two_different_nics() {
    let Some(bed) = bed("amd twice") else { return };
    bed.device("dev1", "02:00:00:00:00:21");
    bed.node().ip("addr add 10.9.0.0/31 dev dev1");
    bed.node().ip("link set dev1 up");
    bed.sysfs("0000:5e:00.0", "dev1");
    let pictures = ["dev0", "dev1"].map(|name| bed.picture(name));
    let first = pod(&bed, "c1");
    let mut second = first.clone().with("deviceID", json!("0000:5e:00.0"));
    second.ifname = "net2".to_owned();
    first.add();
    let result = second.add();
    assert_eq!(sorted(first.addresses()), given());
    assert_eq!(second.addresses(), ["10.9.0.0/31"]);
    assert_eq!(result["ips"][0]["gateway"], "10.9.0.1");
    first.del();
    assert_eq!(
        second.addresses(),
        ["10.9.0.0/31"],
        "a DEL is for one interface"
    );
    second.del();
    assert_eq!(["dev0", "dev1"].map(|name| bed.picture(name)), pictures);
}

#[test]
fn hole_01_a_crash_between_move_and_note_loses_no_address() {
    let Some(bed) = bed("amd hole 1") else { return };
    let before = bed.picture("dev0");
    let pod = pod(&bed, "c1");
    let said = pod.call_with("ADD", &[("MOOR_CNI_DIE_AT", "device-moved".to_owned())]);
    assert_ne!(said.code, Some(0));
    assert!(pod.link().is_some(), "killed after the move: {said:?}");
    pod.add();
    assert_eq!(sorted(pod.addresses()), given());
    pod.del();
    assert_eq!(bed.picture("dev0"), before);
}

#[test]
fn hole_02_parallel_pods_lose_no_entry_and_a_torn_file_fails_nobody() {
    let Some(bed) = bed("amd hole 2") else { return };
    let names: Vec<String> = (0..6).map(|n| format!("rail{n}")).collect();
    let mut pods = Vec::new();
    for (n, name) in names.iter().enumerate() {
        bed.device(name, &format!("02:00:00:00:01:0{n}"));
        bed.node().ip(&format!("addr add 10.8.{n}.1/24 dev {name}"));
        bed.node().ip(&format!("link set {name} up"));
        let bdf = format!("0000:6{n}:00.0");
        bed.sysfs(&bdf, name);
        pods.push(pod(&bed, &format!("p{n}")).with("deviceID", json!(bdf)));
    }
    let pictures: Vec<Value> = names.iter().map(|name| bed.picture(name)).collect();
    let all = |verb: &str| {
        std::thread::scope(|scope| {
            let calls: Vec<_> = pods
                .iter()
                .map(|pod| scope.spawn(|| pod.call(verb)))
                .collect();
            for call in calls {
                call.join().unwrap().ok();
            }
        });
    };
    all("ADD");
    assert_eq!(bed.records().len(), 6);
    assert_eq!(mappings(&bed).as_object().unwrap().len(), 6);
    all("DEL");
    let after: Vec<Value> = names.iter().map(|name| bed.picture(name)).collect();
    assert_eq!(after, pictures);
    assert_eq!(mappings(&bed), json!({}));
    let file = bed
        .stage
        .root()
        .join("var/lib/cni/amd-host-device/ip-interface-mappings.json");
    std::fs::write(&file, "{\"0000:60:00.0\": {\"hostInt").unwrap();
    all("ADD");
    all("DEL");
    let torn = std::fs::read_to_string(&file).unwrap();
    assert_eq!(
        torn, "{\"0000:60:00.0\": {\"hostInt",
        "what we cannot read we do not replace"
    );
    assert_eq!(bed.picture("rail0"), pictures[0]);
}

#[test]
fn hole_03_a_late_del_of_an_old_sandbox_leaves_the_new_pod_its_nic_and_record() {
    let Some(bed) = bed("amd hole 3") else { return };
    let before = bed.picture("dev0");
    let old = pod(&bed, "old");
    old.add();
    old.del();
    let new = pod(&bed, "new");
    new.add();
    old.del();
    old.del_blind();
    assert_eq!(sorted(new.addresses()), given());
    assert_eq!(read(&bed.records()[0])["owner"]["holder"], "new");
    assert!(mappings(&bed).get(BDF).is_some());
    new.del();
    assert_eq!(bed.picture("dev0"), before);
}

#[test]
fn hole_04_a_restore_that_fails_keeps_the_record_and_is_tried_again() {
    let Some(bed) = bed("amd hole 4") else { return };
    let before = bed.picture("dev0");
    let pod = pod(&bed, "c1");
    pod.add();
    bed.node().ip("link add dev0 type veth peer name thief0");
    let (_, text) = pod.refuse("DEL");
    assert!(text.contains("dev0"), "{text}");
    assert_eq!(bed.records().len(), 1);
    bed.node().ip("link del dev0");
    pod.del();
    assert_eq!(bed.picture("dev0"), before);
    assert!(bed.records().is_empty());
}

#[test]
fn hole_05_routes_rules_neighbours_mtu_sysctls_and_lifetimes_come_back_too() {
    let Some(bed) = bed("amd hole 5") else { return };
    bed.node()
        .ip("addr add 192.0.2.77/24 dev dev0 valid_lft 4000 preferred_lft 3000");
    let before = bed.picture("dev0");
    let wanted = before.to_string();
    for part in [
        "198.51.100.0/24",
        "101",
        "02:00:00:00:00:01",
        "1400",
        "dev0:1",
        "300",
        "true",
    ] {
        assert!(wanted.contains(part), "{part} is not in {wanted}");
    }
    let pod = pod(&bed, "c1");
    pod.add();
    pod.netns.ip("link set net1 mtu 1200 txqueuelen 5");
    pod.netns.ip("addr flush dev net1");
    pod.del();
    assert_eq!(bed.picture("dev0"), before);
    let address = bed.node().ip("addr show dev dev0 to 192.0.2.77");
    let left: u32 = address
        .split("valid_lft ")
        .nth(1)
        .and_then(|rest| rest.split("sec").next())
        .and_then(|seconds| seconds.parse().ok())
        .unwrap_or_else(|| panic!("no lifetime in {address}"));
    assert!((3000..=4000).contains(&left), "{address}");
}

#[test]
fn hole_06_a_missing_or_wrong_device_id_is_an_answer_and_no_panic() {
    let Some(bed) = bed("amd hole 6") else { return };
    let before = bed.picture("dev0");
    for (n, wrong) in [
        json!(null),
        json!(7),
        json!(""),
        json!(["a"]),
        json!("no-such"),
    ]
    .into_iter()
    .enumerate()
    {
        let pod = pod(&bed, &format!("c{n}")).with("deviceID", wrong.clone());
        let (code, text) = pod.refuse("ADD");
        assert_eq!(code, 7, "{wrong}: {text}");
        pod.del();
    }
    let bare = bed.stage.pod("bare", json!({"type": "amd-host-device"}));
    assert_eq!(bare.refuse("ADD").0, 7);
    bare.del();
    assert_eq!(bed.picture("dev0"), before);
}

#[test]
fn hole_07_check_and_status_succeed_and_check_can_fail() {
    let Some(bed) = bed("amd hole 7") else { return };
    let pod = pod(&bed, "c1").with("cniVersion", json!("1.1.0"));
    let result = pod.add();
    pod.check(&result).ok();
    pod.call("STATUS").ok();
    pod.netns.ip("addr del 192.0.2.11/24 dev net1");
    let said = pod.check(&result);
    assert_ne!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.contains("192.0.2.11/24"), "{said:?}");
}

#[test]
fn hole_08_gateways_beyond_a_31_and_routes_of_the_host_go_along() {
    let Some(bed) = bed("amd hole 8") else { return };
    bed.device("dev1", "02:00:00:00:00:21");
    bed.sysfs("0000:5e:00.0", "dev1");
    let node = bed.node();
    node.ip("link set dev1 up");
    node.ip("addr add 10.9.0.1/30 dev dev1");
    node.ip("addr add 10.7.0.9/24 dev dev1");
    node.ip("route add default via 10.7.0.254 dev dev1 table 200");
    node.ip("route add 10.70.0.0/16 via 10.7.0.254 dev dev1 metric 9");
    node.ip("route add 10.71.0.0/16 dev dev1");
    let before = bed.picture("dev1");
    let pod = pod(&bed, "c1").with("deviceID", json!("0000:5e:00.0"));
    let result = pod.add();
    let gateways: Vec<(&str, &str)> = result["ips"]
        .as_array()
        .unwrap()
        .iter()
        .map(|ip| {
            (
                ip["address"].as_str().unwrap(),
                ip["gateway"].as_str().unwrap_or(""),
            )
        })
        .collect();
    assert!(
        gateways.contains(&("10.9.0.1/30", "10.9.0.2")),
        "{gateways:?}"
    );
    assert!(
        gateways.contains(&("10.7.0.9/24", "10.7.0.254")),
        "{gateways:?}"
    );
    let routes = pod.netns.ip("route show");
    assert!(
        routes.contains("10.70.0.0/16 via 10.7.0.254 dev net1 metric 9"),
        "{routes}"
    );
    assert!(
        routes.contains("10.71.0.0/16 dev net1 scope link"),
        "{routes}"
    );
    assert!(
        !routes.contains("default"),
        "a pod keeps its own default route: {routes}"
    );
    pod.del();
    assert_eq!(bed.picture("dev1"), before);
}

#[test]
fn hole_09_after_a_reboot_a_late_del_adds_no_stale_address() {
    let Some(bed) = bed("amd hole 9") else { return };
    let pod = pod(&bed, "c1");
    pod.add();
    bed.reboot();
    bed.fall_back(&pod, "dev0");
    bed.node().ip("addr add 10.1.1.1/24 dev dev0");
    let fresh = bed.picture("dev0");
    pod.del();
    assert_eq!(bed.picture("dev0"), fresh);
    assert!(bed.records().is_empty());
    assert_eq!(mappings(&bed), json!({}));
}

#[test]
fn hole_10_a_nic_whose_namespace_ended_gets_its_name_and_addresses_back() {
    let Some(bed) = bed("amd hole 10") else {
        return;
    };
    let before = bed.picture("dev0");
    for name in ["net1", "dev3"] {
        let pod = pod(&bed, &format!("c-{name}"));
        pod.add();
        bed.fall_back(&pod, name);
        pod.del();
        assert_eq!(bed.picture("dev0"), before);
    }
}

#[test]
fn hole_11_an_ipam_of_the_configuration_wins_and_the_nics_own_addresses_still_come_back() {
    let Some(bed) = bed("amd hole 11") else {
        return;
    };
    let before = bed.picture("dev0");
    let pod = pod(&bed, "c1").with("ipam", addresses());
    pod.add();
    assert_eq!(pod.addresses(), ["192.0.2.99/24"]);
    pod.del();
    assert_eq!(bed.picture("dev0"), before);
}

#[test]
fn hole_12_the_device_id_alone_is_enough_and_so_is_the_pci_bus_id() {
    let Some(bed) = bed("amd hole 12") else {
        return;
    };
    let before = bed.picture("dev0");
    for (n, keys) in [
        json!({"deviceID": BDF}),
        json!({"pciBusID": BDF}),
        json!({"runtimeConfig": {"deviceID": BDF}}),
    ]
    .into_iter()
    .enumerate()
    {
        let mut config = json!({"type": "amd-host-device"});
        for (key, value) in keys.as_object().unwrap() {
            config[key] = value.clone();
        }
        let pod = bed.stage.pod(&format!("c{n}"), config);
        pod.add();
        assert_eq!(sorted(pod.addresses()), given(), "{keys}");
        pod.del();
        assert_eq!(bed.picture("dev0"), before, "{keys}");
    }
}

#[test]
fn after_a_kill_anywhere_in_add_or_del_the_nic_ends_as_it_was() {
    let Some(bed) = bed("amd killed") else { return };
    let before = bed.picture("dev0");
    let counted = pod(&bed, "count");
    let (add, del) = (counted.points("ADD"), counted.points("DEL"));
    assert!(add.len() >= 4 && del.len() >= 3, "{add:?} {del:?}");
    for (n, name) in add.iter().enumerate() {
        let pod = pod(&bed, &format!("a{n}"));
        pod.killed("ADD", n);
        if n % 2 == 0 {
            pod.add();
            assert_eq!(sorted(pod.addresses()), given(), "killed after {name}");
        }
        pod.del();
        assert_eq!(bed.picture("dev0"), before, "killed after {name}");
        assert!(bed.records().is_empty(), "killed after {name}");
    }
    for (n, name) in del.iter().enumerate() {
        let pod = pod(&bed, &format!("d{n}"));
        pod.add();
        pod.killed("DEL", n);
        pod.del_blind();
        assert_eq!(bed.picture("dev0"), before, "killed after {name}");
        assert!(bed.records().is_empty(), "killed after {name}");
    }
    println!("killed at {} points", add.len() + del.len());
}
