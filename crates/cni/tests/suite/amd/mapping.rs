//! AMD's own mapping file: what its plugin attached, our DEL brings home; what ours attached, its DEL finds.

use serde_json::{Value, json};

use super::{BDF, bed, mappings, pod};
use crate::conformance::bed::Shown as _;
use crate::host_device::bed::Bed;
use crate::stage::Pod;

fn write(bed: &Bed, map: &Value) {
    let dir = bed.stage.root().join("var/lib/cni/amd-host-device");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("ip-interface-mappings.json"), map.to_string()).unwrap();
}

/// What the original has after its ADD: the NIC in the pod, its name as alias, the entry in the file.
fn attached_by_amd(bed: &Bed, pod: &Pod, name_in_pod: &str) {
    let netns = pod.netns.path();
    let netns = netns.rsplit('/').next().unwrap();
    bed.device("rail7", "02:00:00:00:00:47");
    bed.sysfs(BDF, "rail7");
    bed.node().ip("link set rail7 alias rail7");
    bed.node()
        .ip(&format!("link set rail7 netns {netns} name {name_in_pod}"));
    pod.netns
        .ip(&format!("addr add 10.0.7.0/31 dev {name_in_pod}"));
    pod.netns.ip(&format!("link set {name_in_pod} up"));
    write(
        bed,
        &json!({
            BDF: {"hostInterfaceName": "rail7", "hostInterfaceIPs": ["10.0.7.0/31", "2001:db8:7::1/64"], "state": "UP"},
            "0000:99:00.0": {"hostInterfaceName": "other", "hostInterfaceIPs": [], "state": "DOWN"},
        }),
    );
}

#[track_caller]
fn is_home(bed: &Bed) {
    let link = bed.node().link("rail7").expect("home");
    assert!(link["flags"].as_array().unwrap().contains(&json!("UP")));
    assert_eq!(link["ifalias"], json!(null));
    assert_eq!(
        bed.node().addresses("rail7"),
        ["10.0.7.0/31", "2001:db8:7::1/64"]
    );
    let left = mappings(bed);
    assert!(left.get(BDF).is_none(), "{left}");
    assert!(
        left.get("0000:99:00.0").is_some(),
        "others' entries stay: {left}"
    );
}

/// A bed whose BDF is not `dev0`'s.
fn plain(what: &str) -> Option<Bed> {
    let bed = bed(what)?;
    std::fs::remove_dir_all(bed.stage.root().join("sys")).unwrap();
    Some(bed)
}

#[test]
fn what_amds_plugin_attached_our_del_brings_home_with_its_addresses() {
    let Some(bed) = plain("amd mapping, our DEL") else {
        return;
    };
    // Releases before 1.2.0 kept the host's name in the pod.
    for name in ["net1", "rail7"] {
        let pod = pod(&bed, &format!("c-{name}"));
        attached_by_amd(&bed, &pod, name);
        pod.del();
        is_home(&bed);
        pod.del();
        is_home(&bed);
        bed.node().ip("link del rail7");
    }
}

#[test]
fn a_nic_of_amds_plugin_that_fell_back_is_renamed_and_gets_its_addresses() {
    let Some(bed) = plain("amd mapping, fallen back") else {
        return;
    };
    let pod = pod(&bed, "c1");
    attached_by_amd(&bed, &pod, "net1");
    bed.fall_back(&pod, "net1");
    bed.sysfs(BDF, "net1");
    pod.del();
    is_home(&bed);
}

#[test]
fn a_mapping_whose_nic_another_pod_has_is_left_alone() {
    let Some(bed) = plain("amd mapping, another pod's") else {
        return;
    };
    let new = pod(&bed, "new");
    attached_by_amd(&bed, &new, "net1");
    let old = pod(&bed, "old");
    old.del();
    old.del_blind();
    assert!(mappings(&bed).get(BDF).is_some());
    assert!(new.link().is_some());
    new.del();
    is_home(&bed);
}

#[test]
fn a_mapping_from_before_a_reboot_adds_no_stale_address() {
    let Some(bed) = plain("amd mapping, rebooted") else {
        return;
    };
    let pod = pod(&bed, "c1");
    attached_by_amd(&bed, &pod, "net1");
    bed.fall_back(&pod, "rail7");
    bed.node().ip("addr add 10.3.3.3/24 dev rail7");
    pod.del();
    assert_eq!(bed.node().addresses("rail7"), ["10.3.3.3/24"]);
    assert!(mappings(&bed).get(BDF).is_none());
}

/// Ends the pod's namespace as it is for hardware: what is in it falls back to the node, under the pod's name.
fn dies(bed: &Bed, pod: &Pod) {
    if pod.link().is_some() {
        bed.fall_back(pod, "net1");
        bed.sysfs(BDF, "net1");
    } else {
        pod.end();
    }
}

#[test]
fn after_a_kill_anywhere_in_the_del_of_what_amds_plugin_attached_its_addresses_come_back() {
    let Some(bed) = plain("amd mapping, killed in DEL") else {
        return;
    };
    for fallen in [false, true] {
        let attached = |container: &str| {
            let pod = pod(&bed, container);
            attached_by_amd(&bed, &pod, "net1");
            if fallen {
                dies(&bed, &pod);
            }
            pod
        };
        let again = || {
            bed.node().ip("link del rail7");
            std::fs::remove_dir_all(bed.stage.root().join("sys")).unwrap();
        };
        let points = attached(&format!("count-{fallen}")).points("DEL");
        is_home(&bed);
        again();
        let way = if fallen {
            "device-renamed"
        } else {
            "device-home"
        };
        assert_eq!(
            points,
            ["mapping-marked", way, "state-restored", "mapping-struck"]
        );
        for (n, name) in points.iter().enumerate() {
            for alive in [true, false] {
                let pod = attached(&format!("{fallen}-{n}-{alive}"));
                pod.killed("DEL", n);
                if !alive && !fallen {
                    dies(&bed, &pod);
                }
                if alive {
                    pod.del();
                } else {
                    pod.del_blind();
                }
                println!("killed after {name}, fallen back: {fallen}, alive: {alive}");
                is_home(&bed);
                again();
            }
        }
    }
}

#[test]
fn a_nic_that_amds_plugin_left_on_the_host_goes_to_the_next_pod_with_its_addresses() {
    let Some(bed) = plain("amd mapping, our ADD of another pod") else {
        return;
    };
    let theirs = ["10.0.7.0/31", "2001:db8:7::1/64"];
    for cut in [false, true] {
        let dead = pod(&bed, &format!("dead-{cut}"));
        attached_by_amd(&bed, &dead, "net1");
        if cut {
            assert!(dead.killed_at("DEL", "device-home"));
        }
        dies(&bed, &dead);
        let next = pod(&bed, &format!("next-{cut}"));
        next.add();
        assert_eq!(next.addresses(), theirs, "cut short: {cut}");
        dead.del_blind();
        next.del();
        is_home(&bed);
        bed.node().ip("link del rail7");
        std::fs::remove_dir_all(bed.stage.root().join("sys")).unwrap();
    }
}

#[test]
fn a_nic_that_the_node_calls_otherwise_since_a_reboot_is_taken_as_it_is() {
    let Some(bed) = plain("amd mapping, another name since") else {
        return;
    };
    let dead = pod(&bed, "dead");
    attached_by_amd(&bed, &dead, "net1");
    bed.fall_back(&dead, "ens7");
    bed.node().ip("link set ens7 alias mine");
    bed.node().ip("addr add 10.3.3.3/24 dev ens7");
    bed.sysfs(BDF, "ens7");
    dead.del_blind();
    let next = pod(&bed, "next");
    next.add();
    assert_eq!(next.addresses(), ["10.3.3.3/24"]);
    next.del();
    assert_eq!(bed.node().addresses("ens7"), ["10.3.3.3/24"]);
    assert!(bed.node().link("rail7").is_none());
}

#[test]
fn a_del_that_was_cut_short_before_a_reboot_is_not_finished_after_it() {
    let Some(bed) = plain("amd mapping, killed in DEL, rebooted") else {
        return;
    };
    let pod = pod(&bed, "c1");
    attached_by_amd(&bed, &pod, "net1");
    assert!(pod.killed_at("DEL", "device-home"));
    let mut map = mappings(&bed);
    map[BDF]["restoring"] = json!("00000000-0000-0000-0000-000000000000");
    write(&bed, &map);
    pod.end();
    bed.node().ip("addr add 10.3.3.3/24 dev rail7");
    pod.del();
    assert_eq!(bed.node().addresses("rail7"), ["10.3.3.3/24"]);
    assert!(mappings(&bed).get(BDF).is_none());
}

#[test]
fn a_del_that_was_cut_short_leaves_an_entry_that_amds_plugin_reads_as_its_own() {
    let Some(bed) = plain("amd mapping, killed in DEL, AMD's DEL") else {
        return;
    };
    let pod = pod(&bed, "c1");
    attached_by_amd(&bed, &pod, "net1");
    let mut theirs = mappings(&bed);
    theirs[BDF]["aKeyOfTomorrow"] = json!([7]);
    write(&bed, &theirs);
    assert!(pod.killed_at("DEL", "device-home"));
    let mut left = mappings(&bed);
    let mark = left[BDF].as_object_mut().unwrap().remove("restoring");
    assert!(mark.is_some_and(|boot| boot.is_string()));
    assert_eq!(left, theirs, "all but the mark is as it was");
}

#[test]
fn an_address_of_the_mapping_that_is_none_keeps_no_other_from_coming_back() {
    let Some(bed) = plain("amd mapping, no address") else {
        return;
    };
    let pod = pod(&bed, "c1");
    attached_by_amd(&bed, &pod, "net1");
    let mut map = mappings(&bed);
    map[BDF]["hostInterfaceIPs"] = json!(["10.0.7.300/31", "10.0.7.0/31", "", "2001:db8:7::1/64"]);
    write(&bed, &map);
    let said = pod.call("DEL");
    assert_eq!(said.ok(), "", "{said:?}");
    assert!(said.stderr.contains("10.0.7.300/31"), "{said:?}");
    is_home(&bed);
}

#[test]
fn our_add_leaves_what_amds_del_needs() {
    let Some(bed) = bed("amd our ADD, AMD's DEL") else {
        return;
    };
    let pod = pod(&bed, "c1");
    pod.add();
    let entry = mappings(&bed)[BDF].clone();
    assert_eq!(entry["hostInterfaceName"], "dev0");
    assert_eq!(entry["state"], "UP");
    let ips = entry["hostInterfaceIPs"].as_array().unwrap();
    assert!(ips.contains(&json!("192.0.2.10/24")), "{entry}");
    // Its DEL execs host-device, which goes by the alias.
    assert_eq!(pod.link().expect("in the pod")["ifalias"], "dev0");
}
