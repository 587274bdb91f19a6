//! Which attachments have rules in nftables: a file each in `/run/cni/moor/rules`.
//!
//! Written before the first rule, removed after the last one. DEL asks here, and not the configuration, which may say
//! something else by then; nor `nft`, which would be a program start for every pod that never had a rule. A reboot ends
//! notes and rules together. Easy to get wrong: the note names the network of the ADD, by whose hash the rules are
//! found, and the one of the DEL may have another name.

use std::path::PathBuf;

use mooring_attach::cni::{CniError, read};
use mooring_host::file;
use serde::Deserialize;
use serde_json::json;

use super::mark::Mark;
use crate::call::Call;

#[derive(Deserialize)]
struct Note {
    network: String,
    container: String,
    ifname: String,
}

impl From<Note> for Mark {
    fn from(note: Note) -> Self {
        Self::new(&note.network, &note.container, &note.ifname)
    }
}

fn dir(call: &Call) -> PathBuf {
    call.paths.own.join("rules")
}

fn path(call: &Call, mark: &Mark) -> PathBuf {
    dir(call).join(mark.instance())
}

/// Notes that the attachment is about to have rules.
pub(super) fn write(call: &Call, mark: &Mark) -> Result<(), CniError> {
    let path = path(call, mark);
    let note =
        json!({"network": mark.network(), "container": mark.container(), "ifname": mark.ifname()});
    file::write_atomic(&path, note.to_string().as_bytes())
        .map_err(|e| CniError::io(format!("cannot write {}", path.display()), e))
}

/// The attachment as it was when it got its rules; none where it has none of ours.
pub(super) fn of(call: &Call, mark: &Mark) -> Option<Mark> {
    let text = file::read(path(call, mark)).ok().flatten()?;
    // Also where it cannot be read: there is one.
    Some(parse(&text).unwrap_or_else(|| mark.clone()))
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
    let notes = entries.filter_map(|entry| parse(&file::read(entry.path()).ok()??));
    let dead = notes.filter(|mark| mark.network() == network && !valid.contains(mark));
    let errors: Vec<CniError> = dead.filter_map(|mark| remove(call, &mark).err()).collect();
    CniError::all(errors).map_or(Ok(()), Err)
}

fn parse(text: &[u8]) -> Option<Mark> {
    let value = serde_json::from_slice(text).ok()?;
    read::<Note>(&value).ok().map(Mark::from)
}
