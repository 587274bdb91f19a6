//! Names of packages and workspaces: safe as directories, as parts of refs and as names of objects.

use std::fmt;
use std::str::FromStr;

use mooring_api::BadValue;
use serde::Serialize;

/// A package, by its path below the repository's directory: `gnb`, `ran/gnb`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct PackageName(String);

/// A workspace: what tells two drafts of one package apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Workspace(String);

impl PackageName {
    /// As written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last part.
    pub fn last(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }
}

impl Workspace {
    /// As written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PackageName {
    type Err = BadValue;

    fn from_str(s: &str) -> Result<Self, BadValue> {
        let help = "write letters, digits, dots and dashes, with / between directories: ran/gnb-1; no part may be v1, v2 …";
        let good = s.len() <= 200 && s.split('/').all(|p| is_part(p) && version(p).is_none());
        let name = good.then(|| Self(s.to_owned()));
        name.ok_or_else(|| BadValue::new("the name of a package", s, help))
    }
}

impl FromStr for Workspace {
    type Err = BadValue;

    fn from_str(s: &str) -> Result<Self, BadValue> {
        let help = "write letters, digits, dots and dashes: edit-1";
        let name = is_part(s).then(|| Self(s.to_owned()));
        name.ok_or_else(|| BadValue::new("the name of a workspace", s, help))
    }
}

impl fmt::Display for PackageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Workspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `v3` is version 3.
pub(super) fn version(text: &str) -> Option<u32> {
    let digits = text.strip_prefix('v')?;
    let plain = digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
    plain.then(|| digits.parse().ok())?
}

/// One directory, and one part of a ref, which git and every file system take as they are.
fn is_part(part: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    let edge = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = part.as_bytes();
    part.len() <= 63
        && edge(bytes.first())
        && edge(bytes.last())
        && part.bytes().all(plain)
        && !part.contains("..")
        && !part.to_ascii_lowercase().ends_with(".lock")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_dots_dashes_and_directories_are_packages() {
        for name in ["gnb", "ran/gnb-1", "a.b/c_d", "5g", "vpc", "v", "v01"] {
            assert_eq!(name.parse::<PackageName>().unwrap().as_str(), name);
        }
        assert_eq!("ran/gnb".parse::<PackageName>().unwrap().last(), "gnb");
    }

    #[test]
    fn names_that_git_or_a_shell_take_for_something_else_are_refused() {
        let wrong = [
            "", "/", "a/", "/a", "a//b", "..", "a..b", ".a", "a.", "-a", "a-", "a.lock", "a b",
            "a~1", "a^", "a:b", "a@{1}", "v1", "a/v2", "a\nb", "ä", "a\\b", "*",
        ];
        for name in wrong {
            assert!(name.parse::<PackageName>().is_err(), "{name:?}");
        }
        for name in wrong.iter().filter(|n| !["v1", "a/v2"].contains(n)) {
            assert!(name.parse::<Workspace>().is_err(), "{name:?}");
        }
        assert!("a/b".parse::<Workspace>().is_err());
        assert!("v1".parse::<Workspace>().is_ok());
    }

    #[test]
    fn versions_count_from_one() {
        assert_eq!(version("v12"), Some(12));
        for other in ["v0", "v01", "12", "v", "v1a", "V1"] {
            assert_eq!(version(other), None, "{other}");
        }
    }
}
