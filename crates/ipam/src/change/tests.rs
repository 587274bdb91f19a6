use mooring_api::{Code, HostCidr, Span, Time, label};

use super::*;
use crate::sample::{T0, addr, cidr, claim, first, holder, pools, prefix, range, table};
use crate::{Instance, Kept, Refusal, State, Unusable};

fn held(interface: &str, address: &str, from: &str) -> Lease {
    let subnet = cidr(from);
    Lease {
        instance: crate::sample::instance(),
        thing: Thing::Addr(addr(address)),
        subnet: Some(subnet),
        gateway: Some(subnet.hosts().first()),
        holder: holder(interface),
        state: State::Held,
        since: T0,
    }
}

fn by_hand(name: &str, address: &str, from: &str) -> Lease {
    let mut lease = held("n", address, from);
    lease.holder = Holder::outside(name, "claim", mooring_api::Family::V4);
    lease
}

fn taken(leases: &[Lease]) -> Table {
    let mut table = table();
    for lease in leases {
        table.insert(lease.clone()).unwrap();
    }
    table
}

fn net(text: &str) -> Prefix {
    let mut prefix = prefix(text);
    prefix.fill_gateway();
    prefix
}

fn shrink_to(to: &str) -> Change {
    Change::Shrink {
        to: Some(cidr(to)),
        ranges: Vec::new(),
        exclude: Vec::new(),
    }
}

fn ask(pools: &Pools, table: &Table, change: &Change, moves: bool) -> Result<Plan, Refused> {
    plan(pools, table, 0, change, moves, T0)
}

/// `interface: from -> to`, in order.
fn told(effects: &[Effect]) -> Vec<String> {
    let text = |c: &Candidate| match (c.thing, c.subnet) {
        (Thing::Addr(a), Some(s)) => s.host(a).to_string(),
        (thing, _) => thing.to_string(),
    };
    let line = |e: &Effect| {
        let to = e.to.as_ref().map_or("-".to_owned(), text);
        let who = if e.holder.package.is_empty() {
            &e.holder.workload
        } else {
            &e.holder.interface
        };
        format!("{who}: {} -> {to}", text(&e.from))
    };
    effects.iter().map(line).collect()
}

#[test]
fn who_stays_in_a_pool_that_grows_gets_another_mask_and_keeps_its_gateway() {
    let pools = pools(vec![net("10.0.1.0/24")]);
    let table = taken(&[held("a", "10.0.1.7", "10.0.1.0/24")]);
    let to = Change::Grow {
        to: cidr("10.0.0.0/23"),
        ranges: None,
    };
    let plan = ask(&pools, &table, &to, false).unwrap();
    assert_eq!(told(&plan.effects), ["a: 10.0.1.7/24 -> 10.0.1.7/23"]);
    // The first host of the wider prefix is another one: the router does not move.
    assert_eq!(plan.after[0].gateway, Some(addr("10.0.1.1")));
    assert!(!plan.effects[0].is_move());
}

#[test]
fn a_pool_grows_only_around_itself_and_over_nobody() {
    let pools = pools(vec![net("10.0.0.0/24"), net("10.0.1.0/24")]);
    let grow = |to: &str| Change::Grow {
        to: cidr(to),
        ranges: None,
    };
    let no = ask(&pools, &table(), &grow("10.0.2.0/23"), false).unwrap_err();
    assert_eq!(no.findings[0].code, Code::PoolChangeRefused);
    let no = ask(&pools, &table(), &grow("10.0.0.0/23"), false).unwrap_err();
    assert_eq!(no.findings[0].code, Code::OverlappingPrefixes);
}

#[test]
fn an_instance_that_lists_the_pool_grows_with_it() {
    let mut pools = pools(vec![net("10.0.0.0/24")]);
    let vpc: &mut Instance = pools.instances.get_mut(&crate::sample::instance()).unwrap();
    vpc.aggregates = vec![(cidr("10.0.0.0/24"), "spec.prefixes[0].prefix".into())];
    let grow = Change::Grow {
        to: cidr("10.0.0.0/23"),
        ranges: None,
    };
    let plan = ask(&pools, &table(), &grow, false).unwrap();
    let along = ("spec.prefixes[0].prefix".to_owned(), cidr("10.0.0.0/23"));
    assert_eq!(plan.aggregate, Some(along));
    assert_eq!(plan.pools(&pools).check(), []);
}

#[test]
fn a_pool_shrinks_under_nobody_unless_they_are_moved() {
    let pools = pools(vec![net("10.0.0.0/24")]);
    let table = taken(&[
        held("a", "10.0.0.2", "10.0.0.0/24"),
        held("b", "10.0.0.200", "10.0.0.0/24"),
    ]);
    let no = ask(&pools, &table, &shrink_to("10.0.0.0/25"), false).unwrap_err();
    assert_eq!(told(&no.effects), ["b: 10.0.0.200/24 -> -"]);
    assert!(no.findings[0].help.contains("--move"));
    let plan = ask(&pools, &table, &shrink_to("10.0.0.0/25"), true).unwrap();
    assert_eq!(
        told(&plan.effects),
        [
            "a: 10.0.0.2/24 -> 10.0.0.2/25",
            "b: 10.0.0.200/24 -> 10.0.0.3/25"
        ]
    );
}

#[test]
fn what_is_kept_or_taken_by_hand_never_moves() {
    let mut p = net("10.0.0.0/24");
    p.kept = vec![Kept {
        range: range("10.0.0.201"),
        claim: "gnb-n2".into(),
        cluster: String::new(),
    }];
    let kept = pools(vec![p]);
    let no = ask(&kept, &table(), &shrink_to("10.0.0.0/25"), true).unwrap_err();
    assert!(no.findings[0].message.contains("10.0.0.201 for gnb-n2"));
    let plain = pools(vec![net("10.0.0.0/24")]);
    let table = taken(&[by_hand("leaf-1", "10.0.0.200", "10.0.0.0/24")]);
    for change in [
        shrink_to("10.0.0.0/25"),
        Change::Renumber {
            to: cidr("10.9.0.0/24"),
        },
    ] {
        let no = ask(&plain, &table, &change, true).unwrap_err();
        assert!(no.findings[0].message.contains("leaf-1"), "{no:?}");
        assert_eq!(told(&no.effects), ["leaf-1: 10.0.0.200/24 -> -"]);
    }
}

#[test]
fn a_new_exclusion_moves_who_is_in_it_and_not_who_was_outside_before() {
    let mut p = net("10.0.0.0/24");
    p.ranges = vec![range("10.0.0.20-10.0.0.99")];
    let pools = pools(vec![p]);
    // b asked for its address by name, outside of the ranges.
    let table = taken(&[
        held("a", "10.0.0.20", "10.0.0.0/24"),
        held("b", "10.0.0.200", "10.0.0.0/24"),
    ]);
    let change = Change::Shrink {
        to: None,
        ranges: Vec::new(),
        exclude: vec![range("10.0.0.20-10.0.0.29"), range("10.0.0.200")],
    };
    let plan = ask(&pools, &table, &change, true).unwrap();
    assert_eq!(told(&plan.effects), ["a: 10.0.0.20/24 -> 10.0.0.30/24"]);
    assert_eq!(plan.after[0].exclude.len(), 2);
}

#[test]
fn the_parts_of_a_split_have_their_own_names_masks_and_gateways() {
    let mut p = net("10.0.0.0/24");
    p.ranges = vec![range("10.0.0.20-10.0.0.150")];
    p.kept = vec![Kept {
        range: range("10.0.0.140"),
        claim: "amf".into(),
        cluster: String::new(),
    }];
    let pools = pools(vec![p]);
    let table = taken(&[
        held("a", "10.0.0.20", "10.0.0.0/24"),
        held("b", "10.0.0.130", "10.0.0.0/24"),
    ]);
    let plan = ask(&pools, &table, &Change::Split { len: 25 }, false).unwrap();
    let names: Vec<&str> = plan.after.iter().map(|p| p.origin.name.as_str()).collect();
    assert_eq!(names, ["p0", "p0-10-0-0-128-25"]);
    assert_eq!(plan.after[0].gateway, Some(addr("10.0.0.1")));
    assert_eq!(plan.after[1].gateway, Some(addr("10.0.0.129")));
    assert_eq!(plan.after[0].ranges, [range("10.0.0.20-10.0.0.127")]);
    assert_eq!(plan.after[1].ranges, [range("10.0.0.128-10.0.0.150")]);
    assert_eq!((plan.after[0].kept.len(), plan.after[1].kept.len()), (0, 1));
    assert_eq!(
        told(&plan.effects),
        [
            "a: 10.0.0.20/24 -> 10.0.0.20/25",
            "b: 10.0.0.130/24 -> 10.0.0.130/25"
        ]
    );
    assert!(plan.effects[1].why.contains("gateway 10.0.0.129"));
    assert!(!plan.effects[0].why.contains("gateway"));
}

#[test]
fn who_would_be_the_gateway_or_an_edge_of_its_part_is_moved_inside_of_it() {
    let pools = pools(vec![net("10.0.0.0/24")]);
    let table = taken(&[
        held("edge", "10.0.0.127", "10.0.0.0/24"),
        held("gateway", "10.0.0.129", "10.0.0.0/24"),
    ]);
    let split = Change::Split { len: 25 };
    let no = ask(&pools, &table, &split, false).unwrap_err();
    assert_eq!(no.effects.len(), 2);
    let plan = ask(&pools, &table, &split, true).unwrap();
    assert_eq!(
        told(&plan.effects),
        [
            "edge: 10.0.0.127/24 -> 10.0.0.2/25",
            "gateway: 10.0.0.129/24 -> 10.0.0.130/25"
        ]
    );
}

#[test]
fn a_part_without_any_of_the_ranges_gives_nothing() {
    let mut p = net("10.0.0.0/24");
    p.ranges = vec![range("10.0.0.20-10.0.0.99")];
    let pools = pools(vec![p]);
    let plan = ask(&pools, &table(), &Change::Split { len: 25 }, false).unwrap();
    let after = plan.pools(&pools);
    let usage = after.usage(&table(), T0);
    assert_eq!((usage[0].size, usage[1].size), (80, 0));
}

#[test]
fn a_drained_pool_gives_nothing_new_and_keeps_who_it_has() {
    let mut drained = net("10.0.0.0/24");
    drained.drain = true;
    let pools = pools(vec![drained]);
    let mut table = taken(&[held("a", "10.0.0.7", "10.0.0.0/24")]);
    let kept = first(&pools, &table, &claim("a", "")).unwrap();
    assert_eq!(kept.thing, Thing::Addr(addr("10.0.0.7")));
    let no = first(&pools, &table, &claim("b", "")).unwrap_err();
    assert!(no.to_string().contains("is being drained"), "{no}");
    assert!(no.finding().help.contains("--undo"));
    let mut fixed = claim("b", "");
    fixed.fixed = Some(HostCidr::single(addr("10.0.0.9")));
    let no = first(&pools, &table, &fixed).unwrap_err();
    assert!(matches!(
        no,
        Refusal::NotUsable {
            why: Unusable::Drained,
            ..
        }
    ));
    // One that rests is still its own; to come back is not new.
    let until = Time(T0.0 + 60);
    table.set_state(&Thing::Addr(addr("10.0.0.7")), State::Cooling { until });
    assert!(first(&pools, &table, &claim("a", "")).is_ok());
}

#[test]
fn who_leaves_a_drained_pool_goes_where_its_claim_finds_it() {
    let labelled = |net_: &str, key: &str, value: &str| {
        let mut p = net(net_);
        p.labels.insert(key.to_owned(), value.to_owned());
        p
    };
    let pools = pools(vec![
        labelled("10.0.0.0/24", "zone", "a"),
        labelled("10.0.1.0/24", "zone", "b"),
        labelled("10.0.2.0/30", "zone", "a"),
    ]);
    let table = taken(&[
        held("a", "10.0.0.7", "10.0.0.0/24"),
        held("b", "10.0.0.8", "10.0.0.0/24"),
        by_hand("leaf", "10.0.0.9", "10.0.0.0/24"),
    ]);
    let plan = ask(&pools, &table, &Change::Drain, true).unwrap();
    // 10.0.2.0/30 has one host beside its gateway.
    assert_eq!(
        told(&plan.effects),
        [
            "a: 10.0.0.7/24 -> 10.0.2.2/30",
            "b: 10.0.0.8/24 -> -",
            "leaf: 10.0.0.9/24 -> -"
        ]
    );
    assert!(plan.after[0].drain);
    let looks = ask(&pools, &table, &Change::Drain, false).unwrap();
    assert_eq!((looks.effects.len(), looks.is_change()), (0, true));
}

#[test]
fn the_pool_of_another_cluster_takes_nobody_in() {
    let mut other = net("10.0.1.0/24");
    other
        .labels
        .insert(label::CLUSTER_NAME.into(), "core".into());
    let table = taken(&[held("a", "10.0.0.7", "10.0.0.0/24")]);
    let apart = pools(vec![net("10.0.0.0/24"), other.clone()]);
    let plan = ask(&apart, &table, &Change::Drain, true).unwrap();
    assert_eq!(told(&plan.effects), ["a: 10.0.0.7/24 -> -"]);
    other
        .labels
        .insert(label::CLUSTER_NAME.into(), "edge".into());
    let own = pools(vec![net("10.0.0.0/24"), other]);
    let plan = ask(&own, &table, &Change::Drain, true).unwrap();
    assert_eq!(told(&plan.effects), ["a: 10.0.0.7/24 -> 10.0.1.2/24"]);
}

#[test]
fn everybody_gets_the_same_place_and_nobody_that_of_another() {
    let mut p = net("10.0.0.0/24");
    p.ranges = vec![range("10.0.0.20-10.0.0.199")];
    p.cool_down = Span(3600);
    let pools = pools(vec![p]);
    let mut resting = held("x", "10.9.0.20", "10.9.0.0/24");
    resting.state = State::Cooling {
        until: Time(T0.0 + 60),
    };
    let table = taken(&[
        held("a", "10.0.0.20", "10.0.0.0/24"),
        held("b", "10.0.0.21", "10.0.0.0/24"),
        resting,
    ]);
    let change = Change::Renumber {
        to: cidr("10.9.0.0/24"),
    };
    let plan = ask(&pools, &table, &change, false).unwrap();
    // a's place rests for x; the next one is b's.
    assert_eq!(
        told(&plan.effects),
        [
            "a: 10.0.0.20/24 -> 10.9.0.22/24",
            "b: 10.0.0.21/24 -> 10.9.0.21/24"
        ]
    );
    assert_eq!(plan.effects[0].rest, Span(3600));
    assert_eq!(plan.after[0].ranges, [range("10.9.0.20-10.9.0.199")]);
    assert_eq!(plan.after[0].gateway, Some(addr("10.9.0.1")));
}

#[test]
fn who_comes_back_finds_what_rests_for_it() {
    let pools = pools(vec![net("10.9.0.0/24")]);
    let mut resting = held("a", "10.0.0.20", "10.0.0.0/24");
    resting.state = State::Cooling {
        until: Time(T0.0 + 60),
    };
    let table = taken(&[resting, held("a", "10.9.0.20", "10.9.0.0/24")]);
    let back = Change::Renumber {
        to: cidr("10.0.0.0/24"),
    };
    let plan = ask(&pools, &table, &back, false).unwrap();
    assert_eq!(told(&plan.effects), ["a: 10.9.0.20/24 -> 10.0.0.20/24"]);
}

#[test]
fn who_was_moved_keeps_the_new_address_while_the_old_one_rests_beside_it() {
    let pools = pools(vec![net("10.0.0.0/24")]);
    let mut resting = held("a", "10.0.0.20", "10.0.0.0/24");
    resting.state = State::Cooling {
        until: Time(T0.0 + 60),
    };
    let table = taken(&[resting, held("a", "10.0.0.30", "10.0.0.0/24")]);
    let kept = first(&pools, &table, &claim("a", "")).unwrap();
    assert_eq!(kept.thing, Thing::Addr(addr("10.0.0.30")));
}

#[test]
fn renumbering_into_a_pool_that_is_there_drains_the_old_one() {
    let both = pools(vec![net("10.0.0.0/24"), net("10.9.0.0/24")]);
    let table = taken(&[
        held("a", "10.0.0.20", "10.0.0.0/24"),
        by_hand("leaf", "10.0.0.30", "10.0.0.0/24"),
    ]);
    let change = Change::Renumber {
        to: cidr("10.9.0.0/24"),
    };
    let plan = ask(&both, &table, &change, false).unwrap();
    assert!(plan.after[0].drain);
    assert_eq!(
        told(&plan.effects),
        ["a: 10.0.0.20/24 -> 10.9.0.20/24", "leaf: 10.0.0.30/24 -> -"]
    );
}

#[test]
fn a_pool_is_found_by_its_prefix_and_by_its_name() {
    let pools = pools(vec![net("10.0.0.0/24"), net("10.9.0.0/24")]);
    assert_eq!(pools.find("10.9.0.0/24", None), [1]);
    assert_eq!(pools.find("10.9.0.1/24", None), [1]);
    assert_eq!(pools.find("p0", None), [0]);
    assert!(pools.find("10.9.0.0/25", None).is_empty());
}
