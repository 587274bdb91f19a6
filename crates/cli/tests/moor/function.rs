//! `moor fn NAME`, and the same under a function's own name.

use std::os::unix::fs::symlink;

use snapbox::cmd::Command;
use snapbox::str;

use crate::{fresh, moor};

const LIST: &str = "\
apiVersion: config.kubernetes.io/v1
kind: ResourceList
items:
- apiVersion: kpt.dev/v1
  kind: Kptfile
  metadata:
    name: gnb
    annotations:
      config.kubernetes.io/path: Kptfile
- apiVersion: infra.nephio.org/v1alpha1
  kind: WorkloadCluster
  metadata:
    name: edge-cluster-1
    annotations:
      config.kubernetes.io/path: cluster.yaml
  spec:
    clusterName: edge-cluster-1
    cnis: [macvlan]
    masterInterface: ens3
- apiVersion: req.nephio.org/v1alpha1
  kind: Interface
  metadata:
    name: n2
    namespace: oai-ran
    annotations:
      config.kubernetes.io/path: interface.yaml
  spec:
    networkInstance:
      name: vpc-control
    cniType: macvlan
";

#[test]
fn a_function_answers_with_a_resource_list_and_leaves_no_book_behind() {
    let dir = fresh();
    let run = moor(dir.path())
        .args(["fn", "interface-fn"])
        .stdin(LIST)
        .assert()
        .code(0);
    let answer = String::from_utf8(run.get_output().stdout.clone()).unwrap();
    assert!(answer.contains("kind: ResourceList"), "{answer}");
    assert!(answer.contains("kind: IPClaim"), "{answer}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn the_functions_in_a_pipe_give_the_address_that_the_book_then_has() {
    let dir = fresh();
    let pool = "\
- apiVersion: ipam.resource.nephio.org/v1alpha1
  kind: IPPrefix
  metadata:
    name: pool
  spec:
    prefix: 10.1.2.0/24
    networkInstance:
      name: vpc-control
";
    let mut text = format!("{LIST}{pool}");
    for step in ["interface-fn", "ipam-fn", "nad-fn", "attach-fn"] {
        let run = moor(dir.path())
            .args(["fn", step, "--book", "b.redb"])
            .stdin(text)
            .assert()
            .code(0)
            .stderr_eq("");
        text = String::from_utf8(run.get_output().stdout.clone()).unwrap();
    }
    assert!(text.contains("kind: NetworkAttachmentDefinition"), "{text}");
    assert!(text.contains("\"address\": \"10.1.2.2/24\""), "{text}");
    moor(dir.path())
        .args(["who-has", "10.1.2.2", "--book", "b.redb"])
        .assert()
        .code(0)
        .stdout_eq(str![[r#"
ADDRESS   NETWORK      CLUSTER         PACKAGE  ID   NAMESPACE  WORKLOAD  INTERFACE  STATE  AGE  SINCE
10.1.2.2  vpc-control  edge-cluster-1  -        gnb  oai-ran    -         n2         held   [..]

"#]]);
}

#[test]
fn a_list_with_an_error_comes_back_with_its_results_and_exit_code_1() {
    let dir = fresh();
    let bad = LIST.replace("cniType: macvlan", "cniTipe: macvlan");
    let run = moor(dir.path())
        .args(["fn", "nad-fn"])
        .stdin(bad.clone())
        .assert()
        .code(1);
    let output = run.get_output();
    let answer = String::from_utf8(output.stdout.clone()).unwrap();
    let (items, results) = answer.split_once("results:\n").unwrap();
    assert_eq!(items, bad);
    assert!(results.contains("code: UnknownField"), "{results}");
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(said.contains("error[UnknownField]"), "{said}");
    assert!(said.contains("--> stdin:"), "{said}");
}

#[test]
fn a_link_named_after_a_function_is_that_function() {
    let dir = fresh();
    let link = dir.path().join("interface-fn");
    symlink(env!("CARGO_BIN_EXE_moor"), &link).unwrap();
    let by_link = Command::new(&link).stdin(LIST).assert().code(0);
    let by_name = moor(dir.path())
        .args(["fn", "interface-fn"])
        .stdin(LIST)
        .assert()
        .code(0);
    assert_eq!(by_link.get_output().stdout, by_name.get_output().stdout);
}

#[test]
fn a_finding_in_the_list_never_shows_a_file_that_is_called_stdin() {
    let dir = fresh();
    let file = "mine: true\n".repeat(100);
    std::fs::write(dir.path().join("stdin"), file).unwrap();
    let run = moor(dir.path())
        .args(["fn", "interface-fn"])
        .stdin(LIST.replace("cniType: macvlan", "cniTipe: macvlan"))
        .assert()
        .code(1);
    let said = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(said.contains("--> stdin:"), "{said}");
    assert!(!said.contains("mine: true"), "{said}");
}

#[test]
fn an_unknown_function_is_a_finding_on_stderr_and_exit_code_1() {
    let dir = fresh();
    let run = moor(dir.path())
        .args(["fn", "coffee-fn"])
        .stdin(LIST)
        .assert()
        .code(1);
    let said = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(said.contains("error[UnknownFunction]"), "{said}");
    assert!(said.contains("moor explain UnknownFunction"), "{said}");
}
