//! `moor verify REVISION:PATH`: what Git has, without a work tree.

use std::fs;
use std::path::Path;
use std::process::Command;

use mooring_testkit::hash_tree;

use crate::{fresh, moor};

fn git(dir: &Path, arguments: &[&str]) {
    let run = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.com"])
        .args(["-c", "commit.gpgsign=false"])
        .args(arguments)
        .current_dir(dir)
        .env("HOME", dir)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(run.status.success(), "git {arguments:?}: {run:?}");
}

fn write(dir: &Path, path: &str, text: &str) {
    let path = dir.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// The address is on line 7.
fn nad(address: &str) -> String {
    format!(
        "apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\nmetadata:\n  name: n2\nspec:\n  config: |\n    \
         {{\"type\": \"macvlan\", \"ipam\": {{\"type\": \"static\", \"addresses\": [{{\"address\": \"{address}/24\"}}]}}}}\n"
    )
}

/// Two clusters that collide in `v1` and no longer do in the work tree.
fn repository() -> tempfile::TempDir {
    let dir = fresh();
    git(dir.path(), &["init", "-q", "-b", "main"]);
    write(dir.path(), "sites/ran/n2.yaml", &nad("10.0.0.5"));
    write(dir.path(), "sites/core/n2.yaml", &nad("10.0.0.5"));
    write(
        dir.path(),
        "sites/core/etc/cni/net.d/10-calico.conf",
        "{\"type\": \"calico\"}",
    );
    write(
        dir.path(),
        "sites/core/etc/cni/net.d/20-multus.conf",
        "{\"type\": \"multus\"}",
    );
    std::os::unix::fs::symlink("n2.yaml", dir.path().join("sites/ran/link.yaml")).unwrap();
    git(dir.path(), &["add", "."]);
    git(dir.path(), &["commit", "-q", "-m", "first"]);
    git(dir.path(), &["tag", "v1"]);
    write(dir.path(), "sites/core/n2.yaml", &nad("10.0.0.6"));
    dir
}

fn said(dir: &Path, arguments: &[&str]) -> (String, i32) {
    let output = moor(dir).arg("verify").args(arguments).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    (text, output.status.code().unwrap())
}

#[test]
fn a_directory_of_a_revision_is_judged_as_it_was() {
    let dir = repository();
    for name in ["v1:sites", "v1:sites/", "HEAD:sites", "main~0:./sites"] {
        let (text, code) = said(dir.path(), &[name]);
        assert_eq!(code, 1, "{name}: {text}");
        let place = format!("--> {}/ran/n2.yaml:7:", name.trim_end_matches('/'));
        assert!(text.contains(&place), "{name}: {text}");
        assert!(text.contains("error[DuplicateAddress]: 10.0.0.5"), "{text}");
        assert!(
            text.contains("error[MetaPluginUnused]"),
            "CNI files count too: {text}"
        );
        assert!(text.contains("in 2 clusters"), "{text}");
    }
    fs::remove_dir_all(dir.path().join("sites/core/etc")).unwrap();
    let (text, code) = said(dir.path(), &["sites"]);
    assert_eq!(code, 0, "the work tree is another thing: {text}");
}

#[test]
fn a_whole_revision_and_a_file_of_one_and_a_named_cluster() {
    let dir = repository();
    let (text, code) = said(dir.path(), &["v1:"]);
    assert!(text.contains("--> v1:sites/"), "{code} {text}");
    let (text, code) = said(
        dir.path(),
        &["ran=v1:sites/ran/n2.yaml", "core=v1:sites/core/n2.yaml"],
    );
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("--> v1:sites/ran/n2.yaml:7:"), "{text}");
    assert!(
        text.contains("(cluster core, v1:sites/core/n2.yaml)"),
        "{text}"
    );
    let (text, code) = said(dir.path(), &["v1:sites/ran", "sites/core/n2.yaml"]);
    assert_eq!(code, 0, "a revision beside the work tree: {text}");
}

#[test]
fn it_works_from_a_directory_inside_the_repository() {
    let dir = repository();
    let (text, code) = said(&dir.path().join("sites/ran"), &["v1:sites"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("--> v1:sites/ran/n2.yaml:7:"), "{text}");
}

#[test]
fn what_exists_under_the_whole_name_is_meant_as_it_is() {
    let dir = repository();
    write(dir.path(), "v1:sites/n2.yaml", &nad("10.0.0.9"));
    let (text, code) = said(dir.path(), &["v1:sites"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("checked 1 address of 1 object"), "{text}");
}

#[test]
fn a_name_is_never_taken_for_an_option_and_runs_nothing() {
    let dir = repository();
    let before = hash_tree(dir.path());
    for name in [
        "--output=stolen:sites",
        "--upload-pack=touch stolen:x",
        "--textconv:x",
        "-h:",
        "HEAD:sites --output=stolen",
        "v1:../../etc",
        "ext::touch stolen:x",
        "$(touch stolen):x",
        "v1 v1:sites",
        "v1\nHEAD:sites",
        "nobody:sites",
        "v1:nothing",
        "HEAD^{/first}:nothing",
    ] {
        let (text, code) = said(dir.path(), &["--", name]);
        assert_eq!(code, 1, "{name}: {text}");
        assert!(text.contains("cannot read"), "{name}: {text}");
        assert!(text.contains(" from Git: "), "{name}: {text}");
    }
    assert_eq!(hash_tree(dir.path()), before);
}

#[test]
fn outside_of_a_repository_it_says_so() {
    let dir = fresh();
    let run = moor(dir.path())
        .args(["verify", "main:sites"])
        .env("GIT_CEILING_DIRECTORIES", "/")
        .output()
        .unwrap();
    let text = String::from_utf8(run.stderr).unwrap();
    assert_eq!(run.status.code(), Some(1), "{text}");
    assert!(text.contains("not a git repository"), "{text}");
}
