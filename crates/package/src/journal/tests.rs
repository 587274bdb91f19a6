use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use tempfile::TempDir;

use super::*;
use crate::disk::{RealDisk, read_tree};

#[expect(clippy::disallowed_methods, reason = "the test sets the stage")]
fn put(root: &TempDir, path: &str, text: &str) {
    let path = root.path().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
}

fn get(root: &TempDir, path: &str) -> Option<String> {
    fs::read_to_string(root.path().join(path)).ok()
}

fn write(path: &str, text: &str) -> Change {
    let (path, bytes) = (path.to_owned(), text.as_bytes().to_vec());
    Change::Write { path, bytes }
}

fn remove(path: &str) -> Change {
    let path = path.to_owned();
    Change::Remove { path }
}

fn act(root: &Path, changes: Vec<Change>) -> Result<Written, CommitError> {
    let root = root.to_owned();
    let txn = None;
    let plan = Plan { root, changes, txn };
    commit_files(&RealDisk, &plan, |_| Ok(()))
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Everything below a directory: bytes and permission bits.
fn snapshot(root: &Path) -> BTreeMap<PathBuf, (Vec<u8>, u32)> {
    let mut all = BTreeMap::new();
    let mut dirs = vec![root.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            if meta.is_dir() {
                dirs.push(path.clone());
            }
            let bytes = fs::read(&path).unwrap_or_default();
            all.insert(path, (bytes, meta.permissions().mode()));
        }
    }
    all
}

/// The act is refused with these codes, and not a byte has changed.
fn assert_refused(root: &Path, changes: Vec<Change>, codes: &[Code]) -> Vec<Finding> {
    let before = snapshot(root);
    let Err(CommitError::Refused(findings)) = act(root, changes) else {
        panic!("not refused");
    };
    let found: Vec<_> = findings.iter().map(|f| f.code).collect();
    assert_eq!(found, codes, "{findings:?}");
    assert!(findings.iter().all(|f| !f.help.is_empty()));
    assert_eq!(snapshot(root), before);
    findings
}

#[test]
fn files_are_created_changed_and_removed_and_nothing_of_ours_stays() {
    let dir = TempDir::new().unwrap();
    put(&dir, "a.yaml", "old");
    put(&dir, "gone/deep/b.yaml", "old");
    put(&dir, "half/c.yaml", "old");
    put(&dir, "half/d.yaml", "old");
    let written = act(
        dir.path(),
        vec![
            write("a.yaml", "new"),
            write("made/deep/e.yaml", "new"),
            remove("gone/deep/b.yaml"),
            remove("half/c.yaml"),
            remove("never.yaml"),
            write("half/d.yaml", "old"),
        ],
    );
    assert_eq!(written.unwrap().files, 4);
    let left: Vec<_> = snapshot(dir.path()).into_keys().collect();
    let expected = [
        "a.yaml",
        "half",
        "half/d.yaml",
        "made",
        "made/deep",
        "made/deep/e.yaml",
    ];
    assert_eq!(left, expected.map(|p| dir.path().join(p)));
    assert_eq!(get(&dir, "a.yaml").unwrap(), "new");
}

#[test]
fn an_act_without_changes_touches_nothing_and_still_commits_the_book() {
    let dir = TempDir::new().unwrap();
    put(&dir, "a.yaml", "same");
    let (root, changes) = (dir.path().to_owned(), vec![write("a.yaml", "same")]);
    let txn = Some(TxnId(3));
    let plan = Plan { root, changes, txn };
    chmod(dir.path(), 0o755);
    let before = fs::metadata(dir.path()).unwrap().modified().unwrap();
    let mut committed = None;
    let written = commit_files(&RealDisk, &plan, |txn| {
        committed = Some(txn);
        Ok(())
    });
    assert_eq!(written.unwrap().files, 0);
    assert_eq!(committed, Some(TxnId(3)));
    assert_eq!(
        fs::metadata(dir.path()).unwrap().modified().unwrap(),
        before
    );
}

#[test]
fn a_replaced_file_keeps_its_permissions() {
    let dir = TempDir::new().unwrap();
    put(&dir, "a.yaml", "old");
    chmod(&dir.path().join("a.yaml"), 0o640);
    act(dir.path(), vec![write("a.yaml", "new")]).unwrap();
    let mode = fs::metadata(dir.path().join("a.yaml"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o7777, 0o640);
}

#[test]
fn read_only_directories_and_files_are_found_before_anything_is_written() {
    let dir = TempDir::new().unwrap();
    for path in ["first.yaml", "sealed/a.yaml", "open/b.yaml"] {
        put(&dir, path, "old");
    }
    let (sealed, file) = (dir.path().join("sealed"), dir.path().join("open/b.yaml"));
    chmod(&sealed, 0o555);
    chmod(&file, 0o444);
    let changes = vec![
        write("first.yaml", "new"),
        write("sealed/a.yaml", "new"),
        write("sealed/new/c.yaml", "new"),
        write("open/b.yaml", "new"),
    ];
    let codes = [Code::FileUnwritable; 2];
    let findings = assert_refused(dir.path(), changes, &codes);
    assert!(findings[0].message.contains("sealed: "), "{}", findings[0]);
    assert!(
        findings[1].message.contains("open/b.yaml: "),
        "{}",
        findings[1]
    );
    chmod(&sealed, 0o755);

    chmod(dir.path(), 0o555);
    assert_refused(dir.path(), vec![write("open/d.yaml", "new")], &codes[..1]);
    chmod(dir.path(), 0o755);
}

#[test]
fn paths_that_leave_the_root_or_take_our_names_are_refused() {
    let dir = TempDir::new().unwrap();
    put(&dir, "a.yaml", "old");
    for path in [
        "../a.yaml",
        "sub/../../a.yaml",
        "/etc/a.yaml",
        "",
        "a//b.yaml",
        "./a.yaml",
        "sub/",
        ".git/config",
        "sub/.moor-journal",
        ".moor/book.redb",
        "zero\0.yaml",
    ] {
        let changes = vec![write("a.yaml", "new"), write(path, "new")];
        assert_refused(dir.path(), changes, &[Code::PathOutsidePackage]);
    }
    let twice = vec![write("a.yaml", "new"), remove("a.yaml")];
    assert_refused(dir.path(), twice, &[Code::PathOutsidePackage]);
}

#[test]
fn nothing_is_written_through_a_link() {
    let outside = TempDir::new().unwrap();
    put(&outside, "target.yaml", "theirs");
    let dir = TempDir::new().unwrap();
    put(&dir, "real/a.yaml", "old");
    symlink(outside.path(), dir.path().join("out")).unwrap();
    symlink("real", dir.path().join("in")).unwrap();
    symlink(
        outside.path().join("target.yaml"),
        dir.path().join("link.yaml"),
    )
    .unwrap();
    for path in [
        "out/target.yaml",
        "out/new/deep.yaml",
        "in/a.yaml",
        "link.yaml",
    ] {
        for change in [write(path, "new"), remove(path)] {
            assert_refused(dir.path(), vec![change], &[Code::PathOutsidePackage]);
        }
    }
    assert_eq!(get(&outside, "target.yaml").unwrap(), "theirs");
}

#[test]
fn a_planted_temporary_link_is_replaced_and_not_followed() {
    let outside = TempDir::new().unwrap();
    put(&outside, "target.yaml", "theirs");
    let dir = TempDir::new().unwrap();
    for name in [".moor-tmp-0", UNFINISHED] {
        symlink(outside.path().join("target.yaml"), dir.path().join(name)).unwrap();
    }
    put(&dir, "a.yaml", "old");
    act(dir.path(), vec![write("a.yaml", "new")]).unwrap();
    assert_eq!(get(&outside, "target.yaml").unwrap(), "theirs");
    assert_eq!(get(&dir, "a.yaml").unwrap(), "new");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn directories_and_files_in_the_way_are_refused() {
    let dir = TempDir::new().unwrap();
    put(&dir, "file", "yours");
    put(&dir, "dir/a.yaml", "yours");
    for path in ["file/a.yaml", "dir"] {
        assert_refused(dir.path(), vec![write(path, "new")], &[Code::FileInTheWay]);
    }
}

/// A run over `dir` that ended right after its journal was durable.
fn interrupted_run(dir: &TempDir, changes: &[Change]) {
    let steps: Vec<Step<'_>> = changes.iter().map(Step::from).collect();
    let seen = check::check(&RealDisk, dir.path(), &steps).unwrap();
    let bytes = format::encode(Some(TxnId(7)), &check::changed(steps, &seen).0);
    put(dir, JOURNAL, std::str::from_utf8(&bytes).unwrap());
}

fn settle(root: &Path) -> Result<(usize, Vec<Recovered>), Vec<Finding>> {
    let (tree, done) = read_settled(&RealDisk, root, |_| Ok(()))?;
    Ok((tree.files.len(), done))
}

#[test]
fn journals_in_above_and_below_the_root_are_settled_before_reading() {
    let dir = TempDir::new().unwrap();
    fs::create_dir(dir.path().join(".git")).unwrap();
    for root in ["", "fleet/a", "fleet"] {
        put(&dir, "fleet/a/old.yaml", "old");
        interrupted_run(
            &dir,
            &[write("fleet/a/new.yaml", "new"), remove("fleet/a/old.yaml")],
        );
        let (files, done) = settle(&dir.path().join(root)).unwrap();
        assert_eq!((files, done.len()), (1, 1), "{root}");
        assert!(get(&dir, "fleet/a/old.yaml").is_none());
        assert!(get(&dir, JOURNAL).is_none());
        fs::remove_file(dir.path().join("fleet/a/new.yaml")).unwrap();
    }
    let below = TempDir::new_in(dir.path()).unwrap();
    interrupted_run(&below, &[write("new.yaml", "new")]);
    let (files, done) = settle(dir.path()).unwrap();
    assert_eq!(files, 1);
    let [
        Recovered::Finished {
            root,
            files: 1,
            committed: true,
            ..
        },
    ] = done.as_slice()
    else {
        panic!("{done:?}");
    };
    assert_eq!(*root, below.path().canonicalize().unwrap());
    assert_eq!(done[0].finding().unwrap().code, Code::RenderRecovered);
}

#[test]
fn a_journal_above_git_is_not_ours() {
    let dir = TempDir::new().unwrap();
    fs::create_dir_all(dir.path().join("repo/.git")).unwrap();
    interrupted_run(&dir, &[write("repo/a.yaml", "new")]);
    let (files, done) = settle(&dir.path().join("repo")).unwrap();
    assert_eq!((files, done.len()), (0, 0));
}

#[test]
fn an_edit_after_the_interruption_is_never_overwritten() {
    let dir = TempDir::new().unwrap();
    put(&dir, "a.yaml", "old");
    put(&dir, "b.yaml", "old");
    interrupted_run(
        &dir,
        &[
            write("a.yaml", "the new text"),
            remove("b.yaml"),
            write("c.yaml", "new"),
        ],
    );
    for path in ["a.yaml", "b.yaml", "c.yaml"] {
        let was = get(&dir, path);
        put(&dir, path, "edited by hand");
        let before = snapshot(dir.path());
        let findings = settle(dir.path()).unwrap_err();
        assert_eq!(
            findings.iter().map(|f| f.code).collect::<Vec<_>>(),
            [Code::FileInTheWay]
        );
        assert!(findings[0].message.contains(path));
        assert_eq!(snapshot(dir.path()), before);
        match was {
            Some(text) => put(&dir, path, &text),
            None => fs::remove_file(dir.path().join(path)).unwrap(),
        }
    }
    put(&dir, "a.yaml", "the new\0\0");
    settle(dir.path()).unwrap();
    assert_eq!(get(&dir, "a.yaml").unwrap(), "the new text");
}

#[test]
fn a_damaged_journal_is_reported_and_nothing_is_done() {
    let dir = TempDir::new().unwrap();
    interrupted_run(&dir, &[write("a.yaml", "new")]);
    let text = get(&dir, JOURNAL).unwrap();
    put(&dir, JOURNAL, &text.replace("a.yaml", "b.yaml"));
    let findings = settle(dir.path()).unwrap_err();
    assert_eq!(findings[0].code, Code::FileUnreadable);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_journal_that_leads_out_is_refused() {
    let dir = TempDir::new().unwrap();
    fs::create_dir(dir.path().join("root")).unwrap();
    let step = Step::from(&write("../a.yaml", "new"))
        .clone()
        .path
        .into_owned();
    let step = Step {
        path: step.into(),
        before: None,
        after: Some(b"new"),
    };
    let bytes = format::encode(None, &[step]);
    put(
        &dir,
        "root/.moor-journal",
        std::str::from_utf8(&bytes).unwrap(),
    );
    let findings = settle(&dir.path().join("root")).unwrap_err();
    assert_eq!(findings[0].code, Code::PathOutsidePackage);
    assert!(get(&dir, "a.yaml").is_none());
}

#[test]
fn a_new_act_does_not_overwrite_an_unsettled_journal() {
    let dir = TempDir::new().unwrap();
    interrupted_run(&dir, &[write("a.yaml", "new")]);
    assert_refused(
        dir.path(),
        vec![write("b.yaml", "new")],
        &[Code::FileUnwritable],
    );
}

#[test]
fn a_book_that_fails_leaves_the_journal_for_the_next_run() {
    let dir = TempDir::new().unwrap();
    let plan = Plan {
        root: dir.path().to_owned(),
        changes: vec![write("a.yaml", "new")],
        txn: Some(TxnId(7)),
    };
    let busy = |_| {
        Err(mooring_book::Error::Busy {
            path: "book".into(),
            holder: None,
        })
    };
    let failed = commit_files(&RealDisk, &plan, busy);
    assert!(matches!(failed, Err(CommitError::Book(_))));
    let findings = read_settled(&RealDisk, dir.path(), busy).unwrap_err();
    assert_eq!(findings[0].code, Code::BookBusy);
    let mut committed = Vec::new();
    read_settled(&RealDisk, dir.path(), |txn| {
        committed.push(txn);
        Ok(())
    })
    .unwrap();
    assert_eq!(committed, [TxnId(7)]);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn leavings_without_a_journal_are_removed() {
    let dir = TempDir::new().unwrap();
    put(&dir, "sub/.moor-tmp-3", "half");
    put(&dir, UNFINISHED, "mooring-jour");
    assert_eq!(
        read_tree(&RealDisk, dir.path()).unwrap().strays,
        ["sub/.moor-tmp-3"]
    );
    let (_, done) = settle(dir.path()).unwrap();
    assert!(matches!(done.as_slice(), [Recovered::Undone { .. }]));
    assert_eq!(snapshot(dir.path()).len(), 1);
}
