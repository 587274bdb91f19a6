//! The door: an object against the structural schema of its kind, as findings with a field path.
//!
//! Every hand calls [`check`] on a parsed object before a deciding room sees it. The schema is
//! compiled once per kind into [`Node`]s; rules that CEL can say run in [`rules`], on nodes whose
//! values are otherwise in order, exactly as the API server does it.
//!
//! Easy to get wrong: a path is only written out when there is something to say. Ten thousand clean
//! objects are checked in a render, so the clean walk builds no strings.

mod node;
mod path;
mod rules;
mod words;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub(super) use node::Node;
use node::{Rule, Type};
use path::Path;

use super::registry::find;
use crate::{Code, Finding, ObjectRef};

/// Kinds that we carry along and decide nothing from.
const CARRIED: [&str; 7] = [
    "Capacity",
    "Config",
    "DataNetwork",
    "Dependency",
    "NFDeployment",
    "Network",
    "Repository",
];

/// What is wrong with an object. An object of a kind that we do not know gives no findings.
pub fn check(object: &Value) -> Vec<Finding> {
    run(object, None)
}

/// What is wrong with `new`, and with changing `old` into it: fields that must not change.
pub fn check_update(old: &Value, new: &Value) -> Vec<Finding> {
    run(new, Some(old))
}

/// An object as its struct. What `check` lets pass can be read; what cannot be read is a finding.
pub fn read<T: DeserializeOwned>(object: &Value) -> Result<T, Finding> {
    let outcome = if object.get("spec").is_some_and(Value::is_null) {
        let mut filled = object.clone();
        filled["spec"] = json!({});
        T::deserialize(filled)
    } else {
        T::deserialize(object)
    };
    outcome.map_err(|e| {
        let message = format!("the object cannot be read: {e}");
        Finding::error(Code::InvalidField, message).on(&reference(object))
    })
}

fn run(object: &Value, old: Option<&Value>) -> Vec<Finding> {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let Some(kind) = find(text("apiVersion"), text("kind")) else {
        return Vec::new();
    };
    let mut walk = Walk {
        root: kind.node(),
        kind: kind.kind(),
        findings: Vec::new(),
    };
    walk.metadata(object.get("metadata"));
    walk.value(kind.node(), object, old, &Path::Root);
    let mut findings = walk.findings;
    if !findings.is_empty() {
        let subject = reference(object);
        for finding in &mut findings {
            finding.object = Some(subject.clone());
        }
    }
    findings
}

fn choices(node: &Node) -> String {
    let said = node.choices.iter().map(String::as_str);
    said.filter(|c| !c.is_empty())
        .collect::<Vec<_>>()
        .join(", ")
}

fn reference(object: &Value) -> ObjectRef {
    let text = |v: Option<&Value>| v.and_then(Value::as_str).unwrap_or_default().to_owned();
    let metadata = object.get("metadata");
    let within = |key: &str| text(metadata.and_then(|m| m.get(key)));
    ObjectRef {
        api_version: text(object.get("apiVersion")),
        kind: text(object.get("kind")),
        namespace: within("namespace"),
        name: within("name"),
    }
}

struct Walk<'a> {
    root: &'a Node,
    kind: &'static str,
    findings: Vec<Finding>,
}

impl Walk<'_> {
    fn invalid(&mut self, path: &Path<'_>, message: String, help: impl Into<String>) {
        let finding = Finding::error(Code::InvalidField, message).at(path.to_string());
        self.findings.push(finding.help(help));
    }

    /// Only what every object has: a name, and text in labels and annotations (an unquoted `true` is
    /// the commonest slip of all).
    fn metadata(&mut self, metadata: Option<&Value>) {
        let at = Path::Root.field("metadata");
        let Some(Value::Object(map)) = metadata else {
            let message = "metadata is missing or not an object".to_owned();
            return self.invalid(&at, message, "write metadata with a name");
        };
        match map.get("name") {
            Some(Value::String(name)) if !name.is_empty() => {}
            None if map.contains_key("generateName") => {}
            Some(other) if !other.is_string() => {
                let message = format!("metadata.name must be text, not {}", words::shown(other));
                self.invalid(&at.field("name"), message, words::quote(other));
            }
            _ => {
                let message = "metadata.name is missing".to_owned();
                self.invalid(&at.field("name"), message, "give the object a name");
            }
        }
        for key in ["labels", "annotations"] {
            let at = at.field(key);
            match map.get(key) {
                None | Some(Value::Null) => {}
                Some(Value::Object(pairs)) => {
                    for (name, value) in pairs.iter().filter(|(_, v)| !v.is_string()) {
                        let (at, shown) = (at.key(name), words::shown(value));
                        let message = format!("{at} must be text, not {shown}");
                        self.invalid(&at, message, words::quote(value));
                    }
                }
                Some(other) => {
                    let message = format!("{at} must be a map, not {}", words::shown(other));
                    self.invalid(&at, message, "write one `key: \"value\"` per line");
                }
            }
        }
    }

    /// Walks one value. Whether it and everything below it has its form decides if rules may run.
    fn value(&mut self, node: &Node, value: &Value, old: Option<&Value>, path: &Path<'_>) -> bool {
        let sound = match (node.kind, value) {
            (Type::Any, _) => true,
            (_, Value::Null) if node.nullable => return true,
            // `spec:` with nothing below it is an empty spec; `read` takes it so, too.
            (Type::Object, Value::Null) if node.required.is_empty() && path.is_spec() => {
                return true;
            }
            (_, Value::Null) => {
                let message = format!("{path} is empty");
                self.invalid(path, message, "give it a value, or remove the line");
                false
            }
            (Type::IntOrString, Value::String(text)) => self.text(node, text, path),
            (Type::IntOrString | Type::Integer, Value::Number(n)) if !n.is_f64() => {
                self.bounds(node, value, path)
            }
            (Type::Number, Value::Number(_)) => self.bounds(node, value, path),
            (Type::Boolean, Value::Bool(_)) => true,
            (Type::String, Value::String(text)) => self.text(node, text, path),
            (Type::Array, Value::Array(items)) => self.items(node, items, path),
            (Type::Object, Value::Object(map)) => self.fields(node, map, old, path),
            _ => {
                let shown = words::shown(value);
                let message = format!("{path} must be {}, not {shown}", node.kind);
                self.invalid(path, message, words::retype(node, value, path));
                false
            }
        };
        let asked = |rule: &Rule| old.is_some() || !rule.is_about_change();
        if !sound || !node.rules.iter().any(asked) {
            return sound;
        }
        let broken = rules::broken(node, value, old);
        let sound = broken.is_empty();
        for (field, message) in broken {
            let at = format!("{path}{field}");
            let (message, help) = message
                .split_once("; ")
                .unwrap_or((&message, "correct the value"));
            let finding = Finding::error(Code::InvalidField, format!("{at} {message}"));
            self.findings.push(finding.at(at).help(help));
        }
        sound
    }

    fn text(&mut self, node: &Node, text: &str, path: &Path<'_>) -> bool {
        if !node.choices.is_empty() && !node.choices.iter().any(|c| c == text) {
            let help = words::near(text, node.choices.iter().map(String::as_str)).map_or_else(
                || "write one of these".to_owned(),
                |near| format!("did you mean {near}?"),
            );
            let message = format!("{path} is {text:?}; it must be one of {}", choices(node));
            self.invalid(path, message, help);
            return false;
        }
        let length = text.chars().count() as u64;
        if node.min_length.is_some_and(|min| length < min) {
            self.invalid(path, format!("{path} is empty"), "write something");
            return false;
        }
        // The pattern and the rules say more than a length does.
        if let Some(pattern) = &node.pattern
            && !pattern.matches(text)
        {
            let meaning = words::pattern(&pattern.source);
            self.invalid(
                path,
                format!("{path} is {text:?}, which is not {meaning}"),
                &node.description,
            );
            return false;
        }
        if let Some(max) = node.max_length
            && length > max
        {
            let message = format!("{path} has {length} characters; at most {max} are allowed");
            self.invalid(path, message, &node.description);
            return false;
        }
        true
    }

    fn bounds(&mut self, node: &Node, value: &Value, path: &Path<'_>) -> bool {
        let number = value.as_f64().unwrap_or(f64::NAN);
        let low = node.minimum.is_some_and(|min| number < min);
        let high = node.maximum.is_some_and(|max| number > max);
        if low || high {
            let range = match (node.minimum, node.maximum) {
                (Some(min), Some(max)) => format!("{min} to {max}"),
                (Some(min), None) => format!("{min} or more"),
                (_, max) => format!("{} or less", max.unwrap_or(f64::NAN)),
            };
            self.invalid(
                path,
                format!("{path} is {value}; it must be {range}"),
                &node.description,
            );
            return false;
        }
        true
    }

    /// Entries have no identity of their own, so none is compared with an old one.
    fn items(&mut self, node: &Node, items: &[Value], path: &Path<'_>) -> bool {
        if let Some(max) = node.max_items
            && items.len() as u64 > max
        {
            let message = format!(
                "{path} has {} entries; at most {max} are allowed",
                items.len()
            );
            self.invalid(path, message, "divide it among several objects");
            return false;
        }
        let Some(child) = &node.items else {
            return true;
        };
        let mut sound = true;
        for (i, item) in items.iter().enumerate() {
            sound &= self.value(child, item, None, &path.index(i));
        }
        sound
    }

    fn fields(
        &mut self,
        node: &Node,
        map: &serde_json::Map<String, Value>,
        old: Option<&Value>,
        path: &Path<'_>,
    ) -> bool {
        let mut sound = true;
        for name in &node.required {
            if !map.contains_key(name) {
                let at = path.field(name);
                let about = node.fields.get(name).map_or("", |n| &n.description);
                self.invalid(&at, format!("{at} is missing"), about);
                sound = false;
            }
        }
        for (name, value) in map {
            let old = old.and_then(|o| o.get(name));
            if let Some(child) = node.fields.get(name) {
                sound &= self.value(child, value, old, &path.field(name));
            } else if let Some(child) = &node.others {
                sound &= self.value(child, value, old, &path.key(name));
            } else if node.selector {
                sound &= self.label(node, map, name, value, path);
            } else if !node.open {
                self.unknown(node, name, path);
            }
        }
        sound
    }

    /// A selector is either the two keys of Kubernetes or a bare map of labels, never both.
    fn label(
        &mut self,
        node: &Node,
        map: &serde_json::Map<String, Value>,
        name: &str,
        value: &Value,
        path: &Path<'_>,
    ) -> bool {
        if node.fields.keys().any(|k| map.contains_key(k)) {
            self.unknown(node, name, path);
            return false;
        }
        if value.is_string() {
            return true;
        }
        let (at, shown) = (path.key(name), words::shown(value));
        self.invalid(
            &at,
            format!("{at} must be text, not {shown}"),
            words::quote(value),
        );
        false
    }

    /// Whatever was meant by it would be missing, so it is an error. Two exceptions, because real
    /// packages carry them and nothing is decided from them: a stray key beside `spec`, and a word
    /// that is nowhere near anything in a kind that is only carried.
    fn unknown(&mut self, node: &Node, name: &str, path: &Path<'_>) {
        let at = path.field(name);
        let message = format!("{at} is not a field of {}", self.kind);
        let meant = words::near(name, node.fields.keys().map(String::as_str))
            .map(|near| path.field(near).to_string())
            .or_else(|| self.root.path_of(name));
        let finding = if let Some(meant) = meant {
            Finding::error(Code::UnknownField, message).help(format!("did you mean {meant}?"))
        } else {
            let known: Vec<_> = node.fields.keys().map(String::as_str).collect();
            let help = format!("remove it, or correct it to one of {}", known.join(", "));
            if matches!(path, Path::Root) || CARRIED.contains(&self.kind) {
                Finding::warning(Code::UnknownField, message).help(help)
            } else {
                Finding::error(Code::UnknownField, message).help(help)
            }
        };
        self.findings.push(finding.at(at.to_string()));
    }
}
