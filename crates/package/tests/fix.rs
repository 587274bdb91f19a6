//! A fix that was interrupted is finished by the next one, before it reads anything.

#![expect(
    clippy::disallowed_methods,
    reason = "a failed set-up is a failed test, and a test makes its own inputs"
)]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use mooring_package::disk::{Access, Disk, Entry, Meta, RealDisk};
use mooring_package::journal::{Change, JOURNAL, Plan, commit_files};
use mooring_package::{Source, fix};

const WRONG: &str = "apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\nmetadata:\n  name: n2\nspec:\n  \
                     config: |\n    {\"type\": \"macvlan\"} # x\n";

/// The real disk, until so many files were put in their place.
struct Ends {
    left: AtomicUsize,
}

impl Disk for Ends {
    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        RealDisk.resolve(path)
    }
    fn meta(&self, path: &Path) -> io::Result<Meta> {
        RealDisk.meta(path)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        RealDisk.list(dir)
    }
    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        RealDisk.read_link(path)
    }
    fn read(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
        RealDisk.read(path, limit)
    }
    fn check_writable(&self, path: &Path) -> io::Result<()> {
        RealDisk.check_writable(path)
    }
    fn user(&self) -> u32 {
        RealDisk.user()
    }
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        RealDisk.create_dir(path)
    }
    fn write_new(&self, path: &Path, bytes: &[u8], access: Access) -> io::Result<()> {
        RealDisk.write_new(path, bytes, access)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let spend = |left: usize| left.checked_sub(1);
        let left = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend);
        left.map_err(|_| io::Error::other("the power is gone"))?;
        RealDisk.rename(from, to)
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove_file(path)
    }
    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove_dir(path)
    }
    fn sync_file(&self, path: &Path) -> io::Result<()> {
        RealDisk.sync_file(path)
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        RealDisk.sync_dir(path)
    }
    fn sync_filesystem(&self, dir: &Path) -> io::Result<()> {
        RealDisk.sync_filesystem(dir)
    }
}

#[test]
fn an_interrupted_fix_is_finished_by_the_next_one() {
    let right = WRONG.replace(" # x", "");
    // The journal itself is the first to be put in its place.
    for renames in 1..4 {
        let dir = tempfile::tempdir().unwrap();
        let names = ["edge/a.yaml", "edge/b.yaml"];
        for name in names {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let text = WRONG.replace("name: n2", &format!("name: {}", &name[5..6]));
            fs::write(path, text).unwrap();
        }
        let preview = fix(&[Source::path(dir.path())], None, true);
        assert_eq!(preview.files.len(), 2);
        let changes = preview
            .files
            .iter()
            .zip(names)
            .map(|(file, name)| Change::Write {
                path: name.to_owned(),
                bytes: file.after.clone().into_bytes(),
            });
        let plan = Plan {
            root: dir.path().canonicalize().unwrap(),
            changes: changes.collect(),
            txn: None,
        };
        let left = AtomicUsize::new(renames);
        let ended = commit_files(&Ends { left }, &plan, |_| Ok(()));
        let is_left = dir.path().join(JOURNAL).exists();
        assert_eq!(ended.is_err(), is_left, "{renames}: {ended:?}");
        assert_eq!(is_left, renames < 3, "{renames}");

        let fixing = fix(&[Source::path(dir.path())], None, false);
        assert_eq!(fixing.fixed, [], "all was in the journal");
        assert_eq!(fixing.findings.len(), usize::from(is_left), "{renames}");
        assert!(!dir.path().join(JOURNAL).exists(), "{renames}");
        for name in names {
            let text = fs::read_to_string(dir.path().join(name)).unwrap();
            assert!(text.ends_with(&right[right.len() - 30..]), "{name}: {text}");
        }
    }
}
