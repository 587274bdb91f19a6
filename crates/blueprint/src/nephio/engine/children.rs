//! What a subject owns, brought to what it wants: conditions first, then objects.
//!
//! | wanted | condition | object | then |
//! |---|---|---|---|
//! | yes | – | any | condition is made |
//! | yes | any | – | object is made |
//! | yes | any | differs, or marked to go | object is replaced |
//! | no | yes | – | condition goes |
//! | no | any | yes | object is marked to go |
//!
//! Initial and local children never go. Easy to get wrong: nothing here removes an object. The mark asks
//! whoever holds something for it (an address) to give that back first.

use mooring_api::{Condition, Status};

use super::inventory::{Child, Entry};
use super::{CANNOT_BEGIN, Own, condition, find, is_leaving, of_owner, place, put, set, write};
use crate::bundle::{Bundle, Marks, Object};
use crate::nephio::reference::Ref;
use crate::nephio::{DELETE, VLAN_CLAIM_NAME};

/// The text of a condition whose object is wanted no more.
pub(super) const GOES: &str = "delete resource";

/// Brings the children of one subject to what it wants.
pub(super) fn settle(bundle: &mut Bundle, subject: &Ref, entry: &Entry) {
    if !entry.exists {
        for (reference, child) in &entry.owns {
            if child.own == Own::Initial || !child.exists {
                drop_condition(&mut bundle.marks, reference);
            } else {
                mark(bundle, subject, reference, GOES);
            }
        }
        return;
    }
    if entry
        .owns
        .iter()
        .any(|(reference, child)| changes(bundle, subject, reference, child))
    {
        flip(&mut bundle.marks, subject, entry);
    }
    for (reference, child) in &entry.owns {
        if of_owner(&bundle.marks, subject, reference).is_none() {
            let (status, message) = match child.own {
                Own::Local => (Status::True, "child local resource -> done"),
                Own::Initial => (Status::False, "create initial resource condition"),
                Own::Remote | Own::RemoteCondition => (Status::False, "create condition"),
            };
            if child.made.is_some() || child.exists {
                state(&mut bundle.marks, subject, reference, status, message);
            }
        }
    }
    for (reference, child) in &entry.owns {
        if child.made.is_none() && is_ours(child.own) {
            if child.exists {
                mark(bundle, subject, reference, GOES);
            } else {
                drop_condition(&mut bundle.marks, reference);
            }
        }
    }
    for (reference, child) in &entry.owns {
        if let Some(made) = &child.made {
            if !child.exists {
                if !is_said(&bundle.marks, subject, reference, child.own) {
                    let status = match child.own {
                        Own::Local => Status::True,
                        _ => Status::False,
                    };
                    let marks = &mut bundle.marks;
                    state(marks, subject, reference, status, "create initial resource");
                }
                if matches!(child.own, Own::Remote | Own::Local) {
                    write(bundle, made.clone());
                }
            } else if differs(bundle, reference, child) {
                let marks = &mut bundle.marks;
                state(marks, subject, reference, Status::False, "update resource");
                write(bundle, made.clone());
            }
        }
    }
}

/// A fact that everything needs is missing: what was made is marked to go.
pub(super) fn withdraw(bundle: &mut Bundle, subject: &Ref, entry: &Entry) {
    if !entry.exists && !entry.owns.is_empty() {
        drop_condition(&mut bundle.marks, subject);
    }
    for (reference, child) in &entry.owns {
        let goes = if entry.exists {
            is_ours(child.own)
        } else {
            child.own != Own::Initial
        };
        if child.exists && goes {
            mark(bundle, subject, reference, "not ready");
        }
    }
}

fn is_ours(own: Own) -> bool {
    matches!(own, Own::Remote | Own::RemoteCondition)
}

/// Whether the maker of a child has said why it is not there yet: that stays, else two functions would take turns
/// in writing the text.
fn is_said(marks: &Marks, subject: &Ref, reference: &Ref, own: Own) -> bool {
    own == Own::RemoteCondition
        && of_owner(marks, subject, reference)
            .is_some_and(|c| c.status == Status::False && c.message != "create condition")
}

/// Whether anything is to be done for a child. What leaves already is no news.
fn changes(bundle: &Bundle, subject: &Ref, reference: &Ref, child: &Child) -> bool {
    let stated = of_owner(&bundle.marks, subject, reference);
    match &child.made {
        Some(_) => stated.is_none() || !child.exists || differs(bundle, reference, child),
        None => true,
    }
}

/// The subject waits again. One that waits already keeps its text, except where that says why it could not
/// even begin: it has begun now.
fn flip(marks: &mut Marks, subject: &Ref, entry: &Entry) {
    let waits = condition(marks, subject).is_some_and(|c| {
        c.status == Status::False && (entry.failed || !c.message.starts_with(CANNOT_BEGIN))
    });
    if !waits {
        set(marks, subject, Status::False, "update for condition");
    }
}

fn differs(bundle: &Bundle, reference: &Ref, child: &Child) -> bool {
    let (Some(known), Some(made)) = (find(bundle, reference), &child.made) else {
        return false;
    };
    // The network is no part of a VLAN claim's spec.
    let renamed = known
        .annotation(VLAN_CLAIM_NAME)
        .is_some_and(|name| Some(name) != made.annotation(VLAN_CLAIM_NAME));
    child.own != Own::RemoteCondition
        && (is_leaving(known) || renamed || known.value.get("spec") != made.value.get("spec"))
}

fn state(marks: &mut Marks, subject: &Ref, reference: &Ref, status: Status, message: &str) {
    put(marks, stated(subject, reference, status, message));
}

fn stated(subject: &Ref, reference: &Ref, status: Status, message: &str) -> Condition {
    Condition {
        kind: reference.to_string(),
        status,
        reason: subject.to_string(),
        message: message.to_owned(),
    }
}

fn drop_condition(marks: &mut Marks, reference: &Ref) {
    let kind = reference.to_string();
    if marks.conditions.has(&kind) {
        marks.conditions.retain(|c| c.kind != kind);
    }
}

/// Marks an object to go. A condition that says so already keeps its place; any other one that is dropped for
/// good is made anew, behind the others.
fn mark(bundle: &mut Bundle, subject: &Ref, reference: &Ref, message: &str) {
    let wanted = stated(subject, reference, Status::False, message);
    if condition(&bundle.marks, reference) != Some(&wanted) {
        if message == GOES {
            drop_condition(&mut bundle.marks, reference);
        }
        put(&mut bundle.marks, wanted);
    }
    if let Some(at) = place(bundle, reference) {
        let object: &mut Object = &mut bundle.objects[at];
        object.set_annotation(DELETE, "true");
    }
}
