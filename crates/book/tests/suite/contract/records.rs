//! What is remembered and told: packages, restores, the trail, lists.

use mooring_api::Family;
use mooring_book::{AuditFilter, Event, Filter, MemoryStore, Store};
use mooring_ipam::{Holder, Lease, State};

use super::Shelf;
use crate::made::{
    NOW, TTL, candidate, commit, holder, holder_of, instance, later, lose, package, release,
    reserve, shown, thing, win,
};

pub(super) fn a_new_gateway_is_recorded_at_commit(shelf: &mut dyn Shelf) {
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

pub(super) fn packages_are_noted_at_commit(shelf: &mut dyn Shelf) {
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

pub(super) fn unchanged_means_unchanged(shelf: &mut dyn Shelf) {
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

pub(super) fn restore_puts_back_and_never_overwrites(shelf: &mut dyn Shelf) {
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

pub(super) fn a_restored_reservation_rests(shelf: &mut dyn Shelf) {
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

pub(super) fn the_audit_trail_tells_the_story(shelf: &mut dyn Shelf) {
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
    // Something durable: a store that only read so far keeps the end of a reservation to itself until then.
    reserve(shelf.store(), later(4 + TTL.0), |txn| {
        win(txn, "10.0.0.3", &holder(5));
    });
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

pub(super) fn filters_narrow_the_list(shelf: &mut dyn Shelf) {
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
