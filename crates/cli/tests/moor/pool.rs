//! `pool list`, `pool map`, and the changes of a pool: what is shown is what is done, and the next render agrees.

mod map;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::{example, moor, stdout};

const FLEET: [(&str, &str); 4] = [
    ("gnb", "my-ran"),
    ("amf", "my-core"),
    ("upf", "my-core"),
    ("edge-gnb", "edge-cluster-1"),
];

fn run(dir: &Path, arguments: &[&str]) -> (String, String, i32) {
    let output = moor(dir)
        .args(arguments)
        .args(["--mgmt", "mgmt"])
        .output()
        .unwrap();
    (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
        output.status.code().unwrap(),
    )
}

fn json(dir: &Path, arguments: &[&str]) -> (Value, i32) {
    let (text, said, code) = run(dir, &[arguments, &["-o", "json"]].concat());
    let value = serde_json::from_str(&text);
    assert!(value.is_ok(), "{value:?}: {text}\n{said}");
    (value.unwrap(), code)
}

fn render(dir: &Path, package: &str) -> Value {
    let (_, cluster) = FLEET.iter().find(|(name, _)| *name == package).unwrap();
    let (report, code) = json(dir, &["render", package, "--cluster", cluster]);
    assert_eq!(code, 0, "{report}");
    report
}

/// The example fleet, rendered around a hole: a fresh allocation would give other addresses.
fn fleet() -> tempfile::TempDir {
    let dir = example("fleet");
    for network in ["n3-network", "vpc-control"] {
        assert_eq!(
            run(dir.path(), &["claim", "hole", "--network", network]).2,
            0
        );
    }
    for (package, _) in FLEET {
        render(dir.path(), package);
    }
    assert_eq!(run(dir.path(), &["release", "--holder", "hole"]).2, 0);
    dir
}

/// Every file, the book included.
fn tree(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    fn walk(dir: &Path, all: &mut BTreeMap<String, Vec<u8>>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, all);
            } else {
                all.insert(path.display().to_string(), fs::read(&path).unwrap());
            }
        }
    }
    let mut all = BTreeMap::new();
    walk(dir, &mut all);
    all
}

/// Looks, does it, and renders: the plan is what comes out, and the book knows it already.
fn does_what_it_shows(dir: &Path, change: &[&str], changed: usize) -> Value {
    let before = tree(dir);
    let (seen, code) = json(dir, &[change, &["--check"]].concat());
    assert_eq!(code, 3, "{seen}");
    assert!(before == tree(dir), "--check changed something");
    let (done, code) = json(dir, &[change, &["--yes"]].concat());
    assert_eq!(code, 0, "{done}");
    assert_eq!(seen["effects"], done["effects"]);
    assert_eq!(done["done"], true);
    let planned: Vec<String> = done["effects"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|e| Some(e["to"].as_str()?.to_owned()))
        .collect();
    assert_eq!(planned.len(), changed, "{done:#}");
    let mut rendered = Vec::new();
    for again in done["renderAgain"].as_array().unwrap() {
        let path = Path::new(again["path"].as_str().unwrap());
        let report = render(dir, path.file_name().unwrap().to_str().unwrap());
        assert_eq!(report["book_changed"], false, "{report:#}");
        assert!(
            !report["changes"].as_array().unwrap().is_empty(),
            "{report:#}"
        );
        for interface in report["packages"][0]["interfaces"].as_array().unwrap() {
            let addresses = interface["addresses"].as_array().unwrap().iter();
            rendered.extend(addresses.map(|a| a.as_str().unwrap().to_owned()));
        }
    }
    for address in &planned {
        assert!(rendered.contains(address), "{address} in {rendered:?}");
    }
    let (again, code) = json(dir, &["render", "gnb", "--cluster", "my-ran", "--check"]);
    assert_eq!(code, 0, "{again}");
    done
}

fn pools(dir: &Path) -> String {
    fs::read_to_string(dir.join("mgmt/pools.yaml")).unwrap()
}

#[test]
fn a_pool_that_grows_keeps_every_address_and_every_comment() {
    let dir = fleet();
    let before = pools(dir.path());
    let to = ["pool", "grow", "n3-pool", "--to", "192.168.250.0/23"];
    let done = does_what_it_shows(dir.path(), &to, 2);
    assert_eq!(done["effects"][0]["from"], "192.168.251.11/24");
    assert_eq!(done["effects"][0]["to"], "192.168.251.11/23");
    // The router stays where it is, which is not the first host any more; the instance that lists the prefix follows.
    assert_eq!(done["effects"][0]["gateway"], "192.168.251.1");
    let after = pools(dir.path());
    assert!(after.contains("  prefix: 192.168.251.1/23\n"), "{after}");
    assert!(
        after.contains("    nephio.org/gateway: \"true\"\n"),
        "{after}"
    );
    let comments = |text: &str| text.lines().filter(|l| l.contains('#')).count();
    assert_eq!(comments(&before), comments(&after));
    let networks = fs::read_to_string(dir.path().join("mgmt/networks.yaml")).unwrap();
    assert!(
        networks.contains("  - prefix: 192.168.250.0/23\n"),
        "{networks}"
    );
    assert!(done["notes"][0].as_str().unwrap().contains("--ranges"));
}

#[test]
fn a_pool_does_not_grow_over_another_network() {
    let dir = fleet();
    let before = tree(dir.path());
    let (_, said, code) = run(
        dir.path(),
        &[
            "pool",
            "grow",
            "10.1.2.0/24",
            "--to",
            "10.1.2.0/23",
            "--yes",
        ],
    );
    assert_eq!(code, 1);
    assert!(said.contains("OverlappingPrefixes"), "{said}");
    assert!(said.contains("mgmt/pools.yaml:10:"), "{said}");
    assert!(before == tree(dir.path()));
}

#[test]
fn a_pool_that_shrinks_names_who_is_outside_and_moves_them_when_told() {
    let dir = fleet();
    let before = tree(dir.path());
    let shrink = ["pool", "shrink", "n3-pool", "--to", "192.168.251.128/25"];
    let (told, said, code) = run(dir.path(), &[&shrink[..], &["--yes"]].concat());
    assert_eq!(code, 1);
    assert!(
        said.contains("PoolChangeRefused") && said.contains("--move"),
        "{said}"
    );
    assert!(told.contains("my-ran / gnb / ran-gnb / n3"), "{told}");
    assert!(told.contains("my-core / upf / core-upf / n3"), "{told}");
    assert!(before == tree(dir.path()), "a refusal changed something");
    let done = does_what_it_shows(dir.path(), &[&shrink[..], &["--move"]].concat(), 2);
    assert_eq!(done["effects"][0]["to"], "192.168.251.130/25");
}

#[test]
fn what_is_kept_and_what_was_taken_by_hand_is_never_moved() {
    let dir = fleet();
    let before = tree(dir.path());
    let shrink = [
        "pool",
        "shrink",
        "ran-n2-pool",
        "--to",
        "192.168.100.128/25",
    ];
    let (_, said, code) = run(dir.path(), &[&shrink[..], &["--move", "--yes"]].concat());
    assert_eq!(code, 1);
    assert!(said.contains("192.168.100.50 for gnb-n2"), "{said}");
    assert!(before == tree(dir.path()));
    assert_eq!(
        run(dir.path(), &["claim", "leaf-1", "--network", "n6-network"]).2,
        0
    );
    let before = tree(dir.path());
    let renumber = [
        "pool",
        "renumber",
        "n6-pool",
        "--to",
        "192.168.7.0/24",
        "--yes",
    ];
    let (told, said, code) = run(dir.path(), &renumber);
    assert_eq!(code, 1);
    assert!(
        told.contains("leaf-1") && said.contains("by hand"),
        "{told}{said}"
    );
    assert!(before == tree(dir.path()));
}

#[test]
fn who_leaves_an_excluded_range_does_not_come_back_while_its_address_rests() {
    let dir = fleet();
    let text = pools(dir.path());
    let ranges = "    mooring.dev/ranges: 192.168.251.10-192.168.251.199\n";
    let text = text.replace(ranges, &format!("{ranges}    mooring.dev/cool-down: 1h\n"));
    fs::write(dir.path().join("mgmt/pools.yaml"), text).unwrap();
    let shrink = [
        "pool",
        "shrink",
        "n3-pool",
        "--exclude",
        "192.168.251.10-192.168.251.19",
        "--move",
    ];
    let done = does_what_it_shows(dir.path(), &shrink, 2);
    assert_eq!(done["effects"][0]["from"], "192.168.251.11/24");
    assert_eq!(done["effects"][0]["to"], "192.168.251.20/24");
    let (held, _) = json(dir.path(), &["who-has", "192.168.251.11"]);
    assert!(
        held[0]["state"].as_str().unwrap().starts_with("cooling"),
        "{held}"
    );
}

#[test]
fn the_parts_of_a_split_keep_labels_order_and_comments() {
    let dir = fleet();
    let before = pools(dir.path());
    let split = ["pool", "split", "ran-n2-pool", "--at", "25"];
    does_what_it_shows(dir.path(), &split, 2);
    let after = pools(dir.path());
    let at = |what: &str| after.find(what).unwrap();
    assert!(at("name: ran-n2-pool\n") < at("name: n3-pool"), "{after}");
    let (_, part) = after
        .split_once("name: ran-n2-pool-192-168-100-128-25")
        .unwrap();
    for kept in [
        "nephio.org/network-name: n2",
        "mooring.dev/cool-down: 24h",
        "prefix: 192.168.100.128/25",
    ] {
        assert!(part.contains(kept), "{kept} in {part}");
    }
    // Both allocations lie in the first half.
    assert!(
        !part.contains("allocations") || part.contains("allocations: []"),
        "{part}"
    );
    for comment in before.lines().filter(|l| l.contains('#')) {
        assert!(after.contains(comment), "{comment}");
    }
}

#[test]
fn a_drained_pool_gives_nothing_new_until_the_drain_ends() {
    let dir = fleet();
    let drain = ["pool", "drain", "control-pool", "--yes"];
    let (_, said, code) = run(dir.path(), &drain);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("1 holder stays as it is"), "{said}");
    assert!(pools(dir.path()).contains("    mooring.dev/drain: \"true\"\n"));
    let claim = ["claim", "leaf-9", "--network", "vpc-control"];
    let (_, said, code) = run(dir.path(), &claim);
    assert_eq!(code, 1);
    assert!(said.contains("is being drained"), "{said}");
    let fixed = [&claim[..], &["--address", "10.1.2.30"]].concat();
    let (_, said, code) = run(dir.path(), &fixed);
    assert_eq!(code, 1);
    assert!(
        said.contains("nothing new is handed out of 10.1.2.0/24"),
        "{said}"
    );
    // Who has one keeps it, and the list says what is going on.
    assert_eq!(render(dir.path(), "edge-gnb")["book_changed"], false);
    assert!(
        run(dir.path(), &["pool", "list"])
            .0
            .contains("10.1.2.0/24 (drained)")
    );
    let (_, said, code) = run(dir.path(), &drain);
    assert_eq!(
        (code, said.contains("it is so already")),
        (0, true),
        "{said}"
    );
    assert_eq!(
        run(
            dir.path(),
            &["pool", "drain", "control-pool", "--undo", "--yes"]
        )
        .2,
        0
    );
    assert_eq!(run(dir.path(), &claim).2, 0);
    assert!(!pools(dir.path()).contains("drain"));
}

/// A second pool for the control network.
fn second_pool(dir: &Path) {
    let more = "\
---
apiVersion: ipam.resource.nephio.org/v1alpha1
kind: IPPrefix
metadata:
  name: control-pool-2
spec:
  prefix: 10.7.0.0/24
  networkInstance:
    name: vpc-control
";
    fs::write(dir.join("mgmt/more.yaml"), more).unwrap();
    let path = dir.join("mgmt/networks.yaml");
    let text = fs::read_to_string(&path).unwrap();
    let line = "  - prefix: 10.1.2.0/24\n";
    fs::write(
        path,
        text.replace(line, &format!("{line}  - prefix: 10.7.0.0/24\n")),
    )
    .unwrap();
}

#[test]
fn the_holders_of_a_drained_pool_go_to_one_that_fits() {
    let dir = fleet();
    second_pool(dir.path());
    let done = does_what_it_shows(dir.path(), &["pool", "drain", "control-pool", "--move"], 1);
    assert_eq!(done["effects"][0]["to"], "10.7.0.2/24");
}

#[test]
fn who_is_renumbered_has_the_same_place_in_the_other_prefix() {
    let dir = fleet();
    let renumber = ["pool", "renumber", "n3-pool", "--to", "172.16.3.0/24"];
    let done = does_what_it_shows(dir.path(), &renumber, 2);
    let pairs: Vec<(&str, &str)> = done["effects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| (e["from"].as_str().unwrap(), e["to"].as_str().unwrap()))
        .collect();
    assert_eq!(
        pairs,
        [
            ("192.168.251.11/24", "172.16.3.11/24"),
            ("192.168.251.12/24", "172.16.3.12/24")
        ]
    );
    let text = pools(dir.path());
    assert!(
        text.contains("mooring.dev/ranges: 172.16.3.10-172.16.3.199"),
        "{text}"
    );
    let dir = fleet();
    second_pool(dir.path());
    let renumber = ["pool", "renumber", "control-pool", "--to", "10.7.0.0/24"];
    let done = does_what_it_shows(dir.path(), &renumber, 1);
    assert_eq!(done["effects"][0]["to"], "10.7.0.21/24");
    assert!(pools(dir.path()).contains("mooring.dev/drain"));
}

#[test]
fn without_a_terminal_and_without_yes_nothing_is_done() {
    let dir = fleet();
    let before = tree(dir.path());
    let (told, said, code) = run(dir.path(), &["pool", "split", "n3-pool", "--at", "25"]);
    assert_eq!(code, 2);
    assert!(
        told.contains("192.168.251.11/24") && said.contains("--yes"),
        "{told}{said}"
    );
    assert!(before == tree(dir.path()));
}

#[test]
fn a_pool_that_is_not_there_or_not_clear_is_said() {
    let dir = fleet();
    let before = tree(dir.path());
    for (arguments, told) in [
        (
            &["pool", "drain", "10.99.0.0/24", "--yes"][..],
            "there is no pool 10.99.0.0/24",
        ),
        (
            &["pool", "grow", "n3-pool", "--to", "10.9.0.0/16", "--yes"],
            "does not contain",
        ),
        (
            &["pool", "split", "n3-pool", "--at", "24", "--yes"],
            "cannot be split",
        ),
        (
            &[
                "pool",
                "renumber",
                "n3-pool",
                "--to",
                "192.168.251.0/25",
                "--yes",
            ],
            "cannot be renumbered",
        ),
    ] {
        let (_, said, code) = run(dir.path(), arguments);
        assert_eq!(code, 1, "{said}");
        assert!(
            said.contains("PoolChangeRefused") && said.contains(told),
            "{said}"
        );
    }
    let (_, said, code) = run(dir.path(), &["pool", "map", "10.99.0.0/24"]);
    assert_eq!(
        (code, said.contains("there is no pool")),
        (2, true),
        "{said}"
    );
    assert!(before == tree(dir.path()));
}

#[test]
fn nobody_reads_pools_whose_change_was_cut_off() {
    let dir = fleet();
    fs::write(dir.path().join("mgmt/.moor-journal"), "half").unwrap();
    for arguments in [
        &["pool", "list"][..],
        &["claim", "leaf-1", "--network", "n6-network"],
        &["render", "gnb", "--cluster", "my-ran"],
        &["pool", "drain", "n3-pool", "--check"],
    ] {
        let (_, said, code) = run(dir.path(), arguments);
        assert_eq!(code, 1, "{said}");
        assert!(said.contains("RenderInterrupted"), "{said}");
    }
}

#[test]
fn a_full_pool_is_said_with_who_has_most_of_it() {
    let dir = example("fleet");
    let text = pools(dir.path()).replace(
        "192.168.251.10-192.168.251.199",
        "192.168.251.10-192.168.251.11",
    );
    fs::write(dir.path().join("mgmt/pools.yaml"), text).unwrap();
    for package in ["gnb", "upf"] {
        render(dir.path(), package);
    }
    let (told, said, code) = run(dir.path(), &["pool", "list", "--network", "n3-network"]);
    assert_eq!(code, 0);
    assert!(told.contains("[##########] 100.0 %"), "{told}");
    assert!(
        said.contains("192.168.251.0/24 is full: 2 taken (my-core / upf: 1, my-ran / gnb: 1)"),
        "{said}"
    );
    let (_, said, code) = run(dir.path(), &["claim", "leaf-1", "--network", "n3-network"]);
    assert_eq!((code, said.contains("PoolExhausted")), (1, true), "{said}");
}

#[test]
fn a_pool_that_shrank_under_its_holders_by_hand_is_said_by_list_and_render() {
    let dir = fleet();
    let path = dir.path().join("mgmt/pools.yaml");
    let whole = pools(dir.path());
    // Narrower ranges move nobody.
    let ranges = "mooring.dev/ranges: 192.168.251.10-192.168.251.199";
    fs::write(
        &path,
        whole.replace(ranges, "mooring.dev/ranges: 192.168.251.50-192.168.251.199"),
    )
    .unwrap();
    let (told, _, code) = run(dir.path(), &["pool", "list", "--network", "n3-network"]);
    assert_eq!((code, told.contains("(2 outside)")), (0, true), "{told}");
    assert_eq!(render(dir.path(), "gnb")["book_changed"], false);
    // A prefix that no longer covers them does, and both say so.
    let smaller = whole
        .replace(ranges, "mooring.dev/cool-down: 0s")
        .replace("  prefix: 192.168.251.0/24", "  prefix: 192.168.251.128/25");
    fs::write(&path, smaller).unwrap();
    let (_, said, code) = run(dir.path(), &["pool", "list", "--network", "n3-network"]);
    assert_eq!(code, 0);
    assert!(
        said.contains("AddressOutsidePrefix") && said.contains("192.168.251.11"),
        "{said}"
    );
    let report = render(dir.path(), "gnb");
    let said = report["findings"].to_string();
    assert!(said.contains("192.168.251.11 is not kept"), "{said}");
    assert!(said.contains("it has 192.168.251.130 now"), "{said}");
}

#[test]
fn pool_list_as_data_has_everything_that_the_table_has() {
    let dir = fleet();
    let (rows, code) = json(dir.path(), &["pool", "list", "--network", "n3-network"]);
    assert_eq!(code, 0);
    let row = &rows[0];
    assert_eq!(row["name"], "n3-pool");
    assert_eq!(row["largestFree"], "192.168.251.64/26");
    assert_eq!(row["holders"][0]["holder"], "my-core / upf");
    assert_eq!(row["drained"], false);
    let (yaml, code) =
        stdout(moor(dir.path()).args(["pool", "list", "--mgmt", "mgmt", "-o", "yaml"]));
    assert_eq!((code, yaml.contains("largestFree: ")), (0, true), "{yaml}");
}
