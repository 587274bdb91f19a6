//! The KRM function protocol: a ResourceList on stdin, the same list edited in place on stdout.
//!
//! Called by `package` for `moor fn`. Items keep their comments and order, because output goes through
//! `File::rewrite` like every file. Easy to get wrong: any `apiVersion` with kind ResourceList is taken,
//! and what came in is what goes out; `results` are ours to set, never to extend.

use mooring_api::{Finding, Severity};
use serde_json::{Map, Value, json};

use crate::edit::EditError;
use crate::file::File;
use crate::kptfile;
use crate::path::FieldPath;
use crate::source::{ParseError, Position};

/// Orchestrators say here which file an item came from.
pub const PATH_ANNOTATION: &str = "internal.config.kubernetes.io/path";
/// Orchestrators say here which document of its file an item is.
pub const INDEX_ANNOTATION: &str = "internal.config.kubernetes.io/index";
/// What orchestrators put on items for the time of a run.
pub const ORCHESTRATOR_ANNOTATIONS: [&str; 9] = [
    PATH_ANNOTATION,
    INDEX_ANNOTATION,
    OLD_PATH_ANNOTATION,
    "internal.config.kubernetes.io/id",
    "internal.config.kubernetes.io/seqindent",
    "internal.config.kubernetes.io/annotations-migration-resource-id",
    "internal.config.k8s.io/kpt-resource-id",
    "config.kubernetes.io/index",
    "config.k8s.io/id",
];
/// What the path was called before; orchestrators keep both, and want them to agree.
const OLD_PATH_ANNOTATION: &str = "config.kubernetes.io/path";

/// A ResourceList as it came in.
#[derive(Debug)]
pub struct ResourceList {
    file: File,
    document: usize,
}

/// Input that is no ResourceList.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    /// Not YAML.
    #[error("the input is not YAML")]
    Parse(#[from] ParseError),
    /// YAML of another kind.
    #[error("the input is no ResourceList: {0}")]
    NotAList(String),
}

impl ResourceList {
    /// Reads a list, as YAML or JSON.
    pub fn parse(bytes: &[u8]) -> Result<Self, ListError> {
        let file = File::parse(bytes)?;
        let mut filled =
            (0..file.documents().len()).filter(|&i| !file.documents()[i].value().is_null());
        let Some(document) = filled.next() else {
            return Err(ListError::NotAList("it is empty".to_owned()));
        };
        if filled.next().is_some() {
            return Err(ListError::NotAList("it has several documents".to_owned()));
        }
        let value = file.documents()[document].value();
        if value["kind"] != "ResourceList" {
            return Err(ListError::NotAList(format!(
                "its kind is {}",
                value["kind"]
            )));
        }
        match &value["items"] {
            Value::Null => {}
            Value::Array(items) => {
                if let Some(at) = items.iter().position(|item| !item.is_object()) {
                    return Err(ListError::NotAList(format!("items[{at}] is no object")));
                }
            }
            _ => return Err(ListError::NotAList("items is no list".to_owned())),
        }
        Ok(Self { file, document })
    }

    fn value(&self) -> &Value {
        self.file.documents()[self.document].value()
    }

    /// The objects.
    pub fn items(&self) -> &[Value] {
        self.value()["items"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    /// The function's configuration.
    pub fn function_config(&self) -> Option<&Value> {
        self.value()
            .get("functionConfig")
            .filter(|config| !config.is_null())
    }

    /// The results that came in.
    pub fn results(&self) -> &[Value] {
        self.value()["results"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    /// Where a field of an item is written in the input.
    pub fn locate(&self, item: usize, field: &FieldPath) -> Option<Position> {
        let path = field.below(&FieldPath::keys(["items"]).index(item));
        self.file.documents()[self.document].locate(&path)
    }

    /// The list with these items and results. An item that came in is known by kind, namespace and name
    /// and keeps its text where it did not change; empty results are left out.
    pub fn output(&self, items: &[Value], results: &[Value]) -> Result<String, EditError> {
        let mut value = self.value().clone();
        let map = value.as_object_mut().expect("parse took only a mapping");
        map.insert("items".to_owned(), Value::Array(items.to_vec()));
        if results.is_empty() {
            map.shift_remove("results");
        } else {
            map.insert("results".to_owned(), Value::Array(results.to_vec()));
        }
        let wanted: Vec<_> = self
            .file
            .documents()
            .iter()
            .enumerate()
            .map(|(i, document)| {
                Some(if i == self.document {
                    &value
                } else {
                    document.value()
                })
            })
            .collect();
        self.file.rewrite(&wanted, &[])
    }
}

/// A finding as a result of the protocol. `file` is where the item says it came from.
pub fn result(finding: &Finding, file: Option<(&str, usize)>) -> Value {
    let mut result = Map::new();
    let message = if finding.help.is_empty() {
        finding.message.clone()
    } else {
        format!(
            "{}; {}",
            finding.message.trim_end_matches('.'),
            finding.help
        )
    };
    result.insert("message".to_owned(), json!(message));
    result.insert(
        "severity".to_owned(),
        json!(match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "info",
        }),
    );
    if let Some(object) = &finding.object {
        let mut reference = Map::new();
        for (key, text) in [
            ("apiVersion", &object.api_version),
            ("kind", &object.kind),
            ("namespace", &object.namespace),
            ("name", &object.name),
        ] {
            if !text.is_empty() {
                reference.insert(key.to_owned(), json!(text));
            }
        }
        result.insert("resourceRef".to_owned(), Value::Object(reference));
    }
    if let Some(field) = &finding.field {
        result.insert("field".to_owned(), json!({"path": field}));
    }
    let known = finding.location.as_ref().map(|at| (at.file.as_str(), 0));
    if let Some((path, index)) = file.or(known) {
        result.insert("file".to_owned(), json!({"path": path, "index": index}));
    }
    result.insert("tags".to_owned(), json!({"code": finding.code.as_str()}));
    Value::Object(result)
}

/// The file and the document number that an item's annotations name.
pub fn origin(item: &Value) -> Option<(&str, usize)> {
    let annotations = &item["metadata"]["annotations"];
    let path = annotations[PATH_ANNOTATION].as_str()?;
    let index = annotations[INDEX_ANNOTATION].as_str();
    Some((
        path,
        index.and_then(|index| index.parse().ok()).unwrap_or(0),
    ))
}

/// Says that `item` belongs into this file, under the names that `beside`, an item of the same list, uses for its own.
/// Nothing is said where that one names no file: then nobody would take the annotation away again.
pub fn place(item: &mut Value, path: &str, beside: &Value) {
    for key in [OLD_PATH_ANNOTATION, PATH_ANNOTATION] {
        if kptfile::annotation(beside, key).is_some() {
            kptfile::set_annotation(item, key, path);
        }
    }
}

#[cfg(test)]
mod tests {
    use mooring_api::{Code, ObjectRef};

    use super::*;

    const YAML: &str = "\
apiVersion: config.kubernetes.io/v1beta1
kind: ResourceList
functionConfig: {kind: ConfigMap, data: {a: b}}
items:
- apiVersion: v1 # one
  kind: A
  metadata:
    name: a
- apiVersion: v1
  kind: B # two
  metadata:
    name: b
    annotations:
      internal.config.kubernetes.io/path: x/b.yaml
      internal.config.kubernetes.io/index: '2'
- apiVersion: v1
  kind: C
  metadata:
    name: c
";

    fn list() -> ResourceList {
        ResourceList::parse(YAML.as_bytes()).unwrap()
    }

    #[test]
    fn items_are_edited_removed_and_added_in_place() {
        let list = list();
        assert_eq!(list.function_config().unwrap()["data"]["a"], "b");
        assert_eq!(
            list.locate(1, &"metadata.name".parse().unwrap())
                .unwrap()
                .line,
            12
        );
        assert_eq!(origin(&list.items()[1]), Some(("x/b.yaml", 2)));
        let mut items = list.items().to_vec();
        items.remove(0);
        items[0]["spec"] = json!({"x": 1});
        items.push(json!({"apiVersion": "v1", "kind": "D", "metadata": {"name": "d"}}));
        let finding = Finding::warning(Code::YamlInvalid, "odd")
            .on(&ObjectRef::new("v1", "B", "b"))
            .at("spec.x");
        let text = list
            .output(&items, &[result(&finding, origin(&items[0]))])
            .unwrap();
        let expected = "\
apiVersion: config.kubernetes.io/v1beta1
kind: ResourceList
functionConfig: {kind: ConfigMap, data: {a: b}}
items:
- apiVersion: v1
  kind: B # two
  metadata:
    name: b
    annotations:
      internal.config.kubernetes.io/path: x/b.yaml
      internal.config.kubernetes.io/index: '2'
  spec:
    x: 1
- apiVersion: v1
  kind: C
  metadata:
    name: c
- apiVersion: v1
  kind: D
  metadata:
    name: d
results:
- message: odd
  severity: warning
  resourceRef:
    apiVersion: v1
    kind: B
    name: b
  field:
    path: spec.x
  file:
    path: x/b.yaml
    index: 2
  tags:
    code: YamlInvalid
";
        assert_eq!(text, expected);
    }

    #[test]
    fn json_stays_json() {
        let value = list().value().clone();
        let text = serde_json::to_string_pretty(&value).unwrap();
        let list = ResourceList::parse(text.as_bytes()).unwrap();
        let mut items = list.items().to_vec();
        items[1]["metadata"]["annotations"]["x"] = json!("y");
        items.remove(0);
        items.push(json!({"apiVersion": "v1", "kind": "D", "metadata": {"name": "d"}}));
        let out = list.output(&items, &[json!({"message": "m"})]).unwrap();
        let mut expected = value;
        expected["items"] = json!(items);
        expected["results"] = json!([{"message": "m"}]);
        assert_eq!(serde_json::from_str::<Value>(&out).unwrap(), expected);
    }

    #[test]
    fn other_input_is_refused() {
        for text in [
            "",
            "a: b",
            "kind: List\nitems: []",
            "kind: ResourceList\nitems: 1",
            "kind: ResourceList\nitems: [1]",
            "kind: ResourceList\n---\na: b",
            "{",
        ] {
            assert!(ResourceList::parse(text.as_bytes()).is_err(), "{text}");
        }
        assert!(
            ResourceList::parse(b"kind: ResourceList")
                .unwrap()
                .items()
                .is_empty()
        );
    }
}
