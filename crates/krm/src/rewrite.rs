//! From new values to text: walks tree, old value and new value side by side and gathers splices.
//!
//! Called by `File::rewrite`, which reads the result back and compares, so a case this module gets
//! wrong is an error and never a wrong file.
//!
//! ```text
//!   key:  old   # why          slot = behind the colon     eol = before the line break
//!       ^slot  ^end     ^eol   an inline value replaces slot..end; lines go in at eol
//! ```
//!
//! Easy to get wrong: inserted lines begin with their line break and never end with one, so that a file
//! without a last line break stays one. An alias is kept only while its anchor still has the value that
//! is wanted in the alias's place.

mod flow;
mod list;
mod map;
mod splice;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::emit::{Hand, flow as emit_flow};
use crate::file::Document;
use crate::node::{Form, Kind, Node, NodeId, Style, Tree};
use crate::source::Source;
use splice::Splices;

/// The text with these values. See [`crate::File::rewrite`].
pub(crate) fn rewrite(
    source: &Source,
    documents: &[Document],
    wanted: &[Option<&Value>],
    appended: &[Value],
) -> String {
    let mut splices = Splices::default();
    let eol = if source.text.contains("\r\n") {
        "\r\n"
    } else {
        "\n"
    };
    for (document, wanted) in documents.iter().zip(wanted) {
        match wanted {
            None => splices.delete(document.parsed.region.clone()),
            Some(value) if *value != document.value() => {
                let mut writer = Writer::new(source, document, eol, &mut splices);
                writer.root(document, value);
            }
            Some(_) => {}
        }
    }
    let end = source.text.len();
    if let Some(sign) = documents.last().and_then(|d| d.parsed.unterminated.clone())
        && splices.adds_at(end)
    {
        // Text behind it would give this block scalar a line break that it did not have.
        splices.replace_if_untouched(sign, "-");
    }
    let mut text = splices.join(&source.text);
    let hand = Hand {
        eol,
        ..Hand::default()
    };
    for value in appended {
        let has_content = documents
            .iter()
            .zip(wanted)
            .any(|(_, w)| w.is_some_and(|v| !v.is_null()));
        if !text.is_empty() && !text.ends_with(['\n', '\r']) {
            text.push_str(eol);
        }
        if has_content || !text.trim().is_empty() {
            text.push_str("---");
            text.push_str(eol);
        }
        hand.document(&mut text, value);
        text.push_str(eol);
    }
    text
}

/// What a node's value stands behind.
#[derive(Clone, Copy)]
enum Slot {
    Root,
    /// The colon of a key, or the dash of a list, that ends at `at` in a collection at `column`.
    Block {
        at: usize,
        column: usize,
        in_list: bool,
    },
    /// Inside brackets; text to put in front where nothing was written.
    Flow {
        lead: &'static str,
    },
}

struct Writer<'a, 's> {
    source: &'a Source,
    tree: &'a Tree,
    hand: Hand,
    /// The document is JSON: whatever is added is JSON too.
    json: bool,
    /// The new value of every anchored node that is still there.
    anchored: BTreeMap<NodeId, &'a Value>,
    splices: &'s mut Splices,
}

impl<'a, 's> Writer<'a, 's> {
    fn new(
        source: &'a Source,
        document: &'a Document,
        eol: &'static str,
        splices: &'s mut Splices,
    ) -> Self {
        let tree = &document.parsed.tree;
        let json = matches!(
            tree.nodes[document.parsed.root].kind,
            Kind::Map {
                form: Form::Flow,
                ..
            } | Kind::Seq {
                form: Form::Flow,
                ..
            }
        );
        Self {
            source,
            tree,
            hand: Hand {
                // Even a literal in the middle may come to stand last, when what follows is removed.
                literals: source.text.ends_with(['\n', '\r'])
                    || document.parsed.region.end < source.text.len(),
                ..hand_of(tree, eol)
            },
            json,
            anchored: BTreeMap::new(),
            splices,
        }
    }

    fn root(&mut self, document: &'a Document, new: &'a Value) {
        let id = document.parsed.root;
        let node = &self.tree.nodes[id];
        if matches!(node.kind, Kind::Empty) {
            let at = document.parsed.body_end;
            let mut text = String::new();
            if at > 0 && !self.source.text[..at].ends_with(['\n', '\r']) {
                text.push_str(self.hand.eol);
            }
            self.hand.document(&mut text, new);
            text.push_str(self.hand.eol);
            self.splices.insert(at, text);
        } else {
            self.node(id, document.value(), new, Slot::Root);
        }
    }

    fn node(&mut self, id: NodeId, old: &'a Value, new: &'a Value, slot: Slot) {
        if old == new && !self.tree.has_alias {
            return;
        }
        let tree: &'a Tree = self.tree;
        let node = &tree.nodes[id];
        let kept = match (&node.kind, old, new) {
            (Kind::Alias { target }, _, _) => self.anchored.get(target) == Some(&new),
            (Kind::Empty | Kind::Scalar { .. }, _, _) => old == new,
            (Kind::Map { form, entries }, Value::Object(old), Value::Object(new)) => {
                self.map(node, *form, entries, old, new)
            }
            (Kind::Seq { form, items }, Value::Array(old), Value::Array(new)) => {
                self.list(*form, items, old, new)
            }
            _ => false,
        };
        if (kept || self.replace(node, new, slot)) && node.anchor.is_some() {
            self.anchored.insert(id, new);
        }
    }

    /// Writes a value in place of a node. Whether the node's anchor is still there.
    fn replace(&mut self, node: &Node, new: &Value, slot: Slot) -> bool {
        match slot {
            Slot::Root => {
                self.replace_root(node, new);
                false
            }
            Slot::Flow { lead } => {
                let mut text = String::new();
                if node.props == node.end {
                    text.push_str(lead);
                }
                emit_flow(&mut text, new, self.json);
                self.splices.replace(node.props..node.end, text);
                false
            }
            Slot::Block {
                at,
                column,
                in_list,
            } => self.replace_block(node, new, at, column, in_list),
        }
    }

    fn replace_root(&mut self, node: &Node, new: &Value) {
        let mut text = String::new();
        let behind = self.source.eol(node.end);
        if !self.source.is_first_on_line(node.props) {
            text.push_str(self.hand.eol);
        }
        if self.json {
            emit_flow(&mut text, new, true);
        } else {
            let literals = self.hand.literals && behind == node.end;
            Hand {
                literals,
                ..self.hand
            }
            .document(&mut text, new);
        }
        self.splices.replace(node.props..node.end, text);
    }

    fn replace_block(
        &mut self,
        node: &Node,
        new: &Value,
        at: usize,
        column: usize,
        in_list: bool,
    ) -> bool {
        let behind = self.source.eol(node.end);
        let keeps_anchor = node.anchor.is_some() && node.tag.is_none();
        let mut text = String::new();
        if stays_in_brackets(node, new) {
            text.push(' ');
            emit_flow(&mut text, new, self.json);
        } else {
            self.hand.slot(&mut text, new, Some(column), in_list);
            if keeps_anchor && in_list && is_filled_collection(new) {
                // Behind an anchor, `- &x - a` is no YAML and `- &x k: v` would name the key alone.
                let compact = std::mem::take(&mut text);
                self.hand.line(&mut text, column + 2);
                text.push_str(compact.trim_start_matches(' '));
            }
        }
        let split = text.find(['\r', '\n']).unwrap_or(text.len());
        let body = text.split_off(split);
        if let (Some(anchor), true) = (&node.anchor, keeps_anchor) {
            text.insert_str(0, &format!(" {}", &self.source.text[anchor.clone()]));
        }
        let first = node.props.max(at);
        let same_line = !self.source.text[at..first].contains(['\r', '\n']);
        match &node.kind {
            Kind::Scalar {
                style: Style::Block { header_end },
                ..
            } if same_line => {
                let header_eol = self.source.eol(*header_end);
                self.splices.replace(at..*header_end, text);
                self.splices
                    .replace(header_eol..node.end.max(header_eol), body);
            }
            _ if same_line => {
                self.splices.replace(at..node.end.max(at), text);
                self.splices.insert(behind, body);
            }
            _ => {
                let slot_eol = self.source.eol(at);
                self.splices.insert(at, text);
                self.splices.replace(slot_eol..behind, body);
            }
        }
        keeps_anchor
    }

    fn end(&self, id: NodeId) -> usize {
        self.tree.nodes[id].end
    }

    /// Takes whole lines away: from the line of `start` to the line of `end`. The line break in front
    /// goes and the one behind stays, because an outer collection may add lines behind this one.
    fn delete_lines(&mut self, start: usize, end: usize) {
        let (first, eol) = (self.source.line_start(start), self.source.eol(end));
        let text = &self.source.text;
        if first == 0 || (eol == text.len() && self.tree.has_block_scalar) {
            self.splices.delete(first..self.source.after_break(eol));
        } else {
            let line_break = if text[..first].ends_with("\r\n") {
                2
            } else {
                1
            };
            self.splices.delete(first - line_break..eol);
        }
    }
}

/// Whether a value takes lines of its own where it is not written in brackets.
fn is_filled_collection(value: &Value) -> bool {
    match value {
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
        _ => false,
    }
}

/// Whether a collection that was written in brackets is still one of the same kind.
fn stays_in_brackets(node: &Node, new: &Value) -> bool {
    match (&node.kind, new) {
        (
            Kind::Map {
                form: Form::Flow,
                entries,
            },
            Value::Object(new),
        ) => !entries.is_empty() && !new.is_empty(),
        (
            Kind::Seq {
                form: Form::Flow,
                items,
            },
            Value::Array(new),
        ) => !items.is_empty() && !new.is_empty(),
        _ => false,
    }
}

/// How a document is written, from its first nested map and its first list under a key.
fn hand_of(tree: &Tree, eol: &'static str) -> Hand {
    let mut hand = Hand {
        eol,
        ..Hand::default()
    };
    let (mut step, mut lists) = (None, None);
    for node in &tree.nodes {
        let Kind::Map {
            form: Form::Block { column },
            entries,
        } = &node.kind
        else {
            continue;
        };
        for entry in entries {
            match &tree.nodes[entry.value].kind {
                Kind::Map {
                    form: Form::Block { column: inner },
                    ..
                } => {
                    step.get_or_insert(inner - column);
                }
                Kind::Seq {
                    form: Form::Block { column: inner },
                    ..
                } => {
                    lists.get_or_insert(inner > column);
                }
                _ => {}
            }
        }
        if step.is_some() && lists.is_some() {
            break;
        }
    }
    hand.step = step.unwrap_or(hand.step).clamp(1, 8);
    hand.lists_indented = lists.unwrap_or(hand.lists_indented);
    hand
}
