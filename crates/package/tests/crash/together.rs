//! The real book and the real writer on one clock: the power goes at every operation of either, and the
//! two must tell the same story afterwards.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use mooring_api::{Family, Span, Time};
use mooring_book::{Error, FileStore, Filter, Outcome, Store};
use mooring_ipam::{Candidate, Holder, InstanceKey, State, Thing};
use mooring_package::journal::{Plan, commit_files, recover};
use redb::StorageBackend;

use crate::disk::Recorder;
use crate::{Contents, Dice, Scenario, a_package, fates, without_empty_root};

const NOW: Time = Time(1_800_000_000);
const BEFORE: &str = "10.1.2.20";
const AFTER: &str = "10.1.2.21";

/// The book's file. Its operations count on the same clock as those of the package's disk.
#[derive(Clone, Debug)]
pub(crate) struct BookFile {
    clock: Arc<Recorder>,
    /// As written, and as of the last sync.
    bytes: Arc<Mutex<(Vec<u8>, Vec<u8>)>>,
}

impl BookFile {
    pub(crate) fn holding(clock: &Arc<Recorder>, bytes: Vec<u8>) -> Self {
        let bytes = Arc::new(Mutex::new((bytes.clone(), bytes)));
        Self {
            clock: Arc::clone(clock),
            bytes,
        }
    }

    /// What a crash leaves: everything written, or only what was synced.
    pub(crate) fn after_crash(&self, kept: bool) -> Vec<u8> {
        let bytes = self.bytes.lock().unwrap();
        if kept {
            bytes.0.clone()
        } else {
            bytes.1.clone()
        }
    }

    pub(crate) fn open(&self) -> Result<FileStore, Error> {
        FileStore::with_backend(Path::new("book.redb"), self.clone())
    }
}

impl StorageBackend for BookFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.lock().unwrap().0.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let bytes = self.bytes.lock().unwrap();
        let start = usize::try_from(offset).unwrap();
        let found = bytes.0.get(start..start + out.len());
        out.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.clock.step("resize the book")?;
        self.bytes
            .lock()
            .unwrap()
            .0
            .resize(usize::try_from(len).unwrap(), 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.clock.step("sync the book")?;
        let mut bytes = self.bytes.lock().unwrap();
        let (written, synced) = &mut *bytes;
        synced.clone_from(written);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.clock.step("write the book")?;
        let mut bytes = self.bytes.lock().unwrap();
        let start = usize::try_from(offset).unwrap();
        if bytes.0.len() < start + data.len() {
            bytes.0.resize(start + data.len(), 0);
        }
        bytes.0[start..start + data.len()].copy_from_slice(data);
        Ok(())
    }
}

fn network() -> InstanceKey {
    InstanceKey::new("", "vpc-control")
}

fn addr(text: &str) -> Thing {
    Thing::Addr(text.parse().unwrap())
}

fn holder(name: &str) -> Holder {
    Holder::outside(name, "n2", Family::V4)
}

/// A book in which `BEFORE` is held.
fn old_book(clock: &Arc<Recorder>) -> Vec<u8> {
    let file = BookFile::holding(clock, Vec::new());
    let store = file.open().unwrap();
    let id = draft(&store, BEFORE, None).unwrap();
    store.commit(id, NOW).unwrap();
    drop(store);
    file.after_crash(true)
}

fn draft(
    store: &FileStore,
    take: &str,
    release: Option<&str>,
) -> Result<mooring_ipam::TxnId, Error> {
    let mut txn = store.begin(NOW)?;
    let subnet = "10.1.2.0/24".parse().ok();
    let candidate = Candidate {
        thing: addr(take),
        subnet,
        gateway: None,
    };
    let outcome = txn.try_take(&network(), &candidate, &holder(take))?;
    assert!(matches!(outcome, Outcome::Won(_)), "{outcome:?}");
    if let Some(release) = release {
        txn.release(&network(), &addr(release), Span(0))?;
    }
    txn.reserve(Span(3600))
}

/// One render: `AFTER` is taken, `BEFORE` is given back, the files change.
fn act(scenario: &Scenario, disk: &Recorder, file: &BookFile) -> Result<(), String> {
    let store = file.open().map_err(|e| e.to_string())?;
    let txn = draft(&store, AFTER, Some(BEFORE)).map_err(|e| e.to_string())?;
    let plan = Plan {
        txn: Some(txn),
        ..scenario.plan()
    };
    commit_files(disk, &plan, |txn| store.commit(txn, NOW)).map_err(|e| e.to_string())?;
    Ok(())
}

/// What the book says, in the words of the check below.
fn story(store: &FileStore) -> (bool, bool) {
    let leases = store.leases(&Filter::default()).unwrap();
    let held = |text: &str| {
        leases
            .iter()
            .any(|l| l.thing == addr(text) && l.state == State::Held && l.holder == holder(text))
    };
    (held(BEFORE), held(AFTER))
}

/// The next run: recovers, tells one story, and can render again to the same end.
fn next_run(
    scenario: &Scenario,
    (old, new): (&Contents, &Contents),
    disk: &Arc<Recorder>,
    book: Vec<u8>,
    seen: &mut [usize; 2],
) -> Result<(), String> {
    let file = BookFile::holding(disk, book);
    let root = Path::new(scenario.root);
    let store = file
        .open()
        .map_err(|e| format!("the book does not open: {e}"))?;
    recover(&**disk, root, |txn| store.commit(txn, NOW)).map_err(|f| format!("{f:?}"))?;
    let found = without_empty_root(disk.now().contents(), root);
    match (found == *old, found == *new, story(&store)) {
        (true, false, (true, false)) => seen[0] += 1,
        (false, true, (false, true)) => seen[1] += 1,
        other => return Err(format!("files and book disagree: {other:?}")),
    }
    drop(store);
    if found == *new {
        return Ok(());
    }
    act(scenario, disk, &file)?;
    let ends = disk.now().contents() == *new && story(&file.open().unwrap()) == (false, true);
    if ends {
        Ok(())
    } else {
        Err("the next render ends elsewhere".to_owned())
    }
}

#[test]
fn book_and_files_tell_the_same_story_after_a_crash_anywhere() {
    let scenario = a_package();
    let (old, new) = (scenario.old.contents(), scenario.result());
    let calm = Arc::new(Recorder::new(scenario.old.clone(), None, None));
    let book = old_book(&calm);
    let start = calm.log().len();
    act(&scenario, &calm, &BookFile::holding(&calm, book.clone())).unwrap();
    let operations = calm.log().len() - start;

    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    let (mut points, mut seen) = (0, [0; 2]);
    for at in 0..=operations {
        let disk = Arc::new(Recorder::new(scenario.old.clone(), Some(at), None));
        let file = BookFile::holding(&disk, book.clone());
        let _ = act(&scenario, &disk, &file);
        for fates in fates(&disk.pending(), 4, &mut dice) {
            for kept in [false, true] {
                let next = Arc::new(Recorder::new(disk.after_crash(&fates), None, None));
                next_run(
                    &scenario,
                    (&old, &new),
                    &next,
                    file.after_crash(kept),
                    &mut seen,
                )
                .unwrap_or_else(|e| panic!("{e}\ncrash after {:#?}\n{fates:?} {kept}", disk.log()));
                points += 1;
            }
        }
    }
    println!(
        "book and files: {operations} operations, {points} points, {seen:?} ended old and new"
    );
    assert!(points >= 500, "only {points} points");
    assert!(seen.iter().all(|n| *n > 0), "{seen:?}");
}
