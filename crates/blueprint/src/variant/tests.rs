use mooring_api::kinds::porch::{Downstream, Function, Injector, PackageContext, Pipeline};
use serde_json::json;

use super::*;
use crate::bundle::{Bundle, Marks};

fn object(value: Value) -> Object {
    Object {
        value,
        source: Some(0),
    }
}

fn variant() -> Variant {
    let function = Function {
        name: Some("step".into()),
        image: Some("example/nad-fn:v1".into()),
        ..Function::default()
    };
    Variant {
        name: "v".into(),
        namespace: "default".into(),
        spec: PackageVariantSpec {
            upstream: Upstream {
                repo: "bp".into(),
                package: "upf".into(),
                ..Upstream::default()
            },
            downstream: Downstream {
                repo: "edge01".into(),
                package: "core/upf".into(),
            },
            labels: BTreeMap::from([("a".into(), "b".into())]),
            package_context: Some(PackageContext {
                data: BTreeMap::from([("region".into(), "east".into())]),
                remove_keys: vec!["colour".into()],
            }),
            pipeline: Some(Pipeline {
                mutators: vec![function.clone(), function],
                validators: Vec::new(),
            }),
            injectors: vec![Injector {
                name: "team-a".into(),
                ..Injector::default()
            }],
            ..PackageVariantSpec::default()
        },
        origin: ObjectRef::new("config.porch.kpt.dev/v1alpha1", "PackageVariant", "v"),
        place: "spec.downstream".into(),
    }
}

fn team(name: &str, annotations: &Value, code: &str) -> Object {
    object(json!({
        "apiVersion": "hr.example.com/v1", "kind": "Team",
        "metadata": { "name": name, "annotations": annotations }, "spec": { "code": code },
    }))
}

#[test]
fn a_variant_applied_to_its_own_package_changes_nothing() {
    let point = json!({ "kpt.dev/config-injection": "required" });
    let context = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "kptfile.kpt.dev" },
        "data": { "name": "example", "colour": "blue" },
    });
    let mut bundle = Bundle {
        objects: vec![object(context), team("team", &point, "example")].into(),
        marks: Marks::default(),
    };
    let mut kptfile = json!({
        "apiVersion": "kpt.dev/v1", "kind": "Kptfile", "metadata": { "name": "upf" },
        "pipeline": { "mutators": [{ "image": "example/interface-fn:v1" }] },
    });
    let site = [team("team-a", &json!({}), "aa")];
    let site = Offers::new(&site);
    let found = apply(&variant(), &mut kptfile, &mut bundle, &site);
    assert_eq!(found, []);
    let once = (kptfile.clone(), bundle.clone());
    assert_eq!(
        kptfile["pipeline"]["mutators"][1]["name"],
        "PackageVariant.v.step.1"
    );
    assert_eq!(
        kptfile["pipeline"]["mutators"][2]["image"],
        "example/interface-fn:v1"
    );
    assert_eq!(
        bundle.objects[0].value["data"],
        json!({
            "name": "upf", "region": "east", "package-path": "core",
        })
    );
    assert_eq!(bundle.objects[1].value["spec"]["code"], "aa");
    apply(&variant(), &mut kptfile, &mut bundle, &site);
    assert_eq!((kptfile, bundle), once);
}

#[test]
fn names_that_become_directories_lead_nowhere_else() {
    for name in ["upf", "core/upf", "a.b-c_d/E9"] {
        assert!(place::is_plain(name), "{name}");
    }
    for name in [
        "", "/", "a/", "/a", "a//b", "..", "a/../b", ".moor", "a/.git", "a b", "a\\b", "ä", "a\n",
    ] {
        assert!(!place::is_plain(name), "{name:?}");
    }
    assert!(!place::is_name("a/b"));
}

#[test]
fn of_many_names_a_sentence_has_a_few() {
    let names = |n: usize| -> Vec<String> { (0..n).map(|i| format!("e{i}")).collect() };
    assert_eq!(few(&names(0)), "none");
    assert_eq!(few(&names(6)), "e0, e1, e2, e3, e4 and e5");
    assert_eq!(few(&names(1000)), "e0, e1, e2, e3, e4 and 995 more");
}

/// A set over `count` clusters with this template.
fn set(count: usize, template: Value) -> Vec<Object> {
    let mut objects = vec![object(json!({
        "apiVersion": "config.porch.kpt.dev/v1alpha2", "kind": "PackageVariantSet",
        "metadata": { "name": "set" },
        "spec": {
            "upstream": { "repo": "bp", "package": "upf" },
            "targets": [{
                "objectSelector": { "apiVersion": "infra.nephio.org/v1alpha1", "kind": "WorkloadCluster" },
                "template": template,
            }],
        },
    }))];
    for n in 0..count {
        let name = format!("e{n}");
        for (api, kind) in [
            ("infra.nephio.org/v1alpha1", "WorkloadCluster"),
            ("config.porch.kpt.dev/v1alpha1", "Repository"),
        ] {
            objects.push(object(json!({
                "apiVersion": api, "kind": kind, "metadata": { "name": name }, "spec": {},
            })));
        }
    }
    objects
}

#[test]
fn what_is_wrong_for_every_target_is_told_for_a_few() {
    let template = json!({ "labelExprs": [{ "key": "a", "valueExpr": "target.labels['x']" }] });
    let (variants, findings) = read(&set(100, template), &|_| None);
    assert_eq!((variants.len(), findings.len()), (0, 3), "{findings:?}");
}

#[test]
fn a_set_over_many_clusters_has_one_variant_each_in_order() {
    let template = json!({ "downstream": { "packageExpr": "packageDefault + '-' + target.name" } });
    let (variants, findings) = read(&set(120, template), &|_| None);
    assert_eq!(findings, []);
    assert_eq!(variants.len(), 120);
    assert!(variants.is_sorted_by_key(Variant::path));
    assert_eq!(variants[1].name, "set-e1-upf-e1");
}
