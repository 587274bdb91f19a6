//! Changes that are safe to make without asking: each is data, and `package` makes them.
//!
//! | finding | change | why it is safe |
//! |---|---|---|
//! | `SurgingStrategy`, nothing said | `spec.strategy.type: Recreate` | nobody chose the default, and with it two pods have one address |
//! | `TwoCarriers`, the same addresses | `ips` leaves the annotation | the NAD gives the very same ones |
//! | `InvalidNad`, a comment or a stray comma | it goes | what is left is what was meant, and a plugin takes it |
//! | `InvalidNetworksAnnotation`, the same | it goes | as above |
//!
//! Everything else needs a decision: which of two users keeps an address, whether a default route moves, which NAD was
//! meant. Those findings keep their help.
//!
//! Easy to get wrong: what a render generated is written anew by the next render, so it is left alone. And a text is changed
//! where it says something else and nowhere besides: after the change it must read as the same value.

mod text;

use std::collections::{BTreeMap, BTreeSet};

use mooring_api::{Code, annotation};
use mooring_attach::nad::{self, Use};
use mooring_attach::networks::{self, Entry};
use mooring_attach::rollout::{self, Strategy};
use serde_json::{Value, json};

use crate::carried::host;
use crate::input::{Fleet, Origin};
use crate::world::{Nad, Pod, World, annotation_of};

/// One safe change.
#[derive(Clone, Debug, PartialEq)]
pub struct Fix {
    /// Which finding it is for.
    pub code: Code,
    /// Where the object stands.
    pub origin: Origin,
    /// Field path of the object.
    pub field: String,
    /// What it becomes.
    pub to: Value,
    /// What was done, as a sentence.
    pub what: String,
    /// Why nobody needs to be asked.
    pub why: &'static str,
}

/// Every safe change, by object and field; at most one per field.
pub fn fixes(fleet: &Fleet<'_>) -> Vec<Fix> {
    let world = World::read(&fleet.objects);
    let mut out = Vec::new();
    for nad in &world.nads {
        if !is_generated(world.inputs[nad.input].value) {
            out.extend(configuration(nad));
        }
    }
    for pod in &world.pods {
        if is_generated(pod.object) {
            continue;
        }
        out.extend(strategy(&world, pod));
        out.extend(if pod.networks.is_err() {
            unreadable(pod)
        } else {
            carriers(&world, pod)
        });
    }
    // An object that is there twice, or stands in two lists, is changed where it stands first.
    let mut fields = BTreeMap::new();
    for fix in out {
        let place = (fix.origin.clone(), fix.field.clone());
        fields.entry(place).or_insert(fix);
    }
    fields.into_values().collect()
}

fn is_generated(value: &Value) -> bool {
    annotation_of(value, annotation::OWNED_BY).is_some()
}

fn configuration(nad: &Nad<'_>) -> Option<Fix> {
    if nad.config.trim().is_empty() || !nad.json.is_null() {
        return None;
    }
    let clean = text::cleaned(nad.config)?;
    if !nad::check(&clean).is_empty() {
        return None;
    }
    Some(Fix {
        code: Code::InvalidNad,
        origin: nad.origin.clone(),
        field: "spec.config".to_owned(),
        to: clean.into(),
        what: "took comments and stray commas out of the JSON".to_owned(),
        why: "JSON has none, and what is left is what was meant",
    })
}

fn unreadable(pod: &Pod<'_>) -> Option<Fix> {
    let clean = text::cleaned(pod.text)?;
    networks::parse(&clean).ok()?;
    Some(Fix {
        code: Code::InvalidNetworksAnnotation,
        origin: pod.origin.clone(),
        field: pod.field.clone(),
        to: clean.into(),
        what: "took comments and stray commas out of the JSON".to_owned(),
        why: "JSON has none, and what is left is what was meant",
    })
}

/// Only where the Deployment says nothing: a strategy that somebody chose is theirs.
fn strategy(world: &World<'_>, pod: &Pod<'_>) -> Option<Fix> {
    let silent = pod.origin.object.kind == "Deployment"
        && rollout::pods(pod.object).most == 1
        && rollout::strategy(pod.object) == Strategy::Unsaid;
    let fixed = |(_, entry, nad): (usize, &Entry, Option<usize>)| {
        !entry.ips().is_empty() || nad.is_some_and(|nad| world.nads[nad].has_address())
    };
    if !silent || !pod.entries().any(fixed) {
        return None;
    }
    Some(Fix {
        code: Code::SurgingStrategy,
        origin: pod.origin.clone(),
        field: "spec.strategy".to_owned(),
        to: json!({"type": "Recreate"}),
        what: "set spec.strategy.type: Recreate".to_owned(),
        why: "nobody chose a strategy, and with the default one two pods have one address",
    })
}

/// Takes `ips` out of the entries whose NAD gives exactly these.
fn carriers(world: &World<'_>, pod: &Pod<'_>) -> Option<Fix> {
    let mut left = pod.text.to_owned();
    let mut names = Vec::new();
    for (place, entry, nad) in pod.entries() {
        let Some(nad) = nad.map(|nad| &world.nads[nad]) else {
            continue;
        };
        let both = nad.has_address() && !nad::check_selection(nad.config, entry).is_empty();
        if both && is_same(nad, entry) {
            left = text::without(&left, place, "ips")?;
            names.push(entry.name());
        }
    }
    if names.is_empty() {
        return None;
    }
    Some(Fix {
        code: Code::TwoCarriers,
        origin: pod.origin.clone(),
        field: pod.field.clone(),
        to: left.into(),
        what: format!("took ips of {} out of the annotation", names.join(" and ")),
        why: "the NAD carries the same addresses",
    })
}

/// Whether the annotation asks for the addresses of the NAD, no more and no less.
fn is_same(nad: &Nad<'_>, entry: &Entry) -> bool {
    let asked: BTreeSet<_> = entry.ips().into_iter().filter_map(host).collect();
    let whole = asked.len() == entry.ips().len();
    let stands: BTreeSet<_> = nad
        .uses
        .iter()
        .filter_map(|used| match used.what {
            Use::Address(host) => Some(host),
            Use::Range { .. } => None,
        })
        .collect();
    whole && asked == stands
}

#[cfg(test)]
mod tests;
