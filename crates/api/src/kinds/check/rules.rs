//! CEL: the rules of one node over one value.
//!
//! kube-cel has a walk of its own, but it converts every value at every level; here only a value that
//! has rules is converted, once. Defaults are filled in first, as the API server does.

use std::collections::HashMap;
use std::sync::Arc;

use kube::core::cel::KubeCelExt;
use kube::core::cel::cel::Context;
use kube::core::cel::cel::objects::{Key, Map, Value as Cel};
use serde_json::Value;

use super::node::Node;

type Fields = serde_json::Map<String, Value>;

thread_local! {
    /// The functions of Kubernetes, registered once per thread.
    static FUNCTIONS: Context<'static> = Context::default().with_all();
}

/// The rules that do not hold: the field below the node that each names (with its dot), and what it
/// says. Rules about a change hold when there is no old value.
pub(super) fn broken(node: &Node, value: &Value, old: Option<&Value>) -> Vec<(String, String)> {
    FUNCTIONS.with(|functions| {
        let mut context = functions.new_inner_scope();
        context.add_variable_from_value("self", subject(node, value));
        if let Some(old) = old {
            context.add_variable_from_value("oldSelf", subject(node, old));
        }
        let mut broken = Vec::new();
        for rule in &node.rules {
            if rule.is_about_change() && old.is_none() {
                continue;
            }
            let compiled = rule.compiled();
            let rule = &compiled.rule;
            let said = match compiled.program.execute(&context) {
                Ok(Cel::Bool(true)) => continue,
                Ok(Cel::Bool(false)) => rule.message.clone().unwrap_or_else(|| rule.rule.clone()),
                // A rule that cannot be evaluated admits nothing.
                Ok(other) => format!("breaks {:?}, which gave {other:?}", rule.rule),
                Err(error) => format!("breaks {:?}, which cannot be evaluated: {error}", rule.rule),
            };
            broken.push((rule.field_path.clone().unwrap_or_default(), said));
        }
        broken
    })
}

/// `self`: of an object only what its rules read, since a render checks ten thousand.
fn subject(node: &Node, value: &Value) -> Cel {
    let Value::Object(map) = value else {
        return convert(node, value);
    };
    entries(node, map, |child| child.ruled)
}

fn entries(node: &Node, map: &Fields, wanted: impl Fn(&Node) -> bool) -> Cel {
    // Keys of a map are only looked up, never written as a name.
    let is_field = |name: &str| node.fields.contains_key(name);
    let key = |name: &String| {
        let escaped = is_field(name).then(|| escaped(name)).flatten();
        Key::String(Arc::new(
            escaped.map_or_else(|| name.clone(), str::to_owned),
        ))
    };
    let mut converted = HashMap::new();
    for (name, value) in map.iter().filter(|(_, v)| !v.is_null()) {
        let child = node.fields.get(name).or(node.others.as_deref());
        let child = child.unwrap_or(node);
        if wanted(child) {
            converted.insert(key(name), convert(child, value));
        }
    }
    for (name, field) in &node.fields {
        if let Some(default) = &field.default
            && !map.contains_key(name)
        {
            converted.insert(key(name), convert(field, default));
        }
    }
    let map = Arc::new(converted);
    Cel::Map(Map { map })
}

/// How a rule names a field whose name CEL keeps for itself, of those that our kinds have.
pub(super) fn escaped(name: &str) -> Option<&'static str> {
    (name == "package").then_some("__package__")
}

fn convert(node: &Node, value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(b) => Cel::Bool(*b),
        Value::Number(n) => match n.as_i64() {
            Some(i) => Cel::Int(i),
            None => Cel::Float(n.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(s) => Cel::String(Arc::new(s.clone())),
        Value::Array(items) => {
            let child = node.items.as_deref().unwrap_or(node);
            Cel::List(Arc::new(items.iter().map(|i| convert(child, i)).collect()))
        }
        Value::Object(map) => entries(node, map, |_| true),
    }
}
