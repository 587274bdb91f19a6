//! Who stays: conflicts and the budget of tables, again and again until nobody loses.
//!
//! Who loses and ran before goes back to its last good form, once; who loses in that form too, or never ran, goes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mooring_api::{Code, Finding, ObjectRef};

use super::{Context, Draft};
use crate::conflict;
use crate::form::Item;
use crate::{Node, Scope};

/// How many VRFs a node has routing tables for.
pub(crate) const TABLES: usize = 30;

/// Who is wrong without anybody else steps back before anybody is compared. Gives who is frozen by that.
pub(crate) fn aside(context: &Context<'_>, drafts: &mut [Draft]) -> BTreeSet<ObjectRef> {
    let mut frozen = BTreeSet::new();
    for draft in drafts {
        if draft.is_bad() {
            step_back(context, draft, &mut frozen);
        }
    }
    frozen
}

pub(crate) fn settle(context: &Context<'_>, mut drafts: Vec<Draft>) -> Vec<Draft> {
    let mut frozen = aside(context, &mut drafts);
    // Every round takes at least one object back or out, and an object goes back once and out once.
    for _ in 0..=2 * drafts.len() {
        let lost = conflict::losers(context, &drafts);
        let lost = if lost.is_empty() {
            over_budget(context, &drafts)
        } else {
            lost
        };
        if lost.is_empty() {
            break;
        }
        for draft in &mut drafts {
            if let Some(found) = lost.get(draft.id()) {
                draft.findings.extend(found.iter().cloned());
                step_back(context, draft, &mut frozen);
            }
        }
    }
    drafts
}

/// Back to the last good form, or out.
fn step_back(context: &Context<'_>, draft: &mut Draft, frozen: &mut BTreeSet<ObjectRef>) {
    let id = draft.id().clone();
    draft.contribution = Draft::of(id.clone(), None).contribution;
    if let Some(before) = context.prior.shared(&id)
        && frozen.insert(id)
    {
        draft.contribution = Arc::clone(before).into();
        draft.warn(
            Code::Frozen,
            "spec",
            "it keeps the form in which it last ran".to_owned(),
            "correct it, or delete it to withdraw what it has on the nodes",
        );
    }
}

/// The first object, by age, with which a node would have more VRFs than tables.
pub(crate) fn over_budget(
    context: &Context<'_>,
    drafts: &[Draft],
) -> BTreeMap<ObjectRef, Vec<Finding>> {
    let mut by_scope: BTreeMap<&Scope, BTreeSet<&str>> = BTreeMap::new();
    for placed in drafts.iter().flat_map(|d| &d.contribution.items) {
        if let Some(name) = table(&placed.item) {
            by_scope.entry(&placed.scope).or_default().insert(name);
        }
    }
    let all: BTreeSet<&str> = by_scope.values().flatten().copied().collect();
    if all.len() <= TABLES {
        return BTreeMap::new();
    }
    let mut by_node: BTreeMap<usize, BTreeSet<&str>> = BTreeMap::new();
    for (scope, names) in by_scope {
        for at in context.nodes.within(scope).iter() {
            by_node.entry(*at).or_default().extend(&names);
        }
    }
    let full = by_node.into_iter().find(|(_, vrfs)| vrfs.len() > TABLES);
    full.map_or_else(BTreeMap::new, |(at, _)| {
        too_many(drafts, &context.inputs.nodes[at])
    })
}

/// The VRF that an item needs a table for.
fn table(item: &Item) -> Option<&str> {
    match item {
        Item::Vrf(vrf) => Some(&vrf.name),
        Item::Local(local) => Some(&local.name),
        _ => None,
    }
}

fn too_many(drafts: &[Draft], node: &Node) -> BTreeMap<ObjectRef, Vec<Finding>> {
    let mut ordered: Vec<&Draft> = drafts.iter().collect();
    ordered.sort_by_key(|draft| conflict::rank(draft));
    let mut vrfs: BTreeSet<&str> = BTreeSet::new();
    for draft in ordered {
        let placed = draft.contribution.items.iter();
        let here = placed.filter(|p| p.scope.matches(&node.labels));
        vrfs.extend(here.filter_map(|p| table(&p.item)));
        if vrfs.len() > TABLES {
            let message = format!(
                "node {} would have more than {TABLES} VRFs with it",
                node.name
            );
            let found = Finding::error(Code::VRFTableBudgetExceeded, message)
                .on(draft.id())
                .at("spec.destinations")
                .help("narrow its nodes, or give attachments the same set of VRFs");
            return BTreeMap::from([(draft.id().clone(), vec![found])]);
        }
    }
    BTreeMap::new()
}
