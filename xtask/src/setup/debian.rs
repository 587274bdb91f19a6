//! Debian packages without installing them: `apt-get download`, then `dpkg-deb -x` into the cache.
//!
//! A package is of the release that this machine runs; a [`Bundle`] is of the suite that it names, through an apt
//! configuration of its own that asks the mirror that this machine asks.
//!
//! Easy to get wrong: a directory in the cache must be complete, also after a Ctrl-C. So everything happens in a directory
//! beside it that is renamed at the end; a loser of two runs finds the winner's.

mod apt;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::shell::output;
use apt::Apt;

/// Packages of one suite that make one component.
#[derive(Clone, Copy)]
pub(super) struct Bundle {
    pub(super) suite: &'static str,
    /// The first one's version is the component's.
    pub(super) packages: &'static [&'static str],
    /// What is done to the files before they are in place.
    pub(super) finish: fn(&Path) -> Result<()>,
}

/// The directory of a package, fetched where it is absent.
pub(super) fn install(name: &str, cache: &Path) -> Result<PathBuf> {
    // What an earlier run fetched serves, whatever apt offers today: no network, no apt.
    if let Some(place) = cached(name, cache) {
        return Ok(place);
    }
    fetch(name, &[name], &Apt::machine(), |_| Ok(()), cache)
}

/// The directory of a bundle, fetched where it is absent.
pub(super) fn install_bundle(name: &str, bundle: &Bundle, cache: &Path) -> Result<PathBuf> {
    if let Some(place) = cached(name, cache) {
        return Ok(place);
    }
    let apt = Apt::of_suite(bundle.suite, cache)?;
    fetch(name, bundle.packages, &apt, bundle.finish, cache)
}

fn fetch(
    name: &str,
    packages: &[&str],
    apt: &Apt,
    finish: impl Fn(&Path) -> Result<()>,
    cache: &Path,
) -> Result<PathBuf> {
    let mut known = Vec::new();
    for package in packages {
        known.push(apt.what_it_stands_for(package)?);
    }
    let first = known.first().context("a component of no package")?;
    let place = cache.join(format!("{name}-{}", plain(&apt.version(first)?)));
    let work = cache.join(format!(".{name}-{}", std::process::id()));
    fs::create_dir_all(&work).with_context(|| format!("cannot make {}", work.display()))?;
    let outcome = unpack(&known, apt, finish, &work, &place);
    let _ = fs::remove_dir_all(&work);
    outcome?;
    Ok(place)
}

/// A version as a part of a directory's name: an epoch's colon and a tilde have no place in one.
fn plain(version: &str) -> String {
    let version = version.rsplit(':').next().unwrap_or_default();
    let fits = |c: char| c.is_ascii_alphanumeric() || ".+-".contains(c);
    let kept = version.chars().map(|c| if fits(c) { c } else { '_' });
    kept.collect()
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

fn unpack(
    packages: &[String],
    apt: &Apt,
    finish: impl Fn(&Path) -> Result<()>,
    work: &Path,
    place: &Path,
) -> Result<()> {
    apt.download(packages, work)?;
    let entries = fs::read_dir(work)?.filter_map(Result::ok);
    let files = work.join("files");
    let mut unpacked = 0;
    for path in entries.map(|entry| entry.path()) {
        if path.extension().is_some_and(|e| e == "deb") {
            output(Command::new("dpkg-deb").arg("-x").arg(&path).arg(&files))?;
            unpacked += 1;
        }
    }
    ensure!(
        unpacked == packages.len(),
        "apt-get download {} left {unpacked} packages",
        packages.join(" ")
    );
    finish(&files)?;
    match fs::rename(&files, place) {
        Err(_) if place.is_dir() => Ok(()),
        outcome => outcome.with_context(|| format!("cannot make {}", place.display())),
    }
}
