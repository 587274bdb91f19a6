//! Where the book is, as a pure function: the hands pass in what they know, so that tests need no environment.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The environment variable that names the book.
pub const BOOK_VARIABLE: &str = "MOOR_BOOK";

/// `--book`, else `$MOOR_BOOK`, else `<mgmt>/.moor/book.redb`, else the XDG state directory.
///
/// Empty variables count as unset, and a relative `$XDG_STATE_HOME` is ignored, as its specification asks. Without
/// any home directory the book is in the working directory, where somebody will see it.
pub fn locate(
    explicit: Option<&Path>,
    env: impl Fn(&str) -> Option<OsString>,
    mgmt: Option<&Path>,
) -> PathBuf {
    let set = |name: &str| env(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let state = || {
        let xdg = set("XDG_STATE_HOME").filter(|p| p.is_absolute());
        let home = || set("HOME").map(|h| h.join(".local/state"));
        xdg.or_else(home).map(|dir| dir.join("mooring/book.redb"))
    };
    explicit
        .map(Path::to_owned)
        .or_else(|| set(BOOK_VARIABLE))
        .or_else(|| mgmt.map(|m| m.join(".moor/book.redb")))
        .or_else(state)
        .unwrap_or_else(|| PathBuf::from(".moor/book.redb"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_wins() {
        let all = [
            ("MOOR_BOOK", "/env.redb"),
            ("XDG_STATE_HOME", "/xdg"),
            ("HOME", "/home/u"),
        ];
        let find = |explicit: Option<&str>, from: usize, mgmt: Option<&str>| {
            let env = |name: &str| {
                let known = all[from..].iter().find(|(n, _)| *n == name);
                known.map(|(_, v)| OsString::from(v))
            };
            let path = locate(explicit.map(Path::new), env, mgmt.map(Path::new));
            path.to_str().unwrap().to_owned()
        };
        assert_eq!(find(Some("b.redb"), 0, Some("m")), "b.redb");
        assert_eq!(find(None, 0, Some("m")), "/env.redb");
        assert_eq!(find(None, 1, Some("m")), "m/.moor/book.redb");
        assert_eq!(find(None, 1, None), "/xdg/mooring/book.redb");
        assert_eq!(
            find(None, 2, None),
            "/home/u/.local/state/mooring/book.redb"
        );
        assert_eq!(find(None, 3, None), ".moor/book.redb");
    }

    #[test]
    fn empty_and_relative_variables_count_as_unset() {
        let env = |name: &str| {
            let value = match name {
                "MOOR_BOOK" => "",
                "XDG_STATE_HOME" => "relative",
                _ => "/h",
            };
            Some(OsString::from(value))
        };
        let path = locate(None, env, None);
        assert_eq!(path, Path::new("/h/.local/state/mooring/book.redb"));
    }
}
