//! An interface that goes through the flavours and back has the address it began with, after holes were made, so that
//! allocating afresh would give another one.

use std::fs;

use mooring_api::{AddrRange, Code};
use mooring_book::{Filter, Store};
use mooring_package::rebuild;

use crate::fleet::{Place, object};

/// `a` holds .20 and .21, `b` held .22 and .23 and is gone, `c` holds .24: afresh, `c` would get .22.
fn with_a_hole() -> Place {
    let place = Place::new();
    place.package("a", &["n1", "n2"]);
    place.package("b", &["n1", "n2"]);
    place.package("c", &["n1"]);
    for package in ["a", "b", "c"] {
        place.render(package, |_| {});
    }
    place.package("b", &[]);
    place.render("b", |_| {});
    assert_eq!(place.held(), ["10.1.2.20", "10.1.2.21", "10.1.2.24"]);
    place
}

/// Sets the flavour of the only interface of `c`, and renders it twice: the second run must change nothing.
fn turn(place: &Place, flavour: &str) {
    place.package("c", &["n1"]);
    let file = place.path("c").join("interfaces.yaml");
    let marked = format!(
        "  name: n1\n  annotations:\n    mooring.dev/ipam-flavour: {flavour}\n    mooring.dev/range-size: \"4\"\n"
    );
    let text = fs::read_to_string(&file)
        .unwrap()
        .replace("  name: n1\n", &marked);
    fs::write(&file, text).unwrap();
    let report = place.render("c", |_| {});
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    assert!(!place.render("c", |_| {}).is_changed(), "{flavour}");
}

/// The range in the NAD of `c`.
fn range(place: &Place) -> AddrRange {
    let claim = object(&place.path("c"), "IPClaim", "n1");
    let text = claim["metadata"]["annotations"]["mooring.dev/range"].as_str();
    text.unwrap().parse().unwrap()
}

#[test]
fn static_to_host_local_and_back_is_the_same_address() {
    let place = with_a_hole();
    turn(&place, "host-local");
    assert_eq!(range(&place).to_string(), "10.1.2.24-10.1.2.27");
    turn(&place, "static");
    let all = place.book().leases(&Filter::default()).unwrap();
    let things: Vec<String> = all.iter().map(|l| l.thing.to_string()).collect();
    assert_eq!(things, ["10.1.2.20", "10.1.2.21", "10.1.2.24"]);
    assert_eq!(
        place.addresses("c"),
        [("n1".to_owned(), "10.1.2.24/24".to_owned())]
    );
}

#[test]
fn every_way_through_the_flavours_keeps_the_address() {
    let flavours = ["host-local", "whereabouts", "moor", "external"];
    for first in flavours {
        for second in flavours.into_iter().filter(|f| *f != first) {
            // Only an address in the claim is an answer for an external system: see the folder cases.
            if second == "external" {
                continue;
            }
            let place = with_a_hole();
            turn(&place, first);
            turn(&place, second);
            if matches!(second, "host-local" | "whereabouts") {
                assert!(
                    range(&place).contains("10.1.2.24".parse().unwrap()),
                    "{first} to {second}"
                );
            }
            turn(&place, "static");
            assert_eq!(
                place.addresses("c"),
                [("n1".to_owned(), "10.1.2.24/24".to_owned())],
                "static to {first} to {second} and back"
            );
        }
    }
}

#[test]
fn the_address_is_kept_by_a_range_that_another_package_cannot_enter() {
    let place = with_a_hole();
    turn(&place, "host-local");
    place.package("d", &["n1", "n2", "n3"]);
    place.render("d", |_| {});
    let mine = range(&place);
    for (_, address) in place.addresses("d") {
        let (address, _) = address.split_once('/').unwrap();
        assert!(!mine.contains(address.parse().unwrap()), "{address}");
    }
    // The holes of `b`, then what lies behind the range.
    assert_eq!(
        place.held(),
        [
            "10.1.2.20",
            "10.1.2.21",
            "10.1.2.22",
            "10.1.2.23",
            "10.1.2.24",
            "10.1.2.28"
        ]
    );
}

#[test]
fn what_cannot_be_kept_is_named_for_every_interface() {
    let place = with_a_hole();
    place.package("a", &["n1", "n2"]);
    let file = place.path("a").join("interfaces.yaml");
    let text = fs::read_to_string(&file).unwrap();
    let text = text.replace("metadata:\n", "metadata:\n  annotations:\n    mooring.dev/ipam-flavour: host-local\n    mooring.dev/range-size: \"8\"\n");
    fs::write(&file, text).unwrap();
    let report = place.render("a", |_| {});
    let said: Vec<_> = report
        .findings
        .iter()
        .map(|f| (f.code, f.message.as_str()))
        .collect();
    // Neither has eight free addresses around it: .24 is of another package, and each other's are in the way.
    assert_eq!(said.len(), 2, "{said:?}");
    for ((code, message), address) in said.iter().zip(["10.1.2.20", "10.1.2.21"]) {
        assert_eq!(*code, Code::AddressNotKept);
        assert!(
            message.starts_with(&format!("{address} is not kept")),
            "{message}"
        );
    }
}

/// What the book holds, and for whom.
fn leases(place: &Place) -> Vec<(String, String)> {
    let all = place.book().leases(&Filter::default()).unwrap();
    all.iter()
        .map(|l| (l.thing.to_string(), l.holder.to_string()))
        .collect()
}

#[test]
fn a_book_that_is_rebuilt_knows_the_address_inside_the_range() {
    for flavour in ["host-local", "moor"] {
        let place = with_a_hole();
        turn(&place, flavour);
        let before = leases(&place);
        let sources = ["a", "b", "c"].map(|p| place.path(p));
        let now = place.request("a").now;
        // Over the book as it is there is nothing to do and nothing to say.
        let report = rebuild(&place.book(), &sources, now, true).unwrap();
        assert!(
            report.findings.is_empty(),
            "{flavour}: {:?}",
            report.findings
        );
        assert!(!report.book_changed, "{flavour}");
        if flavour == "moor" {
            continue;
        }
        fs::remove_file(place.path("book.redb")).unwrap();
        let report = rebuild(&place.book(), &sources, now, false).unwrap();
        assert!(report.findings.is_empty(), "{:?}", report.findings);
        assert_eq!(leases(&place), before);
    }
}

#[test]
fn a_lost_book_without_rebuild_still_knows_the_address_inside_the_range() {
    let place = with_a_hole();
    turn(&place, "host-local");
    let before = leases(&place);
    fs::remove_file(place.path("book.redb")).unwrap();
    for package in ["c", "a"] {
        place.render(package, |_| {});
    }
    assert_eq!(leases(&place), before);
    turn(&place, "static");
    assert_eq!(
        place.addresses("c"),
        [("n1".to_owned(), "10.1.2.24/24".to_owned())]
    );
}
