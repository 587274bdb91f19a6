//! Lives that go wrong: DEL late, twice or blind, ADD again, kills at every step, many at once.

use std::thread;

use serde_json::{Value, json};

use super::{assert_clean, gateway};
use crate::conformance::bed::Shown as _;
use crate::stage::{Stage, Tools};

#[test]
fn del_succeeds_twice_before_any_add_without_a_namespace_and_after_it_ended() {
    let Some(stage) = Stage::new("DEL of the bridge plugin") else {
        return;
    };
    let pod = stage.pod("c1", gateway());
    pod.del();
    pod.add();
    pod.del();
    pod.del();
    assert_clean(&stage, "DEL twice");
    pod.add();
    pod.del_blind();
    assert_eq!(
        pod.link(),
        None,
        "the pair is found by its name on the node"
    );
    assert_clean(&stage, "DEL without a namespace");
    pod.add();
    pod.end();
    pod.del();
    pod.del();
    assert_clean(&stage, "DEL after the namespace ended");
}

#[test]
fn a_late_del_of_another_container_leaves_the_interface_of_this_one() {
    let Some(stage) = Stage::new("a late DEL") else {
        return;
    };
    let old = stage.pod("c1", gateway());
    old.add();
    old.del();
    // The same namespace path, the same name, another container: as after a restart in a reused sandbox.
    let new = stage.pod_in(old.netns.clone(), "c2", gateway());
    new.add();
    old.del_blind();
    old.del();
    assert_eq!(new.addresses().len(), 1);
    assert_eq!(stage.pairs().len(), 1);
    assert_eq!(stage.held(), 1);
}

#[test]
fn an_interface_that_is_no_pair_is_left_alone() {
    let Some(stage) = Stage::new("an interface of somebody else") else {
        return;
    };
    let pod = stage.pod("c1", gateway());
    pod.netns.ip("link add net1 type bridge");
    let (code, text) = pod.refuse("ADD");
    assert!(
        code == 999 && text.contains("already has an interface called net1"),
        "{code} {text}"
    );
    assert_clean(&stage, "after the refusal");
    pod.del();
    assert!(pod.link().is_some(), "it was not made by us");
}

#[test]
fn an_add_that_is_tried_again_makes_one_interface_with_one_address() {
    let Some(stage) = Stage::new("ADD again") else {
        return;
    };
    let pod = stage.pod("c1", gateway());
    pod.killed("ADD", 3);
    let result = pod.add();
    assert_eq!(pod.addresses().len(), 1);
    assert_eq!(stage.pairs().len(), 1);
    assert_eq!(stage.held(), 1);
    pod.check(&result).ok();
    pod.del();
    assert_clean(&stage, "after DEL");
}

#[test]
fn a_kill_at_any_step_of_add_leaves_what_del_and_a_second_add_can_deal_with() {
    let what = "kills of the bridge plugin";
    let (Some(stage), Some(tools)) = (Stage::new(what), Tools::nft(what)) else {
        return;
    };
    let stage = stage.with(tools);
    let pod = with_rules(stage.pod("c1", gateway()));
    let points = pod.points("ADD");
    pod.del();
    assert!(points.len() >= 7, "{points:?}");
    let mut again = 0;
    for (nth, point) in points.iter().enumerate() {
        // The bridge goes too, so that making it is among the steps.
        stage.node.run("ip", &["link", "del", "br1"]);
        pod.killed("ADD", nth);
        pod.del();
        assert_clean(&stage, point);
        assert_no_rules(&stage, point);
        // Now the bridge and its address are there, and an ADD that passes by leaves what a second one finds.
        again += usize::from(pod.killed_at("ADD", point));
        let result = pod.add();
        pod.check(&result).ok();
        assert_eq!((stage.pairs().len(), stage.held()), (1, 1), "{point}");
        pod.del_blind();
        assert_clean(&stage, point);
        assert_no_rules(&stage, point);
    }
    assert!(again + 2 >= points.len(), "{again} of {points:?}");
    println!("killed ADD at {points:?}");
}

#[test]
fn a_kill_at_any_step_of_del_is_finished_by_the_next_del() {
    let what = "kills of the bridge plugin's DEL";
    let (Some(stage), Some(tools)) = (Stage::new(what), Tools::nft(what)) else {
        return;
    };
    let stage = stage.with(tools);
    let pod = with_rules(stage.pod("c1", gateway()));
    pod.add();
    let points = pod.points("DEL");
    assert!(!points.is_empty());
    for (nth, point) in points.iter().enumerate() {
        pod.add();
        pod.killed("DEL", nth);
        pod.del();
        assert_clean(&stage, point);
        assert_no_rules(&stage, point);
    }
    println!("killed DEL at {points:?}");
}

fn with_rules(pod: crate::stage::Pod) -> crate::stage::Pod {
    pod.with("macspoofchk", json!(true))
        .with("ipMasq", json!(true))
}

/// No rule that names a pod.
#[track_caller]
fn assert_no_rules(stage: &Stage, when: &str) {
    let rules = stage.rules();
    assert!(
        !rules.contains("cni-br-iface") && !rules.contains("\"masquerade\""),
        "{when}: {rules}"
    );
}

#[test]
fn sixteen_pods_at_once_share_one_bridge_that_none_of_them_found() {
    let Some(stage) = Stage::new("sixteen ADDs at once") else {
        return;
    };
    let pods: Vec<_> = (0..16)
        .map(|n| stage.pod(&format!("c{n}"), gateway()))
        .collect();
    let results: Vec<Value> = thread::scope(|scope| {
        let calls: Vec<_> = pods.iter().map(|pod| scope.spawn(|| pod.add())).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    let mut addresses: Vec<String> = results
        .iter()
        .map(|r| r["ips"][0]["address"].to_string())
        .collect();
    addresses.sort();
    addresses.dedup();
    assert_eq!(addresses.len(), 16);
    let mac = stage.node.link("br1").unwrap()["address"].clone();
    assert!(results.iter().all(|r| r["interfaces"][0]["mac"] == mac));
    thread::scope(|scope| {
        for pod in &pods {
            scope.spawn(|| pod.del());
        }
    });
    assert_clean(&stage, "after sixteen DELs");
}

#[test]
fn gc_removes_the_pairs_of_its_network_that_nobody_owns_and_no_others() {
    let Some(stage) = Stage::new("GC of the bridge plugin") else {
        return;
    };
    let other = stage.pod("c3", json!({"bridge": "br1", "name": "other"}));
    let (a, b) = (stage.pod("c1", gateway()), stage.pod("c2", gateway()));
    for pod in [&a, &b, &other] {
        pod.add();
    }
    // A veth that nobody of us made, on the same bridge.
    stage
        .node
        .ip("link add foreign type veth peer name foreign2");
    stage.node.ip("link set foreign master br1");
    a.gc(&["c1"]);
    assert!(a.link().is_some() && b.link().is_none() && other.link().is_some());
    assert!(stage.node.link("foreign").is_some());
    assert_eq!(stage.held(), 1);
    a.gc(&[]);
    assert!(a.link().is_none() && other.link().is_some());
    assert_eq!(stage.held(), 0);
}
