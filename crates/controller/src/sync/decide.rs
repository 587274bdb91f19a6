//! Decides what is applied, in which order, with how much force, and what leaves. Pure.
//!
//! ```text
//!  written ─ resolve(kinds) ─► wanted ─ plan(inventory, live) ─► ahead │ steps, by rank │ leaving
//! ```
//!
//! The rules, each with its test below:
//! - a commit with a mistake in it (two objects that are one, a namespace where none can be) is refused whole;
//! - an object of an unknown kind fails alone;
//! - an object that another RootSync has is not touched;
//! - Git wins over others in objects that we applied before, and in all of them where the RootSync says so;
//! - nothing at all in Git while something is in the cluster removes nothing, unless the RootSync allows it.

use std::collections::{BTreeMap, BTreeSet};

use mooring_api::{Code, Finding, annotation, label};
use serde_json::{Map, Value, json};

use super::inventory::{Entry, Inventory};
use super::object::{Key, Kind, Kinds, Served, Wanted, Written, api_version, rank};

/// What was written, with its place in the cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Resolved {
    pub(crate) wanted: Vec<Wanted>,
    /// Objects of kinds that nobody serves: they fail alone.
    pub(crate) unknown: Vec<Failure>,
}

/// Something that could not be done to one object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    pub(crate) key: Key,
    pub(crate) version: String,
    /// The file; empty for what left Git.
    pub(crate) file: String,
    pub(crate) finding: Finding,
}

/// An object of the cluster that is in Git and not yet surely ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Live {
    /// Whose it is: the label, where there is one.
    pub(crate) label: Option<String>,
    /// The RootSync that the annotation names.
    pub(crate) synced_by: String,
}

/// What is to be done.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Plan {
    /// What is remembered before anything is done.
    pub(crate) ahead: Inventory,
    /// What is applied, in order; objects of one list in any order.
    pub(crate) steps: Vec<Vec<Step>>,
    /// What left Git, in the order in which it is removed.
    pub(crate) leaving: Vec<Entry>,
    /// What cannot be done, found before it was tried.
    pub(crate) failures: Vec<Failure>,
}

/// One object to apply.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Step {
    pub(crate) key: Key,
    pub(crate) version: String,
    pub(crate) served: Served,
    /// What is sent.
    pub(crate) body: Value,
    /// Whether Git wins over who set a field first.
    pub(crate) force: bool,
    pub(crate) file: String,
}

/// The kinds that the CRDs among the objects will make the cluster serve.
pub(crate) fn promised(written: &[Written]) -> Kinds {
    let mut kinds = Kinds::new();
    for crd in written {
        if rank(&crd.kind.group, &crd.kind.kind) != 1 {
            continue;
        }
        let spec = &crd.value["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        for version in spec["versions"].as_array().into_iter().flatten() {
            let kind = Kind {
                group: text(&spec["group"]),
                version: text(&version["name"]),
                kind: text(&spec["names"]["kind"]),
            };
            let served = Served {
                plural: text(&spec["names"]["plural"]),
                namespaced: spec["scope"] == "Namespaced",
            };
            kinds.insert(kind, served);
        }
    }
    kinds
}

/// Gives every object its place. A mistake refuses the whole commit.
pub(crate) fn resolve(
    written: &[Written],
    kinds: &Kinds,
    namespace: &str,
) -> Result<Resolved, Vec<Finding>> {
    let mut resolved = Resolved::default();
    let mut findings = Vec::new();
    let mut seen: BTreeMap<Key, String> = BTreeMap::new();
    for object in written {
        let served = kinds.get(&object.kind);
        let place = match served {
            Some(served) if !served.namespaced => {
                if !object.namespace.is_empty() {
                    findings.push(mistake(
                        object,
                        Code::WrongScope,
                        "metadata.namespace",
                        format!(
                            "a {} belongs to the whole cluster and has no namespace",
                            object.kind.kind
                        ),
                        "Remove metadata.namespace, or correct kind.",
                    ));
                }
                ""
            }
            Some(_) if object.namespace.is_empty() => namespace,
            _ => &object.namespace,
        };
        let key = Key {
            group: object.kind.group.clone(),
            kind: object.kind.kind.clone(),
            namespace: place.to_owned(),
            name: object.name.clone(),
        };
        let here = format!("{}:{}", object.at.file, object.at.line);
        if let Some(first) = seen.insert(key.clone(), here) {
            findings.push(mistake(
                object,
                Code::DuplicateObject,
                "metadata.name",
                format!("the same object stands at {first} too"),
                "Remove one of them, or give it another name or namespace.",
            ));
            continue;
        }
        let version = object.kind.version.clone();
        let Some(served) = served else {
            let api_version = api_version(&object.kind.group, &version);
            let kind = &object.kind.kind;
            let message = format!("the API server serves no {kind} in {api_version}");
            let help =
                "Install its CRD, or put the CRD into the same directory; it is applied first.";
            resolved.unknown.push(Failure {
                key,
                version,
                file: object.at.file.clone(),
                finding: mistake(object, Code::UnknownKind, "kind", message, help),
            });
            continue;
        };
        resolved.wanted.push(Wanted {
            key,
            version,
            served: served.clone(),
            value: object.value.clone(),
            at: object.at.clone(),
        });
    }
    if findings.is_empty() {
        Ok(resolved)
    } else {
        Err(findings)
    }
}

fn mistake(object: &Written, code: Code, field: &str, message: String, help: &str) -> Finding {
    let at = &object.at;
    Finding::error(code, message)
        .on(&object.reference())
        .at(field)
        .located(&at.file, at.line, at.column)
        .help(help)
}

/// Whose sync this is, and how it was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whose<'a> {
    /// The label's value.
    pub(crate) identity: &'a str,
    /// `namespace/name` of the RootSync.
    pub(crate) name: &'a str,
    pub(crate) force: bool,
    pub(crate) allow_empty: bool,
}

/// Decides. `live` holds what is in the cluster of the objects that are not surely ours.
pub(crate) fn plan(
    resolved: &Resolved,
    inventory: &Inventory,
    live: &BTreeMap<Key, Live>,
    whose: Whose<'_>,
) -> Result<Plan, Box<Finding>> {
    let failed = resolved.unknown.iter().map(|failure| &failure.key);
    let kept: BTreeSet<&Key> = resolved
        .wanted
        .iter()
        .map(|w| &w.key)
        .chain(failed)
        .collect();
    if kept.is_empty() && !inventory.entries.is_empty() && !whose.allow_empty {
        let count = inventory.entries.len();
        let message = format!(
            "Git holds no object any more, and {count} of it are in the cluster; nothing is removed"
        );
        let help = "If that is meant, set spec.allowEmpty: true, or the annotation mooring.dev/allow-empty: \"true\".";
        return Err(Box::new(
            Finding::error(Code::SourceEmpty, message).help(help),
        ));
    }
    let mut plan = Plan {
        failures: resolved.unknown.clone(),
        ..Plan::default()
    };
    let mut entries = Vec::new();
    let mut steps: BTreeMap<u8, Vec<Step>> = BTreeMap::new();
    for wanted in &resolved.wanted {
        let known = inventory.get(&wanted.key);
        let live = live.get(&wanted.key);
        let owner = live.and_then(|live| live.label.as_deref());
        if let (Some(owner), Some(live)) = (owner, live)
            && owner != whose.identity
        {
            plan.failures.push(taken(wanted, live));
            continue;
        }
        let applied = known.is_some_and(|entry| entry.applied);
        let adopted = match known {
            Some(entry) if entry.applied || entry.adopted => entry.adopted,
            _ => live.is_some_and(|live| live.label.is_none()),
        };
        entries.push(Entry {
            key: wanted.key.clone(),
            version: wanted.version.clone(),
            applied,
            adopted,
        });
        let rank = rank(&wanted.key.group, &wanted.key.kind);
        steps.entry(rank).or_default().push(Step {
            key: wanted.key.clone(),
            version: wanted.version.clone(),
            served: wanted.served.clone(),
            body: body(wanted, whose),
            // Ours once and ours now: who changed it in between is corrected.
            force: whose.force || applied || owner.is_some(),
            file: wanted.at.file.clone(),
        });
    }
    plan.steps = steps.into_values().collect();
    let gone = inventory
        .entries
        .iter()
        .filter(|entry| !kept.contains(&entry.key));
    plan.leaving = gone.cloned().collect();
    plan.leaving
        .sort_by_key(|entry| std::cmp::Reverse(rank(&entry.key.group, &entry.key.kind)));
    // What is remembered of an object that fails now stays remembered.
    let planned: BTreeSet<Key> = entries.iter().map(|entry| entry.key.clone()).collect();
    let before = inventory
        .entries
        .iter()
        .filter(|entry| !planned.contains(&entry.key));
    entries.extend(before.cloned());
    plan.ahead = Inventory::new(entries);
    Ok(plan)
}

fn taken(wanted: &Wanted, live: &Live) -> Failure {
    let by = if live.synced_by.is_empty() {
        "another one"
    } else {
        &live.synced_by
    };
    let finding = Finding::error(
        Code::ObjectTaken,
        format!("the RootSync {by} has this object; it is not touched"),
    );
    let at = &wanted.at;
    Failure {
        key: wanted.key.clone(),
        version: wanted.version.clone(),
        file: at.file.clone(),
        finding: finding
            .on(&wanted.key.reference(&wanted.version))
            .located(&at.file, at.line, at.column)
            .help("Remove the object from one of the two directories."),
    }
}

/// What is sent: the object as written, in its place, marked as ours, without what only a server writes.
fn body(wanted: &Wanted, whose: Whose<'_>) -> Value {
    let mut body = wanted.value.clone();
    let metadata = body.as_object_mut().and_then(|body| {
        let metadata = body.entry("metadata").or_insert_with(|| json!({}));
        metadata.as_object_mut()
    });
    let Some(metadata) = metadata else {
        return body;
    };
    for key in [
        "creationTimestamp",
        "generation",
        "managedFields",
        "resourceVersion",
        "selfLink",
        "uid",
    ] {
        metadata.shift_remove(key);
    }
    if wanted.key.namespace.is_empty() {
        metadata.shift_remove("namespace");
    } else {
        metadata.insert("namespace".to_owned(), wanted.key.namespace.clone().into());
    }
    mark(metadata, "labels", label::SYNC, whose.identity);
    mark(metadata, "annotations", annotation::SYNCED_BY, whose.name);
    body
}

fn mark(metadata: &mut Map<String, Value>, field: &str, key: &str, value: &str) {
    let marks = metadata.entry(field).or_insert_with(|| json!({}));
    if !marks.is_object() {
        *marks = json!({});
    }
    marks[key] = value.into();
}

/// The objects that are not as they were when we last applied them: changed, deleted, or never seen.
pub(crate) fn drifted(
    steps: &[Vec<Step>],
    applied: &BTreeMap<Key, String>,
    seen: &BTreeMap<Key, String>,
) -> BTreeSet<Key> {
    let all = steps.iter().flatten().map(|step| &step.key);
    let differs = |key: &&Key| match (applied.get(key), seen.get(key)) {
        (Some(applied), Some(seen)) => applied != seen,
        _ => true,
    };
    all.filter(differs).cloned().collect()
}

#[cfg(test)]
mod tests;
