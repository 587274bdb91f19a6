use mooring_api::Family;
use serde_json::{Value, json};

use super::*;
use crate::bundle::Object;

fn ran() -> InstanceKey {
    InstanceKey::new("", "vpc-ran")
}

fn object(value: Value) -> Object {
    Object {
        value,
        source: None,
    }
}

fn labels(owner: &str, name: &str, kind: &str) -> Value {
    json!({
        "nephio.org/owner-gvk": format!("{owner}.v1alpha1.ipam.resource.nephio.org"),
        "nephio.org/nsn-name": name,
        "nephio.org/nsn-namespace": "default",
        "nephio.org/prefix-kind": kind,
    })
}

fn with(mut labels: Value, key: &str, value: &str) -> Value {
    labels[key] = json!(value);
    labels
}

/// What Nephio writes for one subnet of one cluster, its gateway and one address.
fn table() -> Value {
    let subnet = with(
        labels("IPClaim", "link", "network"),
        "nephio.org/cluster-name",
        "edge01",
    );
    let subnet = with(subnet, "nephio.org/network-name", "n3");
    let gateway = with(
        labels("IPClaim", "gw", "network"),
        "nephio.org/gateway",
        "true",
    );
    json!({
        "172.3.0.0/16": labels("NetworkInstance", "vpc-ran-172-3", "aggregate"),
        "172.3.1.0/24": subnet,
        "172.3.1.0/32": subnet,
        "172.3.1.255/32": subnet,
        "172.3.1.1/32": gateway,
        "172.3.1.254/32": labels("IPClaim", "upf-edge01-n3-ipv4", "network"),
    })
}

fn listed(text: &Value) -> Vec<(String, String)> {
    let read = of_table(&Index::Addresses(ran()), text, 0);
    assert_eq!(read.findings, []);
    let entries = read.listed.iter();
    entries
        .map(|l| (l.thing.to_string(), l.owner.to_string()))
        .collect()
}

#[test]
fn a_subnet_is_one_entry_and_its_first_and_last_address_are_nobodys() {
    assert_eq!(
        listed(&table()),
        [
            ("172.3.1.0/24", "IPClaim default/link"),
            ("172.3.1.1", "IPClaim default/gw"),
            ("172.3.1.254", "IPClaim default/upf-edge01-n3-ipv4"),
        ]
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
    );
}

#[test]
fn the_last_address_of_a_subnet_is_kept_where_somebody_else_has_it() {
    let mut text = table();
    text["172.3.1.255/32"] = labels("IPClaim", "odd", "loopback");
    assert!(listed(&text).contains(&("172.3.1.255".to_owned(), "IPClaim default/odd".to_owned())));
}

#[test]
fn an_address_knows_its_subnet_and_its_gateway_and_a_subnet_its_aggregate() {
    let read = of_table(&Index::Addresses(ran()), &table(), 7);
    let (owned, findings) = whose(&[], &read.listed, &read.known);
    assert_eq!(findings, []);
    let find = |text: &str| owned.iter().find(|o| o.thing.to_string() == text).unwrap();
    let address = find("172.3.1.254");
    assert_eq!(address.subnet, "172.3.1.0/24".parse().ok());
    assert_eq!(address.gateway, "172.3.1.1".parse().ok());
    assert_eq!(address.place, 7);
    assert_eq!(find("172.3.1.0/24").subnet, "172.3.0.0/16".parse().ok());
}

#[test]
fn a_subnet_that_was_cut_for_a_cluster_is_that_clusters() {
    let read = of_table(&Index::Addresses(ran()), &table(), 0);
    let (owned, _) = whose(&[], &read.listed, &read.known);
    let Whose::Holder(holder) = &owned[0].whose else {
        panic!("{:?}", owned[0]);
    };
    assert_eq!(holder.cluster, "edge01");
    assert_eq!(holder.workload, "network/vpc-ran");
    assert_eq!(holder.interface, "network/n3");
}

#[test]
fn an_entry_of_a_packages_claim_is_the_packages() {
    let holder = Holder {
        cluster: "edge01".into(),
        package: "upf".into(),
        ..Holder::outside("", "upf-edge01-n3-ipv4", Family::V4)
    };
    let claimed = |said: Option<&str>| Claimed {
        instance: ran(),
        owner: Owner::new("IPClaim", "", "upf-edge01-n3-ipv4"),
        holder: holder.clone(),
        said: said.map(|a| Thing::Addr(a.parse().unwrap())),
        subnet: None,
        gateway: None,
        place: 1,
    };
    let read = of_table(&Index::Addresses(ran()), &table(), 0);
    // Its status was lost: the table has it.
    let (owned, findings) = whose(&[claimed(None)], &read.listed, &read.known);
    assert_eq!(findings, []);
    assert_eq!(owned[2].whose, Whose::Holder(holder.clone()));
    // Both say the same.
    let (owned, findings) = whose(&[claimed(Some("172.3.1.254"))], &read.listed, &read.known);
    assert_eq!(findings, []);
    assert_eq!(owned.len(), 4);
    // They do not.
    let (_, findings) = whose(&[claimed(Some("172.3.1.9"))], &read.listed, &read.known);
    assert_eq!(findings[0].1.code, Code::AddressDiffers);
    assert!(findings[0].1.message.contains("172.3.1.9"));
    assert!(findings[0].1.message.contains("172.3.1.254"));
}

#[test]
fn the_subnet_label_serves_where_the_subnet_is_not_in_the_table() {
    let entry = labels("IPClaim", "a", "network");
    let entry = with(entry, "nephio.org/subnet", "2001-db8---64");
    let read = of_table(
        &Index::Addresses(ran()),
        &json!({ "2001:db8::5/128": entry }),
        0,
    );
    assert_eq!(read.listed[0].subnet, "2001:db8::/64".parse().ok());
}

#[test]
fn a_vlan_is_its_networks_or_that_of_who_claimed_it() {
    let index = InstanceKey::new("", "edge01");
    let text = json!({
        "0": {},
        "2": labels("VLANClaim", "vpc-ran-edge01-bd", ""),
        "3": labels("VLANClaim", "by-hand", ""),
        "4095": null,
    });
    let read = of_table(&Index::Vlans(index), &text, 0);
    assert_eq!(read.findings, []);
    assert_eq!((read.listed.len(), read.pools), (2, 0));
    let (owned, _) = whose(&[], &read.listed, &read.known);
    assert_eq!(
        owned[0].whose,
        Whose::Holder(crate::claim::vlan_holder(&ran(), "edge01"))
    );
    let Whose::Object { owner, .. } = &owned[1].whose else {
        panic!("{:?}", owned[1]);
    };
    assert_eq!(owner.to_string(), "VLANClaim default/by-hand");
}

#[test]
fn what_no_backend_writes_is_refused_as_a_whole() {
    let index = Index::Addresses(ran());
    for text in [
        json!([]),
        json!("text"),
        json!({ "10.0.0.1/24": {} }),
        json!({ "nonsense": {} }),
        json!({ "10.0.0.0/24": { "nephio.org/prefix-kind": "cloud" } }),
        json!({ "10.0.0.0/24": { "nephio.org/prefix-kind": 3 } }),
        json!({ "10.0.0.0/24": [] }),
    ] {
        let read = of_table(&index, &text, 0);
        assert_eq!(read.findings.len(), 1, "{text}");
        assert_eq!(read.findings[0].code, Code::ImportInvalid, "{text}");
    }
    let vlans = Index::Vlans(InstanceKey::new("", "edge01"));
    for text in [
        json!({ "two": {} }),
        json!({ "70000": {} }),
        json!({ "4095": { "nephio.org/nsn-name": "x" } }),
    ] {
        let read = of_table(&vlans, &text, 0);
        assert_eq!(read.findings.len(), 1, "{text}");
    }
    // Before the first claim.
    assert_eq!(of_table(&index, &Value::Null, 0), Table::default());
}

#[test]
fn a_configmap_is_the_backends_by_its_name() {
    let index = |name: &str| {
        Index::of(&object(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": name, "namespace": "nephio" },
        })))
    };
    let key = |name: &str| InstanceKey::new("nephio", name);
    assert_eq!(
        index("ipam-vpc-ran"),
        Some(Index::Addresses(key("vpc-ran")))
    );
    assert_eq!(index("vlan-edge01"), Some(Index::Vlans(key("edge01"))));
    for other in ["ipam", "ipam-", "kube-root-ca.crt", "vxlan-x"] {
        assert_eq!(index(other), None, "{other}");
    }
}

#[test]
fn claims_and_prefixes_outside_of_packages_are_read_too() {
    let api = "ipam.resource.nephio.org/v1alpha1";
    let claim = object(json!({
        "apiVersion": api, "kind": "IPClaim",
        "metadata": { "name": "leaf-1" },
        "spec": { "kind": "network", "networkInstance": { "name": "vpc-ran" } },
        "status": { "prefix": "10.0.0.9/24", "gateway": "10.0.0.1" },
    }));
    let read = of_object(&claim, 4).unwrap();
    assert_eq!(read.listed[0].thing.to_string(), "10.0.0.9");
    assert_eq!(read.listed[0].subnet, "10.0.0.0/24".parse().ok());
    let prefix = |text: &str| {
        object(json!({
            "apiVersion": api, "kind": "IPPrefix",
            "metadata": { "name": "p" },
            "spec": { "kind": "network", "networkInstance": { "name": "vpc-ran" }, "prefix": text },
        }))
    };
    assert_eq!(
        of_object(&prefix("10.0.0.1/24"), 0).unwrap().listed.len(),
        1
    );
    assert_eq!(
        of_object(&prefix("10.0.0.0/24"), 0).unwrap().listed.len(),
        0
    );
    // A claim that is not answered has nothing yet; one that looks up has what another one has.
    let mut waiting = claim.clone();
    waiting.value["status"] = json!({});
    assert_eq!(of_object(&waiting, 0).unwrap().listed, []);
    let mut lookup = claim;
    lookup.set_annotation("nephio.org/action", "get");
    assert_eq!(of_object(&lookup, 0).unwrap().listed, []);
}
