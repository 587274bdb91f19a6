//! Edits inside an indented list: elements are matched by `align`, new ones come behind the element that
//! stays before them.
//!
//! Easy to get wrong: in front of the first element there may be a dash of an outer list on its line.

use serde_json::Value;

use super::{Slot, Writer};
use crate::align::{Op, align};
use crate::node::{Form, Item};

impl<'a> Writer<'a, '_> {
    /// False where the list must be written anew.
    pub(super) fn list(
        &mut self,
        form: Form,
        items: &'a [Item],
        old: &'a [Value],
        new: &'a [Value],
    ) -> bool {
        let ops = align(old, new);
        let mut stays = vec![false; items.len()];
        for op in &ops {
            if let Op::Keep { old, .. } = op {
                stays[*old] = true;
            }
        }
        let (Some(first), Some(last)) = (
            stays.iter().position(|s| *s),
            stays.iter().rposition(|s| *s),
        ) else {
            return old.is_empty() && new.is_empty();
        };
        let spans: Vec<_> = items
            .iter()
            .map(|item| {
                let dash = if form == Form::Flow {
                    0
                } else {
                    item.start + 1
                };
                (item.start, self.end(item.value).max(dash))
            })
            .collect();
        let Form::Block { column } = form else {
            return self.flow_list(&ops, &stays, last, items, &spans, old, new);
        };
        let mut before: Option<usize> = None;
        let mut pending = String::new();
        for op in &ops {
            match op {
                Op::Keep { old: o, new: n } => {
                    self.flush(
                        &mut pending,
                        before.map_or(spans[first].0, |o| self.source.eol(spans[o].1)),
                    );
                    let slot = Slot::Block {
                        at: items[*o].start + 1,
                        column,
                        in_list: true,
                    };
                    self.node(items[*o].value, &old[*o], &new[*n], slot);
                    before = Some(*o);
                }
                Op::Remove { .. } => {}
                Op::Insert { new: n } if before.is_some() => {
                    self.hand.line(&mut pending, column);
                    self.hand.item(&mut pending, &new[*n], column);
                }
                Op::Insert { new: n } => {
                    self.hand.item(&mut pending, &new[*n], column);
                    self.hand.line(&mut pending, column);
                }
            }
        }
        self.flush(
            &mut pending,
            before.map_or(spans[first].0, |o| self.source.eol(spans[o].1)),
        );
        self.remove_lines(spans[0].0, &spans, &|i| stays[i]);
        true
    }

    fn flush(&mut self, pending: &mut String, at: usize) {
        self.splices.insert(at, std::mem::take(pending));
    }
}
