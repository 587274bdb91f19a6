//! From a derived CRD to the one that is installed and checked against.
//!
//! The derive writes what is true of the Rust types; Kubernetes wants a little less. `nullable` goes
//! (published CRDs refuse null, and a CEL rule need not tell null from absent), formats that
//! Kubernetes does not know go (`uint16`: the API server would warn on every apply), titles go, and
//! descriptions become one line. What every object has is added at the root.

use serde_json::{Value, json};

/// Formats that the API server knows and we use.
const FORMATS: [&str; 3] = ["int32", "int64", "date-time"];

/// Makes a derived CRD the one that we install. With `nulls`, what may be null stays marked: that is
/// what files are checked against, since functions write `status: null`.
pub(super) fn finish(crd: &mut Value, nulls: bool) {
    tidy(crd, nulls);
    let root = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    let own = root.take();
    let mut fields = json!({
        "apiVersion": { "type": "string", "description": "Group and version." },
        "kind": { "type": "string", "description": "Kind." },
        "metadata": { "type": "object" },
    });
    if let (Some(all), Value::Object(own)) = (fields.as_object_mut(), own) {
        all.extend(own);
    }
    *root = fields;
}

fn tidy(value: &mut Value, nulls: bool) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|i| tidy(i, nulls)),
        Value::Object(map) => {
            // Inside `properties` the keys are field names, and a field may be called `format`.
            if map.get("type").is_some_and(Value::is_string)
                || map.contains_key("x-kubernetes-int-or-string")
            {
                if !nulls {
                    map.remove("nullable");
                }
                map.remove("title");
                if let Some(Value::Array(choices)) = map.get_mut("enum") {
                    choices.retain(|c| !c.is_null());
                }
                if map
                    .get("format")
                    .and_then(Value::as_str)
                    .is_some_and(|f| !FORMATS.contains(&f))
                {
                    map.remove("format");
                }
                if let Some(Value::String(text)) = map.get_mut("description") {
                    *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                }
            }
            map.values_mut().for_each(|v| tidy(v, nulls));
        }
        Value::Number(n) => {
            // JSONSchemaProps keeps bounds as floats; `maximum: 4094.0` reads badly.
            #[expect(
                clippy::cast_possible_truncation,
                reason = "checked to be whole and small"
            )]
            if let Some(f) = n
                .as_f64()
                .filter(|f| n.is_f64() && f.fract() == 0.0 && f.abs() < 1e15)
            {
                *value = Value::from(f as i64);
            }
        }
        _ => {}
    }
}
