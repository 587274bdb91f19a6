//! Lives that go wrong, and the way from the reference plugin to ours and back.

use serde_json::Value;

use super::{pod, routes, rules};
use crate::conformance::peer::Peer;
use crate::stage::Stage;

#[test]
fn del_finds_rules_also_without_a_result_and_without_the_interface() {
    let Some(stage) = Stage::new("DEL of the sbr plugin") else {
        return;
    };
    let pod = pod(
        &stage,
        "c1",
        &[("10.1.0.5/24", Some("10.1.0.1")), ("fd01::5/64", None)],
    );
    pod.del();
    let blind = pod.clone().with("prevResult", Value::Null);
    pod.add();
    assert_eq!(rules(&pod).len(), 2);
    blind.del();
    assert_eq!(rules(&pod), [""; 0], "by the interface's addresses");
    pod.add();
    pod.netns.ip("link del net1");
    assert_eq!(rules(&pod).len(), 2, "they outlive it");
    blind.del();
    assert_eq!(
        rules(&pod),
        [""; 0],
        "by their mark, as their tables are empty"
    );
    blind.del_blind();
    pod.end();
    blind.del();
}

#[test]
fn a_rule_of_somebody_else_is_left_alone() {
    let Some(stage) = Stage::new("rules of somebody else") else {
        return;
    };
    let pod = pod(&stage, "c1", &[("10.1.0.5/24", None)]);
    pod.netns.ip("rule add from 10.9.0.9 table 4000");
    pod.netns.ip("rule add from 10.1.0.0/24 table 4001");
    pod.add();
    pod.del();
    assert_eq!(rules(&pod).len(), 2, "{:?}", rules(&pod));
}

#[test]
fn a_kill_at_any_step_is_finished_by_a_second_add_or_undone_by_del() {
    let Some(stage) = Stage::new("kills of the sbr plugin") else {
        return;
    };
    let addresses = [("10.1.0.5/24", Some("10.1.0.1")), ("fd01::5/64", None)];
    let first = pod(&stage, "c0", &addresses);
    let points = first.points("ADD");
    assert_eq!(points.len(), 3, "{points:?}");
    let wanted = (
        rules(&first),
        routes(&first, "100"),
        routes(&first, "101"),
        routes(&first, "main"),
    );
    for (nth, point) in points.iter().enumerate() {
        let pod = pod(&stage, &format!("a{nth}"), &addresses);
        pod.killed("ADD", nth);
        let result = pod.add();
        let seen = (
            rules(&pod),
            routes(&pod, "100"),
            routes(&pod, "101"),
            routes(&pod, "main"),
        );
        assert_eq!(seen, wanted, "{point}");
        pod.check(&result).ok();
        let pod = super::pod(&stage, &format!("d{nth}"), &addresses);
        pod.killed("ADD", nth);
        pod.del();
        assert_eq!(rules(&pod), [""; 0], "{point}");
    }
    let ends = first.clone();
    let number = first.points("DEL").len();
    assert_eq!(number, 2);
    for nth in 0..number {
        ends.add();
        ends.killed("DEL", nth);
        ends.del();
        assert_eq!(rules(&ends), [""; 0], "DEL at {nth}");
    }
    println!("killed at {points:?}, and DEL at {number} points");
}

#[test]
fn what_the_reference_plugin_made_is_removed_by_ours_and_the_other_way_round() {
    let what = "switching from the reference sbr plugin";
    let (Some(stage), Some(peer)) = (Stage::new(what), Peer::reference(what)) else {
        return;
    };
    let ours = pod(&stage, "c1", &[("10.1.0.5/24", Some("10.1.0.1"))]);
    let theirs = ours.clone().served_by(&peer.dir);
    theirs.add();
    assert_eq!(rules(&ours), ["10.1.0.5 100"]);
    let mut reference = routes(&ours, "100");
    // Theirs has the default route twice, with the metric of the interface's and without, and a route of the other
    // family that no rule leads to.
    reference.dedup();
    reference.retain(|route| route != "fe80::/64");
    ours.del();
    assert_eq!(rules(&ours), [""; 0]);
    let ours = pod(&stage, "c2", &[("10.1.0.5/24", Some("10.1.0.1"))]);
    ours.add();
    assert_eq!(routes(&ours, "100"), reference);
    ours.clone().served_by(&peer.dir).del();
    assert_eq!(rules(&ours), [""; 0]);
}
