//! Edits inside brackets: commas go with what is removed and come with what is added.
//!
//! Easy to get wrong: a trailing comma stays where it is, because text is added behind the last entry
//! and not before the bracket.

use serde_json::Value;

use super::{Slot, Writer};
use crate::align::Op;
use crate::emit::{flow, flow_text};
use crate::node::Item;

impl<'a> Writer<'a, '_> {
    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of one list, used once"
    )]
    pub(super) fn flow_list(
        &mut self,
        ops: &[Op],
        stays: &[bool],
        last: usize,
        items: &'a [Item],
        spans: &[(usize, usize)],
        old: &'a [Value],
        new: &'a [Value],
    ) -> bool {
        let last_keep = ops
            .iter()
            .rposition(|op| matches!(op, Op::Keep { .. }))
            .unwrap_or(0);
        let inserts_inside = ops[..last_keep]
            .iter()
            .any(|op| matches!(op, Op::Insert { .. }));
        if inserts_inside {
            return false;
        }
        for op in ops {
            if let Op::Keep { old: o, new: n } = op {
                self.node(items[*o].value, &old[*o], &new[*n], Slot::Flow { lead: "" });
            }
        }
        self.remove_between(spans, &|i| stays[i]);
        let added = ops[last_keep..].iter().filter_map(|op| match op {
            Op::Insert { new: n } => Some((None, &new[*n])),
            _ => None,
        });
        self.append_flow(spans[last], added);
        true
    }

    /// Removes what does not stay, each with one comma. At least one stays.
    pub(super) fn remove_between(
        &mut self,
        spans: &[(usize, usize)],
        stays: &dyn Fn(usize) -> bool,
    ) {
        let mut kept_before = false;
        for i in 0..spans.len() {
            if stays(i) {
                kept_before = true;
            } else if kept_before {
                self.splices.delete(spans[i - 1].1..spans[i].1);
            } else {
                self.splices.delete(spans[i].0..spans[i + 1].0);
            }
        }
    }

    /// Adds behind the last entry that stays, on lines of their own where the entries have them.
    pub(super) fn append_flow<'v>(
        &mut self,
        last: (usize, usize),
        added: impl Iterator<Item = (Option<&'v str>, &'v Value)>,
    ) {
        let mut text = String::new();
        for (key, value) in added {
            text.push(',');
            if self.source.is_first_on_line(last.0) {
                let start = self.source.line_start(last.0);
                text.push_str(self.hand.eol);
                text.push_str(&self.source.text[start..last.0]);
            } else {
                text.push(' ');
            }
            if let Some(key) = key {
                flow_text(&mut text, key, self.json);
                text.push_str(": ");
            }
            flow(&mut text, value, self.json);
        }
        self.splices.insert(last.1, text);
    }
}
