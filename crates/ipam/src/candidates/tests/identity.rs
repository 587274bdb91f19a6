//! What is somebody's own: kept, asked for by name, kept for it, had before.

use mooring_api::{Code, Span};

use crate::sample::{T0, addr, cidr, claim, first, pools, prefix, range, table, take};
use crate::{Candidate, Decision, Kept, State, Table, Thing, TxnId, candidates};

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
