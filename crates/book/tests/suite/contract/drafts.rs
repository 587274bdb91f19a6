//! Several transactions that count on the same things.

use mooring_book::{Error, Filter, Txn};
use mooring_ipam::{State, TxnId};

use super::Shelf;
use crate::made::{
    NOW, commit, holder, holder_of, instance, later, lose, release, reserve, shown, thing, win,
};

pub(super) fn a_holder_takes_over_what_its_crashed_transaction_reserved(shelf: &mut dyn Shelf) {
    let crashed = reserve(shelf.store(), NOW, |txn| {
        win(txn, "10.0.0.5", &holder(1));
        win(txn, "10.0.0.6", &holder(2));
    });
    let id = reserve(shelf.store(), later(1), |txn| {
        let lease = win(txn, "10.0.0.5", &holder(1));
        assert!(matches!(lease.state, State::Reserved { txn: by, .. } if by == txn.id()));
        lose(txn, "10.0.0.6", &holder(3));
    });
    shelf.store().commit(id, later(2)).unwrap();
    shelf.store().abort(crashed, later(3)).unwrap();
    assert_eq!(shown(shelf.store()), ["10.0.0.5 n1 held"]);
}

pub(super) fn two_reserved_transactions_do_not_meet(shelf: &mut dyn Shelf) {
    let first = reserve(shelf.store(), NOW, |txn| {
        win(txn, "10.0.0.1", &holder(1));
    });
    let second = reserve(shelf.store(), NOW, |txn| {
        lose(txn, "10.0.0.1", &holder(2));
        win(txn, "10.0.0.2", &holder(2));
    });
    let pending = shelf.store().pending().unwrap();
    assert_eq!(pending[0].takes, [(instance(), thing("10.0.0.1"))]);
    assert_eq!(pending[1].id, second);
    shelf.store().commit(second, later(1)).unwrap();
    assert_eq!(
        shown(shelf.store()),
        ["10.0.0.1 n1 reserved", "10.0.0.2 n2 held"]
    );
    shelf.store().commit(first, later(2)).unwrap();
    assert_eq!(
        shown(shelf.store()),
        ["10.0.0.1 n1 held", "10.0.0.2 n2 held"]
    );
}

pub(super) fn a_draft_that_drops_and_a_draft_that_keeps_commit_in_either_order(
    shelf: &mut dyn Shelf,
) {
    for (keeps_first, address) in [(true, "10.0.0.1"), (false, "10.0.0.2")] {
        commit(shelf.store(), NOW, |txn| {
            win(txn, address, &holder(1));
        });
        let drops = reserve(shelf.store(), later(1), |txn| release(txn, address, 10));
        let keeps = reserve(shelf.store(), later(1), |txn| {
            win(txn, address, &holder(1));
        });
        let order = if keeps_first {
            [keeps, drops]
        } else {
            [drops, keeps]
        };
        for id in order {
            shelf.store().commit(id, later(2)).unwrap();
        }
    }
    // Whoever is published last decides.
    let expected = ["10.0.0.1 n1 cooling 12", "10.0.0.2 n1 held"];
    assert_eq!(shown(shelf.store()), expected);
}

pub(super) fn a_release_waits_for_the_draft_that_counts_on_it(shelf: &mut dyn Shelf) {
    commit(shelf.store(), NOW, |txn| {
        win(txn, "10.0.0.1", &holder(1));
    });
    let keeps = reserve(shelf.store(), later(1), |txn| {
        win(txn, "10.0.0.1", &holder(1));
    });
    commit(shelf.store(), later(2), |txn| release(txn, "10.0.0.1", 7));
    assert_eq!(shown(shelf.store()), ["10.0.0.1 n1 reserved"]);
    commit(shelf.store(), later(100), |txn| {
        lose(txn, "10.0.0.1", &holder(2));
    });
    shelf.store().abort(keeps, later(101)).unwrap();
    assert_eq!(shown(shelf.store()), ["10.0.0.1 n1 cooling 9"]);
}

pub(super) fn an_undone_take_over_goes_back_to_the_first_transaction(shelf: &mut dyn Shelf) {
    commit(shelf.store(), NOW, |txn| {
        win(txn, "10.0.0.1", &holder(1));
    });
    commit(shelf.store(), NOW, |txn| release(txn, "10.0.0.1", 900));
    let drafts: Vec<TxnId> = (1..=3)
        .map(|n| {
            reserve(shelf.store(), later(n), |txn| {
                win(txn, "10.0.0.1", &holder(1));
            })
        })
        .collect();
    let by = |shelf: &mut dyn Shelf| shelf.store().leases(&Filter::default()).unwrap()[0].state;
    assert!(matches!(by(shelf), State::Reserved { txn, .. } if txn == drafts[2]));
    shelf.store().abort(drafts[1], later(4)).unwrap();
    shelf.store().abort(drafts[2], later(4)).unwrap();
    assert!(matches!(by(shelf), State::Reserved { txn, .. } if txn == drafts[0]));
    shelf.store().abort(drafts[0], later(4)).unwrap();
    assert_eq!(shown(shelf.store()), ["10.0.0.1 n1 cooling 900"]);
}

pub(super) fn a_range_that_two_takes_displaced_comes_back_whole(shelf: &mut dyn Shelf) {
    commit(shelf.store(), NOW, |txn| {
        win(txn, "10.0.0.3-10.0.0.6", &holder(1));
    });
    commit(shelf.store(), NOW, |txn| {
        release(txn, "10.0.0.3-10.0.0.6", 5);
    });
    let two = |txn: &mut dyn Txn| {
        win(txn, "10.0.0.3", &holder(2));
        win(txn, "10.0.0.5", &holder(3));
    };
    let id = reserve(shelf.store(), later(5), two);
    shelf.store().abort(id, later(5)).unwrap();
    assert_eq!(shown(shelf.store()), ["10.0.0.3-10.0.0.6 n1 cooling 5"]);
    let id = reserve(shelf.store(), later(6), |txn| {
        two(txn);
        release(txn, "10.0.0.3", 0);
    });
    assert_eq!(shown(shelf.store()), ["10.0.0.5 n3 reserved"]);
    shelf.store().abort(id, later(6)).unwrap();
    assert_eq!(shown(shelf.store()), ["10.0.0.3-10.0.0.6 n1 cooling 5"]);
    let store = shelf.store();
    let mut txn = store.begin(later(7)).unwrap();
    two(&mut *txn);
    drop(txn);
    assert_eq!(shown(store), ["10.0.0.3-10.0.0.6 n1 cooling 5"]);
}

pub(super) fn a_package_has_what_it_holds_and_not_what_other_drafts_reserved(
    shelf: &mut dyn Shelf,
) {
    commit(shelf.store(), NOW, |txn| {
        win(txn, "10.0.0.1", &holder(1));
        win(txn, "10.0.0.2", &holder(2));
        win(txn, "10.0.0.9", &holder_of("amf", 1));
    });
    reserve(shelf.store(), NOW, |txn| {
        win(txn, "10.0.0.3", &holder(3));
    });
    let store = shelf.store();
    let mut txn = store.begin(NOW).unwrap();
    win(&mut *txn, "10.0.0.4", &holder(4));
    release(&mut *txn, "10.0.0.2", 0);
    let has = txn.held_by_package("edge", "upf").unwrap();
    let things: Vec<String> = has.iter().map(|l| l.thing.to_string()).collect();
    assert_eq!(things, ["10.0.0.1", "10.0.0.4"]);
    assert_eq!(txn.held_by_package("core", "upf").unwrap(), []);
    assert_eq!(txn.held_by(&instance(), &holder(3)).unwrap(), []);
}

pub(super) fn a_draft_does_not_show_in_the_list(shelf: &mut dyn Shelf) {
    commit(shelf.store(), NOW, |txn| {
        win(txn, "10.0.0.1", &holder(1));
    });
    commit(shelf.store(), NOW, |txn| release(txn, "10.0.0.1", 5));
    let store = shelf.store();
    let mut txn = store.begin(later(5)).unwrap();
    win(&mut *txn, "10.0.0.1", &holder(2));
    win(&mut *txn, "10.0.0.2", &holder(3));
    assert_eq!(shown(store), ["10.0.0.1 n1 cooling 5"]);
    let mut seen = 0;
    txn.with_table(&instance(), &mut |table| seen = table.len())
        .unwrap();
    assert_eq!(seen, 2);
}

pub(super) fn one_transaction_is_made_at_a_time(shelf: &mut dyn Shelf) {
    let id = reserve(shelf.store(), NOW, |txn| {
        win(txn, "10.0.0.1", &holder(1));
    });
    let store = shelf.store();
    let txn = store.begin(NOW).unwrap();
    assert!(matches!(store.begin(NOW).err(), Some(Error::InTransaction(x)) if x == txn.id()));
    assert!(matches!(
        store.commit(id, NOW),
        Err(Error::InTransaction(_))
    ));
    assert!(matches!(store.abort(id, NOW), Err(Error::InTransaction(_))));
    drop(txn);
    store.commit(id, NOW).unwrap();
}
