//! Keys that differ from their names in case: every Go plugin takes them, and so do ours.
//!
//! Each key is shown to be read by a value that it refuses: the same refusal in both spellings, and none under another name.

use serde_json::{Map, Value, json};

use crate::conformance::bed::{Bed, Shown as _};
use crate::conformance::peer::Peer;
use crate::protocol::{plugin, run};

/// Keys of one plugin that hold a text, which 7 is not, and keys that hold something else, which "x" is not.
struct Row {
    plugin: &'static str,
    /// What an ADD needs to get past its configuration.
    base: &'static str,
    texts: &'static str,
    others: &'static str,
}

const STATIC: &str = r#"{"ipam": {"type": "static", "addresses": [{"address": "10.0.0.2/24", "gateway": "10.0.0.1"}]}}"#;

const ROWS: &[Row] = &[
    Row {
        plugin: "macvlan",
        base: STATIC,
        texts: "name type cniVersion ipam.type master mode mac probe",
        others: "ipam dns args args.cni runtimeConfig mtu linkInContainer enabledad bcqueuelen hostReach hostReach.addresses \
            prevResult prevResult.ips prevResult.interfaces prevResult.routes dns.nameservers",
    },
    Row {
        plugin: "ipvlan",
        base: STATIC,
        texts: "master mode",
        others: "mtu linkInContainer",
    },
    Row {
        plugin: "vlan",
        base: r#"{"master": "eth1", "ipam": {"type": "static"}}"#,
        texts: "master",
        others: "mtu vlanId linkInContainer",
    },
    Row {
        plugin: "bridge",
        base: "{}",
        texts: "bridge ipMasqBackend runtimeConfig.mac args.cni.mac",
        others: "isGateway isDefaultGateway forceAddress ipMasq mtu hairpinMode promiscMode vlan vlanTrunk \
            vlanTrunk.0.minID vlanTrunk.0.maxID vlanTrunk.0.id preserveDefaultVlan macspoofchk enabledad \
            disableContainerInterface portIsolation",
    },
    Row {
        plugin: "host-device",
        base: r#"{"device": "eth1"}"#,
        texts: "device hwaddr kernelpath pciBusID deviceID runtimeConfig.deviceID",
        others: "",
    },
    Row {
        plugin: "amd-host-device",
        base: r#"{"device": "eth1"}"#,
        texts: "device hwaddr kernelpath pciBusID deviceID runtimeConfig.deviceID",
        others: "",
    },
    Row {
        plugin: "sriov",
        base: r#"{"deviceID": "0000:01:10.0"}"#,
        texts: "deviceID mac spoofchk trust link_state vlanProto",
        others: "vlan vlanQoS min_tx_rate max_tx_rate runtimeConfig.deviceID runtimeConfig.mac",
    },
    Row {
        plugin: "ovs",
        base: r#"{"bridge": "br1"}"#,
        texts: "bridge interface_type configuration_path socket_file deviceID",
        others: "vlan trunk trunk.0.minID trunk.0.maxID trunk.0.id mtu ofport_request",
    },
    Row {
        plugin: "tuning",
        base: "{}",
        texts: "mac dataDir args.cni.mac",
        others: "promisc mtu txQLen allmulti sysctl args.cni.sysctl args.cni.mtu runtimeConfig.mac",
    },
    Row {
        plugin: "sbr",
        base: "{}",
        texts: "",
        others: "table gateways addSourceHints",
    },
    Row {
        plugin: "static",
        base: STATIC,
        texts: "ipam.addresses.0.address ipam.routes.0.dst ipam.dns.domain",
        others: "ipam.addresses ipam.addresses.0.gateway ipam.routes ipam.dns ipam.dns.nameservers runtimeConfig.ips args.cni.ips",
    },
    Row {
        plugin: "host-local",
        base: r#"{"ipam": {"type": "host-local", "subnet": "10.0.0.0/24"}}"#,
        texts: "ipam.subnet ipam.rangeStart ipam.rangeEnd ipam.gateway ipam.resolvConf ipam.routes.0.dst \
            ipam.ranges.0.0.subnet ipam.ranges.0.0.rangeStart ipam.ranges.0.0.rangeEnd ipam.ranges.0.0.gateway",
        others: "ipam.ranges ipam.routes runtimeConfig.ipRanges runtimeConfig.ipRanges.0.0.subnet runtimeConfig.ips args.cni.ips",
    },
];

/// Sets what a path leads to; numbers are places in lists.
fn set(value: &mut Value, path: &[&str], to: &Value) {
    let Some((first, rest)) = path.split_first() else {
        *value = to.clone();
        return;
    };
    if first.parse::<usize>().is_ok() {
        let mut one = Value::Null;
        set(&mut one, rest, to);
        *value = json!([one]);
        return;
    }
    if !value.is_object() {
        *value = json!({});
    }
    set(&mut value[*first], rest, to);
}

/// The same with every letter of every key in the other case.
fn shouted(value: &Value) -> Value {
    let swap = |c: char| {
        if c.is_ascii_lowercase() {
            c.to_ascii_uppercase()
        } else {
            c.to_ascii_lowercase()
        }
    };
    match value {
        Value::Object(map) => {
            let swapped = |(key, value): (&String, &Value)| {
                (key.chars().map(swap).collect::<String>(), shouted(value))
            };
            Value::Object(map.iter().map(swapped).collect::<Map<_, _>>())
        }
        Value::Array(list) => list.iter().map(shouted).collect(),
        other => other.clone(),
    }
}

/// What an ADD says, without regard to case.
fn said(root: &std::path::Path, name: &str, config: &Value) -> String {
    let mut command = plugin(name);
    command.env("MOOR_CNI_ROOT", root).envs([
        ("CNI_COMMAND", "ADD"),
        ("CNI_CONTAINERID", "pod1"),
        ("CNI_NETNS", "/run/netns/no-such-namespace"),
        ("CNI_IFNAME", "net1"),
        ("CNI_PATH", "/nowhere"),
    ]);
    let said = run(command, config.to_string().as_bytes());
    assert!(!said.stdout.is_empty(), "{name} {config}: {}", said.stderr);
    said.stdout.to_lowercase()
}

#[test]
fn every_key_of_every_plugin_is_read_in_any_case() {
    let root = tempfile::tempdir().unwrap();
    let (mut wrong, mut done) = (Vec::new(), 0);
    for row in ROWS {
        let mut base: Value = serde_json::from_str(row.base).unwrap();
        for (key, value) in [
            ("cniVersion", "1.1.0"),
            ("name", "net"),
            ("type", row.plugin),
        ] {
            base[key] = json!(value);
        }
        let plain = said(root.path(), row.plugin, &base);
        if said(root.path(), row.plugin, &shouted(&base)) != plain {
            wrong.push(format!("{}: {base}", row.plugin));
        }
        let texts = row.texts.split_whitespace().map(|path| (path, json!(7)));
        let others = row.others.split_whitespace().map(|path| (path, json!("x")));
        for (path, bad) in texts.chain(others) {
            done += 1;
            let words: Vec<&str> = path.split('.').collect();
            let mut config = base.clone();
            set(&mut config, &words, &bad);
            let refused = said(root.path(), row.plugin, &config);
            let code = serde_json::from_str::<Value>(&refused).unwrap()["code"].clone();
            if code != 7 && code != 6 {
                wrong.push(format!("{} {path} is not read: {refused}", row.plugin));
            }
            let odd = said(root.path(), row.plugin, &shouted(&config));
            if odd != refused {
                wrong.push(format!("{} {path}: {odd}, not {refused}", row.plugin));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("{done} keys");
}

#[test]
fn the_reference_makes_the_same_interface_of_a_configuration_in_odd_case() {
    let what = "keys in odd case";
    let Some(reference) = Peer::reference(what) else {
        return;
    };
    let mut seen = Vec::new();
    for peer in [Peer::ours(), reference] {
        let Some(bed) = Bed::new(&peer, "macvlan") else {
            return;
        };
        let mut attachment = bed.attachment("1.0.0");
        attachment.config = json!({"CNIVersion": "1.0.0", "Name": "net", "Type": "macvlan", "Master": "eth1",
            "mode": "bridge", "Mode": "private", "MTU": 1400, "IPAM": {"Type": "host-local", "DATADIR": bed.data(),
            "Ranges": [[{"SUBNET": "10.77.0.0/24", "rangestart": "10.77.0.20", "GateWay": "10.77.0.9"}]],
            "ROUTES": [{"Dst": "192.0.2.0/24"}]}});
        let said = bed.call("ADD", &attachment);
        let mut result: Value = serde_json::from_str(said.ok()).unwrap();
        let link = attachment.pod.link("net1").unwrap();
        let eth1 = bed.node.link("eth1").unwrap()["ifindex"].clone();
        assert_eq!(link["link_index"], eth1, "{}: {link}", peer.name);
        // What differs between two attachments, and what the reference leaves out.
        for interface in result["interfaces"].as_array_mut().unwrap() {
            interface["mac"].take();
            interface["sandbox"].take();
            interface.as_object_mut().unwrap().remove("mtu");
        }
        let routes = attachment.pod.run("ip", &["route"]).ok().to_owned();
        seen.push(json!({"result": result, "mtu": link["mtu"], "mode": link["linkinfo"]["info_data"]["mode"],
            "addresses": attachment.pod.addresses("net1"), "routes": routes}));
        assert_eq!(bed.held().keys().collect::<Vec<_>>(), ["10.77.0.20"]);
        bed.call("DEL", &attachment).ok();
        assert!(bed.held().is_empty());
    }
    assert_eq!(seen[0], seen[1]);
    assert_eq!(
        (&seen[0]["mtu"], &seen[0]["mode"]),
        (&json!(1400), &json!("private"))
    );
}

#[test]
fn a_foreign_ipam_gets_the_keys_as_they_were_written() {
    let Some(stage) = crate::stage::Stage::new("keys in odd case for a foreign IPAM") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let heard = dir.path().join("heard");
    let answer = r#"{"cniVersion":"1.1.0","ips":[{"address":"10.0.0.2/24"}]}"#;
    let text = format!("#!/bin/sh\ncat > {}\necho '{answer}'\n", heard.display());
    mooring_testkit::script(&dir.path().join("their-ipam"), &text);
    stage.node.ip("link add eth1 type veth peer name fabric");
    stage.node.ip("link set fabric up");
    stage.node.ip("link set eth1 up");
    let pod = stage.pod(
        "c1",
        json!({"type": "macvlan", "MASTER": "eth1", "Ipam": {"Type": "their-ipam", "rAnGe": 1.50}}),
    );
    pod.call_with("ADD", &[("CNI_PATH", dir.path().display().to_string())])
        .ok();
    assert_eq!(
        std::fs::read_to_string(&heard).unwrap(),
        pod.config.to_string()
    );
    assert_eq!(pod.addresses(), ["10.0.0.2/24"]);
}

#[test]
fn status_refuses_what_add_would_refuse_in_the_keys() {
    let root = tempfile::tempdir().unwrap();
    let status = |name: &str, keys: &Value| {
        let mut config = json!({"cniVersion": "1.1.0", "name": "net", "type": name});
        for (key, value) in keys.as_object().unwrap() {
            config[key] = value.clone();
        }
        let mut command = plugin(name);
        command
            .env("MOOR_CNI_ROOT", root.path())
            .envs([("CNI_COMMAND", "STATUS"), ("CNI_PATH", "/nowhere")]);
        run(command, config.to_string().as_bytes())
    };
    let sysctl = json!({"sysctl": {"net.ipv4.conf.IFNAME.arp_filter": "1"}, "mtu": 1400});
    for (name, keys) in [
        ("tuning", json!({})),
        ("tuning", sysctl),
        ("sbr", json!({"table": 100})),
        ("static", serde_json::from_str(STATIC).unwrap()),
    ] {
        let said = status(name, &keys);
        assert_eq!(
            (said.code, said.stdout.as_str()),
            (Some(0), ""),
            "{name} {keys}"
        );
    }
    for (name, keys, word) in [
        ("tuning", json!({"mtu": "x"}), "mtu"),
        ("tuning", json!({"mac": "x"}), "mac"),
        (
            "tuning",
            json!({"sysctl": {"kernel.hostname": "x"}}),
            "kernel.hostname",
        ),
        (
            "tuning",
            json!({"args": {"cni": {"sysctl": []}}}),
            "args.cni.sysctl",
        ),
        ("sbr", json!({"table": "x"}), "table"),
        ("sbr", json!({"gateways": ["x"]}), "gateways[0]"),
        ("macvlan", json!({"mode": "x"}), "mode"),
        ("macvlan", json!({"mtu": -1}), "mtu"),
        ("ipvlan", json!({"mode": "x"}), "mode"),
        ("ipvlan", json!({"mtu": -1}), "mtu"),
        ("vlan", json!({"master": "eth1", "vlanId": 4095}), "vlanId"),
        ("vlan", json!({"master": "eth1", "vlanId": 4}), "ipam"),
        ("bridge", json!({"vlan": 4095}), "vlan"),
        ("host-device", json!({}), "device"),
        ("sriov", json!({"vlan": 9999}), "vlan"),
        (
            "ovs",
            json!({"bridge": "br1", "ofport_request": -1}),
            "ofport_request",
        ),
        (
            "static",
            json!({"ipam": {"type": "static", "addresses": [{"address": "x"}]}}),
            "ipam.addresses[0].address",
        ),
        (
            "host-local",
            json!({"ipam": {"type": "host-local"}}),
            "ipam.ranges",
        ),
    ] {
        let error = crate::protocol::error(&status(name, &keys));
        assert_eq!(error["code"], 7, "{name} {keys}: {error}");
        let said = format!("{} {}", error["msg"], error["details"]);
        assert!(said.contains(word), "{name} {keys}: {said}");
    }
}
