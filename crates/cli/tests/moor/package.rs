//! `moor package`: a package's life in a real repository, its addresses, exit codes, and what nobody gets to see.

use std::fs;
use std::path::Path;
use std::process::Command as Process;

use snapbox::cmd::Command;
use snapbox::str;

use crate::{example, moor, stdout};

const AT: [&str; 4] = ["--repository", "packages.git", "--mgmt", "mgmt"];

/// The example fleet with an empty repository beside it.
fn place() -> tempfile::TempDir {
    let dir = example("fleet");
    let made = Process::new("git")
        .args(["init", "-q", "--bare", "-b", "main", "packages.git"])
        .current_dir(dir.path())
        .status();
    assert!(made.unwrap().success());
    dir
}

fn package(dir: &Path, args: &[&str]) -> Command {
    moor(dir)
        .env("GIT_DIR", "/nowhere")
        .arg("package")
        .args(args)
}

/// With a book.
fn addressed(dir: &Path, args: &[&str]) -> Command {
    package(dir, args).args(AT)
}

fn push(dir: &Path, workspace: &str) {
    let args = [
        "push",
        "gnb",
        "ran/gnb",
        "--workspace",
        workspace,
        "--cluster",
        "my-ran",
    ];
    addressed(dir, &args).assert().code(0);
}

fn on(dir: &Path, act: &str, workspace: &str) -> snapbox::cmd::OutputAssert {
    addressed(dir, &[act, "ran/gnb", "--workspace", workspace]).assert()
}

fn said(run: &snapbox::cmd::OutputAssert) -> String {
    String::from_utf8(run.get_output().stderr.clone()).unwrap()
}

/// Package, lifecycle, version and note of every revision.
fn listed(dir: &Path) -> Vec<String> {
    listed_of(dir, &[])
}

/// Of those that the words leave.
fn listed_of(dir: &Path, words: &[&str]) -> Vec<String> {
    let all = ["list", "--repository", "packages.git", "-o", "json"];
    let (text, code) = stdout(package(dir, &all).args(words));
    assert_eq!(code, 0);
    let all: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    let one = |r: &serde_json::Value| {
        let text = |key: &str| r[key].as_str().unwrap_or("-").to_owned();
        format!(
            "{} {} {} {}",
            text("package"),
            text("workspace"),
            text("lifecycle"),
            r["version"]
        )
    };
    all.iter().map(one).collect()
}

fn held(dir: &Path) -> String {
    let (text, _) = stdout(moor(dir).args(["pool", "list", "--mgmt", "mgmt", "-o", "json"]));
    text
}

#[test]
fn a_directory_becomes_a_draft_a_proposal_and_a_version_with_its_addresses() {
    let dir = place();
    let dir = dir.path();
    let args = [
        "push",
        "gnb",
        "ran/gnb",
        "--workspace",
        "first",
        "--cluster",
        "my-ran",
    ];
    addressed(dir, &args).assert().code(0).stdout_eq(str![[r#"
CLUSTER  PACKAGE  INTERFACE  NETWORK     CNI      ON    ADDRESS            GATEWAY        WORKLOAD
my-ran   gnb      n2         n2-network  macvlan  eth1  192.168.100.50/24  192.168.100.1  Deployment/gnb
my-ran   gnb      n3         n3-network  macvlan  eth1  192.168.251.10/24  192.168.251.1  Deployment/gnb

"#]]);
    assert_eq!(listed(dir), ["ran/gnb first Draft null"]);
    // What was pushed is what the directory holds.
    assert!(
        dir.join("gnb/networkattachmentdefinition_n2.yaml")
            .is_file()
    );
    let again = addressed(dir, &["push", "gnb"]).assert().code(0);
    assert!(said(&again).contains("is that already"), "{}", said(&again));

    on(dir, "propose", "first").code(0);
    assert_eq!(listed(dir), ["ran/gnb first Proposed null"]);
    let approved = on(dir, "approve", "first").code(0);
    assert!(
        said(&approved).contains("ran/gnb: v1 is on main"),
        "{}",
        said(&approved)
    );
    let again = on(dir, "approve", "first").code(0);
    assert!(
        said(&again).contains("v1 is already on main"),
        "{}",
        said(&again)
    );
    assert_eq!(listed(dir), ["ran/gnb first Published 1"]);
    let before = held(dir);

    package(
        dir,
        &["pull", "ran/gnb", "copy", "--repository", "packages.git"],
    )
    .assert()
    .code(0);
    fs::write(dir.join("copy/README.md"), "# gnb\n").unwrap();
    addressed(dir, &["push", "copy", "--workspace", "second"])
        .assert()
        .code(0);
    package(
        dir,
        &[
            "diff",
            "ran/gnb",
            "--workspace",
            "second",
            "--repository",
            "packages.git",
        ],
    )
    .assert()
    .code(0)
    .stdout_eq(str![[r#"
--- ran/gnb/README.md
+++ ran/gnb/README.md
@@ -0,0 +1,1 @@
+# gnb

"#]]);
    on(dir, "propose", "second").code(0);
    on(dir, "approve", "second").code(0);
    addressed(dir, &["rollback", "ran/gnb", "--to", "1"])
        .assert()
        .code(0);
    assert_eq!(before, held(dir));
    assert_eq!(
        listed(dir),
        [
            "ran/gnb first Published 1",
            "ran/gnb second Published 2",
            "ran/gnb - Published 3"
        ]
    );
    addressed(dir, &["delete", "ran/gnb"]).assert().code(2);
    addressed(dir, &["delete", "ran/gnb", "--yes"])
        .assert()
        .code(0);
    let (who, _) =
        stdout(moor(dir).args(["who-has", "192.168.100.50", "--mgmt", "mgmt", "-o", "json"]));
    assert!(who.contains("cooling until"), "{who}");
}

#[test]
fn rejecting_gives_the_addresses_back() {
    let dir = place();
    let empty = held(dir.path());
    push(dir.path(), "first");
    assert_ne!(empty, held(dir.path()));
    on(dir.path(), "propose", "first").code(0);
    let rejected = on(dir.path(), "reject", "first").code(0);
    assert!(
        said(&rejected).contains("first is a draft"),
        "{}",
        said(&rejected)
    );
    assert_eq!(empty, held(dir.path()));
    addressed(
        dir.path(),
        &["reject", "ran/gnb", "--workspace", "first", "--discard"],
    )
    .assert()
    .code(0);
    assert_eq!(listed(dir.path()), [""; 0]);
}

#[test]
fn a_draft_is_listed_and_deleted_by_its_workspace_and_the_published_package_stays() {
    let dir = place();
    let dir = dir.path();
    push(dir, "first");
    on(dir, "propose", "first").code(0);
    on(dir, "approve", "first").code(0);
    let published = held(dir);
    fs::write(dir.join("gnb/README.md"), "second\n").unwrap();
    push(dir, "second");
    assert_eq!(listed(dir).len(), 2);
    let second = || listed_of(dir, &["--workspace", "second"]);
    assert_eq!(second(), ["ran/gnb second Draft null"]);
    assert_eq!(
        listed_of(dir, &["ran/gnb", "--workspace", "third"]),
        [""; 0]
    );
    let delete = ["delete", "ran/gnb", "--workspace", "second"];
    addressed(dir, &delete).assert().code(2);
    assert_eq!(second().len(), 1, "nobody answered");
    let yes = [&delete[..], &["--yes"]].concat();
    let gone = addressed(dir, &yes).assert().code(0);
    assert!(said(&gone).contains("second is gone"), "{}", said(&gone));
    let again = addressed(dir, &yes).assert().code(0);
    assert!(
        said(&again).contains("second was not there"),
        "{}",
        said(&again)
    );
    assert_eq!(listed(dir).len(), 1, "v1 stays");
    assert_eq!(published, held(dir), "and so do its addresses");
}

#[test]
fn the_list_says_what_the_cluster_has_that_follows_the_branch() {
    let dir = place();
    let dir = dir.path();
    let at = ["--repository", "packages.git"];
    for name in ["edge01/notes", "edge01/other", "elsewhere"] {
        let begin = ["init", name, "--workspace", "w"];
        package(dir, &begin).args(at).assert().code(0);
        for act in ["propose", "approve"] {
            let act = [act, name, "--workspace", "w"];
            package(dir, &act).args(at).assert().code(0);
        }
    }
    let list = || stdout(package(dir, &["list", "--repository", "packages.git"])).0;
    let line = |name: &str| {
        let all = list();
        let found = all.lines().find(|line| line.starts_with(name));
        found.unwrap_or_else(|| panic!("{name}: {all}")).to_owned()
    };
    assert!(line("edge01/notes").ends_with(" -"), "{}", list());
    let git = |args: &[&str]| {
        let mut command = std::process::Command::new("git");
        let who = ["-c", "user.name=x", "-c", "user.email=x@example.com"];
        let run = command.current_dir(dir).args(who).args(args).output();
        let run = run.unwrap();
        assert!(run.status.success(), "{args:?}: {run:?}");
        String::from_utf8(run.stdout).unwrap().trim().to_owned()
    };
    git(&["clone", "-q", "packages.git", "work"]);
    let commit = git(&["-C", "work", "rev-parse", "HEAD"]);
    let status = dir.join("work/edge01/.status");
    fs::create_dir_all(&status).unwrap();
    let text = format!(
        "apiVersion: configsync.gke.io/v1beta1\nkind: SyncStatus\nstatus:\n  format: 1\n  cluster: edge-west\n  sync: {{commit: {commit}}}\n  conditions:\n  - {{type: Synced, status: \"False\"}}\n  objects:\n  - {{apiVersion: v1, kind: ConfigMap, name: a, state: Applied, file: notes/a.yaml}}\n  - {{apiVersion: v1, kind: ConfigMap, name: b, state: Failed, file: other/b.yaml}}\n  errors: [\"ConfigMap/b: no room\"]\n"
    );
    fs::write(status.join("sync-status.yaml"), text).unwrap();
    git(&["-C", "work", "add", "."]);
    git(&["-C", "work", "commit", "-q", "-m", "status"]);
    git(&["-C", "work", "push", "-q"]);
    assert!(
        line("edge01/notes").ends_with("edge-west Synced"),
        "{}",
        list()
    );
    assert!(
        line("edge01/other").ends_with("edge-west ApplyFailed"),
        "{}",
        list()
    );
    assert!(line("elsewhere").ends_with(" -"), "{}", list());
    let run = package(dir, &["list", "-o", "json"]).args(at).assert();
    assert!(
        said(&run).contains("ConfigMap/b: no room"),
        "{}",
        said(&run)
    );
    let text = String::from_utf8(run.get_output().stdout.clone()).unwrap();
    let all: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    assert_eq!(all[0]["deployment"]["cluster"], "edge-west", "{text}");
    assert_eq!(all[0]["deployment"]["deployed"], true, "{text}");
    assert!(all[2]["deployment"].is_null(), "{text}");
}

#[test]
fn without_a_management_directory_only_git_moves() {
    let dir = place();
    let dir = dir.path();
    let at = ["--repository", "packages.git"];
    package(dir, &["init", "notes", "--workspace", "w"])
        .args(at)
        .assert()
        .code(0);
    package(dir, &["init", "notes", "--workspace", "w"])
        .args(at)
        .assert()
        .code(0);
    for act in ["propose", "approve"] {
        package(dir, &[act, "notes", "--workspace", "w"])
            .args(at)
            .assert()
            .code(0);
    }
    assert_eq!(listed(dir), ["notes w Published 1"]);
    assert!(!dir.join("mgmt/.moor/book.redb").exists());
    let clone = [
        "clone",
        "notes-2",
        "--workspace",
        "w",
        "--from",
        "packages.git",
        "--path",
        "notes",
    ];
    package(dir, &clone)
        .args(["--ref", "notes/v1"])
        .args(at)
        .assert()
        .code(0);
    package(dir, &["pull", "notes-2", "n", "--workspace", "w"])
        .args(at)
        .assert()
        .code(0);
    let kptfile = fs::read_to_string(dir.join("n/Kptfile")).unwrap();
    assert!(
        kptfile.contains("name: notes-2") && kptfile.contains("upstreamLock"),
        "{kptfile}"
    );
}

#[test]
fn refusals_say_what_to_do_and_end_with_1() {
    let dir = place();
    let dir = dir.path();
    let absent = on(dir, "approve", "nothing").code(1);
    let text = said(&absent);
    assert!(
        text.contains("RevisionAbsent") && text.contains("moor package list"),
        "{text}"
    );
    push(dir, "first");
    // Somebody else changes the draft, and ours was made from what it was.
    package(
        dir,
        &[
            "pull",
            "ran/gnb",
            "theirs",
            "--workspace",
            "first",
            "--repository",
            "packages.git",
        ],
    )
    .assert()
    .code(0);
    fs::write(dir.join("theirs/x.yaml"), "a: 1\n").unwrap();
    addressed(dir, &["push", "theirs"]).assert().code(0);
    fs::write(dir.join("gnb/y.yaml"), "a: 1\n").unwrap();
    let moved = addressed(dir, &["push", "gnb"]).assert().code(1);
    assert!(said(&moved).contains("DraftMoved"), "{}", said(&moved));
    // A finding keeps it from being pushed.
    let wrong = fs::read_to_string(dir.join("theirs/interface-n2.yaml")).unwrap();
    fs::write(
        dir.join("theirs/interface-n2.yaml"),
        wrong.replace("n2-network", "nowhere"),
    )
    .unwrap();
    let refused = addressed(dir, &["push", "theirs"]).assert().code(1);
    let text = said(&refused);
    assert!(
        text.contains("UnknownNetworkInstance") && text.contains("theirs/interface-n2.yaml"),
        "{text}"
    );
    assert!(text.contains("nothing was pushed"), "{text}");
}

#[test]
fn a_wrong_command_line_is_exit_code_2() {
    let dir = place();
    for args in [
        &["list"][..],
        &[
            "list",
            "--repository",
            "https://me:hunter2@example.com/x.git",
        ],
        &[
            "init",
            "../x",
            "--workspace",
            "w",
            "--repository",
            "packages.git",
        ],
        &[
            "init",
            "x",
            "--workspace",
            "a/b",
            "--repository",
            "packages.git",
        ],
        &[
            "push",
            "gnb",
            "--repository",
            "packages.git",
            "--workspace",
            "w",
        ],
        &["push", "gnb", "g", "--repository", "packages.git"],
        &[
            "push",
            "nowhere",
            "g",
            "--repository",
            "packages.git",
            "--workspace",
            "w",
        ],
        &["list", "--repository", "packages.git", "--branch", "-x"],
        &[
            "list",
            "--repository",
            "packages.git",
            "--token-file",
            "gnb/Kptfile",
        ],
        &[
            "approve",
            "x",
            "--workspace",
            "w",
            "--repository",
            "packages.git",
            "--hold",
            "soon",
        ],
    ] {
        let run = package(dir.path(), args).assert().code(2);
        assert!(!said(&run).contains("hunter2"), "{args:?}");
    }
}

#[test]
fn a_git_that_is_missing_is_said() {
    let dir = place();
    let run =
        package(dir.path(), &["list", "--repository", "packages.git"]).env("PATH", "/nowhere");
    let run = run.assert().code(1);
    assert!(
        said(&run).contains("GitMissing") && said(&run).contains("install git"),
        "{}",
        said(&run)
    );
}
