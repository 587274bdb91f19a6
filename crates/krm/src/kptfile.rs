//! Reading and changing a Kptfile as a value; the text follows through `File::rewrite`.
//!
//! Called by `package` and the functions. Easy to get wrong: conditions keep the order in which they
//! first appeared; setting one that is there changes it in place.

use std::collections::BTreeMap;

use mooring_api::Condition;
use serde_json::{Map, Value, json};

/// One function of the pipeline.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Function {
    /// What it is called here.
    pub name: Option<String>,
    /// The image, if it is one.
    pub image: Option<String>,
    /// The program, if it is one.
    pub exec: Option<String>,
    /// The file with its configuration.
    pub config_path: Option<String>,
    /// Its configuration, in place.
    pub config_map: Option<Map<String, Value>>,
    /// Whether it checks and does not change.
    pub is_validator: bool,
    /// Everything that was written.
    pub value: Value,
}

impl Function {
    /// The last part of image or program without tag and digest: what it is looked up by. Of `moor fn NAME` that is the
    /// name, so that a package whose pipeline is written for kpt can be rendered too.
    pub fn base_name(&self) -> Option<&str> {
        let image = self.image.as_deref().map(|image| {
            let image = image.split_once('@').map_or(image, |(image, _)| image);
            let name = image.rsplit('/').next().unwrap_or(image);
            name.split_once(':').map_or(name, |(name, _)| name)
        });
        let exec = self.exec.as_deref().and_then(|exec| {
            let mut words = exec.split_whitespace();
            let program = words.next()?.rsplit('/').next()?;
            let named = (program == "moor" && words.next() == Some("fn")).then(|| words.next());
            named.flatten().or(Some(program))
        });
        image.or(exec)
    }
}

/// Whether a value is a Kptfile.
pub fn is_kptfile(value: &Value) -> bool {
    value["kind"] == "Kptfile"
        && value["apiVersion"]
            .as_str()
            .is_some_and(|version| version.starts_with("kpt.dev/"))
}

/// The package's name.
pub fn package_name(kptfile: &Value) -> Option<&str> {
    kptfile["metadata"]["name"].as_str()
}

/// All conditions that read as conditions, in order.
pub fn conditions(kptfile: &Value) -> Vec<Condition> {
    let list = kptfile["status"]["conditions"].as_array();
    let list = list.map(Vec::as_slice).unwrap_or_default();
    list.iter()
        .filter_map(|condition| serde_json::from_value(condition.clone()).ok())
        .collect()
}

/// The condition of this type.
pub fn condition(kptfile: &Value, kind: &str) -> Option<Condition> {
    let list = kptfile["status"]["conditions"].as_array()?;
    let found = list.iter().find(|condition| condition["type"] == kind)?;
    serde_json::from_value(found.clone()).ok()
}

/// Sets the condition of this type: in place where there is one, else behind the others.
pub fn set_condition(kptfile: &mut Value, condition: &Condition) {
    set_conditions(kptfile, [condition]);
}

/// Sets many, at the cost of one walk.
pub fn set_conditions<'c>(
    kptfile: &mut Value,
    conditions: impl IntoIterator<Item = &'c Condition>,
) {
    let mut conditions = conditions.into_iter().peekable();
    if conditions.peek().is_none() {
        return;
    }
    let list = list_mut(kptfile, "status", "conditions");
    let mut places = places(list, "type");
    for condition in conditions {
        let at = *places.entry(condition.kind.clone()).or_insert_with(|| {
            list.push(json!({"type": condition.kind}));
            list.len() - 1
        });
        write_condition(&mut list[at], condition);
    }
}

/// The first place of every text under `key`.
fn places(list: &[Value], key: &str) -> BTreeMap<String, usize> {
    let mut places = BTreeMap::new();
    for (at, have) in list.iter().enumerate() {
        if let Some(text) = have[key].as_str() {
            places.entry(text.to_owned()).or_insert(at);
        }
    }
    places
}

fn write_condition(have: &mut Value, condition: &Condition) {
    have["status"] = json!(condition.status);
    for (key, text) in [
        ("reason", &condition.reason),
        ("message", &condition.message),
    ] {
        if text.is_empty() {
            if let Some(map) = have.as_object_mut() {
                map.shift_remove(key);
            }
        } else {
            have[key] = json!(text);
        }
    }
}

/// Takes the condition of this type away. Whether there was one.
pub fn remove_condition(kptfile: &mut Value, kind: &str) -> bool {
    remove_from(kptfile, "status", "conditions", |have| have["type"] == kind)
}

/// The condition types that must be True before the package is ready.
pub fn readiness_gates(kptfile: &Value) -> Vec<&str> {
    let list = kptfile["info"]["readinessGates"].as_array();
    let list = list.map(Vec::as_slice).unwrap_or_default();
    list.iter()
        .filter_map(|gate| gate["conditionType"].as_str())
        .collect()
}

/// Adds a gate unless it is there.
pub fn add_readiness_gate(kptfile: &mut Value, kind: &str) {
    add_readiness_gates(kptfile, [kind]);
}

/// Adds many, at the cost of one walk.
pub fn add_readiness_gates<'k>(kptfile: &mut Value, kinds: impl IntoIterator<Item = &'k str>) {
    let mut kinds = kinds.into_iter().peekable();
    if kinds.peek().is_none() {
        return;
    }
    let list = list_mut(kptfile, "info", "readinessGates");
    let mut places = places(list, "conditionType");
    for kind in kinds {
        places.entry(kind.to_owned()).or_insert_with(|| {
            list.push(json!({"conditionType": kind}));
            list.len() - 1
        });
    }
}

/// Takes a gate away. Whether there was one.
pub fn remove_readiness_gate(kptfile: &mut Value, kind: &str) -> bool {
    remove_from(kptfile, "info", "readinessGates", |have| {
        have["conditionType"] == kind
    })
}

/// The pipeline: mutators, then validators.
pub fn pipeline(kptfile: &Value) -> Vec<Function> {
    let mut functions = Vec::new();
    for (key, is_validator) in [("mutators", false), ("validators", true)] {
        for value in kptfile["pipeline"][key].as_array().into_iter().flatten() {
            let text = |key: &str| value[key].as_str().map(str::to_owned);
            functions.push(Function {
                name: text("name"),
                image: text("image"),
                exec: text("exec"),
                config_path: text("configPath"),
                config_map: value["configMap"].as_object().cloned(),
                is_validator,
                value: value.clone(),
            });
        }
    }
    functions
}

/// An annotation.
pub fn annotation<'v>(object: &'v Value, key: &str) -> Option<&'v str> {
    object["metadata"]["annotations"][key].as_str()
}

/// Sets an annotation; missing mappings on the way are made.
pub fn set_annotation(object: &mut Value, key: &str, text: &str) {
    let metadata = map_mut(object).entry("metadata").or_insert(Value::Null);
    let annotations = map_mut(metadata)
        .entry("annotations")
        .or_insert(Value::Null);
    map_mut(annotations).insert(key.to_owned(), json!(text));
}

/// Whatever is there as a map: what is no map gives way.
fn map_mut(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("it was made a map above")
}

fn list_mut<'v>(kptfile: &'v mut Value, section: &str, key: &str) -> &'v mut Vec<Value> {
    let section = map_mut(kptfile).entry(section).or_insert(Value::Null);
    let list = map_mut(section).entry(key).or_insert(Value::Null);
    if !list.is_array() {
        *list = Value::Array(Vec::new());
    }
    list.as_array_mut().expect("it was made a list above")
}

/// Removes from a list; an empty list goes, and its section with it when nothing else is there.
fn remove_from(
    kptfile: &mut Value,
    section: &str,
    key: &str,
    matches: impl Fn(&Value) -> bool,
) -> bool {
    let Some(map) = kptfile.get_mut(section).and_then(Value::as_object_mut) else {
        return false;
    };
    let Some(list) = map.get_mut(key).and_then(Value::as_array_mut) else {
        return false;
    };
    let before = list.len();
    list.retain(|have| !matches(have));
    let (removed, emptied) = (list.len() < before, list.is_empty());
    if removed && emptied {
        map.shift_remove(key);
        if map.is_empty()
            && let Some(root) = kptfile.as_object_mut()
        {
            root.shift_remove(section);
        }
    }
    removed
}

#[cfg(test)]
mod tests {
    use mooring_api::Status;

    use super::*;
    use crate::File;

    const TEXT: &str = "\
apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: upf # the package
info:
  readinessGates:
  - conditionType: a
pipeline:
  mutators:
  - image: example.dev/fns/interface-fn:v1@sha256:00
    configPath: c.yaml
  - exec: ./bin/nad-fn --flag
  validators:
  - image: example.dev:5000/kubeval
    configMap: {strict: \"true\"}
status:
  conditions:
  - type: a
    status: \"False\"
    reason: Waiting # for b
";

    fn condition_of(kind: &str, status: Status) -> Condition {
        Condition {
            kind: kind.to_owned(),
            status,
            reason: String::new(),
            message: "done".to_owned(),
        }
    }

    #[test]
    fn a_condition_is_set_in_place_and_a_new_one_comes_last() {
        let file = File::parse(TEXT.as_bytes()).unwrap();
        let mut value = file.documents()[0].value().clone();
        set_condition(&mut value, &condition_of("a", Status::True));
        set_condition(&mut value, &condition_of("b", Status::False));
        add_readiness_gate(&mut value, "b");
        add_readiness_gate(&mut value, "a");
        assert_eq!(readiness_gates(&value), ["a", "b"]);
        assert_eq!(conditions(&value).len(), 2);
        let text = file.rewrite(&[Some(&value)], &[]).unwrap();
        let expected = TEXT
            .replace("  - conditionType: a\n", "  - conditionType: a\n  - conditionType: b\n")
            .replace("    status: \"False\"\n    reason: Waiting # for b\n",
                "    status: \"True\"\n    message: done\n  - type: b\n    status: \"False\"\n    message: done\n");
        assert_eq!(text, expected);
    }

    #[test]
    fn removing_the_last_condition_removes_the_section() {
        let mut value = File::parse(TEXT.as_bytes()).unwrap().documents()[0]
            .value()
            .clone();
        assert!(remove_condition(&mut value, "a"));
        assert!(!remove_condition(&mut value, "a"));
        assert!(remove_readiness_gate(&mut value, "a"));
        assert!(value.get("status").is_none() && value.get("info").is_none());
    }

    #[test]
    fn the_pipeline_names_its_functions() {
        let value = File::parse(TEXT.as_bytes()).unwrap().documents()[0]
            .value()
            .clone();
        assert!(is_kptfile(&value));
        assert_eq!(package_name(&value), Some("upf"));
        let names: Vec<_> = pipeline(&value)
            .iter()
            .map(|f| (f.base_name().unwrap().to_owned(), f.is_validator))
            .collect();
        assert_eq!(
            names,
            [
                ("interface-fn".to_owned(), false),
                ("nad-fn".to_owned(), false),
                ("kubeval".to_owned(), true)
            ]
        );
    }

    #[test]
    fn a_program_is_known_by_its_last_part_and_ours_by_the_function() {
        for (exec, name) in [
            ("interface-fn", "interface-fn"),
            ("/usr/local/bin/nad-fn --strict", "nad-fn"),
            ("moor fn dnn-fn", "dnn-fn"),
            ("/opt/bin/moor fn ipam-fn --dialect nephio", "ipam-fn"),
            ("moor fn", "moor"),
            ("moor render x", "moor"),
            ("mooring fn dnn-fn", "mooring"),
        ] {
            let kptfile = json!({ "pipeline": { "mutators": [{ "exec": exec }] } });
            assert_eq!(pipeline(&kptfile)[0].base_name(), Some(name), "{exec}");
        }
    }

    #[test]
    fn setters_make_what_is_missing() {
        let mut value = json!({"kind": "Kptfile", "metadata": null});
        set_annotation(&mut value, "mooring.dev/package-id", "x");
        set_condition(&mut value, &condition_of("a", Status::True));
        add_readiness_gate(&mut value, "a");
        assert_eq!(annotation(&value, "mooring.dev/package-id"), Some("x"));
        assert_eq!(condition(&value, "a").unwrap().status, Status::True);
    }
}
