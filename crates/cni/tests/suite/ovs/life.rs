//! Lives that go wrong: DEL blind or late, ADD again, kills at every step, a switch that is away.

use serde_json::json;

use super::switch::Switch;
use super::{assert_clean, config, port};

#[test]
fn del_succeeds_twice_without_a_namespace_and_after_it_ended() {
    let Some((stage, switch)) = Switch::stage("DEL of the ovs plugin") else {
        return;
    };
    let pod = stage.pod("c1", config());
    pod.del();
    pod.add();
    pod.del_blind();
    assert_eq!(pod.link(), None);
    assert_clean(&stage, &switch, "without a namespace");
    pod.add();
    pod.end();
    pod.del();
    pod.del();
    assert_clean(&stage, &switch, "after the namespace ended");
}

#[test]
fn a_kill_at_any_step_leaves_what_del_and_a_second_add_can_deal_with() {
    let Some((stage, switch)) = Switch::stage("kills of the ovs plugin") else {
        return;
    };
    let pod = stage.pod("c1", config());
    let adds = pod.points("ADD");
    let dels = pod.points("DEL");
    assert!(adds.len() >= 4 && !dels.is_empty(), "{adds:?} {dels:?}");
    for (nth, point) in adds.iter().enumerate() {
        pod.killed("ADD", nth);
        pod.del();
        assert_clean(&stage, &switch, point);
        pod.killed("ADD", nth);
        let result = pod.add();
        pod.check(&result).ok();
        assert_eq!(switch.ports(&stage), [port(&result)], "{point}");
        assert_eq!(stage.held(), 1, "{point}");
        pod.del_blind();
        assert_clean(&stage, &switch, point);
    }
    for (nth, point) in dels.iter().enumerate() {
        pod.add();
        pod.killed("DEL", nth);
        pod.del();
        assert_clean(&stage, &switch, point);
    }
    println!("killed ADD at {adds:?}, DEL at {dels:?}");
}

#[test]
fn gc_removes_the_ports_of_its_network_that_nobody_owns_and_no_others() {
    let Some((stage, switch)) = Switch::stage("GC of the ovs plugin") else {
        return;
    };
    let (a, b) = (stage.pod("c1", config()), stage.pod("c2", config()));
    let other = stage.pod(
        "c3",
        json!({"type": "ovs", "bridge": "br1", "name": "other"}),
    );
    let kept = [a.add(), other.add()].map(|result| port(&result).to_owned());
    b.add();
    // What a reboot leaves: a port in the database and no interface.
    b.end();
    stage
        .node
        .ip("link add foreign type veth peer name foreign2");
    switch.ask(&stage, &["add-port", "br1", "foreign"]);
    a.gc(&["c1"]);
    let ports = switch.ports(&stage);
    assert_eq!(ports.len(), 3, "{ports:?}");
    assert!(kept.iter().all(|name| ports.contains(name)), "{ports:?}");
    assert!(ports.contains(&"foreign".to_owned()), "{ports:?}");
    assert_eq!(stage.held(), 1);
}

#[test]
fn a_port_of_the_plugin_before_us_is_found_by_its_marks() {
    let Some((stage, switch)) = Switch::stage("ports of ovs-cni") else {
        return;
    };
    let pod = stage.pod("c1", config());
    let path = pod.netns.path();
    let name = path.rsplit('/').next().unwrap();
    stage.node.ip(&format!(
        "link add veth1234abcd type veth peer name net1 netns {name}"
    ));
    let marks = [
        "external_ids:owner=ovs-cni.network.kubevirt.io".to_owned(),
        format!("external_ids:contNetns=\"{path}\""),
        "external_ids:contIface=net1".to_owned(),
    ];
    let mut words = vec![
        "add-port",
        "br1",
        "veth1234abcd",
        "--",
        "set",
        "Port",
        "veth1234abcd",
    ];
    words.extend(marks.iter().map(String::as_str));
    switch.ask(&stage, &words);
    pod.del();
    assert_eq!(pod.link(), None);
    assert_clean(&stage, &switch, "after DEL");
}

#[test]
fn a_switch_that_is_away_is_told_and_what_can_be_removed_is() {
    let Some((stage, switch)) = Switch::stage("a switch that is away") else {
        return;
    };
    let pod = stage.pod("c1", config());
    pod.add();
    switch.end("switch");
    switch.end("db");
    let (code, text) = pod.refuse("STATUS");
    assert!(code == 50 && text.contains("running"), "{code} {text}");
    let (code, text) = pod.refuse("DEL");
    assert!(code == 11, "{code} {text}");
    assert_eq!(pod.link(), None, "the pair does not wait for the switch");
    assert_eq!(stage.held(), 0, "nor do the addresses");
    let (code, text) = pod.refuse("ADD");
    assert!(code == 11, "{code} {text}");
    assert_eq!((stage.pairs().len(), stage.held()), (0, 0));
}
