//! Source-based routing in the kernel, judged by `ip -j rule` and `ip -j route`.

mod life;

use serde_json::{Value, json};

use crate::stage::{Pod, Stage};

/// A pod with an interface that an earlier plugin would have made, and its result.
fn pod(stage: &Stage, container: &str, addresses: &[(&str, Option<&str>)]) -> Pod {
    let pod = stage.pod(container, json!({"type": "sbr"}));
    attach(stage, pod, "net1", addresses)
}

/// One more interface in the same namespace.
fn attach(stage: &Stage, mut pod: Pod, ifname: &str, addresses: &[(&str, Option<&str>)]) -> Pod {
    let path = pod.netns.path();
    let name = path.rsplit('/').next().unwrap();
    let here = format!("{}{ifname}", pod.container);
    stage.node.ip(&format!(
        "link add {here} type veth peer name {ifname} netns {name}"
    ));
    stage.node.ip(&format!("link set {here} up"));
    pod.netns.ip(&format!("link set {ifname} up"));
    let mut ips = Vec::new();
    for (address, gateway) in addresses {
        let dad = if address.contains(':') { "nodad" } else { "" };
        pod.netns
            .ip(&format!("addr add {address} dev {ifname} {dad}"));
        let mut ip = json!({"address": address, "interface": 0});
        if let Some(gateway) = gateway {
            let family = if gateway.contains(':') { "-6" } else { "-4" };
            pod.netns.ip(&format!(
                "{family} route replace default via {gateway} dev {ifname} metric 50"
            ));
            ip["gateway"] = json!(gateway);
        }
        ips.push(ip);
    }
    ifname.clone_into(&mut pod.ifname);
    pod.config["prevResult"] = json!({"cniVersion": "1.1.0",
        "interfaces": [{"name": ifname, "sandbox": path}], "ips": ips});
    pod
}

/// `source table`, of the rules that name a source.
fn rules(pod: &Pod) -> Vec<String> {
    let mut all = Vec::new();
    for family in ["-4", "-6"] {
        let text = pod.netns.ip(&format!("-j {family} rule"));
        let list: Vec<Value> = serde_json::from_str(&text).unwrap();
        let with_source = list.into_iter().filter(|r| r["src"] != "all");
        all.extend(with_source.map(|r| {
            format!(
                "{} {}",
                r["src"].as_str().unwrap(),
                r["table"].as_str().unwrap()
            )
        }));
    }
    all
}

/// `destination [via gateway]` of a table.
fn routes(pod: &Pod, table: &str) -> Vec<String> {
    let mut all = Vec::new();
    for family in ["-4", "-6"] {
        let said = pod
            .netns
            .run("ip", &["-j", family, "route", "show", "table", table]);
        let list: Vec<Value> = serde_json::from_str(&said.stdout).unwrap_or_default();
        all.extend(list.into_iter().map(|r| {
            let via = r["gateway"]
                .as_str()
                .map_or(String::new(), |g| format!(" via {g}"));
            format!("{}{via}", r["dst"].as_str().unwrap())
        }));
    }
    all.sort();
    all
}

#[test]
fn an_interfaces_routes_are_in_a_table_of_its_own_and_the_result_is_passed_on() {
    let Some(stage) = Stage::new("the sbr plugin") else {
        return;
    };
    let pod = pod(&stage, "c1", &[("10.1.0.5/24", Some("10.1.0.1"))]);
    pod.netns.ip("route add 192.168.0.0/16 via 10.1.0.9");
    let result = pod.add();
    assert_eq!(result, pod.config["prevResult"]);
    assert_eq!(rules(&pod), ["10.1.0.5 100"]);
    assert_eq!(
        routes(&pod, "100"),
        [
            "10.1.0.0/24",
            "192.168.0.0/16 via 10.1.0.9",
            "default via 10.1.0.1"
        ]
    );
    assert_eq!(routes(&pod, "main"), ["fe80::/64"]);
    let way = pod.netns.ip("route get 8.8.8.8 from 10.1.0.5");
    assert!(
        way.contains("via 10.1.0.1") && way.contains("table 100"),
        "{way}"
    );
    pod.check(&result).ok();
    pod.del();
    assert_eq!(rules(&pod), [""; 0]);
    pod.del();
}

#[test]
fn two_rails_answer_by_the_interface_that_was_asked() {
    let Some(stage) = Stage::new("two rails") else {
        return;
    };
    let first = pod(&stage, "c1", &[("10.1.0.5/31", None)]);
    let second = attach(
        &stage,
        first.clone(),
        "net2",
        &[("10.2.0.5/30", None), ("fd02::4/127", None)],
    );
    first.add();
    second.add();
    assert_eq!(
        rules(&first),
        ["10.2.0.5 101", "10.1.0.5 100", "fd02::4 102"]
    );
    for (source, gateway, device) in [
        ("10.1.0.5", "10.1.0.4", "net1"),
        ("10.2.0.5", "10.2.0.6", "net2"),
        ("fd02::4", "fd02::5", "net2"),
    ] {
        let to = if source.contains(':') {
            "2001:db8::1"
        } else {
            "8.8.8.8"
        };
        let way = first.netns.ip(&format!("route get {to} from {source}"));
        assert!(
            way.contains(&format!("via {gateway} dev {device}")),
            "{way}"
        );
    }
    first.del();
    assert_eq!(
        rules(&first),
        ["10.2.0.5 101", "fd02::4 102"],
        "the other interface keeps its own"
    );
    first.add();
    assert_eq!(
        rules(&first),
        ["10.1.0.5 100", "10.2.0.5 101", "fd02::4 102"]
    );
}

#[test]
fn a_table_a_gateway_and_source_hints_are_taken_from_the_configuration() {
    let Some(stage) = Stage::new("options of the sbr plugin") else {
        return;
    };
    let fixed = pod(&stage, "c1", &[("10.1.0.5/24", Some("10.1.0.1"))]).with("table", json!(5000));
    fixed.add();
    assert_eq!(rules(&fixed), ["10.1.0.5 5000"]);
    assert!(
        routes(&fixed, "main").contains(&"10.1.0.0/24".to_owned()),
        "nothing is moved"
    );
    fixed.netns.ip("rule add from 10.1.0.5 table 7000");
    fixed.del();
    assert_eq!(
        rules(&fixed),
        ["10.1.0.5 7000"],
        "that one is not of our table"
    );
    let chosen = pod(&stage, "c2", &[("10.1.0.5/24", Some("10.1.0.1"))])
        .with("gateways", json!(["10.1.0.7"]));
    chosen.add();
    assert_eq!(
        routes(&chosen, "100"),
        ["10.1.0.0/24", "default via 10.1.0.7"]
    );
    let hinted = pod(
        &stage,
        "c3",
        &[("10.1.0.5/24", Some("10.1.0.1")), ("fd01::5/64", None)],
    );
    let hinted = hinted.with("addSourceHints", json!(true));
    hinted.add();
    assert_eq!(
        routes(&hinted, "main"),
        ["10.1.0.0/24", "fd01::/64", "fe80::/64"]
    );
    let way = hinted.netns.ip("-6 route get fd01::9");
    assert!(way.contains("src fd01::5"), "{way}");
}

#[test]
fn what_cannot_be_is_refused_by_its_field() {
    let Some(stage) = Stage::new("bad keys of the sbr plugin") else {
        return;
    };
    let pod = pod(&stage, "c1", &[("10.1.0.5/24", None)]);
    for (key, value, field) in [
        ("gateways", json!(["10.1.0.1", "10.1.0.2"]), "gateways[1]"),
        ("gateways", json!(["there"]), "gateways[0]"),
        ("table", json!(0), "table"),
        ("table", json!(-1), "table"),
        ("prevResult", Value::Null, "prevResult"),
        (
            "prevResult",
            json!({"cniVersion": "1.1.0", "interfaces": []}),
            "prevResult",
        ),
    ] {
        let (code, text) = pod.clone().with(key, value.clone()).refuse("ADD");
        assert!(
            code == 7 && text.contains(field),
            "{key}={value}: {code} {text}"
        );
    }
    assert_eq!(rules(&pod), [""; 0]);
    assert_eq!(routes(&pod, "main"), ["10.1.0.0/24", "fe80::/64"]);
}

#[test]
fn check_notices_a_rule_or_a_table_that_is_gone() {
    let Some(stage) = Stage::new("CHECK of the sbr plugin") else {
        return;
    };
    let pod = pod(&stage, "c1", &[("10.1.0.5/24", Some("10.1.0.1"))]);
    let result = pod.add();
    pod.check(&result).ok();
    pod.netns.ip("route flush table 100");
    assert!(pod.check(&result).stdout.contains("table 100"));
    pod.netns.ip("rule del from 10.1.0.5");
    assert!(pod.check(&result).stdout.contains("10.1.0.5"));
}
