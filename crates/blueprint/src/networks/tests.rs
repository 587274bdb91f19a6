use mooring_api::{Selector, Severity};
use serde_json::{Value, json};

use super::*;

fn object(value: Value) -> Object {
    Object {
        value,
        source: None,
    }
}

fn network(name: &str, prefixes: &Value) -> Object {
    object(
        json!({ "apiVersion": "infra.nephio.org/v1alpha1", "kind": "Network", "metadata": { "name": name },
        "spec": { "topology": "nephio", "routingTables": [{ "name": name, "prefixes": prefixes }] } }),
    )
}

fn claim(instance: &str, cluster: &str, labels: &[(&str, &str)], kind: Kind) -> Claim {
    let mut selector = Selector::default();
    let all = [
        (label::CLUSTER_NAME, cluster),
        (label::ADDRESS_FAMILY, "ipv4"),
    ];
    for (key, value) in all.iter().chain(labels) {
        selector.match_labels.insert((*key).into(), (*value).into());
    }
    Claim {
        holder: Holder {
            cluster: cluster.to_owned(),
            ..Holder::outside("upf", "n3", Family::V4)
        },
        instance: InstanceKey::new("", instance),
        kind,
        want: match kind {
            Kind::Pool => Want::Block { len: 24 },
            _ => Want::Address,
        },
        selector,
        fixed: None,
        before: None,
        names: Vec::new(),
        order: Order::BestFit,
    }
}

fn ran() -> Pools {
    let labelled = |prefix: &str, name: &str| json!({ "prefix": prefix, "labels": { label::NETWORK_NAME: name } });
    let prefixes = json!([
        labelled("172:2::/32", "n2"),
        labelled("172.2.0.0/16", "n2"),
        labelled("172.3.0.0/16", "n3"),
        { "prefix": "10.0.0.0/8", "labels": { label::PREFIX_KIND: "pool" } },
    ]);
    let (pools, findings) = read(&[network("vpc-ran", &prefixes)]);
    assert_eq!(findings, []);
    pools
}

/// What the book would do, with a table of its own.
fn take(pools: &Pools, table: &mut Table, claim: &Claim) -> Lease {
    let found = candidates(pools, table, claim, Time(0))
        .unwrap()
        .first()
        .unwrap();
    let lease = Lease {
        instance: claim.instance.clone(),
        thing: found.thing,
        subnet: found.subnet,
        gateway: found.gateway,
        holder: claim.holder.clone(),
        state: mooring_ipam::State::Held,
        since: Time(0),
    };
    table.insert(lease.clone()).unwrap();
    lease
}

#[test]
fn every_cluster_has_a_subnet_per_network_and_a_gateway() {
    let pools = ran();
    let mut table = Table::new(InstanceKey::new("", "vpc-ran"));
    let mut got = Vec::new();
    for (cluster, name) in [
        ("edge01", "n3"),
        ("edge02", "n3"),
        ("edge01", "n2"),
        ("edge01", "n3"),
    ] {
        let mut claim = claim(
            "vpc-ran",
            cluster,
            &[(label::NETWORK_NAME, name)],
            Kind::Network,
        );
        claim.holder.workload = format!("nf{}", got.len());
        let block = subnet(&pools, &claim).unwrap();
        let share = take(&pools, &mut table, &block);
        let lease = take(
            &opened(&pools, &claim, std::slice::from_ref(&share)),
            &mut table,
            &claim,
        );
        got.push(format!("{} via {}", lease.thing, lease.gateway.unwrap()));
    }
    assert_eq!(
        got,
        [
            "172.3.0.254 via 172.3.0.1",
            "172.3.1.254 via 172.3.1.1",
            "172.2.0.254 via 172.2.0.1",
            "172.3.0.2 via 172.3.0.1"
        ]
    );
    assert_eq!(table.check(), Vec::<String>::new());
}

#[test]
fn pools_of_subscribers_are_cut_from_the_clusters_share() {
    let pools = ran();
    let mut table = Table::new(InstanceKey::new("", "vpc-ran"));
    for (cluster, expected) in [("edge01", "10.0.0.0/24"), ("edge02", "10.1.0.0/24")] {
        let claim = claim("vpc-ran", cluster, &[], Kind::Pool);
        let share = take(&pools, &mut table, &subnet(&pools, &claim).unwrap());
        let lease = take(
            &opened(&pools, &claim, std::slice::from_ref(&share)),
            &mut table,
            &claim,
        );
        assert_eq!(lease.thing.to_string(), expected);
    }
}

#[test]
fn a_claim_without_network_name_shares_the_subnet_of_the_first() {
    let pools = ran();
    let named = claim(
        "vpc-ran",
        "edge01",
        &[(label::NETWORK_NAME, "n2")],
        Kind::Network,
    );
    let plain = claim("vpc-ran", "edge01", &[], Kind::Network);
    let holder = |claim| subnet(&pools, &claim).unwrap().holder;
    assert_eq!(holder(named), holder(plain));
}

#[test]
fn what_is_written_by_hand_comes_first_and_is_not_carved_again() {
    let by_hand = object(
        json!({ "apiVersion": "ipam.resource.nephio.org/v1alpha1", "kind": "IPPrefix", "metadata": { "name": "edge01" },
        "spec": { "kind": "network", "networkInstance": { "name": "vpc-ran" }, "prefix": "172.3.0.9/24",
            "labels": { label::CLUSTER_NAME: "edge01", label::GATEWAY: "true", label::NETWORK_NAME: "n3" } } }),
    );
    let table = network(
        "vpc-ran",
        &json!([{ "prefix": "172.3.0.0/16", "labels": { label::NETWORK_NAME: "n3" } }]),
    );
    let (pools, findings) = read(&[by_hand, table]);
    assert_eq!(findings, []);
    let wanted = |cluster| {
        claim(
            "vpc-ran",
            cluster,
            &[(label::NETWORK_NAME, "n3")],
            Kind::Network,
        )
    };
    assert_eq!(subnet(&pools, &wanted("edge01")), None);
    let block = subnet(&pools, &wanted("edge02")).unwrap();
    let mut table = Table::new(block.instance.clone());
    let share = take(&pools, &mut table, &block);
    assert_eq!(share.thing.to_string(), "172.3.1.0/24");
}

#[test]
fn a_lost_book_finds_the_subnet_in_the_claims_answer() {
    let pools = ran();
    let mut claim = claim(
        "vpc-ran",
        "edge01",
        &[(label::NETWORK_NAME, "n3")],
        Kind::Network,
    );
    claim.before = Some(Thing::Addr("172.3.7.254".parse().unwrap()));
    let block = subnet(&pools, &claim).unwrap();
    let mut table = Table::new(block.instance.clone());
    let share = take(&pools, &mut table, &block);
    assert_eq!(share.thing.to_string(), "172.3.7.0/24");
    let lease = take(
        &opened(&pools, &claim, std::slice::from_ref(&share)),
        &mut table,
        &claim,
    );
    assert_eq!(lease.thing.to_string(), "172.3.7.254");
}

#[test]
fn nothing_is_carved_where_no_network_fits() {
    let pools = ran();
    for claim in [
        claim(
            "vpc-ran",
            "edge01",
            &[(label::NETWORK_NAME, "n9")],
            Kind::Network,
        ),
        claim("vpc-ran", "edge01", &[], Kind::Loopback),
        claim("elsewhere", "edge01", &[], Kind::Network),
    ] {
        assert_eq!(subnet(&pools, &claim), None);
    }
}

#[test]
fn networks_that_overlap_are_told() {
    let prefixes = json!([{ "prefix": "172.1.0.0/16" }]);
    let (_, findings) = read(&[network("a", &prefixes), network("b", &prefixes)]);
    let told: Vec<_> = findings.iter().map(|f| (f.code, f.severity)).collect();
    assert_eq!(told, [(Code::OverlappingPrefixes, Severity::Warning)]);
}
