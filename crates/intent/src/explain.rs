//! Why something is there: from a node's VLAN, a prefix or an object to the items of the form, and from those to who put
//! them there, through which rule, on which nodes.
//!
//! `moor explain` asks. The answer comes from contributions, so it is the same on a laptop and in a cluster.

use std::collections::{BTreeMap, BTreeSet};

use mooring_api::{Cidr, HostCidr, ObjectRef};
use serde::{Deserialize, Serialize};

use crate::form::Item;
use crate::{Compiled, Inputs, Scope};

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// Everything of a node, or what stands under a path there, such as `vlan/234`.
    Node {
        /// The node.
        name: String,
        /// The beginning of the path; empty for all.
        path: String,
    },
    /// Whatever is about a prefix, or about an address of it.
    Prefix(Cidr),
    /// What an object became.
    Object {
        /// Its kind, in any case.
        kind: String,
        /// Its name.
        name: String,
    },
}

/// One part of the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reason {
    /// The part of the form.
    pub path: String,
    /// What stands there.
    pub item: Item,
    /// On which nodes.
    pub scope: Scope,
    /// Which these are.
    pub nodes: BTreeSet<String>,
    /// Who, by which field, through which rule.
    pub origins: BTreeSet<Origin>,
}

/// Who put a part there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    /// The object.
    pub object: ObjectRef,
    /// The field.
    pub field: String,
    /// The rule.
    pub rule: String,
}

/// The parts of the form that a question is about, by path.
pub fn explain(inputs: &Inputs, compiled: &Compiled, question: &Question) -> Vec<Reason> {
    let mut found: BTreeMap<(String, Scope, Item), BTreeSet<Origin>> = BTreeMap::new();
    for contribution in &compiled.contributions {
        for placed in &contribution.items {
            let asked = match question {
                Question::Node { name, path } => {
                    let at = placed.item.path();
                    let mut nodes = inputs.nodes.iter();
                    let node = nodes.find(|n| n.name == *name);
                    node.is_some_and(|n| placed.scope.matches(&n.labels)) && under(&at, path)
                }
                Question::Prefix(prefix) => {
                    prefixes(&placed.item).iter().any(|p| p.overlaps(prefix))
                }
                Question::Object { kind, name } => {
                    let id = &contribution.object;
                    id.kind.eq_ignore_ascii_case(kind) && id.name == *name
                }
            };
            if asked {
                let key = (
                    placed.item.path(),
                    placed.scope.clone(),
                    placed.item.clone(),
                );
                found.entry(key).or_default().insert(Origin {
                    object: contribution.object.clone(),
                    field: placed.field.clone(),
                    rule: placed.rule.clone(),
                });
            }
        }
    }
    let reasons = found.into_iter().map(|((path, scope, item), origins)| {
        let here = inputs.nodes.iter().filter(|n| scope.matches(&n.labels));
        Reason {
            nodes: here.map(|n| n.name.clone()).collect(),
            path,
            item,
            scope,
            origins,
        }
    });
    reasons.collect()
}

/// Whether a path is another one or stands under it; `vlan/23` is not above `vlan/234`.
fn under(path: &str, above: &str) -> bool {
    let rest = path.strip_prefix(above);
    above.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The prefixes that an item is about.
fn prefixes(item: &Item) -> Vec<Cidr> {
    match item {
        Item::Segment(s) => s.gateways.iter().map(HostCidr::subnet).collect(),
        Item::Host(h) => h.addresses.keys().chain(h.routes.keys()).copied().collect(),
        Item::Leak(l) => vec![l.rule.prefix],
        Item::Aggregate(a) => vec![a.prefix],
        Item::Steer(s) => vec![s.source],
        Item::Local(l) => l.routes.keys().copied().collect(),
        Item::Peer(p) => {
            let lists = p.import.iter().chain(&p.export);
            lists.map(|rule| rule.prefix).collect()
        }
        Item::Vrf(_) | Item::Loopback(_) | Item::Tunnel(_) | Item::Mirror(_) => Vec::new(),
    }
}
