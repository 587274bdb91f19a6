//! What must survive: a killed process, a restarted API server, Git that is away.

use serde_json::json;

use super::{Follower, Repo, map};
use crate::harness::{Cluster, Controller, until};

/// How many objects a commit of the kill test has.
const MANY: usize = 120;

#[test]
fn a_killed_process_leaves_nothing_that_nobody_remembers() {
    let Some(cluster) = Cluster::own() else {
        return;
    };
    let repo = Repo::new("killed-sync");
    repo.write("deploy/stays.yaml", &map("killed-sync", "stays", "1"));
    let commit = repo.push();
    let args = ["--no-leader-election"];
    let mut controller = Controller::start(&cluster, &["sync"], &args);
    let follower = Follower::new(&cluster, &repo, &json!({}));
    follower.synced(&commit);
    let mut halves = 0;
    for (round, after) in [1, 30, 60, 100].into_iter().enumerate() {
        for nth in 0..MANY {
            let name = format!("r{round}-{nth:03}");
            let path = format!("deploy/{name}.yaml");
            repo.write(&path, &map("killed-sync", &name, "1"));
        }
        repo.push();
        until(&format!("{after} objects of round {round}"), || {
            let there = follower.maps().len();
            (there > after).then_some(()).ok_or(format!("{there}"))
        });
        controller.kill();
        let there = follower.maps().len();
        halves += usize::from(there < MANY);
        for nth in 0..MANY {
            repo.remove(&format!("deploy/r{round}-{nth:03}.yaml"));
        }
        let commit = repo.push();
        controller.restart();
        follower.synced(&commit);
        assert_eq!(
            follower.maps(),
            ["stays"],
            "round {round}, killed at {there}"
        );
    }
    println!("killed in the middle {halves} times of 4");
    assert!(halves > 0, "no kill came in the middle of a commit");
}

#[test]
fn an_api_server_that_restarts_is_followed_again() {
    let Some(cluster) = Cluster::own() else {
        return;
    };
    let repo = Repo::new("restarted");
    repo.write("deploy/a.yaml", &map("restarted", "a", "1"));
    let commit = repo.push();
    let controller = Controller::start(&cluster, &["sync"], &["--no-leader-election"]);
    let follower = Follower::new(&cluster, &repo, &json!({}));
    follower.synced(&commit);
    cluster.plane().stop_api_server();
    repo.write("deploy/a.yaml", &map("restarted", "a", "2"));
    repo.write("deploy/b.yaml", &map("restarted", "b", "2"));
    let commit = repo.push();
    cluster.plane().start_api_server();
    follower.synced(&commit);
    assert_eq!(follower.maps(), ["a", "b"]);
    assert!(controller.is_running(), "{}", controller.log());
}

/// The definition of RootSync without what the seeds and we add, and the group that says that Config Sync is here.
const THEIRS: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: rootsyncs.configsync.gke.io}
spec:
  group: configsync.gke.io
  scope: Namespaced
  names: {kind: RootSync, plural: rootsyncs, singular: rootsync}
  versions:
  - name: v1beta1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              sourceFormat: {type: string}
              git:
                type: object
                properties:
                  repo: {type: string}
                  branch: {type: string}
                  dir: {type: string}
                  period: {type: string}
                  auth: {type: string}
                  secretRef: {type: object, properties: {name: {type: string}}}
          status:
            type: object
            properties:
              lastSyncedCommit: {type: string}
              sync: {type: object, properties: {commit: {type: string}}}
              conditions:
                type: array
                items:
                  type: object
                  properties:
                    type: {type: string}
                    status: {type: string}
                    reason: {type: string}
                    message: {type: string}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: configmanagements.configmanagement.gke.io}
spec:
  group: configmanagement.gke.io
  scope: Cluster
  names: {kind: ConfigManagement, plural: configmanagements, singular: configmanagement}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object}}
";

#[test]
fn beside_config_sync_only_labelled_objects_are_followed_and_twins_serve() {
    let Some(cluster) = Cluster::bare() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("theirs.yaml"), THEIRS).unwrap();
    cluster.install(dir.path());
    let repo = Repo::new("beside");
    repo.write(
        "deploy/a.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
    );
    let commit = repo.push();
    let _controller = Controller::start(&cluster, &["sync"], &["--no-leader-election"]);
    let follower = Follower::new(&cluster, &repo, &json!({}));
    until("an Event says that it is left alone", || {
        let events = cluster.events("beside", "beside");
        let said = events.iter().any(|e| e.starts_with("NotManaged:"));
        said.then_some(()).ok_or(format!("{events:?}"))
    });
    assert!(follower.root()["status"].is_null(), "{}", follower.said());
    let ours = json!({ "metadata": {
        "labels": { "mooring.dev/managed": "true" },
        "annotations": { "mooring.dev/default-namespace": "beside" },
    } });
    cluster.merge(&follower.path(), &ours);
    let root = follower.synced(&commit);
    assert!(follower.map("a").is_some());
    // What their definition drops must not make every pass write.
    let asked = repo.server.requests().len();
    until("more passes", || {
        let now = repo.server.requests().len();
        (now > asked + 12).then_some(()).ok_or(format!("{now}"))
    });
    let version = |root: &serde_json::Value| root["metadata"]["resourceVersion"].clone();
    assert_eq!(version(&follower.root()), version(&root));
}

#[test]
fn git_away_keeps_everything_and_git_back_goes_on() {
    let (Some(cluster), Some(_)) = (Cluster::shared(), Controller::shared(&["sync"])) else {
        return;
    };
    let repo = Repo::new("away");
    repo.write("deploy/a.yaml", &map("away", "a", "1"));
    repo.write("deploy/b.yaml", &map("away", "b", "1"));
    let commit = repo.push();
    let follower = Follower::new(cluster, &repo, &json!({}));
    follower.synced(&commit);
    repo.server.stop();
    let root = follower.not_synced("GitUnreachable");
    assert_eq!(root["status"]["lastSyncedCommit"], commit.as_str());
    assert_eq!(
        crate::harness::condition(&root, "Stalled").map(|c| c.0),
        Some("False"),
        "it goes away by itself"
    );
    cluster.delete(&follower.map_path("a"));
    until("a is kept up from memory", || {
        follower.map("a").map(drop).ok_or_else(|| follower.said())
    });
    repo.remove("deploy/b.yaml");
    let commit = repo.push();
    repo.server.start_again();
    follower.synced(&commit);
    assert_eq!(follower.maps(), ["a"]);
}
