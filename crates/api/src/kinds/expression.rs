//! CEL expressions that a person writes into an object and that give a text: the `…Expr` fields of a
//! PackageVariantSet. It stands here because the only CEL library of the workspace comes with the kinds'
//! own rules (`docs/decisions/005-cel-lives-with-the-kinds.md`).
//!
//! `blueprint` compiles an expression once and evaluates it per target. Easy to get wrong: a name that nobody
//! knows must be refused even where the value at hand never reaches it, or a set works until the day it does not.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use kube::core::cel::KubeCelExt;
use kube::core::cel::cel::objects::{Key, Map, Value as Cel};
use kube::core::cel::cel::{Context, Program};
use serde_json::Value;

/// The longest expression that is read.
const MAX: usize = 4096;

/// A compiled expression.
#[derive(Debug)]
pub struct TextExpression {
    program: Program,
}

/// What the expression may name.
#[derive(Clone, Debug)]
pub struct Variables {
    values: Vec<(String, Cel)>,
}

thread_local! {
    /// The functions of Kubernetes, registered once per thread: that costs more than an evaluation.
    static FUNCTIONS: Context<'static> = Context::default().with_all();
}

impl Variables {
    /// These names.
    pub fn new<'a>(names: impl IntoIterator<Item = (&'a str, &'a Value)>) -> Self {
        let names = names.into_iter();
        Self {
            values: names
                .map(|(name, value)| (name.to_owned(), convert(value)))
                .collect(),
        }
    }
}

impl TextExpression {
    /// Compiles an expression over these names.
    pub fn compile(text: &str, names: &[&str]) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Err("it is empty".to_owned());
        }
        if text.len() > MAX {
            return Err(format!("it has more than {MAX} characters"));
        }
        // The parser is a port of a generated one, and some texts that are no CEL make it panic.
        let compiled = catch_unwind(AssertUnwindSafe(|| Program::compile(text)));
        let program = compiled
            .map_err(|_| "it is not CEL".to_owned())?
            .map_err(|e| format!("it is not CEL: {}", first_line(&e.to_string())))?;
        let references = program.references();
        let mut unknown: Vec<&str> = references.variables();
        unknown.retain(|name| !names.contains(name) && !name.starts_with('@'));
        unknown.sort_unstable();
        if let Some(name) = unknown.first() {
            return Err(format!(
                "it names {name}, which is none of {}",
                names.join(", ")
            ));
        }
        Ok(Self { program })
    }

    /// The text that it gives.
    pub fn evaluate(&self, variables: &Variables) -> Result<String, String> {
        let ran = catch_unwind(AssertUnwindSafe(|| {
            FUNCTIONS.with(|functions| {
                let mut context = functions.new_inner_scope();
                for (name, value) in &variables.values {
                    context.add_variable_from_value(name.as_str(), value.clone());
                }
                self.program.execute(&context)
            })
        }));
        match ran.map_err(|_| "it cannot be evaluated".to_owned())? {
            Ok(Cel::String(text)) => Ok(text.as_ref().clone()),
            Ok(other) => Err(format!("it gives {}, not text", said(&other))),
            Err(error) => Err(format!(
                "it cannot be evaluated: {}",
                first_line(&error.to_string())
            )),
        }
    }
}

/// Errors of the parser come with a place in front of them and a drawing below.
fn first_line(text: &str) -> &str {
    let line = text.lines().next().unwrap_or_default().trim();
    line.split_once("Syntax error: ")
        .map_or(line, |(_, what)| what)
}

fn said(value: &Cel) -> &'static str {
    match value {
        Cel::Bool(_) => "true or false",
        Cel::Int(_) | Cel::UInt(_) | Cel::Float(_) => "a number",
        Cel::List(_) => "a list",
        Cel::Map(_) => "a map",
        Cel::Null => "nothing",
        _ => "something else",
    }
}

fn convert(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(b) => Cel::Bool(*b),
        Value::Number(n) => match n.as_i64() {
            Some(i) => Cel::Int(i),
            None => Cel::Float(n.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(s) => Cel::String(Arc::new(s.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(convert).collect())),
        Value::Object(map) => {
            let entries = map
                .iter()
                .map(|(k, v)| (Key::String(Arc::new(k.clone())), convert(v)));
            let map: HashMap<Key, Cel> = entries.collect();
            Cel::Map(Map { map: Arc::new(map) })
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NAMES: [&str; 2] = ["target", "packageDefault"];

    fn evaluate(text: &str) -> Result<String, String> {
        let target =
            json!({"name": "edge01", "package": "upf", "labels": {"site": "a"}, "annotations": {}});
        let variables = Variables::new([("target", &target), ("packageDefault", &json!("upf"))]);
        TextExpression::compile(text, &NAMES)?.evaluate(&variables)
    }

    #[test]
    fn text_is_joined_and_looked_up() {
        let text = "packageDefault + '-' + target.name";
        assert_eq!(evaluate(text).unwrap(), "upf-edge01");
        assert_eq!(evaluate("target.labels['site']").unwrap(), "a");
        // A word that CEL keeps for itself is one all the same behind a dot.
        assert_eq!(evaluate("target.package").unwrap(), "upf");
        let text = "'site' in target.labels && target.labels.site == 'a' ? 'yes' : 'no'";
        assert_eq!(evaluate(text).unwrap(), "yes");
    }

    #[test]
    fn what_is_wrong_is_said() {
        let cases = [
            ("", "it is empty"),
            ("target.", "it is not CEL"),
            ("cluster.name", "it names cluster, which is none of"),
            ("true ? target.name : cluster.name", "it names cluster"),
            ("1 + 1", "it gives a number, not text"),
            ("target", "it gives a map, not text"),
            ("target.labels['zone']", "it cannot be evaluated"),
            ("target.nothing", "it cannot be evaluated"),
        ];
        for (text, wanted) in cases {
            let said = evaluate(text).unwrap_err();
            assert!(said.starts_with(wanted), "{text}: {said}");
        }
    }

    #[test]
    fn no_text_makes_it_panic() {
        let mut texts: Vec<String> = [
            "((((", "'", "\u{0}", "a?b", "[1,", "{", "r'\\", "1.e", "..", "`",
        ]
        .map(str::to_owned)
        .to_vec();
        texts.push("(".repeat(2000));
        texts.push("x".repeat(MAX + 1));
        for text in texts {
            let _ = evaluate(&text);
        }
    }
}
