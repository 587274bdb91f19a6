//! Programs that tests use beyond Rust, where `cargo xtask setup` put them:
//! `$XDG_CACHE_HOME/mooring/<name>-<version>`, else below `~/.cache`.
//!
//! Easy to get wrong: a directory appears there by rename, when it is complete; so what is there can be used.

use std::path::{Path, PathBuf};

/// A component's directory, the newest by name. Absent is a counted skip `<name>-absent`, and `None`.
pub fn component(name: &str, what: &str) -> Option<PathBuf> {
    let found = find(name);
    if found.is_none() {
        crate::skip(&format!("{name}-absent"), what);
    }
    found
}

/// The same for a caller that says itself what an absent one means.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
    let base = set("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(Path::new(&set("HOME")?).join(".cache")));
    newest(&base?.join("mooring"), name)
}

fn newest(cache: &Path, name: &str) -> Option<PathBuf> {
    let is_it = |path: &PathBuf| {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let version = file.strip_prefix(name).and_then(|v| v.strip_prefix('-'));
        version.is_some_and(|v| v.starts_with(|c: char| c.is_ascii_digit())) && path.is_dir()
    };
    let entries = std::fs::read_dir(cache).ok()?;
    let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
    paths.filter(is_it).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_is_found_by_name_and_version_and_not_by_a_longer_name() {
        let cache = tempfile::tempdir().unwrap();
        for dir in ["cni-1.1.1", "cni-1.9.1", "cni-plugins-2.0"] {
            std::fs::create_dir(cache.path().join(dir)).unwrap();
        }
        let found = newest(cache.path(), "cni").unwrap();
        assert_eq!(found, cache.path().join("cni-1.9.1"));
        assert_eq!(newest(cache.path(), "etcd"), None);
    }
}
