//! Help, usage errors, explain, completions: everything that needs no book.

use std::io::Read as _;
use std::process::Stdio;

use snapbox::str;

use crate::{fresh, moor, stdout};

#[test]
fn help_is_data_and_names_every_command() {
    let dir = fresh();
    moor(dir.path())
        .arg("--help")
        .assert()
        .code(0)
        .stderr_eq("")
        .stdout_eq(str![[r#"
Gives Kubernetes workloads secondary network interfaces that never move

Usage: moor <COMMAND>

Commands:
  demo         See it work: render an example fleet in three clusters and check it
  render       Specialise a package, or every package below a directory, for a cluster
  fleet        Render the variants of many blueprints, one package per place, as one act
  fn           Run one step as a KRM function: a ResourceList on stdin, the answer on stdout
  package      Packages in Git: drafts, proposals, versions, and their addresses
  pool         Pools: what there is to take from, how full it is, and how it changes
  claim        Take an address by hand, for a router, a VM or a host
  reserve      Reserve an address or a range for what is no pod: a VM, a router, a host
  release      Give an address back
  who-has      Say who holds an address
  book         The address book itself: back it up, merge it, rebuild it, read its history
  import       Take over what another system knows of addresses
  node         The node that one is logged in to
  verify       Prove that clusters do not collide: no address twice, every network reachable
  plan         Show what intents become, and what would change on nodes, addresses and the platform
  adopt        Find the intents that say what low-level objects say, and prove that nothing changes
  graph        Draw who selects which Destination, which VRF that is, and who names whom
  trace        Tell how a packet gets from one pod to another, or why it does not
  explain      Explain a finding, which IPAM fits your packages, or why something is in a network
  completions  Print a completion script for your shell
  help         Print this message or the help of the given subcommand(s)

Options:
  -h, --help     Print help
  -V, --version  Print version

Start with: moor demo

Exit codes: 0 done or unchanged, 1 something is wrong (see the findings), 2 the command line is
wrong, 3 --check would change something.

"#]]);
}

#[test]
fn a_wrong_command_line_is_exit_code_2_and_says_nothing_on_stdout() {
    let dir = fresh();
    for arguments in [
        &["no-such-command"][..],
        &[],
        &["render"],
        &["render", "nowhere"],
        &["render", ".", "--mgmt", "nowhere"],
        &["render", ".", "--dialect", "klingon"],
        &["who-has", "not-an-address"],
        &["release"],
        &["release", "10.0.0.1", "--holder", "x"],
        &["claim", "x", "--network", "n"],
        &[
            "claim",
            "x",
            "--network",
            "n",
            "--family",
            "ipv6",
            "--address",
            "10.0.0.1",
        ],
        &["pool", "list"],
        &["book", "rebuild"],
        &["book", "rebuild", "nowhere"],
        &["explain", "NoSuchCode"],
        &["verify"],
        &["verify", "nowhere"],
        &["verify", "ran=nowhere"],
        &["trace", "a", "b"],
        &["trace", "a", "b", "nowhere"],
    ] {
        let assert = moor(dir.path())
            .args(arguments)
            .assert()
            .code(2)
            .stdout_eq("");
        assert!(
            !assert.get_output().stderr.is_empty(),
            "{arguments:?} is silent"
        );
    }
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().collect();
    assert!(left.is_empty(), "a usage error wrote {left:?}");
}

#[test]
fn a_usage_error_has_its_help_on_a_line_of_its_own() {
    let dir = fresh();
    moor(dir.path())
        .args(["render", "nowhere"])
        .assert()
        .code(2)
        .stderr_eq(str![[r#"
error: nowhere does not exist
 |
 = help: DIR is a package (a directory with a Kptfile) or a directory of packages

"#]]);
}

#[test]
fn explain_prints_the_page_and_lists_the_codes() {
    let dir = fresh();
    let (page, code) = stdout(moor(dir.path()).args(["explain", "duplicate-address"]));
    assert_eq!(code, 0);
    assert!(page.starts_with("# DuplicateAddress\n"), "{page}");
    assert!(page.contains("## What to do"), "{page}");
    let (all, _) = stdout(moor(dir.path()).args(["explain", "-o", "json"]));
    assert!(all.contains("\"code\": \"YamlInvalid\""), "{all}");
}

#[test]
fn completions_know_the_commands() {
    let dir = fresh();
    for shell in ["bash", "zsh", "fish"] {
        let (script, code) = stdout(moor(dir.path()).args(["completions", shell]));
        assert_eq!(code, 0);
        assert!(script.contains("who-has"), "{shell}");
    }
}

#[test]
fn a_reader_that_stops_reading_is_not_a_failure() {
    let dir = fresh();
    // A completion script is larger than a pipe's buffer, so the program is still writing when the reader goes.
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_moor"))
        .args(["completions", "zsh"])
        .current_dir(dir.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut complaint = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut complaint)
        .unwrap();
    assert_eq!(
        (child.wait().unwrap().code(), complaint.as_str()),
        (Some(0), "")
    );
}

#[test]
fn a_full_disk_behind_stdout_is_a_failure() {
    let dir = fresh();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_moor"))
        .args(["completions", "bash"])
        .current_dir(dir.path())
        .stdout(
            std::fs::OpenOptions::new()
                .write(true)
                .open("/dev/full")
                .unwrap(),
        )
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.starts_with("error: cannot write to stdout: "),
        "{said}"
    );
}
