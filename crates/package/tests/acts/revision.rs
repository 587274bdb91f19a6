//! The life of revisions in a real repository, without addresses: only Git moves.

use std::fs;

use mooring_package::git::Files;
use mooring_package::revision::{
    Base, Draft, Error, Lifecycle, Revision, Upstream, Which, cloned, skeleton,
};

use crate::forge::{Forge, draft, files, name, push, workspace};

fn short(revision: &Revision) -> String {
    let workspace = revision
        .workspace
        .as_ref()
        .map(|w| format!(" {w}"))
        .unwrap_or_default();
    let version = revision
        .version
        .map(|v| format!(" v{v}"))
        .unwrap_or_default();
    let deployed = if revision.deployed { " deployed" } else { "" };
    let outdated = if revision.outdated { " outdated" } else { "" };
    let Revision {
        package, lifecycle, ..
    } = revision;
    format!("{package} {lifecycle}{workspace}{version}{deployed}{outdated}")
}

fn listed(forge: &Forge) -> Vec<String> {
    forge.packages().list().unwrap().iter().map(short).collect()
}

#[test]
fn a_package_goes_from_nothing_to_a_second_version_and_back() {
    let forge = Forge::empty();
    let packages = forge.packages();
    let (gnb, first, second) = (name("ran/gnb"), workspace("first"), workspace("second"));
    assert!(packages.list().unwrap().is_empty());

    let begun = skeleton(&gnb, Some("A base station"));
    packages
        .start(&gnb, &first, begun.clone(), "Begin".into())
        .unwrap();
    assert_eq!(listed(&forge), ["ran/gnb Draft first"]);
    assert_eq!(forge.refs(), ["drafts/ran/gnb/first"]);

    let dir = forge.place.path("work");
    packages
        .pull(&gnb, &Which::Draft(first.clone()), &dir)
        .unwrap();
    forge
        .place
        .write("work/deployment.yaml", "kind: Deployment\n");
    let mut edited = mooring_package::revision::read_directory(&dir).unwrap();
    assert!(!edited.contains_key(".moor-package"));
    let origin = mooring_package::revision::Origin::read(&dir).unwrap();
    push(
        &packages,
        "ran/gnb",
        "first",
        &edited,
        Base::At(origin.commit),
    );

    packages.propose(&gnb, &first, None, None).unwrap();
    assert_eq!(listed(&forge), ["ran/gnb Proposed first"]);
    let published = packages.approve(&gnb, &first, None, None).unwrap();
    assert_eq!((published.version, published.unchanged), (1, false));
    assert_eq!(forge.refs(), ["main", "ran/gnb/v1"]);
    assert_eq!(listed(&forge), ["ran/gnb Published first v1 deployed"]);
    assert_eq!(
        forge.show("main:ran/gnb/deployment.yaml").unwrap(),
        "kind: Deployment\n"
    );

    edited.insert("deployment.yaml".into(), b"kind: StatefulSet\n".to_vec());
    edited.remove("package-context.yaml");
    push(
        &packages,
        "ran/gnb",
        "second",
        &edited,
        Base::At(published.commit),
    );
    packages.propose(&gnb, &second, None, None).unwrap();
    assert_eq!(
        packages.approve(&gnb, &second, None, None).unwrap().version,
        2
    );
    assert!(forge.show("main:ran/gnb/package-context.yaml").is_none());

    let back = packages.rollback(&gnb, 1, None).unwrap();
    assert_eq!((back.version, back.unchanged), (3, false));
    assert_eq!(
        forge.show("main:ran/gnb/deployment.yaml").unwrap(),
        "kind: Deployment\n"
    );
    assert!(forge.show("main:ran/gnb/package-context.yaml").is_some());
    assert!(packages.rollback(&gnb, 1, None).unwrap().unchanged);
    assert_eq!(
        listed(&forge),
        [
            "ran/gnb Published first v1",
            "ran/gnb Published second v2",
            "ran/gnb Published v3 deployed",
        ]
    );

    push(&packages, "ran/gnb", "third", &edited, Base::Any);
    assert!(packages.delete(&gnb).unwrap());
    assert!(!packages.delete(&gnb).unwrap());
    assert!(forge.show("main:ran").is_none());
    assert_eq!(
        forge.refs(),
        ["main", "ran/gnb/v1", "ran/gnb/v2", "ran/gnb/v3"]
    );
    // It comes back under the next number.
    assert_eq!(packages.rollback(&gnb, 2, None).unwrap().version, 4);
    forge.git("origin.git", &["fsck", "--strict"]);
}

#[test]
fn every_act_can_be_run_again() {
    let forge = Forge::new();
    let packages = forge.packages();
    let (p, w) = (name("p"), workspace("w"));
    let content = files("p", &[("x.yaml", "a: 1\n")]);
    let first = push(&packages, "p", "w", &content, Base::New);
    let again = push(&packages, "p", "w", &content, Base::New);
    assert_eq!(
        (again.commit.clone(), again.unchanged),
        (first.commit, true)
    );
    packages.propose(&p, &w, None, None).unwrap();
    assert!(packages.propose(&p, &w, None, None).unwrap().unchanged);
    assert!(!packages.reject(&p, &w).unwrap().unchanged);
    assert!(packages.reject(&p, &w).unwrap().unchanged);
    packages.propose(&p, &w, None, None).unwrap();
    let published = packages.approve(&p, &w, None, None).unwrap();
    let again = packages.approve(&p, &w, None, None).unwrap();
    assert_eq!((again.version, again.unchanged), (1, true));
    assert_eq!(again.commit, published.commit);
    push(&packages, "p", "x", &files("p", &[]), Base::Any);
    assert!(packages.discard(&p, &workspace("x")).unwrap());
    assert!(!packages.discard(&p, &workspace("x")).unwrap());
    assert_eq!(forge.refs(), ["main", "p/v1"]);
}

#[test]
fn acts_in_the_wrong_order_are_refused_and_change_nothing() {
    let forge = Forge::new();
    let packages = forge.packages();
    let (p, w) = (name("p"), workspace("w"));
    let absent = |e: Error| assert!(matches!(e, Error::Absent { .. }), "{e:?}");
    absent(packages.propose(&p, &w, None, None).unwrap_err());
    absent(packages.approve(&p, &w, None, None).unwrap_err());
    absent(packages.reject(&p, &w).unwrap_err());
    absent(packages.rollback(&p, 1, None).unwrap_err());
    absent(packages.need(&p, &Which::Deployed).unwrap_err());
    push(&packages, "p", "w", &files("p", &[]), Base::New);
    let before = forge.refs();
    let error = packages.approve(&p, &w, None, None).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Wrong {
                is: Lifecycle::Draft,
                ..
            }
        ),
        "{error:?}"
    );
    packages.propose(&p, &w, None, None).unwrap();
    let error = packages
        .write(&draft("p", "w", &files("p", &[("x", "")]), Base::Any))
        .unwrap_err();
    assert!(
        matches!(
            error,
            Error::Wrong {
                is: Lifecycle::Proposed,
                ..
            }
        ),
        "{error:?}"
    );
    let error = packages
        .write(&draft("p", "n", &Files::default(), Base::New))
        .unwrap_err();
    assert!(matches!(error, Error::NoPackage { .. }), "{error:?}");
    for path in ["../x", "a/../../x", ".git/config", "a//b", ""] {
        let error = packages
            .write(&draft("p", "n", &files("p", &[(path, "")]), Base::New))
            .unwrap_err();
        assert!(
            matches!(error, Error::NoPackage { .. }),
            "{path}: {error:?}"
        );
    }
    assert_eq!(before.len(), forge.refs().len());
}

#[test]
fn a_commit_that_arrives_between_deciding_and_pushing_is_kept() {
    let forge = Forge::new();
    let (p, w) = (name("p"), workspace("w"));
    push(
        &forge.packages(),
        "p",
        "w",
        &files("p", &[("x.yaml", "a: 1\n")]),
        Base::New,
    );
    forge.packages().propose(&p, &w, None, None).unwrap();

    let person = forge.place.path("other");
    crate::forge::git(
        &forge.place.path("."),
        &["clone", "-q", &forge.url(), "other"],
    );
    let (packages, tries) = forge.disturbed(move |nth| {
        if nth == 0 {
            fs::create_dir_all(person.join("q")).unwrap();
            fs::write(person.join("q/Kptfile"), "kind: Kptfile\n").unwrap();
            crate::forge::git(&person, &["add", "."]);
            crate::forge::git(&person, &["commit", "-qm", "q"]);
            crate::forge::git(&person, &["push", "-q", "origin", "HEAD:main"]);
        }
    });
    assert_eq!(packages.approve(&p, &w, None, None).unwrap().version, 1);
    assert_eq!(tries.load(std::sync::atomic::Ordering::SeqCst), 2);
    assert!(forge.show("main:q/Kptfile").is_some());
    assert!(forge.show("main:p/x.yaml").is_some());
    let log = forge.git("origin.git", &["log", "--format=%s", "main"]);
    assert_eq!(
        log.lines().collect::<Vec<_>>(),
        ["Publish p v1", "q", "begin"]
    );
    assert_eq!(forge.refs(), ["main", "p/v1"]);
}

#[test]
fn who_is_always_faster_wins_and_nothing_of_ours_is_left() {
    let forge = Forge::new();
    let (p, w) = (name("p"), workspace("w"));
    push(&forge.packages(), "p", "w", &files("p", &[]), Base::New);
    forge.packages().propose(&p, &w, None, None).unwrap();
    let person = forge.place.path("person");
    let (mut packages, tries) = forge.disturbed(move |nth| {
        fs::write(person.join("n"), nth.to_string()).unwrap();
        crate::forge::git(&person, &["add", "."]);
        crate::forge::git(&person, &["commit", "-qm", "n"]);
        crate::forge::git(&person, &["push", "-q", "origin", "HEAD:main"]);
    });
    packages.git.tries = 3;
    let error = packages.approve(&p, &w, None, None).unwrap_err();
    assert_eq!(error.reason(), "GitMoved", "{error:?}");
    assert!(error.is_transient());
    assert_eq!(tries.load(std::sync::atomic::Ordering::SeqCst), 3);
    assert_eq!(forge.refs(), ["main", "proposed/p/w"]);
}

#[test]
fn a_proposal_that_was_replaced_between_looking_and_approving_is_not_approved() {
    let forge = Forge::new();
    let packages = forge.packages();
    let (p, w) = (name("p"), workspace("w"));
    push(&packages, "p", "w", &files("p", &[]), Base::New);
    let seen = packages.propose(&p, &w, None, None).unwrap().commit;
    packages.reject(&p, &w).unwrap();
    push(
        &packages,
        "p",
        "w",
        &files("p", &[("evil.yaml", "a: 1\n")]),
        Base::Any,
    );
    packages.propose(&p, &w, None, None).unwrap();
    let error = packages.approve(&p, &w, Some(&seen), None).unwrap_err();
    assert!(matches!(error, Error::DraftMoved { .. }), "{error:?}");
    assert_eq!(forge.refs(), ["main", "proposed/p/w"]);
}

#[test]
fn the_second_of_two_workspaces_must_take_the_first_into_account() {
    let forge = Forge::new();
    let packages = forge.packages();
    let (p, one, two) = (name("p"), workspace("one"), workspace("two"));
    assert_eq!(forge.publish("p", "zero", &files("p", &[("x", "0")])), 1);
    push(&packages, "p", "one", &files("p", &[("x", "1")]), Base::New);
    let tip = push(&packages, "p", "two", &files("p", &[("x", "2")]), Base::New);
    assert_eq!(
        listed(&forge),
        ["p Draft one", "p Draft two", "p Published zero v1 deployed"]
    );
    for w in [&one, &two] {
        packages.propose(&p, w, None, None).unwrap();
    }
    assert_eq!(packages.approve(&p, &one, None, None).unwrap().version, 2);
    let error = packages.approve(&p, &two, None, None).unwrap_err();
    assert!(matches!(error, Error::Outdated { .. }), "{error:?}");
    assert!(listed(&forge).contains(&"p Proposed two outdated".to_owned()));
    assert_eq!(forge.show("main:p/x").unwrap(), "1");

    packages.reject(&p, &two).unwrap();
    let merged = Draft {
        onto_published: true,
        ..draft(
            "p",
            "two",
            &files("p", &[("x", "1 and 2")]),
            Base::At(tip.commit),
        )
    };
    packages.write(&merged).unwrap();
    assert!(packages.write(&merged).unwrap().unchanged);
    packages.propose(&p, &two, None, None).unwrap();
    assert_eq!(packages.approve(&p, &two, None, None).unwrap().version, 3);
    assert_eq!(forge.show("main:p/x").unwrap(), "1 and 2");
}

#[test]
fn what_a_person_edited_on_the_deployment_branch_is_not_overwritten() {
    let forge = Forge::new();
    let packages = forge.packages();
    let (p, w) = (name("p"), workspace("w"));
    forge.publish("p", "zero", &files("p", &[("x", "0")]));
    push(
        &packages,
        "p",
        "w",
        &files("p", &[("x", "draft")]),
        Base::New,
    );
    packages.propose(&p, &w, None, None).unwrap();
    forge.commit("p/x", "by hand");
    assert!(listed(&forge).contains(&"p Published zero v1 deployed outdated".to_owned()));
    let error = packages.approve(&p, &w, None, None).unwrap_err();
    assert!(matches!(error, Error::Outdated { .. }), "{error:?}");
    assert_eq!(forge.show("main:p/x").unwrap(), "by hand");
    // Elsewhere they may edit what they like.
    let other = forge.packages();
    push(&other, "q", "w", &files("q", &[]), Base::New);
    other.propose(&name("q"), &w, None, None).unwrap();
    forge.commit("notes.md", "x");
    assert_eq!(
        other.approve(&name("q"), &w, None, None).unwrap().version,
        1
    );
}

#[test]
fn a_package_inside_another_one_lives_its_own_life() {
    let forge = Forge::new();
    let packages = forge.packages();
    forge.publish(
        "a",
        "w",
        &files("a", &[("x", "1"), ("part/Kptfile", "kind: Kptfile\n")]),
    );
    forge.publish("a/b", "w", &files("b", &[("y", "1")]));
    assert_eq!(
        listed(&forge),
        ["a Published w v1 deployed", "a/b Published w v1 deployed"]
    );
    let read = packages.need(&name("a"), &Which::Deployed).unwrap().files;
    assert_eq!(
        read.keys().collect::<Vec<_>>(),
        ["Kptfile", "part/Kptfile", "x"]
    );

    // A draft that began before is not outdated by it, and publishing does not remove it.
    let tip = push(
        &packages,
        "a",
        "second",
        &files("a", &[("x", "2")]),
        Base::Any,
    );
    forge.publish("a/b", "more", &files("b", &[("y", "2")]));
    assert!(listed(&forge).contains(&"a Draft second".to_owned()));
    packages
        .propose(&name("a"), &workspace("second"), Some(&tip.commit), None)
        .unwrap();
    packages
        .approve(&name("a"), &workspace("second"), None, None)
        .unwrap();
    assert_eq!(forge.show("main:a/x").unwrap(), "2");
    assert_eq!(forge.show("main:a/b/y").unwrap(), "2");
    assert!(forge.show("main:a/part/Kptfile").is_none());

    packages.rollback(&name("a"), 1, None).unwrap();
    assert_eq!(forge.show("main:a/b/y").unwrap(), "2");
    packages.delete(&name("a")).unwrap();
    assert!(forge.show("main:a/x").is_none());
    assert_eq!(forge.show("main:a/b/y").unwrap(), "2");
}

#[test]
fn names_with_dots_and_dashes_are_kept_and_names_in_the_way_are_said() {
    let forge = Forge::new();
    let packages = forge.packages();
    forge.publish("a.b/c-d_e", "w.1", &files("c", &[]));
    assert_eq!(forge.refs(), ["main", "a.b/c-d_e/v1"]);
    push(&packages, "p", "q", &files("p", &[]), Base::New);
    let error = packages
        .write(&draft("p/q", "w", &files("q", &[]), Base::New))
        .unwrap_err();
    assert!(
        matches!(&error, Error::InTheWay { other, .. } if other == "drafts/p/q"),
        "{error:?}"
    );
}

#[test]
fn a_draft_that_a_person_pushed_is_like_any_other_and_nothing_else_of_it_is_published() {
    let forge = Forge::new();
    forge.git("person", &["checkout", "-q", "-b", "drafts/p/mine"]);
    forge.place.write(
        "person/p/Kptfile",
        "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: p\n",
    );
    forge.place.write("person/README.md", "Changed too.\n");
    forge.git("person", &["add", "."]);
    forge.git("person", &["commit", "-qm", "p"]);
    forge.git("person", &["push", "-q", "origin", "drafts/p/mine"]);
    let packages = forge.packages();
    assert_eq!(listed(&forge), ["p Draft mine"]);
    packages
        .propose(&name("p"), &workspace("mine"), None, None)
        .unwrap();
    packages
        .approve(&name("p"), &workspace("mine"), None, None)
        .unwrap();
    assert_eq!(forge.show("main:README.md").unwrap(), "Packages.\n");
    assert!(forge.show("main:p/Kptfile").is_some());
}

#[test]
fn a_draft_that_moved_is_not_written_over() {
    let forge = Forge::new();
    let packages = forge.packages();
    let first = push(&packages, "p", "w", &files("p", &[("x", "1")]), Base::New);
    push(
        &packages,
        "p",
        "w",
        &files("p", &[("x", "2")]),
        Base::At(first.commit.clone()),
    );
    for base in [Base::At(first.commit.clone()), Base::New] {
        let error = packages
            .write(&draft("p", "w", &files("p", &[("x", "3")]), base))
            .unwrap_err();
        assert!(matches!(error, Error::DraftMoved { .. }), "{error:?}");
    }
    assert_eq!(forge.show("drafts/p/w:p/x").unwrap(), "2");
    // Into another workspace it may go: what is published has not changed since.
    push(
        &packages,
        "p",
        "other",
        &files("p", &[("x", "3")]),
        Base::At(first.commit),
    );
}

#[test]
fn packages_live_below_the_directory_of_the_repository() {
    let forge = Forge::new();
    forge.commit("elsewhere/Kptfile", "kind: Kptfile\n");
    let mut packages = forge.packages();
    packages.repository.directory = "packages/prod".into();
    let (p, w) = (name("p"), workspace("w"));
    push(&packages, "p", "w", &files("p", &[]), Base::New);
    packages.propose(&p, &w, None, None).unwrap();
    packages.approve(&p, &w, None, None).unwrap();
    assert!(forge.show("main:packages/prod/p/Kptfile").is_some());
    let listed = packages.list().unwrap();
    assert_eq!(
        listed.iter().map(short).collect::<Vec<_>>(),
        ["p Published w v1 deployed"]
    );
    assert_eq!(packages.deployed().unwrap(), [p]);
}

#[test]
fn a_package_that_was_committed_by_hand_is_listed_without_a_version() {
    let forge = Forge::new();
    forge.commit("p/Kptfile", "kind: Kptfile\n");
    forge.commit("p/sub/Kptfile", "kind: Kptfile\n");
    assert_eq!(listed(&forge), ["p Published deployed"]);
}

#[test]
fn gates_that_are_not_met_are_not_published() {
    let forge = Forge::new();
    let packages = forge.packages();
    let (p, w) = (name("p"), workspace("w"));
    let kptfile = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: p\ninfo:\n  readinessGates:\n  - conditionType: a\n  - conditionType: b\nstatus:\n  conditions:\n  - type: a\n    status: \"True\"\n";
    push(
        &packages,
        "p",
        "w",
        &files("p", &[("Kptfile", kptfile)]),
        Base::New,
    );
    packages.propose(&p, &w, None, None).unwrap();
    let error = packages.approve(&p, &w, None, None).unwrap_err();
    assert!(
        matches!(&error, Error::NotReady { gates, .. } if gates == &["b"]),
        "{error:?}"
    );
    assert_eq!(forge.refs(), ["main", "proposed/p/w"]);
}

#[test]
fn a_pull_writes_over_what_it_can_bring_back_and_over_nothing_else() {
    let forge = Forge::new();
    let packages = forge.packages();
    let p = name("p");
    forge.publish("p", "a", &files("p", &[("x", "1"), ("old", "1")]));
    let dir = forge.place.path("work");
    assert_eq!(
        packages.pull(&p, &Which::Deployed, &dir).unwrap().changed,
        3
    );
    assert_eq!(
        packages.pull(&p, &Which::Deployed, &dir).unwrap().changed,
        0
    );
    forge.publish("p", "b", &files("p", &[("x", "2"), ("new/file", "1")]));
    assert_eq!(
        packages.pull(&p, &Which::Deployed, &dir).unwrap().changed,
        3
    );
    assert!(!dir.join("old").exists() && dir.join("new/file").exists());
    fs::write(dir.join("x"), "mine").unwrap();
    forge.publish("p", "c", &files("p", &[("x", "3")]));
    let error = packages.pull(&p, &Which::Deployed, &dir).unwrap_err();
    assert!(matches!(error, Error::DirectoryChanged { .. }), "{error:?}");
    assert_eq!(fs::read_to_string(dir.join("x")).unwrap(), "mine");
    forge.place.write("theirs/file", "x");
    assert!(
        packages
            .pull(&p, &Which::Version(1), &forge.place.path("theirs"))
            .is_err()
    );
}

#[test]
fn a_clone_says_where_it_comes_from_and_has_no_identity_yet() {
    let forge = Forge::new();
    let kptfile = "# kept\napiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: gnb # its name\n  annotations:\n    mooring.dev/package-id: abc\n    other: x\n";
    forge.publish("gnb", "w", &files("gnb", &[("Kptfile", kptfile)]));
    let content = forge
        .packages()
        .need(&name("gnb"), &Which::Ref("gnb/v1".into()))
        .unwrap();
    let from = Upstream {
        repository: "catalog.git".into(),
        directory: "gnb".into(),
        reference: "gnb/v1".into(),
        commit: content.commit.clone(),
    };
    let made = cloned(&content.files, &name("ran/gnb-2"), &from).unwrap();
    let text = String::from_utf8(made["Kptfile"].clone()).unwrap();
    assert!(text.starts_with("# kept\n"), "{text}");
    assert!(text.contains("name: gnb-2 # its name"), "{text}");
    assert!(
        !text.contains("package-id") && text.contains("other: x"),
        "{text}"
    );
    let value = mooring_krm::File::parse(text.as_bytes())
        .unwrap()
        .documents()[0]
        .value()
        .clone();
    assert_eq!(value["upstream"]["git"]["ref"], "gnb/v1");
    assert_eq!(
        value["upstreamLock"]["git"]["commit"],
        content.commit.as_str()
    );
    let context = String::from_utf8(made["package-context.yaml"].clone()).unwrap();
    assert!(context.contains("name: gnb-2"), "{context}");
}

#[test]
fn a_package_that_is_there_is_not_begun_again() {
    let forge = Forge::new();
    let packages = forge.packages();
    let (p, w) = (name("p"), workspace("w"));
    packages
        .start(&p, &w, files("p", &[]), "Begin".into())
        .unwrap();
    assert!(
        packages
            .start(&p, &w, files("p", &[]), "Begin".into())
            .unwrap()
            .unchanged
    );
    let error = packages
        .start(&p, &w, files("p", &[("x", "")]), "Begin".into())
        .unwrap_err();
    assert!(matches!(error, Error::Exists { .. }), "{error:?}");
    forge.publish("q", "w", &files("q", &[]));
    let error = packages
        .start(&name("q"), &w, files("q", &[]), "Begin".into())
        .unwrap_err();
    assert!(matches!(error, Error::Exists { .. }), "{error:?}");
}

#[test]
fn a_draft_that_somebody_removed_is_not_made_again_by_who_was_changing_it() {
    let forge = Forge::new();
    let packages = forge.packages();
    let tip = push(&packages, "p", "w", &files("p", &[]), Base::New).commit;
    let changed = files("p", &[("more.yaml", "kind: ConfigMap\n")]);
    let change = draft("p", "w", &changed, Base::Tip(tip.clone()));
    packages
        .discard(&name("p"), &workspace("w"))
        .expect("it is removed");
    let refused = packages.write(&change).expect_err("it is gone");
    assert!(matches!(refused, Error::Absent { .. }), "{refused}");
    assert!(
        packages
            .look(&name("p"))
            .expect("it is read")
            .open
            .is_empty()
    );
    // Where it is still there and still the same, it is changed; where it moved, it is not.
    let tip = push(&packages, "p", "w", &files("p", &[]), Base::New).commit;
    let change = draft("p", "w", &changed, Base::Tip(tip));
    packages.write(&change).expect("it is as it was seen");
    let other = draft("p", "w", &files("p", &[]), change.base);
    let refused = packages.write(&other).expect_err("it has moved");
    assert!(matches!(refused, Error::DraftMoved { .. }), "{refused}");
}

#[test]
fn a_draft_that_is_removed_between_the_look_and_the_push_stays_removed() {
    let forge = Forge::new();
    let packages = forge.packages();
    let tip = push(&packages, "p", "w", &files("p", &[]), Base::New).commit;
    let remover = forge.packages();
    let (changing, tries) = forge.disturbed(move |nth| {
        if nth == 0 {
            let removed = remover.discard(&name("p"), &workspace("w"));
            removed.expect("it is removed");
        }
    });
    let changed = files("p", &[("more.yaml", "kind: ConfigMap\n")]);
    let change = draft("p", "w", &changed, Base::Tip(tip));
    let refused = changing.write(&change).expect_err("it is gone");
    assert!(matches!(refused, Error::Absent { .. }), "{refused}");
    let open = packages.look(&name("p")).expect("it is read").open;
    assert!(open.is_empty(), "it is made again");
    assert_eq!(
        tries.load(std::sync::atomic::Ordering::SeqCst),
        1,
        "it was disturbed"
    );
}

#[test]
fn what_is_open_and_what_is_published_is_seen_at_once() {
    let forge = Forge::new();
    let packages = forge.packages();
    forge.publish("a", "w", &files("a", &[]));
    push(&packages, "b", "x", &files("b", &[]), Base::New);
    let before = packages.standing().expect("it is read");
    let open: Vec<String> = before
        .open
        .iter()
        .map(|(package, open)| format!("{package} {}", open.workspace))
        .collect();
    assert_eq!(open, ["b x"]);
    assert_eq!(packages.standing().expect("again").digest, before.digest);
    let published = packages.published().expect("it is read");
    let there = |wanted: &str| {
        published
            .iter()
            .any(|(package, _)| package.as_str() == wanted)
    };
    assert!(there("a") && !there("b"));
    push(&packages, "b", "y", &files("b", &[]), Base::New);
    assert_ne!(packages.standing().expect("pushed").digest, before.digest);
}
