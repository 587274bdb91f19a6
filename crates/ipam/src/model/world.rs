//! A small world that has every rule in it, and the commands that happen in it.

use mooring_api::{Family, HostCidr, Selector, VlanId};
use proptest::prelude::*;

use crate::sample::{self, addr, cidr, prefix, range};
use crate::{Claim, Kept, Kind, Order, Pools, Thing, Want};

/// One thing that happens.
#[derive(Clone, Debug)]
pub(super) enum Command {
    /// Somebody wants something, perhaps looking at an old view.
    Claim { claim: Box<Claim>, from_stale: bool },
    /// A lease is released and rests.
    Release { nth: usize, cool_down: u64 },
    /// Time passes.
    Pass { seconds: u64 },
    /// The old view is made new.
    Look,
}

/// Two small networks that match the same label, one that matches another, IPv6, and an aggregate with a
/// pool inside.
pub(super) fn pools() -> Pools {
    let labelled = |net: &str, label: &str| {
        let mut p = prefix(net);
        p.labels.insert("net".into(), label.into());
        p
    };
    let mut first = labelled("10.0.0.0/28", "a");
    first.gateway = Some(addr("10.0.0.1"));
    first.exclude = vec![range("10.0.0.5-10.0.0.6")];
    first.kept = vec![Kept {
        range: range("10.0.0.9"),
        claim: "n1".into(),
        cluster: "edge".into(),
    }];
    let mut second = labelled("10.0.1.0/29", "a");
    second.ranges = vec![range("10.0.1.2-10.0.1.3"), range("10.0.1.4-10.0.1.5")];
    let mut other = labelled("10.0.2.0/27", "b");
    other.gateway = Some(addr("10.0.2.1"));
    other.exclude = vec![range("10.0.2.8/29"), range("10.0.2.14-10.0.2.17")];
    let six = labelled("fd00::/125", "a");
    let mut aggregate = labelled("10.1.0.0/25", "a");
    aggregate.kind = Kind::Aggregate;
    aggregate.exclude = vec![range("10.1.0.3")];
    let mut pool = labelled("10.1.0.32/28", "a");
    pool.kind = Kind::Pool;
    sample::pools(vec![first, second, other, six, aggregate, pool])
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![
        4 => Just(Order::LowestFirst),
        4 => Just(Order::BestFit),
        1 => (0u32..16).prop_map(Order::Index),
    ]
}

/// What a holder wants never changes: the number of the holder decides its shape.
fn claim() -> impl Strategy<Value = Claim> {
    let who = (0usize..30, 0u16..3, order(), any::<bool>());
    let asks = (
        prop::option::weighted(0.25, 0u8..40),
        prop::option::weighted(0.2, 0u8..40),
    );
    (who, asks).prop_map(|((who, ordinal, order, b), (fixed, before))| {
        let mut claim = sample::claim(&format!("n{who}"), if who % 6 == 5 { "::" } else { "" });
        claim.holder.ordinal = ordinal;
        claim.names = vec![claim.holder.interface.clone()];
        claim.order = order;
        let label = if b && who % 6 != 5 && who % 6 != 3 {
            "b"
        } else {
            "a"
        };
        claim.selector = Selector::labels([("net", label)]);
        let base = match (claim.holder.family, label, who % 6) {
            (Family::V6, ..) => "fd00::",
            (_, _, 3) => "10.1.0.0",
            (_, "b", _) => "10.0.2.0",
            _ => "10.0.0.0",
        };
        let number = |offset: u8| Family::number(addr(base)) + u128::from(offset);
        let host = |offset: u8| claim.holder.family.addr(number(offset));
        let len = if who % 2 == 0 { 28 } else { 29 };
        match who % 6 {
            0 | 1 | 5 => {
                claim.fixed = fixed.map(|o| HostCidr::single(host(o)));
                claim.before = before.map(|o| Thing::Addr(host(o)));
            }
            2 => {
                let count = u32::try_from(2 + who % 4).expect("a small number");
                claim.want = Want::Range { count };
            }
            3 => {
                let pool = who % 4 == 1;
                claim.kind = if pool { Kind::Pool } else { Kind::Network };
                claim.want = Want::Block { len };
                let block = |o: u8| mooring_api::Cidr::containing(host(o), len);
                claim.fixed = fixed.map(|o| HostCidr::from(block(o)));
                claim.before = before.map(|o| Thing::Block(block(o)));
            }
            _ => {
                let id = fixed.and_then(|o| VlanId::try_from(u16::from(o)).ok());
                claim.want = Want::Vlan { id };
                let before = before.and_then(|o| VlanId::try_from(u16::from(o)).ok());
                claim.before = before.map(Thing::Vlan);
                if claim.order == Order::BestFit {
                    claim.order = Order::LowestFirst;
                }
            }
        }
        claim
    })
}

pub(super) fn commands() -> impl Strategy<Value = Vec<Command>> {
    let command = prop_oneof![
        12 => (claim(), prop::bool::weighted(0.12))
            .prop_map(|(claim, from_stale)| Command::Claim { claim: Box::new(claim), from_stale }),
        3 => (0usize..60, prop_oneof![Just(0u64), 1u64..90])
            .prop_map(|(nth, cool_down)| Command::Release { nth, cool_down }),
        1 => (1u64..40).prop_map(|seconds| Command::Pass { seconds }),
        1 => Just(Command::Look),
    ];
    prop::collection::vec(command, 1..90)
}

#[test]
fn the_world_is_a_legal_one() {
    assert_eq!(pools().check(), []);
    assert_eq!(cidr("10.0.0.0/28").hosts().count(), 14);
}
