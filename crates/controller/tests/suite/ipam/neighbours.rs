//! Beside others: their definitions, their controllers, objects that we cannot read.

use serde_json::{Value, json};

use super::{GROUP, claim, claim_path, install_backend, site};
use crate::harness::{Cluster, Controller, await_condition, condition, until};

const READY: (&str, &str) = ("True", "Ready");

/// A server with the published definitions of the IPAM kinds, and ours for what is ours.
fn foreign(dir: &std::path::Path, cluster: &Cluster) {
    let oracles = mooring_testkit::oracles("published definitions")
        .unwrap()
        .join("crds");
    let ours = mooring_testkit::workspace_root().join("deploy/crds");
    let copy = |from: &std::path::Path, name: &str| {
        std::fs::copy(from.join(name), dir.join(name)).unwrap();
    };
    for name in ["ipclaims", "ipprefixes", "networkinstances"] {
        copy(&oracles, &format!("ipam.resource.nephio.org_{name}.yaml"));
    }
    for name in ["vlanclaims", "vlanindices"] {
        copy(&oracles, &format!("vlan.resource.nephio.org_{name}.yaml"));
    }
    for name in ["ipleases", "prefixledgers"] {
        copy(&ours, &format!("mooring.dev_{name}.yaml"));
    }
    cluster.install(dir);
}

/// What `kubectl apply` without validation leaves where a definition lacks a field: the field is gone, the memory stays.
fn pool(ns: &str, name: &str, prefix: &str, annotations: Value) -> Value {
    let mut object = json!({
        "apiVersion": "ipam.resource.nephio.org/v1alpha1", "kind": "IPPrefix",
        "metadata": { "name": name, "namespace": ns },
        "spec": { "kind": "network", "prefix": prefix, "ranges": [prefix.replace("0/24", "20")],
            "networkInstance": { "name": ns, "namespace": ns } },
    });
    let text = object.to_string();
    object["metadata"]["annotations"] = annotations;
    object["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] =
        json!(text);
    object
}

#[test]
fn on_published_definitions_dropped_ranges_give_nothing_and_their_twin_does() {
    if mooring_testkit::oracles("published definitions").is_none() {
        return;
    }
    let Some(cluster) = Cluster::bare() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    foreign(dir.path(), &cluster);
    let _controller = Controller::start(&cluster, &["ipam"], &[]);
    let prefixes = |ns: &str| format!("{GROUP}/namespaces/{ns}/ipprefixes");
    for (ns, prefix, twin) in [
        ("dropped", "10.1.0.0/24", json!({})),
        (
            "twin",
            "10.2.0.0/24",
            json!({ "mooring.dev/ranges": "10.2.0.40-10.2.0.49" }),
        ),
    ] {
        site(&cluster, ns, &[]);
        let made = cluster.create(&prefixes(ns), &pool(ns, "n3", prefix, twin));
        assert!(
            made["spec"].get("ranges").is_none(),
            "the server drops it: {made}"
        );
        let mut wanted = claim(ns, "upf");
        wanted["spec"]["kind"] = json!("network");
        cluster.create(&format!("{GROUP}/namespaces/{ns}/ipclaims"), &wanted);
    }
    let path = format!("{}/n3", prefixes("dropped"));
    await_condition(&cluster, &path, "Ready", ("False", "FieldDropped"));
    await_condition(
        &cluster,
        &claim_path("dropped", "upf"),
        "Ready",
        ("False", "NoMatchingPrefix"),
    );
    let ready = await_condition(&cluster, &claim_path("twin", "upf"), "Ready", READY);
    assert_eq!(ready["status"]["prefix"], "10.2.0.40/24");
    until("an Event names the twin", || {
        let events = cluster.events("dropped", "n3");
        let told = events.iter().any(|e| e.contains("mooring.dev/ranges"));
        told.then_some(()).ok_or(format!("{events:?}"))
    });
    until("an Event says which fields are missing", || {
        let events = cluster.events("twin", "n3");
        let told = events
            .iter()
            .any(|e| e.starts_with("FieldsMissing: ") && e.contains("spec.ranges"));
        told.then_some(()).ok_or(format!("{events:?}"))
    });
    // What we cannot read (their pattern has no end) is said on it, and stops nobody else.
    let mut broken = claim("twin", "broken");
    broken["spec"]["kind"] = json!("network");
    broken["spec"]["prefix"] = json!("10.2.0.30/24x");
    cluster.create(&format!("{GROUP}/namespaces/twin/ipclaims"), &broken);
    await_condition(
        &cluster,
        &claim_path("twin", "broken"),
        "Ready",
        ("False", "InvalidField"),
    );
    let mut next = claim("twin", "next");
    next["spec"]["kind"] = json!("network");
    cluster.create(&format!("{GROUP}/namespaces/twin/ipclaims"), &next);
    await_condition(&cluster, &claim_path("twin", "next"), "Ready", READY);
    cluster.merge(
        &claim_path("twin", "broken"),
        &json!({ "spec": { "prefix": null } }),
    );
    await_condition(&cluster, &claim_path("twin", "broken"), "Ready", READY);
}

/// Waits until an object's Event says that it is left alone.
#[track_caller]
fn left_alone(cluster: &Cluster, ns: &str, name: &str) {
    until("an Event says that it is left alone", || {
        let events = cluster.events(ns, name);
        let told = events
            .iter()
            .any(|e| e.starts_with("NotManaged: ") && e.contains("resource backend"));
        told.then_some(()).ok_or(format!("{events:?}"))
    });
}

#[test]
fn where_nephio_s_backend_runs_only_labelled_objects_are_ours() {
    let Some(cluster) = Cluster::own() else {
        return;
    };
    install_backend(&cluster);
    let ns = "beside";
    site(&cluster, ns, &[("n3", "10.9.0.0/24", json!({}))]);
    let label = json!({ "metadata": { "labels": { "mooring.dev/managed": "true" } } });
    for path in ["networkinstances/beside", "ipprefixes/n3"] {
        cluster.merge(&format!("{GROUP}/namespaces/{ns}/{path}"), &label);
    }
    let controller = Controller::start(&cluster, &["ipam"], &[]);
    let claims = format!("{GROUP}/namespaces/{ns}/ipclaims");
    cluster.create(&claims, &claim(ns, "theirs"));
    let mut ours = claim(ns, "ours");
    ours["metadata"]["labels"] = label["metadata"]["labels"].clone();
    cluster.create(&claims, &ours);
    await_condition(&cluster, &claim_path(ns, "ours"), "Ready", READY);
    left_alone(&cluster, ns, "theirs");
    let theirs = cluster.get(&claim_path(ns, "theirs")).unwrap();
    assert_eq!(condition(&theirs, "Ready"), None);
    // Handed over by a label.
    cluster.merge(&claim_path(ns, "theirs"), &label);
    await_condition(&cluster, &claim_path(ns, "theirs"), "Ready", READY);
    assert!(controller.is_running());
}

#[test]
fn the_older_group_is_served_where_it_is_installed_and_what_is_made_follows_the_claim() {
    let Some(cluster) = Cluster::own() else {
        return;
    };
    let root = mooring_testkit::workspace_root();
    cluster.install(&root.join("deploy/chart/mooring/files/alias-crds"));
    let ns = "older";
    site(&cluster, ns, &[("n3", "10.9.0.0/24", json!({}))]);
    let controller = Controller::start(&cluster, &["ipam"], &[]);
    let old = format!("/apis/ipam.nephio.org/v1alpha1/namespaces/{ns}");
    let mut made = claim(ns, "upf");
    made["apiVersion"] = json!("ipam.nephio.org/v1alpha1");
    cluster.create(&format!("{old}/ipclaims"), &made);
    let ready = await_condition(&cluster, &format!("{old}/ipclaims/upf"), "Ready", READY);
    assert_eq!(ready["status"]["prefix"], "10.9.0.2/24");
    let allocation = cluster.get(&format!("{old}/ipallocations/upf")).unwrap();
    assert_eq!(allocation["spec"]["prefix"], "10.9.0.2/32");
    let newer = format!("{GROUP}/namespaces/{ns}/ipallocations/upf");
    assert_eq!(cluster.get(&newer), None);
    // It comes after us: from then on it has what is not labelled, and what was ours keeps its address.
    install_backend(&cluster);
    until("the other one is seen", || {
        let log = controller.log();
        let seen = log.contains("another controller has come");
        seen.then_some(()).ok_or(log)
    });
    cluster.create(
        &format!("{GROUP}/namespaces/{ns}/ipclaims"),
        &claim(ns, "late"),
    );
    left_alone(&cluster, ns, "late");
    let kept = cluster.get(&format!("{old}/ipclaims/upf")).unwrap();
    assert_eq!(kept["status"]["prefix"], "10.9.0.2/24");
}
