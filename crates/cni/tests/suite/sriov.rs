//! sriov on a kernel without SR-IOV: a sysfs of our own says that a veth is a VF. Moves, state files and ownership are real here; what a
//! physical function sets is in the module `qemu`.

mod qemu;

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::conformance::bed::Shown as _;
use crate::host_device::bed::{Bed, addresses, pool, read};
use crate::stage::Pod;

const PF: &str = "0000:3b:00.0";
const VF: &str = "0000:3b:10.2";

/// A node where `dev0` is VF 1 of `pf0`.
fn bed(what: &str) -> Option<Bed> {
    let bed = Bed::new(what)?;
    bed.device("pf0", "02:00:00:00:00:99");
    bed.node().ip("link set pf0 up");
    let pf = bed.sysfs(PF, "pf0");
    let vf = bed.sysfs(VF, "dev0");
    std::os::unix::fs::symlink(&pf, vf.join("physfn")).unwrap();
    std::os::unix::fs::symlink(pf.with_file_name("0000:3b:10.0"), pf.join("virtfn0")).unwrap();
    std::os::unix::fs::symlink(&vf, pf.join("virtfn1")).unwrap();
    Some(bed)
}

fn pod(bed: &Bed, container: &str) -> Pod {
    let config =
        json!({"type": "sriov", "deviceID": VF, "ipam": addresses(), "cniVersion": "1.0.0"});
    bed.stage.pod(container, config)
}

fn file(bed: &Bed, name: &str) -> PathBuf {
    bed.stage.root().join("var/lib/cni/sriov").join(name)
}

/// What sriov-cni 2.10 leaves after its ADD, from the facts about its files: the VF in the pod, its cache, the allocation.
fn attached_by_the_original(bed: &Bed, pod: &Pod) {
    let netns = pod.netns.path();
    bed.node().ip("link set dev0 down");
    let short = netns.rsplit('/').next().unwrap();
    bed.node()
        .ip(&format!("link set dev0 netns {short} name {}", pod.ifname));
    pod.netns.ip(&format!(
        "link set {} address 02:00:00:00:00:aa mtu 1300 up",
        pod.ifname
    ));
    let cache = json!({
        "cniVersion": "1.0.0", "name": "net", "type": "sriov", "ipam": {}, "dns": {},
        "OrigVfState": {
            "HostIFName": "dev0", "SpoofChk": true, "Trust": false, "AdminMAC": "00:00:00:00:00:00",
            "EffectiveMAC": "02:00:00:00:00:10", "Vlan": 0, "VlanQoS": 0, "VlanProto": 33024,
            "MinTxRate": 0, "MaxTxRate": 0, "LinkState": 0, "MTU": 1400,
        },
        "Master": "pf0", "MAC": "02:00:00:00:00:aa", "MTU": null, "vlan": null, "vlanQoS": null, "vlanProto": null,
        "deviceID": VF, "VFID": 1, "min_tx_rate": null, "max_tx_rate": null,
        "runtimeConfig": {},
    });
    std::fs::create_dir_all(file(bed, "pci/vf_lock")).unwrap();
    std::fs::write(
        file(bed, &format!("{}-{}", pod.container, pod.ifname)),
        cache.to_string(),
    )
    .unwrap();
    std::fs::write(file(bed, &format!("pci/{VF}")), netns).unwrap();
}

#[test]
fn a_vf_goes_to_the_pod_with_the_files_of_sriov_cni_and_comes_back() {
    let Some(bed) = bed("sriov there and back") else {
        return;
    };
    let before = bed.picture("dev0");
    let pod = pod(&bed, "c1");
    let result = pod.add();
    assert_eq!(result["interfaces"][0]["name"], "net1");
    assert_eq!(pod.addresses(), ["192.0.2.99/24"]);
    let cache = read(&file(&bed, "c1-net1"));
    let original = json!({
        "HostIFName": "dev0", "SpoofChk": false, "Trust": false, "AdminMAC": "",
        "EffectiveMAC": "02:00:00:00:00:10", "Vlan": 0, "VlanQoS": 0, "VlanProto": 33024,
        "MinTxRate": 0, "MaxTxRate": 0, "LinkState": 0, "MTU": 1400,
    });
    assert_eq!(cache["OrigVfState"], original);
    assert_eq!(cache["Master"], "pf0");
    assert_eq!(cache["VFID"], 1);
    assert_eq!(cache["deviceID"], VF);
    assert_eq!(cache["name"], "net");
    assert_eq!(cache["ipam"]["type"], "static");
    let allocation = std::fs::read_to_string(file(&bed, &format!("pci/{VF}"))).unwrap();
    assert_eq!(allocation, pod.netns.path());
    assert!(file(&bed, &format!("pci/vf_lock/{VF}.lock")).exists());
    let notify = pod
        .netns
        .run("sysctl", &["-n", "net.ipv4.conf.net1.arp_notify"]);
    assert_eq!(notify.ok().trim(), "1");
    pod.check(&result).ok();
    assert_eq!(pod.add(), result, "a repeated ADD gives the same answer");
    pod.del();
    assert_eq!(bed.picture("dev0"), before);
    assert!(!file(&bed, "c1-net1").exists());
    assert!(!file(&bed, &format!("pci/{VF}")).exists());
    assert!(bed.records().is_empty());
    pod.del();
    assert_eq!(bed.picture("dev0"), before);
}

#[test]
fn a_vf_of_user_space_stays_and_the_pod_gets_its_addresses_told() {
    let Some(bed) = bed("sriov DPDK") else { return };
    bed.bind(VF, "vfio-pci");
    let before = bed.picture("dev0");
    let pod = pod(&bed, "c1").with("ipam", pool());
    let result = pod.add();
    assert_eq!(result["ips"][0]["address"], "192.0.2.50/24");
    assert_eq!(result["interfaces"][0]["name"], "net1");
    assert_eq!(bed.picture("dev0"), before);
    assert!(file(&bed, "c1-net1").exists());
    let other = pod_two(&bed);
    let (code, text) = other.refuse("ADD");
    assert_eq!(code, 11, "{text}");
    pod.check(&result).ok();
    pod.del();
    assert_eq!(bed.stage.held(), 0);
    assert!(!file(&bed, "c1-net1").exists());
    assert!(!file(&bed, &format!("pci/{VF}")).exists());
    other.add();
    other.del();
}

fn pod_two(bed: &Bed) -> Pod {
    pod(bed, "c2").with("ipam", pool())
}

#[test]
fn a_late_del_never_touches_a_vf_that_another_pod_has() {
    let Some(bed) = bed("sriov late DEL") else {
        return;
    };
    let before = bed.picture("dev0");
    let old = pod(&bed, "old");
    old.add();
    let cache = std::fs::read(file(&bed, "old-net1")).unwrap();
    old.del();
    let new = pod(&bed, "new");
    new.add();
    // As after a crash of the original: the old pod's file is still there, without a record.
    std::fs::write(file(&bed, "old-net1"), cache).unwrap();
    old.del();
    assert!(!file(&bed, "old-net1").exists());
    assert_eq!(new.addresses(), ["192.0.2.99/24"]);
    let allocation = std::fs::read_to_string(file(&bed, &format!("pci/{VF}"))).unwrap();
    assert_eq!(allocation, new.netns.path());
    new.del();
    assert_eq!(bed.picture("dev0"), before);
}

#[test]
fn a_del_without_a_namespace_frees_the_vf_though_the_pod_lives() {
    let Some(bed) = bed("sriov blind DEL, living pod") else {
        return;
    };
    let before = bed.picture("dev0");
    let allocation = file(&bed, &format!("pci/{VF}"));
    let old = pod(&bed, "old");
    old.add();
    old.del_blind();
    assert_eq!(bed.picture("dev0"), before);
    assert!(!allocation.exists());
    assert!(!file(&bed, "old-net1").exists());
    let new = pod(&bed, "new");
    new.add();
    let has = || std::fs::read_to_string(&allocation).unwrap();
    assert_eq!(has(), new.netns.path());
    old.del_blind();
    old.del();
    assert_eq!(has(), new.netns.path(), "a late DEL leaves it alone");
    assert_eq!(new.addresses(), ["192.0.2.99/24"]);
    new.del();
    assert_eq!(bed.picture("dev0"), before);
    assert!(!allocation.exists());
}

#[test]
fn after_a_kill_anywhere_in_a_del_without_a_namespace_the_vf_is_free() {
    let Some(bed) = bed("sriov blind DEL, killed") else {
        return;
    };
    let before = bed.picture("dev0");
    let counted = pod(&bed, "count");
    counted.add();
    let del = counted.points("DEL");
    assert!(del.iter().any(|p| p == "record-removed"), "{del:?}");
    for (n, name) in del.iter().enumerate() {
        let old = pod(&bed, &format!("d{n}"));
        old.add();
        let blind = [
            ("CNI_NETNS", String::new()),
            ("MOOR_CNI_DIE_AT", (n + 1).to_string()),
        ];
        let said = old.call_with("DEL", &blind);
        assert!(matches!(said.code, None | Some(137)), "{said:?}");
        old.del_blind();
        assert_eq!(bed.picture("dev0"), before, "killed after {name}");
        let new = pod(&bed, &format!("n{n}"));
        new.add();
        new.del();
    }
}

#[test]
fn a_del_without_a_namespace_leaves_the_allocation_of_another_that_lives() {
    let Some(bed) = bed("sriov blind DEL, another's allocation") else {
        return;
    };
    let before = bed.picture("dev0");
    let other = bed.stage.sandbox.netns("other");
    let allocation = file(&bed, &format!("pci/{VF}"));
    let old = pod(&bed, "old");
    old.add();
    std::fs::write(&allocation, other.path()).unwrap();
    old.del_blind();
    assert_eq!(bed.picture("dev0"), before);
    assert_eq!(std::fs::read_to_string(&allocation).unwrap(), other.path());
}

#[test]
fn an_allocation_of_a_living_pod_is_obeyed_and_one_of_a_dead_pod_is_not() {
    let Some(bed) = bed("sriov allocation") else {
        return;
    };
    let other = bed.stage.sandbox.netns("other");
    std::fs::create_dir_all(file(&bed, "pci")).unwrap();
    let allocation = file(&bed, &format!("pci/{VF}"));
    std::fs::write(&allocation, other.path()).unwrap();
    let pod = pod(&bed, "c1");
    let (code, text) = pod.refuse("ADD");
    assert_eq!(code, 11, "{text}");
    assert!(text.contains(&other.path()), "{text}");
    assert_eq!(std::fs::read_to_string(&allocation).unwrap(), other.path());
    std::fs::write(&allocation, "/run/netns/long-gone").unwrap();
    pod.add();
    pod.del();
    assert!(!allocation.exists());
}

#[test]
fn what_sriov_cni_attached_our_del_brings_home() {
    let Some(bed) = bed("sriov reference state, our DEL") else {
        return;
    };
    let pod = pod(&bed, "c1");
    attached_by_the_original(&bed, &pod);
    pod.del();
    let link = bed.node().link("dev0").expect("home");
    assert_eq!(link["address"], "02:00:00:00:00:10");
    assert_eq!(link["mtu"], 1400);
    assert!(!file(&bed, "c1-net1").exists());
    assert!(!file(&bed, &format!("pci/{VF}")).exists());
    pod.del();
}

#[test]
fn a_vf_of_sriov_cni_that_fell_back_gets_its_name_and_mac() {
    let Some(bed) = bed("sriov reference state, fallen back") else {
        return;
    };
    let pod = pod(&bed, "c1");
    attached_by_the_original(&bed, &pod);
    bed.fall_back(&pod, "net1");
    std::fs::rename(
        bed.stage
            .root()
            .join(format!("sys/devices/pci0000:00/{VF}/net/dev0")),
        bed.stage
            .root()
            .join(format!("sys/devices/pci0000:00/{VF}/net/net1")),
    )
    .unwrap();
    pod.del();
    let link = bed.node().link("dev0").expect("renamed");
    assert_eq!(link["address"], "02:00:00:00:00:10");
    assert!(!file(&bed, "c1-net1").exists());
}

#[test]
fn a_late_del_after_sriov_cni_gave_the_vf_away_touches_nothing() {
    let Some(bed) = bed("sriov reference state, late DEL") else {
        return;
    };
    let new = pod(&bed, "new");
    attached_by_the_original(&bed, &new);
    let cache = std::fs::read(file(&bed, "new-net1")).unwrap();
    std::fs::write(file(&bed, "old-net1"), cache).unwrap();
    let old = pod(&bed, "old");
    old.del();
    assert!(!file(&bed, "old-net1").exists());
    assert!(new.link().is_some());
    assert!(file(&bed, &format!("pci/{VF}")).exists());
    new.del();
    assert!(bed.node().link("dev0").is_some());
}

#[test]
fn gc_sweeps_what_no_valid_attachment_has_by_record_and_by_file() {
    let Some(bed) = bed("sriov GC") else { return };
    let before = bed.picture("dev0");
    let lost = pod(&bed, "lost").with("cniVersion", json!("1.1.0"));
    lost.add();
    let keeper = pod(&bed, "keeper").with("cniVersion", json!("1.1.0"));
    keeper.gc(&["lost"]);
    assert!(lost.link().is_some(), "a valid attachment stays");
    bed.fall_back(&lost, "net1");
    keeper.gc(&[]);
    assert_eq!(bed.picture("dev0"), before);
    assert!(!file(&bed, "lost-net1").exists());
    assert!(!file(&bed, &format!("pci/{VF}")).exists());
    let theirs = pod(&bed, "theirs");
    attached_by_the_original(&bed, &theirs);
    keeper.gc(&["theirs"]);
    assert!(theirs.link().is_some());
    keeper.gc(&[]);
    assert!(bed.node().link("dev0").is_some());
    assert!(!file(&bed, "theirs-net1").exists());
}

#[test]
fn a_vf_that_sriov_cni_gave_to_another_pod_stays_there_whatever_the_old_one_left() {
    let Some(bed) = bed("sriov given away by the original") else {
        return;
    };
    let old = pod(&bed, "old").with("cniVersion", json!("1.1.0"));
    old.add();
    let record = bed.records();
    // What the original's DEL of one and ADD of the other do.
    bed.fall_back(&old, "net1");
    bed.node().ip("link set net1 down");
    bed.node().ip("link set net1 name dev0");
    let stale = std::fs::read(file(&bed, "old-net1")).unwrap();
    let new = pod(&bed, "new");
    attached_by_the_original(&bed, &new);
    let allocation = file(&bed, &format!("pci/{VF}"));
    let stays = |what: &str| {
        assert!(new.link().is_some(), "{what}");
        let named = std::fs::read_to_string(&allocation).unwrap();
        assert_eq!(named, new.netns.path(), "{what}");
        assert!(file(&bed, "new-net1").exists(), "{what}");
        assert!(!file(&bed, "old-net1").exists(), "{what}");
    };
    old.del_blind();
    stays("a late DEL");
    assert_eq!(bed.records(), record, "it knows what the VF was");
    let keeper = pod(&bed, "keeper").with("cniVersion", json!("1.1.0"));
    // A cache of the original's that its own DEL never came for.
    let mut theirs: Value = serde_json::from_slice(&stale).unwrap();
    theirs.as_object_mut().unwrap().remove("recorded");
    for left in [stale, theirs.to_string().into_bytes()] {
        std::fs::write(file(&bed, "old-net1"), left).unwrap();
        keeper.gc(&["new"]);
        stays("GC");
        for file in bed.records() {
            std::fs::remove_file(file).unwrap();
        }
    }
}

#[test]
fn gc_finds_an_interface_with_a_dash_in_its_name() {
    let Some(bed) = bed("sriov GC of net-1") else {
        return;
    };
    let keeper = pod(&bed, "keeper").with("cniVersion", json!("1.1.0"));
    for (container, ifname) in [("4f1c", "net-1"), ("pod-7", "net1"), ("pod-7", "a-b-c")] {
        let mut theirs = pod(&bed, container);
        theirs.ifname = ifname.to_owned();
        attached_by_the_original(&bed, &theirs);
        // What the wrong end of the name would be.
        theirs.netns.ip("link add name 1 type veth peer name 2");
        keeper.gc(&[]);
        assert!(theirs.link().is_none(), "{container}-{ifname}");
        let home = bed.node().link("dev0").unwrap();
        assert_eq!(home["address"], "02:00:00:00:00:10", "{home}");
        assert_eq!(home["mtu"], 1400, "{home}");
        assert!(!file(&bed, &format!("{container}-{ifname}")).exists());
        assert!(theirs.netns.link("1").is_some());
        theirs.end();
    }
}

#[test]
fn status_judges_every_key_and_a_vf_that_is_named() {
    let Some(bed) = bed("sriov STATUS") else {
        return;
    };
    let network = |keys: Value| {
        let mut config = json!({"type": "sriov", "cniVersion": "1.1.0"});
        for (key, value) in keys.as_object().unwrap() {
            config[key] = value.clone();
        }
        bed.stage.pod_in(bed.stage.node.clone(), "c0", config)
    };
    // The device plugin gives the VF with the pod.
    network(json!({"vlan": 100, "trust": "on"}))
        .call("STATUS")
        .ok();
    network(json!({"deviceID": VF})).call("STATUS").ok();
    for (keys, code, word) in [
        (json!({"vlan": 9999}), 7, "vlan"),
        (json!({"vlan": "x"}), 7, "vlan"),
        (json!({"trust": "maybe"}), 7, "trust"),
        (json!({"deviceID": VF, "link_state": "up"}), 7, "link_state"),
        (json!({"deviceID": "nonsense"}), 7, "deviceID"),
        (json!({"deviceID": PF}), 7, "no virtual function"),
        (json!({"deviceID": "0000:ff:1f.7"}), 50, "0000:ff:1f.7"),
    ] {
        let (seen, text) = network(keys.clone()).refuse("STATUS");
        assert_eq!(seen, code, "{keys}: {text}");
        assert!(text.contains(word), "{keys}: {text}");
    }
    let pod = pod(&bed, "c1");
    pod.add();
    network(json!({"deviceID": VF})).call("STATUS").ok();
}

#[test]
fn bad_configurations_are_refused_and_change_nothing() {
    let Some(bed) = bed("sriov bad keys") else {
        return;
    };
    let before = bed.picture("dev0");
    let none: Vec<(&str, Value)> = Vec::new();
    for (n, (changes, named)) in [
        (vec![("deviceID", json!(null))], "deviceID"),
        (vec![("deviceID", json!("0000:99:00.0"))], "0000:99:00.0"),
        (vec![("deviceID", json!(PF))], "no virtual function"),
        (vec![("vlan", json!(5000))], "vlan"),
        (vec![("trust", json!("on"))], "does not show it"),
        (none, ""),
    ]
    .into_iter()
    .enumerate()
    {
        let mut pod = pod(&bed, &format!("c{n}"));
        if changes.is_empty() {
            pod = pod.with("ipam", json!({"type": "not-installed"}));
        }
        for (key, value) in changes {
            pod = pod.with(key, value);
        }
        let (_, text) = pod.refuse("ADD");
        assert!(text.contains(named), "{text}");
        assert_eq!(bed.picture("dev0"), before, "{text}");
        assert!(!file(&bed, &format!("c{n}-net1")).exists(), "{text}");
        assert!(!file(&bed, &format!("pci/{VF}")).exists(), "{text}");
        assert!(bed.records().is_empty(), "{text}");
        if !named.is_empty() {
            pod.del();
        }
    }
}

#[test]
fn after_a_kill_anywhere_in_add_or_del_nothing_is_lost_or_left() {
    let Some(bed) = bed("sriov killed") else {
        return;
    };
    let before = bed.picture("dev0");
    let counted = pod(&bed, "count").with("ipam", pool());
    let (add, del) = (counted.points("ADD"), counted.points("DEL"));
    for name in [
        "device-recorded",
        "vf-state-written",
        "device-moved",
        "vf-addressed",
        "owner-configured",
    ] {
        assert!(add.iter().any(|p| p == name), "{name} is not among {add:?}");
    }
    let judge = |name: &str| {
        assert_eq!(bed.picture("dev0"), before, "killed after {name}");
        assert_eq!(bed.stage.held(), 0, "killed after {name}");
        assert!(bed.records().is_empty(), "killed after {name}");
        assert!(
            !file(&bed, &format!("pci/{VF}")).exists(),
            "killed after {name}"
        );
    };
    for (n, name) in add.iter().enumerate() {
        for again in [false, true] {
            let pod = pod(&bed, &format!("a{n}{again}")).with("ipam", pool());
            pod.killed("ADD", n);
            if again {
                pod.add();
                assert_eq!(pod.addresses().len(), 1, "killed after {name}");
                assert_eq!(bed.stage.held(), 1, "killed after {name}");
            }
            pod.del();
            judge(name);
            assert!(!file(&bed, &format!("{}-net1", pod.container)).exists());
        }
    }
    for (n, name) in del.iter().enumerate() {
        let pod = pod(&bed, &format!("d{n}")).with("ipam", pool());
        pod.add();
        pod.killed("DEL", n);
        pod.del();
        judge(name);
        assert!(!file(&bed, &format!("{}-net1", pod.container)).exists());
    }
    println!("killed at {} points", add.len() * 2 + del.len());
}

#[test]
fn files_that_are_not_what_they_should_be_fail_nobody_and_lead_nowhere() {
    let Some(bed) = bed("sriov hostile files") else {
        return;
    };
    let before = bed.picture("dev0");
    std::fs::create_dir_all(file(&bed, "pci")).unwrap();
    let hostile = [
        "{\"OrigVfSt",
        "[]",
        r#"{"deviceID": "../../../etc/passwd", "OrigVfState": {"HostIFName": "a/b"}}"#,
        r#"{"deviceID": "0000:3b:10.2", "VFID": -1}"#,
        r#"{"deviceID": "0000:3b:10.2", "OrigVfState": {"HostIFName": "../x", "EffectiveMAC": "no"}}"#,
    ];
    for (n, text) in hostile.into_iter().enumerate() {
        let pod = pod(&bed, &format!("h{n}"));
        std::fs::write(file(&bed, &format!("h{n}-net1")), text).unwrap();
        pod.del();
        assert_eq!(bed.picture("dev0"), before, "{text}");
    }
    std::fs::write(file(&bed, &format!("pci/{VF}")), "\u{0}\u{7}/nowhere\n").unwrap();
    let pod = pod(&bed, "c1");
    pod.add();
    pod.del();
    assert_eq!(bed.picture("dev0"), before);
}
