//! In-place switch between the reference host-device and ours: what one made, the other takes away.

use std::path::PathBuf;

use mooring_testkit::component;
use serde_json::json;

use crate::conformance::bed::Shown as _;
use crate::host_device::bed::{Bed, pool};

/// Directories of reference plugins: Debian's old ones and the current ones.
fn references(what: &str) -> Vec<PathBuf> {
    let debian = component("containernetworking-plugins", what).map(|d| d.join("usr/lib/cni"));
    let current = component("cni-plugins", what).map(|d| d.join("bin"));
    debian.into_iter().chain(current).collect()
}

#[test]
fn what_the_reference_attached_our_del_brings_home() {
    let Some(bed) = Bed::new("host-device reference ADD, our DEL") else {
        return;
    };
    for (n, dir) in references("host-device reference ADD, our DEL")
        .iter()
        .enumerate()
    {
        bed.device("plain0", "02:00:00:00:00:40");
        let pod = bed
            .pod(&format!("c{n}"))
            .with("cniVersion", json!("1.0.0"))
            .with("device", json!("plain0"))
            .with("ipam", pool());
        let theirs = pod.clone().served_by(dir);
        theirs.add();
        assert_eq!(pod.link().expect("moved")["ifalias"], "plain0");
        assert_eq!(bed.stage.held(), 1);
        pod.del();
        let link = bed.node().link("plain0").expect("home");
        assert_eq!(link["ifalias"], json!(null));
        assert_eq!(link["address"], "02:00:00:00:00:40");
        assert!(pod.link().is_none());
        assert_eq!(bed.stage.held(), 0);
        pod.del();
        // And once more after the device fell out of a namespace that ended.
        theirs.add();
        bed.fall_back(&pod, "net1");
        pod.del();
        assert!(
            bed.node().link("plain0").is_some(),
            "renamed from its alias"
        );
        bed.node().ip("link del plain0");
    }
}

#[test]
fn what_we_attached_the_reference_del_brings_home() {
    let Some(bed) = Bed::new("host-device our ADD, reference DEL") else {
        return;
    };
    let before = bed.picture("dev0");
    for (n, dir) in references("host-device our ADD, reference DEL")
        .iter()
        .enumerate()
    {
        let pod = bed
            .pod(&format!("c{n}"))
            .with("cniVersion", json!("1.0.0"))
            .with("ipam", pool());
        pod.add();
        pod.clone().served_by(dir).del();
        assert!(pod.link().is_none());
        let link = bed.node().link("dev0").expect("home");
        assert_eq!(link["address"], "02:00:00:00:00:10");
        assert_eq!(bed.stage.held(), 0);
        // The reference forgets the state; our record has it, and our own DEL or the next ADD puts it back.
        assert_ne!(bed.picture("dev0"), before);
        pod.del();
        assert_eq!(bed.picture("dev0"), before);
        assert!(bed.records().is_empty());
    }
}
