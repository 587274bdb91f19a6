//! What may stand in a committed file, checked over everything that Git knows.
#![expect(
    clippy::unwrap_used,
    reason = "the functions between the tests fail like tests"
)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Hosts that a file may name in a URL. A new one is added on purpose, here, so that the address of a mirror or of
/// somebody's machine cannot slip in.
const HOSTS: &[&str] = &[
    "github.com", // Cargo.lock: the index of the crates; upstream projects
    "www.apache.org",
    "example.invalid",
    "example.com",
    "example.com.helper", // a key of git's configuration for that host
    "kpt.dev",
    "kubernetes.io",
    "docs.nephio.org",
    "json-schema.org",
    "json.schemastore.org", // the schema that a SARIF log names
    "keepachangelog.com",
    "www.w3.org",             // the namespace of SVG
    "kubernetes.default.svc", // the issuer of service account tokens
    "127.0.0.1",
    "localhost",
    "HOST", // a place to fill in, in a help text
    "host", // made up, in tests of what is kept out of error texts
    "x",    // made up, in tests of the YAML reader
];

/// Split, so that this file does not find itself.
const MACHINE_PATHS: &[&str] = &[concat!("/wo", "rk/"), concat!("/ro", "ot/")];

const MOST_LINES: usize = 900;

fn root() -> PathBuf {
    mooring_testkit::workspace_root()
}

/// Committed files as text; bytes that are not text are nobody's prose.
fn files() -> Vec<(String, String)> {
    let listed = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        listed.status.success(),
        "{}",
        String::from_utf8_lossy(&listed.stderr)
    );
    let names = String::from_utf8(listed.stdout).unwrap();
    let text = |name: &str| {
        // Listed and gone: somebody is about to commit its removal.
        let bytes = std::fs::read(root().join(name)).ok()?;
        Some((name.to_owned(), String::from_utf8(bytes).ok()?))
    };
    let files: Vec<_> = names.split_terminator('\0').filter_map(text).collect();
    assert!(files.len() > 40, "Git lists only {} files", files.len());
    files
}

/// `(line number, what)` of every host in a URL that is not on the list.
fn strange_hosts(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for (at, _) in line.match_indices("://") {
            let rest = &line[at + 3..];
            let part = |text: &'_ str, more: &str| {
                let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || more.contains(c)));
                end.unwrap_or(text.len())
            };
            // A name and a password may stand before the host.
            let authority = &rest[..part(rest, ".-_@:{}%")];
            let host = authority.rsplit('@').next().unwrap_or_default();
            let host = &host[..part(host, ".-_")];
            let scheme = line[..at].ends_with("http") || line[..at].ends_with("https");
            if scheme && host.contains(|c: char| c.is_alphanumeric()) && !HOSTS.contains(&host) {
                found.push((number + 1, host.to_owned()));
            }
        }
    }
    found
}

/// `(line number, line)` of every absolute path of a machine.
fn machine_paths(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for path in MACHINE_PATHS {
            let absolute = |at: usize| {
                // `../x`, `a/x` and `{dir}/x` are relative to something.
                let before = line[..at].chars().next_back();
                before.is_none_or(|c| !(c.is_alphanumeric() || "._-*}>/~$".contains(c)))
            };
            if line.match_indices(path).any(|(at, _)| absolute(at)) {
                found.push((number + 1, line.trim().to_owned()));
            }
        }
    }
    found
}

fn complaints(check: impl Fn(&str) -> Vec<(usize, String)>) -> String {
    let mut out = String::new();
    for (name, text) in files() {
        for (line, what) in check(&text) {
            let _ = writeln!(out, "{name}:{line}: {what}");
        }
    }
    out
}

#[test]
fn urls_name_only_hosts_that_were_allowed_on_purpose() {
    let found = complaints(strange_hosts);
    assert!(
        found.is_empty(),
        "hosts that xtask/tests/tree.rs does not list:\n{found}"
    );
}

#[test]
fn no_path_of_a_machine_is_committed() {
    let found = complaints(machine_paths);
    assert!(found.is_empty(), "absolute paths of a machine:\n{found}");
}

#[test]
fn no_cargo_configuration_names_a_registry() {
    for (name, text) in files() {
        if name.ends_with("config.toml") {
            let names_one = text.contains("[source") || text.contains("[registr");
            assert!(
                !names_one,
                "{name} sets where crates come from; that is the machine's business"
            );
        }
    }
}

#[test]
fn no_rust_file_is_longer_than_a_reader_bears() {
    for (name, text) in files() {
        if Path::new(&name).extension().is_some_and(|e| e == "rs") {
            let lines = text.lines().count();
            assert!(
                lines <= MOST_LINES,
                "{name} has {lines} lines; split it by reader"
            );
        }
    }
}

#[test]
fn skips_go_through_the_testkit_so_that_they_are_counted() {
    let word = concat!("SKIP", "PED ");
    for (name, text) in files() {
        let rust = Path::new(&name).extension().is_some_and(|e| e == "rs");
        if rust && !name.starts_with("crates/testkit/") && !name.starts_with("xtask/") {
            assert!(
                !text.contains(word),
                "{name} prints a skip itself; call mooring_testkit::skip"
            );
        }
    }
}

#[test]
fn the_checks_see_what_they_look_for() {
    let text = concat!(
        "a http",
        "://mirror.corp:8080/x\nb https",
        "://github.com/x\nc ftp",
        "://x"
    );
    assert_eq!(strange_hosts(text), [(1, "mirror.corp".to_owned())]);
    let text = concat!("x /ro", "ot/.cargo\ny ../wo", "rk/z\ncd=/wo", "rk/main");
    let lines: Vec<usize> = machine_paths(text)
        .into_iter()
        .map(|(line, _)| line)
        .collect();
    assert_eq!(lines, [1, 3]);
}
