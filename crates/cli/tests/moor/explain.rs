//! `moor explain ipam`: which solution fits, for rendered packages and for those that nobody rendered.

use serde_json::Value;

use crate::{fresh, moor, stdout};

#[test]
fn every_network_of_a_fleet_has_its_answer() {
    let dir = fresh();
    moor(dir.path()).arg("demo").assert().code(0);
    let (text, code) = stdout(moor(dir.path()).args([
        "explain",
        "ipam",
        "moor-demo",
        "--mgmt",
        "moor-demo/.inputs/mgmt",
    ]));
    assert_eq!(code, 0, "{text}");
    assert!(
        text.contains(
            "n3-network: declarative static (solution 5)\n  because  Deployment/upf is a UPF"
        ),
        "{text}"
    );
    assert!(
        text.contains("  now      static: stays as it is\n"),
        "{text}"
    );
    assert!(
        text.contains("  not      external system: no external system is named\n"),
        "{text}"
    );
}

#[test]
fn a_package_before_its_render_has_an_answer_and_data_has_the_reasons() {
    let dir = fresh();
    moor(dir.path()).arg("demo").assert().code(0);
    let arguments = ["explain", "ipam", "moor-demo/.inputs/upf", "-o", "json"];
    let (text, code) = stdout(moor(dir.path()).args(arguments));
    assert_eq!(code, 0, "{text}");
    let all: Value = serde_json::from_str(&text).unwrap();
    let all = all.as_array().unwrap();
    assert_eq!(all.len(), 2, "{text}");
    for one in all {
        assert_eq!(one["solution"], "declarative", "{one}");
        assert_eq!(one["number"], 5, "{one}");
        assert_eq!(one.get("kept"), None, "there is no NAD yet: {one}");
        assert!(!one["because"].as_array().unwrap().is_empty(), "{one}");
        assert_eq!(one["insteadOf"].as_array().unwrap().len(), 4, "{one}");
    }
}

#[test]
fn without_networks_it_says_so_and_a_path_beside_a_code_is_a_mistake() {
    let dir = fresh();
    std::fs::write(
        dir.path().join("a.yaml"),
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n",
    )
    .unwrap();
    moor(dir.path())
        .args(["explain", "ipam"])
        .assert()
        .code(0)
        .stdout_eq("")
        .stderr_eq("no secondary network is here: no NAD, no Interface, no IPClaim\n");
    moor(dir.path())
        .args(["explain", "NadMissing", "a.yaml"])
        .assert()
        .code(2);
}
