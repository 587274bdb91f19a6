//! `moor render`: exit codes, what is written where, findings that point into files.

use std::fs;

use mooring_testkit::hash_tree;
use snapbox::str;

use crate::{example, moor, stdout};

const EDGE: [&str; 6] = [
    "render",
    "edge-gnb",
    "--mgmt",
    "mgmt",
    "--cluster",
    "edge-cluster-1",
];

#[test]
fn the_first_example_renders_as_the_readme_says() {
    let dir = example("fleet");
    let run = moor(dir.path()).args(EDGE).assert().code(0).stdout_eq(str![[r#"
CLUSTER         PACKAGE        INTERFACE  NETWORK        CNI      ON                ADDRESS       GATEWAY   WORKLOAD
edge-cluster-1  gnb-blueprint  n2         vpc-control    macvlan  ens3              10.1.2.20/24  10.1.2.1  StatefulSet/oai-gnb
edge-cluster-1  gnb-blueprint  n3         vpc-userplane  sriov    mooring.dev/ens4  10.1.3.20/24  10.1.3.1  StatefulSet/oai-gnb

"#]]);
    let said = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(said.contains("warning[VfIndexIgnored]"), "{said}");
    // The line of the second document, and the text that stands there.
    assert!(said.contains("edge-gnb/interfaces.yaml:32"), "{said}");
    assert!(said.contains("vfIndex: 0"), "{said}");
    assert!(said.contains("1 package, 2 interfaces: "), "{said}");
}

#[test]
fn check_is_exit_code_3_writes_nothing_and_is_0_after_a_render() {
    let dir = example("fleet");
    let before = hash_tree(dir.path());
    let (text, code) = stdout(moor(dir.path()).args(EDGE).arg("--check"));
    assert_eq!(code, 3);
    assert!(
        text.contains("create  edge-gnb/networkattachmentdefinition_n2.yaml"),
        "{text}"
    );
    assert_eq!(hash_tree(dir.path()), before, "--check wrote something");
    moor(dir.path()).args(EDGE).assert().code(0);
    let rendered = hash_tree(&dir.path().join("edge-gnb"));
    let again = moor(dir.path()).args(EDGE).arg("--check").assert().code(0);
    let said = String::from_utf8(again.get_output().stderr.clone()).unwrap();
    assert!(said.contains("unchanged"), "{said}");
    assert_eq!(hash_tree(&dir.path().join("edge-gnb")), rendered);
}

#[test]
fn an_error_points_at_the_line_and_nothing_is_written() {
    let dir = example("fleet");
    let file = dir.path().join("edge-gnb/interfaces.yaml");
    let text = fs::read_to_string(&file)
        .unwrap()
        .replace("pfName: ens4", "pfName: ens9");
    fs::write(&file, text).unwrap();
    let before = hash_tree(&dir.path().join("edge-gnb"));
    let run = moor(dir.path()).args(EDGE).assert().code(1);
    let said = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(said.contains("error[UnknownPhysicalFunction]"), "{said}");
    assert!(said.contains("edge-gnb/interfaces.yaml:31"), "{said}");
    assert!(said.contains("pfName: ens9"), "{said}");
    assert!(said.contains("= help: "), "{said}");
    assert!(
        said.contains("moor explain UnknownPhysicalFunction"),
        "{said}"
    );
    assert!(said.trim_end().ends_with("nothing was written"), "{said}");
    assert_eq!(hash_tree(&dir.path().join("edge-gnb")), before);
    let (held, _) = stdout(moor(dir.path()).args(["who-has", "10.1.2.20", "--mgmt", "mgmt"]));
    assert_eq!(held, "");
}

#[test]
fn out_leaves_the_source_alone_and_data_comes_as_json_and_yaml() {
    let dir = example("fleet");
    let before = hash_tree(&dir.path().join("edge-gnb"));
    let (json, code) = stdout(
        moor(dir.path())
            .args(EDGE)
            .args(["--out", "out", "-o", "json"]),
    );
    assert_eq!(code, 0);
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        report["packages"][0]["interfaces"][0]["addresses"][0],
        "10.1.2.20/24"
    );
    assert_eq!(
        report["packages"][0]["conditions"],
        serde_json::json!([5, 5])
    );
    assert_eq!(hash_tree(&dir.path().join("edge-gnb")), before);
    assert!(
        dir.path()
            .join("out/networkattachmentdefinition_n3.yaml")
            .is_file()
    );
    let (yaml, _) = stdout(
        moor(dir.path())
            .args(EDGE)
            .args(["--out", "out", "-o", "yaml"]),
    );
    let again: serde_json::Value = serde_saphyr::from_str(&yaml).unwrap();
    assert_eq!(again["packages"], report["packages"]);
    assert_eq!(again["changes"], serde_json::json!([]));
}

#[test]
fn the_management_directory_may_come_from_the_environment() {
    let dir = example("fleet");
    let (text, code) = stdout(moor(dir.path()).env("MOOR_MGMT", "mgmt").args([
        "render",
        "gnb",
        "--cluster",
        "my-ran",
    ]));
    assert_eq!(code, 0);
    assert!(text.contains("192.168.100.50/24"), "{text}");
    assert!(dir.path().join("mgmt/.moor/book.redb").is_file());
}

#[test]
fn a_package_may_begin_with_an_ip_claim() {
    let dir = example("ipclaim-first");
    let (text, code) = stdout(moor(dir.path()).args(["render", "amf", "--mgmt", "mgmt"]));
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("192.168.100.100/24"), "{text}");
    let deployment = fs::read_to_string(dir.path().join("amf/deployment.yaml")).unwrap();
    assert!(deployment.contains("n2-network"), "{deployment}");
    assert!(deployment.contains("192.168.100.100/24"), "{deployment}");
}

#[test]
fn a_check_of_everything_agrees_with_the_render_of_each() {
    let dir = example("fleet");
    for (package, cluster) in [("gnb", "my-ran"), ("amf", "my-core")] {
        let out = format!("deployed/{cluster}/{package}");
        let render = [
            "render",
            package,
            "--mgmt",
            "mgmt",
            "--cluster",
            cluster,
            "--out",
            &out,
        ];
        moor(dir.path()).args(render).assert().code(0);
    }
    let run = moor(dir.path())
        .args(["render", "deployed", "--mgmt", "mgmt", "--check"])
        .assert()
        .code(0);
    let said = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(
        said.contains("2 packages, 3 interfaces: unchanged"),
        "{said}"
    );
}
