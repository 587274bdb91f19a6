//! The condition rules that all of Nephio's functions share, run from one table per function.
//!
//! ```text
//!  inventory ─► global watches ─► populate ─► diff (children) ─► update ─► specialize
//!  conditions,  the cluster,      what each    conditions and    status     (root only)
//!  then objects the networks      owner wants  objects           or object
//! ```
//!
//! State is the Kptfile's conditions and the objects' annotations, nothing else; a condition's `type` names
//! its object and its `reason` the owner. Called by `nephio::run`. Easy to get wrong: an owner may be known
//! from a condition alone (that is how NADs begin), and a failure is a condition, never a failed run.

mod children;
mod inventory;

use mooring_api::{Code, Condition, Finding, Status};
use serde_json::{Map, Value};

use self::inventory::{Entry, Inventory};
use super::reference::{Gvk, Ref};
use super::seen::Seen;
use super::{DELETE, OWNER, SPECIALIZE};
use crate::bundle::{Bundle, Marks, Object, map_below};

/// How a function holds what it owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Own {
    /// The function writes object and condition; somebody else makes it True.
    Remote,
    /// The function writes the condition only; somebody else makes the object.
    RemoteCondition,
    /// Done as soon as it is there.
    Local,
    /// In the package from the start; the function writes the condition only, and never deletes.
    Initial,
}

/// What a function watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watch {
    /// One for the package: `seen` reads it.
    Global,
    /// Those of one owner are given to the update.
    Owned,
}

/// One function, as data.
pub(crate) struct Rule {
    /// What it is for.
    pub(crate) subject: Gvk,
    /// What it owns.
    pub(crate) owns: &'static [(Gvk, Own)],
    /// What it looks at.
    pub(crate) watches: &'static [(Gvk, Watch)],
    /// Whether it says that the whole package is specialised.
    pub(crate) root: bool,
    /// Whether a subject without a condition belongs to the condition of its owner, or to nobody. A NAD's name may
    /// differ from the name in its condition, and some are written by hand.
    pub(crate) one_per_owner: bool,
    /// What a subject wants to own.
    pub(crate) populate: fn(&Object, &Seen) -> Result<Vec<Object>, Failure>,
    /// The subject when all that it owns or waits for is there; None changes nothing.
    pub(crate) update: fn(&Input<'_>) -> Result<Updated, Failure>,
}

/// What an update is made from.
pub(crate) struct Input<'a> {
    /// The subject; None where only its condition exists.
    pub(crate) object: Option<&'a Object>,
    /// What it owns and watches, by kind and name.
    pub(crate) children: Vec<&'a Object>,
    /// The package's own facts.
    pub(crate) seen: &'a Seen,
}

impl<'a> Input<'a> {
    /// The children of a kind.
    pub(crate) fn all(&self, gvk: Gvk) -> Vec<&'a Object> {
        let children = self.children.iter().copied();
        children.filter(|o| gvk.has(o)).collect()
    }

    /// The subject, or what is said where it is gone.
    pub(crate) fn object(&self) -> Result<&'a Object, Failure> {
        let gone = || Failure::new(Code::UnknownWorkload, "expected a for object but got nil");
        self.object.ok_or_else(gone)
    }
}

/// The outcome of an update.
#[derive(Default)]
pub(crate) struct Updated {
    /// The object to write.
    pub(crate) object: Option<Object>,
    /// What to tell besides.
    pub(crate) said: Vec<Finding>,
}

/// Why something cannot be made: the text of a condition, and what findings add to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) message: String,
    pub(crate) code: Code,
    pub(crate) field: &'static str,
}

impl Failure {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            code,
            field: "metadata.name",
        }
    }

    pub(crate) fn at(mut self, field: &'static str) -> Self {
        self.field = field;
        self
    }

    fn finding(&self, reference: &Ref) -> Finding {
        Finding::warning(self.code, &self.message)
            .on(&reference.object())
            .at(self.field)
    }
}

/// How the text of a condition begins whose subject could not say what it wants.
const CANNOT_BEGIN: &str = "stage1: ";

/// Runs a function over a package. What is said stands in a condition too.
pub(crate) fn run(rule: &Rule, bundle: &mut Bundle) -> Vec<Finding> {
    let mut said = Vec::new();
    if rule.root {
        begin_root(&mut bundle.marks);
    }
    if rule.owns.is_empty() {
        let dropped = bundle.objects.iter().filter(|o| rule.subject.has(o));
        let dropped = dropped.filter(|o| is_dropped(bundle, o)).map(Ref::of);
        for reference in dropped.collect::<Vec<_>>() {
            remove(bundle, &reference);
        }
    }
    let mut inventory = Inventory::read(rule, bundle);
    match Seen::gather(rule, bundle) {
        Ok(seen) => {
            said.extend(seen.said.iter().cloned());
            populate(rule, bundle, &mut inventory, &seen, &mut said);
            for (reference, entry) in &inventory.entries {
                said.extend(orphans(rule, reference, entry));
                children::settle(bundle, reference, entry);
            }
            for (reference, entry) in &inventory.entries {
                update(rule, bundle, reference, entry, &seen, &mut said);
            }
            if rule.root {
                conclude_root(rule, &mut bundle.marks);
            }
        }
        Err((failure, object)) => {
            said.push(failure.finding(&object));
            refuse(rule, bundle, &inventory, &failure);
        }
    }
    said
}

fn begin_root(marks: &mut Marks) {
    if !marks.gates.has(SPECIALIZE) {
        marks.gates.push(SPECIALIZE.to_owned());
    }
    if !marks.conditions.has(SPECIALIZE) {
        specialize(marks, Status::False, "Specialize", "initialized");
    }
}

fn specialize(marks: &mut Marks, status: Status, reason: &str, message: &str) {
    let condition = Condition {
        kind: SPECIALIZE.to_owned(),
        status,
        reason: reason.to_owned(),
        message: message.to_owned(),
    };
    put(marks, condition);
}

/// Ready when there is a subject, and none is False.
fn conclude_root(rule: &Rule, marks: &mut Marks) {
    let subjects = marks.conditions.iter().filter(|c| {
        let reference = Ref::parse(&c.kind);
        reference.is_some_and(|r| rule.subject.is(&r))
    });
    let states: Vec<Status> = subjects.map(|c| c.status).collect();
    if !states.is_empty() && !states.contains(&Status::False) {
        specialize(marks, Status::True, "Ready", "");
    } else {
        specialize(marks, Status::False, "Specialize", "not ready");
    }
}

/// A fact that everything needs is missing: subjects fail, what was made goes.
fn refuse(rule: &Rule, bundle: &mut Bundle, inventory: &Inventory, failure: &Failure) {
    if rule.root {
        specialize(&mut bundle.marks, Status::False, "Failed", &failure.message);
    } else {
        let subjects = bundle.objects.iter().filter(|o| rule.subject.has(o));
        for reference in subjects.map(Ref::of).collect::<Vec<_>>() {
            if inventory.entries.contains_key(&reference) {
                fail(&mut bundle.marks, &reference, &failure.message);
            }
        }
    }
    for (reference, entry) in &inventory.entries {
        children::withdraw(bundle, reference, entry);
    }
    // Only what a function made: a NAD that somebody wrote by hand stays.
    if rule.owns.is_empty() {
        bundle
            .objects
            .retain(|o| !rule.subject.has(o) || o.annotation(OWNER).is_none());
    }
}

/// What names an owner that the package does not have: nobody waits for it, and nobody will say so.
fn orphans(rule: &Rule, reference: &Ref, entry: &Entry) -> Vec<Finding> {
    if !rule.root || entry.exists {
        return Vec::new();
    }
    let orphans = entry.owns.iter().filter(|(_, child)| child.exists);
    orphans
        .map(|(orphan, _)| {
            let text = format!(
                "its owner {}/{} is not in the package, so no network function gets it",
                reference.kind, reference.name
            );
            Finding::warning(Code::UnknownWorkload, text)
                .on(&orphan.object())
                .at(format!("metadata.annotations[{OWNER}]"))
                .help("Name the network function of this package.")
        })
        .collect()
}

fn populate(
    rule: &Rule,
    bundle: &mut Bundle,
    inventory: &mut Inventory,
    seen: &Seen,
    said: &mut Vec<Finding>,
) {
    if rule.owns.is_empty() {
        return;
    }
    let mut failed = Vec::new();
    for (reference, entry) in &mut inventory.entries {
        let Some(object) = find(bundle, reference) else {
            continue;
        };
        match (rule.populate)(object, seen) {
            Ok(made) => entry.want(rule, reference, made),
            Err(failure) => failed.push((reference.clone(), failure)),
        }
    }
    for (reference, failure) in failed {
        let text = format!(
            "{CANNOT_BEGIN}cannot populate new resource err: {}",
            failure.message
        );
        fail(&mut bundle.marks, &reference, &text);
        said.push(failure.finding(&reference));
        if let Some(entry) = inventory.entries.get_mut(&reference) {
            entry.failed = true;
        }
    }
}

/// All that it owns and waits for is there and not False. A watched object that owns the subject is exempt:
/// it waits for the subject in turn.
fn is_ready(marks: &Marks, reference: &Ref, entry: &Entry) -> bool {
    let holds = |r: &Ref| condition(marks, r).is_some_and(|c| c.status != Status::False);
    let owned = |r: &Ref| holds(r) && of_owner(marks, reference, r).is_some();
    if entry.failed || !entry.owns.keys().all(owned) {
        return false;
    }
    let Some(own) = condition(marks, reference) else {
        return true;
    };
    let mut watches = entry.watches.iter();
    watches.all(|r| holds(r) || own.reason == r.to_string())
}

fn update(
    rule: &Rule,
    bundle: &mut Bundle,
    reference: &Ref,
    entry: &Entry,
    seen: &Seen,
    said: &mut Vec<Finding>,
) {
    if !is_ready(&bundle.marks, reference, entry) {
        return;
    }
    // Its object is gone, and so is all that it owned.
    if !entry.exists && !rule.owns.is_empty() {
        let kind = reference.to_string();
        bundle.marks.conditions.retain(|c| c.kind != kind);
        return;
    }
    let related = entry.owns.keys().chain(&entry.watches);
    let input = Input {
        object: find(bundle, reference),
        children: related.filter_map(|r| find(bundle, r)).collect(),
        seen,
    };
    match (rule.update)(&input) {
        Ok(updated) => {
            said.extend(updated.said);
            if let Some(mut object) = updated.object {
                if let Some(own) = condition(&bundle.marks, reference)
                    && !own.reason.is_empty()
                {
                    object.set_annotation(OWNER, &own.reason);
                }
                write(bundle, object);
                done(&mut bundle.marks, reference);
            }
        }
        Err(failure) => {
            fail(&mut bundle.marks, reference, &failure.message);
            said.push(failure.finding(reference));
        }
    }
}

/// The condition of an object.
pub(crate) fn condition<'a>(marks: &'a Marks, reference: &Ref) -> Option<&'a Condition> {
    marks.conditions.named(&reference.to_string()).next()
}

/// The condition of a child, where it names its owner. One that does not was made by somebody who did not know of an
/// owner, and is made again.
fn of_owner<'a>(marks: &'a Marks, owner: &Ref, child: &Ref) -> Option<&'a Condition> {
    condition(marks, child).filter(|c| c.reason == owner.to_string())
}

/// The object of that kind and name, in whatever namespace.
pub(crate) fn find<'a>(bundle: &'a Bundle, reference: &Ref) -> Option<&'a Object> {
    place(bundle, reference).map(|at| &bundle.objects[at])
}

fn place(bundle: &Bundle, reference: &Ref) -> Option<usize> {
    let mut places = bundle.objects.places(&reference.name).iter().copied();
    places.find(|at| {
        let object = &bundle.objects[*at];
        object.kind() == reference.kind && object.api_version() == reference.api_version
    })
}

/// Sets a condition, in place or at the end. Unlike the native dialect's, it is no gate.
fn put(marks: &mut Marks, wanted: Condition) {
    match marks.conditions.places(&wanted.kind).first().copied() {
        Some(at) => marks.conditions[at] = wanted,
        None => marks.conditions.push(wanted),
    }
}

/// Sets status and text of a subject's condition; its reason, the owner, stays.
fn set(marks: &mut Marks, reference: &Ref, status: Status, message: &str) {
    let reason = condition(marks, reference).map(|c| c.reason.clone());
    put(
        marks,
        Condition {
            kind: reference.to_string(),
            status,
            reason: reason.unwrap_or_default(),
            message: message.to_owned(),
        },
    );
}

/// A subject could not be made.
pub(crate) fn fail(marks: &mut Marks, reference: &Ref, message: &str) {
    set(marks, reference, Status::False, message);
}

/// A subject is made.
pub(crate) fn done(marks: &mut Marks, reference: &Ref) {
    set(marks, reference, Status::True, "update done");
}

/// Puts an object in its place. One that was edited replaces itself; one that was made anew takes the place of
/// an earlier one and keeps the annotations and labels that are not ours.
pub(crate) fn write(bundle: &mut Bundle, object: Object) {
    let reference = Ref::of(&object);
    let Some(at) = place(bundle, &reference) else {
        bundle.objects.push(object);
        return;
    };
    let place = &mut bundle.objects[at];
    if object.source.is_some() && object.source == place.source {
        place.value = object.value;
    } else {
        place.value = rebuilt(&place.value, object.value);
    }
}

/// The old object with the new content: key by key, so that a file keeps its comments and order.
fn rebuilt(old: &Value, made: Value) -> Value {
    let mut value = old.clone();
    let Value::Object(made) = made else {
        return value;
    };
    let known = map_below(&mut value, &[]);
    for (key, new) in made {
        if key != "metadata" {
            known.insert(key, new);
            continue;
        }
        let metadata = map_below(known.entry(key).or_insert(Value::Null), &[]);
        let Value::Object(new) = new else { continue };
        for (key, new) in new {
            if key != "annotations" {
                metadata.insert(key, new);
                continue;
            }
            let Value::Object(new) = new else { continue };
            let annotations = map_below(metadata.entry(key).or_insert(Value::Null), &[]);
            let ours = |k: &String| k.starts_with(super::PREFIX) && !new.contains_key(k);
            let gone: Vec<String> = annotations.keys().filter(|k| ours(k)).cloned().collect();
            for key in gone {
                annotations.shift_remove(&key);
            }
            merge(annotations, new);
        }
    }
    value
}

fn merge(into: &mut Map<String, Value>, from: Map<String, Value>) {
    for (key, value) in from {
        if into.get(&key) != Some(&value) {
            into.insert(key, value);
        }
    }
}

/// Removes an object and its condition.
pub(crate) fn remove(bundle: &mut Bundle, reference: &Ref) {
    let kind = reference.to_string();
    bundle.objects.retain(|o| Ref::of(o) != *reference);
    bundle.marks.conditions.retain(|c| c.kind != kind);
}

/// Whether its owner wants it no more. The mark alone may also mean that the package is not ready, or that the owner
/// cannot say what it wants until somebody corrects it: then what is held stays.
pub(crate) fn is_dropped(bundle: &Bundle, object: &Object) -> bool {
    if !is_leaving(object) {
        return false;
    }
    let Some(stated) = condition(&bundle.marks, &Ref::of(object)) else {
        return true;
    };
    let owner = Ref::parse(&stated.reason).filter(|owner| find(bundle, owner).is_some());
    let failed = owner.and_then(|owner| condition(&bundle.marks, &owner));
    let failed = failed.is_some_and(|c| c.message.starts_with(CANNOT_BEGIN));
    stated.message == children::GOES && !failed
}

/// Whether somebody asked to release what it holds.
pub(crate) fn is_leaving(object: &Object) -> bool {
    object.annotation(DELETE).is_some()
}
