//! Programs that Go builds from small modules of ours, through whatever module proxy the machine is set to.
//!
//! A module pins what it builds by `go.mod` and `go.sum`, so that a build is repeatable and checked; nothing that is
//! fetched is kept in the tree. Easy to get wrong: a directory in the cache must be complete, also after a Ctrl-C. So
//! everything happens in a directory beside it that is renamed at the end.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::shell::output;

/// A module whose main package is the program.
#[derive(Clone, Copy)]
pub(super) struct Module {
    /// Of what it builds; the program says it too.
    pub(super) version: &'static str,
    /// Its files.
    pub(super) files: &'static [(&'static str, &'static str)],
}

/// The parts of kpt that call functions. Its own main package needs a nested module that no proxy serves.
pub(super) const KPT: Module = Module {
    version: "1.0.0-beta.60",
    files: &[
        ("go.mod", include_str!("kpt/go.mod")),
        ("go.sum", include_str!("kpt/go.sum")),
        ("main.go", include_str!("kpt/main.go")),
    ],
};

/// The directory of a program, with `bin/<name>` in it; built where it is absent.
pub(super) fn install(name: &str, module: &Module, cache: &Path) -> Result<PathBuf> {
    let place = cache.join(format!("{name}-{}", module.version));
    if place.is_dir() {
        return Ok(place);
    }
    let work = cache.join(format!(".{name}-{}", std::process::id()));
    let outcome = build(name, module, &work, &place);
    let _ = fs::remove_dir_all(&work);
    outcome.map(|()| place)
}

fn build(name: &str, module: &Module, work: &Path, place: &Path) -> Result<()> {
    let source = work.join("source");
    let files = work.join("files");
    for dir in [&source, &files] {
        fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    }
    for (file, text) in module.files {
        let path = source.join(file);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let flags = format!("-s -w -X main.version={}", module.version);
    let mut go = Command::new("nice");
    go.args(["go", "build", "-mod=readonly", "-trimpath", "-ldflags"])
        .arg(flags)
        .arg("-o")
        .arg(files.join("bin").join(name))
        .arg(".")
        .current_dir(&source)
        .env("CGO_ENABLED", "0")
        .env("GOTOOLCHAIN", "local");
    eprintln!("setup: building {name} {}, some minutes …", module.version);
    output(&mut go)?;
    match fs::rename(&files, place) {
        Err(_) if place.is_dir() => Ok(()),
        outcome => outcome.with_context(|| format!("cannot make {}", place.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_module_requires_the_version_that_the_cache_names() {
        let (_, text) = KPT.files[0];
        let wanted = format!("github.com/kptdev/kpt v{}", KPT.version);
        assert!(text.contains(&wanted), "{text}");
        assert!(!text.contains("replace"), "a replacement is not checked");
    }

    #[test]
    fn what_is_in_the_cache_serves_without_go() {
        let cache = tempfile::tempdir().expect("a temporary directory can be made");
        let place = cache.path().join(format!("kpt-{}", KPT.version));
        fs::create_dir(&place).expect("it is writable");
        let got = install("kpt", &KPT, cache.path()).expect("nothing is built");
        assert_eq!(got, place);
    }
}
