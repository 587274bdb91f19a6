//! The lowest layer: what `moor-controller` calls at run time, from Debian's packages, and nothing else of Debian.
//!
//! Git speaks to servers through `git-remote-https` and `ssh`, and to its credential helper through a shell; the
//! programs bring their libraries. There is no package manager and no perl. Packages are fetched as for tests, and are of
//! the release that this machine runs, so that their C library is the one that the program was linked with.
//!
//! Easy to get wrong: Debian's packages may still ship `/lib/…` while the system has only `/usr/lib`. Every path is
//! moved under `/usr`, and the old names are links.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::tree::Tree;
use crate::setup;
use crate::shell::output;

/// Packages that programs are taken from, and which of their files.
const PROGRAMS: &[(&str, &[&str])] = &[
    (
        "git",
        &[
            "usr/bin/git",
            "usr/lib/git-core/git",
            "usr/lib/git-core/git-remote-http",
            "usr/lib/git-core/git-remote-https",
            "usr/bin/git-receive-pack",
            "usr/bin/git-upload-pack",
            "usr/share/git-core/templates/description",
        ],
    ),
    ("openssh-client", &["usr/bin/ssh"]),
    ("dash", &["usr/bin/dash"]),
    // What git is told to ask for a password: it answers nothing.
    ("coreutils", &["usr/bin/true"]),
    ("ca-certificates", &["usr/share/ca-certificates/"]),
];
/// Whose libraries are needed, besides those of the program itself.
const LINKED: &[&str] = &["git", "openssh-client", "dash", "libgcc-s1"];
/// Names that are links into `/usr` in every Debian of today.
const MERGED: &[&str] = &["bin", "lib", "lib64", "sbin"];

/// The layer, for a user of this number.
pub(super) fn tree(user: u32) -> Result<Tree> {
    let mut tree = Tree::default();
    let mut packages = String::new();
    for (package, files) in PROGRAMS {
        let place = |path: &str| {
            let path = merged(path);
            let wanted = |f: &&str| path == **f || (f.ends_with('/') && path.starts_with(*f));
            files.iter().any(wanted).then_some(path)
        };
        add(&mut tree, package, &mut packages, &place)?;
        for file in files.iter().filter(|f| !f.ends_with('/')) {
            ensure!(tree.has(file), "Debian's {package} has no {file}");
        }
    }
    for library in libraries()? {
        add(&mut tree, &library, &mut packages, &|path: &str| {
            let path = merged(path);
            is_library(&path).then_some(path)
        })?;
    }
    for name in MERGED {
        tree.link(name, &format!("usr/{name}"));
    }
    tree.link("usr/bin/sh", "dash");
    tree.file("etc/ssl/certs/ca-certificates.crt", certificates()?);
    tree.file(
        "etc/passwd",
        format!("root:x:0:0:root:/:/usr/sbin/nologin\nmoor:x:{user}:{user}:moor:/tmp:/usr/sbin/nologin\n"),
    );
    tree.file("etc/group", format!("root:x:0:\nmoor:x:{user}:\n"));
    tree.file(
        "etc/nsswitch.conf",
        "passwd: files\ngroup: files\nhosts: files dns\n",
    );
    // What it is made of, for whoever looks for known weaknesses.
    tree.file("usr/share/mooring/packages", packages);
    tree.directory("tmp", 0o1777);
    for dir in [
        "dev",
        "proc",
        "sys",
        "etc/ssh",
        "var/cache/mooring",
        "usr/sbin",
        "usr/lib64",
    ] {
        if !tree.has(dir) {
            tree.directory(dir, 0o755);
        }
    }
    Ok(tree)
}

fn add(
    tree: &mut Tree,
    package: &str,
    packages: &mut String,
    place: &impl Fn(&str) -> Option<String>,
) -> Result<()> {
    let dir = setup::debian_package(package)?;
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    let version = name
        .strip_prefix(package)
        .unwrap_or(&name)
        .trim_start_matches('-');
    writeln!(packages, "{package} {version}")?;
    tree.add(&dir, place)
}

/// `lib/x` is `usr/lib/x`.
fn merged(path: &str) -> String {
    let first = path.split('/').next().unwrap_or_default();
    if MERGED.contains(&first) {
        format!("usr/{path}")
    } else {
        path.to_owned()
    }
}

/// A shared library or the loader, but no plugin of one.
fn is_library(path: &str) -> bool {
    let (dir, file) = path.rsplit_once('/').unwrap_or(("", path));
    // `libz.so`, `libz.so.1`
    let is_shared = format!("{file}.").contains(".so.");
    let depth = dir.split('/').count();
    is_shared && (dir == "usr/lib64" || (dir.starts_with("usr/lib/") && depth == 3))
}

/// Every Mozilla certificate in one file, in the order of their names.
fn certificates() -> Result<String> {
    let dir = setup::debian_package("ca-certificates")?.join("usr/share/ca-certificates/mozilla");
    let entries = fs::read_dir(&dir).with_context(|| format!("cannot read {}", dir.display()))?;
    let mut paths: Vec<_> = entries
        .map(|e| e.map(|e| e.path()))
        .collect::<Result<_, _>>()?;
    paths.sort();
    let mut all = String::new();
    for path in paths {
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        all += text.trim_end();
        all.push('\n');
    }
    ensure!(
        all.contains("BEGIN CERTIFICATE"),
        "no certificate in {}",
        dir.display()
    );
    Ok(all)
}

/// Packages of libraries that the programs need, and those that these need.
fn libraries() -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let mut next: Vec<String> = LINKED.iter().map(|&name| name.to_owned()).collect();
    while let Some(package) = next.pop() {
        if holds_libraries(&package) && !found.insert(package.clone()) {
            continue;
        }
        let depends = output(
            Command::new("apt-cache")
                .args(["depends", "--important", &package])
                .env("LC_ALL", "C"),
        )?;
        next.extend(names(&depends).filter(|name| holds_libraries(name)));
    }
    ensure!(
        found.contains("libc6"),
        "apt says that git needs no C library: {found:?}"
    );
    Ok(found)
}

fn names(depends: &str) -> impl Iterator<Item = String> + '_ {
    let lines = depends
        .lines()
        .filter_map(|line| line.split_once("Depends: "));
    lines.map(|(_, name)| name.trim().to_owned())
}

fn holds_libraries(package: &str) -> bool {
    (package.starts_with("lib") && !package.ends_with("-perl")) || package == "zlib1g"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_places_are_under_usr() {
        assert_eq!(
            merged("lib64/ld-linux-x86-64.so.2"),
            "usr/lib64/ld-linux-x86-64.so.2"
        );
        assert_eq!(merged("usr/bin/git"), "usr/bin/git");
        assert_eq!(merged("library/x"), "library/x");
    }

    #[test]
    fn plugins_and_scripts_are_no_libraries() {
        assert!(is_library("usr/lib/x86_64-linux-gnu/libz.so.1"));
        assert!(is_library("usr/lib/x86_64-linux-gnu/libz.so.1.2.13"));
        assert!(is_library("usr/lib64/ld-linux-x86-64.so.2"));
        assert!(!is_library("usr/lib/x86_64-linux-gnu/gconv/BIG5.so"));
        assert!(!is_library("usr/share/doc/libz.so.txt"));
    }

    #[test]
    fn what_apt_says_is_read_by_package() {
        let said = "git\n  PreDepends: libc6\n |Depends: libcurl3-gnutls\n  Depends: <virtual>\n    real\n  Depends: perl\n";
        let libraries: Vec<String> = names(said).filter(|n| holds_libraries(n)).collect();
        assert_eq!(libraries, ["libc6", "libcurl3-gnutls"]);
    }
}
