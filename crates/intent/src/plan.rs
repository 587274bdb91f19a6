//! What would change: the difference between two compilations, in the words of the form.
//!
//! `moor plan` prints it, and the controller asks how far a change reaches before it begins. Easy to get wrong: an item
//! that changes is one that goes and one that comes under the same path.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::form::{Item, Side};
use crate::{Compiled, Scope};

/// The difference between two compilations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The digests, before and after.
    pub digest: (String, String),
    /// Parts of the form that come.
    pub added: Vec<Part>,
    /// Parts of the form that go.
    pub removed: Vec<Part>,
    /// Nodes whose agent is told something else beside the revision's name.
    pub agents: BTreeSet<String>,
    /// Nodes whose host is told something else.
    pub hosts: BTreeSet<String>,
    /// Objects of the platform that come.
    pub created: Vec<Value>,
    /// Objects of the platform that change: as they will be.
    pub changed: Vec<Value>,
    /// Objects of the platform that go.
    pub deleted: Vec<Value>,
    /// Exports that are taken back: VRF and prefix.
    pub withdrawn: BTreeSet<(String, String)>,
}

/// A part of the form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Part {
    /// Its path, such as `vlan/234`.
    pub path: String,
    /// On which nodes.
    pub scope: Scope,
    /// What.
    pub item: Item,
    /// Who put it there.
    pub origins: Vec<String>,
}

impl Plan {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty()
            && self.removed.is_empty()
            && self.agents.is_empty()
            && self.hosts.is_empty()
            && self.created.is_empty()
            && self.changed.is_empty()
            && self.deleted.is_empty()
    }
}

/// What changes from one compilation to another.
pub fn plan(before: &Compiled, after: &Compiled) -> Plan {
    let (old, new) = (parts(before), parts(after));
    let only = |from: &BTreeMap<(String, Scope, Item), Vec<String>>,
                other: &BTreeMap<(String, Scope, Item), Vec<String>>| {
        let gone = from.iter().filter(|(key, _)| !other.contains_key(*key));
        gone.map(|((path, scope, item), origins)| Part {
            path: path.clone(),
            scope: scope.clone(),
            item: item.clone(),
            origins: origins.clone(),
        })
        .collect::<Vec<_>>()
    };
    let removed = only(&old, &new);
    let exports =
        |parts: &BTreeMap<(String, Scope, Item), Vec<String>>| -> BTreeSet<(String, String)> {
            parts
                .keys()
                .filter_map(|(_, _, item)| exported(item))
                .collect()
        };
    let mut plan = Plan {
        digest: (before.digest.clone(), after.digest.clone()),
        added: only(&new, &old),
        removed,
        withdrawn: exports(&old).difference(&exports(&new)).cloned().collect(),
        ..Plan::default()
    };
    nodes(before, after, &mut plan);
    platform(before, after, &mut plan);
    plan
}

fn exported(item: &Item) -> Option<(String, String)> {
    match item {
        Item::Leak(leak) if leak.side == Side::Export && leak.rule.permit => {
            Some((leak.vrf.clone(), leak.rule.prefix.to_string()))
        }
        _ => None,
    }
}

fn parts(compiled: &Compiled) -> BTreeMap<(String, Scope, Item), Vec<String>> {
    let why = compiled.provenance();
    let mut parts = BTreeMap::new();
    for (scope, items) in compiled.form.scopes() {
        for item in items {
            let path = item.path();
            let origins = why.get(&path).into_iter().flatten().cloned().collect();
            parts.insert((path, scope.clone(), item.clone()), origins);
        }
    }
    parts
}

fn nodes(before: &Compiled, after: &Compiled, plan: &mut Plan) {
    let names: BTreeSet<&String> = before.nodes.keys().chain(after.nodes.keys()).collect();
    for name in names {
        let (old, new) = (before.nodes.get(name), after.nodes.get(name));
        if old.map(|c| &c.network) != new.map(|c| &c.network) {
            plan.agents.insert(name.clone());
        }
        if old.map(|c| &c.netplan) != new.map(|c| &c.netplan) {
            plan.hosts.insert(name.clone());
        }
    }
}

fn platform(before: &Compiled, after: &Compiled, plan: &mut Plan) {
    let by_key = |objects: &[Value]| -> BTreeMap<[String; 4], Value> {
        let keyed = objects.iter().map(|o| (crate::platform::key(o), o.clone()));
        keyed.collect()
    };
    let (old, new) = (by_key(&before.platform), by_key(&after.platform));
    for (key, object) in &new {
        match old.get(key) {
            None => plan.created.push(object.clone()),
            Some(was) if was != object => plan.changed.push(object.clone()),
            Some(_) => {}
        }
    }
    let gone = old.iter().filter(|(key, _)| !new.contains_key(*key));
    plan.deleted.extend(gone.map(|(_, object)| object.clone()));
}
