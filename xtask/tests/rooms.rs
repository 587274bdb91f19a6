//! The architecture as tests: the table of rooms in ARCHITECTURE.md is what cargo says, and the small rooms stay
//! small. A new arrow between rooms changes the table first, where a reviewer sees it.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the functions between the tests fail like tests"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

/// A row of the table.
struct Room {
    later: bool,
    sees: BTreeSet<String>,
}

fn root() -> PathBuf {
    mooring_testkit::workspace_root()
}

fn rooms_of(architecture: &str) -> BTreeMap<String, Room> {
    let rows = architecture
        .lines()
        .skip_while(|l| !l.starts_with("| room | kind | what is in it | sees |"))
        .skip(2)
        .take_while(|l| l.starts_with('|'));
    let rooms = rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let &[name, kind, _, sees] = cells.as_slice() else {
            panic!("a row of the room table has {} cells: {row}", cells.len());
        };
        let sees = sees.split_whitespace().filter(|s| *s != "–");
        let room = Room {
            later: kind.ends_with("comes later"),
            sees: sees.map(str::to_owned).collect(),
        };
        (name.to_owned(), room)
    });
    rooms.collect()
}

fn rooms() -> BTreeMap<String, Room> {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let rooms = rooms_of(&text);
    assert!(rooms.len() > 10, "the room table was not found");
    rooms
}

fn cargo(args: &[&str]) -> String {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(args)
        .current_dir(root())
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "cargo {}: {complaint}",
        args.join(" ")
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Workspace packages, without the prefix, and their dependencies by kind (`normal`, `dev`, `build`).
fn packages() -> BTreeMap<String, BTreeSet<(String, String)>> {
    let json = cargo(&[
        "metadata",
        "--format-version",
        "1",
        "--no-deps",
        "--offline",
    ]);
    let metadata: Value = serde_json::from_str(&json).unwrap();
    let list = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
    let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let room = |name: &str| name.trim_start_matches("mooring-").to_owned();
    let mut packages = BTreeMap::new();
    for package in list(&metadata, "packages") {
        let own = list(&package, "dependencies")
            .into_iter()
            .filter(|d| d["path"].is_string());
        let depends = own.map(|d| {
            let kind = d["kind"].as_str().unwrap_or("normal").to_owned();
            (kind, room(&text(&d, "name")))
        });
        packages.insert(room(&text(&package, "name")), depends.collect());
    }
    packages
}

#[test]
fn every_crate_is_a_room_and_every_room_is_a_crate_or_comes_later() {
    let (rooms, packages) = (rooms(), packages());
    let crates: BTreeSet<&String> = packages.keys().filter(|p| *p != "xtask").collect();
    let present: BTreeSet<&String> = rooms
        .iter()
        .filter(|(_, r)| !r.later)
        .map(|(name, _)| name)
        .collect();
    assert_eq!(
        crates, present,
        "left: crates; right: rooms that ARCHITECTURE.md calls present"
    );
}

#[test]
fn a_room_sees_exactly_what_its_row_names() {
    let packages = packages();
    for (name, room) in rooms().iter().filter(|(_, r)| !r.later) {
        let normal = packages[name].iter().filter(|(kind, _)| kind == "normal");
        let sees: BTreeSet<String> = normal.map(|(_, dependency)| dependency.clone()).collect();
        assert_eq!(
            sees, room.sees,
            "{name}: left is cargo, right is ARCHITECTURE.md"
        );
    }
}

#[test]
fn a_room_only_sees_rooms_of_the_table() {
    let rooms = rooms();
    for (name, room) in &rooms {
        for seen in &room.sees {
            assert!(
                rooms.contains_key(seen),
                "{name} sees {seen}, which is no room"
            );
        }
    }
}

#[test]
fn nothing_that_ships_links_the_testkit() {
    let mut users = 0;
    for (name, depends) in packages() {
        for (kind, dependency) in depends {
            // xtask does not ship: its `up` starts the control plane that tests start.
            if dependency == "testkit" && name != "xtask" {
                assert_eq!(kind, "dev", "{name} links the testkit");
                users += 1;
            }
        }
    }
    assert!(
        users > 0,
        "nobody uses the testkit: is its name still the same?"
    );
}

/// Rooms that end up in the CNI binary, which starts for every pod.
const SMALL: &[&str] = &["api", "ipam", "attach", "host", "cni"];

#[test]
fn the_rooms_of_the_cni_binary_link_no_kubernetes_client_and_no_runtime() {
    let packages = packages();
    let mut tried = 0;
    for room in SMALL.iter().filter(|r| packages.contains_key(**r)) {
        let package = format!("mooring-{room}");
        let tree = cargo(&[
            "tree",
            "--offline",
            "-p",
            &package,
            "-e",
            "normal",
            "--prefix",
            "none",
            "--format",
            "{p}",
        ]);
        let names: BTreeSet<&str> = tree
            .lines()
            .filter_map(|l| l.split_whitespace().next())
            .collect();
        assert!(
            names.contains("serde"),
            "cargo tree was not understood:\n{tree}"
        );
        // An argument parser or a regular expression costs more than a whole ADD may.
        let exact = [
            "k8s-openapi",
            "schemars",
            "clap",
            "regex",
            "hyper",
            "futures",
        ];
        let heavy =
            |n: &&&str| n.starts_with("kube") || n.starts_with("tokio") || exact.contains(*n);
        let heavy: Vec<_> = names.iter().filter(heavy).collect();
        assert!(heavy.is_empty(), "{package} links {heavy:?}");
        tried += 1;
    }
    assert_eq!(tried, SMALL.len(), "a room was not looked at");
}

#[test]
fn the_table_is_read_cell_by_cell() {
    let text = "\
| room | kind | what is in it | sees |
|---|---|---|---|
| api | names | values | – |
| web | acts, comes later | pages | api ipam |

| other | table |
";
    let rooms = rooms_of(text);
    assert_eq!(rooms.len(), 2);
    assert!(rooms["api"].sees.is_empty() && !rooms["api"].later);
    assert!(rooms["web"].later && rooms["web"].sees.contains("ipam"));
}
