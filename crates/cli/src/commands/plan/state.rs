//! What `--write` keeps, and `--from` reads: objects, addresses by key, and the last good form of every object. One file, and the
//! same network gives the same bytes.
//!
//! Easy to get wrong: `--from` also takes a directory of objects. Only the file's name tells them apart.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use mooring_intent::{Answers, Prior};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::network::Network;
use crate::world::Usage;

const FILE: &str = "moor-plan.json";
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct State {
    version: u32,
    pub(super) objects: Vec<Value>,
    pub(super) answers: Answers,
    pub(super) last_good: Prior,
}

/// What was kept at a path; nothing, where it holds objects instead.
pub(super) fn read(path: &str) -> anyhow::Result<Option<State>> {
    let given = Path::new(path);
    let file = if given.is_dir() {
        given.join(FILE)
    } else {
        given.to_owned()
    };
    if file.file_name().is_none_or(|name| name != FILE) || !file.exists() {
        return Ok(None);
    }
    let shown = file.display();
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {shown}"))?;
    let help = "name a directory that `moor plan --write` wrote, or one with objects";
    let state: State = serde_json::from_str(&text)
        .map_err(|e| Usage::new(format!("{shown} is not what moor plan keeps: {e}"), help))?;
    if state.version != VERSION {
        let message = format!("{shown} has version {}, not {VERSION}", state.version);
        return Err(Usage::new(message, "write it again with this version of moor").into());
    }
    Ok(Some(state))
}

/// Keeps a network.
pub(super) fn write(dir: &Path, network: &Network) -> anyhow::Result<()> {
    let state = State {
        version: VERSION,
        objects: network.objects(),
        answers: network.answers.clone(),
        last_good: Prior::new(network.compiled.contributions.clone()),
    };
    let text = serde_json::to_string_pretty(&state).context("cannot write JSON")? + "\n";
    let file = dir.join(FILE);
    fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    mooring_host::file::write_atomic_mode(&file, text.as_bytes(), 0o644)
        .with_context(|| format!("cannot write {}", file.display()))
}
