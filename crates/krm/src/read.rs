//! Reads YAML text into trees with exact byte spans: documents, directives, tokens, properties.
//!
//! Called by `File::parse` only. Written here because editing by splicing needs spans for every dash,
//! colon and header, and because hand-written NetworkAttachmentDefinitions hold quoted JSON whose
//! continuation lines are not indented, which strict readers refuse.
//!
//! Easy to get wrong: `fresh` says that the reader stands on the first token of a line. Every consumer
//! of characters must clear it (`consume`), or two values on one line would be taken.

mod block;
mod flow;
mod quoted;
mod text;

use std::collections::BTreeMap;
use std::ops::Range;

use crate::node::{Entry, Item, Kind, Node, NodeId, Text, Tree};
use crate::source::{Fault, ParseErrorKind, is_blank, is_break};

/// How deep collections may nest; it bounds the reader's own stack.
pub(crate) const MAX_DEPTH: u32 = 128;

type Read<T> = Result<T, Fault>;

/// One document as read, before it becomes a value.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) tree: Tree,
    pub(crate) root: NodeId,
    /// All bytes that go when the document goes.
    pub(crate) region: Range<usize>,
    /// Where content may be added behind everything the document holds.
    pub(crate) body_end: usize,
    /// Where the chomping sign of a block scalar belongs that ends with the file, without line break.
    pub(crate) unterminated: Option<Range<usize>>,
}

pub(crate) struct Reader<'a> {
    text: &'a str,
    s: &'a [u8],
    pos: usize,
    line_start: usize,
    fresh: bool,
    depth: u32,
    tree: Tree,
    anchors: BTreeMap<&'a str, Option<NodeId>>,
    unterminated: Option<Range<usize>>,
}

#[derive(Clone, Default)]
struct Props {
    start: Option<usize>,
    end: usize,
    anchor: Option<Range<usize>>,
    tag: Option<Range<usize>>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let start = if text.starts_with('\u{feff}') { 3 } else { 0 };
        Self {
            text,
            s: text.as_bytes(),
            pos: start,
            line_start: start,
            fresh: true,
            depth: 0,
            tree: Tree::default(),
            anchors: BTreeMap::new(),
            unterminated: None,
        }
    }

    /// Every document of the text. A text without any content is one empty document.
    pub(crate) fn documents(mut self) -> Read<Vec<Parsed>> {
        let mut documents: Vec<Parsed> = Vec::new();
        let mut region_start = 0;
        loop {
            self.next_token(false)?;
            let mut directives = false;
            while self.peek() == Some(b'%') && self.pos == self.line_start {
                directives = true;
                self.consume(self.eol(self.pos));
                self.next_token(false)?;
            }
            if self.at_end_marker() && !directives {
                self.consume(self.pos + 3);
                self.next_token(false)?;
                if !self.fresh && self.peek().is_some() {
                    return Err(self.fault("unexpected text after `...`"));
                }
                region_start = self.line_start.max(region_start);
                if let Some(last) = documents.last_mut() {
                    last.region.end = region_start;
                }
                continue;
            }
            if self.peek().is_none() {
                if directives {
                    return Err(self.fault("a directive without a document"));
                }
                if !documents.is_empty() {
                    break;
                }
            }
            let explicit = self.at_start_marker();
            if directives && !explicit {
                return Err(self.fault("a directive must be followed by `---`"));
            }
            if explicit {
                self.consume(self.pos + 3);
            }
            let root = self.block_node(None, false, !explicit)?;
            self.next_token(false)?;
            if self.peek().is_some() && !self.at_marker() {
                return Err(self.unexpected());
            }
            self.anchors.clear();
            let body_end = if self.peek().is_some() {
                self.pos
            } else {
                self.s.len()
            };
            documents.push(Parsed {
                tree: std::mem::take(&mut self.tree),
                root,
                region: region_start..body_end,
                body_end,
                unterminated: self.unterminated.take(),
            });
            region_start = body_end;
        }
        if let Some(last) = documents.last_mut() {
            last.region.end = self.s.len();
        }
        Ok(documents)
    }

    fn peek(&self) -> Option<u8> {
        self.s.get(self.pos).copied()
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.s.get(at).copied()
    }

    /// Whether a separator stands here: blank, line break or the end.
    fn ends_token(&self, at: usize) -> bool {
        self.byte(at).is_none_or(|b| is_blank(b) || is_break(b))
    }

    fn column(&self) -> usize {
        self.pos - self.line_start
    }

    fn consume(&mut self, to: usize) {
        self.pos = to;
        self.fresh = false;
    }

    fn eol(&self, from: usize) -> usize {
        self.s[from..]
            .iter()
            .position(|&b| is_break(b))
            .map_or(self.s.len(), |i| from + i)
    }

    fn after_break(&self, eol: usize) -> usize {
        match self.byte(eol) {
            Some(b'\r') if self.byte(eol + 1) == Some(b'\n') => eol + 2,
            Some(_) => eol + 1,
            None => eol,
        }
    }

    fn marker(&self, at: usize, marker: &[u8]) -> bool {
        self.s[at..].starts_with(marker) && self.ends_token(at + 3)
    }

    fn at_start_marker(&self) -> bool {
        self.pos == self.line_start && self.marker(self.pos, b"---")
    }

    fn at_end_marker(&self) -> bool {
        self.pos == self.line_start && self.marker(self.pos, b"...")
    }

    fn at_marker(&self) -> bool {
        self.at_start_marker() || self.at_end_marker()
    }

    fn fault(&self, message: impl Into<String>) -> Fault {
        Fault::syntax(self.pos, message)
    }

    fn unexpected(&self) -> Fault {
        self.fault(match self.peek() {
            Some(b':') if self.ends_token(self.pos + 1) => {
                "a mapping is not allowed here; is the indentation right?".to_owned()
            }
            Some(b'\t') => "a tab cannot be used here".to_owned(),
            Some(_) if self.fresh => "this line is not indented like its neighbours".to_owned(),
            Some(_) => "unexpected text after a value".to_owned(),
            None => "unexpected end of the file".to_owned(),
        })
    }

    /// Skips blanks, comments and line breaks.
    fn next_token(&mut self, in_flow: bool) -> Read<()> {
        loop {
            while self.peek().is_some_and(is_blank) {
                self.pos += 1;
            }
            match self.peek() {
                Some(b'#') if self.pos == self.line_start || is_blank(self.s[self.pos - 1]) => {
                    self.pos = self.eol(self.pos);
                }
                Some(b) if is_break(b) => {
                    self.pos = self.after_break(self.pos);
                    self.line_start = self.pos;
                    self.fresh = true;
                }
                Some(_) => {
                    let indent = &self.s[self.line_start..self.pos];
                    if self.fresh && !in_flow && indent.contains(&b'\t') {
                        return Err(Fault::syntax(
                            self.line_start,
                            "a tab cannot be used for indentation",
                        ));
                    }
                    return Ok(());
                }
                None => return Ok(()),
            }
        }
    }

    fn enter(&mut self) -> Read<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.fault(format!("nested deeper than {MAX_DEPTH}")));
        }
        Ok(())
    }

    /// One `&anchor` or `!tag` that begins at `at`: where it ends.
    fn prop_end(&self, at: usize) -> usize {
        if self.s[at..].starts_with(b"!<") {
            let close = self.s[at..].iter().position(|&b| b == b'>' || is_break(b));
            return close.map_or(self.s.len(), |i| at + i + 1).min(self.eol(at));
        }
        let ends =
            |b: u8| is_blank(b) || is_break(b) || matches!(b, b',' | b'[' | b']' | b'{' | b'}');
        self.s[at + 1..]
            .iter()
            .position(|&b| ends(b))
            .map_or(self.s.len(), |i| at + 1 + i)
    }

    fn read_prop(&mut self, props: &mut Props) -> Read<()> {
        let (start, end) = (self.pos, self.prop_end(self.pos));
        let slot = if self.peek() == Some(b'&') {
            if end == start + 1 {
                return Err(self.fault("an anchor has no name"));
            }
            &mut props.anchor
        } else {
            &mut props.tag
        };
        if slot.is_some() {
            return Err(self.fault("a value can have one anchor and one tag"));
        }
        *slot = Some(start..end);
        props.start.get_or_insert(start);
        props.end = end;
        if let Some(anchor) = &props.anchor {
            // Known but not finished: an alias to it from inside would never end.
            self.anchors
                .insert(&self.text[anchor.start + 1..anchor.end], None);
        }
        self.consume(end);
        Ok(())
    }

    fn add(&mut self, props: Props, start: usize, end: usize, kind: Kind) -> NodeId {
        let nodes = &self.tree.nodes;
        let (weight, depth) = match &kind {
            Kind::Empty => (1, 0),
            Kind::Scalar { text, .. } => {
                let len = match text {
                    Text::Slice(range) => range.len(),
                    Text::Owned(text) => text.len(),
                };
                (1 + len as u64 / 64, 0)
            }
            Kind::Alias { target } => (nodes[*target].weight, nodes[*target].depth),
            Kind::Map { entries, .. } => sum(entries
                .iter()
                .flat_map(|e: &Entry| [&nodes[e.key], &nodes[e.value]])),
            Kind::Seq { items, .. } => sum(items.iter().map(|i: &Item| &nodes[i.value])),
        };
        let own = match &kind {
            Kind::Scalar { .. } => weight,
            Kind::Alias { .. } => 0,
            _ => 1,
        };
        let id = nodes.len();
        self.tree.own_weight += own;
        if let Some(anchor) = &props.anchor {
            self.anchors
                .insert(&self.text[anchor.start + 1..anchor.end], Some(id));
        }
        self.tree.nodes.push(Node {
            props: props.start.unwrap_or(start),
            start,
            end,
            anchor: props.anchor,
            tag: props.tag,
            kind,
            weight,
            depth,
        });
        id
    }

    /// A value that was not written, behind its properties or at `slot`.
    fn add_empty(&mut self, props: Props, slot: usize) -> NodeId {
        let at = if props.start.is_some() {
            props.end
        } else {
            slot
        };
        self.add(props, at, at, Kind::Empty)
    }

    fn read_alias(&mut self, props: Props) -> Read<NodeId> {
        let (start, end) = (self.pos, self.prop_end(self.pos));
        let name = &self.text[start + 1..end];
        if props.start.is_some() {
            return Err(self.fault("an alias cannot have an anchor or a tag"));
        }
        let target = match self.anchors.get(name) {
            Some(Some(target)) => *target,
            Some(None) => return Err(self.fault(format!("`*{name}` is used inside itself"))),
            None => return Err(self.fault(format!("there is no anchor `&{name}` above"))),
        };
        self.consume(end);
        self.tree.has_alias = true;
        if self.tree.nodes[target].depth + self.depth > MAX_DEPTH {
            return Err(Fault {
                offset: start,
                message: format!("aliases nest deeper than {MAX_DEPTH}"),
                kind: ParseErrorKind::AliasBomb,
            });
        }
        Ok(self.add(props, start, end, Kind::Alias { target }))
    }
}

fn sum<'n>(children: impl Iterator<Item = &'n Node>) -> (u64, u32) {
    children.fold((1, 1), |(weight, depth), child| {
        (
            weight.saturating_add(child.weight),
            depth.max(child.depth + 1),
        )
    })
}
