//! A field inside an object, in the text form that findings use: `spec.a[0].b`,
//! `metadata.annotations[mooring.dev/routes]`. Called by everybody who points at a field.
//!
//! Easy to get wrong: `[0]` is an index, `.0` is the key "0". A key that needs brackets and could be
//! taken for something else is written as a JSON string: `data["a]b"]`.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use serde_json::Value;

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// A key of a map.
    Key(String),
    /// A position in a list, from 0.
    Index(usize),
}

/// A path from the root of a document. The empty path is the document itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldPath(Vec<Step>);

/// A text that is not a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a field path: {reason}")]
pub struct BadPath {
    /// What was given.
    pub text: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl FieldPath {
    /// The document itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// A path of keys only.
    pub fn keys<const N: usize>(keys: [&str; N]) -> Self {
        Self(keys.into_iter().map(|k| Step::Key(k.to_owned())).collect())
    }

    /// The same path, one key further.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.0.push(Step::Key(key.into()));
        self
    }

    /// The same path, one list position further.
    #[must_use]
    pub fn index(mut self, index: usize) -> Self {
        self.0.push(Step::Index(index));
        self
    }

    /// The steps from the root.
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    /// Whether this is the document itself.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// This path below another one.
    #[must_use]
    pub fn below(&self, parent: &FieldPath) -> Self {
        Self(parent.0.iter().chain(&self.0).cloned().collect())
    }

    /// The value at this path.
    pub fn get<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(value, |at, step| match step {
            Step::Key(key) => at.get(key),
            Step::Index(index) => at.get(index),
        })
    }
}

impl FieldPath {
    /// The value at this path, to change it.
    pub fn get_mut<'v>(&self, value: &'v mut Value) -> Option<&'v mut Value> {
        self.0.iter().try_fold(value, |at, step| match step {
            Step::Key(key) => at.get_mut(key),
            Step::Index(index) => at.get_mut(index),
        })
    }
}

impl From<Vec<Step>> for FieldPath {
    fn from(steps: Vec<Step>) -> Self {
        Self(steps)
    }
}

fn is_bare(key: &str) -> bool {
    !key.is_empty()
        && key
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, step) in self.0.iter().enumerate() {
            match step {
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Key(key) if is_bare(key) => {
                    if i > 0 {
                        f.write_char('.')?;
                    }
                    f.write_str(key)?;
                }
                Step::Key(key) if needs_quotes(key) => {
                    write!(f, "[{}]", Value::String(key.clone()))?;
                }
                Step::Key(key) => write!(f, "[{key}]")?,
            }
        }
        Ok(())
    }
}

fn needs_quotes(key: &str) -> bool {
    key.is_empty() || key.starts_with('"') || key.contains(']') || key.chars().any(char::is_control)
}

impl FromStr for FieldPath {
    type Err = BadPath;

    fn from_str(text: &str) -> Result<Self, BadPath> {
        let bad = |reason| BadPath {
            text: text.to_owned(),
            reason,
        };
        let mut steps = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(inside) = rest.strip_prefix('[') {
                let after = if inside.starts_with('"') {
                    let mut strings = serde_json::Deserializer::from_str(inside).into_iter();
                    let Some(Ok(Value::String(key))) = strings.next() else {
                        return Err(bad("a quoted key is not closed"));
                    };
                    let after = &inside[strings.byte_offset()..];
                    steps.push(Step::Key(key));
                    after
                        .strip_prefix(']')
                        .ok_or_else(|| bad("a bracket is not closed"))?
                } else {
                    let (step, after) = inside
                        .split_once(']')
                        .ok_or_else(|| bad("a bracket is not closed"))?;
                    if step.is_empty() {
                        return Err(bad("empty brackets"));
                    }
                    steps.push(if step.bytes().all(|b| b.is_ascii_digit()) {
                        Step::Index(step.parse().map_err(|_| bad("an index is too large"))?)
                    } else {
                        Step::Key(step.to_owned())
                    });
                    after
                };
                rest = after;
                continue;
            }
            let bare = rest.strip_prefix('.').unwrap_or(rest);
            let end = bare.find(['.', '[']).unwrap_or(bare.len());
            if end == 0 {
                return Err(bad("a key is missing"));
            }
            steps.push(Step::Key(bare[..end].to_owned()));
            rest = &bare[end..];
        }
        Ok(Self(steps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_read_back_what_they_print() {
        for text in [
            "",
            "spec.a[0].b",
            "metadata.annotations[mooring.dev/routes]",
            "[a.b].c",
            "data[\"a]b\"].x",
            "data[\"\"]",
            "data.0[0]",
        ] {
            let path: FieldPath = text.parse().unwrap();
            assert_eq!(path.to_string(), text);
            assert_eq!(path.to_string().parse::<FieldPath>().unwrap(), path);
        }
    }

    #[test]
    fn broken_paths_are_refused() {
        for text in [
            "a..b",
            "a[",
            "a[]",
            "a[\"x]",
            "a.",
            "a[99999999999999999999]",
        ] {
            assert!(text.parse::<FieldPath>().is_err(), "{text}");
        }
    }
}
