//! The lives of a variant's package: approved by policy or by hand, rejected, changed, deleted.

use mooring_package::Kpt;
use mooring_package::revision::Lifecycle;
use serde_json::json;

use super::scene::{Scene, Stage};
use crate::harness::until;

const ALWAYS: &str = "  annotations: {approval.nephio.org/policy: always}";

#[test]
fn a_variant_with_a_policy_becomes_a_published_package_with_a_tag() {
    let Some(stage) = Stage::shared() else {
        return;
    };
    let scene = stage.scene("policy", 101);
    scene.variant(
        "upf",
        "upf-a",
        "  annotations: {approval.nephio.org/policy: initial}",
    );
    let variant = scene.awaits("upf", "Published", ("True", "Published"));
    assert_eq!(variant["status"]["lifecycle"], "Published");
    assert_eq!(variant["status"]["version"], 1);
    assert_eq!(variant["status"]["cluster"], "edge01");
    let address = json!([{ "interface": "n3", "address": scene.address(20) }]);
    assert_eq!(variant["status"]["addresses"], address);
    let files = scene.published("upf-a").unwrap();
    let nad = Scene::nad(&files);
    assert!(
        nad.contains(&scene.address(20)) && nad.contains("\"master\": \"ens3\""),
        "{nad}"
    );
    let seen = scene.look("upf-a");
    assert_eq!(seen.newest.unwrap().version, 1);
    assert!(seen.open.is_empty(), "no branch is left: {:?}", seen.open);
    let kpt = Kpt::read(&files).unwrap();
    assert_eq!(kpt.unmet(), Vec::<&str>::new());
    assert_eq!(kpt.name, "upf-a");
    scene.awaits_leases(&[(20, "held")]);
}

#[test]
fn without_a_policy_a_person_approves_and_the_addresses_become_final() {
    let Some(stage) = Stage::shared() else {
        return;
    };
    let scene = stage.scene("byhand", 102);
    scene.variant("upf", "upf-a", "");
    let variant = scene.awaits("upf", "Specialised", ("True", "Rendered"));
    assert_eq!(variant["status"]["lifecycle"], "Draft");
    assert_eq!(variant["status"]["workspace"], "v1");
    let message = variant["status"]["conditions"].to_string();
    assert!(
        message.contains("moor package propose"),
        "it says what to do: {message}"
    );
    scene.awaits_leases(&[(20, "reserved")]);
    assert!(scene.published("upf-a").is_none());
    // Every commit of the draft is whole: nobody ever saw a half-mutated one.
    let bare = stage.git.path("byhand-edge");
    let log = Scene::git(&bare, &["log", "--format=%H", "drafts/upf-a/v1"]);
    for commit in log.lines() {
        let files = Scene::git(&bare, &["ls-tree", "-r", "--name-only", commit]);
        assert!(
            files.contains("networkattachmentdefinition_n3.yaml"),
            "{commit}: {files}"
        );
    }
    scene.approve("edge", "upf-a", "v1");
    scene.awaits("upf", "Published", ("True", "Published"));
    scene.awaits_leases(&[(20, "held")]);
}

#[test]
fn rejecting_a_draft_gives_its_addresses_back_and_it_is_not_made_again() {
    let Some(stage) = Stage::shared() else {
        return;
    };
    let scene = stage.scene("rejected", 103);
    scene.variant("upf", "upf-a", "");
    scene.awaits("upf", "Specialised", ("True", "Rendered"));
    scene.awaits_leases(&[(20, "reserved")]);
    scene.discard("edge", "upf-a", "v1");
    scene.awaits("upf", "Specialised", ("False", "DraftRejected"));
    scene.awaits_leases(&[]);
    assert!(scene.look("upf-a").open.is_empty(), "it is not made again");
    // What it is made from changes: then there is something new to decide on.
    scene.cluster("edge01", "ens9");
    scene.awaits("upf", "Specialised", ("True", "Rendered"));
    scene.awaits_leases(&[(20, "reserved")]);
}

#[test]
fn editing_the_cluster_makes_a_new_draft_with_the_same_addresses() {
    let Some(stage) = Stage::shared() else {
        return;
    };
    let scene = stage.scene("edited", 104);
    // Holes: allocating afresh would give another address.
    scene.variant("first", "upf-first", "");
    scene.awaits("first", "Specialised", ("True", "Rendered"));
    scene.variant(
        "upf",
        "upf-a",
        "  annotations: {approval.nephio.org/policy: initial}",
    );
    scene.awaits("upf", "Published", ("True", "Published"));
    stage.cluster.delete(&scene.path("first"));
    scene.awaits_leases(&[(21, "held")]);
    scene.cluster("edge01", "eth7");
    let variant = until("a second draft", || {
        let variant = scene.get("upf").ok_or("gone")?;
        let new = variant["status"]["workspace"] == "v2";
        new.then(|| variant.clone())
            .ok_or_else(|| variant["status"].to_string())
    });
    assert_eq!(variant["status"]["lifecycle"], "Draft");
    assert_eq!(
        variant["status"]["addresses"][0]["address"],
        scene.address(21)
    );
    let draft = &scene.look("upf-a").open[0];
    let nad = Scene::nad(&draft.files);
    assert!(
        nad.contains("eth7") && nad.contains(&scene.address(21)),
        "{nad}"
    );
    assert!(
        Scene::nad(&scene.published("upf-a").unwrap()).contains("ens3"),
        "published is as it was"
    );
    let events = stage.cluster.events(&scene.name, "upf");
    assert!(
        events.iter().any(|e| e.contains("no address changes")),
        "{events:?}"
    );
    scene.approve("edge", "upf-a", "v2");
    until("v2 is published", || {
        let variant = scene.get("upf").ok_or("gone")?;
        (variant["status"]["version"] == 2)
            .then_some(())
            .ok_or_else(|| variant["status"].to_string())
    });
    scene.awaits_leases(&[(21, "held")]);
}

#[test]
fn deleting_a_variant_removes_its_package_and_frees_everything() {
    let Some(stage) = Stage::shared() else {
        return;
    };
    let scene = stage.scene("deleted", 105);
    scene.variant("upf", "upf-a", ALWAYS);
    scene.variant("draft", "upf-b", "");
    scene.awaits("upf", "Published", ("True", "Published"));
    scene.awaits("draft", "Specialised", ("True", "Rendered"));
    assert_eq!(scene.leases().len(), 2);
    stage.cluster.delete(&scene.path("upf"));
    stage.cluster.delete(&scene.path("draft"));
    until("the variants are gone", || {
        let left: Vec<_> = ["upf", "draft"]
            .iter()
            .filter_map(|v| scene.get(v))
            .collect();
        left.is_empty()
            .then_some(())
            .ok_or_else(|| format!("{left:?}"))
    });
    scene.awaits_leases(&[]);
    assert!(scene.published("upf-a").is_none());
    assert!(scene.look("upf-b").open.is_empty());
}

#[test]
fn an_orphan_keeps_its_package_and_its_addresses() {
    let Some(stage) = Stage::shared() else {
        return;
    };
    let scene = stage.scene("orphan", 106);
    scene.variant(
        "upf",
        "upf-a",
        &format!("{ALWAYS}\n  deletionPolicy: orphan"),
    );
    scene.awaits("upf", "Published", ("True", "Published"));
    stage.cluster.delete(&scene.path("upf"));
    until("the variant is gone", || {
        scene.get("upf").map_or(Ok(()), |v| Err(v.to_string()))
    });
    assert!(scene.published("upf-a").is_some());
    scene.awaits_leases(&[(20, "held")]);
    // Another variant may take it over only where it says so.
    scene.variant("other", "upf-a", "");
    scene.awaits("other", "Ready", ("False", "DownstreamTaken"));
    scene.variant("other", "upf-a", "  adoptionPolicy: adoptExisting");
    let variant = scene.awaits("other", "Specialised", ("True", "Rendered"));
    assert_eq!(
        variant["status"]["addresses"][0]["address"],
        scene.address(20)
    );
}

#[test]
fn a_delay_is_waited_for() {
    let Some(stage) = Stage::shared() else {
        return;
    };
    let scene = stage.scene("delayed", 107);
    let policy = "approval.nephio.org/policy: always, approval.nephio.org/delay: 8s";
    scene.variant("upf", "upf-a", &format!("  annotations: {{{policy}}}"));
    let variant = scene.awaits("upf", "Published", ("False", "Draft"));
    assert!(
        variant["status"].to_string().contains("waits until"),
        "{}",
        variant["status"]
    );
    scene.awaits("upf", "Published", ("True", "Published"));
    let seen = scene.look("upf-a");
    assert_eq!(seen.deployed.unwrap().lifecycle, Lifecycle::Published);
}

#[test]
fn nothing_changed_means_nothing_written() {
    let Some(stage) = Stage::shared() else {
        return;
    };
    let scene = stage.scene("quiet", 108);
    scene.variant("upf", "upf-a", ALWAYS);
    let before = scene.awaits("upf", "Deployed", ("False", "NotReported"));
    let (lines, branch) = (
        stage.controller().log().lines().count(),
        scene.look("upf-a").branch,
    );
    // A push beside it wakes the variant, and three looks at Git pass.
    scene.draft("edge", "other", "edit", &scene.blueprint());
    until("the other draft was looked at", || {
        let seen = scene.look("other");
        let specialised = seen
            .open
            .iter()
            .any(|o| Kpt::read(&o.files).is_some_and(|k| !k.id.is_empty()));
        specialised
            .then_some(())
            .ok_or_else(|| format!("{lines} {seen:?}"))
    });
    let after = scene.get("upf").unwrap();
    assert_eq!(
        before["metadata"]["resourceVersion"],
        after["metadata"]["resourceVersion"]
    );
    assert_eq!(branch, scene.look("upf-a").branch);
}
