//! Subnets per cluster, carved from Networks and kept in the book.

use std::fs;

use mooring_api::{Code, Time};
use mooring_book::{Filter, Store};
use mooring_ipam::Thing;
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
