//! Edits inside an indented map. Keys that stay are walked, keys that go lose their lines, new keys come
//! behind the last one that stays.
//!
//! Easy to get wrong: in `- a: 1` the first key shares its line with the dash, so the line must stay.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{Slot, Writer};
use crate::node::{Entry, Form, Kind, Node, NodeId};

impl<'a> Writer<'a, '_> {
    /// False where the map must be written anew.
    pub(super) fn map(
        &mut self,
        node: &'a Node,
        form: Form,
        entries: &'a [Entry],
        old: &'a Map<String, Value>,
        new: &'a Map<String, Value>,
    ) -> bool {
        let names: Vec<_> = entries
            .iter()
            .map(|entry| {
                self.tree
                    .key_name(&self.source.text, entry.key)
                    .unwrap_or_default()
            })
            .collect();
        let stays = |i: usize| entries[i].merge || new.contains_key(&*names[i]);
        let kept: Vec<usize> = (0..entries.len()).filter(|&i| stays(i)).collect();
        let Some(&last) = kept.last() else {
            return old.is_empty() && new.is_empty();
        };
        let Some(inherited) = self.inherited(entries) else {
            return false;
        };
        // What comes through `<<` cannot be taken away without writing the map anew.
        if inherited.keys().any(|key| !new.contains_key(key)) {
            return false;
        }
        let written: BTreeSet<&str> = entries
            .iter()
            .zip(&names)
            .filter(|(entry, _)| !entry.merge)
            .map(|(_, name)| &**name)
            .collect();
        let added: Vec<_> = new
            .iter()
            .filter(|(key, value)| {
                !written.contains(key.as_str()) && inherited.get(key.as_str()) != Some(value)
            })
            .collect();
        let bare_key =
            |i: &usize| matches!(form, Form::Block { .. }) && entries[*i].colon.is_none();
        if kept.iter().any(bare_key) {
            return false;
        }
        if form == Form::Pair && (kept.len() < entries.len() || !added.is_empty()) {
            return false;
        }
        for &i in kept.iter().filter(|&&i| !entries[i].merge) {
            let (entry, name) = (&entries[i], &*names[i]);
            let slot = match (form, entry.colon) {
                (Form::Block { column }, Some(colon)) => Slot::Block {
                    at: colon + 1,
                    column,
                    in_list: false,
                },
                (_, Some(_)) => Slot::Flow { lead: " " },
                (_, None) => Slot::Flow { lead: ": " },
            };
            if let (Some(old), Some(new)) = (old.get(name), new.get(name)) {
                self.node(entry.value, old, new, slot);
            }
        }
        let spans: Vec<_> = entries
            .iter()
            .map(|e| {
                let colon = e.colon.map_or(0, |colon| colon + 1);
                (e.start, self.end(e.value).max(self.end(e.key)).max(colon))
            })
            .collect();
        if let Form::Block { column } = form {
            self.remove_lines(node.start, &spans, &stays);
            let at = self.source.eol(spans[last].1);
            let hand = self.hand;
            let mut text = String::new();
            for (key, value) in added {
                hand.line(&mut text, column);
                hand.entry(&mut text, key, value, column);
            }
            self.splices.insert(at, text);
        } else {
            self.remove_between(&spans, &stays);
            self.append_flow(
                spans[last],
                added.into_iter().map(|(k, v)| (Some(k.as_str()), v)),
            );
        }
        true
    }

    /// Removes the entries of an indented collection that do not stay. At least one stays.
    pub(super) fn remove_lines(
        &mut self,
        start: usize,
        spans: &[(usize, usize)],
        stays: &dyn Fn(usize) -> bool,
    ) {
        let mut from = 0;
        let first_kept = (0..spans.len()).find(|&i| stays(i)).unwrap_or(0);
        if first_kept > 0 && !self.source.is_first_on_line(start) {
            // The line belongs to a dash in front. Comments between stay, the rest closes up.
            let behind = self.source.eol(spans[first_kept - 1].1);
            let gap = &self.source.text[behind..spans[first_kept].0];
            if gap.contains('#') {
                let lead = self.source.text[..start]
                    .trim_end_matches([' ', '\t'])
                    .len();
                self.splices.delete(lead..behind);
            } else {
                self.splices.delete(start..spans[first_kept].0);
            }
            from = first_kept;
        }
        for i in (from..spans.len()).filter(|&i| !stays(i)) {
            self.delete_lines(spans[i].0, spans[i].1);
        }
    }

    /// What the map gets through `<<` once the anchors above have their new values.
    fn inherited(&self, entries: &'a [Entry]) -> Option<Map<String, Value>> {
        let mut all = Map::new();
        for entry in entries.iter().filter(|entry| entry.merge) {
            self.inherit(entry.value, &mut all)?;
        }
        Some(all)
    }

    fn inherit(&self, id: NodeId, all: &mut Map<String, Value>) -> Option<()> {
        match &self.tree.nodes[id].kind {
            Kind::Alias { target } => {
                for (key, value) in self.anchored.get(target)?.as_object()? {
                    all.entry(key).or_insert_with(|| value.clone());
                }
            }
            Kind::Seq { items, .. } => {
                for item in items {
                    self.inherit(item.value, all)?;
                }
            }
            // A map written behind `<<` itself: rare enough to be written anew.
            _ => return None,
        }
        Some(())
    }
}
