use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;
use crate::disk::RealDisk;

#[expect(clippy::disallowed_methods, reason = "the test sets the stage")]
fn put(root: &TempDir, path: &str, text: &str) -> PathBuf {
    let path = root.path().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path
}

fn codes(findings: &[Finding]) -> Vec<Code> {
    findings.iter().map(|f| f.code).collect()
}

#[test]
fn documents_are_read_and_the_rest_is_listed() {
    let dir = TempDir::new().unwrap();
    for path in ["Kptfile", "a.yaml", "sub/deep/b.yml"] {
        put(&dir, path, path);
    }
    for path in [
        "README.md",
        "sub/Kptfile.bak",
        ".git/c.yaml",
        ".moor/book.yaml",
    ] {
        put(&dir, path, "not read");
    }
    put(&dir, ".moor-lock", "");
    let tree = read_tree(&RealDisk, dir.path()).unwrap();
    let files: Vec<_> = tree
        .files
        .iter()
        .map(|(p, b)| (p.as_str(), b.as_slice()))
        .collect();
    let expected: [(&str, &[u8]); 3] = [
        ("Kptfile", b"Kptfile"),
        ("a.yaml", b"a.yaml"),
        ("sub/deep/b.yml", b"sub/deep/b.yml"),
    ];
    assert_eq!(files, expected);
    let others: Vec<_> = tree.others.iter().map(String::as_str).collect();
    assert_eq!(others, ["README.md", "sub/Kptfile.bak"]);
}

#[test]
fn a_document_above_eight_mebibytes_is_refused_by_name_and_size() {
    let dir = TempDir::new().unwrap();
    put(&dir, "small.yaml", "a: 1\n");
    for (path, len) in [
        ("most.yaml", MAX_FILE),
        ("sub/more.yaml", MAX_FILE + 1),
        ("big.bin", MAX_FILE + 1),
    ] {
        let file = fs::File::create(put(&dir, path, "")).unwrap();
        file.set_len(len).unwrap();
    }
    let findings = read_tree(&RealDisk, dir.path()).unwrap_err();
    assert_eq!(codes(&findings), [Code::FileTooLarge]);
    assert!(
        findings[0]
            .message
            .contains("sub/more.yaml has 8388609 bytes"),
        "{}",
        findings[0]
    );
}

#[test]
fn links_inside_are_listed_and_links_that_lead_out_are_all_refused() {
    let dir = TempDir::new().unwrap();
    put(&dir, "a/b/real.yaml", "kind: Real\n");
    symlink("../b/real.yaml", dir.path().join("a/b/link.yaml")).unwrap();
    symlink("a/b", dir.path().join("dir")).unwrap();
    let tree = read_tree(&RealDisk, dir.path()).unwrap();
    assert_eq!(tree.files.len(), 1);
    assert_eq!(tree.links["a/b/link.yaml"], "../b/real.yaml");
    assert_eq!(tree.links["dir"], "a/b");

    symlink("../../../secret.yaml", dir.path().join("a/b/up.yaml")).unwrap();
    symlink("/etc/hosts", dir.path().join("a/absolute.yaml")).unwrap();
    symlink("b/../../../x", dir.path().join("a/around")).unwrap();
    let findings = read_tree(&RealDisk, dir.path()).unwrap_err();
    assert_eq!(codes(&findings), [Code::PathOutsidePackage; 3]);
    assert!(
        findings
            .iter()
            .any(|f| f.message.ends_with("to /etc/hosts"))
    );
}

#[test]
fn the_root_itself_may_be_a_link() {
    let dir = TempDir::new().unwrap();
    put(&dir, "real/Kptfile", "kind: Kptfile\n");
    symlink("real", dir.path().join("link")).unwrap();
    let tree = read_tree(&RealDisk, &dir.path().join("link")).unwrap();
    assert_eq!(tree.files.len(), 1);
}

#[test]
fn a_name_that_is_not_text_is_refused() {
    let dir = TempDir::new().unwrap();
    let name = std::ffi::OsStr::from_bytes(b"bad-\xff.yaml");
    fs::File::create(dir.path().join(name)).unwrap();
    let findings = read_tree(&RealDisk, dir.path()).unwrap_err();
    assert_eq!(codes(&findings), [Code::FileUnreadable]);
}

#[test]
fn directories_without_end_are_refused() {
    let dir = TempDir::new().unwrap();
    let deep: PathBuf = std::iter::repeat_n("d", MAX_DEPTH).collect();
    fs::create_dir_all(dir.path().join(&deep)).unwrap();
    read_tree(&RealDisk, dir.path()).unwrap();
    fs::create_dir(dir.path().join(deep).join("d")).unwrap();
    let findings = read_tree(&RealDisk, dir.path()).unwrap_err();
    assert_eq!(codes(&findings), [Code::FileUnreadable]);
}

#[test]
fn what_is_not_a_directory_is_no_package() {
    let dir = TempDir::new().unwrap();
    let file = put(&dir, "file.yaml", "");
    for path in [file, dir.path().join("missing")] {
        let findings = read_tree(&RealDisk, &path).unwrap_err();
        assert_eq!(codes(&findings), [Code::PackageMissing]);
    }
}

#[test]
fn a_pipe_is_listed_and_not_opened() {
    let dir = TempDir::new().unwrap();
    let pipe = dir.path().join("pipe.yaml");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let tree = read_tree(&RealDisk, dir.path()).unwrap();
    assert!(tree.files.is_empty());
    assert!(tree.others.contains("pipe.yaml"));
}
