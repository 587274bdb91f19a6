use std::io;

use serde_json::json;

use crate::cni::{CniError, Version};

#[test]
fn an_error_prints_version_code_message_and_details() {
    let error =
        CniError::config("mtu", "70000 is more than the master's 1500").with_details("see ip link");
    assert_eq!(
        error.to_json(Some(Version::V0_3_1)).to_string(),
        r#"{"cniVersion":"0.3.1","code":7,"msg":"invalid configuration: mtu: 70000 is more than the master's 1500","details":"see ip link"}"#
    );
    let plain = CniError::internal("no");
    assert_eq!(
        plain.to_json(None),
        json!({"cniVersion": "1.1.0", "code": 999, "msg": "no"})
    );
}

#[test]
fn every_constructor_has_the_specifications_number() {
    for (error, code) in [
        (CniError::unsupported("vlan", 7), 2),
        (CniError::env("x"), 4),
        (CniError::io("reading x", io::Error::other("y")), 5),
        (CniError::decode("x", "y"), 6),
        (CniError::config("x", "y"), 7),
        (CniError::netns("/x", "y"), 8),
        (CniError::try_again("x"), 11),
        (CniError::unavailable("x"), 50),
        (CniError::internal("x"), 999),
    ] {
        assert_eq!(error.code, code, "{error}");
    }
    let text = CniError::unsupported("vlan", 7).to_string();
    assert!(
        text.contains("vlan") && text.contains('7'),
        "key and value: {text}"
    );
}

#[test]
fn a_delegates_error_keeps_its_code() {
    let said =
        json!({"code": 117, "msg": "no more addresses", "details": "of 10.0.0.0/24", "x": 1});
    let error = CniError::from_json(&said).expect("an error");
    assert_eq!(
        error,
        CniError::new(117, "no more addresses").with_details("of 10.0.0.0/24")
    );
    for other in [
        json!({"msg": "x"}),
        json!({"code": 7}),
        json!([]),
        json!({"code": "7", "msg": "x"}),
    ] {
        assert_eq!(CniError::from_json(&other), None, "{other}");
    }
}

#[test]
fn several_failures_become_one_with_every_message() {
    assert_eq!(CniError::all(Vec::new()), None);
    let one = CniError::all(vec![
        CniError::try_again("busy"),
        CniError::internal("gone").with_details("eth0"),
    ]);
    let one = one.expect("there were two");
    assert_eq!((one.code, one.to_string()), (11, "busy; gone; eth0".into()));
}

#[test]
fn a_cause_is_told_with_its_causes() {
    #[derive(Debug, thiserror::Error)]
    #[error("cannot move the link")]
    struct Outer(#[source] io::Error);
    let error = CniError::internal("failed").because(&Outer(io::Error::other("busy")));
    assert_eq!(error.details, "cannot move the link: busy");
}
