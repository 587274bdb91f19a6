//! Ports: hairpin, isolation, promiscuity, MTU and MAC, and interfaces without addresses.

use serde_json::{Value, json};

use super::{assert_clean, gateway};
use crate::conformance::bed::Shown as _;
use crate::stage::{Pod, Stage};

fn port(stage: &Stage, result: &Value) -> Value {
    let name = result["interfaces"][1]["name"].as_str().unwrap();
    stage.node.link(name).unwrap()
}

fn flags(link: &Value) -> String {
    link["flags"].to_string()
}

#[test]
fn hairpin_and_isolation_are_set_on_the_port_and_noticed_by_check() {
    let Some(stage) = Stage::new("hairpin and isolation") else {
        return;
    };
    let plain = stage.pod("c1", gateway()).add();
    let seen = port(&stage, &plain)["linkinfo"]["info_slave_data"].clone();
    assert_eq!(
        (&seen["hairpin"], &seen["isolated"]),
        (&json!(false), &json!(false))
    );
    let pod = stage
        .pod("c2", gateway())
        .with("hairpinMode", json!(true))
        .with("portIsolation", json!(true));
    let result = pod.add();
    let link = port(&stage, &result);
    let seen = &link["linkinfo"]["info_slave_data"];
    assert_eq!(
        (&seen["hairpin"], &seen["isolated"]),
        (&json!(true), &json!(true))
    );
    pod.check(&result).ok();
    let name = link["ifname"].as_str().unwrap();
    stage
        .node
        .ip(&format!("link set {name} type bridge_slave isolated off"));
    let said = pod.check(&result);
    assert!(
        said.code != Some(0) && said.stdout.contains("isolation"),
        "{said:?}"
    );
}

#[test]
fn the_bridge_is_promiscuous_where_asked() {
    let Some(stage) = Stage::new("promiscuous mode") else {
        return;
    };
    stage.pod("c1", gateway()).add();
    assert!(!flags(&stage.node.link("br1").unwrap()).contains("PROMISC"));
    let pod = stage.pod("c2", gateway()).with("promiscMode", json!(true));
    let result = pod.add();
    assert!(flags(&stage.node.link("br1").unwrap()).contains("PROMISC"));
    pod.check(&result).ok();
}

#[test]
fn the_mtu_is_of_both_ends_and_the_mac_is_the_last_one_that_was_said() {
    let Some(stage) = Stage::new("MTU and MAC of a port") else {
        return;
    };
    let args = json!({"cni": {"mac": "02:00:00:00:00:02"}});
    let say = |pod: &mut Pod| {
        pod.variables.insert(
            "CNI_ARGS",
            "IgnoreUnknown=1;K8S_POD_NAME=x;MAC=02:00:00:00:00:01".to_owned(),
        );
    };
    let mut pod = stage.pod("c1", gateway()).with("mtu", json!(1400));
    say(&mut pod);
    let result = pod.add();
    let own = pod.link().unwrap();
    assert_eq!(
        (&own["mtu"], &own["address"]),
        (&json!(1400), &json!("02:00:00:00:00:01"))
    );
    assert_eq!(port(&stage, &result)["mtu"], 1400);
    assert_eq!(stage.node.link("br1").unwrap()["mtu"], 1400);
    let mut pod = stage.pod("c2", gateway()).with("args", args.clone());
    say(&mut pod);
    assert_eq!(pod.add()["interfaces"][2]["mac"], "02:00:00:00:00:02");
    let runtime = json!({"mac": "02:00:00:00:00:03"});
    let mut pod = stage
        .pod("c3", gateway())
        .with("args", args)
        .with("runtimeConfig", runtime);
    say(&mut pod);
    assert_eq!(pod.add()["interfaces"][2]["mac"], "02:00:00:00:00:03");
    assert_eq!(pod.link().unwrap()["address"], "02:00:00:00:00:03");
}

#[test]
fn without_ipam_the_interface_is_up_and_bare_and_where_asked_it_stays_down() {
    let Some(stage) = Stage::new("layer 2 alone") else {
        return;
    };
    let pod = stage.pod("c1", json!({"bridge": "br1"}));
    let result = pod.add();
    assert_eq!(pod.link().unwrap()["operstate"], "UP");
    assert_eq!(pod.addresses(), [""; 0]);
    assert_eq!(result.get("ips"), None);
    assert_eq!(stage.node.addresses("br1"), [""; 0]);
    pod.check(&result).ok();
    pod.del();
    let pod = pod.with("disableContainerInterface", json!(true));
    let result = pod.add();
    assert!(!flags(&pod.link().unwrap()).contains("\"UP\""));
    assert!(flags(&port(&stage, &result)).contains("\"UP\""));
    pod.check(&result).ok();
    pod.del();
    assert_clean(&stage, "after both");
}

#[test]
fn pods_on_one_bridge_reach_each_other_and_isolated_ones_only_the_gateway() {
    let what = "traffic between pods";
    let (Some(stage), Some(ping)) = (
        Stage::new(what),
        mooring_testkit::component("iputils-ping", what),
    ) else {
        return;
    };
    let ping = ping.join("bin/ping");
    let reaches = |from: &Pod, to: &str| {
        let words = ["-c", "1", "-W", "1", to];
        from.netns.run(&ping, &words).code == Some(0)
    };
    let (a, b) = (stage.pod("c1", gateway()), stage.pod("c2", gateway()));
    a.add();
    b.add();
    assert!(reaches(&a, "10.88.0.3"));
    let isolated = |name: &str| {
        stage
            .pod(name, gateway())
            .with("portIsolation", json!(true))
    };
    let (c, d) = (isolated("c3"), isolated("c4"));
    c.add();
    d.add();
    assert!(!reaches(&c, "10.88.0.5"));
    assert!(reaches(&c, "10.88.0.1"));
    assert!(
        reaches(&c, "10.88.0.2"),
        "a port that is not isolated is seen"
    );
}
