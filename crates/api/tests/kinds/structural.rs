//! Every schema is structural by the rules of Kubernetes, so the API server takes it.

use std::collections::BTreeSet;

use mooring_api::kinds::{Kind, all, find};
use serde_json::Value;

/// Keys that JSONSchemaProps has and we use; anything else would be dropped or refused.
const KEYS: [&str; 18] = [
    "type",
    "description",
    "properties",
    "additionalProperties",
    "items",
    "required",
    "enum",
    "pattern",
    "format",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "maxItems",
    "default",
    "x-kubernetes-validations",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-int-or-string",
];

fn walk(schema: &Value, path: &str, faults: &mut Vec<String>) {
    let Some(map) = schema.as_object() else {
        return faults.push(format!("{path}: not an object"));
    };
    for key in map.keys().filter(|k| !KEYS.contains(&k.as_str())) {
        faults.push(format!("{path}: has {key}"));
    }
    let int_or_string = map.contains_key("x-kubernetes-int-or-string");
    match map.get("type").and_then(Value::as_str) {
        None if !int_or_string => faults.push(format!("{path}: no type")),
        Some(_) if int_or_string => faults.push(format!("{path}: type beside int-or-string")),
        Some("array") if !map.contains_key("items") => faults.push(format!("{path}: no items")),
        Some("object") | None => {}
        Some(_) if map.contains_key("properties") => {
            faults.push(format!("{path}: properties of something that is no object"));
        }
        Some(_) => {}
    }
    if map.contains_key("properties") && map.contains_key("additionalProperties") {
        faults.push(format!("{path}: properties and additionalProperties"));
    }
    if let Some(values) = map.get("enum").and_then(Value::as_array) {
        let distinct: BTreeSet<_> = values.iter().map(ToString::to_string).collect();
        if distinct.len() != values.len() || values.iter().any(|v| !v.is_string()) {
            faults.push(format!("{path}: enum {values:?}"));
        }
    }
    let fields = map.get("properties").and_then(Value::as_object);
    for name in map
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let name = name.as_str().unwrap_or_default();
        if !fields.is_some_and(|f| f.contains_key(name)) {
            faults.push(format!("{path}: requires {name}, which it does not have"));
        }
    }
    for (name, child) in fields.into_iter().flatten() {
        if path.is_empty() && name == "metadata" {
            let plain = child.get("type").and_then(Value::as_str) == Some("object");
            assert!(
                plain && child.get("properties").is_none(),
                "metadata is restricted"
            );
            continue;
        }
        walk(child, &format!("{path}.{name}"), faults);
    }
    if let Some(child) = map.get("items") {
        walk(child, &format!("{path}[]"), faults);
    }
    if let Some(child) = map.get("additionalProperties") {
        walk(child, &format!("{path}{{}}"), faults);
    }
}

#[test]
fn every_schema_is_structural() {
    let mut faults = Vec::new();
    for kind in all() {
        let mut own = Vec::new();
        walk(kind.schema(), "", &mut own);
        faults.extend(own.into_iter().map(|f| format!("{} {f}", kind.kind())));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_walker_sees_what_kubernetes_refuses() {
    let bad = serde_json::json!({
        "type": "object",
        "properties": {
            "a": { "oneOf": [{ "type": "string" }] },
            "b": { "type": "array" },
            "c": { "type": "string", "nullable": true, "enum": ["x", null] },
        },
        "required": ["d"],
    });
    let mut faults = Vec::new();
    walk(&bad, "", &mut faults);
    assert_eq!(faults.len(), 6, "{faults:?}");
}

#[test]
fn every_list_below_which_a_rule_stands_is_bounded() {
    // The API server multiplies the cost of a rule by how often it may run, and refuses a CRD whose
    // estimate is too high; an unbounded list counts as millions.
    fn ruled(schema: &Value) -> bool {
        let own = schema.get("x-kubernetes-validations").is_some();
        let below = ["items", "additionalProperties"]
            .iter()
            .filter_map(|k| schema.get(k));
        let fields = schema.get("properties").and_then(Value::as_object);
        own || below
            .chain(fields.into_iter().flat_map(|f| f.values()))
            .any(ruled)
    }
    fn walk(schema: &Value, path: &str, times: u64, faults: &mut Vec<String>) {
        let own = schema
            .get("x-kubernetes-validations")
            .and_then(Value::as_array);
        for rule in own.into_iter().flatten() {
            // Thirty units cover the dearest of our rules without a loop; a loop over a list costs
            // its bound, squared where it is nested.
            let text = rule["rule"].as_str().unwrap();
            let loops = text.matches(".all(").count() + text.matches(".exists_one(").count();
            let bound = schema.get("maxItems").and_then(Value::as_u64).unwrap_or(64);
            let once = 30 * bound.pow(u32::try_from(loops).unwrap());
            if times * once > 10_000_000 {
                faults.push(format!("{path}: {text} may cost {}", times * once));
            }
            if schema["type"] == "string" && schema.get("maxLength").is_none() {
                faults.push(format!("{path}: a rule over text of any length"));
            }
        }
        for (name, child) in schema
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            walk(child, &format!("{path}.{name}"), times, faults);
        }
        if let Some(items) = schema.get("items").filter(|i| ruled(i)) {
            match schema.get("maxItems").and_then(Value::as_u64) {
                Some(max) => walk(items, &format!("{path}[]"), times * max, faults),
                None => faults.push(format!("{path}: rules below a list without maxItems")),
            }
        }
    }
    let mut faults = Vec::new();
    for kind in all() {
        walk(kind.schema(), kind.kind(), 1, &mut faults);
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_table_has_every_kind_once_and_reads_the_older_group() {
    let name = |k: &Kind| format!("{}/{} {} {}", k.group(), k.version(), k.kind(), k.plural());
    let names: Vec<_> = all().iter().map(name).collect();
    assert_eq!(
        names.iter().collect::<BTreeSet<_>>().len(),
        39,
        "{names:#?}"
    );
    let new = find("ipam.resource.nephio.org/v1alpha1", "IPClaim").unwrap();
    let old = find("ipam.nephio.org/v1alpha1", "IPClaim").unwrap();
    assert!(std::ptr::eq(new, old));
    assert!(find("ipam.nephio.org/v1", "IPClaim").is_none());
    assert!(find("v1", "Pod").is_none());
}
