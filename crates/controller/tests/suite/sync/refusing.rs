//! What is wrong is said with its place, and nothing is half done or wrongly removed.

use serde_json::json;

use super::{Follower, Repo, map};
use crate::harness::{Cluster, Controller, await_condition, condition, until};

#[test]
fn a_bad_file_is_named_with_its_line_and_the_last_good_commit_stays() {
    let (Some(cluster), Some(_)) = (Cluster::shared(), Controller::shared(&["sync"])) else {
        return;
    };
    let repo = Repo::new("badfile");
    repo.write("deploy/a.yaml", &map("badfile", "a", "1"));
    repo.write("deploy/b.yaml", &map("badfile", "b", "1"));
    let good = repo.push();
    let follower = Follower::new(cluster, &repo, &json!({}));
    follower.synced(&good);
    // Changed, removed and added, and one mistake: nothing of it happens.
    repo.write("deploy/a.yaml", &map("badfile", "a", "2"));
    repo.remove("deploy/b.yaml");
    repo.write("deploy/c.yaml", &map("badfile", "c", "2"));
    let broken = format!("{}---\nkind: [\n", map("badfile", "d", "2"));
    repo.write("deploy/d.yaml", &broken);
    let bad = repo.push();
    let root = follower.not_synced("YamlInvalid");
    let said = root["status"]["source"]["errors"][0]["errorMessage"]
        .as_str()
        .unwrap();
    assert!(said.starts_with("d.yaml:"), "{said}");
    let line: u32 = said.split(':').nth(1).unwrap().parse().unwrap();
    assert!(line >= 9, "{said}");
    assert_eq!(root["status"]["source"]["commit"], bad.as_str());
    assert_eq!(root["status"]["sync"]["commit"], good.as_str());
    assert_eq!(condition(&root, "Stalled"), Some(("True", "YamlInvalid")));
    // The last good commit is still kept up.
    cluster.delete(&follower.map_path("b"));
    until("b is back", || {
        follower.map("b").map(drop).ok_or_else(|| follower.said())
    });
    assert_eq!(follower.maps(), ["a", "b"]);
    assert_eq!(follower.map("a").unwrap()["data"]["key"], "1");
    repo.remove("deploy/d.yaml");
    let commit = repo.push();
    follower.synced(&commit);
    assert_eq!(follower.maps(), ["a", "c"]);
    let events = cluster.events("badfile", "badfile");
    assert!(
        events.iter().any(|e| e.starts_with("YamlInvalid: d.yaml:")),
        "{events:?}"
    );
}

#[test]
fn two_objects_that_are_one_and_a_wrong_scope_are_refused_with_their_places() {
    let (Some(cluster), Some(_)) = (Cluster::shared(), Controller::shared(&["sync"])) else {
        return;
    };
    let repo = Repo::new("mistakes");
    repo.write("deploy/a.yaml", &map("mistakes", "a", "1"));
    repo.write("deploy/b.yaml", &map("mistakes", "a", "2"));
    repo.push();
    let follower = Follower::new(cluster, &repo, &json!({}));
    let root = follower.not_synced("DuplicateObject");
    let said = root["status"]["source"]["errors"][0]["errorMessage"].to_string();
    assert!(
        said.contains("b.yaml:2") && said.contains("a.yaml:2"),
        "{said}"
    );
    repo.write(
        "deploy/b.yaml",
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: mistakes-x, namespace: mistakes}\n",
    );
    repo.push();
    follower.not_synced("WrongScope");
    assert!(follower.maps().is_empty());
}

#[test]
fn an_unknown_kind_fails_alone_and_nothing_is_removed_before_it_is_known() {
    let (Some(cluster), Some(_)) = (Cluster::shared(), Controller::shared(&["sync"])) else {
        return;
    };
    let repo = Repo::new("unknown");
    repo.write("deploy/a.yaml", &map("unknown", "a", "1"));
    repo.write("deploy/b.yaml", &map("unknown", "b", "1"));
    let commit = repo.push();
    let follower = Follower::new(cluster, &repo, &json!({}));
    follower.synced(&commit);
    repo.remove("deploy/b.yaml");
    repo.write("deploy/c.yaml", &map("unknown", "c", "1"));
    repo.write(
        "deploy/x.yaml",
        "apiVersion: nowhere.example.dev/v1\nkind: Ghost\nmetadata: {name: g, namespace: unknown}\n",
    );
    repo.push();
    let root = follower.not_synced("UnknownKind");
    let error = &root["status"]["sync"]["errors"][0];
    assert_eq!(error["resources"][0]["sourcePath"], "x.yaml", "{error}");
    assert_eq!(follower.maps(), ["a", "b", "c"], "c came, and b waits");
    repo.remove("deploy/x.yaml");
    let commit = repo.push();
    follower.synced(&commit);
    assert_eq!(follower.maps(), ["a", "c"]);
}

#[test]
fn a_field_of_somebody_else_is_named_and_taken_only_when_told_to() {
    let (Some(cluster), Some(_)) = (Cluster::shared(), Controller::shared(&["sync"])) else {
        return;
    };
    let repo = Repo::new("conflict");
    cluster.namespace("conflict");
    cluster.apply(&map("conflict", "a", "theirs"));
    repo.write("deploy/a.yaml", &map("conflict", "a", "ours"));
    repo.write("deploy/b.yaml", &map("conflict", "b", "ours"));
    let commit = repo.push();
    let follower = Follower::new(cluster, &repo, &json!({}));
    let root = follower.not_synced("FieldConflict");
    let said = root["status"]["sync"]["errors"][0]["errorMessage"].to_string();
    assert!(
        said.contains("data.key") && said.contains("kubectl"),
        "{said}"
    );
    assert_eq!(follower.map("a").unwrap()["data"]["key"], "theirs");
    assert!(follower.map("b").is_some(), "the others are applied");
    follower.follow(
        &repo.server.url("conflict"),
        &json!({ "conflicts": "Force" }),
    );
    follower.synced(&commit);
    assert_eq!(follower.map("a").unwrap()["data"]["key"], "ours");
    // It was there before us: it leaves Git, and stays in the cluster without our mark.
    repo.remove("deploy/a.yaml");
    let commit = repo.push();
    follower.synced(&commit);
    let a = follower.map("a").expect("it was never ours to delete");
    assert!(a["metadata"]["labels"]["mooring.dev/sync"].is_null(), "{a}");
}

#[test]
fn nothing_left_in_git_removes_nothing_until_it_is_allowed() {
    let (Some(cluster), Some(_)) = (Cluster::shared(), Controller::shared(&["sync"])) else {
        return;
    };
    let repo = Repo::new("emptied");
    repo.write("deploy/a.yaml", &map("emptied", "a", "1"));
    repo.write("deploy/notes.md", "keeps the directory\n");
    let commit = repo.push();
    let follower = Follower::new(cluster, &repo, &json!({}));
    follower.synced(&commit);
    repo.remove("deploy/a.yaml");
    repo.push();
    follower.not_synced("SourceEmpty");
    assert!(follower.map("a").is_some());
    // The directory itself goes: another reason, the same answer.
    repo.remove("deploy/notes.md");
    let commit = repo.push();
    let root = follower.not_synced("DirectoryMissing");
    assert_eq!(condition(&root, "Stalled").map(|c| c.0), Some("True"));
    assert!(follower.map("a").is_some());
    cluster.merge(
        &follower.path(),
        &json!({ "metadata": { "annotations": { "mooring.dev/allow-empty": "true" } } }),
    );
    follower.synced(&commit);
    assert!(follower.maps().is_empty());
}

#[test]
fn an_object_of_another_rootsync_is_not_touched() {
    let (Some(cluster), Some(_)) = (Cluster::shared(), Controller::shared(&["sync"])) else {
        return;
    };
    let first = Repo::new("taken-first");
    first.write("deploy/a.yaml", &map("taken-first", "a", "first"));
    let commit = first.push();
    let one = Follower::new(cluster, &first, &json!({}));
    one.synced(&commit);
    let second = Repo::new("taken-second");
    second.write("deploy/a.yaml", &map("taken-first", "a", "second"));
    second.push();
    let two = Follower::new(cluster, &second, &json!({ "conflicts": "Force" }));
    two.not_synced("ObjectTaken");
    assert!(
        two.said().contains("taken-first/taken-first"),
        "{}",
        two.said()
    );
    assert_eq!(one.map("a").unwrap()["data"]["key"], "first");
}

#[test]
fn what_is_not_served_stalls_and_an_edit_helps() {
    let (Some(cluster), Some(_)) = (Cluster::shared(), Controller::shared(&["sync"])) else {
        return;
    };
    let repo = Repo::new("stalled");
    repo.write("deploy/a.yaml", &map("stalled", "a", "1"));
    let commit = repo.push();
    let follower = Follower::new(cluster, &repo, &json!({ "sourceFormat": "hierarchy" }));
    await_condition(
        cluster,
        &follower.path(),
        "Stalled",
        ("True", "InvalidField"),
    );
    assert!(follower.said().contains("sourceFormat: unstructured"));
    follower.follow(
        &repo.server.url("stalled"),
        &json!({ "git": { "secretRef": { "name": "absent" } } }),
    );
    follower.not_synced("SecretMissing");
    follower.follow(
        &repo.server.url("stalled"),
        &json!({ "git": { "branch": "nowhere" } }),
    );
    follower.not_synced("BranchMissing");
    follower.follow(&repo.server.url("stalled"), &json!({}));
    follower.synced(&commit);
}

#[test]
fn a_wrong_token_is_a_condition_that_does_not_show_it() {
    let (Some(cluster), Some(controller)) = (Cluster::shared(), Controller::shared(&["sync"]))
    else {
        return;
    };
    let repo = Repo::new("denied");
    repo.push();
    let follower = Follower::with_token(cluster, &repo, "wr0ng-t0ken", &json!({}));
    follower.not_synced("GitDenied");
    assert!(!follower.root().to_string().contains("wr0ng-t0ken"));
    assert!(!controller.log().contains("wr0ng-t0ken"));
}
