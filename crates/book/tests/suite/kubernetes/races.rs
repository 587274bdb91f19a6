//! What the watch has not told yet: stores whose view never moves, and an address against the range around it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};

use mooring_api::HostCidr;
use mooring_api::kinds::mooring::ClaimRef;
use mooring_book::{Filter, KubeOptions, KubeStore, Outcome, Store, Txn};
use mooring_ipam::{Refusal, State, Table, Thing, Want};

use super::writers::{claim, pools};
use super::{World, until};
use crate::made::{NOW, TTL, candidate, holder, instance, later, release, thing, win};

impl World {
    /// A store that has seen the first list and hears nothing afterwards: its account may not watch.
    fn blind(&self) -> KubeStore {
        self.blind_with(KubeOptions::default())
    }

    fn blind_with(&self, options: KubeOptions) -> KubeStore {
        let role = "apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: blind}
rules:
- {apiGroups: [mooring.dev], resources: [ipleases, prefixledgers], verbs: [get, list, create, update, delete]}
- {apiGroups: [''], resources: [configmaps], verbs: [get, list, create, update, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: blind}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: blind}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: blind}]
";
        self.plane.kubectl_stdin(&["apply", "-f", "-"], role).ok();
        let path = self.plane.user_kubeconfig("blind", &[]);
        until("the account has its rights", || {
            let may = [
                "auth",
                "can-i",
                "create",
                "ipleases.mooring.dev",
                "--as",
                "blind",
            ];
            let said = self.plane.kubectl(&may);
            said.stdout
                .starts_with("yes")
                .then_some(())
                .ok_or(said.stdout)
        });
        let store = KubeStore::from_kubeconfig(&path, options).unwrap();
        store.synced().unwrap();
        store
    }
}

fn fixed(text: &str) -> HostCidr {
    text.parse().unwrap()
}

#[test]
fn a_store_that_has_not_heard_of_a_lease_still_does_not_get_it() {
    let Some(world) = World::new() else { return };
    let (seeing, blind) = (world.store(), world.blind());
    let mut wants = claim(holder(1), Want::Address);
    wants.fixed = Some(fixed("10.0.0.9/22"));
    let first = seeing
        .take_now(&pools(), &wants, None, NOW)
        .unwrap()
        .unwrap();
    // Nobody told it.
    assert_eq!(blind.claimed().unwrap(), []);
    let mut other = wants.clone();
    other.holder = holder(2);
    match blind.take_now(&pools(), &other, None, NOW).unwrap() {
        Err(Refusal::Held { by, .. }) => assert_eq!(by.holder, holder(1)),
        outcome => panic!("{outcome:?}"),
    }
    // The same holder has it, whoever asks.
    let again = blind.take_now(&pools(), &wants, None, later(5)).unwrap();
    assert_eq!(again.unwrap(), first);
    assert_eq!(seeing.leases(&Filter::default()).unwrap(), [first]);
}

#[test]
fn a_holder_gets_its_own_lease_again_from_a_store_that_has_not_heard_of_it() {
    let Some(world) = World::new() else { return };
    let (seeing, blind) = (world.store(), world.blind());
    let wants = claim(holder(1), Want::Address);
    let first = seeing
        .take_now(&pools(), &wants, None, NOW)
        .unwrap()
        .unwrap();
    let again = blind
        .take_now(&pools(), &wants, None, NOW)
        .unwrap()
        .unwrap();
    assert_eq!(again, first);
    let mut txn = blind.begin(NOW).unwrap();
    let lease = win(&mut *txn, &first.thing.to_string(), &holder(1));
    assert_eq!(lease.state, State::Held);
}

#[test]
fn a_new_leader_reads_what_the_last_one_did_before_it_offers_anything() {
    let Some(world) = World::new() else { return };
    let term = Arc::new(AtomicU64::new(0));
    let asked = Arc::clone(&term);
    let options = KubeOptions {
        term: Some(Arc::new(move || asked.load(Ordering::SeqCst))),
        ..KubeOptions::default()
    };
    let (last, next) = (world.store(), world.blind_with(options));
    let mut taken = Vec::new();
    for n in 1..=3 {
        let wants = claim(holder(n), Want::Address);
        let lease = last.take_now(&pools(), &wants, None, NOW).unwrap();
        taken.push(lease.unwrap().thing);
    }
    let seen = |store: &KubeStore| {
        let mut seen = Vec::new();
        let mut look = |table: &Table| seen = table.leases().map(|l| l.thing).collect();
        store.with_table(&instance(), &mut look).unwrap();
        seen
    };
    assert_eq!(seen(&next), [], "a follower's watch is behind");
    term.store(1, Ordering::SeqCst);
    taken.sort();
    assert_eq!(seen(&next), taken);
    // What goes away between two terms is known too.
    let gone = last.leases(&Filter::default()).unwrap().remove(0);
    let rest = mooring_api::Span(0);
    last.release_now(&gone.instance, &gone.thing, &gone.holder, rest, NOW)
        .unwrap();
    assert_eq!(
        seen(&next),
        taken,
        "once per term is enough: a leader writes alone"
    );
    term.store(2, Ordering::SeqCst);
    taken.retain(|thing| *thing != gone.thing);
    assert_eq!(seen(&next), taken);
}

#[test]
fn a_blind_transaction_loses_to_what_it_has_not_heard_of() {
    let Some(world) = World::new() else { return };
    let (seeing, blind) = (world.store(), world.blind());
    let mut txn = seeing.begin(NOW).unwrap();
    win(&mut *txn, "10.0.0.1", &holder(1));
    win(&mut *txn, "10.0.2.10-10.0.2.19", &holder(2));
    let id = txn.reserve(TTL).unwrap();
    seeing.commit(id, NOW).unwrap();
    let mut txn = blind.begin(NOW).unwrap();
    let lost = |txn: &mut dyn Txn, what: &str| {
        let outcome = txn.try_take(&instance(), &candidate(what), &holder(9));
        assert!(
            matches!(outcome, Ok(Outcome::Lost(_))),
            "{what}: {outcome:?}"
        );
    };
    lost(&mut *txn, "10.0.0.1");
    lost(&mut *txn, "10.0.0.0-10.0.0.9");
    lost(&mut *txn, "10.0.2.12");
    lost(&mut *txn, "10.0.2.19-10.0.2.30");
    lost(&mut *txn, "10.0.0.0/24");
    drop(txn);
    // And nothing of its tries is left.
    assert_eq!(seeing.leases(&Filter::default()).unwrap().len(), 2);
}

#[test]
fn what_another_store_released_is_not_taken_for_held() {
    let Some(world) = World::new() else { return };
    let seeing = world.store();
    let mut wants = claim(holder(1), Want::Address);
    wants.fixed = Some(fixed("10.0.0.9/22"));
    let lease = seeing
        .take_now(&pools(), &wants, None, NOW)
        .unwrap()
        .unwrap();
    let blind = world.blind();
    let free = |n| {
        seeing.release_now(
            &instance(),
            &lease.thing,
            &holder(n),
            mooring_api::Span(0),
            NOW,
        )
    };
    assert!(!free(2).unwrap(), "only its holder gives it back");
    assert!(free(1).unwrap());
    assert!(!free(1).unwrap(), "twice is nothing");
    let mut other = wants.clone();
    other.holder = holder(2);
    seeing
        .take_now(&pools(), &other, None, NOW)
        .unwrap()
        .unwrap();
    // It still believes that it has it.
    assert_eq!(blind.held_now(&instance(), &holder(1)).unwrap(), [lease]);
    match blind.take_now(&pools(), &wants, None, NOW).unwrap() {
        Err(Refusal::Held { by, .. }) => assert_eq!(by.holder, holder(2)),
        outcome => panic!("{outcome:?}"),
    }
}

#[test]
fn a_released_address_rests_and_goes_to_another_afterwards() {
    let Some(world) = World::new() else { return };
    let store = world.store();
    let mut wants = claim(holder(1), Want::Address);
    wants.fixed = Some(fixed("10.0.0.9/22"));
    let lease = store
        .take_now(&pools(), &wants, None, NOW)
        .unwrap()
        .unwrap();
    let rest = mooring_api::Span(100);
    assert!(
        store
            .release_now(&instance(), &lease.thing, &holder(1), rest, NOW)
            .unwrap()
    );
    let mut other = wants.clone();
    other.holder = holder(2);
    let early = store.take_now(&pools(), &other, None, later(99)).unwrap();
    assert!(matches!(early, Err(Refusal::Cooling { .. })), "{early:?}");
    let late = store
        .take_now(&pools(), &other, None, later(100))
        .unwrap()
        .unwrap();
    assert_eq!((late.holder, late.state), (holder(2), State::Held));
    let back = store.take_now(&pools(), &wants, None, later(101)).unwrap();
    assert!(matches!(back, Err(Refusal::Held { .. })));
}

/// An address and a range around it, taken at the same moment by stores that hear nothing.
#[test]
fn an_address_and_a_range_around_it_are_never_both_won() {
    let Some(world) = World::new() else { return };
    let stores = [world.blind(), world.blind()];
    let gate = Barrier::new(2);
    let (mut address, mut range, mut neither) = (0, 0, 0);
    for round in 0..40u32 {
        let addr = format!("10.{round}.0.5");
        let wide = format!("10.{round}.0.0-10.{round}.0.15");
        let take = |store: &KubeStore, what: &str, n: u32| {
            let mut txn = store.begin(NOW).unwrap();
            gate.wait();
            let won = match txn
                .try_take(&instance(), &candidate(what), &holder(n))
                .unwrap()
            {
                Outcome::Won(_) => true,
                Outcome::Lost(_) => false,
            };
            let id = txn.reserve(TTL).unwrap();
            store.commit(id, NOW).unwrap();
            won
        };
        let [one, two] = &stores;
        let (a, r) = std::thread::scope(|scope| {
            let a = scope.spawn(|| take(one, &addr, 1000 + round));
            let r = scope.spawn(|| take(two, &wide, 2000 + round));
            (a.join().unwrap(), r.join().unwrap())
        });
        assert!(!(a && r), "round {round}: both won");
        address += u32::from(a);
        range += u32::from(r);
        neither += u32::from(!a && !r);
    }
    println!("{address} addresses, {range} ranges, {neither} neither");
    assert!(address + range > 0, "somebody wins");
    // By the server's word, too.
    let store = world.store();
    let leases = store.leases(&Filter::default()).unwrap();
    assert_eq!(leases.len(), (address + range) as usize);
}

/// What a process leaves that ended between its POST and its look at the ledger.
#[test]
fn an_address_that_was_posted_into_a_range_too_late_is_void() {
    let Some(world) = World::new() else { return };
    let store = world.store();
    let blind = world.blind();
    let mut wants = claim(holder(1), Want::Address);
    wants.fixed = Some(fixed("10.0.2.12/22"));
    let lease = store
        .take_now(&pools(), &wants, None, NOW)
        .unwrap()
        .unwrap();
    let name = "-o=jsonpath={.items[0]}";
    let json = world
        .plane
        .kubectl(&["get", "ipleases", name])
        .ok()
        .to_owned();
    assert!(
        store
            .release_now(
                &instance(),
                &lease.thing,
                &holder(1),
                mooring_api::Span(0),
                NOW
            )
            .unwrap()
    );
    let mut txn = store.begin(NOW).unwrap();
    win(&mut *txn, "10.0.2.10-10.0.2.19", &holder(2));
    let id = txn.reserve(TTL).unwrap();
    store.commit(id, NOW).unwrap();
    let mut object: serde_json::Value = serde_json::from_str(&json).unwrap();
    for key in [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "managedFields",
        "generation",
    ] {
        object["metadata"].as_object_mut().unwrap().remove(key);
    }
    world
        .plane
        .kubectl_stdin(&["create", "-f", "-"], &object.to_string())
        .ok();
    until("the store hears of it", || {
        let all = store.claimed().unwrap();
        (all.len() == 2).then_some(()).ok_or(format!("{all:?}"))
    });
    // It counts for nobody: not for its holder, not in lists.
    for store in [&store, &blind] {
        match store.take_now(&pools(), &wants, None, NOW).unwrap() {
            Err(Refusal::Held { by, .. }) => assert_eq!(by.holder, holder(2)),
            outcome => panic!("{outcome:?}"),
        }
    }
    let left = store.leases(&Filter::default()).unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].thing, thing("10.0.2.10-10.0.2.19"));
}

#[test]
fn tidying_puts_away_what_has_ended_and_nothing_else() {
    let Some(world) = World::new() else { return };
    let store = world.store();
    let mut txn = store.begin(NOW).unwrap();
    win(&mut *txn, "10.0.0.1", &holder(1));
    win(&mut *txn, "10.0.0.2", &holder(2));
    let id = txn.reserve(TTL).unwrap();
    store.commit(id, NOW).unwrap();
    let mut txn = store.begin(NOW).unwrap();
    release(&mut *txn, "10.0.0.1", 50);
    let id = txn.reserve(TTL).unwrap();
    store.commit(id, NOW).unwrap();
    assert_eq!(store.tidy(later(49)).unwrap(), 0);
    assert_eq!(store.tidy(later(50)).unwrap(), 1);
    let left = store.leases(&Filter::default()).unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].thing, Thing::Addr("10.0.0.2".parse().unwrap()));
}

/// Two processes that served one holder at the same time, and whose views differed.
#[test]
fn a_holder_that_came_to_two_addresses_keeps_the_older_one() {
    let Some(world) = World::new() else { return };
    let seeing = world.store();
    let wants = claim(holder(1), Want::Address);
    let first = seeing.take_now(&pools(), &wants, None, NOW).unwrap();
    let first = first.unwrap().thing;
    let free = |thing: &Thing, n: u32| {
        let none = mooring_api::Span(0);
        let gone = seeing.release_now(&instance(), thing, &holder(n), none, NOW);
        assert!(gone.unwrap());
    };
    free(&first, 1);
    let mut other = claim(holder(2), Want::Address);
    other.fixed = Some(fixed(&format!("{first}/22")));
    seeing
        .take_now(&pools(), &other, None, NOW)
        .unwrap()
        .unwrap();
    let blind = world.blind();
    free(&first, 2);
    // It still sees the address of holder 2, and so comes to another one.
    let second = blind.take_now(&pools(), &wants, None, NOW).unwrap();
    let second = second.unwrap();
    assert_ne!(second.thing, first);
    until("the other store hears of it", || {
        let all = seeing.claimed().unwrap();
        (all.len() == 1).then_some(()).ok_or(format!("{all:?}"))
    });
    // The other way round, by hand: what a store does that has not heard of it.
    let mut txn = seeing.begin(later(1)).unwrap();
    win(&mut *txn, &first.to_string(), &holder(1));
    let id = txn.reserve(TTL).unwrap();
    seeing.commit(id, later(1)).unwrap();
    assert_eq!(seeing.leases(&Filter::default()).unwrap().len(), 2);
    // In the subnet of the pool, as a direct take would have it.
    let subnet = Some("10.0.0.0/22".parse().unwrap());
    let mut moved = candidate(&first.to_string());
    (moved.subnet, moved.gateway) = (subnet, second.gateway);
    let mut txn = seeing.begin(later(1)).unwrap();
    txn.try_take(&instance(), &moved, &holder(1)).unwrap();
    let id = txn.reserve(TTL).unwrap();
    seeing.commit(id, later(1)).unwrap();
    let settled = seeing.take_now(&pools(), &wants, None, later(2)).unwrap();
    assert_eq!(settled.unwrap(), second);
    assert_eq!(seeing.leases(&Filter::default()).unwrap(), [second]);
}

#[test]
fn a_lease_names_who_asked_for_it_and_keeps_what_a_pool_keeps() {
    let Some(world) = World::new() else { return };
    let store = world.store();
    let asked_by = ClaimRef {
        api_version: "ipam.resource.nephio.org/v1alpha1".to_owned(),
        kind: "IPClaim".to_owned(),
        namespace: "default".to_owned(),
        name: "upf-n3".to_owned(),
        uid: "1-2-3".to_owned(),
    };
    let mut pools = pools();
    pools.prefixes[0].kept.push(mooring_ipam::Kept {
        range: "10.0.1.77-10.0.1.77".parse().unwrap(),
        claim: "upf-n3".to_owned(),
        cluster: String::new(),
    });
    let mut wants = claim(holder(1), Want::Address);
    wants.names = vec!["upf-n3".to_owned()];
    let lease = store.take_now(&pools, &wants, Some(&asked_by), NOW);
    let lease = lease.unwrap().unwrap();
    assert_eq!(lease.thing, thing("10.0.1.77"));
    let claimed = store.claimed().unwrap();
    assert_eq!(claimed[0].claim.as_ref(), Some(&asked_by));
    let shown = [
        "get",
        "ipleases",
        "-l",
        "mooring.dev/package=upf",
        "--no-headers",
    ];
    let shown = world.plane.kubectl(&shown);
    let columns: Vec<&str> = shown.ok().split_whitespace().collect();
    assert_eq!(columns[1..3], ["vpc-ran", "10.0.1.77"]);
    assert!(
        shown.ok().contains("edge / upf / free5gc / n1"),
        "{shown:?}"
    );
    // Asking again writes nothing.
    let version = [
        "get",
        "ipleases",
        "-o",
        "jsonpath={.items[*].metadata.resourceVersion}",
    ];
    let before = world.plane.kubectl(&version);
    store
        .take_now(&pools, &wants, Some(&asked_by), later(9))
        .unwrap()
        .unwrap();
    assert_eq!(world.plane.kubectl(&version), before);
}

#[test]
fn a_book_of_a_thousand_leases_is_restored_in_parts() {
    let Some(world) = World::new() else { return };
    let store = world.store();
    let lease = |n: u32| mooring_ipam::Lease {
        instance: instance(),
        thing: thing(&format!("10.7.{}.{}", n / 250, n % 250 + 1)),
        subnet: Some("10.7.0.0/16".parse().unwrap()),
        gateway: None,
        holder: holder(n),
        state: State::Held,
        since: NOW,
    };
    let all: Vec<_> = (0..900).map(lease).collect();
    let restored = store.restore(&all, &[], NOW).unwrap();
    assert_eq!(restored.added, 900);
    let again = world.store().restore(&all, &[], NOW).unwrap();
    assert_eq!((again.added, again.unchanged), (0, 900));
}
