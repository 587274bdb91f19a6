//! The tree that the reader makes: every node with the bytes it stands on.
//!
//! Read by `compose` (to a value), `file` (to a position) and `rewrite` (to an edit).
//! Easy to get wrong: `end` never includes the line break behind a node, not even for block scalars,
//! so "behind this node" is always `source.eol(node.end)`.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Value;

use crate::scalar;

/// A node by its place in the tree.
pub(crate) type NodeId = usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Single,
    Double,
    /// `|` or `>`. `header_end` is where the header's own characters end.
    Block {
        header_end: usize,
    },
}

/// Whether a collection is written with indentation or with brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Indented; all entries begin at this column.
    Block { column: usize },
    /// `{}` or `[]`.
    Flow,
    /// `[a: b]`: a map of one entry without braces of its own.
    Pair,
}

#[derive(Debug)]
pub(crate) enum Text {
    Slice(Range<usize>),
    Owned(String),
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) start: usize,
    pub(crate) key: NodeId,
    /// Offset of the colon. None for `{a}`.
    pub(crate) colon: Option<usize>,
    pub(crate) value: NodeId,
    /// `<<`
    pub(crate) merge: bool,
}

#[derive(Debug)]
pub(crate) struct Item {
    /// Offset of the dash, or of the item itself inside brackets.
    pub(crate) start: usize,
    pub(crate) value: NodeId,
}

#[derive(Debug)]
pub(crate) enum Kind {
    /// Nothing was written.
    Empty,
    Scalar {
        style: Style,
        text: Text,
    },
    Alias {
        target: NodeId,
    },
    Map {
        form: Form,
        entries: Vec<Entry>,
    },
    Seq {
        form: Form,
        items: Vec<Item>,
    },
}

#[derive(Debug)]
pub(crate) struct Node {
    /// Where anchor or tag begin; `start` where there is none.
    pub(crate) props: usize,
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// `&name`
    pub(crate) anchor: Option<Range<usize>>,
    /// `!tag`
    pub(crate) tag: Option<Range<usize>>,
    pub(crate) kind: Kind,
    /// What it costs to build this value with aliases followed.
    pub(crate) weight: u64,
    /// How deep it is with aliases followed.
    pub(crate) depth: u32,
}

/// The nodes of one document.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) nodes: Vec<Node>,
    pub(crate) has_alias: bool,
    /// The weight of what is written, aliases not followed.
    pub(crate) own_weight: u64,
    pub(crate) has_block_scalar: bool,
}

impl Tree {
    pub(crate) fn text<'s>(&'s self, source: &'s str, id: NodeId) -> Option<&'s str> {
        match &self.nodes[id].kind {
            Kind::Scalar {
                text: Text::Slice(range),
                ..
            } => Some(&source[range.clone()]),
            Kind::Scalar {
                text: Text::Owned(text),
                ..
            } => Some(text),
            _ => None,
        }
    }

    /// The value of a scalar or of nothing. Collections and aliases are Null here.
    pub(crate) fn scalar_value(&self, source: &str, id: NodeId) -> Value {
        let node = &self.nodes[id];
        let tag = node.tag.clone().map(|range| &source[range]);
        match (&node.kind, self.text(source, id)) {
            (Kind::Scalar { style, .. }, Some(text)) => {
                scalar::resolve(text, *style == Style::Plain, tag)
            }
            (Kind::Empty, _) if matches!(tag, Some("!!str" | "!")) => Value::String(String::new()),
            _ => Value::Null,
        }
    }

    /// The text of a key as JSON would have it. None where the key is a collection.
    pub(crate) fn key_name<'s>(&'s self, source: &'s str, id: NodeId) -> Option<Cow<'s, str>> {
        match &self.nodes[id].kind {
            Kind::Alias { target } => self.key_name(source, *target),
            Kind::Map { .. } | Kind::Seq { .. } => None,
            Kind::Scalar {
                style: Style::Plain,
                text: Text::Slice(range),
            } if self.nodes[id].tag.is_none() => {
                let text = &source[range.clone()];
                match scalar::resolve_other(text) {
                    None => Some(Cow::Borrowed(text)),
                    Some(value) => Some(Cow::Owned(value.to_string())),
                }
            }
            _ => Some(match self.scalar_value(source, id) {
                Value::String(text) => Cow::Owned(text),
                other => Cow::Owned(other.to_string()),
            }),
        }
    }
}
