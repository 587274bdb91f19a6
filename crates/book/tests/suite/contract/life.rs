//! One lease and its life: taken, kept, given back, reused.

use mooring_api::{Family, Span};
use mooring_book::{Error, Filter, Outcome};
use mooring_ipam::{Holder, InstanceKey, TxnId};

use super::Shelf;
use crate::made::{
    NOW, TTL, candidate, commit, defects, holder, instance, later, lose, package, release, reserve,
    shown, win,
};

pub(super) fn a_take_is_reserved_then_held_then_cools_then_is_free(shelf: &mut dyn Shelf) {
    let id = reserve(shelf.store(), NOW, |txn| {
        win(txn, "10.0.0.5", &holder(1));
    });
    assert_eq!(shown(shelf.store()), ["10.0.0.5 n1 reserved"]);
    shelf.store().commit(id, later(1)).unwrap();
    assert_eq!(shown(shelf.store()), ["10.0.0.5 n1 held"]);
    commit(shelf.store(), later(2), |txn| {
        assert_eq!(lose(txn, "10.0.0.5", &holder(2)).holder, holder(1));
        release(txn, "10.0.0.5", 100);
    });
    assert_eq!(shown(shelf.store()), ["10.0.0.5 n1 cooling 102"]);
    commit(shelf.store(), later(101), |txn| {
        lose(txn, "10.0.0.5", &holder(2));
    });
    commit(shelf.store(), later(102), |txn| {
        win(txn, "10.0.0.5", &holder(2));
    });
    assert_eq!(shown(shelf.store()), ["10.0.0.5 n2 held"]);
    assert_eq!(defects(shelf.store(), later(200)).unwrap(), [""; 0]);
}

pub(super) fn a_dropped_transaction_leaves_nothing(shelf: &mut dyn Shelf) {
    commit(shelf.store(), NOW, |txn| {
        win(txn, "10.0.0.1", &holder(1));
        win(txn, "10.0.0.2", &holder(2));
    });
    commit(shelf.store(), NOW, |txn| release(txn, "10.0.0.2", 50));
    let before = shown(shelf.store());
    {
        let store = shelf.store();
        let mut txn = store.begin(later(60)).unwrap();
        win(&mut *txn, "10.0.0.2", &holder(3));
        win(&mut *txn, "10.0.0.9", &holder(4));
        release(&mut *txn, "10.0.0.1", 0);
        txn.note_package(package("id", "a")).unwrap();
    }
    assert_eq!(shown(shelf.store()), before);
    assert_eq!(shelf.store().packages().unwrap(), []);
    let store = shelf.store();
    let mut txn = store.begin(later(60)).unwrap();
    win(&mut *txn, "10.0.0.9", &holder(5));
}

pub(super) fn an_aborted_transaction_leaves_what_was_before(shelf: &mut dyn Shelf) {
    commit(shelf.store(), NOW, |txn| {
        win(txn, "10.0.0.1", &holder(1));
        win(txn, "10.0.0.2", &holder(2));
        win(txn, "10.0.0.3", &holder(3));
    });
    commit(shelf.store(), NOW, |txn| {
        release(txn, "10.0.0.2", 50);
        release(txn, "10.0.0.3", 500);
    });
    let before = shown(shelf.store());
    let id = reserve(shelf.store(), later(60), |txn| {
        win(txn, "10.0.0.1", &holder(1));
        win(txn, "10.0.0.2", &holder(9));
        win(txn, "10.0.0.3", &holder(3));
        win(txn, "10.0.0.4", &holder(4));
    });
    assert_eq!(shown(shelf.store()).len(), 4);
    shelf.store().abort(id, later(61)).unwrap();
    assert_eq!(shown(shelf.store()), before);
    shelf.store().abort(id, later(62)).unwrap();
    let gone = shelf.store().commit(id, later(62));
    assert!(matches!(gone, Err(Error::NotOpen(x)) if x == id));
    let done = commit(shelf.store(), later(63), |txn| {
        win(txn, "10.0.0.4", &holder(5));
    });
    let late = shelf.store().abort(done, later(64));
    assert!(matches!(late, Err(Error::NotOpen(_))));
    assert_eq!(defects(shelf.store(), later(64)).unwrap(), [""; 0]);
}

pub(super) fn an_expired_reservation_is_reaped(shelf: &mut dyn Shelf) {
    let id = reserve(shelf.store(), NOW, |txn| {
        win(txn, "10.0.0.5", &holder(1));
    });
    commit(shelf.store(), later(TTL.0 - 1), |txn| {
        lose(txn, "10.0.0.5", &holder(2));
    });
    let too_late = shelf.store().commit(id, later(TTL.0));
    assert!(matches!(too_late, Err(Error::NotOpen(_))));
    commit(shelf.store(), later(TTL.0), |txn| {
        win(txn, "10.0.0.5", &holder(2));
    });
    assert_eq!(shown(shelf.store()), ["10.0.0.5 n2 held"]);
    assert_eq!(shelf.store().pending().unwrap(), []);
}

pub(super) fn a_commit_can_be_repeated_and_an_unknown_one_is_refused(shelf: &mut dyn Shelf) {
    let id = commit(shelf.store(), NOW, |txn| {
        win(txn, "10.0.0.5", &holder(1));
    });
    commit(shelf.store(), later(1), |txn| release(txn, "10.0.0.5", 9));
    shelf.store().commit(id, later(2)).unwrap();
    assert_eq!(shown(shelf.store()), ["10.0.0.5 n1 cooling 10"]);
    let unknown = shelf.store().commit(TxnId(7), NOW);
    assert!(matches!(unknown, Err(Error::NotOpen(TxnId(7)))));
    shelf.store().abort(TxnId(7), NOW).unwrap();
    // An id names a moment, so that a journal of an earlier book does not fit this one.
    assert!(id.0 >= NOW.0 << 20, "{id:?}");
}

pub(super) fn what_is_released_stays_taken_until_the_commit(shelf: &mut dyn Shelf) {
    commit(shelf.store(), NOW, |txn| {
        win(txn, "10.0.0.1", &holder(1));
    });
    let id = reserve(shelf.store(), later(1), |txn| {
        release(txn, "10.0.0.1", 0);
        assert_eq!(txn.held_by(&instance(), &holder(1)).unwrap(), []);
        lose(txn, "10.0.0.1", &holder(2));
        release(txn, "10.9.9.9", 0);
    });
    commit(shelf.store(), later(2), |txn| {
        lose(txn, "10.0.0.1", &holder(3));
    });
    shelf.store().commit(id, later(3)).unwrap();
    commit(shelf.store(), later(3), |txn| {
        win(txn, "10.0.0.1", &holder(3));
    });
}

pub(super) fn taking_again_cancels_a_release(shelf: &mut dyn Shelf) {
    commit(shelf.store(), NOW, |txn| {
        win(txn, "10.0.0.1", &holder(1));
    });
    commit(shelf.store(), later(1), |txn| {
        release(txn, "10.0.0.1", 0);
        win(txn, "10.0.0.1", &holder(1));
    });
    assert_eq!(shown(shelf.store()), ["10.0.0.1 n1 held"]);
}

pub(super) fn giving_back_what_was_just_taken_undoes_the_take(shelf: &mut dyn Shelf) {
    commit(shelf.store(), NOW, |txn| {
        win(txn, "10.0.0.1", &holder(1));
    });
    commit(shelf.store(), later(1), |txn| {
        win(txn, "10.0.0.1", &holder(1));
        win(txn, "10.0.0.2", &holder(2));
        release(txn, "10.0.0.2", 50);
        win(txn, "10.0.0.2", &holder(3));
        release(txn, "10.0.0.1", 50);
    });
    let expected = ["10.0.0.1 n1 cooling 51", "10.0.0.2 n3 held"];
    assert_eq!(shown(shelf.store()), expected);
}

pub(super) fn addresses_blocks_ranges_and_vlans_of_both_families_live_together(
    shelf: &mut dyn Shelf,
) {
    let v6 = Holder {
        family: Family::V6,
        ..holder(1)
    };
    commit(shelf.store(), NOW, |txn| {
        win(txn, "10.0.0.1", &holder(1));
        win(txn, "fd00::1", &v6);
        win(txn, "10.0.1.0/24", &holder(2));
        win(txn, "10.0.2.10-10.0.2.19", &holder(3));
        win(txn, "vlan 100", &holder(4));
        lose(txn, "10.0.1.128/25", &holder(5));
        lose(txn, "10.0.2.15", &holder(5));
        lose(txn, "10.0.2.19-10.0.2.30", &holder(5));
        lose(txn, "vlan 100", &holder(5));
        lose(txn, "fd00::/64", &holder(5));
    });
    let expected = [
        "10.0.0.1 n1 held",
        "fd00::1 n1 held",
        "10.0.1.0/24 n2 held",
        "10.0.2.10-10.0.2.19 n3 held",
        "VLAN 100 n4 held",
    ];
    assert_eq!(shown(shelf.store()), expected);
    commit(shelf.store(), later(1), |txn| {
        let all = txn.held_by_package("edge", "upf").unwrap();
        assert_eq!(all.len(), 5);
        assert_eq!(txn.held_by(&instance(), &v6).unwrap().len(), 1);
        for lease in all {
            txn.release(&lease.instance, &lease.thing, Span(1)).unwrap();
        }
    });
    commit(shelf.store(), later(2), |txn| {
        // One block makes several that have rested give way.
        win(txn, "10.0.0.0/22", &holder(6));
        win(txn, "vlan 100", &holder(6));
    });
    let expected = [
        "fd00::1 n1 cooling 2",
        "10.0.0.0/22 n6 held",
        "VLAN 100 n6 held",
    ];
    assert_eq!(shown(shelf.store()), expected);
    assert_eq!(defects(shelf.store(), later(3)).unwrap(), [""; 0]);
}

pub(super) fn instances_do_not_meet(shelf: &mut dyn Shelf) {
    let other = InstanceKey::new("lab", "vpc-ran");
    commit(shelf.store(), NOW, |txn| {
        win(txn, "10.0.0.1", &holder(1));
        let outcome = txn.try_take(&other, &candidate("10.0.0.1"), &holder(2));
        assert!(matches!(outcome, Ok(Outcome::Won(_))));
        assert_eq!(txn.held_by(&other, &holder(1)).unwrap(), []);
    });
    let in_lab = Filter {
        instance: Some(other),
        ..Filter::default()
    };
    let found = shelf.store().leases(&in_lab).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].holder, holder(2));
}
