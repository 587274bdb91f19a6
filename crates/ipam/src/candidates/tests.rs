//! Small facts about what is offered. The model in `model.rs` covers the sequences.

use std::collections::BTreeSet;

use mooring_api::{Code, Span, VlanId, label};

use super::*;
use crate::sample::{
    T0, addr, block, cidr, claim, first, holder, instance, pools, prefix, range, table, take,
};
use crate::{Kind, Lease, TxnId};

fn sequence(order: Order, net: &str, gateway: Option<&str>, count: usize) -> Vec<u128> {
    let mut p = prefix(net);
    p.gateway = gateway.map(addr);
    let base = Family::number(p.cidr.network());
    let pools = pools(vec![p]);
    let mut table = table();
    let mut parts = Vec::new();
    for i in 0..count {
        let mut claim = claim(&format!("n{i}"), net);
        claim.order = order;
        match first(&pools, &table, &claim) {
            Ok(candidate) => {
                let Thing::Addr(got) = candidate.thing else {
                    panic!("an address was asked for")
                };
                parts.push(Family::number(got) - base);
                take(&mut table, &claim, candidate);
            }
            Err(refusal) => {
                assert_eq!(refusal.code(), Code::PoolExhausted);
                break;
            }
        }
    }
    parts
}

#[test]
fn best_fit_gives_the_sequences_of_upstream() {
    let order = |net, gateway, n| sequence(Order::BestFit, net, gateway, n);
    assert_eq!(
        order("10.0.0.0/24", None, 16),
        [1, 254, 2, 3, 252, 253, 4, 5, 6, 7, 248, 249, 250, 251, 8, 9]
    );
    assert_eq!(
        order("10.0.0.0/24", Some("10.0.0.1"), 16),
        [
            254, 2, 3, 252, 253, 4, 5, 6, 7, 248, 249, 250, 251, 8, 9, 10
        ]
    );
    assert_eq!(
        order("10.0.0.0/28", Some("10.0.0.1"), 99),
        [14, 2, 3, 12, 13, 4, 5, 6, 7, 8, 9, 10, 11]
    );
    assert_eq!(order("10.0.0.0/29", Some("10.0.0.1"), 99), [6, 2, 3, 4, 5]);
}

#[test]
fn best_fit_begins_an_ipv6_subnet_near_its_end() {
    let got = sequence(Order::BestFit, "fd00::/64", Some("fd00::1"), 3);
    assert_eq!(got, [u128::from(u64::MAX) - 1, 2, 3]);
}

#[test]
fn lowest_first_skips_network_gateway_and_broadcast() {
    let got = sequence(Order::LowestFirst, "10.0.0.0/29", Some("10.0.0.1"), 99);
    assert_eq!(got, [2, 3, 4, 5, 6]);
    let got = sequence(Order::LowestFirst, "fd00::/126", Some("fd00::1"), 99);
    assert_eq!(got, [2, 3]);
    let got = sequence(Order::LowestFirst, "10.0.0.0/31", None, 99);
    assert_eq!(got, [0, 1]);
}

#[test]
fn rendezvous_spreads_and_still_finds_the_last_address() {
    let got = sequence(Order::Rendezvous, "10.0.0.0/26", Some("10.0.0.1"), 99);
    let unique: BTreeSet<u128> = got.iter().copied().collect();
    assert_eq!(unique, (2..=62).collect());
    assert_ne!(got[..8], [2, 3, 4, 5, 6, 7, 8, 9]);
    // Each holder's own offers are all of them too, once each.
    let pools = pools(vec![prefix("10.0.0.0/28")]);
    let table = table();
    let mut claim = claim("n2", "10.0.0.0/28");
    claim.order = Order::Rendezvous;
    let Ok(Decision::Offer(offers)) = candidates(&pools, &table, &claim, T0) else {
        panic!("the prefix is free")
    };
    let all: Vec<Thing> = offers.map(|c| c.thing).collect();
    assert_eq!(all.len(), 14);
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 14);
}

#[test]
fn rendezvous_in_a_slash_64_starts_far_apart() {
    let got = sequence(Order::Rendezvous, "fd00::/64", None, 20);
    let unique: BTreeSet<u128> = got.iter().map(|n| n >> 40).collect();
    assert!(unique.len() > 15, "{unique:?}");
}

#[test]
fn the_same_holder_keeps_its_address_though_a_lower_one_is_free() {
    let pools = pools(vec![prefix("10.0.0.0/28")]);
    let mut table = table();
    for name in ["a", "b", "c"] {
        let claim = claim(name, "10.0.0.0/28");
        let candidate = first(&pools, &table, &claim).unwrap();
        take(&mut table, &claim, candidate);
    }
    table.remove(&Thing::Addr(addr("10.0.0.1"))).unwrap();
    let c = claim("c", "10.0.0.0/28");
    let Ok(Decision::Keep(lease)) = candidates(&pools, &table, &c, T0) else {
        panic!("c has an address")
    };
    assert_eq!(lease.thing, Thing::Addr(addr("10.0.0.3")));
    assert_eq!(lease.subnet, Some(cidr("10.0.0.0/28")));
}

#[test]
fn its_own_cooling_or_reserved_address_is_taken_over() {
    let pools = pools(vec![prefix("10.0.0.0/28")]);
    let mut table = table();
    let mine = claim("a", "10.0.0.0/28");
    let thing = Thing::Addr(addr("10.0.0.9"));
    take(
        &mut table,
        &mine,
        Candidate {
            thing,
            subnet: Some(cidr("10.0.0.0/28")),
            gateway: None,
        },
    );
    let txn = TxnId(7);
    for state in [
        State::Cooling {
            until: T0.after(Span(60)),
        },
        State::Reserved {
            txn,
            until: T0.after(Span(60)),
        },
    ] {
        table.set_state(&thing, state);
        let Ok(Decision::Keep(lease)) = candidates(&pools, &table, &mine, T0) else {
            panic!("it is its own")
        };
        assert_eq!((lease.thing, lease.state), (thing, state));
        let other = claim("b", "10.0.0.0/28");
        let Ok(Decision::Offer(offers)) = candidates(&pools, &table, &other, T0) else {
            panic!("others are free")
        };
        assert!(offers.into_iter().all(|c| c.thing != thing));
    }
}

#[test]
fn what_ended_is_offered_before_anybody_takes_it_out() {
    let pools = pools(vec![prefix("10.0.0.0/30")]);
    let mut table = table();
    for name in ["a", "b"] {
        let claim = claim(name, "10.0.0.0/30");
        let candidate = first(&pools, &table, &claim).unwrap();
        take(&mut table, &claim, candidate);
    }
    let thing = Thing::Addr(addr("10.0.0.1"));
    table.set_state(
        &thing,
        State::Cooling {
            until: T0.after(Span(60)),
        },
    );
    let c = claim("c", "10.0.0.0/30");
    let refusal = candidates(&pools, &table, &c, T0).unwrap_err();
    assert_eq!(refusal.code(), Code::PoolExhausted);
    assert!(
        refusal.to_string().contains("1 of them resting"),
        "{refusal}"
    );
    let later = T0.after(Span(60));
    let got = candidates(&pools, &table, &c, later)
        .unwrap()
        .first()
        .unwrap();
    assert_eq!(got.thing, thing);
    assert_eq!(table.expire(later).len(), 1);
    assert_eq!(table.check(), Vec::<String>::new());
}

#[test]
fn a_fixed_address_is_that_or_a_refusal_that_says_why() {
    let mut p = prefix("10.0.0.0/24");
    p.gateway = Some(addr("10.0.0.1"));
    p.ranges = vec![range("10.0.0.10-10.0.0.20")];
    p.exclude = vec![range("10.0.0.12")];
    p.kept = vec![Kept {
        range: range("10.0.0.13"),
        claim: "vip".into(),
        cluster: String::new(),
    }];
    let pools = pools(vec![p]);
    let mut table = table();
    let thing = Thing::Addr(addr("10.0.0.11"));
    let held = claim("a", "10.0.0.0/24");
    take(
        &mut table,
        &held,
        Candidate {
            thing,
            subnet: Some(cidr("10.0.0.0/24")),
            gateway: None,
        },
    );
    let ask = |table: &Table, wanted: &str| {
        let mut claim = claim("z", "10.0.0.0/24");
        claim.fixed = Some(wanted.parse().unwrap());
        match candidates(&pools, table, &claim, T0) {
            Ok(decision) => Ok(decision.first().unwrap().thing),
            Err(refusal) => Err((refusal.code(), refusal.to_string())),
        }
    };
    // Outside the ranges is fine: ranges limit what is chosen.
    assert_eq!(
        ask(&table, "10.0.0.99/24"),
        Ok(Thing::Addr(addr("10.0.0.99")))
    );
    for (wanted, code, said) in [
        ("10.0.0.0/32", Code::AddressNotUsable, "network address"),
        ("10.0.0.255/24", Code::AddressNotUsable, "broadcast"),
        ("10.0.0.1/24", Code::AddressNotUsable, "gateway"),
        ("10.0.0.12/24", Code::AddressNotUsable, "excluded"),
        ("10.0.0.13/24", Code::AddressHeld, "kept for claim vip"),
        ("10.0.0.11/24", Code::AddressHeld, "held by edge / pkg / a"),
        ("10.9.0.1/24", Code::AddressOutsidePrefix, "10.0.0.0/24"),
        (
            "fd00::1/64",
            Code::AddressOutsidePrefix,
            "no matching prefix",
        ),
    ] {
        let (got, text) = ask(&table, wanted).unwrap_err();
        assert_eq!(got, code, "{wanted}");
        assert!(text.contains(said), "{text}");
    }
    table.set_state(
        &thing,
        State::Cooling {
            until: T0.after(Span(5)),
        },
    );
    assert_eq!(
        ask(&table, "10.0.0.11/24").unwrap_err().0,
        Code::AddressCooling
    );
}

#[test]
fn an_allocation_is_for_its_claim_and_cluster_only() {
    let mut p = prefix("10.0.0.0/29");
    p.kept = vec![Kept {
        range: range("10.0.0.3"),
        claim: "amf-n2".into(),
        cluster: "edge".into(),
    }];
    let pools = pools(vec![p]);
    let mut table = table();
    let mut mine = claim("n2", "10.0.0.0/29");
    mine.names = vec!["n2".into(), "amf-n2".into()];
    assert_eq!(
        first(&pools, &table, &mine).unwrap().thing,
        Thing::Addr(addr("10.0.0.3"))
    );
    let mut elsewhere = mine.clone();
    elsewhere.holder.cluster = "core".into();
    let Ok(Decision::Offer(offers)) = candidates(&pools, &table, &elsewhere, T0) else {
        panic!("others are free")
    };
    let others: Vec<Thing> = offers.map(|c| c.thing).collect();
    assert_eq!(others.len(), 5);
    assert!(!others.contains(&Thing::Addr(addr("10.0.0.3"))));
    // A second address of the same interface comes from the order; a stranger in its place is a refusal.
    let candidate = first(&pools, &table, &mine).unwrap();
    take(&mut table, &mine, candidate);
    let mut second = mine.clone();
    second.holder.ordinal = 1;
    assert_eq!(
        first(&pools, &table, &second).unwrap().thing,
        Thing::Addr(addr("10.0.0.1"))
    );
    table.remove(&candidate.thing).unwrap();
    take(&mut table, &claim("stranger", "10.0.0.0/29"), candidate);
    let refusal = candidates(&pools, &table, &mine, T0).unwrap_err();
    assert_eq!(refusal.code(), Code::AddressHeld);
}

#[test]
fn what_it_had_before_comes_first_if_it_is_free_and_fits() {
    let pools = pools(vec![prefix("10.0.0.0/28")]);
    let mut table = table();
    let mut c = claim("a", "10.0.0.0/28");
    c.before = Some(Thing::Addr(addr("10.0.0.7")));
    let Ok(Decision::Offer(offers)) = candidates(&pools, &table, &c, T0) else {
        panic!("it is free")
    };
    let all: Vec<Thing> = offers.map(|c| c.thing).collect();
    assert_eq!(
        all[..2],
        [Thing::Addr(addr("10.0.0.7")), Thing::Addr(addr("10.0.0.1"))]
    );
    assert_eq!(all.len(), 14);
    for useless in [
        Thing::Addr(addr("10.9.0.7")),
        Thing::Block(cidr("10.0.0.0/30")),
    ] {
        c.before = Some(useless);
        assert_eq!(
            first(&pools, &table, &c).unwrap().thing,
            Thing::Addr(addr("10.0.0.1"))
        );
    }
    c.before = Some(Thing::Addr(addr("10.0.0.7")));
    let taken = first(&pools, &table, &c).unwrap();
    take(&mut table, &claim("b", "10.0.0.0/28"), taken);
    assert_eq!(
        first(&pools, &table, &c).unwrap().thing,
        Thing::Addr(addr("10.0.0.1"))
    );
}

#[test]
fn a_full_prefix_spills_over_into_the_next_that_matches() {
    let mut second = prefix("10.0.1.0/30");
    second.gateway = Some(addr("10.0.1.1"));
    let pools = pools(vec![prefix("10.0.0.0/30"), second]);
    let mut table = table();
    let mut got = Vec::new();
    for name in ["a", "b", "c", "d"] {
        let claim = claim(name, "10.0.0.0/30");
        match first(&pools, &table, &claim) {
            Ok(candidate) => {
                got.push((candidate.thing.to_string(), candidate.gateway));
                take(&mut table, &claim, candidate);
            }
            Err(refusal) => {
                let text = refusal.to_string();
                assert!(
                    text.contains("10.0.0.0/30 has 2 of 2 taken (edge / pkg: 2)"),
                    "{text}"
                );
                assert!(text.contains("10.0.1.0/30 has 1 of 1 taken"), "{text}");
            }
        }
    }
    let gateway = Some(addr("10.0.1.1"));
    assert_eq!(
        got,
        [
            ("10.0.0.1".into(), None),
            ("10.0.0.2".into(), None),
            ("10.0.1.2".into(), gateway)
        ]
    );
}

#[test]
fn index_is_that_place_and_no_other() {
    let mut p = prefix("10.0.0.0/28");
    p.gateway = Some(addr("10.0.0.1"));
    p.exclude = vec![range("10.0.0.3-10.0.0.5")];
    let pools = pools(vec![p]);
    let mut table = table();
    let mut c = claim("a", "10.0.0.0/28");
    c.order = Order::Index(1);
    let got = first(&pools, &table, &c).unwrap();
    assert_eq!(got.thing, Thing::Addr(addr("10.0.0.6")));
    take(&mut table, &c, got);
    let mut other = claim("b", "10.0.0.0/28");
    other.order = Order::Index(1);
    assert_eq!(
        candidates(&pools, &table, &other, T0).unwrap_err().code(),
        Code::AddressHeld
    );
    other.order = Order::Index(10);
    let refusal = candidates(&pools, &table, &other, T0).unwrap_err();
    assert_eq!(
        refusal,
        Refusal::NoSuchIndex {
            index: 10,
            prefix: cidr("10.0.0.0/28"),
            size: 10
        }
    );
}

#[test]
fn ranges_are_in_a_row_and_inside_the_ranges_of_the_prefix() {
    let mut p = prefix("10.0.0.0/24");
    p.ranges = vec![range("10.0.0.10-10.0.0.15"), range("10.0.0.100-10.0.0.200")];
    p.exclude = vec![range("10.0.0.110")];
    let pools = pools(vec![p]);
    let mut table = table();
    let mut got = Vec::new();
    for (name, count) in [("a", 4), ("b", 4), ("c", 8), ("d", 2)] {
        let mut c = claim(name, "10.0.0.0/24");
        c.want = Want::Range { count };
        let candidate = first(&pools, &table, &c).unwrap();
        got.push(candidate.thing.to_string());
        take(&mut table, &c, candidate);
    }
    assert_eq!(
        got,
        [
            "10.0.0.10-10.0.0.13",
            "10.0.0.100-10.0.0.103",
            "10.0.0.111-10.0.0.118",
            "10.0.0.14-10.0.0.15"
        ]
    );
    // An address never comes out of somebody's range.
    assert_eq!(
        first(&pools, &table, &claim("e", "10.0.0.0/24"))
            .unwrap()
            .thing,
        Thing::Addr(addr("10.0.0.104"))
    );
    let mut inside = claim("f", "10.0.0.0/24");
    inside.fixed = Some("10.0.0.101/24".parse().unwrap());
    let refusal = candidates(&pools, &table, &inside, T0).unwrap_err();
    assert!(
        refusal
            .to_string()
            .contains("who has 10.0.0.100-10.0.0.103"),
        "{refusal}"
    );
}

#[test]
fn a_network_cut_from_an_aggregate_gives_addresses_of_its_own() {
    let mut aggregate = prefix("10.0.0.0/16");
    aggregate.kind = Kind::Aggregate;
    let mut there = prefix("10.0.1.0/24");
    there.kind = Kind::Network;
    let mut pools = pools(vec![aggregate, there]);
    let mut table = table();
    let mut got = Vec::new();
    for name in ["a", "b", "c"] {
        let mut c = block(name, Kind::Network, 24);
        c.order = Order::LowestFirst;
        let candidate = first(&pools, &table, &c).unwrap();
        got.push(candidate.thing.to_string());
        assert_eq!(candidate.subnet, Some(cidr("10.0.0.0/16")));
        take(&mut table, &c, candidate);
    }
    // 10.0.1.0/24 is a prefix already.
    assert_eq!(got, ["10.0.0.0/24", "10.0.2.0/24", "10.0.3.0/24"]);
    pools.prefixes.push(prefix("10.0.2.0/24"));
    pools.prefixes.swap(1, 2);
    let address = claim("x", "10.0.2.0/24");
    let candidate = first(&pools, &table, &address).unwrap();
    assert_eq!(candidate.thing, Thing::Addr(addr("10.0.2.1")));
    take(&mut table, &address, candidate);
    assert_eq!(table.check(), Vec::<String>::new());
    // A block claimed later does not fall on it.
    let c = block("d", Kind::Network, 24);
    assert_eq!(
        first(&pools, &table, &c).unwrap().thing,
        Thing::Block(cidr("10.0.4.0/24"))
    );
    // Somebody's block is nobody else's to cut: the lease in the way is named.
    let mut fixed = block("e", Kind::Network, 25);
    fixed.fixed = Some("10.0.3.0/25".parse().unwrap());
    let refusal = candidates(&pools, &table, &fixed, T0).unwrap_err();
    assert!(
        refusal.to_string().contains("who has 10.0.3.0/24"),
        "{refusal}"
    );
}

#[test]
fn pools_nest_and_aggregates_of_the_instance_can_be_cut() {
    let mut pool = prefix("10.8.0.0/24");
    pool.kind = Kind::Pool;
    let mut pools = pools(vec![pool]);
    let key = instance();
    pools.instances.get_mut(&key).unwrap().aggregates =
        vec![(cidr("10.8.0.0/16"), "spec.prefixes[0].prefix".to_owned())];
    let mut table = table();
    let mut got = Vec::new();
    for name in ["a", "b", "c"] {
        let c = block(name, Kind::Pool, 25);
        let candidate = first(&pools, &table, &c).unwrap();
        got.push(candidate.thing.to_string());
        take(&mut table, &c, candidate);
    }
    assert_eq!(got, ["10.8.0.0/25", "10.8.0.128/25", "10.8.1.0/25"]);
    let refusal = candidates(&pools, &table, &block("n", Kind::Pool, 16), T0).map(|_| ());
    assert_eq!(refusal.unwrap_err().code(), Code::NoMatchingPrefix);
}

#[test]
fn a_loopback_is_alone_and_uses_every_address() {
    let mut p = prefix("10.0.0.0/31");
    p.kind = Kind::Loopback;
    let pools = pools(vec![p]);
    let table = table();
    let mut c = claim("lo", "10.0.0.0/31");
    c.kind = Kind::Loopback;
    let got = first(&pools, &table, &c).unwrap();
    assert_eq!(got.subnet, Some(cidr("10.0.0.0/32")));
    assert_eq!(got.gateway, None);
    c.kind = Kind::Network;
    let refusal = candidates(&pools, &table, &c, T0).unwrap_err();
    assert!(
        refusal
            .to_string()
            .contains("10.0.0.0/31 (IPPrefix/p0) is of kind loopback"),
        "{refusal}"
    );
}

#[test]
fn vlans_begin_at_two_and_one_is_for_who_asks() {
    let pools = Pools::default();
    let mut table = table();
    let vlan = |id: u16| VlanId::try_from(id).unwrap();
    let mut ask = |name: &str, id: Option<u16>| {
        let mut c = claim(name, "");
        c.want = Want::Vlan { id: id.map(vlan) };
        let got = candidates(&pools, &table, &c, T0).map(|d| d.first().unwrap());
        if let Ok(candidate) = &got {
            take(&mut table, &c, *candidate);
        }
        got.map(|c| c.thing)
    };
    assert_eq!(ask("a", None), Ok(Thing::Vlan(vlan(2))));
    assert_eq!(ask("b", Some(1)), Ok(Thing::Vlan(vlan(1))));
    assert_eq!(ask("c", None), Ok(Thing::Vlan(vlan(3))));
    assert_eq!(ask("a", None), Ok(Thing::Vlan(vlan(2))));
    let refusal = ask("d", Some(2)).unwrap_err();
    assert_eq!(refusal.code(), Code::AddressHeld);
    assert!(
        refusal
            .to_string()
            .contains("VLAN 2 is held by edge / pkg / a"),
        "{refusal}"
    );
    for id in 4..=4094 {
        ask(&format!("v{id}"), None).unwrap();
    }
    assert_eq!(ask("late", None).unwrap_err().code(), Code::PoolExhausted);
}

#[test]
fn a_network_name_is_the_label_else_the_instance_else_the_only_prefix() {
    let table = table();
    let mut c = claim("n2", "");
    c.selector = mooring_api::Selector::labels([(label::NETWORK_NAME, "n2")]);
    let labelled = |net: &str, name: &str| {
        let mut p = prefix(net);
        p.labels.insert(label::NETWORK_NAME.into(), name.into());
        p
    };
    let got = |pools: &Pools, c: &Claim| first(pools, &table, c).map(|c| c.thing.to_string());
    let two = pools(vec![
        labelled("10.0.0.0/24", "n3"),
        labelled("10.0.1.0/24", "n2"),
    ]);
    assert_eq!(got(&two, &c).unwrap(), "10.0.1.1");
    let only = pools(vec![prefix("10.0.2.0/24"), prefix("fd00::/64")]);
    assert_eq!(got(&only, &c).unwrap(), "10.0.2.1");
    let unclear = pools(vec![prefix("10.0.2.0/24"), prefix("10.0.3.0/24")]);
    let refusal = got(&unclear, &c).unwrap_err();
    assert_eq!(refusal.code(), Code::NoMatchingPrefix);
    assert!(
        refusal
            .to_string()
            .contains("has no label nephio.org/network-name=n2"),
        "{refusal}"
    );
    c.selector = mooring_api::Selector::labels([(label::NETWORK_NAME, instance().name())]);
    assert_eq!(got(&unclear, &c).unwrap(), "10.0.2.1");
    let other = pools(vec![labelled("10.0.0.0/24", "n3")]);
    let text = got(&other, &c).unwrap_err().to_string();
    assert!(
        text.contains("has nephio.org/network-name=n3, not vpc"),
        "{text}"
    );
}

#[test]
fn the_prefix_of_another_cluster_is_not_used_unless_asked_for() {
    let table = table();
    let mut p = prefix("10.0.0.0/24");
    p.labels.insert(label::CLUSTER_NAME.into(), "core".into());
    let pools = pools(vec![p]);
    let mut c = claim("n2", "");
    let text = first(&pools, &table, &c).unwrap_err().to_string();
    assert!(text.contains("belongs to cluster core"), "{text}");
    c.selector = mooring_api::Selector::labels([
        (label::CLUSTER_NAME, "core"),
        (label::ADDRESS_FAMILY, "ipv4"),
    ]);
    assert!(first(&pools, &table, &c).is_ok());
    c.selector = mooring_api::Selector::default();
    c.holder.cluster = "core".into();
    assert!(first(&pools, &table, &c).is_ok());
}

#[test]
fn an_unknown_instance_and_long_lists_stay_short() {
    let table = table();
    let mut c = claim("n2", "");
    c.instance = crate::InstanceKey::new("", "vpx");
    let pools = pools((0..20).map(|i| prefix(&format!("10.0.{i}.0/24"))).collect());
    let refusal = candidates(&pools, &table, &c, T0).unwrap_err();
    assert_eq!(refusal.code(), Code::UnknownNetworkInstance);
    assert!(refusal.to_string().contains("known are vpc"), "{refusal}");
    c.instance = instance();
    c.holder.family = Family::V6;
    let finding = candidates(&pools, &table, &c, T0).unwrap_err().finding();
    assert!(finding.message.ends_with("; and 15 more"), "{finding}");
    assert!(!finding.help.is_empty());
}

#[test]
fn a_table_gives_back_every_lease_as_it_was() {
    let mut table = table();
    let leases = [
        (
            Thing::Addr(addr("10.0.0.9")),
            Some("10.0.0.0/24"),
            State::Held,
            5,
        ),
        (
            Thing::Addr(addr("fd00::9")),
            Some("fd00::/64"),
            State::Cooling { until: Time(9) },
            u64::MAX,
        ),
        (
            Thing::Block(cidr("10.1.0.0/24")),
            Some("10.1.0.0/16"),
            State::Held,
            7,
        ),
        (
            Thing::Range(range("10.0.0.20-10.0.0.30")),
            Some("10.0.0.0/24"),
            State::Reserved {
                txn: TxnId(3),
                until: Time(99),
            },
            8,
        ),
        (Thing::Vlan(VlanId::MAX), None, State::Held, 9),
    ]
    .map(|(thing, subnet, state, since)| Lease {
        instance: instance(),
        thing,
        subnet: subnet.map(cidr),
        gateway: None,
        holder: holder(&thing.to_string()),
        state,
        since: Time(since),
    });
    for lease in leases.iter().rev() {
        assert_eq!(table.insert(lease.clone()), Ok(None));
    }
    assert_eq!(table.leases().collect::<Vec<_>>(), leases);
    for lease in &leases {
        assert_eq!(table.get(&lease.thing).as_ref(), Some(lease));
        assert_eq!(table.held_by(&lease.holder), std::slice::from_ref(lease));
    }
    assert_eq!(table.covering(addr("10.0.0.25")).as_ref(), Some(&leases[3]));
    assert_eq!(table.covering(addr("10.1.0.25")).as_ref(), Some(&leases[2]));
    assert_eq!(table.covering(addr("10.2.0.25")), None);
    let mut stranger = leases[0].clone();
    stranger.holder = holder("stranger");
    assert_eq!(table.insert(stranger), Err(Box::new(leases[0].clone())));
    assert_eq!(table.check(), Vec::<String>::new());
    for lease in leases {
        assert_eq!(table.remove(&lease.thing), Some(lease));
    }
    assert!(table.is_empty());
    assert_eq!(table.check(), Vec::<String>::new());
}

#[test]
fn owners_stay_within_their_budget() {
    let mut table = table();
    let count: u32 = 40_000;
    for i in 0..count {
        let mut holder = holder("n2");
        holder.workload = format!("Deployment/upf-{i:06}");
        let lease = Lease {
            instance: instance(),
            thing: Thing::Addr(IpAddr::from((0x0a00_0000 + i).to_be_bytes())),
            subnet: Some(cidr("10.0.0.0/8")),
            gateway: None,
            holder,
            state: State::Held,
            since: T0,
        };
        table.insert(lease).unwrap();
    }
    let each = table.heap_bytes().owners / count as usize;
    assert!(
        each <= 120,
        "{each} bytes per owner, with a name of its own each"
    );
    assert!(table.heap_bytes().free_space < 1 << 16);
    // Names of holders that are gone do not pile up.
    for i in 0..count {
        table.remove(&Thing::Addr(IpAddr::from((0x0a00_0000 + i).to_be_bytes())));
    }
    let full = table.heap_bytes().owners;
    let lease = Lease {
        instance: instance(),
        thing: Thing::Vlan(VlanId::MAX),
        subnet: None,
        gateway: None,
        holder: holder("x"),
        state: State::Held,
        since: T0,
    };
    table.insert(lease.clone()).unwrap();
    let names = count as usize * "Deployment/upf-000000".len();
    let left = table.heap_bytes().owners;
    assert!(left + names < full, "{left} of {full} bytes are left");
    assert_eq!(table.held_by(&lease.holder), [lease]);
    assert_eq!(table.check(), Vec::<String>::new());
}

#[test]
fn a_whole_prefix_that_somebody_has_gives_nobody_else_an_address() {
    let net = cidr("10.0.0.0/24");
    let whole = Candidate {
        thing: Thing::Block(net),
        subnet: Some(net),
        gateway: None,
    };
    let inside = |subnet: &str| Candidate {
        thing: Thing::Addr(addr("10.0.0.9")),
        subnet: Some(cidr(subnet)),
        gateway: None,
    };
    let (owner, other) = (claim("owner", ""), claim("other", ""));
    for (block_from, addr_from, fits) in [
        // The whole of the prefix is one holder's, so an address out of it is in the way.
        ("10.0.0.0/24", "10.0.0.0/24", false),
        // The block was cut from something wider to be that very subnet.
        ("10.0.0.0/16", "10.0.0.0/24", true),
        ("10.0.0.0/16", "10.0.0.0/25", true),
        // The address comes out of what the block was cut from.
        ("10.0.0.0/16", "10.0.0.0/16", false),
    ] {
        let block = Candidate {
            subnet: Some(cidr(block_from)),
            ..whole
        };
        for block_first in [true, false] {
            let mut table = table();
            let mut both = [(&owner, block), (&other, inside(addr_from))];
            if !block_first {
                both.reverse();
            }
            take(&mut table, both[0].0, both[0].1);
            let second = table.insert(crate::sample::lease(both[1].0, both[1].1));
            assert_eq!(
                second.is_ok(),
                fits,
                "{block_from} {addr_from} {block_first}"
            );
            assert_eq!(table.check(), Vec::<String>::new());
        }
    }
}
