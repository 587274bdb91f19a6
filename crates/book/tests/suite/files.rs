//! The book as a file: who may open it, what reading leaves alone, and what is no book.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mooring_book::{Error, FileStore, Options, Store};

use super::disk::Disk;
use super::made::{Dice, NOW, TTL, commit, holder, later, lose, release, reserve, shown, win};

struct Place {
    _dir: tempfile::TempDir,
    book: PathBuf,
}

fn place() -> Place {
    let dir = tempfile::tempdir().unwrap();
    let book = dir.path().join("state/mooring/book.redb");
    Place { _dir: dir, book }
}

fn open(path: &Path) -> FileStore {
    FileStore::open(path, &Options::default()).unwrap()
}

fn to_read(path: &Path) -> FileStore {
    FileStore::open_to_read(path, &Options::default()).unwrap()
}

fn impatient() -> Options {
    Options {
        wait: Duration::from_millis(5),
        who: Some("moor render packages/upf".to_owned()),
    }
}

fn beside(book: &Path) -> Vec<String> {
    let listed = fs::read_dir(book.parent().unwrap()).unwrap();
    let mut names: Vec<String> = listed
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn chain(error: &Error) -> String {
    let why = std::error::Error::source(error).map(ToString::to_string);
    format!("{error}: {}", why.unwrap_or_default())
}

#[test]
fn a_new_book_is_made_with_its_directories_and_leaves_nothing_beside_it() {
    let place = place();
    drop(open(&place.book));
    assert_eq!(beside(&place.book), ["book.redb"]);
}

#[test]
fn an_empty_file_becomes_a_book() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("book.redb");
    fs::File::create(&path).unwrap();
    assert!(shown(&to_read(&path)).is_empty());
    commit(&open(&path), NOW, |txn| {
        win(txn, "10.0.0.1", &holder(1));
    });
    assert_eq!(shown(&to_read(&path)), ["10.0.0.1 n1 held"]);
}

#[test]
fn a_second_opener_is_told_who_has_it() {
    let place = place();
    let first = FileStore::open(&place.book, &impatient()).unwrap();
    for open in [FileStore::open, FileStore::open_to_read] {
        let busy = open(&place.book, &impatient()).err().unwrap();
        assert!(busy.is_transient());
        let expected = format!("by pid {} (moor render packages/upf)", std::process::id());
        assert!(busy.to_string().ends_with(&expected), "{busy}");
    }
    drop(first);
    assert_eq!(beside(&place.book), ["book.redb"]);
    open(&place.book);
}

#[test]
fn a_process_that_is_gone_is_not_named() {
    let place = place();
    let _first = open(&place.book);
    let holder = place.book.with_file_name("book.redb.holder");
    // Above the highest process id that Linux gives out.
    let mut file = fs::File::create(&holder).unwrap();
    std::io::Write::write_all(&mut file, b"99999999\nmoor render\n").unwrap();
    let busy = FileStore::open(&place.book, &impatient()).err().unwrap();
    assert!(matches!(busy, Error::Busy { holder: None, .. }), "{busy}");
}

#[test]
fn a_waiting_opener_gets_in() {
    let place = place();
    let first = open(&place.book);
    let path = place.book.clone();
    let waiter = std::thread::spawn(move || shown(&open(&path)).len());
    commit(&first, NOW, |txn| {
        win(txn, "10.0.0.1", &holder(1));
    });
    drop(first);
    assert_eq!(waiter.join().unwrap(), 1);
}

#[test]
fn readers_share_a_book() {
    let place = place();
    drop(open(&place.book));
    let (one, two) = (to_read(&place.book), to_read(&place.book));
    assert_eq!(shown(&one), shown(&two));
    let busy = FileStore::open(&place.book, &impatient()).err().unwrap();
    assert!(matches!(busy, Error::Busy { .. }));
}

#[test]
fn a_missing_book_reads_as_empty_and_stays_missing() {
    let place = place();
    let store = to_read(&place.book);
    assert!(shown(&store).is_empty());
    assert!(store.packages().unwrap().is_empty());
    let mut txn = store.begin(NOW).unwrap();
    win(&mut *txn, "10.0.0.1", &holder(1));
    lose(&mut *txn, "10.0.0.1", &holder(2));
    let refused = txn.reserve(TTL).unwrap_err();
    assert!(matches!(refused, Error::Unusable { .. }), "{refused}");
    drop(store);
    assert!(!place.book.parent().unwrap().exists());
}

#[test]
fn reading_and_drafting_leave_every_byte_as_it_was() {
    let place = place();
    let store = open(&place.book);
    commit(&store, NOW, |txn| {
        win(txn, "10.0.0.1", &holder(1));
    });
    reserve(&store, NOW, |txn| {
        win(txn, "10.0.0.2", &holder(2));
    });
    drop(store);
    let before = fs::read(&place.book).unwrap();
    let store = to_read(&place.book);
    {
        // Late enough that there is something to reap.
        let mut txn = store.begin(later(TTL.0)).unwrap();
        win(&mut *txn, "10.0.0.2", &holder(3));
        release(&mut *txn, "10.0.0.1", 0);
    }
    drop(store);
    assert!(before == fs::read(&place.book).unwrap(), "the file changed");
    assert_eq!(beside(&place.book), ["book.redb"]);
}

/// What `kill -9` leaves: the file as it is while a process has it open.
fn killed(place: &Place) -> PathBuf {
    let store = open(&place.book);
    commit(&store, NOW, |txn| {
        win(txn, "10.0.0.1", &holder(1));
    });
    let copy = place.book.with_file_name("killed.redb");
    fs::copy(&place.book, &copy).unwrap();
    copy
}

#[test]
fn a_book_that_was_not_closed_can_be_read_without_repairing_it() {
    let place = place();
    let copy = killed(&place);
    let before = fs::read(&copy).unwrap();
    assert_eq!(shown(&to_read(&copy)), ["10.0.0.1 n1 held"]);
    assert!(before == fs::read(&copy).unwrap(), "the file changed");
    assert_eq!(shown(&open(&copy)), ["10.0.0.1 n1 held"]);
}

#[test]
fn what_is_no_book_is_refused_and_left_alone() {
    let place = place();
    let dir = place.book.parent().unwrap();
    fs::create_dir_all(dir).unwrap();
    let text = dir.join("notes.txt");
    let mut file = fs::File::create(&text).unwrap();
    std::io::Write::write_all(&mut file, &b"not a book, but long enough ".repeat(900)).unwrap();
    let foreign = dir.join("foreign.redb");
    {
        let table: redb::TableDefinition<'_, u64, u64> = redb::TableDefinition::new("theirs");
        let db = redb::Database::create(&foreign).unwrap();
        let txn = db.begin_write().unwrap();
        txn.open_table(table).unwrap().insert(1, 2).unwrap();
        txn.commit().unwrap();
    }
    let newer = dir.join("newer.redb");
    drop(open(&newer));
    {
        let meta: redb::TableDefinition<'_, &str, u64> = redb::TableDefinition::new("meta");
        let db = redb::Database::create(&newer).unwrap();
        let txn = db.begin_write().unwrap();
        txn.open_table(meta).unwrap().insert("schema", 99).unwrap();
        txn.commit().unwrap();
    }
    let cases = [
        (&*text, "not a redb database"),
        (&*foreign, "it is not a book"),
        (&*newer, "newer version: it has schema 99, this one reads 1"),
        (dir, "directory"),
    ];
    for (path, why) in cases {
        for open in [FileStore::open, FileStore::open_to_read] {
            let error = open(path, &impatient()).err().unwrap();
            let said = chain(&error).to_lowercase();
            assert!(said.contains(why), "{said}");
            assert!(said.contains(&path.display().to_string().to_lowercase()));
            if path == newer {
                assert_eq!(error.reason(), "BookNewer");
                continue;
            }
            let remedy = if path == dir {
                "name a file"
            } else {
                "moor book rebuild"
            };
            assert!(said.contains(remedy), "{said}");
        }
    }
    assert!(fs::read(&text).unwrap().starts_with(b"not a book"));
}

#[test]
fn a_full_disk_fails_the_step_and_keeps_what_was() {
    let disk = Disk::default();
    let store = FileStore::with_backend(Path::new("(disk)"), disk.clone()).unwrap();
    commit(&store, NOW, |txn| {
        win(txn, "10.0.0.1", &holder(1));
    });
    let waiting = reserve(&store, NOW, |txn| {
        win(txn, "10.0.0.2", &holder(2));
    });
    let before = shown(&store);
    disk.fill();
    let refused = store.commit(waiting, later(1)).unwrap_err();
    assert!(refused.to_string().contains("make room"), "{refused}");
    assert_eq!(shown(&store), before);
    let mut txn = store.begin(later(1)).unwrap();
    win(&mut *txn, "10.0.0.3", &holder(3));
    assert!(matches!(txn.reserve(TTL), Err(Error::Unusable { .. })));
    assert_eq!(shown(&store), before);
    drop(store);
    let store = FileStore::with_backend(Path::new("(disk)"), disk.crashed()).unwrap();
    assert_eq!(shown(&store), before);
    store.commit(waiting, later(1)).unwrap();
}

#[test]
fn a_damaged_book_is_an_error_and_never_a_panic() {
    let place = place();
    let store = open(&place.book);
    for n in 0..40u32 {
        commit(&store, NOW, |txn| {
            win(txn, &format!("10.0.0.{}", n + 1), &holder(n));
        });
    }
    drop(store);
    let whole = fs::read(&place.book).unwrap();
    let used: Vec<usize> = (0..whole.len()).filter(|n| whole[*n] != 0).collect();
    let (mut dice, mut refused) = (Dice(77), 0);
    let path = place.book.with_file_name("damaged.redb");
    for round in 0..100 {
        let mut bytes = whole.clone();
        for _ in 0..=dice.below(24) {
            let at = used[usize::try_from(dice.below(used.len() as u64)).unwrap()];
            bytes[at] = u8::try_from(dice.below(256)).unwrap();
        }
        if round % 10 == 0 {
            bytes.truncate(usize::try_from(dice.below(bytes.len() as u64)).unwrap());
        }
        let mut file = fs::File::create(&path).unwrap();
        std::io::Write::write_all(&mut file, &bytes).unwrap();
        drop(file);
        for open in [FileStore::open_to_read, FileStore::open] {
            let outcome = open(&path, &impatient()).and_then(|store| {
                store.leases(&mooring_book::Filter::default())?;
                store.packages()?;
                let mut txn = store.begin(later(1))?;
                txn.note_package(super::made::package("a", "b"))?;
                store.audit(&mooring_book::AuditFilter::default(), 9)?;
                txn.held_by_package("edge", "upf")?;
                Ok(())
            });
            if let Err(error) = outcome {
                assert!(matches!(error, Error::Unusable { .. }), "{error}");
                refused += 1;
            }
        }
    }
    println!("{refused} of 200 were refused");
    assert!(refused > 50, "only {refused} were refused");
}
