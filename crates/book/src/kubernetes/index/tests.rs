//! Events that come late, twice or not at all.

use mooring_api::{Family, Time};
use mooring_ipam::{Holder, InstanceKey, Lease, State, Thing};

use super::*;

fn instance() -> InstanceKey {
    InstanceKey::new("", "ran")
}

fn record(text: &str, holder: &str, checked: bool) -> Record {
    let thing = if text.contains('-') {
        Thing::Range(text.parse().unwrap())
    } else {
        Thing::Addr(text.parse().unwrap())
    };
    let lease = Lease {
        instance: instance(),
        thing,
        subnet: Some("10.0.0.0/24".parse().unwrap()),
        gateway: None,
        holder: Holder::outside(holder, "eth0", Family::V4),
        state: State::Held,
        since: Time(1),
    };
    let mut record = Record::new(lease, holder.to_owned());
    record.checked = checked;
    record
}

/// The lease of an address as the server would tell it.
fn object(holder: &str, uid: &str, version: u64) -> IPLease {
    let mut object = form::object(&record("10.0.0.5", holder, true)).unwrap();
    object.metadata.uid = Some(uid.to_owned());
    object.metadata.resource_version = Some(version.to_string());
    object
}

fn known(holder: &str, uid: &str, version: u64) -> Known {
    Known::of(&object(holder, uid, version)).unwrap()
}

fn ledger(version: u64, entries: &[Record]) -> KnownLedger {
    let mut object = PrefixLedger::default();
    object.metadata.name = Some(name::of_instance(&instance()));
    object.metadata.resource_version = Some(version.to_string());
    object.spec.instance = form::instance_ref(&instance());
    object.spec.leases = entries.iter().filter_map(form::entry).collect();
    KnownLedger::of(object)
}

/// Who has what, as the table says.
fn shown(index: &mut Index) -> Vec<String> {
    let table = index.table(&instance());
    assert_eq!(table.check(), [""; 0]);
    let line = |lease: Lease| format!("{} {}", lease.thing, lease.holder.workload);
    table.leases().map(line).collect()
}

#[test]
fn an_older_version_changes_nothing() {
    let mut index = Index::default();
    index.learn(known("b", "2", 20));
    index.learn(known("a", "1", 10));
    assert_eq!(shown(&mut index), ["10.0.0.5 b"]);
    // The end of the first one is heard after the second was made.
    index.lost(&object("a", "1", 15));
    assert_eq!(shown(&mut index), ["10.0.0.5 b"]);
    index.lost(&object("b", "2", 25));
    assert_eq!(shown(&mut index), [""; 0]);
}

#[test]
fn what_this_process_deleted_does_not_come_back_by_a_late_event() {
    let mut index = Index::default();
    index.learn(known("a", "1", 10));
    let name = known("a", "1", 10).name;
    index.forget(&name, "1");
    index.learn(known("a", "1", 12));
    assert_eq!(shown(&mut index), [""; 0]);
    index.learn(known("b", "2", 20));
    assert_eq!(shown(&mut index), ["10.0.0.5 b"]);
    assert!(index.of_package("", "").len() == 1);
}

#[test]
fn what_a_new_list_does_not_have_is_gone_and_what_was_made_since_stays() {
    let mut index = Index::default();
    assert!(!index.is_synced());
    index.learn(known("a", "1", 10));
    index.list_begins(Listed::Leases);
    index.list_ends(Listed::Leases);
    assert_eq!(shown(&mut index), [""; 0]);
    index.list_begins(Listed::Leases);
    // Posted by this process while the list was on its way.
    index.learn(known("b", "2", 20));
    index.list_ends(Listed::Leases);
    assert_eq!(shown(&mut index), ["10.0.0.5 b"]);
    assert!(!index.is_synced(), "there are two lists");
    index.list_begins(Listed::Ledgers);
    index.list_ends(Listed::Ledgers);
    assert!(index.is_synced());
}

#[test]
fn after_a_reading_anew_only_what_is_there_or_younger_stays() {
    let mut index = Index::default();
    index.learn(known("a", "1", 10));
    let name = known("a", "1", 10).name;
    let there = BTreeSet::from([name.clone()]);
    let before = index.versions();
    index.only(&before, &there);
    assert_eq!(shown(&mut index), ["10.0.0.5 a"]);
    // Made again by this process while the list was on its way.
    index.learn(known("b", "2", 20));
    index.only(&before, &BTreeSet::new());
    assert_eq!(shown(&mut index), ["10.0.0.5 b"]);
    let before = index.versions();
    index.only(&before, &BTreeSet::new());
    assert_eq!(shown(&mut index), [""; 0]);
}

#[test]
fn a_checked_range_goes_before_an_address_and_an_unchecked_one_behind_it() {
    for checked in [true, false] {
        for range_first in [true, false] {
            let mut index = Index::default();
            let range = record("10.0.0.0-10.0.0.9", "r", checked);
            if range_first {
                index.learn_ledger(ledger(5, std::slice::from_ref(&range)));
            }
            index.learn(known("a", "1", 10));
            if !range_first {
                index.learn_ledger(ledger(5, std::slice::from_ref(&range)));
            }
            let counts = if checked {
                "10.0.0.0-10.0.0.9 r"
            } else {
                "10.0.0.5 a"
            };
            assert_eq!(shown(&mut index), [counts]);
            let addr = Thing::Addr("10.0.0.5".parse().unwrap());
            assert_eq!(index.counts(&instance(), &addr), !checked);
            // When the one goes, the other counts.
            if checked {
                index.learn_ledger(ledger(11, &[]));
                assert_eq!(shown(&mut index), ["10.0.0.5 a"]);
            } else {
                index.lost(&object("a", "1", 11));
                assert_eq!(shown(&mut index), ["10.0.0.0-10.0.0.9 r"]);
            }
        }
    }
}

#[test]
fn an_older_ledger_changes_nothing() {
    let mut index = Index::default();
    let range = record("10.0.0.0-10.0.0.9", "r", true);
    index.learn_ledger(ledger(7, std::slice::from_ref(&range)));
    index.learn_ledger(ledger(6, &[]));
    assert_eq!(shown(&mut index), ["10.0.0.0-10.0.0.9 r"]);
    index.lost_ledger(&name::of_instance(&instance()));
    assert_eq!(shown(&mut index), [""; 0]);
}
