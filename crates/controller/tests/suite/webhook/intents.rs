//! Intents at admission: the cases of the conflict engine on a real API server, with the rules that are installed.
//!
//! One server and one controller for all of it. The kinds come after the controller, and two objects that fight come while
//! it is down.

use mooring_testkit::{free_port, workspace_root};
use serde::Deserialize;
use serde_json::{Value, json};

use super::configuration;
use crate::harness::{Cluster, Controller, until};

const GROUP: &str = "/apis/network.t-caas.telekom.com/v1alpha1";

/// One exclusive key; the table is that of the room that decides.
#[derive(Deserialize)]
struct Case {
    rule: String,
    #[serde(default)]
    has: Vec<Value>,
    #[serde(default)]
    admits: Value,
    #[serde(default)]
    refuses: Value,
    #[serde(default)]
    says: String,
}

fn cases() -> Vec<Case> {
    let file = workspace_root().join("crates/intent/src/admit/cases.yaml");
    let text = std::fs::read_to_string(file).unwrap();
    serde_saphyr::from_multiple(&text).unwrap()
}

/// The rules of the configuration that `deploy/` installs.
fn installed() -> Value {
    let file = workspace_root().join("deploy/management/mooring.yaml");
    let text = std::fs::read_to_string(file).unwrap();
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    let hook = objects
        .iter()
        .find(|o| o["kind"] == "ValidatingWebhookConfiguration");
    hook.unwrap()["webhooks"][0]["rules"].clone()
}

/// The kinds that are compiled. The others are large, and nobody here has objects of them.
fn install(cluster: &Cluster) {
    let compiled = |file: &str| {
        let given = ["networkconfigrevisions", "nodenet"];
        file.starts_with("network.t-caas.telekom.com_") && !given.iter().any(|g| file.contains(g))
    };
    let dir = workspace_root().join("deploy/crds");
    cluster.plane().install_crds_where(&dir, compiled);
}

fn list_of(object: &Value) -> String {
    let plural = format!("{}s", object["kind"].as_str().unwrap().to_lowercase());
    let group = match object["apiVersion"].as_str() {
        Some("v1") => "/api/v1".to_owned(),
        Some(group) => format!("/apis/{group}"),
        None => GROUP.to_owned(),
    };
    format!("{group}/{plural}")
}

/// Creates it; the refusal otherwise.
fn create(cluster: &Cluster, object: &Value, query: &str) -> Result<Value, String> {
    let mut object = object.clone();
    if object["apiVersion"].is_null() {
        object["apiVersion"] = json!(GROUP.trim_start_matches("/apis/"));
    }
    let path = list_of(&object) + query;
    let made = cluster.request("POST", &path, Some(&object));
    made.map_err(|error| error.to_string())
}

/// Changes a Layer2Attachment; the refusal otherwise.
fn edit(cluster: &Cluster, name: &str, patch: &Value) -> Result<Value, String> {
    let path = format!("{GROUP}/layer2attachments/{name}");
    let made = cluster.request("PATCH", &path, Some(patch));
    made.map_err(|error| error.to_string())
}

/// Waits until it is refused with `Conflict` and these words. A watch may be a moment behind; then it is admitted, dry.
#[track_caller]
fn refused(cluster: &Cluster, controller: &Controller, rule: &str, object: &Value, says: &str) {
    until(rule, || match create(cluster, object, "?dryRun=All") {
        Err(said) if said.contains(&format!("Conflict: {says}")) => Ok(()),
        other => Err(format!("{other:?}\n{}", controller.log())),
    });
}

#[test]
fn an_intent_is_refused_exactly_where_it_would_be_in_conflict_with_what_is_there() {
    let Some(cluster) = Cluster::own() else {
        return;
    };
    let port = free_port().unwrap();
    let mut hook = configuration(port);
    hook["webhooks"][0]["rules"] = installed();
    cluster.create(
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
        &hook,
    );
    let listen = format!("127.0.0.1:{port}");
    let args = ["--webhook-listen", &listen, "--webhook-names", "127.0.0.1"];
    let mut controller = Controller::start(&cluster, &["webhook"], &args);
    install(&cluster);

    every_exclusive_key(&cluster, &controller);
    what_is_no_conflict_is_a_warning(&cluster);
    controller.kill();
    while_it_is_down(&cluster);
    controller.restart();
    who_was_in_conflict_before(&cluster, &controller);
    who_goes(&cluster, &controller);
}

fn every_exclusive_key(cluster: &Cluster, controller: &Controller) {
    let cases = cases();
    for object in cases.iter().flat_map(|case| &case.has) {
        create(cluster, object, "").unwrap_or_else(|said| panic!("{object}: {said}"));
    }
    let rules: Vec<&Case> = cases.iter().filter(|case| !case.says.is_empty()).collect();
    assert!(rules.len() > 15);
    for case in rules {
        refused(cluster, controller, &case.rule, &case.refuses, &case.says);
        create(cluster, &case.admits, "").unwrap_or_else(|said| panic!("{}: {said}", case.rule));
    }
    let labels = [("kind", "Layer2Attachment"), ("outcome", "Conflict")];
    let counted = controller.metric("mooring_findings_total", &labels);
    assert!(counted.is_some_and(|n| n >= 1.0), "{counted:?}");
}

fn what_is_no_conflict_is_a_warning(cluster: &Cluster) {
    let early = "{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: PodNetwork, metadata: {name: early}, \
                 spec: {network: {ipv4: {subnet: 10.246.0.0/24}}, destinations: {matchLabels: {zone: later}}}}";
    let said = cluster.try_apply(early);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    for word in ["NoDestinationMatched", "AllNodesSelected"] {
        let warned = format!("Warning: {word}: ");
        assert!(said.stderr.contains(&warned), "{}", said.stderr);
    }
}

/// What only the webhook sees is stored, what CEL sees is not.
fn while_it_is_down(cluster: &Cluster) {
    let fights = |group: &str, name: &str, vlan: u16, vni: u32| {
        json!({
            "kind": "Layer2Attachment", "metadata": { "name": name },
            "spec": { "workerGroups": [group], "network": { "vlanID": vlan, "vni": vni }, "interfaceName": name },
        })
    };
    create(cluster, &fights("a", "late", 10, 1013), "").unwrap();
    let said = create(cluster, &fights("a", "wrong", 10, 0), "").unwrap_err();
    assert!(said.contains("spec.network.vni"), "{said}");
}

fn who_was_in_conflict_before(cluster: &Cluster, controller: &Controller) {
    // The webhook looks again: one more that fights is refused, and a third is not.
    let case = &cases()[1];
    refused(cluster, controller, &case.rule, &case.refuses, &case.says);
    let third = json!({
        "kind": "Layer2Attachment", "metadata": { "name": "third" },
        "spec": { "workerGroups": ["a"], "network": { "vlanID": 19, "vni": 1019 }, "interfaceName": "third" },
    });
    create(cluster, &third, "").unwrap();
    // Both who fight may change.
    edit(cluster, "late", &json!({ "spec": { "mtu": 9000 } })).unwrap();
    edit(cluster, "vlan-has", &json!({ "spec": { "mtu": 9000 } })).unwrap();
    // But not onto the nodes of one more, nor may the one there come over.
    let wider = json!({ "spec": { "workerGroups": ["a", "b"] } });
    let said = edit(cluster, "late", &wider).unwrap_err();
    let one_more = "Conflict: VLAN 10 belongs to Layer2Attachment/vlan-b";
    assert!(said.contains(one_more), "{said}");
    assert!(!said.contains("Layer2Attachment/vlan-has"), "{said}");
    let said = edit(cluster, "vlan-b", &wider).unwrap_err();
    assert!(said.contains("Conflict: VLAN 10 belongs to"), "{said}");
}

fn who_goes(cluster: &Cluster, controller: &Controller) {
    // One that fights and waits for somebody: a mark, its removal and the deletion are free.
    let held = json!({ "metadata": { "finalizers": ["example.com/hold"] } });
    edit(cluster, "late", &held).unwrap();
    cluster.delete(&format!("{GROUP}/layer2attachments/late"));
    let leaving = edit(
        cluster,
        "late",
        &json!({ "spec": { "workerGroups": ["a", "b"] } }),
    );
    assert!(leaving.is_ok(), "{leaving:?}");
    edit(
        cluster,
        "late",
        &json!({ "metadata": { "finalizers": null } }),
    )
    .unwrap();
    cluster.delete(&format!("{GROUP}/layer2attachments/vlan-has"));
    // What it had is free.
    let case = &cases()[1];
    until("the VLAN is free", || {
        create(cluster, &case.refuses, "").map_err(|said| format!("{said}\n{}", controller.log()))
    });
}
