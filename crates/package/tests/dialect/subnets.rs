//! Subnets per cluster, carved from Networks and kept in the book.

use std::fs;

use mooring_api::{Code, Time};
use mooring_book::{Filter, Store};
use mooring_ipam::{Candidate, Holder, InstanceKey, Thing};
use mooring_package::rebuild;

use crate::place::{Place, conditions};

fn upf(place: &Place, cluster: &str) {
    place.blueprint("upf", "in");
    place.render("in", |r| {
        r.cluster = Some(cluster.into());
        r.out = Some(place.path(&format!("out/{cluster}")));
    });
}

fn address(place: &Place, cluster: &str) -> String {
    let claim = place.object(&format!("out/{cluster}/ipclaim_upf-{cluster}-n3-ipv4.yaml"));
    let status = &claim["status"];
    format!(
        "{} via {}",
        status["prefix"].as_str().unwrap(),
        status["gateway"].as_str().unwrap()
    )
}

#[test]
fn a_new_cluster_moves_nobody_and_the_first_keeps_its_subnet() {
    let Some(place) = Place::new("a subnet per cluster") else {
        return;
    };
    place.cluster("edge02");
    place.cluster("aaa");
    upf(&place, "edge01");
    upf(&place, "edge02");
    assert_eq!(address(&place, "edge01"), "172.3.0.254/24 via 172.3.0.1");
    assert_eq!(address(&place, "edge02"), "172.3.1.254/24 via 172.3.1.1");
    upf(&place, "aaa");
    assert_eq!(address(&place, "aaa"), "172.3.2.254/24 via 172.3.2.1");
    for cluster in ["edge02", "edge01"] {
        let before = mooring_testkit::hash_tree(&place.path(&format!("out/{cluster}")));
        upf(&place, cluster);
        assert_eq!(
            mooring_testkit::hash_tree(&place.path(&format!("out/{cluster}"))),
            before
        );
    }
}

#[test]
fn a_lost_book_is_rebuilt_and_everybody_stays() {
    let Some(place) = Place::new("a rebuilt book") else {
        return;
    };
    place.cluster("edge02");
    place.cluster("aaa");
    upf(&place, "aaa");
    upf(&place, "edge02");
    fs::remove_file(place.path("book.redb")).unwrap();
    let report = rebuild(
        &place.book(),
        &[place.path("out")],
        Time(1_800_000_000),
        false,
    )
    .unwrap();
    assert_eq!(report.findings, []);
    // A new cluster first, which would take the first subnet of an empty book.
    upf(&place, "edge01");
    assert_eq!(address(&place, "edge01"), "172.3.2.254/24 via 172.3.2.1");
    for cluster in ["edge02", "aaa"] {
        let before = mooring_testkit::hash_tree(&place.path(&format!("out/{cluster}")));
        upf(&place, cluster);
        assert_eq!(
            mooring_testkit::hash_tree(&place.path(&format!("out/{cluster}"))),
            before,
            "{cluster}"
        );
    }
}

#[test]
fn a_prefix_by_hand_is_honoured_and_its_label_gives_the_gateway() {
    let Some(place) = Place::new("prefixes by hand") else {
        return;
    };
    place.write(
        "mgmt/by-hand.yaml",
        "apiVersion: ipam.resource.nephio.org/v1alpha1\nkind: IPPrefix\nmetadata:\n  name: edge01-n3\nspec:\n  kind: network\n  \
         networkInstance:\n    name: vpc-ran\n  prefix: 172.3.9.7/24\n  labels:\n    nephio.org/cluster-name: edge01\n    \
         nephio.org/network-name: n3\n    nephio.org/gateway: \"true\"\n",
    );
    upf(&place, "edge01");
    assert!(
        address(&place, "edge01").ends_with("via 172.3.9.7"),
        "{}",
        address(&place, "edge01")
    );
}

#[test]
fn a_network_that_goes_missing_is_told_and_costs_nobody_an_address() {
    let Some(place) = Place::new("a missing network") else {
        return;
    };
    place.blueprint("upf", "upf");
    place.render("upf", |_| {});
    let held = || place.book().leases(&Filter::default()).unwrap().len();
    let (before, tree) = (held(), mooring_testkit::hash_tree(&place.path("upf")));
    let network = fs::read_to_string(place.path("mgmt/vpc-ran.yaml")).unwrap();
    place.edit("mgmt/vpc-ran.yaml", "name: n3", "name: n9");
    let report = place.render("upf", |_| {});
    let told = report
        .findings
        .iter()
        .filter(|f| f.code == Code::NoMatchingPrefix);
    assert_eq!(told.count(), 1, "{:?}", report.findings);
    // What it was given it still has; only the claim says that it could not be given again.
    let stated = conditions(&place.path("upf"));
    let open: Vec<&String> = stated
        .iter()
        .filter(|(_, met)| !**met)
        .map(|(c, _)| c)
        .collect();
    assert_eq!(
        open,
        ["ipam.resource.nephio.org/v1alpha1.IPClaim.upf-edge01-n3-ipv4"]
    );
    assert_eq!(held(), before);
    place.write("mgmt/vpc-ran.yaml", &network);
    place.render("upf", |_| {});
    assert_eq!(mooring_testkit::hash_tree(&place.path("upf")), tree);
}

#[test]
fn many_packages_at_once_get_addresses_of_their_own_and_share_a_vlan() {
    let Some(place) = Place::new("many packages at once") else {
        return;
    };
    for nth in 0..20 {
        place.blueprint("upf", &format!("fleet/upf-{nth}"));
    }
    place.render("fleet", |_| {});
    let leases = place.book().leases(&Filter::default()).unwrap();
    let addresses = leases.iter().filter(|l| matches!(l.thing, Thing::Addr(_)));
    assert_eq!(addresses.count(), 60);
    let vlans = leases.iter().filter(|l| matches!(l.thing, Thing::Vlan(_)));
    assert_eq!(vlans.count(), 3);
    assert!(!place.render("fleet", |_| {}).is_changed());
}

/// Somebody else takes these addresses of the network n3.
fn fill(place: &Place, from: &str, hosts: impl Iterator<Item = u8>) {
    let store = place.book();
    let now = Time(1_800_000_000);
    let mut txn = store.begin(now).unwrap();
    for host in hosts {
        let candidate = Candidate {
            thing: Thing::Addr(format!("{from}.{host}").parse().unwrap()),
            subnet: Some(format!("{from}.0/24").parse().unwrap()),
            gateway: None,
        };
        let holder = Holder::outside(format!("{from}.{host}"), "lab", mooring_api::Family::V4);
        let taken = txn.try_take(&InstanceKey::new("", "vpc-ran"), &candidate, &holder);
        assert!(matches!(taken, Ok(mooring_book::Outcome::Won(_))));
    }
    let txn = txn.reserve(mooring_api::Span(60)).unwrap();
    store.commit(txn, now).unwrap();
}

/// One of several packages of one cluster.
fn another(place: &Place, name: &str) -> mooring_package::Report {
    place.blueprint("upf", &format!("in-{name}"));
    place.render(&format!("in-{name}"), |r| {
        r.out = Some(place.path(&format!("all/{name}")));
    })
}

fn n3(place: &Place, name: &str) -> String {
    let claim = place.object(&format!("all/{name}/ipclaim_upf-edge01-n3-ipv4.yaml"));
    claim["status"]["prefix"].as_str().unwrap_or("-").to_owned()
}

#[test]
fn a_full_subnet_gets_a_sibling_and_nobody_moves() {
    let Some(place) = Place::new("a full subnet") else {
        return;
    };
    place.cluster("edge02");
    another(&place, "one");
    fill(&place, "172.3.0", 2..=253);
    another(&place, "two");
    let claim = place.object("all/two/ipclaim_upf-edge01-n3-ipv4.yaml");
    assert_eq!(claim["status"]["prefix"], "172.3.1.254/24");
    assert_eq!(claim["status"]["gateway"], "172.3.1.1");
    // The one that was there first has room again: who is in the second stays there.
    let store = place.book();
    let now = Time(1_800_000_000);
    let mut txn = store.begin(now).unwrap();
    let freed = Thing::Addr("172.3.0.9".parse().unwrap());
    txn.release(
        &InstanceKey::new("", "vpc-ran"),
        &freed,
        mooring_api::Span(0),
    )
    .unwrap();
    let txn = txn.reserve(mooring_api::Span(60)).unwrap();
    store.commit(txn, now).unwrap();
    drop(store);
    for name in ["two", "one"] {
        assert!(!another(&place, name).is_changed(), "{name}");
    }
    another(&place, "three");
    assert_eq!(n3(&place, "three"), "172.3.0.9/24");
    // Another cluster gets one that is nobody's.
    upf(&place, "edge02");
    assert_eq!(address(&place, "edge02"), "172.3.2.254/24 via 172.3.2.1");

    // A book that was lost finds both again.
    fs::remove_file(place.path("book.redb")).unwrap();
    let roots = [place.path("all"), place.path("out")];
    let report = rebuild(&place.book(), &roots, now, false).unwrap();
    assert_eq!(report.findings, []);
    for name in ["three", "two", "one"] {
        assert!(
            another(&place, name).changes.is_empty(),
            "{name} moved to {}",
            n3(&place, name)
        );
    }
    let shares = || {
        let leases = place.book().leases(&Filter::default()).unwrap();
        let of = leases.into_iter().filter(|l| {
            l.instance.name() == "vpc-ran"
                && l.holder.cluster == "edge01"
                && matches!(l.thing, Thing::Block(_))
        });
        of.map(|l| l.thing.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(shares(), ["172.3.0.0/24", "172.3.1.0/24"]);
}

#[test]
fn a_full_network_is_said_with_what_to_do() {
    let Some(place) = Place::new("a full network") else {
        return;
    };
    place.edit("mgmt/vpc-ran.yaml", "172.3.0.0/16", "172.3.0.0/23");
    another(&place, "one");
    fill(&place, "172.3.0", 2..=253);
    another(&place, "two");
    fill(&place, "172.3.1", 2..=253);
    let report = another(&place, "three");
    let told: Vec<_> = report
        .findings
        .iter()
        .filter(|f| f.code == Code::PoolExhausted)
        .collect();
    assert_eq!(told.len(), 1, "{:?}", report.findings);
    let help = &told[0].help;
    assert!(
        help.contains("give its routing table vpc-ran another prefix"),
        "{help}"
    );
    assert!(help.contains("nephio.org/cluster-name: edge01"), "{help}");
    assert_eq!(n3(&place, "three"), "-");
    // What it says helps.
    place.write(
        "mgmt/by-hand.yaml",
        "apiVersion: ipam.resource.nephio.org/v1alpha1\nkind: IPPrefix\nmetadata:\n  name: edge01-n3\nspec:\n  kind: network\n  \
         networkInstance:\n    name: vpc-ran\n  prefix: 172.30.0.1/24\n  labels:\n    nephio.org/cluster-name: edge01\n    \
         nephio.org/network-name: n3\n    nephio.org/gateway: \"true\"\n",
    );
    another(&place, "three");
    assert_eq!(n3(&place, "three"), "172.30.0.254/24");
    // And who came before stays, in either of the two.
    for (name, there) in [("one", "172.3.0.254/24"), ("two", "172.3.1.254/24")] {
        assert!(!another(&place, name).is_changed(), "{name}");
        assert_eq!(n3(&place, name), there);
    }
}
