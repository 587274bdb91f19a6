//! macvlan killed between any two steps: a repeated DEL cleans all, a repeated ADD succeeds.

use serde_json::json;

use crate::segment::Segment;
use crate::stage::Pod;

/// Everything at once: addresses, a shim, an announcement.
fn pod(segment: &Segment, container: &str) -> Pod {
    segment
        .pooled(container, "macvlan")
        .with("hostReach", json!(true))
}

fn node(what: &str) -> Option<Segment> {
    let segment = Segment::new(what)?;
    segment.stage.node.ip("addr add 10.1.2.6/24 dev eth1");
    Some(segment)
}

#[track_caller]
fn assert_clean(segment: &Segment, pod: &Pod, at: &str) {
    assert!(pod.link().is_none(), "after {at}: {:?}", pod.link());
    assert_eq!(segment.stage.held(), 0, "after {at}");
    assert_eq!(segment.node_links(), ["eth1"], "after {at}");
    assert_eq!(segment.left_over(), [""; 0], "after {at}");
    let routes = segment.stage.node.ip("-j route show dev eth1");
    assert!(routes.contains("10.1.2.0/24"), "after {at}: {routes}");
}

#[test]
fn an_add_that_was_killed_is_cleaned_by_del() {
    let Some(segment) = node("macvlan ADD killed at every step") else {
        return;
    };
    let points = {
        let pod = pod(&segment, "whole");
        let points = pod.points("ADD");
        pod.del();
        assert_clean(&segment, &pod, "no kill");
        points
    };
    assert!(points.len() >= 8, "{points:?}");
    for (nth, name) in points.iter().enumerate() {
        let pod = pod(&segment, &format!("c{nth}"));
        pod.killed("ADD", nth);
        pod.del();
        assert_clean(&segment, &pod, name);
    }
    println!("killed at {} points: {points:?}", points.len());
}

#[test]
fn an_add_that_was_killed_can_be_repeated() {
    let Some(segment) = node("macvlan ADD repeated after a kill") else {
        return;
    };
    let points = {
        let pod = pod(&segment, "whole");
        let points = pod.points("ADD");
        pod.del();
        points
    };
    for (nth, name) in points.iter().enumerate() {
        let pod = pod(&segment, &format!("c{nth}"));
        pod.killed("ADD", nth);
        let result = pod.add();
        assert_eq!(pod.addresses().len(), 1, "after {name}");
        assert_eq!(segment.stage.held(), 1, "after {name}");
        pod.check(&result).ok();
        pod.del();
        assert_clean(&segment, &pod, name);
    }
}

#[test]
fn a_del_that_was_killed_can_be_repeated() {
    let Some(segment) = node("macvlan DEL killed at every step") else {
        return;
    };
    let points = {
        let pod = pod(&segment, "whole");
        pod.add();
        pod.points("DEL")
    };
    assert!(points.len() >= 3, "{points:?}");
    for (nth, name) in points.iter().enumerate() {
        let pod = pod(&segment, &format!("c{nth}"));
        pod.add();
        pod.killed("DEL", nth);
        pod.del();
        assert_clean(&segment, &pod, name);
    }
}
