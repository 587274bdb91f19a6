//! `allocate`: the loop from candidates to a lease, over both stores.

use std::collections::BTreeMap;
use std::path::Path;

use mooring_api::{Cidr, Code, Family, ObjectRef, Selector, Span, Time};
use mooring_book::{FileStore, MemoryStore, Store, allocate};
use mooring_ipam::{
    Claim, Holder, Instance, Kind, Lease, Order, Pools, Prefix, Refusal, State, TxnId, Want,
};

use super::disk::Disk;
use super::made::{NOW, TTL, defects, holder, instance, later};

/// One instance with these prefixes, each with the first host as gateway.
fn pools(cidrs: &[&str]) -> Pools {
    let origin = ObjectRef::new("infra.nephio.org/v1alpha1", "NetworkInstance", "vpc-ran");
    let prefix = |text: &&str| {
        let cidr: Cidr = text.parse().unwrap();
        Prefix {
            origin: origin.clone(),
            field: "spec.prefix".to_owned(),
            instance: instance(),
            cidr,
            kind: Kind::Network,
            labels: BTreeMap::new(),
            gateway: Some(cidr.hosts().first()),
            ranges: Vec::new(),
            exclude: Vec::new(),
            cool_down: Span(100),
            kept: Vec::new(),
            drain: false,
        }
    };
    let known = Instance {
        origin: origin.clone(),
        key: instance(),
        isolated: false,
        aggregates: Vec::new(),
    };
    Pools {
        instances: BTreeMap::from([(instance(), known)]),
        prefixes: cidrs.iter().map(prefix).collect(),
    }
}

fn claim(holder: Holder) -> Claim {
    Claim {
        instance: instance(),
        kind: Kind::Network,
        want: Want::Address,
        selector: Selector::default(),
        fixed: None,
        before: None,
        names: Vec::new(),
        order: Order::LowestFirst,
        holder,
    }
}

/// Renders: every holder allocates, in this order, in one transaction.
fn render(
    store: &dyn Store,
    pools: &Pools,
    holders: &[Holder],
    now: Time,
) -> (TxnId, Vec<Result<Lease, Refusal>>) {
    let mut txn = store.begin(now).unwrap();
    let mut got = Vec::new();
    for holder in holders {
        got.push(allocate(&mut *txn, pools, &claim(holder.clone())).unwrap());
    }
    (txn.reserve(TTL).unwrap(), got)
}

fn addresses(got: &[Result<Lease, Refusal>]) -> Vec<String> {
    let said = |one: &Result<Lease, Refusal>| match one {
        Ok(lease) => lease.thing.to_string(),
        Err(refusal) => refusal.code().to_string(),
    };
    got.iter().map(said).collect()
}

fn over_both(test: fn(&dyn Store)) {
    test(&MemoryStore::new());
    test(&FileStore::with_backend(Path::new("(disk)"), Disk::default()).unwrap());
}

#[test]
fn a_holder_gets_the_same_address_after_holes_were_made() {
    over_both(|store| {
        let pools = pools(&["10.0.0.0/29"]);
        let all: Vec<Holder> = (1..=5).map(holder).collect();
        let (id, got) = render(store, &pools, &all, NOW);
        assert_eq!(
            addresses(&got),
            ["10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6"]
        );
        store.commit(id, NOW).unwrap();
        let mut txn = store.begin(later(1)).unwrap();
        for lease in got[..2].iter().flatten() {
            txn.release(&lease.instance, &lease.thing, Span(100))
                .unwrap();
        }
        let id = txn.reserve(TTL).unwrap();
        store.commit(id, later(1)).unwrap();
        // Others, in another order, before and after the cool-down.
        let again = [holder(5), holder(3), holder(4), holder(9)];
        let (id, got) = render(store, &pools, &again, later(2));
        assert_eq!(
            addresses(&got),
            ["10.0.0.6", "10.0.0.4", "10.0.0.5", "PoolExhausted"]
        );
        store.abort(id, later(2)).unwrap();
        // The one who left comes back first: its own address, though a lower one has rested too.
        let (id, got) = render(store, &pools, &[holder(2), holder(9)], later(200));
        assert_eq!(addresses(&got), ["10.0.0.3", "10.0.0.2"]);
        store.commit(id, later(200)).unwrap();
        assert_eq!(defects(store, later(200)).unwrap(), [""; 0]);
    });
}

#[test]
fn a_render_after_a_crash_takes_over_its_reservations() {
    over_both(|store| {
        let pools = pools(&["10.0.0.0/24"]);
        let (_, other) = render(store, &pools, &[holder(1)], NOW);
        let (_, crashed) = render(store, &pools, &[holder(7), holder(8)], NOW);
        assert_eq!(addresses(&other), ["10.0.0.2"]);
        let (id, got) = render(store, &pools, &[holder(8), holder(7)], later(1));
        let mut expected = addresses(&crashed);
        expected.reverse();
        assert_eq!(addresses(&got), expected);
        store.commit(id, later(1)).unwrap();
        // What expires of the crashed one is nothing of ours.
        drop(store.begin(later(TTL.0)).unwrap());
        let left = store.leases(&mooring_book::Filter::default()).unwrap();
        assert!(left.iter().all(|l| l.state == State::Held));
        assert_eq!(left.len(), 2);
    });
}

#[test]
fn what_a_transaction_gives_back_is_not_offered_to_others_in_it() {
    over_both(|store| {
        let pools = pools(&["10.0.0.0/30"]);
        let (id, got) = render(store, &pools, &[holder(1)], NOW);
        store.commit(id, NOW).unwrap();
        let held = got.into_iter().next().unwrap().unwrap();
        let mut txn = store.begin(later(1)).unwrap();
        txn.release(&held.instance, &held.thing, Span(0)).unwrap();
        let refused = allocate(&mut *txn, &pools, &claim(holder(2))).unwrap();
        assert_eq!(refused.unwrap_err().code(), Code::PoolExhausted);
        let id = txn.reserve(TTL).unwrap();
        store.commit(id, later(1)).unwrap();
        let (_, got) = render(store, &pools, &[holder(2)], later(1));
        assert_eq!(addresses(&got), ["10.0.0.2"]);
    });
}

#[test]
fn both_families_blocks_ranges_and_vlans_are_allocated() {
    over_both(|store| {
        let pools = pools(&["10.0.0.0/24", "fd00::/64"]);
        let mut txn = store.begin(NOW).unwrap();
        let mut take = |n: u32, family: Family, want: Want| {
            let holder = Holder {
                family,
                ..holder(n)
            };
            let claim = Claim {
                want,
                ..claim(holder)
            };
            let lease = allocate(&mut *txn, &pools, &claim).unwrap().unwrap();
            let again = allocate(&mut *txn, &pools, &claim).unwrap().unwrap();
            assert_eq!(lease.thing, again.thing);
            lease.thing.to_string()
        };
        assert_eq!(take(1, Family::V4, Want::Address), "10.0.0.2");
        assert_eq!(take(1, Family::V6, Want::Address), "fd00::2");
        let range = take(2, Family::V4, Want::Range { count: 10 });
        assert_eq!(range, "10.0.0.3-10.0.0.12");
        assert_eq!(take(3, Family::V4, Want::Vlan { id: None }), "VLAN 2");
        drop(txn);
        assert_eq!(defects(store, NOW).unwrap(), [""; 0]);
    });
}

#[test]
fn a_refusal_is_the_persons_and_an_instance_nobody_knows_is_one() {
    over_both(|store| {
        let (id, got) = render(store, &Pools::default(), &[holder(1)], NOW);
        assert_eq!(addresses(&got), ["UnknownNetworkInstance"]);
        store.commit(id, NOW).unwrap();
        assert!(
            store
                .leases(&mooring_book::Filter::default())
                .unwrap()
                .is_empty()
        );
    });
}
