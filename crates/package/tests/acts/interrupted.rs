//! A run that was cut off between its files and the book: what only looks says so, the next one finishes.

use mooring_api::Code;
use mooring_book::Error;
use mooring_ipam::TxnId;
use mooring_package::Report;
use mooring_package::disk::RealDisk;
use mooring_package::journal::{Change, Plan, commit_files};
use mooring_testkit::hash_tree;

use crate::fleet::Place;

/// A package whose last run wrote a note and was killed before the book was told.
fn cut_off() -> Place {
    let place = Place::new();
    place.package("a", &["n1"]);
    place.render("a", |_| {});
    let plan = Plan {
        root: place.path("a"),
        changes: vec![Change::Write {
            path: "note.yaml".into(),
            bytes: b"is: written\n".to_vec(),
        }],
        txn: Some(TxnId(1)),
    };
    let killed = commit_files(&RealDisk, &plan, |txn| Err(Error::NotOpen(txn)));
    assert!(killed.is_err(), "{killed:?}");
    assert!(place.path("a/.moor-journal").exists());
    place
}

fn codes(report: &Report) -> Vec<Code> {
    report.findings.iter().map(|f| f.code).collect()
}

#[test]
fn a_check_and_a_copy_say_that_a_run_waits_to_be_finished() {
    let place = cut_off();
    let before = hash_tree(&place.path("a"));
    let report = place.try_render("a", |r| r.check = true);
    assert_eq!(codes(&report), [Code::RenderInterrupted]);
    let out = place.path("out");
    let report = place.try_render("a", |r| r.out = Some(out.clone()));
    assert_eq!(codes(&report), [Code::RenderInterrupted]);
    assert_eq!(before, hash_tree(&place.path("a")));
    assert!(!out.exists());
}

#[test]
fn the_next_render_finishes_it_and_says_so() {
    let place = cut_off();
    let report = place.render("a", |_| {});
    assert_eq!(codes(&report), [Code::RenderRecovered]);
    assert!(!place.path("a/.moor-journal").exists());
    assert!(place.path("a/note.yaml").exists());
    assert!(place.render("a", |_| {}).findings.is_empty());
}
