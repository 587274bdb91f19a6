use serde::Deserialize;
use serde_json::{Value, json};

use crate::cni::{Attachment, CniError, Config, Verb, Version};

fn parse(verb: Verb, value: &Value) -> Result<Config, CniError> {
    Config::parse(verb, value.to_string().as_bytes())
}

fn refused(verb: Verb, value: &Value) -> CniError {
    parse(verb, value).expect_err("it must be refused")
}

#[test]
fn an_absent_version_is_the_oldest() {
    for value in [
        json!({"name": "n"}),
        json!({"name": "n", "cniVersion": ""}),
        json!({"name": "n", "cniVersion": null}),
    ] {
        assert_eq!(
            parse(Verb::Add, &value).map(|c| c.version),
            Ok(Version::V0_1_0)
        );
    }
    let error = refused(Verb::Add, &json!({"name": "n", "cniVersion": "9.9.9"}));
    assert_eq!(error.code, CniError::VERSION);
    let error = refused(Verb::Add, &json!({"name": "n", "cniVersion": 1}));
    assert_eq!((error.code, error.msg.contains("cniVersion")), (7, true));
}

#[test]
fn a_verb_needs_a_configuration_that_knows_it() {
    let since = |verb| {
        let knows = |version: &&Version| {
            parse(verb, &json!({"name": "n", "cniVersion": version.as_str(), "cni.dev/valid-attachments": []})).is_ok()
        };
        Version::ALL.iter().find(knows).copied()
    };
    assert_eq!(since(Verb::Add), Some(Version::V0_1_0));
    assert_eq!(since(Verb::Del), Some(Version::V0_1_0));
    assert_eq!(since(Verb::Check), Some(Version::V0_4_0));
    assert_eq!(since(Verb::Status), Some(Version::V1_1_0));
    assert_eq!(since(Verb::Gc), Some(Version::V1_1_0));
    let error = refused(Verb::Check, &json!({"name": "n", "cniVersion": "0.3.1"}));
    assert_eq!(
        (error.code, error.msg.as_str()),
        (1, "config version does not allow CHECK")
    );
}

#[test]
fn the_network_has_a_name_of_few_characters() {
    for verb in [Verb::Add, Verb::Del] {
        let error = refused(verb, &json!({}));
        assert_eq!(
            (error.code, error.msg.contains("missing network name")),
            (7, true),
            "{error}"
        );
        for bad in ["-n", "a/b", "../n", "n n", "ü", "n\u{0}"] {
            assert_eq!(
                refused(verb, &json!({"name": bad})).code,
                CniError::CONFIG,
                "{bad}"
            );
        }
    }
    for good in ["n", "N2_a.b-c", "0"] {
        assert!(parse(Verb::Add, &json!({"name": good})).is_ok(), "{good}");
    }
}

#[test]
fn what_is_not_an_object_of_json_is_a_decoding_error() {
    for bad in [
        "",
        "{",
        "[]",
        "null",
        "7",
        "\"n\"",
        "{\"name\": \"n\"} x",
        "{\"name\": 'n'}",
    ] {
        let error = Config::parse(Verb::Add, bad.as_bytes()).expect_err(bad);
        assert_eq!(error.code, CniError::DECODE, "{bad}: {error}");
    }
    assert_eq!(
        Config::parse(Verb::Add, b"\xff").expect_err("no text").code,
        6
    );
}

#[test]
fn a_delegate_gets_the_bytes_as_they_came() {
    let text = "{ \"zz\": 1.000000000000000000001, \"name\":\"n\",\n \"aa\": 123456789012345678901234567890, \"name\":\"n\" }";
    let config = Config::parse(Verb::Add, text.as_bytes()).expect("a configuration");
    assert_eq!(config.text(), text);
    let keys: Vec<&String> = config.raw.as_map().keys().collect();
    assert_eq!(keys, ["zz", "name", "aa"]);
}

#[test]
fn a_key_can_be_replaced_and_the_rest_keeps_its_order() {
    let value = json!({"zz": 1, "name": "n", "ipam": {}, "aa": {"deep": [1, null]}});
    let config = parse(Verb::Add, &value).expect("a configuration");
    let more = config
        .with(Verb::Add, "ipam", json!({"type": "static"}))
        .expect("one more key");
    assert_eq!(
        more.text(),
        r#"{"zz":1,"name":"n","ipam":{"type":"static"},"aa":{"deep":[1,null]}}"#
    );
    assert_eq!(more.ipam_type(), Some("static"));
    assert_eq!(config.ipam_type(), None);
}

#[test]
fn null_is_absent_everywhere() {
    let config = parse(
        Verb::Add,
        &json!({"name": "n", "ipam": null, "dns": null, "runtimeConfig": null, "args": null,
            "prevResult": null, "type": null}),
    );
    let config = config.expect("a configuration");
    assert_eq!(
        (config.ipam, config.prev, config.plugin),
        (None, None, String::new())
    );
    assert!(config.runtime.is_empty() && config.args_cni.is_empty() && config.dns.is_empty());
}

#[test]
fn an_ipam_without_a_type_is_none() {
    for ipam in [json!({}), json!({"type": ""}), json!({"type": null})] {
        let config = parse(Verb::Add, &json!({"name": "n", "ipam": ipam}));
        assert_eq!(config.map(|c| c.ipam), Ok(None));
    }
}

#[test]
fn a_wrong_kind_of_value_is_named() {
    for (key, value, path) in [
        ("type", json!(7), "type:"),
        ("name", json!({}), "name:"),
        ("ipam", json!("static"), "ipam:"),
        ("ipam", json!({"type": 3}), "ipam.type:"),
        ("dns", json!({"nameservers": "1.1.1.1"}), "dns:"),
        ("runtimeConfig", json!([]), "runtimeConfig:"),
        ("args", json!(true), "args:"),
        ("args", json!({"cni": []}), "args.cni:"),
    ] {
        let mut config = json!({"name": "n"});
        config[key] = value;
        let error = refused(Verb::Add, &config);
        assert_eq!(error.code, CniError::CONFIG, "{config}");
        assert!(error.msg.contains(path), "{config}: {error}");
    }
}

#[test]
fn the_previous_result_is_read_in_the_configurations_version() {
    let old = json!({"name": "n", "cniVersion": "0.2.0",
        "prevResult": {"ip4": {"ip": "10.1.2.3/24", "gateway": "10.1.2.1", "routes": [{"dst": "0.0.0.0/0"}]}}});
    let prev = parse(Verb::Add, &old).expect("old").prev.expect("a result");
    assert_eq!(prev.ips[0].address.to_string(), "10.1.2.3/24");
    assert_eq!(
        prev.routes[0].gw,
        Some("10.1.2.1".parse().expect("an address"))
    );
    let new = json!({"name": "n", "cniVersion": "1.0.0",
        "prevResult": {"cniVersion": "0.3.1", "ips": [{"version": "4", "address": "10.1.2.3/24"}], "routes": null}});
    let prev = parse(Verb::Check, &new)
        .expect("new")
        .prev
        .expect("a result");
    assert_eq!(prev.ips.len(), 1);
}

#[test]
fn a_bad_previous_result_stops_an_add_and_not_a_del() {
    let value =
        json!({"name": "n", "cniVersion": "0.4.0", "prevResult": {"ips": [{"address": "here"}]}});
    let error = refused(Verb::Add, &value);
    assert_eq!(
        (error.code, error.msg.starts_with("prevResult: ")),
        (6, true),
        "{error}"
    );
    assert!(refused(Verb::Check, &value).msg.contains("prevResult"));
    assert_eq!(parse(Verb::Del, &value).map(|c| c.prev), Ok(None));
}

#[test]
fn valid_attachments_are_read_under_both_names_and_their_absence_is_not_an_empty_list() {
    let gc = |more: Value| {
        let mut config = json!({"name": "n", "cniVersion": "1.1.0"});
        for (key, value) in more.as_object().expect("an object") {
            config[key] = value.clone();
        }
        parse(Verb::Gc, &config).map(|c| c.valid)
    };
    let one = json!([{"containerID": "a", "ifname": "net1"}]);
    let expected = vec![Attachment {
        container: "a".into(),
        ifname: "net1".into(),
    }];
    assert_eq!(
        gc(json!({"cni.dev/valid-attachments": one})),
        Ok(expected.clone())
    );
    assert_eq!(
        gc(json!({"cni.dev/attachments": one})),
        Ok(expected.clone())
    );
    assert_eq!(
        gc(json!({"cni.dev/attachments": [], "cni.dev/valid-attachments": one})),
        Ok(expected),
        "the specification's name wins"
    );
    assert_eq!(
        gc(json!({"cni.dev/valid-attachments": null})),
        Ok(Vec::new())
    );
    assert_eq!(gc(json!({})).expect_err("neither").code, CniError::CONFIG);
    let error = gc(json!({"cni.dev/valid-attachments": [{"ifname": "net1"}]})).expect_err("whose?");
    assert!(error.msg.contains("containerID"), "{error}");
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Keys {
    master: String,
    #[serde(default)]
    mtu: u32,
    #[serde(default)]
    list: Vec<Item>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Item {
    id: u16,
}

#[test]
fn the_path_of_a_bad_value_is_in_the_error() {
    let keys = |more: Value| {
        let mut config = json!({"name": "n"});
        for (key, value) in more.as_object().expect("an object") {
            config[key] = value.clone();
        }
        parse(Verb::Add, &config)
            .expect("a configuration")
            .keys::<Keys>()
    };
    let good = keys(json!({"master": "eth0", "mtu": null, "other": [1], "list": [{"id": 1}]}));
    assert_eq!(
        good,
        Ok(Keys {
            master: "eth0".into(),
            mtu: 0,
            list: vec![Item { id: 1 }]
        })
    );
    for (value, path) in [
        (json!({"master": "eth0", "mtu": "big"}), "mtu: "),
        (json!({"mtu": -1}), "mtu: "),
        (json!({"mtu": 1}), "missing field `master`"),
        (json!({"master": 3, "mtu": "big"}), "master: "),
        (
            json!({"master": "eth0", "list": [{"id": 1}, {"id": 70000}]}),
            "list[1].id: ",
        ),
        (
            json!({"master": "eth0", "list": [{"id": 1}, {}]}),
            "list[1]: missing field `id`",
        ),
    ] {
        let error = keys(value.clone()).expect_err("a bad value");
        assert_eq!(error.code, CniError::CONFIG);
        assert!(error.msg.contains(path), "{value}: {error}");
    }
}
