//! Devices that are away: our records, and the files that other plugins would look for.
//!
//! Easy to get wrong: a file of another plugin that we wrote says so, and is garbage once its record is gone: the device is home. One that
//! the other plugin wrote is its only memory of the device, and only a DEL knows how to restore from it.

use std::path::Path;

use mooring_attach::cni::member;
use serde_json::Value;

use super::super::configurations::Known;
use super::{Kept, Seen, Sort, View, Who, listed, name_of};
use crate::foreign::amd::{Entry, File};
use crate::foreign::sriov::{self, Cached};
use crate::record::Record;
use crate::{Life, Paths};

const HOME: &str = "its record is gone: the device is home";

/// Our own.
pub(super) fn records(view: &View<'_>, seen: &mut Seen) {
    let dir = view.paths.own.join("devices");
    for path in listed(&dir) {
        let name = name_of(&path);
        let Some(key) = name.strip_suffix(".json") else {
            continue;
        };
        let Some((_, record)) = view.records.iter().find(|(known, _)| known == key) else {
            seen.broken.push(path);
            continue;
        };
        seen.kept.push(Kept {
            who: owner(record),
            life: view.life_of(record),
            note: format!("{:?}", record.phase).to_lowercase(),
            ..Kept::new(Sort::Device, record.device.name.clone(), path)
        });
    }
}

fn owner(record: &Record) -> Who {
    let owner = &record.owner;
    Who::new(&owner.group, &owner.holder, &owner.ifname)
}

/// AMD's file.
pub(super) fn mapping(view: &View<'_>, seen: &mut Seen) {
    let file = File::new(view.paths);
    let mapping = match file.read() {
        Ok(Some(mapping)) => mapping,
        Ok(None) => return,
        Err(_) => return seen.broken.push(file.path().to_owned()),
    };
    for device in mapping.devices() {
        let kept = Kept::new(Sort::Mapping, device, file.path());
        seen.kept.push(match mapping.entry(device) {
            Some(Ok(entry)) => entry_of(view, kept, &entry),
            _ => Kept {
                note: "no entry of AMD's".to_owned(),
                ..kept
            },
        });
    }
}

fn entry_of(view: &View<'_>, kept: Kept, entry: &Entry) -> Kept {
    let note = entry.host_interface_name.clone();
    let Some(key) = &entry.record else {
        return amds(view, kept, &note);
    };
    let record = view.records.iter().find(|(known, _)| known == key);
    match record {
        Some((_, record)) => Kept {
            who: owner(record),
            life: view.life_of(record),
            note,
            // It goes when the device comes home.
            ..kept
        },
        None if crate::record::Records::new(view.paths.own.join("devices")).has(key) => {
            Kept { note, ..kept }
        }
        None => Kept {
            life: Life::gone(HOME),
            note,
            ..kept
        },
    }
}

/// An entry that AMD's plugin wrote names no owner; the runtime may remember who asked for the device.
fn amds(view: &View<'_>, kept: Kept, name: &str) -> Kept {
    let asks = |known: &&Known| {
        let id = member(&known.plugin, "deviceID").or_else(|| member(&known.plugin, "pciBusID"));
        id.and_then(Value::as_str) == Some(kept.name.as_str())
    };
    let mut found = view.known.iter().filter(asks);
    let who = found
        .find_map(|known| known.who.clone())
        .unwrap_or_default();
    let life = if who.container.is_empty() {
        Life::Unknown
    } else {
        view.by_cache(&who)
    };
    Kept {
        remedy: Some(by_del("amd-host-device", &who)),
        note: format!("{name}, noted by AMD's plugin"),
        life,
        who,
        ..kept
    }
}

fn by_del(plugin: &str, who: &Who) -> String {
    format!(
        "only a DEL restores from it: CNI_COMMAND=DEL CNI_CONTAINERID={} CNI_IFNAME={} CNI_PATH=/opt/cni/bin {plugin}, with its configuration on stdin",
        who.container, who.ifname
    )
}

/// The files of sriov-cni.
pub(super) fn functions(view: &View<'_>, seen: &mut Seen) {
    let dir = sriov::dir(&view.paths.data);
    let mut owners = Vec::new();
    for path in listed(&dir).into_iter().filter(|path| path.is_file()) {
        let bytes = std::fs::read(&path).unwrap_or_default();
        let Ok(cached) = Cached::parse(&bytes) else {
            seen.broken.push(path);
            continue;
        };
        let id = name_of(&path);
        let who = Who {
            network: cached.name.clone(),
            ..Who::of_id(&id, view.ids())
        };
        owners.push((cached.device.to_string(), who.clone()));
        let kept = Kept {
            note: cached.original.host_ifname.clone(),
            ..Kept::new(Sort::Cache, cached.device.to_string(), path)
        };
        seen.kept
            .push(cache_of(view, kept, &id, who, cached.recorded));
    }
    for path in listed(&dir.join("pci")).into_iter().filter(|p| p.is_file()) {
        let name = name_of(&path);
        let netns = sriov::namespace(&std::fs::read(&path).unwrap_or_default());
        let netns = netns.unwrap_or_default();
        let who = owners.iter().find(|(device, _)| *device == name);
        seen.kept.push(Kept {
            life: allocation(view.paths, &netns),
            who: who.map(|(_, who)| who.clone()).unwrap_or_default(),
            note: netns.display().to_string(),
            ..Kept::new(Sort::Function, name, path)
        });
    }
}

/// Whether the namespace of an allocation file lives.
pub(in crate::doctor) fn allocation(paths: &Paths, netns: &Path) -> Life {
    if netns.as_os_str().is_empty() {
        return Life::Unknown;
    }
    Life::of(&paths.node, netns, None, None, "")
}

fn cache_of(view: &View<'_>, kept: Kept, id: &str, who: Who, recorded: bool) -> Kept {
    match of_cache(view, id) {
        Some(record) => Kept {
            life: view.life_of(record),
            who,
            ..kept
        },
        None if recorded => Kept {
            life: Life::gone(HOME),
            who,
            ..kept
        },
        None => Kept {
            life: view.by_cache(&who),
            remedy: Some(by_del("sriov", &who)),
            note: format!("{}, noted by sriov-cni", kept.note),
            who,
            ..kept
        },
    }
}

/// The record of the attachment whose cached configuration has this name.
pub(in crate::doctor) fn of_cache<'a>(view: &'a View<'_>, id: &str) -> Option<&'a Record> {
    let records = view.records.iter().map(|(_, record)| record);
    let is_it = |record: &&Record| {
        let owner = &record.owner;
        sriov::cache_name(&owner.holder, &owner.ifname) == id
    };
    records.into_iter().find(is_it)
}
