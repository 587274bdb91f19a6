//! A book that is not there, and a run that was faster.

use mooring_api::Family;
use mooring_api::Span;
use mooring_book::Outcome;
use mooring_ipam::{Candidate, Holder, InstanceKey, Thing};

use super::*;

const NOW: Time = Time(1_700_000_000);

fn book(dir: &Path) -> Book {
    let path = dir.join("deep/book.redb");
    Book::at(path, Access::Write, Options::default())
}

/// Takes the first of two addresses that nobody has, and reserves it.
fn take(book: &Book, name: &str, between: impl FnOnce()) -> Result<(TxnId, String), Error> {
    let instance = InstanceKey::new("", "net");
    let holder = Holder::outside(name, "claim", Family::V4);
    let mut txn = book.begin(NOW)?;
    let mut got = None;
    for text in ["10.0.0.1", "10.0.0.2"] {
        let candidate = Candidate {
            thing: Thing::Addr(text.parse().unwrap()),
            subnet: None,
            gateway: None,
        };
        if let Outcome::Won(lease) = txn.try_take(&instance, &candidate, &holder)? {
            got = Some(lease.thing.to_string());
            break;
        }
    }
    between();
    Ok((txn.reserve(Span(60))?, got.unwrap()))
}

fn held(path: &Path) -> Vec<(String, String)> {
    let book = Book::at(path.to_owned(), Access::Read, Options::default());
    let leases = book.leases(&Filter::default()).unwrap();
    let shown = leases
        .iter()
        .map(|l| (l.thing.to_string(), l.holder.workload.clone()));
    shown.collect()
}

#[test]
fn a_dropped_draft_makes_no_file_and_no_directory() {
    let dir = tempfile::tempdir().unwrap();
    let book = book(dir.path());
    drop(book.begin(NOW).unwrap());
    assert!(book.leases(&Filter::default()).unwrap().is_empty());
    assert!(matches!(book.commit(TxnId(1), NOW), Err(Error::NotOpen(_))));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_reserved_draft_makes_the_file_and_everything_in_it_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let book = book(dir.path());
    let path = book.path().to_owned();
    let (id, got) = take(&book, "leaf-1", || assert!(!path.exists())).unwrap();
    book.commit(id, NOW).unwrap();
    drop(book);
    assert_eq!(held(&path), [(got, "leaf-1".to_owned())]);
}

#[test]
fn a_draft_that_was_overtaken_is_made_again_on_what_the_other_run_left() {
    let dir = tempfile::tempdir().unwrap();
    let slow = book(dir.path());
    let mut runs = 0;
    let (id, got) = slow
        .settle(|slow| {
            runs += 1;
            take(slow, "slow", || {
                if runs == 1 {
                    let fast = book(dir.path());
                    let (id, _) = take(&fast, "fast", || ()).unwrap();
                    fast.commit(id, NOW).unwrap();
                }
            })
        })
        .unwrap();
    slow.commit(id, NOW).unwrap();
    let path = slow.path().to_owned();
    drop(slow);
    assert_eq!((runs, got.as_str()), (2, "10.0.0.2"));
    let both = [("10.0.0.1", "fast"), ("10.0.0.2", "slow")];
    assert_eq!(held(&path), both.map(|(a, h)| (a.to_owned(), h.to_owned())));
}

#[test]
fn an_error_that_has_another_cause_is_not_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut runs = 0;
    let outcome: Result<(), &str> = book(dir.path()).settle(|_| {
        runs += 1;
        Err("no")
    });
    assert_eq!((runs, outcome), (1, Err("no")));
}
