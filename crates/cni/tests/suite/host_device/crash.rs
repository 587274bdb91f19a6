//! Kill -9 at every step of ADD and of DEL: whatever comes next finds the device, and it ends as it began.

use crate::host_device::bed::{Bed, pool};

/// Where ADD and DEL may be killed, counted by a run that is not.
fn points(bed: &Bed) -> (Vec<String>, Vec<String>) {
    let pod = bed.pod("count").with("ipam", pool());
    let add = pod.points("ADD");
    let del = pod.points("DEL");
    (add, del)
}

#[test]
fn after_a_kill_anywhere_in_add_a_del_brings_the_device_home() {
    let Some(bed) = Bed::new("host-device killed in ADD, then DEL") else {
        return;
    };
    let before = bed.picture("dev0");
    let (add, _) = points(&bed);
    for name in [
        "device-recorded",
        "alias-set",
        "device-moved",
        "device-addressed",
        "owner-configured",
    ] {
        assert!(add.iter().any(|p| p == name), "{name} is not among {add:?}");
    }
    for (n, name) in add.iter().enumerate() {
        let pod = bed.pod(&format!("a{n}")).with("ipam", pool());
        pod.killed("ADD", n);
        pod.del();
        assert_eq!(bed.picture("dev0"), before, "killed after {name}");
        assert_eq!(bed.stage.held(), 0, "killed after {name}");
        assert!(bed.records().is_empty(), "killed after {name}");
        assert!(pod.link().is_none(), "killed after {name}");
    }
    println!("killed ADD at {} points", add.len());
}

#[test]
fn a_device_that_was_taken_from_its_pod_and_put_back_half_way_is_not_called_done() {
    let Some(bed) = Bed::new("host-device taken away, then ADD killed") else {
        return;
    };
    let before = bed.picture("dev0");
    let pod = bed.pod("c1").with("ipam", pool());
    pod.add();
    // Somebody moves it out of the living pod; the record still says that all was done.
    let node = bed.node().path().rsplit('/').next().unwrap().to_owned();
    pod.netns.ip(&format!("link set net1 netns {node}"));
    assert!(pod.killed_at("ADD", "device-moved"));
    assert!(pod.addresses().is_empty());
    let result = pod.add();
    assert_eq!(pod.addresses().len(), 1);
    pod.check(&result).ok();
    pod.del();
    assert_eq!(bed.picture("dev0"), before);
    assert_eq!(bed.stage.held(), 0);
}

#[test]
fn after_a_kill_anywhere_in_add_the_next_add_finishes_it() {
    let Some(bed) = Bed::new("host-device killed in ADD, then ADD") else {
        return;
    };
    let before = bed.picture("dev0");
    let (add, _) = points(&bed);
    for (n, name) in add.iter().enumerate() {
        let pod = bed.pod(&format!("b{n}")).with("ipam", pool());
        pod.killed("ADD", n);
        let result = pod.add();
        assert_eq!(pod.addresses().len(), 1, "killed after {name}");
        assert_eq!(bed.stage.held(), 1, "killed after {name}");
        pod.check(&result).ok();
        pod.del();
        assert_eq!(bed.picture("dev0"), before, "killed after {name}");
        assert_eq!(bed.stage.held(), 0, "killed after {name}");
    }
}

#[test]
fn after_a_kill_anywhere_in_del_the_next_del_finishes_it() {
    let Some(bed) = Bed::new("host-device killed in DEL") else {
        return;
    };
    let before = bed.picture("dev0");
    let (_, del) = points(&bed);
    for name in [
        "restore-recorded",
        "device-home",
        "state-restored",
        "record-removed",
    ] {
        assert!(del.iter().any(|p| p == name), "{name} is not among {del:?}");
    }
    for (n, name) in del.iter().enumerate() {
        let pod = bed.pod(&format!("d{n}")).with("ipam", pool());
        pod.add();
        pod.killed("DEL", n);
        // The runtime may also have lost the namespace meanwhile.
        if n % 2 == 0 {
            pod.del();
        } else {
            pod.del_blind();
        }
        assert_eq!(bed.picture("dev0"), before, "killed after {name}");
        assert_eq!(bed.stage.held(), 0, "killed after {name}");
        assert!(bed.records().is_empty(), "killed after {name}");
    }
    println!("killed DEL at {} points", del.len());
}

#[test]
fn after_a_kill_anywhere_in_add_another_pod_gets_the_device_once_the_first_is_gone() {
    let Some(bed) = Bed::new("host-device killed in ADD, then another pod") else {
        return;
    };
    let before = bed.picture("dev0");
    let (add, _) = points(&bed);
    for (n, name) in add.iter().enumerate() {
        let pod = bed.pod(&format!("e{n}")).with("ipam", pool());
        pod.killed("ADD", n);
        if pod.link().is_some() {
            bed.fall_back(&pod, "net1");
        } else {
            pod.end();
        }
        let next = bed.pod(&format!("f{n}")).with("ipam", pool());
        next.add();
        pod.del();
        assert!(next.link().is_some(), "killed after {name}");
        next.del();
        assert_eq!(bed.picture("dev0"), before, "killed after {name}");
        assert_eq!(bed.stage.held(), 0, "killed after {name}");
    }
}
