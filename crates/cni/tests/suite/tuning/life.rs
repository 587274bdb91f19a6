//! Lives that go wrong, and the way from the reference plugin to ours and back.

use serde_json::json;

use super::{attributes, backup, everything, pod};
use crate::conformance::peer::Peer;
use crate::stage::Stage;

#[test]
fn del_without_a_namespace_or_after_it_ended_forgets_the_file() {
    let Some(stage) = Stage::new("DEL of the tuning plugin") else {
        return;
    };
    let pod = pod(&stage, "c1", everything());
    pod.del();
    pod.add();
    pod.del_blind();
    assert!(!backup(&stage, "c1").exists());
    pod.add();
    pod.netns.ip("link del net1");
    pod.del();
    assert!(!backup(&stage, "c1").exists());
    let other = super::pod(&stage, "c2", everything());
    other.add();
    other.end();
    other.del();
    other.del();
    assert!(!backup(&stage, "c2").exists());
}

#[test]
fn del_goes_by_the_file_and_not_by_the_configuration() {
    let Some(stage) = Stage::new("a configuration that changed") else {
        return;
    };
    let pod = pod(&stage, "c1", everything());
    let before = attributes(&pod);
    pod.add();
    let bare = json!({"cniVersion": "0.3.1", "name": "net", "type": "tuning"});
    let mut later = pod.clone();
    later.config = bare;
    later.del();
    assert_eq!(attributes(&pod), before);
}

#[test]
fn a_kill_at_any_step_is_put_right_by_del_also_after_a_second_add() {
    let Some(stage) = Stage::new("kills of the tuning plugin") else {
        return;
    };
    let pod = pod(&stage, "c1", everything());
    let before = attributes(&pod);
    let points = pod.points("ADD");
    pod.del();
    assert_eq!(points.len(), 2, "{points:?}");
    for (nth, point) in points.iter().enumerate() {
        pod.killed("ADD", nth);
        pod.del();
        assert_eq!(attributes(&pod), before, "{point}");
        pod.killed("ADD", nth);
        pod.add();
        pod.del();
        assert_eq!(attributes(&pod), before, "{point}");
        assert!(!backup(&stage, "c1").exists());
    }
    pod.add();
    let ends = pod.points("DEL");
    assert_eq!(ends, ["tuning-restored"]);
    pod.add();
    pod.killed("DEL", 0);
    assert!(backup(&stage, "c1").exists());
    pod.del();
    assert_eq!(attributes(&pod), before);
    assert!(!backup(&stage, "c1").exists());
    println!("killed at {points:?} and {ends:?}");
}

#[test]
fn gc_forgets_files_that_nobody_owns() {
    let Some(stage) = Stage::new("GC of the tuning plugin") else {
        return;
    };
    let (a, b) = (
        pod(&stage, "c1", everything()),
        pod(&stage, "c2", everything()),
    );
    a.add();
    let before = attributes(&b);
    b.add();
    assert_ne!(attributes(&b), before);
    a.gc(&["c1"]);
    assert_eq!(
        attributes(&b),
        before,
        "its pod is there and has its own again"
    );
    assert!(backup(&stage, "c1").exists() && !backup(&stage, "c2").exists());
    let other = a.clone().with("name", json!("other"));
    other.gc(&[]);
    assert!(backup(&stage, "c1").exists(), "another network's");
    // GC is about no interface: a key that speaks of one says nothing then, and the directory is the named one all the same.
    let dir = stage.root().join("elsewhere");
    let elsewhere = pod(&stage, "c3", everything())
        .with("dataDir", json!(dir))
        .with("sysctl", json!({"net.ipv4.conf.IFNAME.arp_filter": "1"}));
    elsewhere.add();
    assert!(dir.join("c3_net1.json").exists());
    elsewhere.gc(&["c1"]);
    assert!(!dir.join("c3_net1.json").exists());
}

#[test]
fn what_the_reference_plugin_changed_is_restored_by_ours_and_the_other_way_round() {
    let what = "switching from the reference tuning plugin";
    let (Some(stage), Some(peer)) = (Stage::new(what), Peer::reference(what)) else {
        return;
    };
    let ours = pod(&stage, "c1", everything());
    let theirs = ours.clone().served_by(&peer.dir);
    let before = attributes(&ours);
    for (adds, deletes) in [(&theirs, &ours), (&ours, &theirs)] {
        adds.add();
        assert_ne!(attributes(&ours), before);
        assert!(backup(&stage, "c1").exists());
        deletes.del();
        assert_eq!(attributes(&ours), before);
        assert!(!backup(&stage, "c1").exists());
    }
}
