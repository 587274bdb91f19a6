//! The contract, over memory, over a file, and over a file that is closed and opened before every step.

use std::path::PathBuf;

use mooring_api::{Family, Span};
use mooring_book::{
    AuditFilter, Error, Event, FileStore, Filter, MemoryStore, Options, Outcome, Store,
};
use mooring_ipam::{Holder, InstanceKey, Lease, State, TxnId};

use super::made::{
    NOW, TTL, candidate, commit, defects, holder, holder_of, instance, later, lose, package,
    release, reserve, shown, thing, win,
};

/// Where a test gets its store from.
trait Shelf {
    fn store(&mut self) -> &dyn Store;
}

struct Memory(MemoryStore);

impl Shelf for Memory {
    fn store(&mut self) -> &dyn Store {
        &self.0
    }
}

struct File {
    _dir: tempfile::TempDir,
    path: PathBuf,
    reopens: bool,
    store: Option<FileStore>,
}

impl File {
    fn new(reopens: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self {
            path: dir.path().join("book.redb"),
            _dir: dir,
            reopens,
            store: None,
        }
    }
}

impl Shelf for File {
    fn store(&mut self) -> &dyn Store {
        if self.reopens {
            self.store = None;
        }
        let path = &self.path;
        self.store
            .get_or_insert_with(|| FileStore::open(path, &Options::default()).unwrap())
    }
}

macro_rules! contract {
    ($($name:ident,)+) => {
        mod memory {
            $(#[test] fn $name() { super::$name(&mut super::Memory(super::MemoryStore::new())); })+
        }
        mod file {
            $(#[test] fn $name() { super::$name(&mut super::File::new(false)); })+
        }
        mod file_reopened {
            $(#[test] fn $name() { super::$name(&mut super::File::new(true)); })+
        }
    };
}

contract! {
    a_take_is_reserved_then_held_then_cools_then_is_free,
    a_dropped_transaction_leaves_nothing,
    an_aborted_transaction_leaves_what_was_before,
    an_expired_reservation_is_reaped,
    a_commit_can_be_repeated_and_an_unknown_one_is_refused,
    a_holder_takes_over_what_its_crashed_transaction_reserved,
    two_reserved_transactions_do_not_meet,
    what_is_released_stays_taken_until_the_commit,
    taking_again_cancels_a_release,
    giving_back_what_was_just_taken_undoes_the_take,
    a_draft_that_drops_and_a_draft_that_keeps_commit_in_either_order,
    a_release_waits_for_the_draft_that_counts_on_it,
    an_undone_take_over_goes_back_to_the_first_transaction,
    addresses_blocks_ranges_and_vlans_of_both_families_live_together,
    instances_do_not_meet,
    a_new_gateway_is_recorded_at_commit,
    packages_are_noted_at_commit,
    a_package_has_what_it_holds_and_not_what_other_drafts_reserved,
    a_draft_does_not_show_in_the_list,
    one_transaction_is_made_at_a_time,
    unchanged_means_unchanged,
    restore_puts_back_and_never_overwrites,
    a_restored_reservation_rests,
    the_audit_trail_tells_the_story,
    filters_narrow_the_list,
}

fn a_take_is_reserved_then_held_then_cools_then_is_free(shelf: &mut dyn Shelf) {
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

fn a_dropped_transaction_leaves_nothing(shelf: &mut dyn Shelf) {
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

fn an_aborted_transaction_leaves_what_was_before(shelf: &mut dyn Shelf) {
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

fn an_expired_reservation_is_reaped(shelf: &mut dyn Shelf) {
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

fn a_commit_can_be_repeated_and_an_unknown_one_is_refused(shelf: &mut dyn Shelf) {
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

fn a_holder_takes_over_what_its_crashed_transaction_reserved(shelf: &mut dyn Shelf) {
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

fn two_reserved_transactions_do_not_meet(shelf: &mut dyn Shelf) {
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

fn what_is_released_stays_taken_until_the_commit(shelf: &mut dyn Shelf) {
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

fn taking_again_cancels_a_release(shelf: &mut dyn Shelf) {
    commit(shelf.store(), NOW, |txn| {
        win(txn, "10.0.0.1", &holder(1));
    });
    commit(shelf.store(), later(1), |txn| {
        release(txn, "10.0.0.1", 0);
        win(txn, "10.0.0.1", &holder(1));
    });
    assert_eq!(shown(shelf.store()), ["10.0.0.1 n1 held"]);
}

fn giving_back_what_was_just_taken_undoes_the_take(shelf: &mut dyn Shelf) {
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

fn a_draft_that_drops_and_a_draft_that_keeps_commit_in_either_order(shelf: &mut dyn Shelf) {
    for (keeps_first, address) in [(true, "10.0.0.1"), (false, "10.0.0.2")] {
        commit(shelf.store(), NOW, |txn| {
            win(txn, address, &holder(1));
        });
        let drops = reserve(shelf.store(), later(1), |txn| release(txn, address, 0));
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
    let expected = ["10.0.0.1 n1 cooling 2", "10.0.0.2 n1 held"];
    assert_eq!(shown(shelf.store()), expected);
}

fn a_release_waits_for_the_draft_that_counts_on_it(shelf: &mut dyn Shelf) {
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

fn an_undone_take_over_goes_back_to_the_first_transaction(shelf: &mut dyn Shelf) {
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

fn addresses_blocks_ranges_and_vlans_of_both_families_live_together(shelf: &mut dyn Shelf) {
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

fn instances_do_not_meet(shelf: &mut dyn Shelf) {
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

fn a_new_gateway_is_recorded_at_commit(shelf: &mut dyn Shelf) {
    let mut moved = candidate("10.0.0.1");
    moved.gateway = Some("10.0.0.254".parse().unwrap());
    commit(shelf.store(), NOW, |txn| {
        win(txn, "10.0.0.1", &holder(1));
    });
    let id = reserve(shelf.store(), later(1), |txn| {
        txn.try_take(&instance(), &moved, &holder(1)).unwrap();
        assert!(!txn.is_unchanged());
    });
    let lease = |shelf: &mut dyn Shelf| shelf.store().leases(&Filter::default()).unwrap().remove(0);
    assert_eq!(lease(shelf).gateway, candidate("10.0.0.1").gateway);
    shelf.store().commit(id, later(2)).unwrap();
    assert_eq!(lease(shelf).gateway, moved.gateway);
    assert_eq!(lease(shelf).since, NOW);
}

fn packages_are_noted_at_commit(shelf: &mut dyn Shelf) {
    let id = reserve(shelf.store(), NOW, |txn| {
        txn.note_package(package("a", "one")).unwrap();
        txn.note_package(package("b", "two")).unwrap();
        let seen = txn.package("edge", "a").unwrap();
        assert_eq!(seen, Some(package("a", "one")));
        assert_eq!(txn.package("core", "a").unwrap(), None);
    });
    assert_eq!(shelf.store().packages().unwrap(), []);
    shelf.store().commit(id, NOW).unwrap();
    let both = [package("a", "one"), package("b", "two")];
    assert_eq!(shelf.store().packages().unwrap(), both);
    commit(shelf.store(), later(1), |txn| {
        txn.note_package(package("b", "moved")).unwrap();
        txn.forget_package("edge", "a").unwrap();
        assert_eq!(txn.package("edge", "a").unwrap(), None);
    });
    let left = shelf.store().packages().unwrap();
    assert_eq!(left, [package("b", "moved")]);
}

fn a_package_has_what_it_holds_and_not_what_other_drafts_reserved(shelf: &mut dyn Shelf) {
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

fn a_draft_does_not_show_in_the_list(shelf: &mut dyn Shelf) {
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

fn one_transaction_is_made_at_a_time(shelf: &mut dyn Shelf) {
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

fn unchanged_means_unchanged(shelf: &mut dyn Shelf) {
    commit(shelf.store(), NOW, |txn| {
        assert!(txn.is_unchanged());
        win(txn, "10.0.0.1", &holder(1));
        assert!(!txn.is_unchanged());
        txn.note_package(package("a", "one")).unwrap();
    });
    let store = shelf.store();
    let mut txn = store.begin(later(1)).unwrap();
    win(&mut *txn, "10.0.0.1", &holder(1));
    let mut again = package("a", "one");
    again.at = later(1);
    txn.note_package(again).unwrap();
    assert!(txn.is_unchanged());
    release(&mut *txn, "10.0.0.1", 0);
    assert!(!txn.is_unchanged());
}

fn restore_puts_back_and_never_overwrites(shelf: &mut dyn Shelf) {
    commit(shelf.store(), NOW, |txn| {
        win(txn, "10.0.0.1", &holder(1));
        win(txn, "10.0.0.2", &holder(2));
    });
    commit(shelf.store(), NOW, |txn| release(txn, "10.0.0.2", 500));
    let lease = |text: &str, n: u32| Lease {
        instance: instance(),
        thing: thing(text),
        subnet: candidate(text).subnet,
        gateway: candidate(text).gateway,
        holder: holder(n),
        state: State::Held,
        since: NOW,
    };
    let found = [
        lease("10.0.0.1", 1),
        lease("10.0.0.2", 2),
        lease("10.0.0.3", 3),
        lease("10.0.0.3", 4),
        lease("10.0.0.1", 5),
        lease("vlan 7", 6),
    ];
    let restored = shelf
        .store()
        .restore(&found, &[package("a", "one")], later(1))
        .unwrap();
    assert_eq!((restored.added, restored.unchanged), (3, 1));
    let findings = restored.findings();
    assert_eq!(findings.len(), 2);
    assert!(findings[0].message.contains("edge / upf / free5gc / n4"));
    assert!(findings[0].message.contains("edge / upf / free5gc / n3"));
    let expected = [
        "10.0.0.1 n1 held",
        "10.0.0.2 n2 held",
        "10.0.0.3 n3 held",
        "VLAN 7 n6 held",
    ];
    assert_eq!(shown(shelf.store()), expected);
    assert_eq!(shelf.store().packages().unwrap(), [package("a", "one")]);
    let of_it = Filter {
        cluster: Some("edge".to_owned()),
        package: Some("upf".to_owned()),
        ..Filter::default()
    };
    assert_eq!(shelf.store().leases(&of_it).unwrap().len(), 4);
    let exported = shelf.store().leases(&Filter::default()).unwrap();
    let again = shelf.store().restore(&exported, &[], later(2)).unwrap();
    assert_eq!((again.added, again.unchanged), (0, 4));
}

fn a_restored_reservation_rests(shelf: &mut dyn Shelf) {
    reserve(shelf.store(), NOW, |txn| {
        win(txn, "10.0.0.1", &holder(1));
    });
    let exported = shelf.store().leases(&Filter::default()).unwrap();
    let fresh = MemoryStore::new();
    fresh.restore(&exported, &[], later(1)).unwrap();
    assert_eq!(shown(&fresh), ["10.0.0.1 n1 cooling 600"]);
    commit(&fresh, later(2), |txn| {
        lose(txn, "10.0.0.1", &holder(2));
        win(txn, "10.0.0.1", &holder(1));
    });
}

fn the_audit_trail_tells_the_story(shelf: &mut dyn Shelf) {
    let first = commit(shelf.store(), NOW, |txn| {
        win(txn, "10.0.0.1", &holder(1));
        win(txn, "10.0.0.2", &holder(2));
    });
    let second = commit(shelf.store(), later(1), |txn| release(txn, "10.0.0.1", 0));
    let third = reserve(shelf.store(), later(2), |txn| {
        win(txn, "10.0.0.1", &holder(3));
    });
    shelf.store().abort(third, later(3)).unwrap();
    reserve(shelf.store(), later(4), |txn| {
        win(txn, "10.0.0.1", &holder(4));
    });
    drop(shelf.store().begin(later(4 + TTL.0)).unwrap());
    let of_it = AuditFilter {
        addr: Some("10.0.0.1".parse().unwrap()),
        ..AuditFilter::default()
    };
    let story = shelf.store().audit(&of_it, 100).unwrap();
    let told: Vec<_> = story
        .iter()
        .map(|e| (e.event, e.holder.interface.as_str()))
        .collect();
    let expected = [
        (Event::Reserved, "n1"),
        (Event::Taken, "n1"),
        (Event::Released, "n1"),
        (Event::Reserved, "n3"),
        (Event::Aborted, "n3"),
        (Event::Reserved, "n4"),
        (Event::Expired, "n4"),
    ];
    assert_eq!(told, expected);
    assert_eq!(story[1].txn, Some(first));
    assert_eq!((story[2].txn, story[2].at), (Some(second), later(1)));
    let newest = shelf.store().audit(&of_it, 2).unwrap();
    assert_eq!(newest, story[5..]);
}

fn filters_narrow_the_list(shelf: &mut dyn Shelf) {
    commit(shelf.store(), NOW, |txn| {
        win(txn, "10.0.0.1", &holder(1));
        win(txn, "10.0.1.0/24", &holder_of("amf", 1));
        win(
            txn,
            "vlan 9",
            &Holder::outside("router", "uplink", Family::V4),
        );
    });
    let count =
        |shelf: &mut dyn Shelf, filter: Filter| shelf.store().leases(&filter).unwrap().len();
    let all = Filter::default;
    assert_eq!(count(shelf, all()), 3);
    let addr = Some("10.0.1.77".parse().unwrap());
    assert_eq!(count(shelf, Filter { addr, ..all() }), 1);
    let cluster = Some("edge".to_owned());
    assert_eq!(count(shelf, Filter { cluster, ..all() }), 2);
    let package = Some("amf".to_owned());
    assert_eq!(count(shelf, Filter { package, ..all() }), 1);
}
