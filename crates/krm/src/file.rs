//! A file of documents: read once, looked at as values, located by field, rewritten by splicing.
//!
//! Called by `package` for every file of a package. Easy to get wrong: a document's number counts
//! empty documents too, as they stand in the file.

use std::sync::Arc;

use serde_json::Value;

use crate::compose::compose;
use crate::edit::{Change, Edit, EditError, apply_all};
use crate::node::{Kind, NodeId};
use crate::path::{FieldPath, Step};
use crate::read::{Parsed, Reader};
use crate::rewrite;
use crate::source::{Fault, ParseError, ParseErrorKind, Position, Source};

/// Larger files are refused before they are read.
pub const MAX_BYTES: usize = 8 << 20;

/// How much aliases may add to all documents of a file: nodes, and 64 bytes of text count as one.
pub const MAX_EXPANDED: u64 = 100_000;

/// A YAML file with all its documents.
#[derive(Debug)]
pub struct File {
    source: Arc<Source>,
    documents: Vec<Document>,
}

/// One document of a file.
#[derive(Debug)]
pub struct Document {
    source: Arc<Source>,
    pub(crate) parsed: Parsed,
    value: Value,
}

impl File {
    /// Reads a file. Nothing is built for a file that is too large, too deep or a bomb.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        if bytes.len() > MAX_BYTES {
            return Err(ParseError::at_start(
                ParseErrorKind::TooLarge,
                format!(
                    "{} bytes; files above {MAX_BYTES} are not read",
                    bytes.len()
                ),
            ));
        }
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(error) => {
                let good = String::from_utf8_lossy(&bytes[..error.valid_up_to()]).into_owned();
                let offset = good.len();
                return Err(Source::new(good).error(Fault {
                    offset,
                    message: "not UTF-8".to_owned(),
                    kind: ParseErrorKind::NotUtf8,
                }));
            }
        };
        let source = Source::new(text);
        let documents = Self::read(&source).map_err(|fault| source.error(fault))?;
        let source = Arc::new(source);
        let documents = documents
            .into_iter()
            .map(|(parsed, value)| Document {
                source: Arc::clone(&source),
                parsed,
                value,
            })
            .collect();
        Ok(Self { source, documents })
    }

    fn read(source: &Source) -> Result<Vec<(Parsed, Value)>, Fault> {
        let parsed = Reader::new(&source.text).documents()?;
        let mut expanded = 0u64;
        for document in parsed.iter().filter(|d| d.tree.has_alias) {
            let root = &document.tree.nodes[document.root];
            let added = root.weight.saturating_sub(document.tree.own_weight);
            expanded = expanded.saturating_add(added);
            if expanded > MAX_EXPANDED {
                return Err(Fault {
                    offset: root.start,
                    message: format!("aliases expand to more than {MAX_EXPANDED} values"),
                    kind: ParseErrorKind::AliasBomb,
                });
            }
        }
        parsed
            .into_iter()
            .map(|document| {
                let value = compose(&document.tree, &source.text, document.root)?;
                Ok((document, value))
            })
            .collect()
    }

    /// The documents in the order of the file, empty ones included.
    pub fn documents(&self) -> &[Document] {
        &self.documents
    }

    /// The text as it was read.
    pub fn text(&self) -> &str {
        &self.source.text
    }

    /// The text with these changes, each made on what the ones before left; document numbers are those
    /// of this file. Only the lines of what changes are touched.
    pub fn apply(&self, changes: &[Change]) -> Result<String, EditError> {
        let count = self.documents.len();
        let mut edits: Vec<Vec<&Edit>> = vec![Vec::new(); count];
        let mut removed = vec![false; count];
        let mut appended = Vec::new();
        for change in changes {
            match change {
                Change::AppendDocument(value) => appended.push(value.clone()),
                Change::RemoveDocument(at) if *at < count => removed[*at] = true,
                Change::Edit(at, edit) if *at < count => edits[*at].push(edit),
                Change::RemoveDocument(at) | Change::Edit(at, _) => return Err(self.no_such(*at)),
            }
        }
        let mut values: Vec<Option<Value>> = Vec::with_capacity(count);
        for (document, edits) in self.documents.iter().zip(&edits) {
            let mut value = (!edits.is_empty()).then(|| document.value.clone());
            if let Some(value) = &mut value {
                apply_all(value, edits)?;
            }
            values.push(value);
        }
        let wanted: Vec<Option<&Value>> = self
            .documents
            .iter()
            .zip(&values)
            .zip(&removed)
            .map(|((document, value), removed)| {
                (!removed).then_some(value.as_ref().unwrap_or(&document.value))
            })
            .collect();
        self.rewrite(&wanted, &appended)
    }

    /// The text with these edits.
    pub fn edit(&self, edits: &[(usize, Edit)]) -> Result<String, EditError> {
        let changes: Vec<_> = edits.iter().cloned().map(Change::from).collect();
        self.apply(&changes)
    }

    /// The text whose documents have exactly these values: one per document of this file, None to
    /// remove it, then new ones. What did not change keeps its bytes. The result was read back and
    /// compared before it is returned.
    pub fn rewrite(
        &self,
        wanted: &[Option<&Value>],
        appended: &[Value],
    ) -> Result<String, EditError> {
        if wanted.len() != self.documents.len() {
            return Err(self.no_such(wanted.len()));
        }
        let untouched = self
            .documents
            .iter()
            .zip(wanted)
            .all(|(document, wanted)| *wanted == Some(&document.value));
        if untouched && appended.is_empty() {
            return Ok(self.source.text.clone());
        }
        let text = rewrite::rewrite(&self.source, &self.documents, wanted, appended);
        let reread = Self::parse(text.as_bytes()).map_err(|error| EditError::NotFaithful {
            document: 0,
            reason: error.to_string(),
        })?;
        let mut values = reread
            .documents
            .iter()
            .map(Document::value)
            .filter(|v| !v.is_null());
        let all = wanted.iter().copied().flatten().chain(appended);
        for (document, value) in all.filter(|v| !v.is_null()).enumerate() {
            if values.next() != Some(value) {
                let reason = "the edited text does not read back as intended".to_owned();
                return Err(EditError::NotFaithful { document, reason });
            }
        }
        if values.next().is_some() {
            let (document, reason) = (self.documents.len(), "a document too many".to_owned());
            return Err(EditError::NotFaithful { document, reason });
        }
        Ok(text)
    }

    fn no_such(&self, document: usize) -> EditError {
        let len = self.documents.len();
        EditError::NoSuchDocument { document, len }
    }
}

impl Document {
    /// What the document says: anchors, aliases and merge keys resolved; Null for an empty one.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Where a field is written: its value where that begins on the key's line, else its key. For a
    /// path that does not exist, the nearest ancestor that does. None for an empty document.
    pub fn locate(&self, path: &FieldPath) -> Option<Position> {
        let text = &self.source.text;
        let nodes = &self.parsed.tree.nodes;
        let root = &nodes[self.parsed.root];
        if matches!(root.kind, Kind::Empty) {
            return None;
        }
        let mut at = (root.start, root.end);
        let mut id = self.parsed.root;
        for step in path.steps() {
            let Some((lead, lead_end, child)) = self.child(id, step) else {
                break;
            };
            let node = &nodes[child];
            let same_line = !text[lead_end..node.start.max(lead_end)].contains(['\n', '\r']);
            at = if same_line && node.start < node.end {
                (node.start, node.end)
            } else {
                (lead, lead_end)
            };
            id = child;
        }
        Some(self.source.position(at.0, at.1))
    }

    /// The key or dash that leads to a child, and the child.
    fn child(&self, id: NodeId, step: &Step) -> Option<(usize, usize, NodeId)> {
        let tree = &self.parsed.tree;
        match (&tree.nodes[id].kind, step) {
            (Kind::Map { entries, .. }, Step::Key(key)) => entries
                .iter()
                .find(|entry| {
                    !entry.merge
                        && tree.key_name(&self.source.text, entry.key).as_deref() == Some(key)
                })
                .map(|entry| (entry.start, tree.nodes[entry.key].end, entry.value)),
            (Kind::Seq { items, .. }, Step::Index(index)) => items
                .get(*index)
                .map(|item| (item.start, item.start + 1, item.value)),
            _ => None,
        }
    }
}
