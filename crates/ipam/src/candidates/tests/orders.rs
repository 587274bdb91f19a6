//! In which order addresses of one prefix are offered.

use std::collections::BTreeSet;

use mooring_api::{Code, Family};

use crate::sample::{T0, addr, cidr, claim, first, pools, prefix, range, table, take};
use crate::{Decision, Order, Refusal, Thing, candidates};

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
