//! What is no plain address of a network: ranges, blocks, loopbacks, VLANs.

use mooring_api::{Code, VlanId};

use crate::sample::{
    T0, addr, block, cidr, claim, first, instance, pools, prefix, range, table, take,
};
use crate::{Candidate, Kind, Order, Pools, Thing, Want, candidates};

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
