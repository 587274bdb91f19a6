//! Edits as values: what to change, and how two values differ. Pure; no text here.
//!
//! Called by `package` and the functions, which compute a new value and let [`diff()`] say the edits.
//! Easy to get wrong: edits apply one after the other, so an index means the list as the edits before
//! left it.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::align::{Op, align};
use crate::path::{FieldPath, Step};

/// One change inside a document.
#[derive(Clone, Debug, PartialEq)]
pub enum Edit {
    /// Puts a value at a path; missing mappings on the way are made. An index may be the list's length.
    Set {
        /// Where.
        path: FieldPath,
        /// What.
        value: Value,
    },
    /// Takes a field or a list element away. What is not there is already gone.
    Remove {
        /// Which.
        path: FieldPath,
    },
    /// Adds a value at the end of the list at a path; a missing list is made.
    Append {
        /// Which list.
        path: FieldPath,
        /// What.
        value: Value,
    },
    /// Adds a list element before the one at this path, which ends with an index.
    Insert {
        /// Where.
        path: FieldPath,
        /// What.
        value: Value,
    },
}

/// One change of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Inside the document with this number, from 0.
    Edit(usize, Edit),
    /// A new document behind all others.
    AppendDocument(Value),
    /// The document with this number goes, with its separator.
    RemoveDocument(usize),
}

impl From<(usize, Edit)> for Change {
    fn from((document, edit): (usize, Edit)) -> Self {
        Self::Edit(document, edit)
    }
}

/// An edit that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The path leads through something that has no such fields.
    #[error("cannot edit `{path}`: `{at}` is not a {wanted}")]
    WrongShape {
        /// The edit's path.
        path: String,
        /// Where it fails.
        at: String,
        /// mapping or list.
        wanted: &'static str,
    },
    /// The list is shorter than the index.
    #[error("cannot edit `{path}`: the list at `{at}` has {len} elements")]
    NoSuchIndex {
        /// The edit's path.
        path: String,
        /// The list.
        at: String,
        /// Its length.
        len: usize,
    },
    /// There is no such document.
    #[error("there is no document {document}; the file has {len}")]
    NoSuchDocument {
        /// Asked for.
        document: usize,
        /// How many there are.
        len: usize,
    },
    /// The text cannot be changed in place to say exactly this; nothing was changed.
    #[error("document {document} cannot be edited in place: {reason}")]
    NotFaithful {
        /// Which document.
        document: usize,
        /// What came out instead.
        reason: String,
    },
}

impl Edit {
    /// A [`Edit::Set`].
    pub fn set(path: FieldPath, value: impl Into<Value>) -> Self {
        let value = value.into();
        Self::Set { path, value }
    }

    /// A [`Edit::Remove`].
    pub fn remove(path: FieldPath) -> Self {
        Self::Remove { path }
    }

    /// A [`Edit::Append`].
    pub fn append(path: FieldPath, value: impl Into<Value>) -> Self {
        let value = value.into();
        Self::Append { path, value }
    }

    /// Where it works.
    pub fn path(&self) -> &FieldPath {
        match self {
            Self::Set { path, .. }
            | Self::Remove { path }
            | Self::Append { path, .. }
            | Self::Insert { path, .. } => path,
        }
    }

    /// Makes this edit on a value.
    pub fn apply_to(&self, value: &mut Value) -> Result<(), EditError> {
        match self {
            Self::Set { path, value: new } => {
                *reach(value, path, path.steps())? = new.clone();
            }
            Self::Append { path, value: new } => {
                let list = reach(value, path, path.steps())?;
                if list.is_null() {
                    *list = Value::Array(Vec::new());
                }
                list.as_array_mut()
                    .ok_or_else(|| wrong_shape(path, path.steps().len(), "list"))?
                    .push(new.clone());
            }
            Self::Insert { path, value: new } => {
                let Some((Step::Index(at), parents)) = path.steps().split_last() else {
                    return Err(wrong_shape(path, path.steps().len(), "list"));
                };
                let list = reach(value, path, parents)?;
                if list.is_null() {
                    *list = Value::Array(Vec::new());
                }
                let list = list
                    .as_array_mut()
                    .ok_or_else(|| wrong_shape(path, parents.len(), "list"))?;
                if *at > list.len() {
                    return Err(no_such_index(path, parents.len(), list.len()));
                }
                list.insert(*at, new.clone());
            }
            Self::Remove { path } => match path.steps().split_last() {
                None => *value = Value::Null,
                Some((last, parents)) => {
                    let parent = FieldPath::from(parents.to_vec());
                    match (parent.get_mut(value), last) {
                        (Some(Value::Object(map)), Step::Key(key)) => {
                            map.shift_remove(key);
                        }
                        (Some(Value::Array(list)), Step::Index(at)) if *at < list.len() => {
                            list.remove(*at);
                        }
                        _ => {}
                    }
                }
            },
        }
        Ok(())
    }
}

/// Makes edits one after the other. Removals of neighbouring keys are made in one pass, since taking a
/// key out of an ordered map moves all keys behind it.
pub(crate) fn apply_all(value: &mut Value, edits: &[&Edit]) -> Result<(), EditError> {
    let mut rest = edits;
    while let Some(edit) = rest.first() {
        let Some(parent) = removal_parent(edit) else {
            edit.apply_to(value)?;
            rest = &rest[1..];
            continue;
        };
        let run = rest
            .iter()
            .take_while(|other| removal_parent(other) == Some(parent));
        let keys: BTreeSet<&Step> = run
            .filter_map(|other| other.path().steps().last())
            .collect();
        let parent = FieldPath::from(parent.to_vec());
        if let Some(map) = parent.get_mut(value).and_then(Value::as_object_mut) {
            map.retain(|key, _| !keys.contains(&Step::Key(key.clone())));
        }
        let count = rest
            .iter()
            .take_while(|other| removal_parent(other) == Some(parent.steps()))
            .count();
        rest = &rest[count..];
    }
    Ok(())
}

/// The mapping that a removal takes a key from.
fn removal_parent(edit: &Edit) -> Option<&[Step]> {
    match edit {
        Edit::Remove { path } => match path.steps().split_last() {
            Some((Step::Key(_), parent)) => Some(parent),
            _ => None,
        },
        _ => None,
    }
}

/// The place at a path, made where it is missing.
fn reach<'v>(
    value: &'v mut Value,
    path: &FieldPath,
    steps: &[Step],
) -> Result<&'v mut Value, EditError> {
    let mut at = value;
    for (depth, step) in steps.iter().enumerate() {
        match step {
            Step::Key(key) => {
                if at.is_null() {
                    *at = Value::Object(Map::new());
                }
                at = at
                    .as_object_mut()
                    .ok_or_else(|| wrong_shape(path, depth, "mapping"))?
                    .entry(key.as_str())
                    .or_insert(Value::Null);
            }
            Step::Index(index) => {
                if at.is_null() {
                    *at = Value::Array(Vec::new());
                }
                let list = at
                    .as_array_mut()
                    .ok_or_else(|| wrong_shape(path, depth, "list"))?;
                let len = list.len();
                if *index == len {
                    list.push(Value::Null);
                }
                at = list
                    .get_mut(*index)
                    .ok_or_else(|| no_such_index(path, depth, len))?;
            }
        }
    }
    Ok(at)
}

fn prefix(path: &FieldPath, depth: usize) -> String {
    FieldPath::from(path.steps()[..depth].to_vec()).to_string()
}

fn wrong_shape(path: &FieldPath, depth: usize, wanted: &'static str) -> EditError {
    EditError::WrongShape {
        path: path.to_string(),
        at: prefix(path, depth),
        wanted,
    }
}

fn no_such_index(path: &FieldPath, depth: usize, len: usize) -> EditError {
    EditError::NoSuchIndex {
        path: path.to_string(),
        at: prefix(path, depth),
        len,
    }
}

/// The edits that turn `old` into `new`, in the order to apply them. Key order is not a difference.
pub fn diff(old: &Value, new: &Value) -> Vec<Edit> {
    let mut edits = Vec::new();
    compare(old, new, &FieldPath::root(), &mut edits);
    edits
}

fn compare(old: &Value, new: &Value, path: &FieldPath, edits: &mut Vec<Edit>) {
    match (old, new) {
        _ if old == new => {}
        (Value::Object(old), Value::Object(new)) => {
            for key in old.keys().filter(|key| !new.contains_key(*key)) {
                edits.push(Edit::remove(path.clone().key(key)));
            }
            for (key, value) in new {
                let path = path.clone().key(key);
                match old.get(key) {
                    Some(before) => compare(before, value, &path, edits),
                    None => edits.push(Edit::set(path, value.clone())),
                }
            }
        }
        (Value::Array(old), Value::Array(new)) => compare_lists(old, new, path, edits),
        _ => edits.push(Edit::set(path.clone(), new.clone())),
    }
}

fn compare_lists(old: &[Value], new: &[Value], path: &FieldPath, edits: &mut Vec<Edit>) {
    let ops = align(old, new);
    if !ops.iter().any(|op| matches!(op, Op::Keep { .. })) {
        edits.push(Edit::set(path.clone(), Value::Array(new.to_vec())));
        return;
    }
    for op in ops.iter().rev() {
        if let Op::Remove { old } = op {
            edits.push(Edit::remove(path.clone().index(*old)));
        }
    }
    // Behind the last kept element an insertion is an append; everything before it has its final place.
    let last_kept = ops
        .iter()
        .rposition(|op| matches!(op, Op::Keep { .. }))
        .unwrap_or(0);
    for (i, op) in ops.iter().enumerate() {
        if let Op::Insert { new: at } = op {
            let value = new[*at].clone();
            edits.push(if i > last_kept {
                Edit::append(path.clone(), value)
            } else {
                Edit::Insert {
                    path: path.clone().index(*at),
                    value,
                }
            });
        }
    }
    for op in &ops {
        if let Op::Keep {
            old: before,
            new: at,
        } = op
        {
            compare(&old[*before], &new[*at], &path.clone().index(*at), edits);
        }
    }
}
