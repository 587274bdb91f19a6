//! Sets, drafts by hand, what is wrong, and secrets.

use mooring_package::Kpt;
use serde_json::json;

use super::scene::Stage;
use crate::harness::{condition, until};

#[test]
fn a_set_makes_a_variant_per_cluster_and_takes_back_what_left() {
    let Some(stage) = Stage::shared() else {
        return;
    };
    let scene = stage.scene("set", 121);
    for name in ["edge01", "edge02"] {
        scene.cluster(name, "ens3");
        let path = format!("/apis/infra.nephio.org/v1alpha1/namespaces/set/workloadclusters/{name}");
        stage.cluster.merge(&path, &json!({ "metadata": { "labels": { "site": "edge" } } }));
    }
    stage.cluster.apply(
        "apiVersion: config.porch.kpt.dev/v1alpha2
kind: PackageVariantSet
metadata: {name: all, namespace: set}
spec:
  upstream: {repo: blueprints, package: upf, revision: 1}
  targets:
  - objectSelector: {apiVersion: infra.nephio.org/v1alpha1, kind: WorkloadCluster, matchLabels: {site: edge}}
    template:
      downstream: {repo: edge, packageExpr: \"packageDefault + '-' + target.name\"}
      annotations: {approval.nephio.org/policy: always}
      injectors: [{kind: WorkloadCluster, nameExpr: target.name}]
",
    );
    for name in ["all-edge-upf-edge01", "all-edge-upf-edge02"] {
        let variant = scene.awaits(name, "Published", ("True", "Published"));
        assert_eq!(variant["metadata"]["ownerReferences"][0]["kind"], "PackageVariantSet");
    }
    scene.awaits_leases(&[(20, "held"), (21, "held")]);
    let set = "/apis/config.porch.kpt.dev/v1alpha2/namespaces/set/packagevariantsets/all";
    let said = stage.cluster.get(set).unwrap();
    assert_eq!(condition(&said, "Ready"), Some(("True", "Reconciled")));
    assert_eq!(condition(&said, "Stalled"), Some(("False", "Valid")));
    let path = "/apis/infra.nephio.org/v1alpha1/namespaces/set/workloadclusters/edge02";
    stage.cluster.merge(path, &json!({ "metadata": { "labels": { "site": "core" } } }));
    until("the second variant is gone", || {
        scene.get("all-edge-upf-edge02").map_or(Ok(()), |v| Err(v["metadata"].to_string()))
    });
    assert_eq!(scene.leases().len(), 1);
    assert!(scene.published("upf-edge02").is_none());
}

#[test]
fn a_draft_that_a_person_pushed_is_specialised_and_published_as_any_other() {
    let Some(stage) = Stage::shared() else {
        return;
    };
    let scene = stage.scene("hand", 122);
    scene.draft("edge", "ran/upf", "edit-1", &scene.blueprint());
    let files = until("the draft has its NAD", || {
        let seen = scene.look("ran/upf");
        let files = seen.open.first().map(|o| o.files.clone()).unwrap_or_default();
        let done = files.contains_key("networkattachmentdefinition_n3.yaml");
        done.then(|| files.clone()).ok_or_else(|| format!("{:?}", files.keys()))
    });
    assert!(scene.nad(&files).contains(&scene.address(20)));
    scene.awaits_leases(&[(20, "reserved")]);
    scene.approve("edge", "ran/upf", "edit-1");
    scene.awaits_leases(&[(20, "held")]);
    // A second one is discarded, and what it had goes back.
    scene.draft("edge", "ran/other", "edit-1", &scene.blueprint());
    scene.awaits_leases(&[(20, "held"), (21, "reserved")]);
    scene.discard("edge", "ran/other", "edit-1");
    scene.awaits_leases(&[(20, "held")]);
}

#[test]
fn a_draft_whose_cluster_nobody_knows_says_so_in_its_kptfile_and_on_the_repository() {
    let Some(stage) = Stage::shared() else {
        return;
    };
    let scene = stage.scene("unknown", 123);
    scene.cluster("edge02", "eth1");
    let mut files = scene.blueprint();
    files.remove("workload-cluster.yaml");
    scene.draft("edge", "upf", "edit", &files);
    let kpt = until("the draft says what is missing", || {
        let seen = scene.look("upf");
        let kpt = seen.open.first().and_then(|o| Kpt::read(&o.files)).unwrap_or_default();
        let said = kpt.conditions.iter().any(|c| c.kind == "mooring.dev.Specialised");
        said.then(|| kpt.clone()).ok_or_else(|| format!("{kpt:?}"))
    });
    let condition = kpt.conditions.iter().find(|c| c.kind == "mooring.dev.Specialised").unwrap();
    assert_eq!(condition.reason, "AmbiguousCluster");
    assert!(condition.message.contains("mooring.dev/cluster"), "{}", condition.message);
    until("an Event on the Repository", || {
        let events = stage.cluster.events("unknown", "edge");
        events.iter().any(|e| e.starts_with("AmbiguousCluster")).then_some(()).ok_or(format!("{events:?}"))
    });
    assert_eq!(scene.leases(), []);
    // The person says it.
    let repository = "/apis/config.porch.kpt.dev/v1alpha1/namespaces/unknown/repositories/edge";
    stage.cluster.merge(repository, &json!({ "metadata": { "labels": { "mooring.dev/cluster": "edge02" } } }));
    let commit = scene.look("upf").open[0].commit.clone();
    let kptfile = String::from_utf8(scene.look("upf").open[0].files["Kptfile"].clone()).unwrap();
    let mut again = scene.look("upf").open[0].files.clone();
    again.insert("Kptfile".into(), format!("{kptfile}# looked at\n").into_bytes());
    scene.draft("edge", "upf", "edit", &again);
    let done = until("the draft is specialised", || {
        let seen = scene.look("upf");
        let open = seen.open.first().cloned().ok_or("gone")?;
        let done = open.files.contains_key("networkattachmentdefinition_n3.yaml");
        done.then(|| open.clone()).ok_or_else(|| format!("{:?}", open.files.keys()))
    });
    assert_ne!(done.commit, commit);
    let kpt = Kpt::read(&done.files).unwrap();
    assert!(kpt.conditions.iter().all(|c| c.kind != "mooring.dev.Specialised"), "{:?}", kpt.conditions);
}

#[test]
fn what_is_wrong_with_a_variant_stands_on_it_with_what_to_do() {
    let Some(stage) = Stage::shared() else {
        return;
    };
    let scene = stage.scene("wrong", 124);
    scene.variant("upf", "upf-a", "  annotations: {approval.nephio.org/policy: sometimes}");
    let variant = scene.awaits("upf", "Stalled", ("True", "ValidationError"));
    assert_eq!(condition(&variant, "Ready"), Some(("False", "InvalidAnnotation")));
    scene.variant("gone", "upf-b", "");
    let path = scene.path("gone");
    stage.cluster.merge(&path, &json!({ "spec": { "upstream": { "revision": 7 } } }));
    scene.awaits("gone", "Ready", ("False", "BlueprintMissing"));
    // A pool that is full is a finding of the render, and goes when there is room.
    let pool = "/apis/ipam.resource.nephio.org/v1alpha1/namespaces/default/ipprefixes/pool-wrong";
    let ranges = |text: &str| json!({ "metadata": { "annotations": { "mooring.dev/ranges": text } } });
    stage.cluster.merge(pool, &ranges("10.124.2.20-10.124.2.20"));
    scene.variant("one", "upf-c", "");
    scene.awaits("one", "Specialised", ("True", "Rendered"));
    scene.variant("two", "upf-d", "");
    scene.awaits("two", "Specialised", ("False", "PoolExhausted"));
    assert!(scene.look("upf-d").open.is_empty(), "nothing is half-made");
    stage.cluster.merge(pool, &ranges("10.124.2.20-10.124.2.30"));
    scene.awaits("two", "Specialised", ("True", "Rendered"));
}

#[test]
fn a_secret_is_in_no_status_no_event_and_no_log() {
    let Some(stage) = Stage::shared() else {
        return;
    };
    let scene = stage.scene("secret", 125);
    scene.variant("upf", "upf-a", "");
    scene.awaits("upf", "Specialised", ("True", "Rendered"));
    // Then with a wrong one: what git says about it is shown.
    let path = "/api/v1/namespaces/secret/secrets/git";
    stage.cluster.merge(path, &json!({ "stringData": { "password": "wr0ng-passw0rd" } }));
    let variant = scene.awaits("upf", "Stalled", ("True", "GitDenied"));
    let repository = stage.cluster.get("/apis/config.porch.kpt.dev/v1alpha1/namespaces/secret/repositories/edge");
    let mut seen = format!("{variant}{repository:?}{}", stage.controller().log());
    seen.push_str(&format!("{:?}{:?}", stage.cluster.events("secret", "upf"), stage.cluster.events("secret", "edge")));
    for secret in ["wr0ng-passw0rd", stage.git.token()] {
        assert!(!seen.contains(secret), "{secret} is shown");
    }
    stage.cluster.merge(path, &json!({ "stringData": { "password": stage.git.token() } }));
    scene.awaits("upf", "Stalled", ("False", "Valid"));
}
