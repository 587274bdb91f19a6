//! What stands in Git is in the cluster, stays there, and goes when it leaves.

use serde_json::json;

use super::{Follower, Repo, map};
use crate::harness::{Cluster, Controller, until};

#[test]
fn exactly_what_is_wanted_is_applied_and_what_left_goes() {
    let (Some(cluster), Some(_)) = (Cluster::shared(), Controller::shared(&["sync"])) else {
        return;
    };
    let repo = Repo::new("wanted");
    repo.write("deploy/a.yaml", &map("wanted", "a", "1"));
    repo.write("deploy/upf/b.yaml", &map("wanted", "b", "1"));
    repo.write("other/c.yaml", &map("wanted", "elsewhere", "1"));
    repo.write(
        "deploy/upf/nad.yaml",
        "apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\nmetadata: {name: n3, namespace: wanted}\nspec: {config: '{}'}\n",
    );
    repo.write("deploy/upf/workload.yaml", &deployment("wanted"));
    repo.write(
        "deploy/upf/Kptfile",
        "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: upf}\n",
    );
    repo.write(
        "deploy/upf/claim.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: claim\n  namespace: wanted\n  annotations: {config.kubernetes.io/local-config: \"true\"}\n",
    );
    repo.write("deploy/.status/notes.yaml", &map("wanted", "status", "1"));
    repo.write("deploy/values.yaml", "replicas: 3\n");
    let commit = repo.push();
    let follower = Follower::new(cluster, &repo, &json!({}));
    // Somebody else's, in the same namespace.
    cluster.apply(&map("wanted", "foreign", "1"));
    let root = follower.synced(&commit);
    assert_eq!(follower.maps(), ["a", "b", "foreign"]);
    let nad = "/apis/k8s.cni.cncf.io/v1/namespaces/wanted/network-attachment-definitions/n3";
    assert!(cluster.get(nad).is_some());
    let workload = "/apis/apps/v1/namespaces/wanted/deployments/upf";
    assert!(cluster.get(workload).is_some());
    assert_eq!(root["status"]["sync"]["objects"]["wanted"], 4);
    assert_eq!(root["status"]["lastSyncedCommit"], commit.as_str());
    assert_eq!(root["status"]["observedGeneration"], 1);
    let a = follower.map("a").unwrap();
    assert_eq!(
        a["metadata"]["annotations"]["mooring.dev/synced-by"],
        "wanted/wanted"
    );

    repo.write("deploy/a.yaml", &map("wanted", "a", "2"));
    repo.remove("deploy/upf/b.yaml");
    repo.remove("deploy/upf/nad.yaml");
    let commit = repo.push();
    follower.synced(&commit);
    assert_eq!(follower.maps(), ["a", "foreign"]);
    assert_eq!(follower.map("a").unwrap()["data"]["key"], "2");
    assert!(cluster.get(nad).is_none());
    assert!(cluster.get(workload).is_some());
}

fn deployment(namespace: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: upf, namespace: {namespace}}}\nspec:\n  selector: {{matchLabels: {{app: upf}}}}\n  \
         template:\n    metadata: {{labels: {{app: upf}}}}\n    spec:\n      containers:\n      - {{name: upf, image: upf}}\n"
    )
}

#[test]
fn what_somebody_changed_or_deleted_comes_back_and_a_quiet_cluster_is_left_alone() {
    let (Some(cluster), Some(_)) = (Cluster::shared(), Controller::shared(&["sync"])) else {
        return;
    };
    let repo = Repo::new("drift");
    repo.write("deploy/a.yaml", &map("drift", "a", "git"));
    repo.write("deploy/b.yaml", &map("drift", "b", "git"));
    let commit = repo.push();
    let follower = Follower::new(cluster, &repo, &json!({}));
    follower.synced(&commit);
    let version = |name: &str| {
        let map = follower.map(name)?;
        Some(map["metadata"]["resourceVersion"].as_str()?.to_owned())
    };
    let (before, root) = (version("b"), follower.root());
    cluster.merge(
        &follower.map_path("a"),
        &json!({ "data": { "key": "hand", "more": "stays" } }),
    );
    let back = |name: &'static str| {
        until(&format!("{name} is as in Git"), || {
            let map = follower.map(name).ok_or("it is not there")?;
            (map["data"]["key"] == "git")
                .then(|| map.clone())
                .ok_or(map["data"].to_string())
        })
    };
    let a = back("a");
    assert_eq!(a["data"]["more"], "stays", "what is not in Git is not ours");
    cluster.delete(&follower.map_path("a"));
    back("a");
    assert_eq!(version("b"), before);
    let after = follower.root();
    assert_eq!(
        after["metadata"]["resourceVersion"], root["metadata"]["resourceVersion"],
        "a pass without news writes nothing: {}",
        after["status"]
    );
}

#[test]
fn a_kind_comes_with_its_crd_in_one_commit_and_a_namespace_with_what_is_in_it() {
    let (Some(cluster), Some(_)) = (Cluster::shared(), Controller::shared(&["sync"])) else {
        return;
    };
    let repo = Repo::new("crds");
    repo.write(
        "deploy/a.yaml",
        "apiVersion: sync.example.dev/v1\nkind: Link\nmetadata: {name: l, namespace: crds-made}\nspec: {mtu: 9000}\n---\n\
         apiVersion: v1\nkind: Namespace\nmetadata: {name: crds-made}\n---\n\
         apiVersion: v1\nkind: ConfigMap\nmetadata: {name: placed}\n",
    );
    repo.write(
        "deploy/crd.yaml",
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: links.sync.example.dev}\n\
         spec:\n  group: sync.example.dev\n  scope: Namespaced\n  names: {kind: Link, plural: links, singular: link}\n  versions:\n  \
         - name: v1\n    served: true\n    storage: true\n    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}\n",
    );
    let commit = repo.push();
    let follower = Follower::new(cluster, &repo, &json!({ "defaultNamespace": "crds" }));
    follower.synced(&commit);
    let link = "/apis/sync.example.dev/v1/namespaces/crds-made/links/l";
    assert_eq!(cluster.get(link).unwrap()["spec"]["mtu"], 9000);
    assert!(
        follower.map("placed").is_some(),
        "it went to the default namespace"
    );
}

#[test]
fn a_change_of_the_rootsync_is_followed_at_once() {
    let (Some(cluster), Some(_)) = (Cluster::shared(), Controller::shared(&["sync"])) else {
        return;
    };
    let repo = Repo::new("edited");
    repo.write("deploy/a.yaml", &map("edited", "a", "1"));
    repo.write("next/b.yaml", &map("edited", "b", "1"));
    let commit = repo.push();
    // An hour: only the edit can wake it.
    let follower = Follower::new(cluster, &repo, &json!({ "git": { "period": "1h" } }));
    follower.synced(&commit);
    follower.follow(
        &repo.server.url("edited"),
        &json!({ "git": { "period": "1h", "dir": "next" } }),
    );
    until("the other directory is followed", || {
        let maps = follower.maps();
        (maps == ["b"]).then_some(()).ok_or(format!("{maps:?}"))
    });
}

#[test]
fn a_tag_is_followed_instead_of_the_branch() {
    let (Some(cluster), Some(_)) = (Cluster::shared(), Controller::shared(&["sync"])) else {
        return;
    };
    let repo = Repo::new("tagged");
    repo.write("deploy/a.yaml", &map("tagged", "a", "one"));
    let first = repo.push();
    repo.git(&["tag", "upf/v1"]);
    repo.git(&["push", "--quiet", "origin", "upf/v1"]);
    repo.write("deploy/a.yaml", &map("tagged", "a", "two"));
    repo.push();
    let follower = Follower::new(cluster, &repo, &json!({ "git": { "revision": "upf/v1" } }));
    follower.synced(&first);
    assert_eq!(follower.map("a").unwrap()["data"]["key"], "one");
}
