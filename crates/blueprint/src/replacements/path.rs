//! Field paths as replacements write them: `spec.list.[name=x].key`, `metadata.annotations.[example.com/a]`, `spec.refs.0`,
//! `spec.list.*`, and `a\.b` for a key with a dot.
//!
//! Easy to get wrong: a number is a position where it meets a list and a key where it meets a map, so a path cannot be
//! turned into steps without the object.

use serde_json::{Map, Value};

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    /// Members of a list whose field has this value; an empty field is the member itself.
    Where(String, String),
    /// All members.
    All,
}

/// A path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path(Vec<Step>);

impl Path {
    /// Reads a path; every text is one.
    pub(super) fn parse(text: &str) -> Self {
        Self(split(text).into_iter().map(step).collect())
    }

    /// Whether it may well lead nowhere.
    pub(super) fn is_wild(&self) -> bool {
        self.0.contains(&Step::All)
    }

    /// Every place that it leads to. With `create`, what is missing is made.
    pub(super) fn places<'v>(&self, value: &'v mut Value, create: bool) -> Vec<&'v mut Value> {
        places(value, &self.0, create)
    }
}

/// Splits at dots that are neither escaped nor in brackets.
fn split(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut letters = text.chars().peekable();
    let mut inside = false;
    while let Some(letter) = letters.next() {
        let part = parts.last_mut().expect("it begins with one part");
        match letter {
            '\\' if letters.peek() == Some(&'.') => part.extend(letters.next()),
            '[' if part.is_empty() => {
                inside = true;
                part.push('[');
            }
            ']' if inside => {
                inside = false;
                part.push(']');
            }
            '.' if !inside => parts.push(String::new()),
            _ => part.push(letter),
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

fn step(part: String) -> Step {
    if part == "*" {
        return Step::All;
    }
    let inner = part.strip_prefix('[').and_then(|p| p.strip_suffix(']'));
    match inner {
        None => Step::Key(part),
        Some(inner) => match inner.split_once('=') {
            Some((key, value)) => Step::Where(key.to_owned(), value.trim_matches('"').to_owned()),
            None => Step::Key(inner.to_owned()),
        },
    }
}

fn places<'v>(value: &'v mut Value, steps: &[Step], create: bool) -> Vec<&'v mut Value> {
    let Some((first, rest)) = steps.split_first() else {
        return vec![value];
    };
    if create && value.is_null() {
        *value = match first {
            Step::Where(..) => Value::Array(Vec::new()),
            _ => Value::Object(Map::new()),
        };
    }
    let next: Vec<&mut Value> = match (first, value) {
        (Step::Key(key), Value::Object(map)) => {
            if create {
                map.entry(key.clone()).or_insert(Value::Null);
            }
            map.get_mut(key).into_iter().collect()
        }
        (Step::Key(key), Value::Array(list)) => {
            let index = key.parse::<usize>().ok();
            index.and_then(|i| list.get_mut(i)).into_iter().collect()
        }
        (Step::Where(key, wanted), Value::Array(list)) => {
            let is_it = |v: &Value| {
                let field = if key.is_empty() { Some(v) } else { v.get(key) };
                field.and_then(super::scalar).as_ref() == Some(wanted)
            };
            if create && !key.is_empty() && !list.iter().any(is_it) {
                let mut made = Map::new();
                made.insert(key.clone(), Value::String(wanted.clone()));
                list.push(Value::Object(made));
            }
            list.iter_mut().filter(|v| is_it(v)).collect()
        }
        (Step::All, Value::Array(list)) => list.iter_mut().collect(),
        (Step::All, Value::Object(map)) => map.values_mut().collect(),
        _ => Vec::new(),
    };
    next.into_iter()
        .flat_map(|value| places(value, rest, create))
        .collect()
}
