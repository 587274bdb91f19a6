//! `moor reserve`: addresses for what is no pod.

use std::path::Path;

use mooring_testkit::hash_tree;

use crate::{example, moor, stdout};

/// What a run said on stderr, and how it ended.
fn said(dir: &Path, arguments: &[&str]) -> (String, i32) {
    let run = moor(dir).args(arguments).args(["--mgmt", "mgmt"]);
    let output = run.output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    (text, output.status.code().unwrap())
}

fn reserve<'a>(what: &'a str, owner: &'a str) -> Vec<&'a str> {
    let instance = "vpc-control";
    vec![
        "reserve",
        what,
        "--instance",
        instance,
        "--owner",
        owner,
        "--reason",
        "leaf router",
    ]
}

fn with<'a>(mut arguments: Vec<&'a str>, more: &[&'a str]) -> Vec<&'a str> {
    arguments.extend(more);
    arguments
}

#[test]
fn a_reserved_range_is_shown_counted_and_never_handed_out() {
    let dir = example("fleet");
    let run =
        |arguments: &[&str]| stdout(moor(dir.path()).args(arguments).args(["--mgmt", "mgmt"]));
    let (text, code) = run(&reserve("10.1.2.20-10.1.2.29", "netops"));
    assert_eq!(code, 0);
    assert!(
        text.contains("REASON") && text.contains("leaf router"),
        "{text}"
    );
    let (who, _) = run(&["who-has", "10.1.2.25", "-o", "json"]);
    let held: serde_json::Value = serde_json::from_str(&who).unwrap();
    let shown = ["address", "workload", "state", "reason"].map(|f| held[0][f].as_str().unwrap());
    let expected = ["10.1.2.20-10.1.2.29", "netops", "reserved", "leaf router"];
    assert_eq!(shown, expected);
    let (claimed, _) = run(&["claim", "leaf-1", "--network", "vpc-control"]);
    assert!(claimed.contains("10.1.2.30 "), "{claimed}");
    let (pools, _) = run(&["pool", "list", "-o", "json"]);
    let pools: serde_json::Value = serde_json::from_str(&pools).unwrap();
    let control = pools
        .as_array()
        .unwrap()
        .iter()
        .find(|p| p["network"] == "vpc-control");
    let control = control.unwrap();
    assert_eq!(
        (&control["used"], &control["reserved"]),
        (&1.into(), &10.into())
    );
    // And in a refusal its owner is named.
    let claim = [
        "claim",
        "leaf-2",
        "--network",
        "vpc-control",
        "--address",
        "10.1.2.25",
    ];
    let (refused, code) = said(dir.path(), &claim);
    assert_eq!(code, 1);
    assert!(refused.contains("10.1.2.25 is held by netops"), "{refused}");
}

#[test]
fn the_same_reservation_again_is_unchanged_and_check_says_what_would_be() {
    let dir = example("fleet");
    let arguments = with(reserve("10.1.2.64/28", "upf-team"), &["--until", "30d"]);
    let check = with(arguments.clone(), &["--check"]);
    let (text, code) = said(dir.path(), &check);
    assert_eq!(code, 3);
    assert!(
        text.contains("would be reserved for upf-team until"),
        "{text}"
    );
    assert!(!dir.path().join("mgmt/.moor").exists());
    assert_eq!(said(dir.path(), &arguments).1, 0);
    let before = hash_tree(dir.path());
    let (text, code) = said(dir.path(), &arguments);
    assert_eq!(code, 0);
    assert!(text.contains("unchanged"), "{text}");
    assert_eq!(said(dir.path(), &check).1, 0);
    assert_eq!(hash_tree(dir.path()), before);
    // Another reason is a change of the same reservation.
    let mut other = reserve("10.1.2.64/28", "upf-team");
    other[7] = "host-network UPF";
    assert_eq!(said(dir.path(), &with(other.clone(), &["--check"])).1, 3);
    assert_eq!(said(dir.path(), &other).1, 0);
    let who = stdout(moor(dir.path()).args(["who-has", "10.1.2.70", "--mgmt", "mgmt"])).0;
    assert!(
        who.contains("host-network UPF") && !who.contains("until"),
        "{who}"
    );
}

#[test]
fn a_holder_in_the_way_is_named_and_nothing_changes() {
    let dir = example("fleet");
    for name in ["leaf-1", "leaf-2"] {
        let claim = ["claim", name, "--network", "vpc-control"];
        assert_eq!(said(dir.path(), &claim).1, 0);
    }
    assert_eq!(said(dir.path(), &reserve("10.1.2.30", "netops")).1, 0);
    let before = hash_tree(dir.path());
    let (text, code) = said(dir.path(), &reserve("10.1.2.20-10.1.2.40", "storage"));
    assert_eq!(code, 1);
    for part in [
        "error[AddressHeld]: 10.1.2.20-10.1.2.40 is held by leaf-1",
        "held by leaf-2",
        "held by netops",
        "3 errors",
        "nothing was reserved",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    for (what, code) in [
        ("10.9.9.9", "AddressOutsidePrefix"),
        ("fd00::1", "AddressOutsidePrefix"),
        ("10.1.2.250-10.1.3.5", "AddressOutsidePrefix"),
    ] {
        let (text, exit) = said(dir.path(), &reserve(what, "storage"));
        assert!(exit == 1 && text.contains(code), "{text}");
    }
    let nowhere = [
        "reserve",
        "10.1.2.5",
        "--instance",
        "n9",
        "--owner",
        "a",
        "--reason",
        "b",
    ];
    let (text, code) = said(dir.path(), &nowhere);
    assert!(
        code == 1 && text.contains("UnknownNetworkInstance"),
        "{text}"
    );
    assert_eq!(hash_tree(dir.path()), before);
}

#[test]
fn what_makes_no_sense_is_a_usage_error() {
    let dir = example("fleet");
    for arguments in [
        reserve("somewhere", "a"),
        reserve("10.1.2.9-10.1.2.3", "a"),
        reserve("10.1.2.9", ""),
        with(reserve("10.1.2.9", "a"), &["--until", "2020-01-31"]),
        with(reserve("10.1.2.9", "a"), &["--until", "soon"]),
    ] {
        let (text, code) = said(dir.path(), &arguments);
        assert_eq!(code, 2, "{arguments:?}: {text}");
    }
    assert!(!dir.path().join("mgmt/.moor").exists());
}

#[test]
fn a_release_ends_it_and_only_as_a_whole() {
    let dir = example("fleet");
    assert_eq!(
        said(dir.path(), &reserve("10.1.2.20-10.1.2.29", "netops")).1,
        0
    );
    let (text, code) = said(dir.path(), &["release", "10.1.2.25"]);
    assert_eq!(code, 1);
    assert!(
        text.contains("a part of 10.1.2.20-10.1.2.29, which netops"),
        "{text}"
    );
    assert!(text.contains("moor release 10.1.2.20-10.1.2.29"), "{text}");
    assert_eq!(
        said(dir.path(), &["release", "10.1.2.20-10.1.2.29", "--check"]).1,
        3
    );
    let (text, code) = said(dir.path(), &["release", "10.1.2.20-10.1.2.29"]);
    assert!(code == 0 && text.contains("released 1 lease"), "{text}");
    let (text, _) = said(dir.path(), &["who-has", "10.1.2.25"]);
    assert!(text.contains("nobody has 10.1.2.25"), "{text}");
    let (trail, _) = stdout(moor(dir.path()).args([
        "book", "audit", "--holder", "netops", "--mgmt", "mgmt", "-o", "json",
    ]));
    let trail: serde_json::Value = serde_json::from_str(&trail).unwrap();
    let events: Vec<_> = trail
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["event"].as_str().unwrap())
        .collect();
    assert_eq!(events, ["released", "taken", "reserved"]);
}

#[test]
fn one_that_has_ended_is_nobodys_and_its_end_is_in_the_trail() {
    let dir = example("fleet");
    // The book is made in the past, as the day before would have left it.
    let path = dir.path().join("mgmt/.moor/book.redb");
    {
        use mooring_api::{Span, Time};
        use mooring_book::{FileStore, Options, Reservation, Store as _};
        use mooring_ipam::{Candidate, InstanceKey, Thing};
        let now = Time(1_700_000_000);
        let reservation = Reservation {
            instance: InstanceKey::new("", "vpc-control"),
            thing: Thing::Addr("10.1.2.20".parse().unwrap()),
            owner: "lab".into(),
            reason: "a test".into(),
            until: Some(now.after(Span(86_400))),
        };
        let store = FileStore::open(&path, &Options::default()).unwrap();
        let mut txn = store.begin(now).unwrap();
        let candidate = Candidate {
            thing: reservation.thing,
            subnet: Some("10.1.2.0/24".parse().unwrap()),
            gateway: None,
        };
        txn.try_take(&reservation.instance, &candidate, &reservation.holder())
            .unwrap();
        txn.note_reservation(reservation).unwrap();
        let id = txn.reserve(Span(60)).unwrap();
        store.commit(id, now).unwrap();
    }
    let before = hash_tree(dir.path());
    let (text, _) = said(dir.path(), &["who-has", "10.1.2.20"]);
    assert!(text.contains("nobody has 10.1.2.20"), "{text}");
    assert_eq!(hash_tree(dir.path()), before, "asking changes nothing");
    let run =
        |arguments: &[&str]| stdout(moor(dir.path()).args(arguments).args(["--mgmt", "mgmt"])).0;
    assert!(run(&["claim", "leaf-1", "--network", "vpc-control"]).contains("10.1.2.20 "));
    let trail = run(&["book", "audit", "--holder", "lab"]);
    assert!(trail.lines().nth(1).unwrap().contains("expired"), "{trail}");
}
