//! Writes values as YAML that every reader takes the same way: two-space indent, lists not indented
//! under their key, multi-line text as literal blocks.
//!
//! Called for new documents ([`emit()`]) and by `rewrite` for the pieces that it splices in.
//! Easy to get wrong: a literal block needs a line break behind its last line, or its value loses one;
//! where the file ends without one, `literals` must be off.

mod quote;

use serde_json::{Map, Value};

pub(crate) use quote::{float_text, flow_text, plain_or_quoted};

/// A new document, ending with a line break. Key order is kept.
pub fn emit(value: &Value) -> String {
    let mut out = String::new();
    Hand::default().document(&mut out, value);
    out.push('\n');
    out
}

/// How a file is written: what is spliced in follows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hand {
    /// Columns per level of mappings.
    pub(crate) step: usize,
    /// Whether a list stands right of its key.
    pub(crate) lists_indented: bool,
    pub(crate) eol: &'static str,
    /// Whether multi-line text may be a literal block.
    pub(crate) literals: bool,
}

impl Default for Hand {
    fn default() -> Self {
        Self {
            step: 2,
            lists_indented: false,
            eol: "\n",
            literals: true,
        }
    }
}

impl Hand {
    /// A whole document from column 0, without the last line break.
    pub(crate) fn document(&self, out: &mut String, value: &Value) {
        match value {
            Value::Object(map) if !map.is_empty() => self.entries(out, map, 0),
            Value::Array(items) if !items.is_empty() => self.items(out, items, 0),
            _ => {
                let mut text = String::new();
                self.slot(&mut text, value, None, false);
                out.push_str(&text[1..]);
            }
        }
    }

    /// What follows the colon of a key, or the dash of a list, that stands at `column`: one line, then
    /// lines that each begin with their line break.
    pub(crate) fn slot(
        &self,
        out: &mut String,
        value: &Value,
        column: Option<usize>,
        in_list: bool,
    ) {
        let at = column.unwrap_or(0);
        match value {
            Value::Object(map) if !map.is_empty() => {
                if in_list {
                    out.push(' ');
                    self.entries(out, map, at + 2);
                } else {
                    self.line(out, at + self.step);
                    self.entries(out, map, at + self.step);
                }
            }
            Value::Array(items) if !items.is_empty() => {
                if in_list {
                    out.push(' ');
                    self.items(out, items, at + 2);
                } else {
                    let at = if self.lists_indented {
                        at + self.step
                    } else {
                        at
                    };
                    self.line(out, at);
                    self.items(out, items, at);
                }
            }
            Value::String(text) if self.literals && quote::fits_literal(text) => {
                self.literal(out, text, at + 2);
            }
            scalar => {
                out.push(' ');
                inline(out, scalar);
            }
        }
    }

    /// One entry of a map at this column, without the indentation in front of it.
    pub(crate) fn entry(&self, out: &mut String, key: &str, value: &Value, column: usize) {
        plain_or_quoted(out, key);
        out.push(':');
        self.slot(out, value, Some(column), false);
    }

    /// One item of a list at this column, without the indentation in front of it.
    pub(crate) fn item(&self, out: &mut String, value: &Value, column: usize) {
        out.push('-');
        self.slot(out, value, Some(column), true);
    }

    /// A line break and the indentation behind it.
    pub(crate) fn line(&self, out: &mut String, column: usize) {
        out.push_str(self.eol);
        out.extend(std::iter::repeat_n(' ', column));
    }

    fn entries(&self, out: &mut String, map: &Map<String, Value>, column: usize) {
        for (i, (key, value)) in map.iter().enumerate() {
            if i > 0 {
                self.line(out, column);
            }
            self.entry(out, key, value, column);
        }
    }

    fn items(&self, out: &mut String, items: &[Value], column: usize) {
        for (i, value) in items.iter().enumerate() {
            if i > 0 {
                self.line(out, column);
            }
            self.item(out, value, column);
        }
    }

    fn literal(&self, out: &mut String, text: &str, column: usize) {
        out.push_str(" |");
        let body = text.strip_suffix('\n').unwrap_or(text);
        let first = body.split('\n').find(|line| !line.is_empty());
        if first.is_some_and(|line| line.starts_with([' ', '\t'])) || body.starts_with('\n') {
            out.push('2');
        }
        if body.len() == text.len() {
            out.push('-');
        }
        for line in body.split('\n') {
            if line.is_empty() {
                out.push_str(self.eol);
            } else {
                self.line(out, column);
                out.push_str(line);
            }
        }
    }
}

/// A scalar or an empty collection on one line.
fn inline(out: &mut String, value: &Value) {
    match value {
        Value::String(text) => plain_or_quoted(out, text),
        Value::Object(_) => out.push_str("{}"),
        Value::Array(_) => out.push_str("[]"),
        other => flow(out, other, false),
    }
}

/// A value inside brackets, on one line; as JSON where the surroundings are JSON.
pub(crate) fn flow(out: &mut String, value: &Value, json: bool) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => out.push_str(&float_text(float)),
            _ => out.push_str(&number.to_string()),
        },
        Value::String(text) => flow_text(out, text, json),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                flow(out, item, json);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            for (i, (key, value)) in map.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                flow_text(out, key, json);
                out.push_str(": ");
                flow(out, value, json);
            }
            out.push('}');
        }
    }
}
