//! The fuzz entry point: what must hold for any bytes in a file that a plugin, a runtime or a person may have written.

use std::path::Path;

use super::{amd, libcni, sriov, tuning};
use crate::User;
use crate::host_local::{self, Content};
use crate::nft::note::Note;
use crate::pci::Bdf;

/// Whatever the bytes are, no reader panics; and what one of them reads is written and read back to the same.
#[doc(hidden)]
pub fn fuzz_foreign(data: &[u8]) {
    mapping(data);
    cached(data);
    if let Some(netns) = sriov::namespace(data) {
        assert!(!netns.as_os_str().is_empty(), "an empty file names nobody");
    }
    if let Some(backup) = tuning::Backup::parse(data) {
        assert_eq!(
            tuning::Backup::parse(&backup.to_bytes()),
            Some(backup.clone())
        );
        assert!(backup.changes().len() <= 5);
        assert!(backup.changes().iter().all(|change| change.mtu != Some(0)));
        let mut second = tuning::Backup::default();
        second.overruled_by(backup.clone());
        assert_eq!(second.changes(), backup.changes(), "the first try counts");
    }
    if let Content::Owned(owner) = host_local::parse(data) {
        let ifname = owner.ifname.clone().unwrap_or_default();
        let text = format!("{}\r\n{ifname}", owner.container);
        let Content::Owned(again) = host_local::parse(text.as_bytes()) else {
            unreachable!("{text:?} has an owner");
        };
        assert_eq!(again.container, owner.container, "{text:?}");
        assert!(again.may_be(&owner), "{text:?}");
    }
    if let Some(cached) = libcni::Cached::parse(data) {
        let _ = cached.addresses();
        let plugins = cached.configuration().map(|c| libcni::plugins(&c));
        assert!(plugins.is_none_or(|list| list.len() <= data.len()));
    }
    if let Some(note) = Note::parse(data) {
        assert_eq!(Note::parse(&note.to_bytes()), Some(note));
    }
    if let Some(user) = User::parse(data) {
        assert_eq!(User::parse(&user.to_bytes()), Some(user));
    }
}

fn mapping(data: &[u8]) {
    let Ok(mut mapping) = amd::Mapping::parse(data) else {
        return;
    };
    let bytes = mapping.to_bytes();
    let again = amd::Mapping::parse(&bytes).expect("what we write, we can read");
    let devices: Vec<String> = again.devices().map(ToOwned::to_owned).collect();
    // What is no entry may be anything, and a fraction may lose its last digit; what is one is the same.
    assert_eq!(devices, mapping.devices().collect::<Vec<_>>());
    for device in &devices {
        let [one, two] = [&mapping, &again].map(|m| m.entry(device).and_then(Result::ok));
        assert_eq!(one, two);
    }
    let served = mapping.served(|_| false);
    for device in &devices {
        let Some(Ok(entry)) = mapping.entry(device) else {
            continue;
        };
        assert_eq!(served.contains(device), entry.record.is_some());
        mapping.set(device, &entry);
        let read = mapping.entry(device).expect("just set").expect("an entry");
        assert_eq!(read, entry);
    }
    assert!(mapping.served(|_| true).is_empty());
    for device in &served {
        assert!(mapping.strike(device));
    }
    assert_eq!(mapping.devices().count(), devices.len() - served.len());
}

fn cached(data: &[u8]) {
    let Ok(cached) = sriov::Cached::parse(data) else {
        return;
    };
    let device: Result<Bdf, _> = cached.device.as_str().parse();
    assert_eq!(device.as_ref(), Ok(&cached.device));
    let files = sriov::Files::new(Path::new("/d"), "c1-net1", &cached.device);
    assert_eq!(files.allocation.parent(), Some(Path::new("/d/sriov/pci")));
    let text = serde_json::to_vec(&cached.original).expect("plain values");
    let again = serde_json::from_slice(&text);
    assert_eq!(again.ok(), Some(cached.original));
}
