//! Indented collections: maps by their keys' column, lists by their dashes' column.
//!
//! Easy to get wrong: properties on the line of a key belong to the key, properties on a line of their
//! own belong to the whole map; `key_ahead` looks past them before anything is consumed.

use super::{Props, Read, Reader};
use crate::node::{Entry, Form, Item, Kind, NodeId, Text};
use crate::source::{Fault, is_blank, is_break};

impl Reader<'_> {
    /// The value behind a colon, a dash or a document's start. Content must stand right of `parent`;
    /// a list may stand at `parent` itself when `list_at_parent`; a collection may begin on this very
    /// line when `compact`.
    pub(super) fn block_node(
        &mut self,
        parent: Option<usize>,
        list_at_parent: bool,
        mut compact: bool,
    ) -> Read<NodeId> {
        self.enter()?;
        let slot = self.pos;
        let mut props = Props::default();
        loop {
            self.next_token(false)?;
            compact |= self.fresh;
            if self.peek().is_none() || self.at_marker() {
                self.depth -= 1;
                return Ok(self.add_empty(props, slot));
            }
            if self.fresh
                && parent.is_some_and(|parent| {
                    let column = self.column();
                    column < parent || (column == parent && !(list_at_parent && self.at_dash()))
                })
            {
                self.depth -= 1;
                return Ok(self.add_empty(props, slot));
            }
            if !matches!(self.peek(), Some(b'&' | b'!')) || (compact && self.key_ahead()) {
                break;
            }
            self.read_prop(&mut props)?;
            compact = false;
        }
        let id = self.block_content(parent, props, compact)?;
        self.depth -= 1;
        Ok(id)
    }

    fn block_content(
        &mut self,
        parent: Option<usize>,
        props: Props,
        compact: bool,
    ) -> Read<NodeId> {
        let column = self.column();
        let Some(byte) = self.peek() else {
            return Err(self.unexpected());
        };
        match byte {
            b'-' if self.at_dash() => {
                if !compact {
                    return Err(self.fault("a list must begin on a line of its own"));
                }
                self.block_seq(props, column)
            }
            b'?' if self.ends_token(self.pos + 1) => {
                if !compact {
                    return Err(self.fault("a complex key must begin on a line of its own"));
                }
                self.block_map(props, column)
            }
            b'|' | b'>' => self.block_scalar(props, parent),
            _ if compact && self.key_ahead() => self.block_map(props, column),
            b'*' => self.read_alias(props),
            b'[' | b'{' => self.flow_collection(props),
            b'"' | b'\'' => self.quoted(props),
            b'%' | b'@' | b'`' | b',' | b']' | b'}' => {
                Err(self.fault(format!("a value cannot begin with `{}`", char::from(byte))))
            }
            b':' if self.ends_token(self.pos + 1) => Err(self.unexpected()),
            _ => self.plain(props, parent, false),
        }
    }

    pub(super) fn at_dash(&self) -> bool {
        self.peek() == Some(b'-') && self.ends_token(self.pos + 1)
    }

    fn block_seq(&mut self, props: Props, column: usize) -> Read<NodeId> {
        let start = self.pos;
        let mut items = Vec::new();
        loop {
            let dash = self.pos;
            self.consume(dash + 1);
            let value = self.block_node(Some(column), false, true)?;
            items.push(Item { start: dash, value });
            if !self.sibling(column)? || !self.at_dash() {
                break;
            }
        }
        let end = self.end_of(
            items.last().map_or(start, |i| i.start + 1),
            items.last().map(|i| i.value),
        );
        let form = Form::Block { column };
        Ok(self.add(props, start, end, Kind::Seq { form, items }))
    }

    fn block_map(&mut self, props: Props, column: usize) -> Read<NodeId> {
        let start = self.pos;
        let mut entries: Vec<Entry> = Vec::new();
        loop {
            let entry = self.block_entry(column)?;
            entries.push(entry);
            if !self.sibling(column)? {
                break;
            }
            let explicit = self.peek() == Some(b'?') && self.ends_token(self.pos + 1);
            if !explicit && !self.key_ahead() {
                if self.at_dash() {
                    return Err(self.fault("a list item stands among the keys of a mapping"));
                }
                return Err(self.fault("a key and a colon are expected here"));
            }
        }
        let last = entries
            .last()
            .map(|e| (e.colon.map_or(e.start, |c| c + 1), e.key, e.value));
        let end = match last {
            Some((behind, key, value)) => self
                .end_of(behind, Some(value))
                .max(self.tree.nodes[key].end),
            None => start,
        };
        let form = Form::Block { column };
        Ok(self.add(props, start, end, Kind::Map { form, entries }))
    }

    fn block_entry(&mut self, column: usize) -> Read<Entry> {
        let start = self.pos;
        if self.peek() == Some(b'?') && self.ends_token(start + 1) {
            self.consume(start + 1);
            let key = self.block_node(Some(column), false, true)?;
            self.next_token(false)?;
            let has_value = self.fresh
                && self.peek() == Some(b':')
                && self.column() == column
                && self.ends_token(self.pos + 1);
            let (colon, value) = if has_value {
                let colon = self.pos;
                self.consume(colon + 1);
                (Some(colon), self.block_node(Some(column), false, true)?)
            } else {
                let at = self.tree.nodes[key].end;
                (None, self.add_empty(Props::default(), at))
            };
            return Ok(Entry {
                start,
                key,
                colon,
                value,
                merge: false,
            });
        }
        let key = self.simple_key()?;
        while self.peek().is_some_and(is_blank) {
            self.pos += 1;
        }
        let colon = self.pos;
        if self.peek() != Some(b':') {
            return Err(self.fault("a colon is expected after this key"));
        }
        self.consume(colon + 1);
        let value = self.block_node(Some(column), true, false)?;
        let merge = self.is_merge(key);
        Ok(Entry {
            start,
            key,
            colon: Some(colon),
            value,
            merge,
        })
    }

    /// Whether the next token is at this column; false where the collection ends.
    fn sibling(&mut self, column: usize) -> Read<bool> {
        self.next_token(false)?;
        if self.peek().is_none() || self.at_marker() {
            return Ok(false);
        }
        if !self.fresh || self.column() > column {
            return Err(self.unexpected());
        }
        Ok(self.column() == column)
    }

    fn end_of(&self, behind: usize, value: Option<NodeId>) -> usize {
        value.map_or(behind, |id| self.tree.nodes[id].end.max(behind))
    }

    pub(super) fn is_merge(&self, key: NodeId) -> bool {
        let node = &self.tree.nodes[key];
        matches!(
            &node.kind,
            Kind::Scalar { style: crate::node::Style::Plain, text: Text::Slice(range) }
                if node.tag.is_none() && &self.s[range.clone()] == b"<<"
        )
    }

    fn simple_key(&mut self) -> Read<NodeId> {
        let mut props = Props::default();
        while matches!(self.peek(), Some(b'&' | b'!')) {
            self.read_prop(&mut props)?;
            while self.peek().is_some_and(is_blank) {
                self.pos += 1;
            }
        }
        match self.peek() {
            Some(b'"' | b'\'') => self.quoted(props),
            Some(b'*') => self.read_alias(props),
            _ => {
                let start = self.pos;
                let colon = self
                    .plain_key_colon(start)
                    .ok_or_else(|| Fault::syntax(start, "a colon is expected after this key"))?;
                let mut end = colon;
                while end > start && is_blank(self.s[end - 1]) {
                    end -= 1;
                }
                self.consume(end);
                if start == end {
                    return Ok(self.add_empty(props, start));
                }
                Ok(self.add_plain(props, start, end))
            }
        }
    }

    /// Where the colon is, if a plain text on this line is a key.
    fn plain_key_colon(&self, start: usize) -> Option<usize> {
        let mut at = start;
        while let Some(b) = self.byte(at) {
            match b {
                b':' if self.ends_token(at + 1) => return Some(at),
                b'#' if at > start && is_blank(self.s[at - 1]) => return None,
                _ if is_break(b) => return None,
                _ => at += 1,
            }
        }
        None
    }

    /// Whether an implicit key, possibly behind properties, begins here.
    pub(super) fn key_ahead(&self) -> bool {
        let mut at = self.pos;
        let skip_blanks = |mut at: usize| {
            while self.byte(at).is_some_and(is_blank) {
                at += 1;
            }
            at
        };
        while matches!(self.byte(at), Some(b'&' | b'!')) {
            at = skip_blanks(self.prop_end(at));
        }
        let behind = match self.byte(at) {
            Some(quote @ (b'"' | b'\'')) => {
                let mut end = at + 1;
                loop {
                    match self.byte(end) {
                        Some(b'\\') if quote == b'"' => end += 2,
                        Some(b'\'') if quote == b'\'' && self.byte(end + 1) == Some(b'\'') => {
                            end += 2;
                        }
                        Some(b) if b == quote => break end + 1,
                        Some(b) if !is_break(b) => end += 1,
                        _ => return false,
                    }
                }
            }
            Some(b'*') => self.prop_end(at),
            Some(b'[' | b'{' | b']' | b'}' | b',' | b'|' | b'>' | b'%' | b'@' | b'`' | b'#')
            | None => {
                return false;
            }
            Some(b'-' | b'?') if self.ends_token(at + 1) => return false,
            Some(_) => {
                return self
                    .plain_key_colon(at)
                    .is_some_and(|colon| colon > at || at > self.pos);
            }
        };
        let colon = skip_blanks(behind);
        self.byte(colon) == Some(b':') && self.ends_token(colon + 1)
    }
}
