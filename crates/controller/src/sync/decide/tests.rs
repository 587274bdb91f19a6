//! The rules of the header, one by one.

use mooring_api::Location;

use super::*;

const WHOSE: Whose<'_> = Whose {
    identity: "0123456789abcdef",
    name: "cms/root-sync",
    force: false,
    allow_empty: false,
};

fn written(api_version: &str, kind: &str, namespace: &str, name: &str) -> Written {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    Written {
        kind: Kind {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
        },
        namespace: namespace.into(),
        name: name.into(),
        value: json!({
            "apiVersion": api_version, "kind": kind,
            "metadata": { "name": name, "uid": "x", "labels": { "app": "upf" } },
        }),
        at: Location {
            file: format!("{name}.yaml"),
            line: 2,
            column: 1,
        },
    }
}

fn map(name: &str) -> Written {
    written("v1", "ConfigMap", "upf", name)
}

fn kinds() -> Kinds {
    let all = [
        ("", "v1", "ConfigMap", true),
        ("", "v1", "Namespace", false),
        ("apps", "v1", "Deployment", true),
        (
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
            false,
        ),
        ("k8s.cni.cncf.io", "v1", "NetworkAttachmentDefinition", true),
        (
            "admissionregistration.k8s.io",
            "v1",
            "ValidatingWebhookConfiguration",
            false,
        ),
    ];
    let kind = |(group, version, kind, namespaced): (&str, &str, &str, bool)| {
        let served = Served {
            plural: kind.to_lowercase() + "s",
            namespaced,
        };
        let kind = Kind {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
        };
        (kind, served)
    };
    all.into_iter().map(kind).collect()
}

fn resolved(all: &[Written]) -> Resolved {
    resolve(all, &kinds(), "default").expect("nothing is wrong")
}

fn remembered(name: &str, applied: bool, adopted: bool) -> Entry {
    Entry {
        key: resolved(&[map(name)]).wanted[0].key.clone(),
        version: "v1".into(),
        applied,
        adopted,
    }
}

fn live(label: Option<&str>) -> Live {
    Live {
        label: label.map(Into::into),
        synced_by: "cms/other".into(),
    }
}

fn names<'a>(keys: impl IntoIterator<Item = &'a Key>) -> Vec<&'a str> {
    keys.into_iter().map(|key| key.name.as_str()).collect()
}

#[test]
fn what_others_need_is_applied_first_and_removed_last() {
    let all = [
        written(
            "admissionregistration.k8s.io/v1",
            "ValidatingWebhookConfiguration",
            "",
            "hook",
        ),
        written("apps/v1", "Deployment", "upf", "upf"),
        written(
            "k8s.cni.cncf.io/v1",
            "NetworkAttachmentDefinition",
            "upf",
            "n3",
        ),
        written(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            "",
            "crd",
        ),
        written("v1", "Namespace", "", "upf-ns"),
    ];
    let plan = plan(
        &resolved(&all),
        &Inventory::default(),
        &BTreeMap::new(),
        WHOSE,
    )
    .expect("fine");
    let order = plan.steps.iter().flatten().map(|step| &step.key);
    assert_eq!(names(order), ["upf-ns", "crd", "n3", "upf", "hook"]);
    let entries = plan.ahead.entries.clone();
    assert_eq!(
        entries.len(),
        5,
        "everything is remembered before it is applied"
    );
    let one = resolved(&[map("one")]);
    let after = super::plan(&one, &plan.ahead, &BTreeMap::new(), WHOSE).expect("fine");
    let order = after.leaving.iter().map(|entry| &entry.key);
    assert_eq!(names(order), ["hook", "upf", "n3", "crd", "upf-ns"]);
    assert_eq!(
        after.ahead.entries.len(),
        6,
        "what leaves is remembered until it is gone"
    );
}

#[test]
fn two_objects_that_are_one_refuse_the_commit() {
    let twice = [map("a"), written("v1", "ConfigMap", "upf", "a")];
    let findings = resolve(&twice, &kinds(), "default").expect_err("one of them is too much");
    assert_eq!(findings[0].code, Code::DuplicateObject);
    assert!(
        findings[0].message.contains("a.yaml:2"),
        "{}",
        findings[0].message
    );
    // The same name elsewhere is another object; the default namespace is a namespace.
    let apart = [map("a"), written("v1", "ConfigMap", "", "a")];
    let wanted = resolve(&apart, &kinds(), "default").expect("two").wanted;
    assert_eq!(wanted[1].key.namespace, "default");
    assert!(resolve(&apart, &kinds(), "upf").is_err());
}

#[test]
fn a_namespace_on_an_object_of_the_whole_cluster_refuses_the_commit() {
    let wrong = [map("a"), written("v1", "Namespace", "upf", "x")];
    let findings = resolve(&wrong, &kinds(), "default").expect_err("it has none");
    assert_eq!(findings[0].code, Code::WrongScope);
    assert_eq!(findings[0].location.as_ref().map(|l| l.line), Some(2));
}

#[test]
fn an_unknown_kind_fails_alone_and_a_crd_beside_it_makes_it_known() {
    let link = || written("example.dev/v1", "Link", "upf", "l");
    let all = [map("a"), link()];
    let resolved = resolved(&all);
    assert_eq!(names(resolved.wanted.iter().map(|w| &w.key)), ["a"]);
    assert_eq!(resolved.unknown[0].finding.code, Code::UnknownKind);
    let mut crd = written(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "",
        "links.example.dev",
    );
    crd.value["spec"] = json!({
        "group": "example.dev", "scope": "Namespaced", "names": { "kind": "Link", "plural": "links" },
        "versions": [{ "name": "v1" }],
    });
    let mut kinds = kinds();
    kinds.extend(promised(&[crd]));
    let resolved = resolve(&[link()], &kinds, "default").expect("fine");
    assert_eq!(resolved.wanted[0].served.plural, "links");
}

#[test]
fn what_was_there_before_us_is_adopted_without_force() {
    let there = BTreeMap::from([(remembered("a", false, false).key, live(None))]);
    let plan = plan(
        &resolved(&[map("a"), map("b")]),
        &Inventory::default(),
        &there,
        WHOSE,
    )
    .expect("fine");
    let adopted: Vec<bool> = plan.ahead.entries.iter().map(|e| e.adopted).collect();
    assert_eq!(adopted, [true, false]);
    assert!(plan.steps.iter().flatten().all(|step| !step.force));
    // Remembered from before a crash: our own label on it does not make it ours to delete.
    let remembered = Inventory::new(vec![remembered("a", false, true)]);
    let labelled = BTreeMap::from([(
        remembered.entries[0].key.clone(),
        live(Some(WHOSE.identity)),
    )]);
    let plan = super::plan(&resolved(&[map("a")]), &remembered, &labelled, WHOSE).expect("fine");
    assert!(plan.ahead.entries[0].adopted);
}

#[test]
fn git_wins_in_what_was_applied_before_and_everywhere_when_asked() {
    let before = Inventory::new(vec![
        remembered("a", true, false),
        remembered("b", false, false),
    ]);
    let both = resolved(&[map("a"), map("b")]);
    let force = |whose| {
        let plan = plan(&both, &before, &BTreeMap::new(), whose).expect("fine");
        plan.steps
            .iter()
            .flatten()
            .map(|step| step.force)
            .collect::<Vec<_>>()
    };
    assert_eq!(force(WHOSE), [true, false]);
    assert_eq!(
        force(Whose {
            force: true,
            ..WHOSE
        }),
        [true, true]
    );
}

#[test]
fn an_object_of_another_rootsync_is_not_touched() {
    let there = BTreeMap::from([(remembered("a", false, false).key, live(Some("ffff")))]);
    let plan = plan(
        &resolved(&[map("a"), map("b")]),
        &Inventory::default(),
        &there,
        WHOSE,
    )
    .expect("fine");
    assert_eq!(names(plan.steps.iter().flatten().map(|s| &s.key)), ["b"]);
    assert_eq!(plan.failures[0].finding.code, Code::ObjectTaken);
    assert!(plan.failures[0].finding.message.contains("cms/other"));
    assert_eq!(names(plan.ahead.entries.iter().map(|e| &e.key)), ["b"]);
}

#[test]
fn nothing_left_in_git_removes_nothing_unless_allowed() {
    let before = Inventory::new(vec![remembered("a", true, false)]);
    let nothing = Resolved::default();
    let refused = plan(&nothing, &before, &BTreeMap::new(), WHOSE).expect_err("it is a guard");
    assert_eq!(refused.code, Code::SourceEmpty);
    assert!(refused.help.contains("allowEmpty"));
    let allowed = Whose {
        allow_empty: true,
        ..WHOSE
    };
    let plan = plan(&nothing, &before, &BTreeMap::new(), allowed).expect("allowed");
    assert_eq!(plan.leaving.len(), 1);
    // A cluster that never had anything is not guarded.
    assert!(super::plan(&nothing, &Inventory::default(), &BTreeMap::new(), WHOSE).is_ok());
}

#[test]
fn an_unknown_kind_that_is_remembered_does_not_leave() {
    let link = written("example.dev/v1", "Link", "upf", "l");
    let resolved = resolved(&[map("a"), link]);
    let before = Inventory::new(vec![Entry {
        key: resolved.unknown[0].key.clone(),
        version: "v1".into(),
        applied: true,
        adopted: false,
    }]);
    let plan = plan(&resolved, &before, &BTreeMap::new(), WHOSE).expect("fine");
    assert_eq!(plan.leaving, []);
    assert_eq!(plan.ahead.entries.len(), 2);
}

#[test]
fn what_is_sent_is_marked_placed_and_free_of_what_servers_write() {
    let all = [written("v1", "ConfigMap", "", "a")];
    let plan = plan(
        &resolved(&all),
        &Inventory::default(),
        &BTreeMap::new(),
        WHOSE,
    )
    .expect("fine");
    let metadata = &plan.steps[0][0].body["metadata"];
    let wanted = json!({
        "name": "a", "namespace": "default",
        "labels": { "app": "upf", "mooring.dev/sync": WHOSE.identity },
        "annotations": { "mooring.dev/synced-by": WHOSE.name },
    });
    assert_eq!(*metadata, wanted);
}

#[test]
fn changed_deleted_and_unseen_objects_have_drifted() {
    let all = ["same", "changed", "deleted", "new"].map(map);
    let plan = plan(
        &resolved(&all),
        &Inventory::default(),
        &BTreeMap::new(),
        WHOSE,
    )
    .expect("fine");
    let versions = |all: &[(&str, &str)]| {
        let one = |(name, version): &(&str, &str)| {
            (remembered(name, true, false).key, (*version).to_owned())
        };
        all.iter().map(one).collect::<BTreeMap<_, _>>()
    };
    let applied = versions(&[("same", "1"), ("changed", "1"), ("deleted", "1")]);
    let seen = versions(&[("same", "1"), ("changed", "2"), ("new", "1")]);
    assert_eq!(
        names(&drifted(&plan.steps, &applied, &seen)),
        ["changed", "deleted", "new"]
    );
}
