//! What a function finds in a package: its subjects, and under each what it owns and waits for.
//!
//! Conditions are read first, then objects. Easy to get wrong: what is owned counts only when its owner is of
//! the function's own kind, so the claim of a DataNetwork is invisible to interface-fn; and a subject exists
//! as soon as something names it as its owner.

use std::collections::{BTreeMap, BTreeSet};

use super::{Own, Rule, Watch, condition};
use crate::bundle::{Bundle, Object};
use crate::nephio::OWNER;
use crate::nephio::reference::Ref;

/// Everything under one subject.
#[derive(Debug, Default)]
pub(super) struct Entry {
    /// Whether the object itself is there.
    pub(super) exists: bool,
    /// Whether it could not say what it wants.
    pub(super) failed: bool,
    /// What it owns, by name.
    pub(super) owns: BTreeMap<Ref, Child>,
    /// What it waits for.
    pub(super) watches: BTreeSet<Ref>,
}

/// Something owned.
#[derive(Debug)]
pub(super) struct Child {
    /// How it is owned.
    pub(super) own: Own,
    /// Whether the object is there.
    pub(super) exists: bool,
    /// The object as it should be.
    pub(super) made: Option<Object>,
}

impl Entry {
    fn child(&mut self, reference: Ref, own: Own) -> &mut Child {
        self.owns.entry(reference).or_insert(Child {
            own,
            exists: false,
            made: None,
        })
    }

    /// Notes what the subject wants to own.
    pub(super) fn want(&mut self, rule: &Rule, subject: &Ref, made: Vec<Object>) {
        for mut object in made {
            object.set_annotation(OWNER, &subject.to_string());
            let reference = Ref::of(&object);
            let kind = rule.owns.iter().find(|(gvk, _)| gvk.is(&reference));
            let (_, own) = kind.expect("a function makes only kinds that its rule owns");
            self.child(reference, *own).made = Some(object);
        }
    }
}

/// All subjects, by name.
#[derive(Debug, Default)]
pub(super) struct Inventory {
    pub(super) entries: BTreeMap<Ref, Entry>,
}

impl Inventory {
    pub(super) fn read(rule: &Rule, bundle: &Bundle) -> Self {
        let mut inventory = Self::default();
        let owners = owners(rule, bundle);
        for stated in &bundle.marks.conditions {
            if let Some(reference) = Ref::parse(&stated.kind) {
                let owner = Ref::parse(&stated.reason);
                inventory.add(rule, &owners, reference, owner.as_ref(), false);
            }
        }
        for object in &bundle.objects {
            let reference = Ref::of(object);
            let owner = object.annotation(OWNER).and_then(Ref::parse);
            let product = rule.one_per_owner
                && rule.subject.has(object)
                && condition(&bundle.marks, &reference).is_none()
                && owner.as_ref().is_none_or(|o| owners.contains_key(o));
            if !product {
                inventory.add(rule, &owners, reference, owner.as_ref(), true);
            }
        }
        inventory
    }

    fn add(
        &mut self,
        rule: &Rule,
        owners: &BTreeMap<Ref, Ref>,
        reference: Ref,
        owner: Option<&Ref>,
        is_object: bool,
    ) {
        if rule.subject.is(&reference) {
            self.entries.entry(reference).or_default().exists |= is_object;
        } else if let Some((_, own)) = rule.owns.iter().find(|(gvk, _)| gvk.is(&reference)) {
            if let Some(owner) = owner.filter(|o| rule.subject.is(o)) {
                let entry = self.entries.entry(owner.clone()).or_default();
                entry.child(reference, *own).exists |= is_object;
            }
        } else if rule
            .watches
            .iter()
            .any(|(gvk, watch)| *watch == Watch::Owned && gvk.is(&reference))
        {
            // Either the watched object owns the subject, or the same object owns both.
            let subject = owners
                .get(&reference)
                .or_else(|| owner.and_then(|o| owners.get(o)));
            if let Some(subject) = subject {
                let entry = self.entries.entry(subject.clone()).or_default();
                entry.watches.insert(reference);
            }
        }
    }
}

/// Owner → subject, as the subjects' conditions say.
fn owners(rule: &Rule, bundle: &Bundle) -> BTreeMap<Ref, Ref> {
    let mut owners = BTreeMap::new();
    for stated in &bundle.marks.conditions {
        let subject = Ref::parse(&stated.kind).filter(|r| rule.subject.is(r));
        if let (Some(subject), Some(owner)) = (subject, Ref::parse(&stated.reason)) {
            owners.insert(owner, subject);
        }
    }
    owners
}
