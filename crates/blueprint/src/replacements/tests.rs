use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::bundle::Marks;

fn object(value: Value) -> Object {
    Object {
        value,
        source: None,
    }
}

fn config(replacements: &Value) -> Object {
    object(
        json!({ "apiVersion": "fn.kpt.dev/v1alpha1", "kind": "ApplyReplacements",
        "metadata": { "name": "names" }, "replacements": replacements }),
    )
}

/// What the published blueprints do with the name of the cluster.
fn names() -> Object {
    config(&json!([{
        "source": { "kind": "WorkloadCluster", "name": "workload-cluster", "fieldPath": "spec.clusterName" },
        "targets": [
            { "select": { "kind": "NFDeployment" }, "fieldPaths": ["metadata.name"],
              "options": { "delimiter": "-", "index": 1 } },
            { "select": { "kind": "Interface" },
              "fieldPaths": ["metadata.annotations.[specializer.nephio.org/owner]"],
              "options": { "delimiter": "-", "index": 1 } },
        ],
    }]))
}

const OWNER: &str = "workload.nephio.org/v1alpha1.NFDeployment.upf-";

fn package(with_config: bool) -> Bundle {
    let mut objects = vec![
        object(
            json!({ "apiVersion": "infra.nephio.org/v1alpha1", "kind": "WorkloadCluster",
            "metadata": { "name": "workload-cluster" }, "spec": { "clusterName": "example" } }),
        ),
        object(
            json!({ "apiVersion": "workload.nephio.org/v1alpha1", "kind": "NFDeployment",
            "metadata": { "name": "upf-example" } }),
        ),
        object(
            json!({ "apiVersion": "req.nephio.org/v1alpha1", "kind": "Interface", "metadata": {
            "name": "n3", "annotations": { "specializer.nephio.org/owner": format!("{OWNER}example") } } }),
        ),
    ];
    if with_config {
        objects.push(names());
    }
    Bundle {
        objects: objects.into(),
        marks: Marks::default(),
    }
}

fn render(bundle: &mut Bundle, cluster: &str) -> Vec<Finding> {
    bundle.objects[0].value["spec"]["clusterName"] = json!(cluster);
    apply(bundle, &names())
}

fn is_for(bundle: &Bundle, cluster: &str) -> bool {
    let owner = bundle.objects[2].annotation("specializer.nephio.org/owner");
    bundle.objects[1].name() == format!("upf-{cluster}")
        && owner == Some(&format!("{OWNER}{cluster}"))
        && bundle.objects.has(&format!("upf-{cluster}"))
}

#[test]
fn a_name_without_delimiter_is_replaced_as_published_and_leaves_no_note() {
    let mut bundle = package(true);
    for cluster in ["edge01", "edge01", "regional"] {
        assert_eq!(render(&mut bundle, cluster), []);
        assert!(is_for(&bundle, cluster));
    }
    assert_eq!(bundle.objects[3], names());
}

#[test]
fn a_name_with_the_delimiter_survives_and_is_told() {
    let mut bundle = package(true);
    for _ in 0..3 {
        let said = render(&mut bundle, "edge-cluster-1");
        let codes: Vec<Code> = said.iter().map(|f| f.code).collect();
        assert_eq!(codes, [Code::DelimiterInValue]);
        assert!(is_for(&bundle, "edge-cluster-1"));
    }
}

#[test]
fn without_a_place_for_notes_the_same_name_survives() {
    let mut bundle = package(false);
    for _ in 0..3 {
        render(&mut bundle, "edge-cluster-1");
        assert!(is_for(&bundle, "edge-cluster-1"));
    }
}

proptest! {
    #[test]
    fn a_package_goes_from_any_cluster_to_any_other(
        clusters in prop::collection::vec("[a-c1](-?[a-c1.]){0,6}", 1..6)
    ) {
        let mut bundle = package(true);
        for cluster in &clusters {
            render(&mut bundle, cluster);
            prop_assert!(is_for(&bundle, cluster), "{clusters:?}");
            let once = bundle.clone();
            render(&mut bundle, cluster);
            prop_assert!(bundle == once, "{clusters:?}");
        }
    }
}

#[test]
fn parts_are_replaced_put_in_front_and_put_behind() {
    let at = |index| Options {
        delimiter: ".".to_owned(),
        index,
        create: false,
    };
    for (old, index, new) in [
        ("a.b.c", 0, "X.b.c"),
        ("a.b.c", 2, "a.b.X"),
        ("a.b.c", 7, "a.b.c.X"),
        ("a.b.c", -1, "X.a.b.c"),
        ("", 0, "X"),
    ] {
        let once = part(old, "X", None, &at(index));
        assert_eq!(once, new);
        assert_eq!(part(&once, "X", None, &at(index)), new, "once more");
    }
}

#[test]
fn lists_are_met_by_position_by_field_and_as_a_whole() {
    let target = |path: &str, options: &Value| {
        json!([{ "source": { "kind": "Source", "fieldPath": "data.v" },
            "targets": [{ "select": { "kind": "Target" }, "fieldPaths": [path], "options": options }] }])
    };
    let spec = json!({ "refs": [{ "name": "a", "ns": "x" }, { "name": "b", "ns": "x" }] });
    for (path, options, expected) in [
        ("spec.refs.1.ns", json!({}), json!(["x", "V"])),
        ("spec.refs.[name=a].ns", json!({}), json!(["V", "x"])),
        ("spec.refs.*.ns", json!({}), json!(["V", "V"])),
    ] {
        let mut bundle = Bundle {
            objects: vec![
                object(
                    json!({ "kind": "Source", "metadata": { "name": "s" }, "data": { "v": "V" } }),
                ),
                object(json!({ "kind": "Target", "metadata": { "name": "t" }, "spec": spec })),
            ]
            .into(),
            marks: Marks::default(),
        };
        assert_eq!(apply(&mut bundle, &config(&target(path, &options))), []);
        let refs = bundle.objects[1].value["spec"]["refs"].as_array().unwrap();
        let has: Vec<&Value> = refs.iter().map(|r| &r["ns"]).collect();
        assert_eq!(json!(has), expected, "{path}");
    }
}

#[test]
fn a_missing_field_is_made_where_asked_and_an_error_elsewhere() {
    let wanted = |create: bool| {
        config(
            &json!([{ "source": { "kind": "Pod", "name": "p", "fieldPath": "spec" },
            "targets": [{ "select": { "kind": "Job", "name": "hello" },
                "reject": [{ "kind": "Job", "name": "no" }],
                "fieldPaths": ["spec.template.spec"], "options": { "create": create } }] }]),
        )
    };
    let fresh = || Bundle {
        objects: vec![
            object(json!({ "kind": "Pod", "metadata": { "name": "p" }, "spec": { "a": 1 } })),
            object(json!({ "kind": "Job", "metadata": { "name": "hello" } })),
            object(json!({ "kind": "Job", "metadata": { "name": "no" } })),
        ]
        .into(),
        marks: Marks::default(),
    };
    let mut bundle = fresh();
    assert_eq!(apply(&mut bundle, &wanted(true)), []);
    assert_eq!(
        bundle.objects[1].value["spec"],
        json!({ "template": { "spec": { "a": 1 } } })
    );
    assert_eq!(bundle.objects[2], fresh().objects[2]);

    let mut bundle = fresh();
    let said = apply(&mut bundle, &wanted(false));
    assert!(said.iter().any(Finding::is_error));
    assert_eq!(
        said[0].field.as_deref(),
        Some("replacements[0].targets[0].fieldPaths")
    );
    assert_eq!(bundle, fresh());
}

#[test]
fn a_source_must_be_there_and_be_one() {
    let replaced = |kind: &str| config(&json!([{ "source": { "kind": kind }, "targets": [] }]));
    let mut bundle = package(false);
    bundle.objects.push(object(
        json!({ "kind": "Interface", "metadata": { "name": "n4" } }),
    ));
    for kind in ["Nobody", "Interface"] {
        let said = apply(&mut bundle, &replaced(kind));
        assert_eq!(said.len(), 1, "{kind}");
        assert_eq!(said[0].field.as_deref(), Some("replacements[0].source"));
    }
}

#[test]
fn labels_narrow_a_selection() {
    let labelled =
        object(json!({ "kind": "X", "metadata": { "name": "x", "labels": { "a": "1" } } }));
    for (selector, takes) in [
        ("a=1", true),
        ("a", true),
        ("a!=2", true),
        ("a=2", false),
        ("b", false),
    ] {
        let select = Select {
            label_selector: Some(selector.to_owned()),
            ..Select::default()
        };
        assert_eq!(select.takes(&labelled), takes, "{selector}");
    }
}
