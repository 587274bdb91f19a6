//! Our attachments among the user's.
//!
//! Called by `blueprint` for every workload it attaches interfaces to. A second run must change
//! nothing, and what the user wrote must mean the same afterwards.
//!
//! Easy to get wrong: an entry that names one of our NADs without an interface (`n2`) is that same
//! attachment, not another one. It is given its interface in place; beside it, the pod would get the
//! NAD's address twice.

use std::collections::{BTreeMap, BTreeSet};

use super::{Entry, Form, Key, Networks, ParseError, Selection, parse};

/// Our entries cannot be put into the annotation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// What stands there cannot be read.
    #[error("the networks annotation cannot be read")]
    Unreadable(#[source] ParseError),
    /// Two attachments want the same name in the pod.
    #[error("{first} and {second} both ask for interface {interface:?}")]
    InterfaceTwice {
        /// The name.
        interface: String,
        /// Whose it is.
        first: Box<Key>,
        /// Who wants it too.
        second: Box<Key>,
    },
}

/// Puts `wanted` into the annotation and takes `removed` out.
///
/// Entries are told apart by name, namespace and interface; a namespace equal to `pod_namespace` is
/// the same as none (pass `""` when it is not known). A wanted entry that is there is updated in
/// place, keeping keys that are not ours; others are appended in the order given. An entry both
/// wanted and removed stays. `None` means that nothing is left and the annotation should go.
///
/// If nothing changes, the text comes back byte for byte. If an entry of ours was added or changed
/// the result has the JSON form; a mere removal keeps the form.
pub fn merge(
    existing: Option<&str>,
    pod_namespace: &str,
    wanted: &[Selection],
    removed: &[Key],
) -> Result<Option<String>, MergeError> {
    let mut networks = match existing {
        Some(text) => parse(text).map_err(MergeError::Unreadable)?,
        None => Networks {
            form: Form::Json,
            entries: Vec::new(),
        },
    };
    let before = networks.clone();
    let normal = |key: Key| Key {
        namespace: key.namespace.filter(|n| n != pod_namespace),
        ..key
    };

    let mut claimed = vec![false; networks.entries.len()];
    let mut touched = false;
    // The places of each key, the first one last.
    let mut free: BTreeMap<Key, Vec<usize>> = BTreeMap::new();
    for (i, entry) in before.entries.iter().enumerate().rev() {
        free.entry(normal(entry.key())).or_default().push(i);
    }
    // Exact matches first, so that `n2` beside `n2@n2` is not taken for the latter.
    let mut places = vec![None; wanted.len()];
    for exact in [true, false] {
        for (selection, place) in wanted.iter().zip(&mut places) {
            if place.is_some() {
                continue;
            }
            let mut key = normal(selection.key());
            if !exact {
                key.interface = None;
            }
            *place = free.get_mut(&key).and_then(Vec::pop);
            if let Some(i) = *place {
                claimed[i] = true;
            }
        }
    }
    for (selection, place) in wanted.iter().zip(places) {
        if let Some(i) = place {
            let entry = &mut networks.entries[i];
            let old = entry.clone();
            let written = old.namespace().map(str::to_owned);
            selection.write(&mut entry.0);
            if normal(old.key()).namespace == normal(selection.key()).namespace
                && written != selection.namespace
            {
                // The pod's own namespace, spelled out by the user or by us: leave their spelling.
                keep_spelling(entry, &old);
            }
            touched |= !same(entry, &old);
            if same(entry, &old) {
                *entry = old;
            }
        } else {
            networks.entries.push(selection.entry());
            touched = true;
        }
    }

    let gone: BTreeSet<Key> = removed.iter().cloned().map(normal).collect();
    let mut index = 0;
    networks.entries.retain(|entry| {
        let ours = index >= claimed.len() || claimed[index];
        index += 1;
        ours || !gone.contains(&normal(entry.key()))
    });

    no_interface_twice(&networks)?;
    if networks == before {
        return Ok(existing.map(str::to_owned));
    }
    if networks.entries.is_empty() {
        return Ok(None);
    }
    if touched {
        networks.form = Form::Json;
    }
    Ok(Some(networks.to_string()))
}

fn keep_spelling(entry: &mut Entry, old: &Entry) {
    match old.0.get("namespace") {
        Some(namespace) => {
            entry.0.insert("namespace".into(), namespace.clone());
        }
        None => {
            entry.0.shift_remove("namespace");
        }
    }
}

/// Equal whatever the order of keys (`Map` compares as a set) and the spelling of `ips`.
fn same(a: &Entry, b: &Entry) -> bool {
    let rest = |e: &Entry| {
        let mut map = e.0.clone();
        for key in ["ips", "interface", "interfaceRequest"] {
            map.shift_remove(key);
        }
        map.retain(|_, value| !value.is_null());
        map
    };
    a.ips() == b.ips() && a.interface() == b.interface() && rest(a) == rest(b)
}

fn no_interface_twice(networks: &Networks) -> Result<(), MergeError> {
    let mut seen: BTreeMap<&str, &Entry> = BTreeMap::new();
    for entry in &networks.entries {
        let Some(interface) = entry.interface() else {
            continue;
        };
        if let Some(first) = seen.insert(interface, entry) {
            return Err(MergeError::InterfaceTwice {
                interface: interface.to_owned(),
                first: Box::new(first.key()),
                second: Box::new(entry.key()),
            });
        }
    }
    Ok(())
}
