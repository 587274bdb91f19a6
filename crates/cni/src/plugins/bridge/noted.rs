//! Which attachments have rules in nftables: a file each in `/run/cni/moor/rules`.
//!
//! Written before the first rule, removed after the last one. DEL asks here, and not the configuration, which may say
//! something else by then; nor `nft`, which would be a program start for every pod that never had a rule. A reboot ends
//! notes and rules together. Easy to get wrong: the note names the network of the ADD, by whose hash the rules are
//! found, and the one of the DEL may have another name.

use std::path::PathBuf;

use mooring_attach::cni::CniError;
use mooring_host::file;
use mooring_host::nft::note::{self, Note};

use super::mark::Mark;
use crate::call::Call;

fn dir(call: &Call) -> PathBuf {
    note::dir(&call.paths.own)
}

fn path(call: &Call, mark: &Mark) -> PathBuf {
    dir(call).join(mark.instance())
}

/// Notes that the attachment is about to have rules.
pub(super) fn write(call: &Call, mark: &Mark) -> Result<(), CniError> {
    let path = path(call, mark);
    let note = Note {
        network: mark.network().to_owned(),
        container: mark.container().to_owned(),
        ifname: mark.ifname().to_owned(),
    };
    file::write_atomic(&path, &note.to_bytes())
        .map_err(|e| CniError::io(format!("cannot write {}", path.display()), e))
}

/// The attachment as it was when it got its rules; none where it has none of ours.
pub(super) fn of(call: &Call, mark: &Mark) -> Option<Mark> {
    let text = file::read(path(call, mark)).ok().flatten()?;
    // Also where it cannot be read: there is one. Only the network may differ; anybody else's rules are not this call's.
    let network = Note::parse(&text).map(|note| note.network);
    let network = network.as_deref().unwrap_or(mark.network());
    Some(Mark::new(network, mark.container(), mark.ifname()))
}

/// Forgets an attachment whose rules are gone.
pub(super) fn remove(call: &Call, mark: &Mark) -> Result<(), CniError> {
    let path = path(call, mark);
    let removed = file::remove(&path);
    removed
        .map(drop)
        .map_err(|e| CniError::io(format!("cannot remove {}", path.display()), e))
}

/// Forgets those attachments of `network` that are not valid, once their rules are gone.
pub(super) fn sweep(call: &Call, network: &str, valid: &[Mark]) -> Result<(), CniError> {
    let entries = std::fs::read_dir(dir(call)).into_iter().flatten().flatten();
    let notes = entries.filter_map(|entry| Note::parse(&file::read(entry.path()).ok()??));
    let notes = notes.map(|note| Mark::new(&note.network, &note.container, &note.ifname));
    let dead = notes.filter(|mark| mark.network() == network && !valid.contains(mark));
    let errors: Vec<CniError> = dead.filter_map(|mark| remove(call, &mark).err()).collect();
    CniError::all(errors).map_or(Ok(()), Err)
}
