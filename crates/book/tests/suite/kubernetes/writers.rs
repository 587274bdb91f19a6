//! Sixteen processes on one pool.

use std::collections::{BTreeMap, BTreeSet};

use mooring_api::{Cidr, Family, ObjectRef, Selector, Span};
use mooring_book::{Filter, Store};
use mooring_ipam::{Claim, Holder, Instance, Kind, Order, Pools, Prefix, Refusal, State, Want};

use super::World;
use super::child::{Running, Told};
use crate::made::{NOW, defects, holder_of, instance};

const WRITERS: usize = 16;
const EACH: u32 = 25;

/// One instance with a network and a pool of blocks.
pub(super) fn pools() -> Pools {
    let origin = ObjectRef::new("infra.nephio.org/v1alpha1", "NetworkInstance", "vpc-ran");
    let prefix = |text: &str, kind: Kind| {
        let cidr: Cidr = text.parse().unwrap();
        Prefix {
            origin: origin.clone(),
            field: "spec.prefix".to_owned(),
            instance: instance(),
            cidr,
            kind,
            labels: BTreeMap::new(),
            gateway: (kind == Kind::Network).then(|| cidr.hosts().first()),
            ranges: Vec::new(),
            exclude: Vec::new(),
            cool_down: Span(0),
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
        prefixes: vec![
            prefix("10.0.0.0/22", Kind::Network),
            prefix("10.9.0.0/22", Kind::Pool),
        ],
    }
}

pub(super) fn claim(holder: Holder, want: Want) -> Claim {
    let kind = match want {
        Want::Block { .. } => Kind::Pool,
        _ => Kind::Network,
    };
    Claim {
        holder,
        instance: instance(),
        kind,
        want,
        selector: Selector::default(),
        fixed: None,
        before: None,
        names: Vec::new(),
        order: Order::LowestFirst,
    }
}

/// Not a test of its own: what a child process does.
#[test]
#[ignore = "child: other tests start it as a process"]
fn child() {
    let told = Told::wait();
    for n in 0..EACH {
        let claim = claim(holder_of(&told.name, n), Want::Address);
        let got = told.store.take_now(&pools(), &claim, None, NOW).unwrap();
        println!("\nTOOK {}", got.unwrap().thing);
    }
}

/// Not a test of its own: one that wants prefixes of several lengths, more than there are.
#[test]
#[ignore = "child: other tests start it as a process"]
fn prefix_child() {
    let told = Told::wait();
    for (n, len) in [28, 26, 27, 25, 28, 24].into_iter().enumerate() {
        let holder = holder_of(&told.name, u32::try_from(n).unwrap());
        let claim = claim(holder, Want::Block { len });
        match told.store.take_now(&pools(), &claim, None, NOW).unwrap() {
            Ok(lease) => println!("\nTOOK {}", lease.thing),
            Err(Refusal::Exhausted { .. } | Refusal::Held { .. }) => println!("\nFULL"),
            Err(refusal) => panic!("{refusal:?}"),
        }
    }
}

/// Not a test of its own: one that serves the same holder as all the others.
#[test]
#[ignore = "child: other tests start it as a process"]
fn same_child() {
    let told = Told::wait();
    let claim = claim(holder_of("same", 1), Want::Address);
    for _ in 0..5 {
        let got = told.store.take_now(&pools(), &claim, None, NOW).unwrap();
        println!("\nTOOK {}", got.unwrap().thing);
    }
}

/// Starts all of them, lets them begin at once, and gives what each said.
fn together(world: &World, body: &str) -> Vec<Vec<String>> {
    let mut all: Vec<Running> = (0..WRITERS)
        .map(|n| Running::start(world, body, &format!("w{n}")))
        .collect();
    for child in &mut all {
        child.hear("READY");
    }
    all.iter_mut().for_each(Running::go);
    let mut said = Vec::new();
    for child in all {
        let (took, whole, errors) = child.join("TOOK ");
        assert!(whole, "{errors}");
        said.push(took);
    }
    said
}

/// How many requests of a kind the server has answered with success, by its own count.
fn answered(world: &World, resource: &str) -> BTreeMap<String, u64> {
    let metrics = world.plane.kubectl(&["get", "--raw", "/metrics"]);
    let mut counts = BTreeMap::new();
    for line in metrics.ok().lines() {
        let of_it = line.starts_with("apiserver_request_total{")
            && line.contains(&format!("resource=\"{resource}\""))
            && line.contains("code=\"20");
        let verb = line
            .split("verb=\"")
            .nth(1)
            .and_then(|v| v.split('"').next());
        let count: Option<u64> = line.rsplit(' ').next().and_then(|n| n.parse().ok());
        if let (true, Some(verb), Some(count)) = (of_it, verb, count) {
            *counts.entry(verb.to_owned()).or_default() += count;
        }
    }
    counts
}

#[test]
fn sixteen_processes_take_every_address_once_with_one_write_each() {
    let Some(world) = World::new() else { return };
    let before = answered(&world, "ipleases");
    let said = together(&world, "writers::child");
    let after = answered(&world, "ipleases");
    let taken: BTreeSet<&String> = said.iter().flatten().collect();
    assert_eq!(taken.len(), WRITERS * EACH as usize, "an address twice");
    let store = world.store();
    let leases = store.leases(&Filter::default()).unwrap();
    let held: BTreeSet<String> = leases
        .iter()
        .filter(|lease| lease.state == State::Held)
        .map(|lease| lease.thing.to_string())
        .collect();
    assert_eq!(held.iter().collect::<BTreeSet<_>>(), taken);
    assert_eq!(leases.len(), taken.len());
    assert_eq!(defects(&store, NOW).unwrap(), [""; 0]);
    let more = |verb: &str| {
        let count = |of: &BTreeMap<String, u64>| of.get(verb).copied().unwrap_or_default();
        count(&after) - count(&before)
    };
    assert_eq!(more("POST"), taken.len() as u64, "one write per address");
    for verb in ["PUT", "PATCH", "APPLY", "DELETE"] {
        assert_eq!(more(verb), 0, "{verb}");
    }
}

#[test]
fn sixteen_processes_never_get_overlapping_prefixes() {
    let Some(world) = World::new() else { return };
    let said = together(&world, "writers::prefix_child");
    let taken: Vec<Cidr> = said.iter().flatten().map(|t| t.parse().unwrap()).collect();
    for (at, one) in taken.iter().enumerate() {
        for other in &taken[at + 1..] {
            assert!(
                !one.covers(other) && !other.covers(one),
                "{one} and {other}"
            );
        }
    }
    let store = world.store();
    let leases = store.leases(&Filter::default()).unwrap();
    let mut held: Vec<String> = leases.iter().map(|l| l.thing.to_string()).collect();
    let mut told: Vec<String> = taken.iter().map(ToString::to_string).collect();
    held.sort();
    told.sort();
    assert_eq!(
        held, told,
        "what is held is what was said, and nothing is left behind"
    );
    assert!(leases.iter().all(|l| l.state == State::Held));
    // 16 times (16 + 64 + 32 + 128 + 16 + 256) addresses were wanted, 1024 there are.
    assert!(
        taken.len() >= 16 && taken.len() < WRITERS * 6,
        "{}",
        taken.len()
    );
    let sum: u128 = taken.iter().map(|c| c.range().count()).sum();
    assert!(sum > 900, "{sum} of 1024 addresses were handed out");
}

#[test]
fn sixteen_processes_for_one_holder_come_to_one_address() {
    let Some(world) = World::new() else { return };
    let said = together(&world, "writers::same_child");
    let last: BTreeSet<&String> = said.iter().filter_map(|s| s.last()).collect();
    let store = world.store();
    let claim = claim(holder_of("same", 1), Want::Address);
    let got = store
        .take_now(&pools(), &claim, None, NOW)
        .unwrap()
        .unwrap();
    assert_eq!(last, BTreeSet::from([&got.thing.to_string()]));
    assert_eq!(store.leases(&Filter::default()).unwrap(), [got]);
}

#[test]
fn a_single_writer_keeps_the_order_of_the_claim() {
    let Some(world) = World::new() else { return };
    let options = mooring_book::KubeOptions {
        writers: mooring_book::Writers::One,
        ..mooring_book::KubeOptions::default()
    };
    let store = world.store_with(options);
    let mut got = Vec::new();
    for n in 0..3 {
        let claim = claim(holder_of("one", n), Want::Address);
        let lease = store
            .take_now(&pools(), &claim, None, NOW)
            .unwrap()
            .unwrap();
        assert_eq!(lease.holder.family, Family::V4);
        got.push(lease.thing.to_string());
    }
    assert_eq!(got, ["10.0.0.2", "10.0.0.3", "10.0.0.4"]);
}
