//! Bracketed collections: `{a: b}`, `[a, b]`, and therefore JSON.
//!
//! Easy to get wrong: `[a: b]` is a list of one map that has no braces of its own.

use super::{Props, Read, Reader};
use crate::node::{Entry, Form, Item, Kind, NodeId, Style};
use crate::source::Fault;

impl Reader<'_> {
    pub(super) fn flow_collection(&mut self, props: Props) -> Read<NodeId> {
        self.enter()?;
        let start = self.pos;
        let is_map = self.peek() == Some(b'{');
        let close = if is_map { b'}' } else { b']' };
        self.consume(start + 1);
        let (mut entries, mut items) = (Vec::new(), Vec::new());
        loop {
            self.flow_token(start)?;
            if self.peek() == Some(close) {
                break;
            }
            if is_map {
                entries.push(self.flow_entry(start)?);
            } else {
                let item = self.pos;
                let value = self.flow_item(start)?;
                items.push(Item { start: item, value });
            }
            self.flow_token(start)?;
            match self.peek() {
                Some(b',') => self.consume(self.pos + 1),
                Some(b) if b == close => break,
                _ => {
                    let expected = if is_map { "`,` or `}`" } else { "`,` or `]`" };
                    return Err(self.fault(format!("{expected} is expected here")));
                }
            }
        }
        self.consume(self.pos + 1);
        self.depth -= 1;
        let form = Form::Flow;
        let kind = if is_map {
            Kind::Map { form, entries }
        } else {
            Kind::Seq { form, items }
        };
        Ok(self.add(props, start, self.pos, kind))
    }

    /// The next token inside brackets that were opened at `open`.
    fn flow_token(&mut self, open: usize) -> Read<()> {
        self.next_token(true)?;
        if self.peek().is_none() || self.at_marker() {
            let bracket = char::from(self.s[open]);
            return Err(Fault::syntax(
                open,
                format!("this `{bracket}` is not closed"),
            ));
        }
        Ok(())
    }

    fn flow_entry(&mut self, open: usize) -> Read<Entry> {
        let start = self.pos;
        if self.peek() == Some(b'?') && self.ends_token(start + 1) {
            self.consume(start + 1);
            self.flow_token(open)?;
        }
        let key = self.flow_value(open)?;
        self.flow_pair_value(open, start, key)
    }

    fn flow_pair_value(&mut self, open: usize, start: usize, key: NodeId) -> Read<Entry> {
        self.flow_token(open)?;
        let merge = self.is_merge(key);
        if self.peek() != Some(b':') {
            let end = self.tree.nodes[key].end;
            let value = self.add_empty(Props::default(), end);
            return Ok(Entry {
                start,
                key,
                colon: None,
                value,
                merge,
            });
        }
        let colon = self.pos;
        self.consume(colon + 1);
        self.flow_token(open)?;
        let value = if matches!(self.peek(), Some(b',' | b'}' | b']')) {
            self.add_empty(Props::default(), colon + 1)
        } else {
            self.flow_value(open)?
        };
        Ok(Entry {
            start,
            key,
            colon: Some(colon),
            value,
            merge,
        })
    }

    fn flow_item(&mut self, open: usize) -> Read<NodeId> {
        let start = self.pos;
        let explicit = self.peek() == Some(b'?') && self.ends_token(start + 1);
        if explicit {
            self.consume(start + 1);
            self.flow_token(open)?;
        }
        let node = self.flow_value(open)?;
        let line = self.line_start;
        self.flow_token(open)?;
        if !explicit && (self.peek() != Some(b':') || self.line_start != line) {
            return Ok(node);
        }
        let entry = self.flow_pair_value(open, start, node)?;
        let end = self.tree.nodes[entry.value]
            .end
            .max(entry.colon.map_or(start, |c| c + 1));
        let kind = Kind::Map {
            form: Form::Pair,
            entries: vec![entry],
        };
        Ok(self.add(Props::default(), start, end, kind))
    }

    fn flow_value(&mut self, open: usize) -> Read<NodeId> {
        let slot = self.pos;
        let mut props = Props::default();
        while matches!(self.peek(), Some(b'&' | b'!')) {
            self.read_prop(&mut props)?;
            self.flow_token(open)?;
        }
        match self.peek() {
            Some(b'[' | b'{') => self.flow_collection(props),
            Some(b'"' | b'\'') => self.quoted(props),
            Some(b'*') => self.read_alias(props),
            Some(b',' | b']' | b'}') if props.start.is_some() => Ok(self.add_empty(props, slot)),
            Some(b':') if self.flow_ends(self.pos + 1) => Ok(self.add_empty(props, slot)),
            Some(b'-') if self.flow_ends(self.pos + 1) => {
                Err(self.fault("a dash cannot begin a list inside brackets"))
            }
            Some(b @ (b',' | b']' | b'}' | b'#' | b'|' | b'>' | b'%' | b'@' | b'`')) => {
                Err(self.fault(format!("a value cannot begin with `{}`", char::from(b))))
            }
            _ => self.plain(props, None, true),
        }
    }

    /// Whether a plain text ends here, inside brackets.
    pub(super) fn flow_ends(&self, at: usize) -> bool {
        self.ends_token(at) || matches!(self.byte(at), Some(b',' | b'[' | b']' | b'{' | b'}'))
    }

    pub(super) fn add_plain(&mut self, props: Props, start: usize, end: usize) -> NodeId {
        let text = crate::node::Text::Slice(start..end);
        self.add(
            props,
            start,
            end,
            Kind::Scalar {
                style: Style::Plain,
                text,
            },
        )
    }
}
