//! `moor plan`, and `explain` and `trace` of a network: what changes, who put it there, where a packet goes.

use std::fs;
use std::path::Path;

use serde_json::Value;
use snapbox::str;

use crate::{fresh, moor, stdout};

/// Two groups of nodes, a zone, a segment and addresses for a load balancer.
pub(crate) fn network() -> tempfile::TempDir {
    let dir = fresh();
    let node = |name: &str, group: &str| {
        format!(
            "apiVersion: v1\nkind: Node\nmetadata:\n  name: {name}\n  labels:\n    \
             network.t-caas.telekom.com/worker-group: {group}\n"
        )
    };
    let nodes = [
        node("worker-1", "compute"),
        node("worker-2", "compute"),
        node("storage-1", "storage"),
    ];
    put(dir.path(), "nodes.yaml", &nodes.join("---\n"));
    put(dir.path(), "zones.yaml", ZONE);
    put(dir.path(), "apps.yaml", APPS);
    put(dir.path(), "access.yaml", ACCESS);
    dir
}

pub(crate) fn put(dir: &Path, name: &str, text: &str) {
    fs::create_dir_all(dir.join("network")).unwrap();
    fs::write(dir.join("network").join(name), text).unwrap();
}

const ZONE: &str = "\
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Destination
metadata:
  name: secure
  labels:
    zone: secure
spec:
  vrf: secure
  vni: 10100
  routeTarget: 64500:10100
  prefixes:
    - 192.0.2.0/24
";

const APPS: &str = "\
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Layer2Attachment
metadata:
  name: apps
spec:
  network:
    vlanID: 234
    vni: 10234
    ipv4:
      subnet: 10.0.0.0/24
  interfaceName: apps
  mtu: 1500
  destinations:
    matchLabels:
      zone: secure
  workerGroups:
    - compute
  nodeIPs:
    enabled: true
";

const ACCESS: &str = "\
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: VRFAttachment
metadata:
  name: prod-access
spec:
  network:
    ipv4:
      subnet: 198.51.100.0/27
  destinations:
    matchLabels:
      zone: secure
  workerGroups:
    - compute
  connections:
    - name: ingress
      direction: inbound
      count: 2
";

fn json(dir: &Path, arguments: &[&str]) -> (Value, i32) {
    let (text, code) = stdout(moor(dir).args(arguments).args(["-o", "json"]));
    (serde_json::from_str(&text).expect(&text), code)
}

#[test]
fn a_new_network_is_shown_with_parts_nodes_addresses_and_platform_objects() {
    let dir = network();
    moor(dir.path())
        .args(["plan", "-f", "network"])
        .assert()
        .code(0)
        .stdout_eq(str![[r#"
revision none -> 1dc043bc87

   PART                                  NODES              FROM
+  host/l2.apps                          worker-1,worker-2  Layer2Attachment/apps
+  vlan/234                              worker-1,worker-2  Layer2Attachment/apps
+  vrf/secure                            worker-1,worker-2  Layer2Attachment/apps,VRFAttachment/prod-access
+  vrf/secure/aggregate/198.51.100.0/27  worker-1,worker-2  VRFAttachment/prod-access
+  vrf/secure/export/10.0.0.0/24         worker-1,worker-2  Layer2Attachment/apps
+  vrf/secure/export/198.51.100.0/27     worker-1,worker-2  VRFAttachment/prod-access
+  vrf/secure/export/198.51.100.1/32     worker-1,worker-2  VRFAttachment/prod-access
+  vrf/secure/export/198.51.100.2/32     worker-1,worker-2  VRFAttachment/prod-access
+  vrf/secure/import/192.0.2.0/24        worker-1,worker-2  Layer2Attachment/apps,VRFAttachment/prod-access

NODE      AGENT    HOST
worker-1  changes  changes
worker-2  changes  changes

   ADDRESS          FOR
+  10.0.0.2/32      layer2attachment/apps/ipv4/node/worker-1
+  10.0.0.3/32      layer2attachment/apps/ipv4/node/worker-2
+  198.51.100.1/32  vrfattachment/prod-access/ingress/ipv4/0
+  198.51.100.2/32  vrfattachment/prod-access/ingress/ipv4/1

   OBJECT            NAME                                FROM
+  BGPAdvertisement  metallb-system/prod-access-ingress  VRFAttachment/prod-access
+  IPAddressPool     metallb-system/prod-access-ingress  VRFAttachment/prod-access

"#]])
        .stderr_eq(str![[r#"
parts of the network: 9 new, 0 changed, 0 gone; 2 of 3 nodes and 2 objects of the platform change

"#]]);
}

#[test]
fn against_what_was_kept_only_the_change_is_shown_and_addresses_stay() {
    let dir = network();
    let keep = ["plan", "-f", "network", "--write", "state"];
    moor(dir.path()).args(keep).assert().code(0);
    moor(dir.path())
        .args(["plan", "-f", "network", "--from", "state"])
        .assert()
        .code(0)
        .stdout_eq("revision [..], as before\n")
        .stderr_eq("nothing changes on 3 nodes\n");
    put(
        dir.path(),
        "apps.yaml",
        &APPS.replace("mtu: 1500", "mtu: 9000"),
    );
    put(
        dir.path(),
        "access.yaml",
        &ACCESS.replace("count: 2", "count: 1"),
    );
    // A name before all others must move nobody.
    let early = "apiVersion: v1\nkind: Node\nmetadata:\n  name: a-new-one\n  labels:\n    \
                 network.t-caas.telekom.com/worker-group: compute\n";
    put(dir.path(), "more.yaml", early);
    moor(dir.path())
        .args(["plan", "-f", "network", "--from", "state"])
        .assert()
        .code(0)
        .stdout_eq(str![[r#"
revision 1dc043bc87 -> 549835ade7

   PART                               NODES                        FROM                       WHAT
~  host/l2.apps                       a-new-one,worker-1,worker-2  Layer2Attachment/apps      mtu 1500 -> 9000
~  vlan/234                           a-new-one,worker-1,worker-2  Layer2Attachment/apps      mtu 1500 -> 9000
-  vrf/secure/export/198.51.100.2/32  a-new-one,worker-1,worker-2  VRFAttachment/prod-access  -

NODE       AGENT    HOST
a-new-one  changes  changes
worker-1   changes  changes
worker-2   changes  changes

   ADDRESS          FOR
+  10.0.0.4/32      layer2attachment/apps/ipv4/node/a-new-one
-  198.51.100.2/32  vrfattachment/prod-access/ingress/ipv4/1

   OBJECT         NAME                                FROM
~  IPAddressPool  metallb-system/prod-access-ingress  VRFAttachment/prod-access

"#]])
        .stderr_eq(str![[r#"
parts of the network: 0 new, 2 changed, 1 gone; 3 of 4 nodes and 1 object of the platform change
no longer announced: 198.51.100.2/32 in secure

"#]]);
}

#[test]
fn objects_of_another_directory_are_a_prior_state_too() {
    let dir = network();
    fs::rename(dir.path().join("network"), dir.path().join("old")).unwrap();
    let copy = mooring_testkit::copy_tree(&dir.path().join("old"));
    fs::rename(copy.path(), dir.path().join("network")).unwrap();
    drop(copy);
    put(
        dir.path(),
        "apps.yaml",
        &APPS.replace("mtu: 1500", "mtu: 9000"),
    );
    let (plan, code) = json(dir.path(), &["plan", "-f", "network", "--from", "old"]);
    assert_eq!(code, 0);
    let paths: Vec<&str> = plan["added"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| part["path"].as_str().unwrap())
        .collect();
    assert_eq!(paths, ["host/l2.apps", "vlan/234"]);
    assert_eq!(plan["findings"], serde_json::json!([]));
}

#[test]
fn a_new_object_that_is_wrong_is_set_aside_with_file_and_line_and_the_rest_is_planned() {
    let dir = network();
    let second = APPS
        .replace("name: apps", "name: second")
        .replace("interfaceName: apps", "interfaceName: second");
    put(dir.path(), "second.yaml", &second);
    let (plan, code) = json(dir.path(), &["plan", "-f", "network"]);
    assert_eq!(code, 1);
    let finding = &plan["findings"][0];
    assert_eq!(finding["object"]["name"], "second", "{finding}");
    assert_eq!(
        finding["location"]["file"], "network/second.yaml",
        "{finding}"
    );
    assert!(
        finding["message"]
            .as_str()
            .unwrap()
            .contains("Layer2Attachment/apps"),
        "{finding}"
    );
    let (text, _) = stdout(moor(dir.path()).args(["plan", "-f", "network"]));
    assert!(
        text.contains("vlan/234") && !text.contains("second"),
        "{text}"
    );
}

#[test]
fn what_ran_before_and_is_wrong_now_keeps_its_form_and_its_addresses() {
    let dir = network();
    let keep = ["plan", "-f", "network", "--write", "state"];
    moor(dir.path()).args(keep).assert().code(0);
    // Nothing is selected any more.
    put(
        dir.path(),
        "access.yaml",
        &ACCESS.replace("zone: secure", "zone: none"),
    );
    let arguments = [
        "plan", "-f", "network", "--from", "state", "--write", "state",
    ];
    let (plan, code) = json(dir.path(), &arguments);
    assert_eq!(code, 1);
    let codes: Vec<&str> = plan["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| f["code"].as_str().unwrap())
        .collect();
    assert!(
        codes.contains(&"NoDestinationMatched") && codes.contains(&"Frozen"),
        "{codes:?}"
    );
    assert_eq!(plan["added"], serde_json::json!([]));
    assert_eq!(plan["removed"], serde_json::json!([]));
    let kept = &plan["addresses"]["vrfattachment/prod-access/ingress/ipv4/1"];
    assert_eq!(
        *kept,
        serde_json::json!(["198.51.100.2/32", "198.51.100.2/32"])
    );
    // And again, from a state that was kept while it was wrong.
    let (again, _) = json(dir.path(), &arguments);
    assert_eq!(again["addresses"], plan["addresses"]);
    assert_eq!(again["removed"], serde_json::json!([]));
}

#[test]
fn each_result_can_be_shown_and_compared() {
    let dir = network();
    let show = |what: &str| {
        let (text, code) = stdout(moor(dir.path()).args(["plan", "-f", "network", "--show", what]));
        assert_eq!(code, 0, "{what}: {text}");
        text
    };
    assert!(show("low-level").contains("kind: VRFRouteConfiguration\n"));
    assert!(show("revision").contains("kind: NetworkConfigRevision\n"));
    assert!(show("platform").contains("kind: IPAddressPool\n"));
    assert!(show("statuses").contains("referenceCount: 2\n"));
    let node = show("node/worker-1");
    assert!(
        node.contains("kind: NodeNetworkConfig\n") && node.contains("kind: NodeNetplanConfig\n"),
        "{node}"
    );
    let keep = ["plan", "-f", "network", "--write", "state"];
    moor(dir.path()).args(keep).assert().code(0);
    put(
        dir.path(),
        "apps.yaml",
        &APPS.replace("mtu: 1500", "mtu: 9000"),
    );
    let diff = [
        "plan",
        "-f",
        "network",
        "--from",
        "state",
        "--show",
        "node/worker-1",
        "--diff",
    ];
    let (text, _) = stdout(moor(dir.path()).args(diff));
    assert!(text.starts_with("--- node/worker-1\n"), "{text}");
    assert!(
        text.contains("-      mtu: 1500\n+      mtu: 9000\n"),
        "{text}"
    );
    for unknown in ["node/nobody", "nonsense"] {
        moor(dir.path())
            .args(["plan", "-f", "network", "--show", unknown])
            .assert()
            .code(2)
            .stdout_eq("");
    }
}

#[test]
fn low_level_objects_of_a_plan_are_the_same_revision() {
    let dir = network();
    fs::remove_file(dir.path().join("network/access.yaml")).unwrap();
    let (low, _) = stdout(moor(dir.path()).args(["plan", "-f", "network", "--show", "low-level"]));
    let nodes = fs::read_to_string(dir.path().join("network/nodes.yaml")).unwrap();
    fs::create_dir(dir.path().join("low")).unwrap();
    fs::write(
        dir.path().join("low/all.yaml"),
        format!("{nodes}---\n{low}"),
    )
    .unwrap();
    let (plan, code) = json(dir.path(), &["plan", "-f", "network", "--from", "low"]);
    assert_eq!(code, 0);
    assert_eq!(plan["digest"][0], plan["digest"][1], "{plan}");
    assert_eq!(plan["agents"], serde_json::json!([]));
}

#[test]
fn a_file_that_cannot_be_read_ends_a_plan_before_it_begins() {
    let dir = network();
    put(dir.path(), "broken.yaml", "a: [\n");
    let state = dir.path().join("state");
    moor(dir.path())
        .args(["plan", "-f", "network", "--write", "state"])
        .assert()
        .code(1)
        .stdout_eq("");
    assert!(!state.exists(), "nothing is kept of half a network");
    fs::create_dir(&state).unwrap();
    fs::write(state.join("moor-plan.json"), "{").unwrap();
    fs::remove_file(dir.path().join("network/broken.yaml")).unwrap();
    moor(dir.path())
        .args(["plan", "-f", "network", "--from", "state"])
        .assert()
        .code(2)
        .stdout_eq("");
    moor(dir.path()).arg("plan").assert().code(2).stdout_eq("");
}

#[test]
fn a_vlan_of_a_node_is_explained_by_its_intent_with_file_and_line() {
    let dir = network();
    moor(dir.path())
        .args(["explain", "node/worker-1", "vlan", "234", "-f", "network"])
        .assert()
        .code(0)
        .stderr_eq("")
        .stdout_eq(str![[r#"
vlan/234 on worker-1,worker-2
  is    gateways 10.0.0.1/24; mac 02:4d:52:00:27:fa; mtu 1500; suppress true; vlan 234; vni 10234; vrf secure
  from  Layer2Attachment/apps spec.network: the segment on its nodes (network/apps.yaml:6)

"#]]);
    moor(dir.path())
        .args(["explain", "node/storage-1", "vlan", "234", "-f", "network"])
        .assert()
        .code(0)
        .stdout_eq("")
        .stderr_eq("no object puts vlan/234 on node storage-1\n");
}

#[test]
fn a_prefix_and_an_object_are_explained_by_everybody_who_has_a_part_in_them() {
    let dir = network();
    moor(dir.path())
        .args(["explain", "prefix", "192.0.2.7", "-f", "network"])
        .assert()
        .code(0)
        .stderr_eq("")
        .stdout_eq(str![[r#"
host/l2.apps on worker-1,worker-2
  is    addresses 10.0.0.0/24 layer2attachment/apps/ipv4; mtu 1500; name l2.apps; routes 192.0.2.0/24 10.0.0.1; vlan 234
  from  Layer2Attachment/apps spec.interfaceName: the device on the host (network/apps.yaml:11)

vrf/secure/import/192.0.2.0/24 on worker-1,worker-2
  is    inner cluster; rule prefix 192.0.2.0/24 permit true; side import; vrf secure
  from  Layer2Attachment/apps spec.destinations: prefixes of matched Destinations are imported (network/apps.yaml:13)
  from  VRFAttachment/prod-access spec.destinations: prefixes of matched Destinations are imported (network/access.yaml:9)

"#]]);
    let (object, code) = json(
        dir.path(),
        &["explain", "vrfattachment/prod-access", "-f", "network"],
    );
    assert_eq!(code, 0);
    let kinds: Vec<&str> = object["platform"]
        .as_array()
        .unwrap()
        .iter()
        .map(|o| o["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["IPAddressPool", "BGPAdvertisement"]);
    let origin = &object["parts"][0]["origins"][0];
    assert_eq!(
        origin["location"]["file"], "network/access.yaml",
        "{origin}"
    );
}

#[test]
fn a_question_about_what_is_not_there_is_a_usage_error_that_lists_what_is() {
    let dir = network();
    for (question, help) in [
        (&["node/nobody"][..], "storage-1, worker-1, worker-2"),
        (&["layer2attachment/nobody"], "Layer2Attachment/apps"),
        (&["prefix", "nonsense"], "KIND/NAME"),
        (&["prefix"], "KIND/NAME"),
        (&["Frozen"], "KIND/NAME"),
        (&["layer2attachment/apps", "vlan"], "KIND/NAME"),
    ] {
        let run = moor(dir.path())
            .arg("explain")
            .args(question)
            .args(["-f", "network"]);
        let run = run.assert().code(2).stdout_eq("");
        let said = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
        assert!(said.contains(help), "{question:?}: {said}");
    }
    // Without -f it is asked for.
    let run = moor(dir.path())
        .args(["explain", "node/worker-1", "vlan", "234"])
        .assert()
        .code(2);
    let said = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
    assert!(said.contains("add -f PATH"), "{said}");
}

#[test]
fn an_object_that_is_set_aside_is_explained_by_its_finding() {
    let dir = network();
    put(
        dir.path(),
        "apps.yaml",
        &APPS.replace("zone: secure", "zone: none"),
    );
    let run = moor(dir.path()).args(["explain", "layer2attachment/apps", "-f", "network"]);
    let run = run.assert().code(1).stdout_eq("");
    let said = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
    assert!(
        said.contains("error[NoDestinationMatched]") && said.contains("network/apps.yaml:"),
        "{said}"
    );
}

#[test]
fn a_packet_is_followed_through_the_vrfs_of_a_node() {
    let dir = network();
    let trace = |arguments: &[&str]| {
        moor(dir.path())
            .arg("trace")
            .args(arguments)
            .args(["-f", "network"])
    };
    trace(&["--node", "worker-1", "10.0.0.5", "192.0.2.9"])
        .assert()
        .code(0)
        .stderr_eq("")
        .stdout_eq(str![[r#"
node  worker-1
from  10.0.0.5
to    192.0.2.9

1. secure  the gateway of VLAN 234 is there: no route of its own

reached: over the fabric in VRF secure, which knows the way back to 10.0.0.5

"#]]);
    trace(&["--node", "worker-1", "198.51.100.9", "198.51.100.12"])
        .assert()
        .code(0);
    // The zone is reached from the host, but nobody told it of this source.
    let run = trace(&["--node", "worker-1", "10.9.9.9", "192.0.2.9", "-o", "json"]);
    let (text, code) = stdout(run);
    let story: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (story["reached"].as_bool(), code),
        (Some(false), 1),
        "{text}"
    );
    assert_eq!(story["steps"][0]["vrf"], "cluster", "{text}");
    assert_eq!(story["end"]["fabric"]["vrf"], "secure", "{text}");
    for wrong in [
        &["--node", "nobody", "10.0.0.5", "192.0.2.9"][..],
        &["--vrf", "secure", "192.0.2.9", "10.0.0.5", "network"],
        &["--node", "worker-1", "10.0.0.5", "2001:db8::1"],
        &["--node", "worker-1", "amf", "192.0.2.9"],
        &["10.0.0.5", "192.0.2.9", "network"],
    ] {
        trace(wrong).assert().code(2).stdout_eq("");
    }
}

#[test]
fn a_packet_out_of_the_fabric_is_followed_both_ways() {
    let dir = network();
    let trace = |arguments: &[&str]| {
        moor(dir.path())
            .args(["trace", "--node", "worker-1", "-f", "network"])
            .args(arguments)
    };
    trace(&["--vrf", "secure", "192.0.2.9", "10.0.0.5"])
        .assert()
        .code(0)
        .stderr_eq("")
        .stdout_eq(str![[r#"
node  worker-1
from  192.0.2.9
to    10.0.0.5

1. secure  it comes from the fabric: route 10.0.0.0/24

the answer

1. secure  the gateway of VLAN 234 is there: no route of its own

reached: in the segment of VLAN 234; the answer: over the fabric in VRF secure, which knows the way back to 10.0.0.5

"#]]);
    // Somebody asks whom the zone does not have: the answer would go another way, or none.
    let (text, code) = stdout(trace(&[
        "--vrf",
        "secure",
        "203.0.113.9",
        "198.51.100.1",
        "-o",
        "json",
    ]));
    let story: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (story["reached"].as_bool(), code),
        (Some(false), 1),
        "{text}"
    );
    assert_eq!(story["vrf"], "secure", "{text}");
    // Nobody here has that address.
    let (text, code) = stdout(trace(&["--vrf", "secure", "192.0.2.9", "172.31.0.1"]));
    assert!(
        text.contains("not reached: nobody on this node has 172.31.0.1"),
        "{text}"
    );
    assert_eq!(code, 1);
    let run = trace(&["--vrf", "blue", "192.0.2.9", "10.0.0.5"])
        .assert()
        .code(2);
    let said = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
    assert!(said.contains("it has secure"), "{said}");
}
