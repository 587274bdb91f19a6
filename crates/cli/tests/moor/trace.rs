//! `moor trace`: the demo's packet stories, and why a packet does not arrive.

use std::fs;

use serde_json::Value;
use snapbox::str;

use crate::{fresh, moor, stdout};

#[test]
fn the_gnb_reaches_the_amf_directly_on_one_subnet() {
    let dir = fresh();
    moor(dir.path()).arg("demo").assert().code(0);
    moor(dir.path())
        .args(["trace", "my-ran/gnb", "amf", "moor-demo"])
        .assert()
        .code(0)
        .stderr_eq("")
        .stdout_eq(str![[r#"
from  my-ran/ran-gnb/Deployment/gnb  n2  192.168.100.50/24
to    my-core/core-amf/Deployment/amf  n2  192.168.100.100/24
both  n2-network  n2, n2

1. send       gnb sends to 192.168.100.100, which is n2 of amf
2. route      192.168.100.0/24 dev n2 scope link: the same subnet, so no gateway
3. neighbour  n2 asks who has 192.168.100.100 (ARP); amf answers with its MAC
4. out        n2 (macvlan on eth1) of a node of my-ran
5. switch     forwards by destination MAC: no NAT, no tunnel, no cluster boundary
6. in         n2 (macvlan on eth1) of a node of my-core
7. back       amf answers 192.168.100.50: 192.168.100.0/24 dev n2 scope link: the same subnet, so no gateway

reached: directly, on 192.168.100.0/24

"#]]);
}

#[test]
fn without_a_common_network_the_exit_code_is_1_and_the_story_says_what_to_do() {
    let dir = fresh();
    moor(dir.path()).arg("demo").assert().code(0);
    moor(dir.path())
        .args(["trace", "amf", "Deployment/upf", "moor-demo"])
        .assert()
        .code(1)
        .stdout_eq(str![[r#"
from  my-core/core-amf/Deployment/amf
to    my-core/core-upf/Deployment/upf  n3  192.168.251.11/24

1. send   amf sends to 192.168.251.11, which is n3 of upf
2. route  its routes lead nowhere but to the default route of the primary interface

not reached: amf and upf share no network: n2-network here, n3-network, n6-network there
help: attach both to one network instance

"#]]);
    let (json, code) =
        stdout(moor(dir.path()).args(["trace", "amf", "upf", "moor-demo", "-o", "json"]));
    let story: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (story["verdict"]["reason"].as_str(), code),
        (Some("NoCommonNetwork"), 1)
    );
}

#[test]
fn a_pod_that_is_not_there_is_a_usage_error_that_lists_those_that_are() {
    let dir = fresh();
    moor(dir.path()).arg("demo").assert().code(0);
    moor(dir.path())
        .args(["trace", "smf", "amf", "moor-demo"])
        .assert()
        .code(2)
        .stdout_eq("")
        .stderr_eq(str![[r#"
error: no pod smf with a networks annotation is among these objects
 |
 = help: there are edge-cluster-1/oai-ran/StatefulSet/oai-gnb, my-core/core-amf/Deployment/amf, my-core/core-upf/Deployment/upf, my-ran/ran-gnb/Deployment/gnb

"#]]);
}

#[test]
fn a_file_that_cannot_be_read_ends_the_story_before_it_begins() {
    let dir = fresh();
    moor(dir.path()).arg("demo").assert().code(0);
    fs::write(
        dir.path().join("moor-demo/my-ran/gnb/broken.yaml"),
        "a: [\n",
    )
    .unwrap();
    moor(dir.path())
        .args(["trace", "gnb", "amf", "moor-demo"])
        .assert()
        .code(1)
        .stdout_eq("");
}
