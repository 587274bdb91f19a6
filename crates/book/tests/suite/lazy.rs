//! A book that is opened late: what leaves every byte alone, and what happens when another run is faster.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use mooring_book::{
    Access, AuditFilter, Error, FileStore, Filter, LazyStore, MemoryStore, Options, Outcome, Store,
};
use mooring_ipam::{Lease, TxnId};

use super::made::{
    Dice, NOW, TTL, commit, defects, holder, later, package, release, reserve, shown, take, win,
};

struct Place {
    dir: tempfile::TempDir,
    book: PathBuf,
}

impl Place {
    fn empty() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let book = dir.path().join("state/book.redb");
        Self { dir, book }
    }

    /// `10.0.0.1` is held, `10.0.0.2` is reserved.
    fn with_book() -> Self {
        let place = Self::empty();
        let file = FileStore::open(&place.book, &Options::default()).unwrap();
        commit(&file, NOW, |txn| {
            win(txn, "10.0.0.1", &holder(1));
            txn.note_package(package("upf", "packages/upf")).unwrap();
        });
        reserve(&file, NOW, |txn| {
            win(txn, "10.0.0.2", &holder(2));
        });
        place
    }

    fn lazy(&self) -> LazyStore {
        LazyStore::at(self.book.clone(), Access::Write, Options::default())
    }

    /// What another run does from beginning to end.
    fn meanwhile(&self, address: &str, n: u32) {
        commit(&self.lazy(), NOW, |txn| {
            win(txn, address, &holder(n));
        });
    }

    fn shown(&self) -> Vec<String> {
        shown(&FileStore::open_to_read(&self.book, &Options::default()).unwrap())
    }
}

/// Takes the first address that nobody has, and reserves it.
fn take_first(store: &LazyStore, n: u32, between: impl FnOnce()) -> Result<(TxnId, String), Error> {
    let mut txn = store.begin(NOW)?;
    let mut offers = (1..200).map(|last| format!("10.0.0.{last}"));
    let got = offers.find(|text| matches!(take(&mut *txn, text, &holder(n)), Outcome::Won(_)));
    between();
    Ok((txn.reserve(TTL)?, got.unwrap()))
}

/// The file's bytes and the names beside it; runs something, and expects them as they were.
fn untouched(place: &Place, act: impl FnOnce()) {
    let look = || {
        let beside = fs::read_dir(place.book.parent().unwrap()).unwrap();
        let names: Vec<_> = beside.map(|e| e.unwrap().file_name()).collect();
        (names, fs::read(&place.book).unwrap())
    };
    let before = look();
    act();
    let after = look();
    assert_eq!(after.0, before.0);
    assert!(after.1 == before.1, "the file changed");
}

#[test]
fn a_dropped_draft_makes_no_file_and_no_directory() {
    let place = Place::empty();
    let lazy = place.lazy();
    drop(lazy.begin(NOW).unwrap());
    assert_eq!(shown(&lazy), [""; 0]);
    let unknown = lazy.commit(TxnId(1), NOW);
    assert!(matches!(unknown, Err(Error::NotOpen(_))));
    lazy.abort(TxnId(1), NOW).unwrap();
    assert_eq!(fs::read_dir(place.dir.path()).unwrap().count(), 0);
    assert!(!lazy.exists());
}

#[test]
fn a_reserved_draft_makes_the_file_and_everything_in_it_is_kept() {
    let place = Place::empty();
    let lazy = place.lazy();
    let (id, got) = take_first(&lazy, 1, || assert!(!place.book.exists())).unwrap();
    lazy.commit(id, NOW).unwrap();
    drop(lazy);
    assert_eq!(
        (got.as_str(), place.shown()),
        ("10.0.0.1", vec!["10.0.0.1 n1 held".to_owned()])
    );
}

#[test]
fn whatever_changes_nothing_leaves_every_byte_as_it_was() {
    let place = Place::with_book();
    untouched(&place, || {
        let lazy = place.lazy();
        lazy.packages().unwrap();
        lazy.pending().unwrap();
        lazy.audit(&AuditFilter::default(), 9).unwrap();
        // A refused run drafts, and drops what it drafted. It is late, so there is something to reap.
        let mut txn = lazy.begin(later(TTL.0)).unwrap();
        win(&mut *txn, "10.0.0.2", &holder(3));
        release(&mut *txn, "10.0.0.1", 0);
        drop(txn);
        // A render that comes to what is there already.
        let mut txn = lazy.begin(later(TTL.0)).unwrap();
        win(&mut *txn, "10.0.0.1", &holder(1));
        txn.note_package(package("upf", "packages/upf")).unwrap();
        assert!(txn.is_unchanged());
        drop(txn);
        // Journals of runs that the book knows nothing of.
        assert!(matches!(lazy.commit(TxnId(7), NOW), Err(Error::NotOpen(_))));
        lazy.abort(TxnId(7), NOW).unwrap();
        // A rebuild of what is not lost.
        let held = lazy.leases(&Filter::default()).unwrap();
        let mut again = package("upf", "packages/upf");
        again.at = later(9);
        let restored = lazy.restore(&held[..1], &[again], later(9)).unwrap();
        assert_eq!((restored.added, restored.unchanged), (0, 1));
    });
    // The untouched bytes were no accident: the same store writes when there is something to write.
    place.meanwhile("10.0.0.3", 3);
    assert_eq!(place.shown().len(), 3);
}

#[test]
fn a_run_that_may_only_read_is_refused_and_stays_usable() {
    let place = Place::with_book();
    untouched(&place, || {
        let lazy = LazyStore::at(place.book.clone(), Access::Read, Options::default());
        let mut txn = lazy.begin(NOW).unwrap();
        win(&mut *txn, "10.0.0.9", &holder(9));
        let refused = txn.reserve(TTL).unwrap_err();
        assert!(matches!(refused, Error::Unusable { .. }), "{refused}");
        assert_eq!(shown(&lazy).len(), 2);
    });
}

#[test]
fn readers_and_drafts_share_a_book() {
    let place = Place::with_book();
    let (one, two) = (place.lazy(), place.lazy());
    let (a, b) = (one.begin(NOW).unwrap(), two.begin(NOW).unwrap());
    assert_eq!(a.id(), b.id());
    assert_eq!(place.shown().len(), 2);
}

#[test]
fn a_draft_that_was_overtaken_is_refused_and_made_again_on_what_the_other_run_left() {
    for (place, expected) in [(Place::empty(), [1, 2]), (unclosed(), [3, 5])] {
        let slow = place.lazy();
        let mut tries = Vec::new();
        let (id, got) = slow
            .settle(|slow| {
                let between = || {
                    if tries.is_empty() {
                        place.meanwhile(&format!("10.0.0.{}", expected[0]), 7);
                    }
                };
                let outcome = take_first(slow, 8, between);
                tries.push(outcome.as_ref().err().map(ToString::to_string));
                outcome
            })
            .unwrap();
        slow.commit(id, NOW).unwrap();
        drop(slow);
        assert_eq!(tries.len(), 2);
        assert!(tries[0].as_ref().unwrap().starts_with("overtaken: "));
        assert_eq!(got, format!("10.0.0.{}", expected[1]));
        for (n, address) in [7, 8].iter().zip(expected) {
            let held = format!("10.0.0.{address} n{n} held");
            assert!(place.shown().contains(&held), "{held}: {:?}", place.shown());
        }
    }
}

/// A copy of a book that nobody closed is read without a lock, so others can write while a draft is made.
fn unclosed() -> Place {
    let place = Place::with_book();
    let unclosed = {
        let file = FileStore::open(&place.book, &Options::default()).unwrap();
        commit(&file, NOW, |txn| {
            win(txn, "10.0.0.4", &holder(4));
        });
        fs::read(&place.book).unwrap()
    };
    write(&place.book, &unclosed);
    place
}

fn write(path: &Path, bytes: &[u8]) {
    let mut file = fs::File::create(path).unwrap();
    std::io::Write::write_all(&mut file, bytes).unwrap();
}

#[test]
fn a_draft_over_a_book_that_nobody_closed_changes_nothing_until_it_is_reserved() {
    let place = unclosed();
    untouched(&place, || {
        let lazy = place.lazy();
        let mut txn = lazy.begin(NOW).unwrap();
        win(&mut *txn, "10.0.0.3", &holder(3));
    });
    place.meanwhile("10.0.0.3", 3);
    assert_eq!(place.shown().len(), 4);
}

#[test]
fn any_change_overtakes_be_it_a_take_a_commit_an_abort_or_a_package() {
    // Reserved by `Place::with_book`.
    let waiting = |lazy: &LazyStore| lazy.pending().unwrap()[0].id;
    type Change = (&'static str, fn(&LazyStore, TxnId));
    let changes: [Change; 5] = [
        ("take", |lazy, _| {
            reserve(lazy, NOW, |txn| {
                win(txn, "10.0.0.9", &holder(9));
            });
        }),
        ("commit", |lazy, id| lazy.commit(id, NOW).unwrap()),
        ("abort", |lazy, id| lazy.abort(id, NOW).unwrap()),
        ("package", |lazy, _| {
            commit(lazy, NOW, |txn| txn.forget_package("edge", "upf").unwrap());
        }),
        ("restore", |lazy, _| {
            let record = package("amf", "packages/amf");
            lazy.restore(&[], &[record], NOW).unwrap();
        }),
    ];
    for (name, change) in changes {
        let place = unclosed();
        let slow = place.lazy();
        let refused = take_first(&slow, 8, || {
            let fast = place.lazy();
            change(&fast, waiting(&fast));
        });
        let refused = refused.unwrap_err();
        assert!(
            matches!(refused, Error::Overtaken { .. }),
            "{name}: {refused}"
        );
        assert!(refused.is_transient());
        // The store is usable again, and sees the other's change.
        let (id, _) = take_first(&slow, 8, || ()).unwrap();
        slow.commit(id, NOW).unwrap();
        assert_eq!(defects(&slow, NOW).unwrap(), [""; 0]);
    }
}

#[test]
fn a_commit_that_is_overtaken_is_done_again_without_asking() {
    let place = unclosed();
    let slow = place.lazy();
    let id = slow.pending().unwrap()[0].id;
    place.meanwhile("10.0.0.3", 3);
    slow.commit(id, NOW).unwrap();
    drop(slow);
    assert_eq!(place.shown().len(), 4);
    assert!(place.shown().contains(&"10.0.0.2 n2 held".to_owned()));
}

#[test]
fn a_book_that_was_replaced_by_another_one_overtakes() {
    let place = unclosed();
    let other = Place::empty();
    // As many changes, at another time.
    let file = FileStore::open(&other.book, &Options::default()).unwrap();
    for n in [1, 2, 3] {
        commit(&file, later(u64::from(n)), |txn| {
            win(txn, &format!("10.0.0.{n}"), &holder(n));
        });
    }
    drop(file);
    let slow = place.lazy();
    let refused = take_first(&slow, 8, || {
        write(&place.book, &fs::read(&other.book).unwrap());
    });
    assert!(matches!(refused, Err(Error::Overtaken { .. })));
}

#[test]
fn an_error_that_has_another_cause_is_not_tried_again() {
    let place = Place::with_book();
    let mut tries = 0;
    let outcome: Result<(), &str> = place.lazy().settle(|lazy| {
        lazy.packages().unwrap();
        tries += 1;
        Err("no")
    });
    assert_eq!((tries, outcome), (1, Err("no")));
}

#[test]
fn two_that_read_and_want_to_write_do_not_wait_for_each_other_for_ever() {
    let place = Place::with_book();
    let (to_one, from_two) = mpsc::channel();
    let (to_two, from_one) = mpsc::channel();
    let run = |n, to: mpsc::Sender<()>, from: mpsc::Receiver<()>| {
        let (lazy, mut first) = (place.lazy(), true);
        let outcome = lazy.settle(|lazy| {
            take_first(lazy, n, || {
                if std::mem::take(&mut first) {
                    to.send(()).unwrap();
                    from.recv().expect("the other has drafted too");
                }
            })
        });
        let (id, got) = outcome.unwrap();
        lazy.commit(id, NOW).unwrap();
        got
    };
    let got = std::thread::scope(|scope| {
        let run = &run;
        let other = scope.spawn(move || run(11, to_one, from_one));
        let mut got = [run(12, to_two, from_two), other.join().unwrap()];
        got.sort();
        got
    });
    assert_eq!(got, ["10.0.0.3", "10.0.0.4"]);
}

#[test]
fn a_book_that_stays_in_use_is_busy_and_can_be_asked_again() {
    let place = Place::with_book();
    let impatient = Options {
        wait: Duration::from_millis(5),
        ..Options::default()
    };
    let lazy = LazyStore::at(place.book.clone(), Access::Write, impatient);
    let reader = FileStore::open_to_read(&place.book, &Options::default()).unwrap();
    let busy = take_first(&lazy, 8, || ()).unwrap_err();
    assert!(matches!(busy, Error::Busy { .. }), "{busy}");
    // Not an empty book, as it would be if the closed file were asked.
    assert!(matches!(lazy.packages(), Err(Error::Busy { .. })));
    drop(reader);
    assert_eq!(shown(&lazy).len(), 2);
    let (_, got) = take_first(&lazy, 8, || ()).unwrap();
    assert_eq!(got, "10.0.0.3");
}

#[test]
fn what_was_reaped_while_drafting_is_written_with_the_draft() {
    let place = Place::with_book();
    let lazy = place.lazy();
    reserve(&lazy, later(TTL.0), |txn| {
        win(txn, "10.0.0.3", &holder(3));
    });
    drop(lazy);
    // Without another `begin`: this is what stands in the file.
    assert_eq!(place.shown(), ["10.0.0.1 n1 held", "10.0.0.3 n3 reserved"]);
}

#[test]
fn random_runs_come_to_the_same_as_in_memory() {
    let place = Place::empty();
    let (memory, mut dice, mut now) = (MemoryStore::new(), Dice(41), NOW);
    let (mut expired, mut open) = (0, Vec::new());
    for _ in 0..300 {
        now = now.after(mooring_api::Span(1 + dice.below(8) * dice.below(60)));
        let lazy = place.lazy();
        expired += usize::from(memory.pending().unwrap().iter().any(|p| p.until <= now));
        let (mut a, mut b) = (memory.begin(now).unwrap(), lazy.begin(now).unwrap());
        for _ in 0..dice.below(5) {
            let text = format!("10.0.0.{}", 1 + dice.below(9));
            let (n, rest) = (u32::try_from(dice.below(4)).unwrap(), dice.below(300));
            for txn in [&mut *a, &mut *b] {
                if rest < 200 {
                    take(txn, &text, &holder(n));
                } else {
                    release(txn, &text, rest);
                }
            }
        }
        assert_eq!(a.is_unchanged(), b.is_unchanged());
        if dice.below(3) == 0 {
            drop((a, b));
        } else {
            let id = a.reserve(TTL).unwrap();
            assert_eq!(id, b.reserve(TTL).unwrap());
            open.push(id);
        }
        if dice.below(2) == 0
            && let Some(id) = open.pop()
        {
            let lazy = if dice.below(2) == 0 {
                lazy
            } else {
                drop(lazy);
                place.lazy()
            };
            let done = [&memory as &dyn Store, &lazy].map(|s| s.commit(id, now).is_ok());
            assert_eq!(done[0], done[1]);
        } else {
            drop(lazy);
        }
        // Both reap; the lazy one only to itself.
        let lazy = place.lazy();
        drop((memory.begin(now).unwrap(), lazy.begin(now).unwrap()));
        let leases =
            |store: &dyn Store| -> Vec<Lease> { store.leases(&Filter::default()).unwrap() };
        assert_eq!(leases(&memory), leases(&lazy));
        assert_eq!(memory.pending().unwrap(), lazy.pending().unwrap());
    }
    println!("{expired} of 300 began with something to reap");
    assert!(expired > 10, "only {expired} had something to reap");
}
