//! Which findings are fixed, which are not, and that a second look finds nothing to fix.

use mooring_api::ObjectRef;
use serde_json::json;

use super::*;
use crate::input::Input;
use crate::verify_fleet;

fn object(value: &Value) -> Input<'_> {
    let text = |path: &str| value.pointer(path).and_then(Value::as_str).unwrap_or("");
    let object = ObjectRef::new(text("/apiVersion"), text("/kind"), text("/metadata/name"));
    let origin = Origin {
        cluster: "edge".into(),
        object,
        ..Origin::default()
    };
    let scope = None;
    Input {
        origin,
        scope,
        value,
    }
}

fn fleet(values: &[Value]) -> Fleet<'_> {
    Fleet {
        objects: values.iter().map(object).collect(),
        ..Fleet::default()
    }
}

fn nad(name: &str, config: &str) -> Value {
    json!({
        "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
        "metadata": {"name": name}, "spec": {"config": config}
    })
}

fn fixed_nad(name: &str, address: &str) -> Value {
    let config =
        json!({"type": "macvlan", "ipam": {"type": "static", "addresses": [{"address": address}]}});
    nad(name, &config.to_string())
}

fn deployment(networks: &str, spec: Value) -> Value {
    let mut value = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "amf"}, "spec": spec
    });
    value["spec"]["template"] =
        json!({"metadata": {"annotations": {"k8s.v1.cni.cncf.io/networks": networks}}});
    value
}

/// The objects as the fixes leave them.
fn apply(values: &[Value], fixes: &[Fix]) -> Vec<Value> {
    let mut out = values.to_vec();
    for fix in fixes {
        let name = &fix.origin.object.name;
        let value = out.iter_mut().find(|v| v["metadata"]["name"] == **name);
        let value = value.unwrap();
        match fix.field.as_str() {
            "spec.config" => value["spec"]["config"] = fix.to.clone(),
            "spec.strategy" => value["spec"]["strategy"] = fix.to.clone(),
            field => {
                let template = if field.starts_with("spec.template.") {
                    &mut value["spec"]["template"]
                } else {
                    value
                };
                template["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"] = fix.to.clone();
            }
        }
    }
    out
}

/// What is fixed; after it, none of these is found and nothing is left to fix.
fn codes(values: &[Value]) -> Vec<Code> {
    let fixes = fixes(&fleet(values));
    let after = apply(values, &fixes);
    assert_eq!(super::fixes(&fleet(&after)), [], "a second time");
    let codes: Vec<Code> = fixes.iter().map(|f| f.code).collect();
    let left = verify_fleet(&fleet(&after));
    for code in &codes {
        assert!(left.findings().all(|f| f.code != *code), "{code} is left");
    }
    codes
}

#[test]
fn a_deployment_without_a_strategy_gets_recreate_and_a_chosen_one_stays() {
    let with = |spec: Value| codes(&[fixed_nad("n2", "10.0.0.5/24"), deployment("n2", spec)]);
    assert_eq!(with(json!({})), [Code::SurgingStrategy]);
    assert_eq!(with(json!({"strategy": {}})), [Code::SurgingStrategy]);
    assert_eq!(with(json!({"strategy": {"type": "RollingUpdate"}})), []);
    assert_eq!(with(json!({"replicas": 2})), []);
    let pooled = nad(
        "n2",
        r#"{"type": "macvlan", "ipam": {"type": "whereabouts", "range": "10.0.0.0/24"}}"#,
    );
    assert_eq!(codes(&[pooled, deployment("n2", json!({}))]), []);
}

#[test]
fn the_same_address_in_both_carriers_stays_in_the_nad_and_another_one_is_left_to_people() {
    let once = json!({"strategy": {"type": "Recreate"}});
    let with = |ips: &str| {
        let networks = format!(r#"[{{"name": "n2", "ips": {ips}, "mac": "02:00:00:00:00:01"}}]"#);
        let values = [
            fixed_nad("n2", "10.0.0.5/24"),
            deployment(&networks, once.clone()),
        ];
        codes(&values)
    };
    assert_eq!(with(r#"["10.0.0.5/24"]"#), [Code::TwoCarriers]);
    assert_eq!(with(r#"["10.0.0.6/24"]"#), []);
    assert_eq!(with(r#"["10.0.0.5/16"]"#), [], "another length");
    assert_eq!(with(r#"["10.0.0.5/24", "10.0.0.6/24"]"#), []);
}

#[test]
fn comments_leave_json_and_what_is_still_wrong_stays() {
    let good =
        "{\n  \"type\": \"macvlan\",\n  \"ipam\": {\n    \"type\": \"dhcp\"  # later\n  }\n}";
    assert_eq!(codes(&[nad("n2", good)]), [Code::InvalidNad]);
    let bad = "{\"type\": \"macvlan\", \"ipam\": {\"type\": \"host-local\"} # no range\n}";
    assert_eq!(codes(&[nad("n2", bad)]), []);
    let networks = "[{\n  \"name\": \"n2\",\n  \"ips\": [\"10.0.0.5/24\"]  # explicit\n}]";
    let given = nad("n2", r#"{"type": "macvlan", "ipam": {"type": "static"}}"#);
    let once = json!({"strategy": {"type": "Recreate"}});
    assert_eq!(
        codes(&[given, deployment(networks, once)]),
        [Code::InvalidNetworksAnnotation]
    );
}

#[test]
fn what_a_render_generated_is_left_to_the_render() {
    let mut generated = nad("n2", "{\"type\": \"macvlan\" # x\n}");
    generated["metadata"]["annotations"] = json!({"mooring.dev/owned-by": "Interface/n2"});
    assert_eq!(codes(&[generated]), []);
}

#[test]
fn a_default_route_of_true_is_a_choice_that_nobody_makes_for_you() {
    let networks = r#"[{"name": "n2", "default-route": ["true"]}]"#;
    let once = json!({"strategy": {"type": "Recreate"}});
    assert_eq!(
        codes(&[fixed_nad("n2", "10.0.0.5/24"), deployment(networks, once)]),
        []
    );
}
