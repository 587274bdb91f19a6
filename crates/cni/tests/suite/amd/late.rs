//! A DEL that comes when the NIC is home already, with its pod still there: what the host has by then is the host's.

use serde_json::{Value, json};

use super::{BDF, bed, mappings, pod, sorted};
use crate::conformance::bed::Shown as _;
use crate::host_device::bed::Bed;

/// The administrator gives the NIC other addresses.
fn renumber(bed: &Bed) -> Value {
    let node = bed.node();
    node.ip("addr del 192.0.2.11/24 dev dev0");
    node.ip("addr add 10.8.0.1/31 dev dev0");
    bed.picture("dev0")
}

/// And takes it back, for the next round.
fn renumber_back(bed: &Bed) {
    let node = bed.node();
    node.ip("addr del 10.8.0.1/31 dev dev0");
    node.ip("addr add 192.0.2.11/24 dev dev0");
}

/// An address that ends by itself, which no way home makes permanent.
fn lease(bed: &Bed) {
    bed.node()
        .ip("addr add 192.0.2.77/24 dev dev0 valid_lft 4000 preferred_lft 3000");
}

#[test]
fn a_late_del_after_gc_adds_no_stale_address_to_a_host_that_was_renumbered() {
    let Some(bed) = bed("amd GC, late DEL") else {
        return;
    };
    lease(&bed);
    let before = bed.picture("dev0");
    let pod = pod(&bed, "c1").with("cniVersion", json!("1.1.0"));
    pod.add();
    assert!(mappings(&bed).get(BDF).is_some());
    pod.gc(&["c1"]);
    assert!(mappings(&bed).get(BDF).is_some(), "it is in use");
    pod.gc(&[]);
    assert_eq!(bed.picture("dev0"), before);
    assert_eq!(mappings(&bed), json!({}), "GC strikes what it brought home");
    let fresh = renumber(&bed);
    pod.del();
    assert_eq!(bed.picture("dev0"), fresh);
    pod.del_blind();
    assert_eq!(bed.picture("dev0"), fresh);
}

#[test]
fn after_a_kill_anywhere_in_del_a_late_del_of_a_living_pod_adds_no_stale_address() {
    let Some(bed) = bed("amd killed in DEL, renumbered, late DEL") else {
        return;
    };
    lease(&bed);
    let before = bed.picture("dev0");
    let counted = pod(&bed, "count");
    counted.add();
    let del = counted.points("DEL");
    assert!(del.iter().any(|p| p == "record-removed"), "{del:?}");
    let mut home = 0;
    for (n, name) in del.iter().enumerate() {
        let pod = pod(&bed, &format!("d{n}"));
        pod.add();
        pod.killed("DEL", n);
        if bed.records().is_empty() {
            home += 1;
        } else {
            pod.del();
        }
        assert_eq!(bed.picture("dev0"), before, "killed after {name}");
        let fresh = renumber(&bed);
        pod.del();
        assert_eq!(bed.picture("dev0"), fresh, "killed after {name}");
        assert_eq!(mappings(&bed), json!({}), "killed after {name}");
        renumber_back(&bed);
        assert_eq!(bed.picture("dev0"), before, "killed after {name}");
    }
    assert!(home >= 1, "no kill came after the record went: {del:?}");
    println!("killed DEL at {} points", del.len());
}

#[test]
fn after_a_kill_anywhere_in_gc_a_late_del_of_a_living_pod_adds_no_stale_address() {
    let Some(bed) = bed("amd killed in GC, renumbered, late DEL") else {
        return;
    };
    let before = bed.picture("dev0");
    let of = |container: &str| {
        let pod = pod(&bed, container).with("cniVersion", json!("1.1.0"));
        pod.with("cni.dev/valid-attachments", json!([]))
    };
    let counted = of("count");
    counted.add();
    let gc = counted.points("GC");
    assert!(gc.iter().any(|p| p == "record-removed"), "{gc:?}");
    for (n, name) in gc.iter().enumerate() {
        let pod = of(&format!("g{n}"));
        pod.add();
        pod.killed("GC", n);
        pod.del();
        assert_eq!(bed.picture("dev0"), before, "killed after {name}");
        let fresh = renumber(&bed);
        pod.del();
        assert_eq!(bed.picture("dev0"), fresh, "killed after {name}");
        assert_eq!(mappings(&bed), json!({}), "killed after {name}");
        renumber_back(&bed);
    }
}

#[test]
fn an_entry_of_amds_whose_nic_was_renumbered_at_home_is_struck_and_not_restored_from() {
    let Some(bed) = bed("amd mapping of AMD's, renumbered") else {
        return;
    };
    let pod = pod(&bed, "c1");
    let fresh = renumber(&bed);
    let dir = bed.stage.root().join("var/lib/cni/amd-host-device");
    std::fs::create_dir_all(&dir).unwrap();
    let map = json!({BDF: {"hostInterfaceName": "dev0", "hostInterfaceIPs": ["192.0.2.11/24"], "state": "UP"}});
    std::fs::write(dir.join("ip-interface-mappings.json"), map.to_string()).unwrap();
    pod.del();
    assert_eq!(bed.picture("dev0"), fresh);
    assert_eq!(mappings(&bed), json!({}));
    let addresses = sorted(bed.node().addresses("dev0"));
    assert!(
        !addresses.contains(&"192.0.2.11/24".to_owned()),
        "{addresses:?}"
    );
}
