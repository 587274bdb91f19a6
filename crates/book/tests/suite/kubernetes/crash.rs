//! Killed before every write of two transactions: nothing is half done, nothing leaks, nothing is handed out twice.

use mooring_book::{Filter, Outcome, Store, Txn};
use mooring_ipam::{State, Want};

use super::child::{Running, Told};
use super::writers::{claim, pools};
use super::{World, until};
use crate::made::{NOW, TTL, candidate, defects, holder, instance, later, package, release, win};

fn first(txn: &mut dyn Txn) {
    win(txn, "10.0.0.1", &holder(1));
    win(txn, "10.0.0.2", &holder(2));
    win(txn, "10.0.2.10-10.0.2.19", &holder(3));
    win(txn, "vlan 100", &holder(4));
    txn.note_package(package("upf", "here")).unwrap();
}

fn second(txn: &mut dyn Txn) {
    release(txn, "10.0.0.1", 0);
    release(txn, "10.0.2.10-10.0.2.19", 50);
    win(txn, "10.0.0.7", &holder(7));
    win(txn, "10.0.1.0/24", &holder(8));
    // Taken over and not written before the reserve: it rests, and is its last holder's.
    win(txn, "10.0.0.9", &holder(9));
    txn.note_package(package("upf", "there")).unwrap();
}

/// Not a test of its own: what a child process does.
#[test]
#[ignore = "child: other tests start it as a process"]
fn child() {
    let told = Told::new();
    let store = &told.store;
    for (n, work) in [first as fn(&mut dyn Txn), second].into_iter().enumerate() {
        let mut txn = store.begin(later(n as u64)).unwrap();
        work(&mut *txn);
        let id = txn.reserve(TTL).unwrap();
        println!("\nRESERVED {}", n + 1);
        store.commit(id, later(n as u64)).unwrap();
        println!("\nCOMMITTED {}", n + 1);
    }
}

/// `thing holder` of what is held, and where the package is.
fn state(store: &dyn Store) -> (Vec<String>, Option<String>) {
    let leases = store.leases(&Filter::default()).unwrap();
    let held = leases.iter().filter(|l| l.state == State::Held);
    let held = held.map(|l| format!("{} {}", l.thing, l.holder.interface));
    let packages = store.packages().unwrap();
    (held.collect(), packages.first().map(|p| p.path.clone()))
}

#[test]
fn killed_before_every_write_of_two_transactions() {
    let after_none: Vec<String> = vec![];
    let after_first = [
        "10.0.0.1 n1",
        "10.0.0.2 n2",
        "10.0.2.10-10.0.2.19 n3",
        "VLAN 100 n4",
    ];
    let after_second = [
        "10.0.0.2 n2",
        "10.0.0.7 n7",
        "10.0.0.9 n9",
        "10.0.1.0/24 n8",
        "VLAN 100 n4",
    ];
    let mut tried = 0;
    loop {
        let Some(world) = World::new() else { return };
        let store = world.store();
        // 10.0.0.9 rests.
        let mut txn = store.begin(NOW).unwrap();
        win(&mut *txn, "10.0.0.9", &holder(9));
        let id = txn.reserve(TTL).unwrap();
        store.commit(id, NOW).unwrap();
        let mut txn = store.begin(NOW).unwrap();
        release(&mut *txn, "10.0.0.9", 5000);
        let id = txn.reserve(TTL).unwrap();
        store.commit(id, NOW).unwrap();

        let child = Running::start_until(&world, "crash::child", "", tried, "-KILL");
        let (said, whole, errors) = child.join("COMMITTED ");
        let (held, path) = state(&store);
        let done = said.len();
        // What was told is so; what was not told happened as a whole or not at all.
        let is = |at: usize| match at {
            0 => held == after_none && path.is_none(),
            1 => held == after_first && path.as_deref() == Some("here"),
            _ => held == after_second && path.as_deref() == Some("there"),
        };
        assert!(
            is(done) || is(done + 1),
            "write {tried}: {done} told, {held:?} {path:?}"
        );
        // Nothing stays reserved, and everything that is free can be had.
        let much_later = later(TTL.0 * 20);
        drop(store.begin(much_later).unwrap());
        assert_eq!(store.pending().unwrap(), []);
        let leases = store.leases(&Filter::default()).unwrap();
        let reserved = |l: &&mooring_ipam::Lease| matches!(l.state, State::Reserved { .. });
        assert_eq!(leases.iter().find(reserved), None, "write {tried}");
        let free = [
            "10.0.0.1",
            "10.0.0.2",
            "10.0.0.7",
            "10.0.1.0/24",
            "10.0.2.12",
            "vlan 100",
        ];
        let mut txn = store.begin(much_later).unwrap();
        for (n, what) in free.into_iter().enumerate() {
            let other = holder(100 + u32::try_from(n).unwrap());
            let outcome = txn.try_take(&instance(), &candidate(what), &other).unwrap();
            let lost = matches!(outcome, Outcome::Lost(_));
            let range = candidate(what).thing.range();
            let is_held = leases.iter().any(|l| {
                let overlaps = match (l.thing.range(), range) {
                    (Some(a), Some(b)) => a.overlaps(&b),
                    _ => l.thing == candidate(what).thing,
                };
                l.state == State::Held && overlaps
            });
            assert_eq!(lost, is_held, "write {tried}: {what}: {outcome:?}");
        }
        drop(txn);
        assert_eq!(defects(&store, much_later).unwrap(), [""; 0]);
        if whole {
            assert_eq!(done, 2);
            break;
        }
        assert!(!errors.contains("panicked"), "{errors}");
        tried += 1;
    }
    println!("{tried} points");
    assert!(tried > 20, "only {tried} points were tried");
}

#[test]
fn a_draft_that_was_dropped_leaves_no_object() {
    let Some(world) = World::new() else { return };
    let store = world.store();
    let mut txn = store.begin(NOW).unwrap();
    first(&mut *txn);
    // Others see it and cannot have it.
    let seen = world.plane.kubectl(&["get", "ipleases", "-o", "name"]);
    assert_eq!(seen.ok().lines().count(), 3);
    drop(txn);
    let seen = world.plane.kubectl(&["get", "ipleases", "-o", "name"]);
    assert_eq!(seen.ok(), "");
    let ledger = world.plane.kubectl(&[
        "get",
        "prefixledgers",
        "-o",
        "jsonpath={.items[*].spec.leases}",
    ]);
    assert_eq!(ledger.ok(), "");
    assert!(store.pending().unwrap().is_empty());
}

/// Not a test of its own: takes a range directly.
#[test]
#[ignore = "child: other tests start it as a process"]
fn range_child() {
    let told = Told::new();
    let claim = claim(holder(1), Want::Range { count: 16 });
    told.store
        .take_now(&pools(), &claim, None, NOW)
        .unwrap()
        .unwrap();
    println!("\nTOOK it");
}

/// Killed between the two writes of a range: it is nobody's until its holder asks again, or its end comes.
#[test]
fn a_range_that_was_not_looked_at_is_not_held() {
    let Some(world) = World::new() else { return };
    let store = world.store();
    let child = Running::start_until(&world, "crash::range_child", "", 1, "-KILL");
    let (said, whole, _) = child.join("TOOK ");
    assert!(!whole && said.is_empty());
    let reserved = |store: &dyn Store| {
        let leases = store.leases(&Filter::default()).unwrap();
        let is = |l: &&mooring_ipam::Lease| matches!(l.state, State::Reserved { .. });
        leases.iter().filter(is).count()
    };
    until("the store hears of it", || match reserved(&store) {
        1 => Ok(()),
        count => Err(count.to_string()),
    });
    assert_eq!(store.tidy(later(1)).unwrap(), 0);
    assert_eq!(reserved(&store), 1);
    // Its holder gets a range, and it is looked at this time.
    let wants = claim(holder(1), Want::Range { count: 16 });
    let got = store.take_now(&pools(), &wants, None, later(2)).unwrap();
    assert_eq!(got.unwrap().state, State::Held);
    let leases = store.leases(&Filter::default()).unwrap();
    assert_eq!(leases.len(), 1, "{leases:?}");
    let ledger = [
        "get",
        "prefixledgers",
        "-o",
        "jsonpath={.items[*].spec.leases[*].checked}",
    ];
    assert_eq!(world.plane.kubectl(&ledger).ok(), "true");

    // Another one, whose holder never comes back.
    let none = mooring_api::Span(0);
    let gone = store.release_now(&instance(), &leases[0].thing, &holder(1), none, NOW);
    assert!(gone.unwrap());
    let child = Running::start_until(&world, "crash::range_child", "", 1, "-KILL");
    child.join("TOOK ");
    until("the store hears of it", || match reserved(&store) {
        1 => Ok(()),
        count => Err(count.to_string()),
    });
    store.tidy(later(600)).unwrap();
    assert_eq!(store.leases(&Filter::default()).unwrap(), []);
}
