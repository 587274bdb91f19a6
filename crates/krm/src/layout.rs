//! Which files belong to which package: a directory with a Kptfile is a package, one inside another is a
//! subpackage, and only KRM files count.
//!
//! Called by `package` with all files of a directory tree. Easy to get wrong: a file belongs to the
//! deepest package above it; `.krmignore` speaks for its own directory and below.

mod ignore;

use std::collections::BTreeMap;

use ignore::Patterns;

/// The name of the file that makes a directory a package.
pub const KPTFILE: &str = "Kptfile";

/// The name of the file that lists what is no part of a package.
pub const KRMIGNORE: &str = ".krmignore";

/// A package and its own files; those of subpackages belong to the subpackage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// Directory, with `/`, empty for the root.
    pub directory: String,
    /// The package around this one, as a place in [`Layout::packages`].
    pub parent: Option<usize>,
    /// KRM files in order of path, the Kptfile included.
    pub files: Vec<String>,
}

/// The packages of a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// In order of directory, a parent before its subpackages.
    pub packages: Vec<Package>,
    /// KRM files above or beside all packages.
    pub outside: Vec<String>,
    /// Files that a `.krmignore` takes out.
    pub ignored: Vec<String>,
}

impl Layout {
    /// The packages directly below one.
    pub fn children(&self, package: usize) -> impl Iterator<Item = usize> {
        let parents = self.packages.iter().enumerate();
        parents
            .filter(move |(_, p)| p.parent == Some(package))
            .map(|(i, _)| i)
    }

    /// The package a file belongs to.
    pub fn package_of(&self, path: &str) -> Option<usize> {
        deepest(&self.packages, path)
    }
}

/// Whether a path names a file that can hold KRM objects: `.yaml`, `.yml` or a Kptfile, not below a
/// hidden directory.
pub fn is_krm(path: &str) -> bool {
    let (directory, name) = split(path);
    let hidden = directory
        .split('/')
        .any(|part| part.starts_with('.') && part != ".");
    let suffix = |suffix: &str| name.len() > suffix.len() && name.ends_with(suffix);
    !hidden && (name == KPTFILE || suffix(".yaml") || suffix(".yml"))
}

/// Sorts the files of a tree into packages. Paths are relative, with `/`.
pub fn layout(files: &BTreeMap<String, Vec<u8>>) -> Layout {
    let patterns: BTreeMap<&str, Patterns> = files
        .iter()
        .filter(|(path, _)| split(path).1 == KRMIGNORE)
        .map(|(path, bytes)| {
            (
                split(path).0,
                Patterns::parse(&String::from_utf8_lossy(bytes)),
            )
        })
        .collect();
    let mut layout = Layout::default();
    let mut krm = Vec::new();
    for path in files.keys().filter(|path| is_krm(path)) {
        if is_ignored(&patterns, path) {
            layout.ignored.push(path.clone());
        } else {
            krm.push(path);
        }
    }
    let mut directories: Vec<&str> = krm
        .iter()
        .map(|path| split(path))
        .filter(|(_, name)| *name == KPTFILE)
        .map(|(directory, _)| directory)
        .collect();
    directories.sort_unstable();
    for directory in directories {
        let parent = deepest(&layout.packages, directory);
        layout.packages.push(Package {
            directory: directory.to_owned(),
            parent,
            files: Vec::new(),
        });
    }
    for path in krm {
        match deepest(&layout.packages, path) {
            Some(package) => layout.packages[package].files.push(path.clone()),
            None => layout.outside.push(path.clone()),
        }
    }
    layout
}

/// The deepest package whose directory is above this path.
fn deepest(packages: &[Package], path: &str) -> Option<usize> {
    let mut above = Some(split(path).0);
    while let Some(directory) = above {
        if let Ok(at) = packages.binary_search_by(|p| p.directory.as_str().cmp(directory)) {
            return Some(at);
        }
        above = (!directory.is_empty()).then(|| split(directory).0);
    }
    None
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// The last pattern that matches decides, deeper files after outer ones.
fn is_ignored(patterns: &BTreeMap<&str, Patterns>, path: &str) -> bool {
    let mut ignored = false;
    let starts = std::iter::once(0).chain(path.match_indices('/').map(|(i, _)| i + 1));
    for start in starts {
        let directory = path[..start].trim_end_matches('/');
        if let Some(patterns) = patterns.get(directory) {
            ignored = patterns.decide(&path[start..]).unwrap_or(ignored);
        }
    }
    ignored
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> BTreeMap<String, Vec<u8>> {
        files
            .iter()
            .map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()))
            .collect()
    }

    #[test]
    fn a_file_belongs_to_the_deepest_package_above_it() {
        let layout = layout(&tree(&[
            ("Kptfile", ""),
            ("a.yaml", ""),
            ("dir/b.yml", ""),
            ("sub/Kptfile", ""),
            ("sub/deep/c.yaml", ""),
            ("sub/deep/er/Kptfile", ""),
            ("sub-x/d.yaml", ""),
            ("README.md", ""),
            (".git/x.yaml", ""),
            ("dir/.hidden/y.yaml", ""),
        ]));
        let packages: Vec<_> = layout
            .packages
            .iter()
            .map(|p| (p.directory.as_str(), p.parent, p.files.join(" ")))
            .collect();
        assert_eq!(
            packages,
            [
                ("", None, "Kptfile a.yaml dir/b.yml sub-x/d.yaml".to_owned()),
                ("sub", Some(0), "sub/Kptfile sub/deep/c.yaml".to_owned()),
                ("sub/deep/er", Some(1), "sub/deep/er/Kptfile".to_owned()),
            ]
        );
        assert_eq!(layout.children(0).collect::<Vec<_>>(), [1]);
        assert_eq!(layout.package_of("sub/new.yaml"), Some(1));
    }

    #[test]
    fn files_without_a_package_are_outside() {
        let layout = layout(&tree(&[("pools.yaml", ""), ("pkg/Kptfile", "")]));
        assert_eq!(layout.outside, ["pools.yaml"]);
        assert_eq!(layout.packages.len(), 1);
    }

    #[test]
    fn krmignore_takes_files_out_for_its_directory_and_below() {
        let layout = layout(&tree(&[
            ("Kptfile", ""),
            (
                ".krmignore",
                "# tests\n*_test.yaml\n/only-root.yaml\ndocs/\n!keep_test.yaml\n",
            ),
            ("a_test.yaml", ""),
            ("keep_test.yaml", ""),
            ("only-root.yaml", ""),
            ("dir/only-root.yaml", ""),
            ("dir/b_test.yaml", ""),
            ("dir/docs/x.yaml", ""),
            ("sub/Kptfile", ""),
            ("sub/.krmignore", "!b_test.yaml\nKptfile\n"),
            ("sub/b_test.yaml", ""),
        ]));
        assert_eq!(
            layout.ignored,
            [
                "a_test.yaml",
                "dir/b_test.yaml",
                "dir/docs/x.yaml",
                "only-root.yaml",
                "sub/Kptfile"
            ]
        );
        assert_eq!(
            layout.packages[0].files,
            [
                "Kptfile",
                "dir/only-root.yaml",
                "keep_test.yaml",
                "sub/b_test.yaml"
            ]
        );
    }
}
