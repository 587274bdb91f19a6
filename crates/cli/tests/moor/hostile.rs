//! Bad input through the real program: a finding with its place and its remedy, exit code 1, and nothing changed: no
//! file of the package, no byte of the book, and no book where none was.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use mooring_testkit::hash_tree;

use crate::{example, moor};

const EDGE: [&str; 6] = [
    "render",
    "edge-gnb",
    "--mgmt",
    "mgmt",
    "--cluster",
    "edge-cluster-1",
];

/// A fleet with a book in it, or without one.
fn fleet(with_book: bool) -> tempfile::TempDir {
    let dir = example("fleet");
    if with_book {
        let other = ["render", "gnb", "--mgmt", "mgmt", "--cluster", "my-ran"];
        moor(dir.path()).args(other).assert().code(0);
        assert!(dir.path().join("mgmt/.moor/book.redb").is_file());
    }
    dir
}

/// Renders, and gives what was said. It must be a refusal with this code, this place and a remedy.
fn refused(dir: &Path, code: &str, place: &str) -> String {
    let run = moor(dir).args(EDGE).assert().code(1).stdout_eq("");
    let said = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(said.contains(&format!("error[{code}]: ")), "{said}");
    assert!(said.contains(place), "{place} is not named: {said}");
    assert!(said.contains("= help: "), "no remedy: {said}");
    assert!(said.contains(&format!("moor explain {code}")), "{said}");
    assert!(said.trim_end().ends_with("nothing was written"), "{said}");
    said
}

/// Spoils a fleet, renders, and expects every byte as before, the book's among them: with a book, and without one.
fn untouched(code: &str, place: &str, spoil: impl Fn(&Path)) {
    for with_book in [false, true] {
        let dir = fleet(with_book);
        spoil(dir.path());
        let before = hash_tree(dir.path());
        refused(dir.path(), code, place);
        assert_eq!(hash_tree(dir.path()), before, "with a book: {with_book}");
    }
}

fn append(path: &Path, text: &str) {
    let before = fs::read_to_string(path).unwrap();
    fs::write(path, before + text).unwrap();
}

fn replace(path: &Path, from: &str, to: &str) {
    let before = fs::read_to_string(path).unwrap();
    assert!(before.contains(from), "{} has no {from}", path.display());
    fs::write(path, before.replace(from, to)).unwrap();
}

#[test]
fn a_file_that_is_too_large_is_refused_without_being_read() {
    for (place, with_book) in [
        ("edge-gnb/huge.yaml", false),
        ("edge-gnb/huge.yaml", true),
        ("mgmt/huge.yaml", false),
        ("mgmt/huge.yaml", true),
    ] {
        let dir = fleet(with_book);
        let before = hash_tree(dir.path());
        let path = dir.path().join(place);
        // A terabyte with nothing in it: whoever reads it does not come back.
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        refused(dir.path(), "FileTooLarge", place);
        fs::remove_file(&path).unwrap();
        assert_eq!(hash_tree(dir.path()), before);
    }
}

#[test]
fn a_hundred_megabytes_of_yaml_are_refused() {
    let dir = fleet(true);
    let before = hash_tree(dir.path());
    let path = dir.path().join("edge-gnb/notes.yaml");
    fs::write(&path, "- a line of text\n".repeat(100 << 20 >> 4)).unwrap();
    let said = refused(dir.path(), "FileTooLarge", "edge-gnb/notes.yaml");
    assert!(said.contains("8 MiB"), "{said}");
    fs::remove_file(&path).unwrap();
    assert_eq!(hash_tree(dir.path()), before);
}

#[test]
fn an_alias_bomb_is_refused_in_whichever_document_it_stands() {
    let mut bomb = String::from("---\nbomb:\n  a: &a [x, x, x, x, x, x, x, x, x]\n");
    for (one, before) in ('b'..='j').zip('a'..) {
        let many = format!("*{before}, ").repeat(9);
        let line = format!("  {one}: &{one} [{}]\n", many.trim_end_matches(", "));
        bomb.push_str(&line);
    }
    untouched("AliasBomb", "edge-gnb/interfaces.yaml:", |dir| {
        append(&dir.join("edge-gnb/interfaces.yaml"), &bomb);
    });
}

#[test]
fn links_out_of_the_package_are_refused() {
    untouched("PathOutsidePackage", "edge-gnb/pools.yaml", |dir| {
        symlink("../mgmt/pools.yaml", dir.join("edge-gnb/pools.yaml")).unwrap();
    });
    untouched("PathOutsidePackage", "edge-gnb/others", |dir| {
        symlink("../mgmt", dir.join("edge-gnb/others")).unwrap();
    });
    untouched("PathOutsidePackage", "edge-gnb/etc", |dir| {
        symlink("/etc", dir.join("edge-gnb/etc")).unwrap();
    });
}

#[test]
fn broken_yaml_is_shown_with_its_line_in_the_second_document() {
    let broken =
        "---\napiVersion: req.nephio.org/v1alpha1\nkind: Interface\nmetadata:\n  name: [n4\n";
    untouched("YamlInvalid", "edge-gnb/interfaces.yaml:3", |dir| {
        append(&dir.join("edge-gnb/interfaces.yaml"), broken);
    });
    untouched("YamlInvalid", "mgmt/networks.yaml:", |dir| {
        append(&dir.join("mgmt/networks.yaml"), broken);
    });
}

#[test]
fn a_directory_that_is_read_only_for_everybody_is_refused_before_the_book_is_told() {
    let writable = |dir: &Path, mode: u32| {
        let package = dir.join("edge-gnb");
        fs::set_permissions(&package, fs::Permissions::from_mode(mode)).unwrap();
    };
    untouched("FileUnwritable", "cannot write edge-gnb", |dir| {
        writable(dir, 0o555);
    });
    // And the same package renders once it may.
    let dir = fleet(false);
    writable(dir.path(), 0o555);
    refused(dir.path(), "FileUnwritable", "edge-gnb");
    writable(dir.path(), 0o755);
    moor(dir.path()).args(EDGE).assert().code(0);
}

#[test]
fn an_exhausted_pool_takes_nothing_of_what_could_be_taken() {
    // n2 and n3 in one network with one address: the first could be served, the second not.
    untouched("PoolExhausted", "edge-gnb/interfaces.yaml:", |dir| {
        replace(
            &dir.join("mgmt/pools.yaml"),
            "10.1.2.20-10.1.2.199",
            "10.1.2.20-10.1.2.20",
        );
        let interfaces = dir.join("edge-gnb/interfaces.yaml");
        replace(&interfaces, "name: vpc-userplane", "name: vpc-control");
    });
}

#[test]
fn a_refused_render_into_another_directory_leaves_no_directory() {
    for with_book in [false, true] {
        let dir = fleet(with_book);
        replace(&dir.path().join("edge-gnb/interfaces.yaml"), "ens4", "ens9");
        let before = hash_tree(dir.path());
        moor(dir.path())
            .args(EDGE)
            .args(["--out", "deployed/edge-cluster-1/gnb"])
            .assert()
            .code(1)
            .stdout_eq("");
        assert_eq!(hash_tree(dir.path()), before);
    }
}

/// Runs something with a book in place, and expects this exit code and every byte as before.
fn leaves_everything(dir: &Path, args: &[&str], stdin: &str, code: i32) -> String {
    let before = hash_tree(dir);
    let run = moor(dir).args(args).stdin(stdin.to_owned()).assert();
    let run = run.code(code);
    assert_eq!(hash_tree(dir), before, "after {args:?}");
    String::from_utf8(run.get_output().stderr.clone()).unwrap()
}

#[test]
fn a_function_that_is_refused_makes_no_book() {
    let broken = "kind: ResourceList\nitems:\n- kind: Interface\n  metadata: {}\n";
    leaves_everything(example("fleet").path(), &["fn", "ipam-fn"], broken, 1);
}

/// A package with three interfaces, and a pool with two addresses: the first could be served, the last not.
const EXHAUSTED: &str = "\
apiVersion: config.kubernetes.io/v1
kind: ResourceList
items:
- apiVersion: kpt.dev/v1
  kind: Kptfile
  metadata: {name: tight}
- apiVersion: infra.nephio.org/v1alpha1
  kind: WorkloadCluster
  metadata: {name: edge-cluster-1}
  spec: {clusterName: edge-cluster-1, cnis: [macvlan], masterInterface: ens3}
- apiVersion: req.nephio.org/v1alpha1
  kind: Interface
  metadata: {name: n2, namespace: ran}
  spec: {networkInstance: {name: tight}, cniType: macvlan}
- apiVersion: req.nephio.org/v1alpha1
  kind: Interface
  metadata: {name: n3, namespace: ran}
  spec: {networkInstance: {name: tight}, cniType: macvlan}
- apiVersion: req.nephio.org/v1alpha1
  kind: Interface
  metadata: {name: n4, namespace: ran}
  spec: {networkInstance: {name: tight}, cniType: macvlan}
- apiVersion: ipam.resource.nephio.org/v1alpha1
  kind: IPPrefix
  metadata: {name: pool}
  spec: {prefix: 10.9.9.8/30, networkInstance: {name: tight}}
";

#[test]
fn a_function_that_is_refused_leaves_every_byte_of_a_book() {
    let dir = fleet(true);
    let book = ["--book", "mgmt/.moor/book.redb"];
    let list = moor(dir.path())
        .args(["fn", "interface-fn"])
        .stdin(EXHAUSTED)
        .assert()
        .code(0);
    let list = String::from_utf8(list.get_output().stdout.clone()).unwrap();
    let ipam = ["fn", "ipam-fn", book[0], book[1]];
    let said = leaves_everything(dir.path(), &ipam, &list, 1);
    assert!(said.contains("error[PoolExhausted]"), "{said}");
}

#[test]
fn commands_that_are_refused_or_have_nothing_to_do_leave_every_byte_of_a_book() {
    let dir = fleet(true);
    let claim = |name, network| ["claim", name, "--network", network, "--mgmt", "mgmt"];
    let taken = claim("leaf-1", "vpc-control");
    moor(dir.path()).args(taken).assert().code(0);
    let render = ["render", "gnb", "--mgmt", "mgmt", "--cluster", "my-ran"];
    let fixed = ["--address", "10.1.2.20"];
    let cases: [(&[&str], i32, &str); 9] = [
        (&claim("leaf-1", "n9"), 1, "error[UnknownNetworkInstance]"),
        (
            &[&claim("leaf-2", "vpc-control")[..], &fixed].concat(),
            1,
            "error[",
        ),
        (
            &["release", "192.168.100.50", "--mgmt", "mgmt"],
            1,
            "error[AddressHeld]",
        ),
        (
            &["release", "10.9.9.9", "--mgmt", "mgmt"],
            0,
            "nobody has it",
        ),
        (&taken, 0, "has it already"),
        (&render, 0, ""),
        (&[&render[..], &["--check"]].concat(), 0, ""),
        (
            &["book", "rebuild", "gnb", "--mgmt", "mgmt"],
            0,
            "is complete\n",
        ),
        (&["book", "audit", "--mgmt", "mgmt"], 0, ""),
    ];
    for (args, code, expected) in cases {
        let said = leaves_everything(dir.path(), args, "", code);
        assert!(said.contains(expected), "{args:?}: {said}");
    }
    // And the book can still be told something.
    let before = hash_tree(dir.path());
    let other = claim("leaf-3", "vpc-control");
    moor(dir.path()).args(other).assert().code(0);
    assert_ne!(hash_tree(dir.path()), before);
}
