//! Same identity, same address: after holes were made, so that allocating afresh would give others.

use std::fs;

use crate::fleet::Place;
use mooring_api::Code;
use mooring_book::Store;
use mooring_package::{Request, rebuild};

/// Three packages; then `b` loses its first interface, so that 10.1.2.22 is a hole. Afresh, and in
/// any order, `c` would not get what it has.
fn with_a_hole() -> Place {
    let place = Place::new();
    place.package("a", &["n1", "n2"]);
    place.package("b", &["n1", "n2"]);
    place.package("c", &["n1", "n2"]);
    for package in ["a", "b", "c"] {
        place.render(package, |_| {});
    }
    place.package("b", &["n2"]);
    place.render("b", |_| {});
    let held = place.held();
    assert_eq!(
        held,
        [
            "10.1.2.20",
            "10.1.2.21",
            "10.1.2.23",
            "10.1.2.24",
            "10.1.2.25"
        ]
    );
    place
}

fn addresses(place: &Place, packages: [&str; 3]) -> Vec<(String, String)> {
    packages.iter().flat_map(|p| place.addresses(p)).collect()
}

#[test]
fn a_restart_and_another_order_keep_every_address() {
    let place = with_a_hole();
    let before = addresses(&place, ["a", "b", "c"]);
    for package in ["c", "a", "b"] {
        // Every render opens the book anew, as a new process does.
        assert!(!place.render(package, |_| {}).is_changed());
    }
    assert_eq!(before, addresses(&place, ["a", "b", "c"]));
}

#[test]
fn a_lost_status_comes_back_as_it_was() {
    let place = with_a_hole();
    let before = place.addresses("c");
    for file in [
        "ipclaim_n1.yaml",
        "ipclaim_n2.yaml",
        "networkattachmentdefinition_n1.yaml",
    ] {
        fs::remove_file(place.path("c").join(file)).unwrap();
    }
    place.render("c", |_| {});
    assert_eq!(before, place.addresses("c"));
}

#[test]
fn a_moved_package_keeps_its_addresses() {
    let place = with_a_hole();
    let before = place.addresses("c");
    fs::create_dir(place.path("elsewhere")).unwrap();
    fs::rename(place.path("c"), place.path("elsewhere/renamed")).unwrap();
    let report = place.render("elsewhere/renamed", |_| {});
    assert!(report.changes.is_empty(), "{:?}", report.changes);
    assert_eq!(before, place.addresses("elsewhere/renamed"));
    // And from there, again.
    assert!(!place.render("elsewhere/renamed", |_| {}).is_changed());
}

#[test]
fn rendering_to_another_directory_keeps_the_addresses() {
    let place = with_a_hole();
    let before = place.addresses("c");
    let out = place.path("out");
    place.render("c", |r| r.out = Some(out.clone()));
    assert_eq!(before, place.addresses("out"));
    assert!(!place.render("c", |r| r.out = Some(out)).is_changed());
}

#[test]
fn a_lost_book_is_rebuilt_from_the_packages_to_the_same_addresses() {
    let place = with_a_hole();
    let before = (addresses(&place, ["a", "b", "c"]), place.held());
    let leases = |place: &Place| {
        let all = place
            .book()
            .leases(&mooring_book::Filter::default())
            .unwrap();
        all.into_iter()
            .map(|l| (l.thing.to_string(), l.holder, l.subnet, l.gateway))
            .collect::<Vec<_>>()
    };
    let held = leases(&place);
    fs::remove_file(place.path("book.redb")).unwrap();

    let sources = ["c", "a", "b"].map(|p| place.path(p));
    let Request { now, .. } = place.request("a");
    let report = rebuild(&place.book(), &sources, now, false).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    assert_eq!(
        held,
        leases(&place),
        "the same leases with the same holders"
    );
    for package in ["c", "b", "a"] {
        assert!(!place.render(package, |_| {}).is_changed(), "{package}");
    }
    assert_eq!(before, (addresses(&place, ["a", "b", "c"]), place.held()));
}

#[test]
fn a_rebuild_over_a_book_says_what_differs_and_why_and_keeps_the_book() {
    let place = with_a_hole();
    let before = place.held();
    // `c` lost one interface and was not rendered, lost the status of the other; `a` was rendered elsewhere.
    place.package("c", &["n2"]);
    fs::remove_file(place.path("c/ipclaim_n1.yaml")).unwrap();
    let claim = place.path("c/ipclaim_n2.yaml");
    let text = fs::read_to_string(&claim).unwrap();
    fs::write(&claim, text.split("status:").next().unwrap()).unwrap();
    let claim = place.path("a/ipclaim_n1.yaml");
    let text = fs::read_to_string(&claim).unwrap();
    fs::write(&claim, text.replace("10.1.2.20", "10.1.2.99")).unwrap();
    let sources = ["c", "a", "b"].map(|p| place.path(p));
    let Request { now, .. } = place.request("a");
    for check in [true, false] {
        let report = rebuild(&place.book(), &sources, now, check).unwrap();
        let said: Vec<&str> = report.findings.iter().map(|f| &*f.message).collect();
        assert!(
            report
                .findings
                .iter()
                .all(|f| f.code == Code::AddressDiffers)
        );
        assert_eq!(said.len(), 3, "{said:#?}");
        assert!(said[0].contains("the package says 10.1.2.99, the book has 10.1.2.20"));
        assert!(said[1].contains("10.1.2.24, the package has no such interface"));
        assert!(said[2].contains("10.1.2.25, the package says none"));
        assert!(!report.book_changed, "check: {check}");
        assert_eq!(place.held(), before);
    }
    // As the findings say: the next render of `c` gives one back and keeps the other.
    place.render("c", |_| {});
    assert_eq!(
        place.held(),
        ["10.1.2.20", "10.1.2.21", "10.1.2.23", "10.1.2.25"]
    );
}

#[test]
fn a_lost_book_without_rebuild_still_gives_the_same_addresses() {
    let place = with_a_hole();
    let before = addresses(&place, ["a", "b", "c"]);
    fs::remove_file(place.path("book.redb")).unwrap();
    for package in ["c", "b", "a"] {
        place.render(package, |_| {});
    }
    assert_eq!(before, addresses(&place, ["a", "b", "c"]));
}

#[test]
fn a_copy_is_refused_and_a_new_id_gives_it_addresses_of_its_own() {
    let place = with_a_hole();
    crate::fleet::copy(&place.path("c"), &place.path("copy"));
    let before = mooring_testkit::hash_tree(&place.path("copy"));
    let report = place.try_render("copy", |_| {});
    let codes: Vec<Code> = report.findings.iter().map(|f| f.code).collect();
    assert_eq!(codes, [Code::CopiedPackage]);
    assert!(
        report.findings[0]
            .location
            .as_ref()
            .unwrap()
            .file
            .ends_with("copy/Kptfile")
    );
    assert_eq!(before, mooring_testkit::hash_tree(&place.path("copy")));

    place.render("copy", |r| r.new_id = true);
    let shown: Vec<String> = place
        .addresses("copy")
        .into_iter()
        .map(|(_, a)| a)
        .collect();
    assert_eq!(
        shown,
        ["10.1.2.22/24", "10.1.2.26/24"],
        "the hole first, then the next"
    );
    // With the original gone, a copy is a move.
    let original = place.addresses("c");
    crate::fleet::copy(&place.path("c"), &place.path("again"));
    fs::remove_dir_all(place.path("c")).unwrap();
    place.render("again", |_| {});
    assert_eq!(original, place.addresses("again"));
}

#[test]
fn a_removed_package_directory_gives_nothing_back_until_it_is_released() {
    let place = with_a_hole();
    fs::remove_dir_all(place.path("c")).unwrap();
    assert_eq!(
        place.held().len(),
        5,
        "a directory that is not there says nothing"
    );
}

/// Above fifteen packages the steps run on all cores and the book is asked beforehand.
#[test]
fn a_large_fleet_gets_what_its_packages_would_get_one_by_one() {
    let (together, alone) = (Place::new(), Place::new());
    let names: Vec<String> = (0..24).map(|n| format!("all/p{n:02}")).collect();
    let interfaces = ["n1", "n2", "n3", "n4"];
    for (n, name) in names.iter().enumerate() {
        for place in [&together, &alone] {
            place.package(name, &interfaces[..=n % 4]);
        }
    }
    together.render("all", |_| {});
    for name in &names {
        alone.render(name, |_| {});
    }
    let all = |place: &Place| -> Vec<_> { names.iter().map(|p| place.addresses(p)).collect() };
    assert_eq!(all(&together), all(&alone));
    assert_eq!(together.held(), alone.held());
    assert_eq!(together.held().len(), 60);
    assert!(!together.render("all", |_| {}).is_changed());
}
