//! `moor adopt`: intents for low-level objects, and the proof that they are the same network.

use std::fs;

use mooring_testkit::oracles;
use serde_json::Value;
use snapbox::str;

use crate::plan::{network, put};
use crate::{fresh, moor, stdout};

const LOW: &str = "\
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Layer2NetworkConfiguration
metadata:
  name: apps
spec:
  id: 234
  mtu: 1500
  vni: 10234
  anycastGateways:
    - 10.0.0.1/24
  anycastMac: 02:4d:52:00:27:fa
  neighSuppression: true
  vrf: secure
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: VRFRouteConfiguration
metadata:
  name: secure
spec:
  vrf: secure
  vni: 10100
  routeTarget: 64500:10100
  seq: 65000
  import:
    - cidr: 192.0.2.0/24
      action: permit
    - cidr: 198.51.100.0/24
      ge: 28
      le: 30
      action: permit
  export:
    - cidr: 10.0.0.0/24
      action: permit
";

#[test]
fn low_level_objects_become_intents_and_what_intents_cannot_say_stays() {
    let dir = network();
    for name in ["zones.yaml", "apps.yaml", "access.yaml"] {
        fs::remove_file(dir.path().join("network").join(name)).unwrap();
    }
    put(dir.path(), "low.yaml", LOW);
    moor(dir.path())
        .args(["adopt", "-f", "network"])
        .assert()
        .code(0)
        .stdout_eq(str![[r#"
OBJECT                           WHAT
Destination/secure               new intent
Layer2Attachment/apps            new intent
Layer2NetworkConfiguration/apps  goes
VRFRouteConfiguration/secure     stays, with fewer lines

"#]])
        .stderr_eq(str![[r#"
info[LowLevelObject]: network/low.yaml:19: it stays low-level: no intent says 1 of import
1 remark
2 intents and 1 object that stay low-level are the same revision dfe8897a85: no node's agent is told anything else
on the hosts of storage-1, worker-1, worker-2 devices get the names of their attachments

"#]]);
    // What is printed is the same revision.
    let (adopted, _) = stdout(moor(dir.path()).args(["adopt", "-f", "network", "-o", "yaml"]));
    let nodes = fs::read_to_string(dir.path().join("network/nodes.yaml")).unwrap();
    fs::write(
        dir.path().join("adopted.yaml"),
        format!("{nodes}---\n{adopted}"),
    )
    .unwrap();
    let plan = [
        "plan",
        "-f",
        "adopted.yaml",
        "--from",
        "network",
        "-o",
        "json",
    ];
    let (text, code) = stdout(moor(dir.path()).args(plan));
    assert_eq!(code, 0, "{text}");
    let plan: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(plan["digest"][0], plan["digest"][1]);
    assert_eq!(plan["agents"], serde_json::json!([]));
}

#[test]
fn nothing_is_adopted_from_a_network_that_is_wrong() {
    let dir = network();
    put(
        dir.path(),
        "low.yaml",
        &LOW.replace("vni: 10234", "vni: 999"),
    );
    let run = moor(dir.path()).args(["adopt", "-f", "network"]).assert();
    let run = run.code(1).stdout_eq("");
    let said = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
    assert!(said.contains("network/low.yaml:"), "{said}");
    moor(fresh().path())
        .arg("adopt")
        .assert()
        .code(2)
        .stdout_eq("");
}

#[test]
fn the_published_network_is_adopted_with_proof() {
    let Some(oracles) = oracles("moor adopt of the published network") else {
        return;
    };
    let dir = fresh();
    let file = oracles.join("schiff/network-operator-configs.yaml");
    let run = moor(dir.path())
        .args(["adopt", "-o", "json", "-f"])
        .arg(file);
    let (text, code) = stdout(run);
    assert_eq!(code, 0, "{text}");
    let adopted: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(adopted["equal"], true);
    assert!(!adopted["intents"].as_array().unwrap().is_empty());
    assert!(!adopted["residue"].as_array().unwrap().is_empty());
}
