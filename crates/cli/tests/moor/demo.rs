//! `moor demo`: twice, with a planted duplicate, with changed inputs.

use std::fs;
use std::path::Path;

use mooring_testkit::hash_tree;
use snapbox::str;

use crate::{fresh, moor, stdout};

/// The rendered files; the book is left out, because opening it for writing may change its bytes.
fn hash(out: &Path) -> Vec<String> {
    let parts = [".inputs", "my-ran", "my-core", "edge-cluster-1"];
    parts
        .iter()
        .map(|part| hash_tree(&out.join(part)))
        .collect()
}

#[test]
fn the_demo_shows_who_got_what_and_that_no_two_clusters_share_an_address() {
    let dir = fresh();
    moor(dir.path())
        .arg("demo")
        .assert()
        .code(0)
        .stdout_eq(str![[r#"
CLUSTER         PACKAGE        INTERFACE  NETWORK        CNI      ON                ADDRESS             GATEWAY        WORKLOAD
my-ran          gnb            n2         n2-network     macvlan  eth1              192.168.100.50/24   192.168.100.1  Deployment/gnb
my-ran          gnb            n3         n3-network     macvlan  eth1              192.168.251.10/24   192.168.251.1  Deployment/gnb
my-core         amf            n2         n2-network     macvlan  eth1              192.168.100.100/24  192.168.100.1  Deployment/amf
my-core         upf            n3         n3-network     macvlan  eth1              192.168.251.11/24   192.168.251.1  Deployment/upf
my-core         upf            n6         n6-network     macvlan  eth1              192.168.252.10/24   192.168.252.1  Deployment/upf
edge-cluster-1  gnb-blueprint  n2         vpc-control    macvlan  ens3              10.1.2.20/24        10.1.2.1       StatefulSet/oai-gnb
edge-cluster-1  gnb-blueprint  n3         vpc-userplane  sriov    mooring.dev/ens4  10.1.3.20/24        10.1.3.1       StatefulSet/oai-gnb

read back 7 addresses of 4 packages in 3 clusters: no two clusters share an address

"#]]);
    let nad = dir
        .path()
        .join("moor-demo/edge-cluster-1/edge-gnb/networkattachmentdefinition_n2.yaml");
    assert!(fs::read_to_string(nad).unwrap().contains("10.1.2.20/24"));
}

#[test]
fn the_readme_shows_what_the_demo_prints_and_names_what_is_there() {
    let dir = fresh();
    let (shown, _) = stdout(moor(dir.path()).arg("demo"));
    let root = mooring_testkit::workspace_root();
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let (_, excerpt) = readme.split_once("```text\nCLUSTER").unwrap();
    let (excerpt, _) = excerpt.split_once("```").unwrap();
    let lines = excerpt.lines().skip(1);
    let lines: Vec<&str> = lines.filter(|l| !l.is_empty() && *l != "…").collect();
    assert!(lines.len() > 3, "{excerpt}");
    for line in lines {
        assert!(shown.contains(&format!("{line}\n")), "not printed: {line}");
    }
    let (_, map) = readme.split_once("## To change X, open Y").unwrap();
    let (map, _) = map.split_once("\n## ").unwrap();
    let named: Vec<&str> = map.split('`').skip(1).step_by(2).collect();
    assert!(named.len() > 10, "{named:?}");
    for path in named {
        assert!(root.join(path).exists(), "the README names {path}");
    }
}

#[test]
fn a_second_demo_changes_nothing_and_says_so() {
    let dir = fresh();
    let out = dir.path().join("moor-demo");
    let (first, code) = stdout(moor(dir.path()).arg("demo"));
    assert_eq!(code, 0);
    let before = hash(&out);
    let second = moor(dir.path())
        .arg("demo")
        .assert()
        .code(0)
        .stdout_eq(first);
    let said = String::from_utf8(second.get_output().stderr.clone()).unwrap();
    assert!(said.contains("nothing changed in ./moor-demo"), "{said}");
    assert_eq!(hash(&out), before);
}

#[test]
fn what_the_demo_says_to_try_next_works() {
    let dir = fresh();
    let run = moor(dir.path()).arg("demo").assert().code(0);
    let said = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    let (_, next) = said.split_once("Try next:\n").unwrap();
    let commands: Vec<Vec<&str>> = next
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(commands.len(), 3, "{next}");
    for command in commands {
        let (text, code) = match command.split_first().unwrap() {
            // As it was called: a newcomer has built it, not installed it.
            (&env!("CARGO_BIN_EXE_moor"), rest) => stdout(moor(dir.path()).args(rest)),
            (&"cat", [file]) => (fs::read_to_string(dir.path().join(file)).unwrap(), 0),
            _ => panic!("the test does not know {command:?}"),
        };
        assert_eq!(code, 0, "{command:?}");
        assert!(!text.is_empty(), "{command:?} says nothing");
    }
}

#[test]
fn a_planted_duplicate_is_found_and_not_repaired() {
    let dir = fresh();
    let out = dir.path().join("moor-demo");
    moor(dir.path()).arg("demo").assert().code(0);
    let nad =
        fs::read_to_string(out.join("my-ran/gnb/networkattachmentdefinition_n2.yaml")).unwrap();
    let planted = out.join("my-core/amf/planted.yaml");
    // Not generated by anybody, and under a name of its own: only the address is a duplicate.
    let planted_text: String = nad
        .lines()
        .filter(|line| !line.contains("mooring.dev/owned-by"))
        .map(|line| line.replace("name: n2", "name: n9") + "\n")
        .collect();
    fs::write(&planted, &planted_text).unwrap();
    let run = moor(dir.path()).arg("demo").assert().code(1);
    let said = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(said.contains("error[DuplicateAddress]"), "{said}");
    assert!(said.contains("192.168.100.50"), "{said}");
    assert_eq!(fs::read_to_string(&planted).unwrap(), planted_text);
    let shown = String::from_utf8(run.get_output().stdout.clone()).unwrap();
    assert!(!shown.contains("no two clusters share"), "{shown}");
}

#[test]
fn changed_inputs_are_kept_and_rendered() {
    let dir = fresh();
    let out = dir.path().join("moor-demo");
    moor(dir.path()).arg("demo").assert().code(0);
    let pools = out.join(".inputs/mgmt/pools.yaml");
    let text = fs::read_to_string(&pools).unwrap() + "# mine\n";
    fs::write(&pools, &text).unwrap();
    let run = moor(dir.path()).arg("demo").assert().code(0);
    let said = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(
        said.contains("kept as you changed it: ./moor-demo/.inputs/mgmt/pools.yaml"),
        "{said}"
    );
    assert_eq!(fs::read_to_string(&pools).unwrap(), text);
}

#[test]
fn a_directory_that_no_demo_made_is_refused() {
    let dir = fresh();
    fs::write(dir.path().join("precious"), "x").unwrap();
    moor(dir.path())
        .args(["demo", "--out", "."])
        .assert()
        .code(2)
        .stdout_eq("");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}
