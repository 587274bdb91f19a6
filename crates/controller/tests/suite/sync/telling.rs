//! What became of it is committed back: on change only, never by force, and never at the cost of syncing.

use serde_json::{Value, json};

use super::{Follower, Repo, map};
use crate::harness::{Cluster, Controller, await_condition, until};

const FILE: &str = "deploy/.status/sync-status.yaml";

/// Waits until the file in Git says something.
#[track_caller]
fn told(repo: &Repo, what: &str) -> String {
    until(&format!("{FILE} says {what}"), || {
        let text = repo.file(FILE).unwrap_or_default();
        if text.contains(what) {
            Ok(text)
        } else {
            Err(text)
        }
    })
}

#[test]
fn the_file_is_committed_on_change_only_and_is_no_change_itself() {
    let (Some(cluster), Some(_)) = (Cluster::shared(), Controller::shared(&["sync"])) else {
        return;
    };
    let repo = Repo::new("told");
    repo.write("deploy/a.yaml", &map("told", "a", "1"));
    let first = repo.push();
    let more = json!({ "commitStatus": true, "cluster": "edge01" });
    let follower = Follower::new(cluster, &repo, &more);
    let text = told(&repo, &first);
    for part in [
        "kind: SyncStatus",
        "cluster: edge01",
        "name: a",
        "state: Applied",
        "type: Synced",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    await_condition(
        cluster,
        &follower.path(),
        "StatusCommitted",
        ("True", "Committed"),
    );
    let commits = repo.count();
    // The next passes see the commit of the file, and say nothing new.
    let end = repo.end();
    follower.synced(&end);
    until("three more passes", || {
        let passes = repo.server.requests().len();
        (passes > 20)
            .then_some(())
            .ok_or(format!("{passes} requests"))
    });
    assert_eq!(repo.count(), commits, "{}", repo.file(FILE).unwrap());

    repo.write("deploy/a.yaml", "kind: [\n");
    repo.push();
    let text = told(&repo, "YamlInvalid");
    assert!(
        text.contains(&first),
        "the cluster still has the first one\n{text}"
    );
    repo.write("deploy/a.yaml", &map("told", "a", "2"));
    let second = repo.push();
    let text = told(&repo, &second);
    assert!(!text.contains("YamlInvalid"), "{text}");
    assert!(follower.map("a").is_some());
}

#[test]
fn a_branch_that_others_push_to_all_the_time_is_never_overwritten() {
    let (Some(cluster), Some(_)) = (Cluster::shared(), Controller::shared(&["sync"])) else {
        return;
    };
    let repo = Repo::new("busy");
    repo.write("deploy/a.yaml", &map("busy", "a", "0"));
    repo.push();
    let follower = Follower::new(cluster, &repo, &json!({ "commitStatus": true }));
    told(&repo, "state: Applied");
    let mut commits = Vec::new();
    for nth in 1..=12 {
        repo.write("deploy/a.yaml", &map("busy", "a", &nth.to_string()));
        repo.write(&format!("elsewhere/{nth}.txt"), "x\n");
        commits.push(repo.push());
    }
    // The commit that it names may be one of its own on top of the last: what counts is what is in it.
    until("the file names a commit with the last change", || {
        let text = repo.file(FILE).unwrap_or_default();
        let named = text
            .lines()
            .find_map(|line| line.trim().strip_prefix("commit: "));
        let change = repo
            .file_at(named.unwrap_or("main"), "deploy/a.yaml")
            .unwrap_or_default();
        (named.is_some() && change.contains("\"12\""))
            .then_some(())
            .ok_or(text)
    });
    until("the last one is applied", || {
        let key = follower.map("a").unwrap()["data"]["key"].clone();
        (key == "12").then_some(()).ok_or(key.to_string())
    });
    repo.git(&["fetch", "--quiet", "origin"]);
    for commit in &commits {
        repo.git(&["merge-base", "--is-ancestor", commit, "origin/main"]);
    }
    for nth in 1..=12 {
        assert!(
            repo.file(&format!("elsewhere/{nth}.txt")).is_some(),
            "{nth}"
        );
    }
}

#[test]
fn a_token_that_may_only_read_is_a_condition_and_syncing_goes_on() {
    let (Some(cluster), Some(_)) = (Cluster::shared(), Controller::shared(&["sync"])) else {
        return;
    };
    let repo = Repo::new("readonly");
    repo.write("deploy/a.yaml", &map("readonly", "a", "1"));
    let first = repo.push();
    let token = repo.server.read_only_token();
    let follower = Follower::with_token(cluster, &repo, token, &json!({ "commitStatus": true }));
    follower.synced(&first);
    await_condition(
        cluster,
        &follower.path(),
        "StatusCommitted",
        ("False", "StatusNotCommitted"),
    );
    repo.write("deploy/a.yaml", &map("readonly", "a", "2"));
    let second = repo.push();
    follower.synced(&second);
    assert!(repo.file(FILE).is_none());
    let pushes = |requests: Vec<String>| {
        let push = |request: &&String| request.contains("receive-pack");
        requests.iter().filter(push).count()
    };
    let tried = pushes(repo.server.requests());
    assert!(tried <= 4, "it is not tried at every period: {tried}");
}

#[test]
fn the_file_of_another_cluster_is_left_alone() {
    let (Some(cluster), Some(_)) = (Cluster::shared(), Controller::shared(&["sync"])) else {
        return;
    };
    let repo = Repo::new("twoclusters");
    repo.write("deploy/a.yaml", &map("twoclusters", "a", "1"));
    let theirs = "apiVersion: configsync.gke.io/v1beta1\nkind: SyncStatus\nstatus:\n  cluster: edge02\n  sync: {commit: abc}\n";
    repo.write(FILE, theirs);
    let commit = repo.push();
    let more = json!({ "commitStatus": true, "cluster": "edge01" });
    let follower = Follower::new(cluster, &repo, &more);
    follower.synced(&commit);
    let root = await_condition(
        cluster,
        &follower.path(),
        "StatusCommitted",
        ("False", "StatusNotCommitted"),
    );
    let conditions = root["status"]["conditions"].as_array().unwrap();
    let said: &Value = conditions
        .iter()
        .find(|c| c["type"] == "StatusCommitted")
        .unwrap();
    assert!(said["message"].to_string().contains("edge02"), "{said}");
    assert_eq!(repo.file(FILE).as_deref(), Some(theirs));
}
