use mooring_api::Code;

use super::*;
use crate::sample::{T0, addr, cidr, holder, prefix};
use crate::{Prefix, Thing};

fn world(nets: &[&str]) -> Pools {
    crate::sample::pools(nets.iter().map(|n| prefix(n)).collect())
}

fn held(address: &str) -> Lease {
    Lease {
        instance: crate::sample::instance(),
        thing: Thing::Addr(addr(address)),
        subnet: Some(cidr("10.0.0.0/24")),
        gateway: None,
        holder: holder("n2"),
        state: State::Held,
        since: T0,
    }
}

fn codes(findings: &[Finding]) -> Vec<Code> {
    findings.iter().map(|f| f.code).collect()
}

#[test]
fn a_prefix_that_overlaps_another_is_refused_once() {
    let before = world(&["10.0.0.0/24"]);
    let after = world(&["10.0.0.0/24", "10.0.0.128/25"]);
    assert_eq!(
        codes(&pools(&before, &after, &[], T0)),
        [Code::OverlappingPrefixes]
    );
    // What is wrong already can still be edited: the overlap is not new.
    let mut touched = after.clone();
    touched.prefixes[0].cool_down = mooring_api::Span(60);
    assert!(pools(&after, &touched, &[], T0).is_empty());
}

#[test]
fn a_prefix_beside_the_others_is_admitted() {
    let before = world(&["10.0.0.0/24"]);
    let after = world(&["10.0.0.0/24", "10.0.1.0/24"]);
    assert!(pools(&before, &after, &[held("10.0.0.7")], T0).is_empty());
}

#[test]
fn a_change_that_leaves_a_holder_without_prefix_is_refused_with_its_name() {
    let before = world(&["10.0.0.0/24"]);
    let after = world(&["10.0.0.0/25"]);
    let found = pools(&before, &after, &[held("10.0.0.7"), held("10.0.0.200")], T0);
    assert_eq!(codes(&found), [Code::PoolChangeRefused]);
    let text = found[0].message.clone();
    assert!(
        text.contains("10.0.0.200") && !text.contains("10.0.0.7 "),
        "{text}"
    );
    assert!(pools(&before, &after, &[held("10.0.0.7")], T0).is_empty());
}

#[test]
fn what_only_rests_does_not_keep_a_prefix() {
    let before = world(&["10.0.0.0/24"]);
    let mut lease = held("10.0.0.200");
    lease.state = State::Cooling {
        until: Time(T0.0 + 60),
    };
    assert!(pools(&before, &world(&[]), &[lease], T0).is_empty());
}

fn wants(want: Want) -> Claim {
    let mut claim = crate::sample::claim("n2", "");
    claim.want = want;
    claim
}

#[test]
fn a_block_that_is_larger_than_every_prefix_can_never_fit() {
    let pools = world(&["10.0.0.0/24"]);
    let found = claim(&pools, &wants(Want::Block { len: 20 }), T0).expect("it is refused");
    assert_eq!(found.code, Code::NoMatchingPrefix);
}

#[test]
fn an_address_outside_every_prefix_can_never_fit() {
    let pools = world(&["10.0.0.0/24"]);
    let mut outside = wants(Want::Address);
    outside.fixed = Some("10.9.0.1/24".parse().unwrap());
    let found = claim(&pools, &outside, T0).expect("it is refused");
    assert_eq!(found.code, Code::AddressOutsidePrefix);
    outside.fixed = Some("10.0.0.9/24".parse().unwrap());
    assert_eq!(claim(&pools, &outside, T0), None);
}

#[test]
fn a_claim_that_waits_for_its_pools_is_admitted() {
    assert_eq!(claim(&Pools::default(), &wants(Want::Address), T0), None);
    assert_eq!(claim(&world(&[]), &wants(Want::Address), T0), None);
    let drained = Prefix {
        drain: true,
        ..prefix("10.0.0.0/24")
    };
    let drained = crate::sample::pools(vec![drained]);
    let mut fixed = wants(Want::Address);
    fixed.fixed = Some("10.0.0.9/24".parse().unwrap());
    assert_eq!(claim(&drained, &fixed, T0), None);
}
