//! What is reserved by hand, and changes to the whole book.

use mooring_book::{Amendment, AuditFilter, Content, Error, Event, Filter, Outcome, Reservation};
use mooring_ipam::{Lease, State};

use super::Shelf;
use crate::made::{
    NOW, candidate, commit, holder, instance, later, lose, package, release, reserve, shown, thing,
    win,
};

fn reservation(what: &str, until: Option<u64>) -> Reservation {
    Reservation {
        instance: instance(),
        thing: thing(what),
        owner: "netops".to_owned(),
        reason: "leaf router".to_owned(),
        until: until.map(later),
    }
}

/// Gives whether it changed anything.
fn make(shelf: &mut dyn Shelf, reservation: &Reservation, what: &str, at: u64) -> bool {
    let store = shelf.store();
    let mut txn = store.begin(later(at)).unwrap();
    let outcome = txn.try_take(&instance(), &candidate(what), &reservation.holder());
    assert!(matches!(outcome, Ok(Outcome::Won(_))), "{outcome:?}");
    txn.note_reservation(reservation.clone()).unwrap();
    if txn.is_unchanged() {
        return false;
    }
    let id = txn.reserve(mooring_api::Span(60)).unwrap();
    store.commit(id, later(at)).unwrap();
    true
}

pub(super) fn a_reservation_keeps_others_out_until_it_ends(shelf: &mut dyn Shelf) {
    let range = reservation("10.0.0.20-10.0.0.29", Some(100));
    assert!(make(shelf, &range, "10.0.0.20-10.0.0.29", 0));
    assert_eq!(
        shelf.store().reservations().unwrap(),
        std::slice::from_ref(&range)
    );
    reserve(shelf.store(), later(99), |txn| {
        let by = lose(txn, "10.0.0.25", &holder(1));
        assert_eq!(by.holder, range.holder());
    });
    commit(shelf.store(), later(100), |txn| {
        win(txn, "10.0.0.25", &holder(1));
    });
    assert_eq!(shelf.store().reservations().unwrap(), []);
    assert_eq!(shown(shelf.store()), ["10.0.0.25 n1 held"]);
    let trail = shelf.store().audit(&AuditFilter::default(), 99).unwrap();
    let of_it = trail.iter().filter(|e| e.holder == range.holder());
    let told: Vec<(Event, u64)> = of_it.map(|e| (e.event, e.at.0 - NOW.0)).collect();
    let expected = [
        (Event::Reserved, 0),
        (Event::Taken, 0),
        (Event::Expired, 100),
    ];
    assert_eq!(told, expected);
}

pub(super) fn the_same_reservation_again_changes_nothing(shelf: &mut dyn Shelf) {
    let first = reservation("10.0.0.5", None);
    assert!(make(shelf, &first, "10.0.0.5", 0));
    assert!(!make(shelf, &first, "10.0.0.5", 50));
    let mut longer = first.clone();
    longer.until = Some(later(500));
    assert!(make(shelf, &longer, "10.0.0.5", 60));
    assert_eq!(shelf.store().reservations().unwrap(), [longer]);
    let lease = &shelf.store().leases(&Filter::default()).unwrap()[0];
    assert_eq!((lease.since, lease.state), (NOW, State::Held));
}

pub(super) fn a_released_reservation_is_forgotten(shelf: &mut dyn Shelf) {
    for (what, cool_down) in [("10.0.0.5", 0), ("10.0.0.6", 1000)] {
        assert!(make(shelf, &reservation(what, Some(900)), what, 0));
        commit(shelf.store(), later(10), |txn| {
            release(txn, what, cool_down);
        });
    }
    assert_eq!(shelf.store().reservations().unwrap(), []);
    // Nothing is left that would end: the cooling lease rests as long as its pool said.
    commit(shelf.store(), later(901), |txn| {
        win(txn, "10.0.0.5", &holder(1));
        lose(txn, "10.0.0.6", &holder(2));
    });
    assert_eq!(
        shown(shelf.store()),
        ["10.0.0.5 n1 held", "10.0.0.6 reservation cooling 1010"]
    );
}

pub(super) fn an_amendment_is_made_as_a_whole_or_not_at_all(shelf: &mut dyn Shelf) {
    commit(shelf.store(), NOW, |txn| {
        win(txn, "10.0.0.1", &holder(1));
        win(txn, "10.0.0.2", &holder(2));
        txn.note_package(package("upf", "here")).unwrap();
    });
    let before = Content::of(shelf.store()).unwrap();
    let renamed = |lease: &Lease| {
        let mut lease = lease.clone();
        "west".clone_into(&mut lease.holder.cluster);
        lease
    };
    let mut moved = package("upf", "here");
    "west".clone_into(&mut moved.cluster);
    let good = Amendment {
        drop: before.leases.clone(),
        put: before.leases.iter().map(renamed).collect(),
        forget: vec![("edge".to_owned(), "upf".to_owned())],
        note: vec![moved.clone()],
        reservations: Vec::new(),
    };
    // One lease is not what the plan saw; one that comes is in the way of one that stays.
    let mut stale = good.clone();
    stale.drop[1].since = later(7);
    let mut blocked = good.clone();
    blocked.drop.pop();
    for bad in [stale, blocked] {
        let refused = shelf.store().amend(&bad, later(1)).unwrap_err();
        assert!(matches!(refused, Error::Amended(_)), "{refused}");
        assert_eq!(Content::of(shelf.store()).unwrap(), before);
    }
    shelf.store().amend(&good, later(1)).unwrap();
    let after = Content::of(shelf.store()).unwrap();
    assert_eq!(after.leases, good.put);
    assert_eq!(after.packages, [moved]);
    let txn = shelf.store().begin(later(2)).unwrap();
    assert_eq!(txn.held_by_package("west", "upf").unwrap().len(), 2);
    assert!(txn.held_by_package("edge", "upf").unwrap().is_empty());
}
