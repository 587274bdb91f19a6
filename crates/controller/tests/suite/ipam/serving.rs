//! What a person sees: claims become Ready, pools fill, refusals say why and are woken.

use serde_json::json;

use super::{GROUP, claim, claim_path, leases, site};
use crate::harness::{Cluster, Controller, await_condition, until};

const READY: (&str, &str) = ("True", "Ready");

fn set() -> Option<&'static Cluster> {
    Controller::shared(&["ipam"])?;
    Cluster::shared()
}

#[test]
fn a_claim_becomes_ready_and_its_columns_and_those_of_its_pool_say_so() {
    let Some(cluster) = set() else {
        return;
    };
    let ns = "columns";
    site(
        cluster,
        ns,
        &[(
            "n3",
            "10.1.0.0/24",
            json!({ "ranges": ["10.1.0.20-10.1.0.29"] }),
        )],
    );
    cluster.apply(&claim(ns, "upf").to_string());
    let ready = await_condition(cluster, &claim_path(ns, "upf"), "Ready", READY);
    assert_eq!(ready["status"]["prefix"], "10.1.0.20/24");
    assert_eq!(ready["status"]["conditions"][0]["observedGeneration"], 1);
    let table = cluster.kubectl(&["get", "ipclaims", "-n", ns]);
    let (head, row) = table.ok().split_once('\n').unwrap();
    let words =
        |line: &str| -> Vec<String> { line.split_whitespace().map(str::to_owned).collect() };
    let expected = [
        "NAME", "ADDRESS", "GATEWAY", "INSTANCE", "READY", "REASON", "AGE",
    ];
    assert_eq!(words(head), expected);
    assert_eq!(
        words(row)[..6],
        ["upf", "10.1.0.20/24", "10.1.0.1", ns, "True", "Ready"]
    );
    let allocation = format!("{GROUP}/namespaces/{ns}/ipallocations/upf");
    let allocation = cluster.get(&allocation).unwrap();
    assert_eq!(allocation["spec"]["prefix"], "10.1.0.20/32");
    let owner = &allocation["metadata"]["ownerReferences"][0];
    assert_eq!(owner["uid"], ready["metadata"]["uid"]);
    until("the pool's columns", || {
        let table = cluster.kubectl(&["get", "ipprefixes", "-n", ns]);
        let row = words(table.ok().lines().nth(1).unwrap());
        let expected = [
            "n3",
            "10.1.0.0/24",
            ns,
            "10",
            "1",
            "0",
            "9",
            "True",
            "Ready",
        ];
        (row.get(..9).is_some_and(|row| row == expected))
            .then_some(())
            .ok_or_else(|| table.stdout.clone())
    });
}

#[test]
fn a_claim_that_finds_the_pool_full_says_so_and_is_woken_by_a_release_and_by_a_wider_pool() {
    let Some(cluster) = set() else {
        return;
    };
    let ns = "woken";
    site(
        cluster,
        ns,
        &[("n3", "10.2.0.0/24", json!({ "ranges": ["10.2.0.20"] }))],
    );
    let claims = format!("{GROUP}/namespaces/{ns}/ipclaims");
    cluster.create(&claims, &claim(ns, "first"));
    await_condition(cluster, &claim_path(ns, "first"), "Ready", READY);
    cluster.create(&claims, &claim(ns, "second"));
    let exhausted = ("False", "PoolExhausted");
    let waits = await_condition(cluster, &claim_path(ns, "second"), "Ready", exhausted);
    assert!(waits["status"].get("prefix").is_none(), "{waits}");
    until("an Event says what to do", || {
        let events = cluster.events(ns, "second");
        let told = events.iter().any(|e| e.starts_with("PoolExhausted: "));
        told.then_some(()).ok_or(format!("{events:?}"))
    });
    cluster.delete(&claim_path(ns, "first"));
    let ready = await_condition(cluster, &claim_path(ns, "second"), "Ready", READY);
    assert_eq!(ready["status"]["prefix"], "10.2.0.20/24");
    cluster.create(&claims, &claim(ns, "third"));
    await_condition(cluster, &claim_path(ns, "third"), "Ready", exhausted);
    let pool = format!("{GROUP}/namespaces/{ns}/ipprefixes/n3");
    cluster.merge(
        &pool,
        &json!({ "spec": { "ranges": ["10.2.0.20-10.2.0.21"] } }),
    );
    let ready = await_condition(cluster, &claim_path(ns, "third"), "Ready", READY);
    assert_eq!(ready["status"]["prefix"], "10.2.0.21/24");
    let still = cluster.get(&claim_path(ns, "second")).unwrap();
    assert_eq!(
        still["status"]["prefix"], "10.2.0.20/24",
        "the change moves nobody"
    );
}

#[test]
fn a_deleted_claim_frees_its_address_after_its_rest_and_the_same_name_gets_it_back_at_once() {
    let Some(cluster) = set() else {
        return;
    };
    let ns = "resting";
    let spec = json!({ "ranges": ["10.3.0.20-10.3.0.21"], "coolDown": "1h" });
    site(cluster, ns, &[("n3", "10.3.0.0/24", spec)]);
    let claims = format!("{GROUP}/namespaces/{ns}/ipclaims");
    cluster.create(&claims, &claim(ns, "a"));
    let before = await_condition(cluster, &claim_path(ns, "a"), "Ready", READY);
    cluster.delete(&claim_path(ns, "a"));
    until("the lease rests", || {
        let leases = leases(cluster, ns);
        let rests = leases.iter().any(|l| l["spec"]["state"] == "cooling");
        rests.then_some(()).ok_or(format!("{leases:?}"))
    });
    cluster.create(&claims, &claim(ns, "b"));
    let other = await_condition(cluster, &claim_path(ns, "b"), "Ready", READY);
    assert_ne!(other["status"]["prefix"], before["status"]["prefix"]);
    cluster.create(&claims, &claim(ns, "a"));
    let again = await_condition(cluster, &claim_path(ns, "a"), "Ready", READY);
    assert_eq!(again["status"]["prefix"], before["status"]["prefix"]);
    let uid = &again["metadata"]["uid"];
    let mut of = leases(cluster, ns).into_iter();
    assert!(of.any(|l| l["spec"]["claimRef"]["uid"] == *uid && l["spec"]["state"] == "held"));
}

#[test]
fn a_wiped_status_and_a_deleted_allocation_come_back_from_the_lease() {
    let Some(cluster) = set() else {
        return;
    };
    let ns = "wiped";
    site(cluster, ns, &[("n3", "10.4.0.0/24", json!({}))]);
    let claims = format!("{GROUP}/namespaces/{ns}/ipclaims");
    for name in ["a", "b", "c"] {
        cluster.create(&claims, &claim(ns, name));
        await_condition(cluster, &claim_path(ns, name), "Ready", READY);
    }
    // A hole below it: allocating afresh would give another address.
    cluster.delete(&claim_path(ns, "a"));
    until("the hole is there", || {
        let count = leases(cluster, ns).len();
        (count == 2).then_some(()).ok_or(count.to_string())
    });
    let before = cluster.get(&claim_path(ns, "c")).unwrap();
    let status = format!("{}/status", claim_path(ns, "c"));
    cluster.merge(&status, &json!({ "status": null }));
    cluster.delete(&format!("{GROUP}/namespaces/{ns}/ipallocations/c"));
    let after = await_condition(cluster, &claim_path(ns, "c"), "Ready", READY);
    assert_eq!(after["status"]["prefix"], before["status"]["prefix"]);
    until("the IPAllocation is back", || {
        let path = format!("{GROUP}/namespaces/{ns}/ipallocations/c");
        cluster.get(&path).map(|_| ()).ok_or("absent".to_owned())
    });
}

#[test]
fn both_families_a_fixed_address_a_kept_one_and_a_block_are_answered() {
    let Some(cluster) = set() else {
        return;
    };
    let ns = "families";
    let kept =
        json!({ "allocations": [{ "prefix": "10.5.0.2/24", "claimRef": { "name": "kept" } }] });
    site(
        cluster,
        ns,
        &[
            ("v4", "10.5.0.0/24", kept),
            ("v6", "fd05::/64", json!({})),
            ("pool", "10.5.128.0/17", json!({ "kind": "pool" })),
        ],
    );
    let claims = format!("{GROUP}/namespaces/{ns}/ipclaims");
    let with = |name: &str, more: serde_json::Value| {
        let mut made = claim(ns, name);
        for (key, value) in more.as_object().unwrap() {
            made["spec"][key] = value.clone();
        }
        cluster.create(&claims, &made);
    };
    with("four", json!({ "addressFamily": "ipv4" }));
    with("six", json!({ "addressFamily": "ipv6" }));
    with("fixed", json!({ "prefix": "10.5.0.77/24" }));
    with("kept", json!({ "addressFamily": "ipv4" }));
    with("block", json!({ "kind": "pool", "prefixLength": 24 }));
    for (name, prefix, gateway) in [
        ("four", "10.5.0.3/24", json!("10.5.0.1")),
        ("six", "fd05::2/64", json!("fd05::1")),
        ("fixed", "10.5.0.77/24", json!("10.5.0.1")),
        ("kept", "10.5.0.2/24", json!("10.5.0.1")),
        ("block", "10.5.128.0/24", json!(null)),
    ] {
        let ready = await_condition(cluster, &claim_path(ns, name), "Ready", READY);
        assert_eq!(ready["status"]["prefix"], prefix, "{name}");
        assert_eq!(ready["status"]["gateway"], gateway, "{name}");
    }
    with("clash", json!({ "prefix": "10.5.0.77/24" }));
    let held = await_condition(
        cluster,
        &claim_path(ns, "clash"),
        "Ready",
        ("False", "AddressHeld"),
    );
    let message = held["status"]["conditions"][0]["message"].as_str().unwrap();
    assert!(message.contains("fixed"), "it names the holder: {message}");
    cluster.delete(&claim_path(ns, "fixed"));
    await_condition(cluster, &claim_path(ns, "clash"), "Ready", READY);
}

#[test]
fn vlans_come_from_an_index_and_a_claim_waits_for_one_that_is_not_there() {
    let Some(cluster) = set() else {
        return;
    };
    let ns = "vlans";
    cluster.namespace(ns);
    let group = format!("/apis/vlan.resource.nephio.org/v1alpha1/namespaces/{ns}");
    let claim = |name: &str, more: serde_json::Value| {
        let mut made = json!({
            "apiVersion": "vlan.resource.nephio.org/v1alpha1", "kind": "VLANClaim",
            "metadata": { "name": name, "namespace": ns },
            "spec": { "vlanIndex": { "name": "edge", "namespace": ns } },
        });
        for (key, value) in more.as_object().unwrap() {
            made["spec"][key] = value.clone();
        }
        cluster.create(&format!("{group}/vlanclaims"), &made);
    };
    let path = |name: &str| format!("{group}/vlanclaims/{name}");
    claim("n3", json!({ "vlanID": 100 }));
    let unknown = ("False", "UnknownNetworkInstance");
    await_condition(cluster, &path("n3"), "Ready", unknown);
    let index = json!({
        "apiVersion": "vlan.resource.nephio.org/v1alpha1", "kind": "VLANIndex",
        "metadata": { "name": "edge", "namespace": ns }, "spec": {},
    });
    cluster.create(&format!("{group}/vlanindices"), &index);
    let ready = await_condition(cluster, &path("n3"), "Ready", READY);
    assert_eq!(ready["status"]["vlanID"], 100);
    claim("n4", json!({}));
    let ready = await_condition(cluster, &path("n4"), "Ready", READY);
    assert_eq!(ready["status"]["vlanID"], 2);
    claim("many", json!({ "range": "200:210" }));
    await_condition(cluster, &path("many"), "Ready", ("False", "InvalidField"));
    until("the index counts", || {
        let index = cluster.get(&format!("{group}/vlanindices/edge")).unwrap();
        let status = &index["status"];
        let right = status["used"] == "2" && status["free"] == "4091";
        right.then_some(()).ok_or(status.to_string())
    });
    cluster.delete(&path("n4"));
    claim("n5", json!({ "vlanID": 2 }));
    await_condition(cluster, &path("n5"), "Ready", READY);
}

#[test]
fn a_pool_that_is_gone_takes_nothing_away_and_an_overlapping_one_gives_nothing() {
    let Some(cluster) = set() else {
        return;
    };
    let ns = "lasting";
    site(
        cluster,
        ns,
        &[(
            "n3",
            "10.6.0.0/24",
            json!({ "ranges": ["10.6.0.50-10.6.0.59"] }),
        )],
    );
    let claims = format!("{GROUP}/namespaces/{ns}/ipclaims");
    cluster.create(&claims, &claim(ns, "a"));
    await_condition(cluster, &claim_path(ns, "a"), "Ready", READY);
    let pool = format!("{GROUP}/namespaces/{ns}/ipprefixes/n3");
    cluster.delete(&pool);
    let lost = await_condition(
        cluster,
        &claim_path(ns, "a"),
        "Ready",
        ("False", "NoMatchingPrefix"),
    );
    assert_eq!(
        lost["status"]["prefix"], "10.6.0.50/24",
        "its lease is still held"
    );
    assert_eq!(leases(cluster, ns).len(), 1);
    // Back with other ranges: who has an address keeps it.
    let again = json!({
        "apiVersion": "ipam.resource.nephio.org/v1alpha1", "kind": "IPPrefix",
        "metadata": { "name": "n3", "namespace": ns },
        "spec": { "prefix": "10.6.0.0/24", "networkInstance": { "name": ns, "namespace": ns } },
    });
    cluster.create(&format!("{GROUP}/namespaces/{ns}/ipprefixes"), &again);
    let back = await_condition(cluster, &claim_path(ns, "a"), "Ready", READY);
    assert_eq!(back["status"]["prefix"], "10.6.0.50/24");
    site(
        cluster,
        "lasting-too",
        &[("other", "10.6.0.0/25", json!({}))],
    );
    let other = format!("{GROUP}/namespaces/lasting-too/ipprefixes/other");
    await_condition(cluster, &other, "Ready", ("False", "OverlappingPrefixes"));
    let claims = format!("{GROUP}/namespaces/lasting-too/ipclaims");
    cluster.create(&claims, &claim("lasting-too", "b"));
    await_condition(
        cluster,
        &claim_path("lasting-too", "b"),
        "Ready",
        ("False", "NoMatchingPrefix"),
    );
}
