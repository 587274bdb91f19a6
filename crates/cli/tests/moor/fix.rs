//! `moor verify --fix`: what is changed, what is left alone, and that nothing else is touched.

use std::fs;
use std::path::Path;

use mooring_testkit::hash_tree;
use serde_json::Value;

use crate::{fresh, moor, stdout};

/// Everything that has a safe fix, among comments that must survive.
const WRONG: &str = r#"# keep this comment
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata:
  name: n2   # the N2 network
spec:
  config: |
    {
      "type": "macvlan",
      "master": "eth1",   # the fabric
      "ipam": {
        "type": "static",
        "addresses": [{"address": "192.168.100.20/24"}],
      }
    }
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: amf
spec:
  replicas: 1   # one only
  template:
    metadata:
      annotations:
        k8s.v1.cni.cncf.io/networks: |
          [{
            "name": "n2",
            "ips": ["192.168.100.20/24"]  # Explicit IP
          }]
    spec:
      containers:
      - name: amf
        image: amf:v1
"#;

const RIGHT: &str = r#"# keep this comment
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata:
  name: n2   # the N2 network
spec:
  config: |
    {
      "type": "macvlan",
      "master": "eth1",
      "ipam": {
        "type": "static",
        "addresses": [{"address": "192.168.100.20/24"}]
      }
    }
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: amf
spec:
  replicas: 1   # one only
  template:
    metadata:
      annotations:
        k8s.v1.cni.cncf.io/networks: |
          [{
            "name": "n2"
          }]
    spec:
      containers:
      - name: amf
        image: amf:v1
  strategy:
    type: Recreate
"#;

fn write(dir: &Path, path: &str, text: &str) {
    let path = dir.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn run(dir: &Path, arguments: &[&str]) -> (String, String, i32) {
    let output = moor(dir).arg("verify").args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let code = output.status.code().unwrap();
    (text(output.stdout), text(output.stderr), code)
}

#[test]
fn safe_changes_are_made_and_a_second_run_has_none_left() {
    let dir = fresh();
    write(dir.path(), "all/edge/a.yaml", WRONG);
    write(dir.path(), "all/edge/other.txt", "no manifest\n");
    let (_, before, code) = run(dir.path(), &["all"]);
    assert_eq!(code, 1, "{before}");

    let (_, said, code) = run(dir.path(), &["all", "--fix"]);
    assert_eq!(code, 0, "{said}");
    for code in [
        "fixed[InvalidNad]",
        "fixed[InvalidNetworksAnnotation]",
        "fixed[TwoCarriers]",
        "fixed[SurgingStrategy]",
    ] {
        assert!(said.contains(code), "{said}");
    }
    assert!(said.contains("4 changes in 1 file"), "{said}");
    let path = dir.path().join("all/edge/a.yaml");
    assert_eq!(fs::read_to_string(&path).unwrap(), RIGHT);

    let before = hash_tree(dir.path());
    let (_, said, code) = run(dir.path(), &["all", "--fix"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("nothing here has a fix"), "{said}");
    assert_eq!(hash_tree(dir.path()), before, "a second run writes nothing");
    let (_, _, code) = run(dir.path(), &["all", "--fix", "--check"]);
    assert_eq!(code, 0);
}

#[test]
fn a_preview_is_a_diff_with_exit_code_3_and_writes_nothing() {
    let dir = fresh();
    write(dir.path(), "all/edge/a.yaml", WRONG);
    let before = hash_tree(dir.path());
    let (diff, said, code) = run(dir.path(), &["all", "--fix", "--check"]);
    assert_eq!(code, 3, "{said}");
    assert!(
        diff.starts_with("--- all/edge/a.yaml\n+++ all/edge/a.yaml\n@@ "),
        "{diff}"
    );
    assert!(
        diff.contains(
            "-      \"master\": \"eth1\",   # the fabric\n+      \"master\": \"eth1\",\n"
        ),
        "{diff}"
    );
    assert!(
        diff.contains("+  strategy:\n+    type: Recreate\n"),
        "{diff}"
    );
    assert!(
        said.contains("would make 4 changes in 1 file; 0 findings would stay"),
        "{said}"
    );
    assert_eq!(hash_tree(dir.path()), before);
    let (json, _, code) = run(dir.path(), &["all", "--fix", "--check", "-o", "json"]);
    assert_eq!(code, 3);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["fixed"].as_array().unwrap().len(), 4);
    assert_eq!(hash_tree(dir.path()), before);
}

#[test]
fn what_needs_a_decision_keeps_its_help_and_stays() {
    let dir = fresh();
    let pod = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  annotations:\n    \
               k8s.v1.cni.cncf.io/networks: '[{\"name\": \"macvlan-croe\", \"default-route\": [\"true\"]}]'\n";
    let misspelt = "---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: q\n  annotations:\n    \
                    k8s.v1.cni.cncf.io/networks: macvlan-croe\n---\napiVersion: k8s.cni.cncf.io/v1\n\
                    kind: NetworkAttachmentDefinition\nmetadata:\n  name: macvlan-core\nspec:\n  \
                    config: '{\"type\": \"macvlan\"}'\n";
    write(dir.path(), "edge/a.yaml", &format!("{pod}{misspelt}"));
    let before = hash_tree(dir.path());
    let (_, said, code) = run(dir.path(), &["edge", "--fix"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("error[NadAsPrimary]"), "{said}");
    assert!(said.contains("did you mean macvlan-core?"), "{said}");
    assert!(said.contains("nothing here has a fix"), "{said}");
    assert_eq!(hash_tree(dir.path()), before);
}

#[test]
fn lists_several_paths_and_files_are_fixed_in_place_and_the_management_directory_never_is() {
    let dir = fresh();
    let nad = "apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\nmetadata:\n  name: n2\nspec:\n  \
               config: |\n    {\"type\": \"macvlan\"} # x\n";
    write(dir.path(), "a/n2.yaml", nad);
    write(dir.path(), "mgmt/n2.yaml", nad);
    let item = nad
        .replace("apiVersion", "- apiVersion")
        .replace('\n', "\n  ");
    let list = format!("apiVersion: v1\nkind: List\nitems:\n{}", item.trim_end());
    write(dir.path(), "b/list.yaml", &format!("{list}\n"));
    let arguments = ["a", "b/list.yaml", "--mgmt", "mgmt", "--fix"];
    let (_, said, _) = run(dir.path(), &arguments);
    assert!(said.contains("2 changes in 2 files"), "{said}");
    let text = |path: &str| fs::read_to_string(dir.path().join(path)).unwrap();
    assert_eq!(text("a/n2.yaml"), nad.replace(" # x", ""));
    assert_eq!(text("b/list.yaml"), format!("{list}\n").replace(" # x", ""));
    assert_eq!(text("mgmt/n2.yaml"), nad);
}

#[test]
fn a_stream_and_a_revision_are_never_fixed() {
    let dir = fresh();
    write(dir.path(), "edge/a.yaml", WRONG);
    let before = hash_tree(dir.path());
    for arguments in [&["-", "--fix"][..], &["main:edge", "--fix"]] {
        let (_, said, code) = run(dir.path(), arguments);
        assert_eq!(code, 2, "{said}");
        assert!(said.contains("cannot be fixed"), "{said}");
    }
    let (_, said, code) = run(dir.path(), &["edge", "--check"]);
    assert_eq!(code, 2, "--check alone has no meaning: {said}");
    assert_eq!(hash_tree(dir.path()), before);
}

#[test]
fn a_file_that_cannot_be_written_leaves_all_as_they_were() {
    let dir = fresh();
    write(dir.path(), "all/edge/a.yaml", WRONG);
    write(dir.path(), "all/far/b.yaml", WRONG);
    let path = dir.path().join("all/far/b.yaml");
    let mut access = fs::metadata(&path).unwrap().permissions();
    access.set_readonly(true);
    fs::set_permissions(&path, access).unwrap();
    let before = hash_tree(dir.path());
    let (_, said, code) = run(dir.path(), &["all", "--fix"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("error[FileUnwritable]"), "{said}");
    assert_eq!(hash_tree(dir.path()), before);
}

#[test]
fn what_was_fixed_is_in_the_data_too() {
    let dir = fresh();
    write(dir.path(), "edge/a.yaml", WRONG);
    let (text, code) = stdout(moor(dir.path()).args(["verify", "edge", "--fix", "-o", "json"]));
    assert_eq!(code, 0, "{text}");
    let value: Value = serde_json::from_str(&text).unwrap();
    let fixed = value["fixed"].as_array().unwrap();
    assert_eq!(fixed.len(), 4);
    assert_eq!(fixed[0]["file"], "edge/a.yaml");
    assert_eq!(fixed[0]["code"], "InvalidNad");
    assert_eq!(value["findings"], Value::Array(Vec::new()));
}
