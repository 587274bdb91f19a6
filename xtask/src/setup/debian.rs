//! Debian packages without installing them: `apt-get download`, then `dpkg-deb -x` into the cache.
//!
//! Easy to get wrong: a directory in the cache must be complete, also after a Ctrl-C. So everything happens in a directory
//! beside it that is renamed at the end; a loser of two runs finds the winner's.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::shell::output;

/// The directory of a package, fetched where it is absent.
pub(super) fn install(name: &str, cache: &Path) -> Result<PathBuf> {
    // What an earlier run fetched serves, whatever apt offers today: no network, no apt.
    if let Some(place) = cached(name, cache) {
        return Ok(place);
    }
    let version = if let Some(version) = candidate(name)? {
        version
    } else {
        // A fresh machine has no package lists.
        output(Command::new("apt-get").args(["-q", "update"]))?;
        candidate(name)?.with_context(|| format!("apt knows no package {name}"))?
    };
    // An epoch's colon and a tilde have no place in a directory's name.
    let version: String = version
        .rsplit(':')
        .next()
        .unwrap_or_default()
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || ".+-".contains(c) {
                c
            } else {
                '_'
            }
        })
        .collect();
    let place = cache.join(format!("{name}-{version}"));
    let work = cache.join(format!(".{name}-{}", std::process::id()));
    fs::create_dir_all(&work).with_context(|| format!("cannot make {}", work.display()))?;
    let outcome = unpack(name, &work, &place);
    let _ = fs::remove_dir_all(&work);
    outcome?;
    Ok(place)
}

fn cached(name: &str, cache: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(cache).ok()?;
    let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
    let is_it = |path: &PathBuf| {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let version = file.strip_prefix(name).and_then(|v| v.strip_prefix('-'));
        version.is_some_and(|v| v.starts_with(|c: char| c.is_ascii_digit()))
    };
    paths.filter(is_it).max()
}

/// The version that apt would install.
fn candidate(name: &str) -> Result<Option<String>> {
    let policy = output(
        Command::new("apt-cache")
            .args(["policy", name])
            .env("LC_ALL", "C"),
    )?;
    let line = policy
        .lines()
        .find_map(|line| line.trim().strip_prefix("Candidate: "));
    Ok(line.filter(|v| *v != "(none)").map(str::to_owned))
}

fn unpack(name: &str, work: &Path, place: &Path) -> Result<()> {
    output(
        Command::new("apt-get")
            .args(["-q", "download", name])
            .current_dir(work),
    )?;
    let entries = fs::read_dir(work)?.filter_map(Result::ok);
    let package = entries
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|e| e == "deb"));
    let Some(package) = package else {
        bail!("apt-get download {name} left no package");
    };
    let files = work.join("files");
    output(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&files))?;
    match fs::rename(&files, place) {
        Err(_) if place.is_dir() => Ok(()),
        outcome => outcome.with_context(|| format!("cannot make {}", place.display())),
    }
}
