//! Bytes that mean harm: every one ends as an error, none as a crash.

use serde_json::{Value, json};

use crate::cni::{CniError, CniResult, Config, Verb, Version};

#[test]
fn depth_and_size_are_bounded() {
    let deep = |n: usize| format!("{}{}{}", "{\"name\":".repeat(n), "1", "}".repeat(n));
    for text in [deep(100_000), "[".repeat(1_000_000), deep(200)] {
        let error = Config::parse(Verb::Add, text.as_bytes()).expect_err("too deep");
        assert_eq!(error.code, CniError::DECODE);
    }
    let large = vec![b' '; Config::MAX_BYTES + 1];
    let error = Config::parse(Verb::Add, &large).expect_err("too large");
    assert_eq!(
        (error.code, error.details.contains("larger")),
        (6, true),
        "{error}"
    );
}

#[test]
fn a_bad_value_among_very_many_keys_is_refused_without_a_long_search() {
    #[derive(Debug, serde::Deserialize)]
    struct Keys {
        #[expect(dead_code, reason = "only its type matters")]
        zz: u32,
    }
    let mut map = serde_json::Map::new();
    for i in 0..5_000 {
        map.insert(format!("k{i}"), json!(i));
    }
    map.insert("name".into(), json!("n"));
    map.insert("zz".into(), json!("no number"));
    let config = Config::parse(Verb::Add, Value::Object(map).to_string().as_bytes());
    let error = config.expect("well-formed").keys::<Keys>().expect_err("zz");
    assert_eq!(error.code, CniError::CONFIG);
    assert!(error.msg.contains("expected u32"), "{error}");
}

#[test]
fn hostile_results_are_refused() {
    for (text, version) in [
        (r#"{"ips": [{"address": "10.0.0.1"}]}"#, Version::V1_0_0),
        (r#"{"ips": [{"address": "10.0.0.1/33"}]}"#, Version::V1_0_0),
        (
            r#"{"ips": [{"address": "10.0.0.1/24", "interface": -1}]}"#,
            Version::V1_0_0,
        ),
        (
            r#"{"ips": [{"address": "10.0.0.1/24", "gateway": "x"}]}"#,
            Version::V1_0_0,
        ),
        (r#"{"ips": {}}"#, Version::V0_3_1),
        (r#"{"routes": [{"gw": "10.0.0.1"}]}"#, Version::V0_3_1),
        (
            r#"{"routes": [{"dst": "0.0.0.0/0", "mtu": -1}]}"#,
            Version::V1_1_0,
        ),
        (r#"{"interfaces": [{}]}"#, Version::V0_4_0),
        (r#"{"ip4": {"ip": "fd00::1"}}"#, Version::V0_2_0),
        (r#"{"ip4": [], "ip6": 7}"#, Version::V0_1_0),
        ("[]", Version::V1_1_0),
        ("7", Version::V0_2_0),
    ] {
        let value: Value = serde_json::from_str(text).expect("JSON");
        let error = CniResult::parse(&value, version).expect_err(text);
        assert_eq!(error.code, CniError::DECODE, "{text}");
    }
}
