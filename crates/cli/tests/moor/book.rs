//! `who-has`, `claim`, `release`, `pool list`, `book`: everything about addresses.

use std::path::Path;

use mooring_api::{Family, Span, Time};
use mooring_book::{FileStore, Options, PackageRecord, Store as _};
use mooring_ipam::{Candidate, Holder, InstanceKey, Thing};
use snapbox::str;

use crate::{example, fresh, moor, stdout};

/// A book in which a package holds 10.1.2.20.
fn book_with_a_package(path: &Path) {
    let store = FileStore::open(path, &Options::default()).unwrap();
    let now = Time(1_700_000_000);
    let mut txn = store.begin(now).unwrap();
    let holder = Holder {
        cluster: "edge-cluster-1".into(),
        package: "p-1".into(),
        namespace: "oai-ran".into(),
        workload: "Deployment/oai-gnb".into(),
        interface: "n2".into(),
        family: Family::V4,
        ordinal: 0,
    };
    let candidate = Candidate {
        thing: Thing::Addr("10.1.2.20".parse().unwrap()),
        subnet: Some("10.1.2.0/24".parse().unwrap()),
        gateway: None,
    };
    txn.try_take(&InstanceKey::new("", "vpc-control"), &candidate, &holder)
        .unwrap();
    txn.note_package(PackageRecord {
        id: "p-1".into(),
        cluster: "edge-cluster-1".into(),
        name: "gnb-blueprint".into(),
        path: "deployed/gnb".into(),
        workloads: std::collections::BTreeMap::new(),
        vlans: std::collections::BTreeSet::new(),
        at: now,
    })
    .unwrap();
    let id = txn.reserve(Span(60)).unwrap();
    store.commit(id, now).unwrap();
}

#[test]
fn who_has_names_cluster_package_workload_interface_and_since_when() {
    let dir = fresh();
    book_with_a_package(&dir.path().join("b.redb"));
    moor(dir.path())
        .args(["who-has", "10.1.2.20", "--book", "b.redb"])
        .assert()
        .code(0)
        .stderr_eq("")
        .stdout_eq(str![[r#"
ADDRESS    NETWORK      CLUSTER         PACKAGE        ID   NAMESPACE  WORKLOAD            INTERFACE  STATE  AGE[..]  SINCE
10.1.2.20  vpc-control  edge-cluster-1  gnb-blueprint  p-1  oai-ran    Deployment/oai-gnb  n2         held   [..]d[..]  2023-11-14T22:13:20Z

"#]]);
    let (json, _) =
        stdout(moor(dir.path()).args(["who-has", "10.1.2.20", "--book", "b.redb", "-o", "json"]));
    let held: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(held[0]["packageId"], "p-1");
    assert_eq!(held[0]["path"], "deployed/gnb");
}

#[test]
fn an_address_that_nobody_has_is_an_answer_and_makes_no_book() {
    let dir = fresh();
    let path = dir.path().join("b.redb");
    let (json, code) =
        stdout(moor(dir.path()).args(["who-has", "10.9.9.9", "--book", "b.redb", "-o", "json"]));
    assert_eq!((json.as_str(), code), ("[]\n", 0));
    assert!(!path.exists());
    book_with_a_package(&path);
    moor(dir.path())
        .args(["who-has", "10.9.9.9", "--book", "b.redb"])
        .assert()
        .code(0)
        .stdout_eq("")
        .stderr_eq("nobody has 10.9.9.9\n");
}

#[test]
fn a_claim_by_hand_is_kept_and_its_release_frees_it() {
    let dir = example("fleet");
    let claim = |name: &str| {
        let (json, code) = stdout(moor(dir.path()).args([
            "claim",
            name,
            "--network",
            "vpc-control",
            "--mgmt",
            "mgmt",
            "-o",
            "json",
        ]));
        assert_eq!(code, 0, "{name}");
        let held: serde_json::Value = serde_json::from_str(&json).unwrap();
        held[0]["address"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        (claim("leaf-1"), claim("leaf-2")),
        ("10.1.2.20".into(), "10.1.2.21".into())
    );
    moor(dir.path())
        .args(["release", "--holder", "leaf-1", "--mgmt", "mgmt"])
        .assert()
        .code(0);
    // leaf-2 keeps its address though a lower one is free; the free one goes to the next.
    assert_eq!(
        (claim("leaf-2"), claim("leaf-3")),
        ("10.1.2.21".into(), "10.1.2.20".into())
    );
}

#[test]
fn a_released_address_rests_for_others_as_long_as_its_pool_says() {
    let dir = example("fleet");
    let run =
        |arguments: &[&str]| stdout(moor(dir.path()).args(arguments).args(["--mgmt", "mgmt"]));
    let claim = |name: &str| run(&["claim", name, "--network", "n2-network"]).0;
    assert!(claim("leaf-1").contains("192.168.100.10 "));
    let (released, _) = run(&["release", "192.168.100.10"]);
    assert!(released.contains("cooling until "), "{released}");
    let (who, _) = run(&["who-has", "192.168.100.10"]);
    assert!(
        who.contains("leaf-1") && who.contains("cooling until "),
        "{who}"
    );
    assert!(claim("leaf-2").contains("192.168.100.11 "));
    assert!(claim("leaf-1").contains("192.168.100.10 "));
}

#[test]
fn an_address_of_somebody_else_is_refused_and_nothing_is_taken() {
    let dir = example("fleet");
    let claim = [
        "claim",
        "--network",
        "vpc-control",
        "--address",
        "10.1.2.30",
        "--mgmt",
        "mgmt",
    ];
    moor(dir.path()).args(claim).arg("leaf-1").assert().code(0);
    let run = moor(dir.path())
        .args(claim)
        .arg("leaf-2")
        .assert()
        .code(1)
        .stdout_eq("");
    let said = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(said.contains("error[AddressHeld]"), "{said}");
    assert!(said.contains("leaf-1"), "{said}");
}

#[test]
fn what_a_package_holds_is_released_only_by_force() {
    let dir = fresh();
    book_with_a_package(&dir.path().join("b.redb"));
    let release = ["release", "10.1.2.20", "--book", "b.redb"];
    let run = moor(dir.path()).args(release).assert().code(1);
    let said = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(said.contains("belongs to a package"), "{said}");
    let who = || stdout(moor(dir.path()).args(["who-has", "10.1.2.20", "--book", "b.redb"])).0;
    assert!(who().contains("gnb-blueprint"));
    moor(dir.path())
        .args(release)
        .arg("--force")
        .assert()
        .code(0);
    assert_eq!(who(), "");
    moor(dir.path())
        .args(release)
        .assert()
        .code(0)
        .stderr_eq("nobody has it: nothing to release\n");
}

#[test]
fn pool_list_counts_what_is_taken_and_what_is_left() {
    let dir = example("fleet");
    moor(dir.path())
        .args([
            "claim",
            "leaf-1",
            "--network",
            "vpc-control",
            "--mgmt",
            "mgmt",
        ])
        .assert()
        .code(0);
    moor(dir.path())
        .args(["pool", "list", "--mgmt", "mgmt"])
        .assert()
        .code(0)
        .stderr_eq("")
        .stdout_eq(str![[r#"
NETWORK        PREFIX            FULL                SIZE  ASIDE  USED  RESERVED  COOLING  FREE  LARGEST FREE        MOST HELD BY
n2-network     192.168.100.0/24  [··········] 0.0 %   256     68     0         0        0   188  192.168.100.128/26  -
n3-network     192.168.251.0/24  [··········] 0.0 %   256     66     0         0        0   190  192.168.251.64/26   -
n6-network     192.168.252.0/24  [··········] 0.0 %   256     66     0         0        0   190  192.168.252.64/26   -
vpc-control    10.1.2.0/24       [#·········] 0.6 %   256     76     1         0        0   179  10.1.2.64/26        leaf-1: 1
vpc-userplane  10.1.3.0/24       [··········] 0.0 %   256     76     0         0        0   180  10.1.3.64/26        -

"#]]);
    let (one, _) = stdout(moor(dir.path()).args([
        "pool",
        "list",
        "--mgmt",
        "mgmt",
        "--network",
        "n6-network",
    ]));
    assert_eq!(one.lines().count(), 2, "{one}");
}

#[test]
fn the_columns_of_pool_list_add_up_whatever_was_taken() {
    let dir = example("fleet");
    let run =
        |arguments: &[&str]| stdout(moor(dir.path()).args(arguments).args(["--mgmt", "mgmt"]));
    // A kept address (192.168.100.50), one that was chosen, and one that rests.
    assert_eq!(run(&["render", "gnb", "--cluster", "my-ran"]).1, 0);
    for name in ["leaf-1", "leaf-2"] {
        assert_eq!(run(&["claim", name, "--network", "n2-network"]).1, 0);
    }
    assert_eq!(run(&["release", "--holder", "leaf-1"]).1, 0);
    let (json, _) = run(&["pool", "list", "-o", "json"]);
    let rows: serde_json::Value = serde_json::from_str(&json).unwrap();
    for row in rows.as_array().unwrap() {
        let number = |column: &str| row[column].as_u64().unwrap();
        let parts = ["aside", "used", "reserved", "cooling", "free"];
        let sum: u64 = parts.into_iter().map(number).sum();
        assert_eq!(number("size"), sum, "{row}");
    }
    let n2 = &rows[0];
    let shown = ["aside", "used", "cooling", "free"].map(|column| n2[column].as_u64().unwrap());
    assert_eq!(shown, [67, 2, 1, 186], "{n2}");
}

#[test]
fn who_has_names_the_workload_that_the_render_attached() {
    let dir = example("fleet");
    let render = ["render", "gnb", "--mgmt", "mgmt", "--cluster", "my-ran"];
    moor(dir.path()).args(render).assert().code(0);
    // The Interface names no workload: the only one of the package was chosen.
    let (json, _) = stdout(moor(dir.path()).args([
        "who-has",
        "192.168.100.50",
        "--mgmt",
        "mgmt",
        "-o",
        "json",
    ]));
    let held: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(held[0]["workload"], "Deployment/gnb");
    assert_eq!(held[0]["interface"], "n2");
}

#[test]
fn a_refused_claim_makes_no_book() {
    let dir = example("fleet");
    let claim = ["claim", "leaf-1", "--network", "n9", "--mgmt", "mgmt"];
    let run = moor(dir.path()).args(claim).assert().code(1).stdout_eq("");
    let said = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(said.contains("error[UnknownNetworkInstance]"), "{said}");
    assert!(said.trim_end().ends_with("nothing was taken"), "{said}");
    assert!(!dir.path().join("mgmt/.moor").exists());
}

#[test]
fn a_book_that_somebody_has_is_waited_for_and_then_the_holder_is_named() {
    let dir = example("fleet");
    let path = dir.path().join("b.redb");
    let options = Options {
        who: Some("night shift".into()),
        ..Options::default()
    };
    let held = FileStore::open(&path, &options).unwrap();
    let claim = |wait: &str| {
        moor(dir.path()).args([
            "claim",
            "leaf-1",
            "--network",
            "vpc-control",
            "--mgmt",
            "mgmt",
            "--book",
            "b.redb",
            "--wait",
            wait,
        ])
    };
    let run = claim("0").assert().code(1).stdout_eq("");
    let said = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(
        said.starts_with("error[BookBusy]: the book b.redb is "),
        "{said}"
    );
    let holder = format!("in use by pid {} (night shift)", std::process::id());
    assert!(said.contains(&holder), "{said}");
    assert!(said.contains("= help: wait until"), "{said}");
    drop(held);
    claim("0").assert().code(0);
}

#[test]
fn the_audit_tells_what_happened_newest_first() {
    let dir = example("fleet");
    moor(dir.path())
        .args([
            "claim",
            "leaf-1",
            "--network",
            "vpc-control",
            "--mgmt",
            "mgmt",
        ])
        .assert()
        .code(0);
    moor(dir.path())
        .args(["release", "10.1.2.20", "--mgmt", "mgmt"])
        .assert()
        .code(0);
    let (json, code) =
        stdout(moor(dir.path()).args(["book", "audit", "--mgmt", "mgmt", "-o", "json"]));
    assert_eq!(code, 0);
    let lines: serde_json::Value = serde_json::from_str(&json).unwrap();
    let events: Vec<&str> = lines
        .as_array()
        .unwrap()
        .iter()
        .map(|l| l["event"].as_str().unwrap())
        .collect();
    assert_eq!(events, ["released", "taken", "reserved"]);
    let (one, _) =
        stdout(moor(dir.path()).args(["book", "audit", "--mgmt", "mgmt", "--limit", "1"]));
    assert!(one.contains("released") && !one.contains("taken"), "{one}");
}

#[test]
fn a_lost_book_is_made_again_from_the_packages() {
    let dir = example("fleet");
    let render = [
        "render",
        "gnb",
        "--mgmt",
        "mgmt",
        "--cluster",
        "my-ran",
        "--out",
        "deployed/gnb",
    ];
    moor(dir.path()).args(render).assert().code(0);
    std::fs::remove_dir_all(dir.path().join("mgmt/.moor")).unwrap();
    let rebuild = ["book", "rebuild", "deployed", "--mgmt", "mgmt"];
    moor(dir.path())
        .args(rebuild)
        .arg("--check")
        .assert()
        .code(3);
    assert!(
        !dir.path().join("mgmt/.moor").exists(),
        "--check made a book"
    );
    moor(dir.path()).args(rebuild).assert().code(0);
    let (who, _) = stdout(moor(dir.path()).args(["who-has", "192.168.100.50", "--mgmt", "mgmt"]));
    assert!(who.contains("gnb"), "{who}");
}

#[test]
fn a_complete_book_misses_nothing() {
    let dir = example("fleet");
    let render = [
        "render",
        "gnb",
        "--mgmt",
        "mgmt",
        "--cluster",
        "my-ran",
        "--out",
        "deployed/gnb",
    ];
    moor(dir.path()).args(render).assert().code(0);
    let rebuild = ["book", "rebuild", "deployed", "--mgmt", "mgmt", "--check"];
    moor(dir.path()).args(rebuild).assert().code(0);
}

#[test]
fn a_file_that_is_no_book_is_named_with_its_code() {
    let dir = fresh();
    std::fs::write(
        dir.path().join("b.redb"),
        "this is not a book at all, it is a letter\n".repeat(200),
    )
    .unwrap();
    let run = moor(dir.path())
        .args(["who-has", "10.1.2.20", "--book", "b.redb"])
        .assert()
        .code(1)
        .stdout_eq("");
    let said = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(
        said.starts_with("error[BookUnreadable]: cannot use the book b.redb"),
        "{said}"
    );
    assert!(said.contains("\n = help: restore a backup, or"), "{said}");
}
