//! A whole book out and in: backup, restore, and a crash at every step of them and of an import.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mooring_book::{
    Content, Disk, Error, FileStore, Options, RealDisk, Restoration, Store, backup, merge,
};

use super::disk::{Crashes, Disk as Sectors, Unsynced};
use super::made::{Dice, NOW, commit, holder, holder_of, later, package, reserve, win};

fn options() -> Options {
    Options {
        wait: Duration::from_millis(5),
        who: None,
    }
}

/// A book with `n` addresses from `10.0.{net}.1` on.
fn fill(path: &Path, net: u32, n: u32) {
    let store = FileStore::open(path, &options()).unwrap();
    commit(&store, NOW, |txn| {
        for host in 1..=n {
            win(
                txn,
                &format!("10.0.{net}.{host}"),
                &holder_of("upf", net * 1000 + host),
            );
        }
        txn.note_package(package("upf", "here")).unwrap();
    });
}

fn content(path: &Path) -> Content {
    Content::of(&FileStore::open_to_read(path, &options()).unwrap()).unwrap()
}

#[test]
fn a_backup_is_the_book_and_never_replaces_a_file_unasked() {
    let dir = tempfile::tempdir().unwrap();
    let (book, copy) = (dir.path().join("book.redb"), dir.path().join("copy.redb"));
    fill(&book, 0, 20);
    let told = backup(&RealDisk, &book, &copy, false, &options()).unwrap();
    assert_eq!(told, content(&book));
    assert_eq!(told, content(&copy));
    fill(&book, 1, 5);
    let before = fs::read(&copy).unwrap();
    backup(&RealDisk, &book, &copy, false, &options()).unwrap_err();
    assert!(before == fs::read(&copy).unwrap());
    backup(&RealDisk, &book, &copy, true, &options()).unwrap();
    assert_eq!(content(&copy), content(&book));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
}

#[test]
fn a_backup_of_a_book_that_nobody_closed_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let (book, killed) = (dir.path().join("book.redb"), dir.path().join("killed.redb"));
    let store = FileStore::open(&book, &options()).unwrap();
    commit(&store, NOW, |txn| {
        win(txn, "10.0.0.1", &holder(1));
    });
    let busy = backup(&RealDisk, &book, &dir.path().join("x"), false, &options()).unwrap_err();
    assert!(matches!(busy, Error::Busy { .. }), "{busy}");
    fs::copy(&book, &killed).unwrap();
    drop(store);
    let copy = dir.path().join("copy.redb");
    backup(&RealDisk, &killed, &copy, false, &options()).unwrap();
    assert_eq!(content(&copy), content(&book));
}

#[test]
fn a_restore_replaces_the_book_keeps_the_previous_and_can_be_undone() {
    let dir = tempfile::tempdir().unwrap();
    let (book, copy) = (dir.path().join("book.redb"), dir.path().join("copy.redb"));
    fill(&book, 0, 20);
    backup(&RealDisk, &book, &copy, false, &options()).unwrap();
    fill(&book, 1, 5);
    let (old, new) = (content(&copy), content(&book));

    let restoration = Restoration::prepare(&book, &copy, &options()).unwrap();
    let before = restoration.before.as_ref().unwrap().as_ref().unwrap();
    assert_eq!(before.differences(&restoration.after).len(), 5);
    restoration.write(&RealDisk, &options()).unwrap();
    let kept = restoration.previous().unwrap();
    assert_eq!((content(&book), content(&kept)), (old.clone(), new.clone()));

    let undo = Restoration::prepare(&book, &kept, &options()).unwrap();
    undo.write(&RealDisk, &options()).unwrap();
    assert_eq!((content(&book), content(&kept)), (new, old));
}

#[test]
fn a_restore_keeps_links_and_permissions_and_minds_nothing_that_a_crash_left() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let dir = tempfile::tempdir().unwrap();
    let [book, link, copy] = ["book.redb", "link.redb", "copy.redb"].map(|n| dir.path().join(n));
    fill(&book, 0, 3);
    backup(&RealDisk, &book, &copy, false, &options()).unwrap();
    fill(&book, 1, 3);
    fs::set_permissions(&book, fs::Permissions::from_mode(0o660)).unwrap();
    symlink(&book, &link).unwrap();
    let id = std::process::id();
    for left in [
        format!(".book.redb.{id}.new"),
        format!(".book.redb.before-restore.{id}.old"),
    ] {
        fs::File::create(dir.path().join(left)).unwrap();
    }
    let restoration = Restoration::prepare(&link, &copy, &options()).unwrap();
    restoration.write(&RealDisk, &options()).unwrap();
    assert_eq!(content(&book), content(&copy));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    let mode = fs::metadata(&book).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
    // Book, link, copy, and what the book was.
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 4);
}

#[test]
fn a_restore_that_was_overtaken_or_meets_a_holder_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (book, copy) = (dir.path().join("book.redb"), dir.path().join("copy.redb"));
    fill(&book, 0, 3);
    backup(&RealDisk, &book, &copy, false, &options()).unwrap();
    let restoration = Restoration::prepare(&book, &copy, &options()).unwrap();
    let holds = FileStore::open(&book, &options()).unwrap();
    let busy = restoration.write(&RealDisk, &options()).unwrap_err();
    assert!(matches!(busy, Error::Busy { .. }), "{busy}");
    drop(holds);
    fill(&book, 1, 1);
    let (bytes, error) = (
        fs::read(&book).unwrap(),
        restoration.write(&RealDisk, &options()).unwrap_err(),
    );
    assert!(matches!(error, Error::Overtaken { .. }), "{error}");
    assert!(bytes == fs::read(&book).unwrap());
    assert!(!restoration.previous().unwrap().exists());
}

#[test]
fn a_book_that_cannot_be_read_can_be_restored_and_a_bad_backup_cannot() {
    let dir = tempfile::tempdir().unwrap();
    let [book, copy, bad] = ["book.redb", "copy.redb", "bad.redb"].map(|n| dir.path().join(n));
    fill(&copy, 0, 30);
    let whole = fs::read(&copy).unwrap();
    let write = |path: &Path, bytes: &[u8]| {
        let mut file = fs::File::create(path).unwrap();
        io::Write::write_all(&mut file, bytes).unwrap();
    };
    let mut dice = Dice(9);
    let mut damaged = whole.clone();
    for _ in 0..4000 {
        let at = usize::try_from(dice.below(damaged.len() as u64)).unwrap();
        damaged[at] = 0xA5;
    }
    write(&book, &damaged);
    for bytes in [
        &b"a letter"[..],
        &[0; 4096],
        &whole[..whole.len() / 2],
        &damaged,
    ] {
        write(&bad, bytes);
        let refused = Restoration::prepare(&book, &bad, &options()).unwrap_err();
        assert!(matches!(refused, Error::Unusable { .. }), "{refused}");
    }
    let restoration = Restoration::prepare(&book, &copy, &options()).unwrap();
    assert!(restoration.before.is_err());
    restoration.write(&RealDisk, &options()).unwrap();
    assert_eq!(content(&book), content(&copy));
    assert!(fs::read(restoration.previous().unwrap()).unwrap() == damaged);
}

/// Names and bytes, with what of both is durable. A file is known by a number, as an inode is.
#[derive(Clone, Debug, Default)]
struct Files {
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    bytes: Vec<Vec<u8>>,
    durable_bytes: Vec<Vec<u8>>,
    /// Changes to names that no sync of the directory has made durable.
    pending: Vec<(PathBuf, Option<usize>)>,
}

/// Records what is left after every step; a lying one does not sync.
struct Recorder {
    files: RefCell<Files>,
    steps: RefCell<Vec<Files>>,
    lying: bool,
}

impl Recorder {
    fn holding(path: &Path, bytes: &[u8], lying: bool) -> Self {
        let mut files = Files {
            bytes: vec![bytes.to_vec()],
            durable_bytes: vec![bytes.to_vec()],
            ..Files::default()
        };
        files.names.insert(path.to_owned(), 0);
        files.durable_names.clone_from(&files.names);
        Self {
            steps: RefCell::new(vec![files.clone()]),
            files: RefCell::new(files),
            lying,
        }
    }

    fn step<T>(&self, act: impl FnOnce(&mut Files) -> io::Result<T>) -> io::Result<T> {
        let outcome = act(&mut self.files.borrow_mut());
        self.steps.borrow_mut().push(self.files.borrow().clone());
        outcome
    }
}

impl Files {
    fn number(&self, path: &Path) -> io::Result<usize> {
        let found = self.names.get(path).copied();
        found.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn name(&mut self, path: &Path, file: Option<usize>) {
        match file {
            Some(file) => self.names.insert(path.to_owned(), file),
            None => self.names.remove(path),
        };
        self.pending.push((path.to_owned(), file));
    }

    /// What a crash may leave: names with the bytes they lead to. Names reach the disk in any order, or not at all.
    fn crashed(&self) -> Vec<BTreeMap<PathBuf, Vec<u8>>> {
        let mut out = Vec::new();
        for chosen in 0..1_u32 << self.pending.len() {
            let mut names = self.durable_names.clone();
            for (at, (path, file)) in self.pending.iter().enumerate() {
                match file {
                    _ if chosen & (1 << at) == 0 => {}
                    Some(file) => drop(names.insert(path.clone(), *file)),
                    None => drop(names.remove(path)),
                }
            }
            for bytes in [&self.durable_bytes, &self.bytes] {
                let image = names
                    .iter()
                    .map(|(p, file)| (p.clone(), bytes[*file].clone()));
                out.push(image.collect());
            }
        }
        out
    }
}

impl Disk for Recorder {
    fn exists(&self, path: &Path) -> io::Result<bool> {
        Ok(self.files.borrow().names.contains_key(path))
    }

    fn create(&self, path: &Path, bytes: &[u8], _: &Path) -> io::Result<()> {
        for part in [bytes.len() / 2, bytes.len()] {
            self.step(|files| {
                if part < bytes.len() {
                    let number = files.bytes.len();
                    files.bytes.push(bytes[..part].to_vec());
                    files.durable_bytes.push(Vec::new());
                    files.name(path, Some(number));
                } else {
                    let number = files.number(path)?;
                    files.bytes[number] = bytes.to_vec();
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    fn sync(&self, path: &Path) -> io::Result<()> {
        let lying = self.lying;
        self.step(|files| {
            let number = files.number(path)?;
            if !lying {
                files.durable_bytes[number] = files.bytes[number].clone();
            }
            Ok(())
        })
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step(|files| {
            if files.names.contains_key(to) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            let number = files.number(from)?;
            files.name(to, Some(number));
            Ok(())
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step(|files| {
            let number = files.number(from)?;
            if files.names.get(to) == Some(&number) {
                return Ok(());
            }
            files.name(to, Some(number));
            files.name(from, None);
            Ok(())
        })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.step(|files| {
            if files.names.contains_key(path) {
                files.name(path, None);
            }
            Ok(())
        })
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        let lying = self.lying;
        self.step(|files| {
            if !lying {
                files.durable_names.clone_from(&files.names);
                files.pending.clear();
            }
            Ok(())
        })
    }
}

/// Opens what a crash left; None where it is no book.
fn holds(bytes: &[u8]) -> Option<Content> {
    let store = FileStore::with_backend(Path::new("(disk)"), Sectors::holding(bytes.to_vec()));
    let store = bytes.starts_with(b"redb").then_some(store)?.ok()?;
    Content::of(&store).ok()
}

/// Every image after every step of a restore: the book is the old one or the new one, and the old one is never lost.
fn crash_in_restore(lying: bool) -> Result<(usize, usize), String> {
    let dir = tempfile::tempdir().unwrap();
    let (book, copy) = (dir.path().join("book.redb"), dir.path().join("copy.redb"));
    fill(&copy, 0, 40);
    fill(&book, 1, 30);
    let (old, new) = (content(&book), content(&copy));
    let restoration = Restoration::prepare(&book, &copy, &options()).unwrap();
    let kept = restoration.previous().unwrap();
    let disk = Recorder::holding(&book, &fs::read(&book).unwrap(), lying);
    restoration.write(&disk, &options()).unwrap();
    let steps = disk.steps.borrow();
    let (mut images, mut seen) = (0, Vec::new());
    for (number, step) in steps.iter().enumerate() {
        for image in step.crashed() {
            if seen.contains(&image) {
                continue;
            }
            images += 1;
            let there = image.get(&book).ok_or("the book is gone")?;
            let found = holds(there).ok_or(format!("step {number}: the book cannot be read"))?;
            if found != old && found != new {
                return Err(format!("step {number}: the book is a mixture"));
            }
            let before = image.get(&kept).map(|bytes| holds(bytes));
            if found == new && before != Some(Some(old.clone())) {
                return Err(format!("step {number}: the old book is lost"));
            }
            seen.push(image);
        }
    }
    let last = steps.last().unwrap();
    assert!(last.pending.is_empty() || lying, "the end was not synced");
    Ok((steps.len(), images))
}

#[test]
fn a_crash_at_any_step_of_a_restore_leaves_the_old_book_or_the_new_one() {
    let (steps, images) = crash_in_restore(false).unwrap();
    println!("{steps} steps, {images} images");
    assert!(
        steps >= 12 && images >= 12,
        "{steps} steps, {images} images"
    );
}

#[test]
fn a_restore_on_a_disk_that_does_not_sync_is_caught() {
    let caught = crash_in_restore(true).unwrap_err();
    assert!(caught.contains("step"), "{caught}");
}

#[test]
fn a_crash_at_any_step_of_a_backup_leaves_no_half_of_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let (book, copy) = (dir.path().join("book.redb"), dir.path().join("copy.redb"));
    fill(&copy, 0, 40);
    fill(&book, 1, 30);
    let (old, new) = (content(&copy), content(&book));
    let mut images = 0;
    for force in [false, true] {
        let name = if force {
            &copy
        } else {
            &dir.path().join("new.redb")
        };
        let disk = Recorder::holding(&copy, &fs::read(&copy).unwrap(), false);
        backup(&disk, &book, name, force, &options()).unwrap();
        for step in disk.steps.borrow().iter() {
            for image in step.crashed() {
                images += 1;
                match image.get(name).map(|bytes| holds(bytes)) {
                    None => assert!(!force, "the old backup is gone"),
                    Some(None) => panic!("the backup is half of one"),
                    Some(Some(found)) => assert!(found == new || (force && found == old)),
                }
                assert!(holds(&image[&copy]).is_some());
            }
        }
        let last = disk.steps.borrow().last().unwrap().clone();
        assert!(last.pending.is_empty());
        assert_eq!(holds(&last.bytes[last.names[name]]), Some(new.clone()));
    }
    println!("{images} images");
    assert!(images > 30);
}

/// An import is one change inside of the book: sectors are lost, not names.
#[test]
fn a_crash_at_any_operation_of_an_import_leaves_the_old_book_or_the_new_one() {
    let disk = Sectors::recording();
    let open = |disk: &Sectors| FileStore::with_backend(Path::new("(disk)"), disk.clone()).unwrap();
    let store = open(&disk);
    commit(&store, NOW, |txn| {
        for host in 1..=60 {
            win(txn, &format!("10.0.0.{host}"), &holder_of("upf", host));
        }
        txn.note_package(package("upf", "here")).unwrap();
    });
    let theirs = tempfile::tempdir().unwrap();
    let path = theirs.path().join("theirs.redb");
    let other = FileStore::open(&path, &options()).unwrap();
    commit(&other, later(1), |txn| {
        for host in 40..=120 {
            win(txn, &format!("10.0.0.{host}"), &holder_of("amf", host));
        }
        txn.note_package(package("amf", "there")).unwrap();
    });
    reserve(&other, later(1), |txn| {
        win(txn, "10.0.1.1", &holder_of("amf", 999));
    });
    let theirs = Content::of(&other).unwrap();
    let old = Content::of(&store).unwrap();
    let merged = merge(&old, &theirs, Some(mooring_book::Side::Theirs), later(2));
    assert_eq!(merged.clashes.len(), 21);
    disk.done(1);
    store.amend(&merged.amendment, later(2)).unwrap();
    let new = Content::of(&store).unwrap();
    disk.done(2);
    drop(store);
    assert_ne!(old, new);
    let ops = disk.ops();
    let (mut crashes, mut dice, mut tried) = (Crashes::of(&ops), Dice(0xB00C), 0);
    while crashes.advance(false) {
        if crashes.done == 0 || !crashes.moved() {
            continue;
        }
        for unsynced in Unsynced::ALL {
            tried += 1;
            let found = holds(&crashes.image(unsynced, &mut dice)).expect("it can be read");
            let allowed = found == new || (crashes.done == 1 && found == old);
            assert!(allowed, "after {} steps, {unsynced:?}", crashes.done);
        }
    }
    println!("{tried} images");
    assert!(tried > 50, "only {tried} images");
}

#[test]
fn the_trail_keeps_the_newest_hundred_thousand() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("book.redb");
    let count = 60_000_u32;
    let lease = |n: u32| mooring_ipam::Lease {
        instance: super::made::instance(),
        thing: mooring_ipam::Thing::Addr(std::net::IpAddr::from((0x0A00_0000 + n).to_be_bytes())),
        subnet: None,
        gateway: None,
        holder: holder_of("upf", n),
        state: mooring_ipam::State::Held,
        since: NOW,
    };
    let leases: Vec<_> = (0..count).map(lease).collect();
    let store = FileStore::open(&path, &options()).unwrap();
    store.restore(&leases, &[], NOW).unwrap();
    let gone = mooring_book::Amendment {
        drop: leases,
        ..Default::default()
    };
    store.amend(&gone, later(1)).unwrap();
    let all = store
        .audit(&mooring_book::AuditFilter::default(), usize::MAX)
        .unwrap();
    assert_eq!(all.len(), 100_000);
    let kept = all.iter().filter(|e| e.at == NOW).count();
    assert_eq!(kept, 40_000, "the oldest go first");
    assert_eq!(all.last().unwrap().holder, holder_of("upf", count - 1));
}
