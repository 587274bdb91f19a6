//! What pools may not say, and how full they are.

use mooring_api::{Code, Span};

use crate::sample::{T0, addr, cidr, claim, first, instance, pools, prefix, range, table, take};
use crate::{Instance, InstanceKey, Kept, Kind, Pools, Prefix, State, Thing};

fn of_kind(net: &str, kind: Kind) -> Prefix {
    Prefix {
        kind,
        ..prefix(net)
    }
}

fn codes(pools: &Pools) -> Vec<(Code, String)> {
    let name = |f: &mooring_api::Finding| f.object.as_ref().map(|o| o.name.clone());
    let found = pools.check().into_iter();
    found
        .map(|f| (f.code, name(&f).unwrap_or_default()))
        .collect()
}

#[test]
fn nesting_follows_the_kinds() {
    use Kind::{Aggregate, Loopback, Network, Pool};
    for (outer, inner, legal) in [
        (Aggregate, Network, true),
        (Aggregate, Pool, true),
        (Aggregate, Loopback, true),
        (Aggregate, Aggregate, true),
        (Pool, Pool, true),
        (Pool, Network, false),
        (Network, Network, false),
        (Network, Aggregate, false),
        (Loopback, Network, false),
    ] {
        // Whichever is read first, the later one is the culprit.
        let wide = of_kind("10.0.0.0/16", outer);
        let narrow = of_kind("10.0.1.0/24", inner);
        for rows in [vec![wide.clone(), narrow.clone()], vec![narrow, wide]] {
            let wanted = if legal {
                Vec::new()
            } else {
                vec![(Code::OverlappingPrefixes, "p1".to_owned())]
            };
            assert_eq!(codes(&pools(rows)), wanted, "{outer:?} around {inner:?}");
        }
    }
}

#[test]
fn the_same_prefix_twice_is_named_once_with_the_earlier_one() {
    let twice = pools(vec![prefix("10.0.0.0/24"), prefix("10.0.0.0/24")]);
    let findings = twice.check();
    assert_eq!(findings.len(), 1);
    let text = findings[0].to_string();
    assert!(text.contains("IPPrefix/p1"), "{text}");
    assert!(
        text.contains("overlaps 10.0.0.0/24 of IPPrefix/p0"),
        "{text}"
    );
    let side_by_side = pools(vec![prefix("10.0.0.0/24"), prefix("10.0.1.0/24")]);
    assert_eq!(side_by_side.check(), []);
}

#[test]
fn two_instances_may_repeat_a_prefix_only_when_both_are_isolated() {
    let key = InstanceKey::new("", "other");
    for (here, there, legal) in [
        (true, true, true),
        (true, false, false),
        (false, true, false),
        (false, false, false),
    ] {
        let mut second = prefix("10.0.0.0/25");
        second.instance = key.clone();
        let mut pools = pools(vec![prefix("10.0.0.0/24"), second]);
        let vpc = pools.instances.get_mut(&instance()).unwrap();
        vpc.isolated = here;
        let other = Instance {
            key: key.clone(),
            isolated: there,
            ..vpc.clone()
        };
        pools.instances.insert(key.clone(), other);
        assert_eq!(codes(&pools).is_empty(), legal, "{here} {there}");
    }
}

#[test]
fn a_prefix_lies_in_its_instance_and_its_parts_lie_in_it() {
    let mut p = prefix("10.0.0.0/24");
    p.gateway = Some(addr("10.0.1.1"));
    p.ranges = vec![range("10.0.0.250-10.0.1.5")];
    p.exclude = vec![range("10.9.0.0/24"), range("10.0.0.7")];
    p.kept = vec![Kept {
        range: range("10.0.3.3"),
        claim: "n2".into(),
        cluster: String::new(),
    }];
    let mut pools = pools(vec![p]);
    let vpc = pools.instances.get_mut(&instance()).unwrap();
    vpc.aggregates = vec![(cidr("10.8.0.0/16"), "spec.prefixes[0].prefix".to_owned())];
    let found: Vec<(Code, Option<String>)> = pools
        .check()
        .into_iter()
        .map(|f| (f.code, f.field))
        .collect();
    let at = |code, field: &str| (code, Some(field.to_owned()));
    assert_eq!(
        found,
        [
            at(Code::PrefixOutsideInstance, "spec.prefix"),
            at(Code::InvalidField, "spec.prefix"),
            at(
                Code::InvalidAnnotation,
                "metadata.annotations[mooring.dev/ranges]"
            ),
            at(
                Code::InvalidAnnotation,
                "metadata.annotations[mooring.dev/exclude]"
            ),
            at(Code::InvalidField, "spec.allocations"),
        ]
    );
}

#[test]
fn the_first_host_is_the_gateway_where_a_network_has_one_to_spare() {
    for (net, kind, gateway) in [
        ("10.0.0.0/24", Kind::Network, Some("10.0.0.1")),
        ("fd00::/64", Kind::Network, Some("fd00::1")),
        ("10.0.0.0/31", Kind::Network, None),
        ("10.0.0.0/24", Kind::Pool, None),
    ] {
        let mut p = of_kind(net, kind);
        p.fill_gateway();
        assert_eq!(p.gateway, gateway.map(addr), "{net}");
    }
}

#[test]
fn usage_counts_each_state_and_the_largest_gap() {
    let mut p = prefix("10.0.0.0/27");
    p.gateway = Some(addr("10.0.0.1"));
    let pools = pools(vec![p]);
    let mut table = table();
    for name in ["a", "b", "c"] {
        let claim = claim(name, "");
        let candidate = first(&pools, &table, &claim).unwrap();
        take(&mut table, &claim, candidate);
    }
    let until = T0.after(Span(9));
    table.set_state(&Thing::Addr(addr("10.0.0.3")), State::Cooling { until });
    let usage = &pools.usage(&table, T0)[0];
    let counts = (
        usage.size,
        usage.used,
        usage.reserved,
        usage.cooling,
        usage.free,
    );
    assert_eq!(counts, (29, 2, 0, 1, 26));
    assert_eq!(usage.largest_free, Some(cidr("10.0.0.8/29")));
    // What has ended counts as free.
    let usage = &pools.usage(&table, until)[0];
    assert_eq!((usage.used, usage.cooling, usage.free), (2, 0, 27));
}
