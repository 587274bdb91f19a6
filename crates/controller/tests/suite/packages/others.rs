//! Sets, drafts by hand, what is wrong, and secrets.

use mooring_package::Kpt;
use serde_json::json;

use super::scene::{Scene, Stage};
use crate::harness::{Cluster, condition, until};

#[test]
fn a_set_makes_a_variant_per_cluster_and_takes_back_what_left() {
    let Some(stage) = Stage::shared() else {
        return;
    };
    let scene = stage.scene("set", 121);
    for name in ["edge01", "edge02"] {
        scene.cluster(name, "ens3");
        let path =
            format!("/apis/infra.nephio.org/v1alpha1/namespaces/set/workloadclusters/{name}");
        stage.cluster.merge(
            &path,
            &json!({ "metadata": { "labels": { "site": "edge" } } }),
        );
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
        assert_eq!(
            variant["metadata"]["ownerReferences"][0]["kind"],
            "PackageVariantSet"
        );
    }
    scene.awaits_leases(&[(20, "held"), (21, "held")]);
    let set = "/apis/config.porch.kpt.dev/v1alpha2/namespaces/set/packagevariantsets/all";
    let said = stage.cluster.get(set).unwrap();
    assert_eq!(condition(&said, "Ready"), Some(("True", "Reconciled")));
    assert_eq!(condition(&said, "Stalled"), Some(("False", "Valid")));
    let path = "/apis/infra.nephio.org/v1alpha1/namespaces/set/workloadclusters/edge02";
    stage.cluster.merge(
        path,
        &json!({ "metadata": { "labels": { "site": "core" } } }),
    );
    until("the second variant is gone", || {
        scene
            .get("all-edge-upf-edge02")
            .map_or(Ok(()), |v| Err(v["metadata"].to_string()))
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
        let files = seen
            .open
            .first()
            .map(|o| o.files.clone())
            .unwrap_or_default();
        let done = files.contains_key("networkattachmentdefinition_n3.yaml");
        done.then(|| files.clone())
            .ok_or_else(|| format!("{:?}", files.keys()))
    });
    assert!(Scene::nad(&files).contains(&scene.address(20)));
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
fn a_package_by_hand_that_is_deleted_in_git_gives_its_addresses_back() {
    let Some(stage) = Stage::shared() else {
        return;
    };
    let scene = stage.scene("undone", 132);
    for package in ["ran/upf", "ran/other"] {
        scene.draft("edge", package, "edit-1", &scene.blueprint());
        until("the draft has its NAD", || {
            let seen = scene.look(package);
            let open = seen.open.first().ok_or("no draft")?;
            let done = open
                .files
                .contains_key("networkattachmentdefinition_n3.yaml");
            done.then_some(())
                .ok_or_else(|| format!("{:?}", open.files.keys()))
        });
        scene.approve("edge", package, "edit-1");
    }
    scene.awaits_leases(&[(20, "held"), (21, "held")]);
    scene
        .packages("edge")
        .delete(&"ran/upf".parse().unwrap())
        .unwrap();
    scene.awaits_leases(&[(21, "held")]);
    assert!(scene.published("ran/other").is_some());
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
        let kpt = seen
            .open
            .first()
            .and_then(|o| Kpt::read(&o.files))
            .unwrap_or_default();
        let said = kpt
            .conditions
            .iter()
            .any(|c| c.kind == "mooring.dev.Specialised");
        said.then(|| kpt.clone()).ok_or_else(|| format!("{kpt:?}"))
    });
    let condition = kpt
        .conditions
        .iter()
        .find(|c| c.kind == "mooring.dev.Specialised")
        .unwrap();
    assert_eq!(condition.reason, "AmbiguousCluster");
    assert!(
        condition.message.contains("mooring.dev/cluster"),
        "{}",
        condition.message
    );
    until("an Event on the Repository", || {
        let events = stage.cluster.events("unknown", "edge");
        events
            .iter()
            .any(|e| e.starts_with("AmbiguousCluster"))
            .then_some(())
            .ok_or(format!("{events:?}"))
    });
    assert_eq!(scene.leases(), []);
    let commit = scene.look("upf").open[0].commit.clone();
    // The person says it.
    let repository = "/apis/config.porch.kpt.dev/v1alpha1/namespaces/unknown/repositories/edge";
    stage.cluster.merge(
        repository,
        &json!({ "metadata": { "labels": { "mooring.dev/cluster": "edge02" } } }),
    );
    let done = until("the draft is specialised", || {
        let seen = scene.look("upf");
        let open = seen.open.first().cloned().ok_or("gone")?;
        let done = open
            .files
            .contains_key("networkattachmentdefinition_n3.yaml");
        done.then(|| open.clone())
            .ok_or_else(|| format!("{:?}", open.files.keys()))
    });
    assert_ne!(done.commit, commit);
    let kpt = Kpt::read(&done.files).unwrap();
    assert!(
        kpt.conditions
            .iter()
            .all(|c| c.kind != "mooring.dev.Specialised"),
        "{:?}",
        kpt.conditions
    );
}

#[test]
fn what_is_wrong_with_a_variant_stands_on_it_with_what_to_do() {
    let Some(stage) = Stage::shared() else {
        return;
    };
    let scene = stage.scene("wrong", 124);
    scene.variant(
        "upf",
        "upf-a",
        "  annotations: {approval.nephio.org/policy: sometimes}",
    );
    let variant = scene.awaits("upf", "Stalled", ("True", "ValidationError"));
    assert_eq!(
        condition(&variant, "Ready"),
        Some(("False", "InvalidAnnotation"))
    );
    scene.variant_of(7, "gone", "upf-b", "");
    scene.awaits("gone", "Ready", ("False", "BlueprintMissing"));
    // A pool that is full is a finding of the render, and goes when there is room.
    let pool = "/apis/ipam.resource.nephio.org/v1alpha1/namespaces/default/ipprefixes/pool-wrong";
    let ranges =
        |text: &str| json!({ "metadata": { "annotations": { "mooring.dev/ranges": text } } });
    stage
        .cluster
        .merge(pool, &ranges("10.124.2.20-10.124.2.20"));
    scene.variant("one", "upf-c", "");
    scene.awaits("one", "Specialised", ("True", "Rendered"));
    scene.variant("two", "upf-d", "");
    scene.awaits("two", "Specialised", ("False", "PoolExhausted"));
    assert!(scene.look("upf-d").open.is_empty(), "nothing is half-made");
    stage
        .cluster
        .merge(pool, &ranges("10.124.2.20-10.124.2.30"));
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
    stage.cluster.merge(
        path,
        &json!({ "stringData": { "password": "wr0ng-passw0rd" } }),
    );
    let variant = scene.awaits("upf", "Stalled", ("True", "GitDenied"));
    let repository = stage
        .cluster
        .get("/apis/config.porch.kpt.dev/v1alpha1/namespaces/secret/repositories/edge");
    let events = |name| stage.cluster.events("secret", name);
    let log = stage.controller().log();
    let seen = format!(
        "{variant}{repository:?}{log}{:?}{:?}",
        events("upf"),
        events("edge")
    );
    for secret in ["wr0ng-passw0rd", stage.git.token()] {
        assert!(!seen.contains(secret), "{secret} is shown");
    }
    stage.cluster.merge(
        path,
        &json!({ "stringData": { "password": stage.git.token() } }),
    );
    scene.awaits("upf", "Stalled", ("False", "Valid"));
}

#[test]
fn what_a_cluster_says_in_git_is_the_deployed_condition() {
    let Some(stage) = Stage::shared() else {
        return;
    };
    let scene = stage.scene("deployed", 126);
    scene.variant(
        "upf",
        "upf-a",
        "  annotations: {approval.nephio.org/policy: always}",
    );
    scene.awaits("upf", "Deployed", ("False", "NotReported"));
    let dir = tempfile::tempdir().unwrap();
    let bare = stage.git.path("deployed-edge");
    Scene::git(dir.path(), &["clone", "-q", bare.to_str().unwrap(), "work"]);
    let work = dir.path().join("work");
    let commit = Scene::git(&work, &["rev-parse", "HEAD"]);
    let say = |state: &str| {
        let synced = if state == "Applied" { "True" } else { "False" };
        let text = format!(
            "apiVersion: configsync.gke.io/v1beta1\nkind: SyncStatus\nstatus:\n  format: 1\n  cluster: edge01\n  sync: {{commit: {commit}}}\n  conditions:\n  - {{type: Synced, status: \"{synced}\"}}\n  objects:\n  - {{apiVersion: apps/v1, kind: Deployment, name: upf, state: {state}, file: upf-a/deployment.yaml}}\n  errors: [\"ConfigMap/other: not this\", \"Deployment/upf: no room\"]\n"
        );
        Scene::git(&work, &["pull", "-q", "--rebase"]);
        std::fs::create_dir_all(work.join(".status")).unwrap();
        std::fs::write(work.join(".status/sync-status.yaml"), text).unwrap();
        Scene::git(&work, &["add", "."]);
        Scene::git(&work, &["commit", "-q", "-m", "status"]);
        Scene::git(&work, &["push", "-q"]);
    };
    say("Failed");
    let variant = scene.awaits("upf", "Deployed", ("False", "ApplyFailed"));
    let said = variant["status"].to_string();
    assert!(said.contains("Deployment/upf: no room"), "{said}");
    assert!(!said.contains("not this"), "{said}");
    say("Applied");
    scene.awaits("upf", "Deployed", ("True", "Synced"));
    // A new version is not there before the cluster says so.
    scene.cluster("edge01", "ens8");
    scene.awaits("upf", "Deployed", ("False", "Syncing"));
}

#[test]
fn a_cluster_that_follows_a_directory_of_the_repository_is_heard_there() {
    let Some(stage) = Stage::shared() else {
        return;
    };
    let scene = stage.scene("deeper", 137);
    scene.variant(
        "upf",
        "edge01/upf",
        "  annotations: {approval.nephio.org/policy: always}",
    );
    scene.awaits("upf", "Deployed", ("False", "NotReported"));
    let dir = tempfile::tempdir().unwrap();
    let bare = stage.git.path("deeper-edge");
    Scene::git(dir.path(), &["clone", "-q", bare.to_str().unwrap(), "work"]);
    let work = dir.path().join("work");
    let commit = Scene::git(&work, &["rev-parse", "HEAD"]);
    // As a RootSync with `dir: edge01` writes it: files are named below that directory.
    let text = format!(
        "apiVersion: configsync.gke.io/v1beta1\nkind: SyncStatus\nstatus:\n  format: 1\n  cluster: edge01\n  sync: {{commit: {commit}}}\n  conditions:\n  - {{type: Synced, status: \"False\"}}\n  objects:\n  - {{apiVersion: apps/v1, kind: Deployment, name: upf, state: Applied, file: upf/deployment.yaml}}\n  - {{apiVersion: v1, kind: ConfigMap, name: other, state: Failed, file: amf/other.yaml}}\n  errors: [\"ConfigMap/other: no room\"]\n"
    );
    std::fs::create_dir_all(work.join("edge01/.status")).unwrap();
    std::fs::write(work.join("edge01/.status/sync-status.yaml"), text).unwrap();
    Scene::git(&work, &["add", "."]);
    Scene::git(&work, &["commit", "-q", "-m", "status"]);
    Scene::git(&work, &["push", "-q"]);
    scene.awaits("upf", "Deployed", ("True", "Synced"));
}

#[test]
fn records_are_shipped_where_the_variant_asks_for_it() {
    let Some(stage) = Stage::shared() else {
        return;
    };
    let scene = stage.scene("records", 127);
    let local = |package: &str, claim: &str| {
        let files = scene.published(package).unwrap();
        String::from_utf8_lossy(&files[claim]).contains("local-config")
    };
    let policy = "approval.nephio.org/policy: always";
    scene.variant("plain", "upf-a", &format!("  annotations: {{{policy}}}"));
    let asks = format!("  annotations: {{{policy}, mooring.dev/deploy-records: \"true\"}}");
    scene.variant("records", "upf-b", &asks);
    scene.awaits("plain", "Published", ("True", "Published"));
    scene.awaits("records", "Published", ("True", "Published"));
    assert!(local("upf-a", "ipclaim_n3.yaml"));
    assert!(!local("upf-b", "ipclaim_n3.yaml"));
}

#[test]
fn beside_porch_only_what_is_labelled_is_ours_and_porchs_definitions_are_lived_with() {
    // Porch's published definitions, and its API group, which says that it is there.
    let Some(oracles) = mooring_testkit::oracles("Porch's definitions") else {
        return;
    };
    let Some(cluster) = Cluster::bare() else {
        return;
    };
    let ours = tempfile::tempdir().unwrap();
    let copy = |dir: &std::path::Path, wanted: &dyn Fn(&str) -> bool| {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap();
            if wanted(&name) {
                std::fs::copy(entry.path(), ours.path().join(&name)).unwrap();
            }
        }
    };
    let is_theirs = |name: &str| name.starts_with("config.porch.kpt.dev_packagevariant");
    copy(&oracles.join("crds"), &is_theirs);
    let crds = mooring_testkit::workspace_root().join("deploy/crds");
    copy(&crds, &|name| !is_theirs(name));
    cluster.install(ours.path());
    cluster.apply(
        "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: packagerevisions.porch.kpt.dev}
spec:
  group: porch.kpt.dev
  scope: Namespaced
  names: {kind: PackageRevision, plural: packagerevisions, singular: packagerevision}
  versions:
  - {name: v1alpha1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
",
    );
    until("Porch's group is served", || {
        cluster
            .get("/apis/porch.kpt.dev/v1alpha1")
            .map(|_| ())
            .ok_or("not yet".to_owned())
    });
    let stage = Stage::over(cluster);
    let scene = stage.scene("beside", 128);
    scene.variant("theirs", "upf-a", "");
    scene.variant("ours", "upf-b", "");
    let label = json!({ "metadata": { "labels": { "mooring.dev/managed": "true" } } });
    stage.cluster.merge(&scene.path("ours"), &label);
    scene.awaits("ours", "Specialised", ("True", "Rendered"));
    until("the other one is told", || {
        let events = stage.cluster.events("beside", "theirs");
        events
            .iter()
            .any(|e| e.starts_with("NotManaged"))
            .then_some(())
            .ok_or(format!("{events:?}"))
    });
    let theirs = scene.get("theirs").unwrap();
    assert!(
        theirs["status"]["conditions"].is_null(),
        "{}",
        theirs["status"]
    );
    assert!(
        theirs["metadata"]["finalizers"].is_null(),
        "{}",
        theirs["metadata"]
    );
    assert!(scene.look("upf-a").open.is_empty());
}

#[test]
fn what_is_written_on_a_variant_is_ours_by_name_and_finalizers_of_others_stay() {
    let Some(stage) = Stage::shared() else {
        return;
    };
    let scene = stage.scene("named", 138);
    scene.variant("upf", "upf-a", "");
    let path = scene.path("upf");
    scene.awaits("upf", "Specialised", ("True", "Rendered"));
    let variant = scene.get("upf").unwrap();
    let fields = variant["metadata"]["managedFields"].as_array().unwrap();
    let of = |what: &str| -> Vec<&str> {
        let has = |f: &&serde_json::Value| f["fieldsV1"].to_string().contains(what);
        let all = fields.iter().filter(has);
        all.filter_map(|f| f["manager"].as_str()).collect()
    };
    let ours = ["mooring-packages"];
    assert_eq!(of("mooring.dev/last-draft"), ours, "{fields:?}");
    assert_eq!(of("mooring.dev/packagevariant"), ours, "{fields:?}");
    // Somebody else has a finalizer too.
    let mut all = variant["metadata"]["finalizers"]
        .as_array()
        .unwrap()
        .clone();
    all.push(json!("example.com/keeps"));
    let patch = json!({ "metadata": { "finalizers": all } });
    stage.cluster.merge(&path, &patch);
    stage.cluster.delete(&path);
    until("ours is gone, and theirs is there", || {
        let variant = scene.get("upf").ok_or("it is gone")?;
        let left = &variant["metadata"]["finalizers"];
        (*left == json!(["example.com/keeps"]))
            .then_some(())
            .ok_or_else(|| left.to_string())
    });
    scene.awaits_leases(&[]);
    let patch = json!({ "metadata": { "finalizers": null } });
    stage.cluster.merge(&path, &patch);
}

#[test]
fn a_pool_that_is_wrong_stops_nobody_else() {
    let Some(stage) = Stage::own() else {
        return;
    };
    let scene = stage.scene("beside", 141);
    // Two instances fight over one network; neither has anything to do with the scene's own.
    for name in ["fights-a", "fights-b"] {
        stage.cluster.apply(&format!(
            "apiVersion: ipam.resource.nephio.org/v1alpha1
kind: IPPrefix
metadata: {{name: {name}, namespace: default}}
spec: {{kind: network, prefix: 10.142.0.0/24, networkInstance: {{name: {name}, namespace: default}}}}
"
        ));
    }
    scene.variant("upf", "upf-a", "");
    scene.awaits("upf", "Specialised", ("True", "Rendered"));
    scene.awaits_leases(&[(20, "reserved")]);
}
