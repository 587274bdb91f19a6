//! Whether a change may be stored: asked by the webhook about one object, before anybody else sees it.
//!
//! ```text
//!  everything that is there, the object as it would be ─► the engine of the compiler ─► its conflicts
//!                            the object as it is       ─► the same                    ─► those that it has already
//! ```
//!
//! A change claims now. So its object counts as the youngest of all, whatever its age, and loses whatever somebody else
//! has; what it lost before, or holds against somebody who lost, it may go on with.
//!
//! Easy to get wrong: an object that is wrong without anybody else (its Destination is not there yet) claims nothing, here
//! as in the compiler. It is admitted with what is wrong as a word beside it, because objects may come in any order.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use mooring_api::{Code, Finding};
use serde_json::Value;

use crate::compile::{self, Context};
use crate::input::reference;
use crate::{Answers, Inputs, Prior, allocate, conflict};

/// Behind every time that a cluster gives to its objects.
const YOUNGEST: &str = "9999-12-01T00:00:00Z";

/// What is said about a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admission {
    /// Why it must not be stored: conflicts that the object does not have yet, each naming the other object.
    pub refused: Vec<Finding>,
    /// What else the compiler will say about the object. It may be stored so.
    pub told: Vec<Finding>,
}

/// Whether an object may come, or change from `old` to `new`. `inputs` is what is there, with or without the object; all
/// of it has times of creation, as in a cluster.
///
/// A deletion is never asked about: it ends conflicts and makes none.
pub fn admit(inputs: &Inputs, old: Option<&Value>, new: &Value) -> Admission {
    let says = |o: &Value| {
        [
            o.get("spec").cloned(),
            o.pointer("/metadata/labels").cloned(),
        ]
    };
    if old.is_some_and(|old| says(old) == says(new)) {
        return Admission::default();
    }
    let Answer { conflicts, told } = ask(inputs, new);
    let mut admission = Admission {
        told,
        ..Admission::default()
    };
    if conflicts.is_empty() {
        return admission;
    }
    let had = old.map(|old| ask(inputs, old).conflicts);
    let had: BTreeSet<Key> = had.into_iter().flatten().map(|(key, _)| key).collect();
    // Of many who have the same thing the first is named, as by the compiler.
    let mut said = BTreeSet::new();
    for (key, finding) in conflicts {
        let known = had.contains(&key);
        if said.insert((key.0, known)) {
            let list = if known {
                &mut admission.told
            } else {
                &mut admission.refused
            };
            list.push(finding);
        }
    }
    admission
}

/// What two objects want, and the name of the other one. Nothing of it is the asker's, who may change.
type Key = (String, String);

struct Answer {
    conflicts: Vec<(Key, Finding)>,
    told: Vec<Finding>,
}

fn ask(inputs: &Inputs, object: &Value) -> Answer {
    let mut object = object.clone();
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.insert("creationTimestamp".to_owned(), YOUNGEST.into());
    }
    let own = reference(&object);
    let mut inputs = inputs.clone();
    inputs.put([&object]);
    let (nothing, prior) = (Answers::default(), Prior::default());
    let mut context = Context::new(&inputs, &nothing, &prior);
    // Which addresses these are is nobody's business here; that there are some makes objects of the platform.
    let (answers, missing) = allocate(&compile::wants_of_connections(&context), &nothing);
    context.answers = &answers;
    let mut drafts = compile::compared(&context);
    let mut answer = Answer {
        conflicts: Vec::new(),
        told: missing
            .into_iter()
            .filter(|f| f.object.as_ref() == Some(&own))
            .collect(),
    };
    let draft = drafts.iter().find(|d| *d.id() == own);
    for found in draft.into_iter().flat_map(|d| &d.findings) {
        match found.code {
            // Addresses are taken after it is stored; nobody has asked for them yet.
            Code::ClaimPending => {}
            Code::Conflict | Code::LowLevelObject if found.is_error() => {
                let dispute = context.fabric.disputes.get(&own);
                let key = match dispute.filter(|(said, ..)| said == found) {
                    Some((_, what, with)) => (what.clone(), with.to_string()),
                    None => (found.message.clone(), String::new()),
                };
                answer.conflicts.push((key, found.clone()));
            }
            _ => answer.told.push(found.clone()),
        }
    }
    let mut lost = BTreeSet::new();
    conflict::clashes(&context, &drafts, |clash| {
        if *clash.loser.id() == own {
            let key = (clash.what.clone(), clash.winner.id().to_string());
            answer.conflicts.push((key, clash.finding(&context)));
        }
        lost.insert(clash.loser.id().clone());
    });
    drafts.retain(|draft| !lost.contains(draft.id()));
    let full = compile::over_budget(&context, &drafts).remove(&own);
    answer.told.extend(full.into_iter().flatten());
    answer
}
