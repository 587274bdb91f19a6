//! A structural schema, compiled: what the walk asks of each value.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

use kube::core::cel::{CompilationResult, compile_schema};
use regex::Regex;
use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Any,
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
    IntOrString,
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Any => "anything",
            Self::Object => "an object",
            Self::Array => "a list",
            Self::String => "text",
            Self::Integer => "a whole number",
            Self::Number => "a number",
            Self::Boolean => "true or false",
            Self::IntOrString => "a whole number or text",
        })
    }
}

pub(crate) struct Node {
    pub(super) kind: Type,
    pub(super) description: String,
    /// Null reads as absent: the struct has an Option there.
    pub(super) nullable: bool,
    pub(super) fields: BTreeMap<String, Node>,
    /// The values of a free map.
    pub(super) others: Option<Box<Node>>,
    pub(super) items: Option<Box<Node>>,
    pub(super) required: Vec<String>,
    pub(super) choices: Vec<String>,
    pub(super) pattern: Option<Pattern>,
    pub(super) minimum: Option<f64>,
    pub(super) maximum: Option<f64>,
    pub(super) min_length: Option<u64>,
    pub(super) max_length: Option<u64>,
    pub(super) max_items: Option<u64>,
    /// Unknown fields are kept and nothing is said about them.
    pub(super) open: bool,
    /// A label selector, which may also be a bare map.
    pub(super) selector: bool,
    pub(super) default: Option<Value>,
    pub(super) rules: Vec<Rule>,
    /// A rule of the object that has this field reads it. Only such fields are handed to CEL.
    pub(super) ruled: bool,
}

impl Node {
    /// Compiles the schema of a root object. `metadata` is left open.
    pub(crate) fn compile(schema: &Value) -> Self {
        let mut root = Self::of(schema);
        if let Some(metadata) = root.fields.get_mut("metadata") {
            metadata.kind = Type::Any;
        }
        root
    }

    fn of(schema: &Value) -> Self {
        let text = |key: &str| schema.get(key).and_then(Value::as_str);
        let flag = |key: &str| schema.get(key).and_then(Value::as_bool).unwrap_or_default();
        let list = |key: &str| -> Vec<String> {
            let values = schema.get(key).and_then(Value::as_array);
            let texts = values.into_iter().flatten().filter_map(Value::as_str);
            texts.map(ToOwned::to_owned).collect()
        };
        let kind = match text("type") {
            _ if flag("x-kubernetes-int-or-string") => Type::IntOrString,
            Some("object") => Type::Object,
            Some("array") => Type::Array,
            Some("string") => Type::String,
            Some("integer") => Type::Integer,
            Some("number") => Type::Number,
            Some("boolean") => Type::Boolean,
            _ => Type::Any,
        };
        let rules = own_rules(schema);
        let fields: BTreeMap<_, _> = schema
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(|(name, child)| {
                let ruled = rules.iter().any(|r| reads(&r.text, name));
                let child = Self::of(child);
                (name.clone(), Self { ruled, ..child })
            })
            .collect();
        let child = |key: &str| {
            let child = schema.get(key).filter(|c| c.is_object());
            child.map(|c| Box::new(Self::of(c)))
        };
        let open = flag("x-kubernetes-preserve-unknown-fields");
        Self {
            kind,
            description: text("description").unwrap_or_default().to_owned(),
            nullable: flag("nullable"),
            // A rule of a map may read any key.
            others: child("additionalProperties").map(|mut other| {
                other.ruled = !rules.is_empty();
                other
            }),
            items: child("items"),
            required: list("required"),
            choices: list("enum"),
            pattern: text("pattern").map(|p| Pattern {
                source: p.to_owned(),
                compiled: OnceLock::new(),
            }),
            minimum: schema.get("minimum").and_then(Value::as_f64),
            maximum: schema.get("maximum").and_then(Value::as_f64),
            min_length: schema.get("minLength").and_then(Value::as_u64),
            max_length: schema.get("maxLength").and_then(Value::as_u64),
            max_items: schema.get("maxItems").and_then(Value::as_u64),
            selector: open && fields.contains_key("matchLabels"),
            open,
            default: schema.get("default").cloned(),
            rules,
            ruled: false,
            fields,
        }
    }

    /// Where else in the schema a field of that name stands, for a field written one level off.
    pub(super) fn path_of(&self, name: &str) -> Option<String> {
        let spec = self.fields.get("spec")?;
        let mut level = vec![("spec".to_owned(), spec)];
        while !level.is_empty() {
            let mut next = Vec::new();
            for (at, node) in level {
                if node.fields.contains_key(name) {
                    return Some(format!("{at}.{name}"));
                }
                for (field, child) in &node.fields {
                    next.push((format!("{at}.{field}"), child));
                    if let Some(item) = &child.items {
                        next.push((format!("{at}.{field}[]"), item.as_ref()));
                    }
                }
            }
            level = next;
        }
        None
    }
}

/// Whether a rule may read that field of `self`: it is named, or `self` is used as a whole.
fn reads(rule: &str, field: &str) -> bool {
    let field = super::rules::escaped(field).unwrap_or(field);
    let mut uses = rule.match_indices("elf").map(|(at, _)| &rule[at + 3..]);
    uses.any(|rest| !rest.starts_with('.') || rest[1..].starts_with(field))
}

/// A pattern, compiled when the first value is held against it.
pub(crate) struct Pattern {
    pub(super) source: String,
    compiled: OnceLock<Regex>,
}

impl Pattern {
    pub(super) fn matches(&self, text: &str) -> bool {
        let compile = || Regex::new(&self.source).expect("a test compiles every pattern");
        self.compiled.get_or_init(compile).is_match(text)
    }
}

/// A rule, compiled when it is first asked: most of a short run would be spent on rules that no value
/// of its package meets.
pub(crate) struct Rule {
    text: String,
    source: Value,
    compiled: OnceLock<CompilationResult>,
}

impl Rule {
    /// Whether it is about a change, and holds without one.
    pub(super) fn is_about_change(&self) -> bool {
        self.text.contains("oldSelf")
    }

    pub(super) fn compiled(&self) -> &CompilationResult {
        self.compiled.get_or_init(|| {
            // Without children, so that the compiler does not visit them again.
            let alone = serde_json::json!({ "x-kubernetes-validations": [self.source] });
            let mut rules = compile_schema(&alone).validations.into_iter();
            let rule = rules.next().expect("one rule went in");
            rule.expect("a test evaluates every rule of every schema")
        })
    }
}

/// The rules of this node alone.
fn own_rules(schema: &Value) -> Vec<Rule> {
    let rules = schema
        .get("x-kubernetes-validations")
        .and_then(Value::as_array);
    let rule = |source: &Value| Rule {
        text: source["rule"].as_str().unwrap_or_default().to_owned(),
        source: source.clone(),
        compiled: OnceLock::new(),
    };
    rules.into_iter().flatten().map(rule).collect()
}
