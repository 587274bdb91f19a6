//! `moor-cni install` and `uninstall` on directories of our own.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use mooring_testkit::{Said, assert_same_tree, copy_tree, hash_tree};
use serde_json::json;

use super::protocol::{PROGRAM, is_there, plugins, run};

struct Node {
    dir: tempfile::TempDir,
}

impl Node {
    fn new() -> Self {
        let node = Self {
            dir: tempfile::tempdir().expect("a directory"),
        };
        fs::create_dir(node.bin()).expect("a directory");
        fs::create_dir(node.conf()).expect("a directory");
        node
    }

    fn bin(&self) -> PathBuf {
        self.dir.path().join("bin")
    }

    fn conf(&self) -> PathBuf {
        self.dir.path().join("net.d")
    }

    fn run(&self, words: &[&str]) -> Said {
        let mut command = Command::new(PROGRAM);
        command
            .env_clear()
            .args(words)
            .arg("--bin-dir")
            .arg(self.bin());
        run(command, b"")
    }

    /// A configuration beside the directories, and the option for it.
    fn wanted(&self, name: &str, text: &str) -> String {
        let path = self.dir.path().join(name);
        put(&path, text, 0o644);
        path.display().to_string()
    }
}

/// A file with text and a mode.
fn put(path: &Path, text: &str, mode: u32) {
    let mut file = fs::File::create(path).expect("a file");
    file.write_all(text.as_bytes()).expect("its text");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its mode");
}

fn conflist(kind: &str) -> String {
    json!({"cniVersion": "1.0.0", "name": "rail", "plugins": [
        {"type": kind, "master": "eth1", "ipam": {"type": "static"}}]})
    .to_string()
}

/// What a started plugin says about itself.
fn versions(program: &Path) -> Said {
    let output = Command::new(program)
        .env_clear()
        .env("CNI_COMMAND", "VERSION")
        .stdin(Stdio::null())
        .output();
    output.expect("it starts").into()
}

#[test]
fn every_plugin_is_there_afterwards_and_is_one_file() {
    let node = Node::new();
    let said = node.run(&["install"]);
    let program = fs::metadata(node.bin().join("moor-cni")).expect("the program");
    let names = plugins();
    for name in &names {
        let path = node.bin().join(name);
        assert!(
            said.ok().contains(&path.display().to_string()),
            "{}",
            said.stdout
        );
        assert!(versions(&path).ok().contains("1.1.0"), "{name}");
        let meta = fs::metadata(&path).expect("a plugin");
        assert_eq!(
            (meta.ino(), meta.mode() & 0o777),
            (program.ino(), 0o755),
            "{name}"
        );
    }
    let there = fs::read_dir(node.bin()).expect("a directory").count();
    assert_eq!(there, names.len() + 1, "nothing else is left");
}

#[test]
fn uninstall_brings_back_exactly_what_was_there() {
    let node = Node::new();
    put(
        &node.bin().join("macvlan"),
        "#!/bin/sh\necho the old macvlan\n",
        0o755,
    );
    put(&node.bin().join("whereabouts"), "somebody else's", 0o700);
    symlink("macvlan", node.bin().join("ipvlan")).expect("a link");
    symlink("/nowhere", node.bin().join("vlan")).expect("a broken link");
    let before = copy_tree(&node.bin());
    let said = node.run(&["install"]);
    assert_eq!(
        said.ok().matches("(the old one is kept)").count(),
        3,
        "{}",
        said.stdout
    );
    assert!(versions(&node.bin().join("ipvlan")).ok().contains("1.1.0"));
    // An upgrade takes our own files for nobody's.
    let said = node.run(&["install"]);
    assert_eq!(
        said.ok().matches("(the old one is kept)").count(),
        0,
        "{}",
        said.stdout
    );
    node.run(&["uninstall"]).ok();
    assert_same_tree(before.path(), &node.bin());
    assert_eq!(
        fs::metadata(node.bin().join("macvlan"))
            .expect("old")
            .mode()
            & 0o777,
        0o755
    );
    let said = node.run(&["uninstall"]);
    assert!(said.ok().contains("nothing of moor-cni"), "{}", said.stdout);
    assert_same_tree(before.path(), &node.bin());
}

#[test]
fn what_somebody_else_put_there_since_stays() {
    let node = Node::new();
    put(&node.bin().join("macvlan"), "first", 0o755);
    node.run(&["install"]).ok();
    // Another installer, as they do it: a new file over our name.
    fs::remove_file(node.bin().join("macvlan")).expect("ours");
    put(&node.bin().join("macvlan"), "second", 0o755);
    let said = node.run(&["uninstall"]);
    assert!(
        said.ok().contains("replaced by somebody else"),
        "{}",
        said.stdout
    );
    let text = |name: &str| fs::read_to_string(node.bin().join(name)).unwrap_or_default();
    assert_eq!(
        (text("macvlan"), text(".moor-cni/old/macvlan")),
        ("second".into(), "first".into())
    );
    // Installed again, the second one is what comes back.
    node.run(&["install"]).ok();
    node.run(&["uninstall"]).ok();
    assert_eq!(text("macvlan"), "second");
    assert!(!is_there(&node.bin().join(".moor-cni")));
}

#[test]
fn only_the_named_plugins_are_touched() {
    let node = Node::new();
    put(&node.bin().join("bridge"), "the old bridge", 0o755);
    node.run(&["install", "--only", "macvlan, static"]).ok();
    let mut names: Vec<String> = fs::read_dir(node.bin())
        .expect("a directory")
        .map(|e| {
            e.expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    assert_eq!(names, ["bridge", "macvlan", "moor-cni", "static"]);
    let said = node.run(&["install", "--only", "macvlan,nonsense"]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(2), ""));
    assert!(said.stderr.contains("\"nonsense\""), "{}", said.stderr);
}

#[test]
fn a_plugin_can_be_started_at_every_instant_of_an_install() {
    let node = Node::new();
    node.run(&["install"]).ok();
    let (done, started) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                for name in ["macvlan", "static"] {
                    let said = versions(&node.bin().join(name));
                    assert!(said.ok().contains("1.1.0"), "{name}");
                    started.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        let mut installs = 0;
        while installs < 10 || started.load(Ordering::Relaxed) < 40 {
            node.run(&["install"]).ok();
            installs += 1;
            assert!(installs < 1000, "the plugins do not start");
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn leftovers_of_an_interrupted_install_are_no_obstacle() {
    let node = Node::new();
    for name in [".moor-cni.new", ".macvlan.new"] {
        put(&node.bin().join(name), "half a file", 0o644);
    }
    node.run(&["install"]).ok();
    assert!(versions(&node.bin().join("macvlan")).ok().contains("1.1.0"));
    assert!(!is_there(&node.bin().join(".macvlan.new")));
    assert!(!is_there(&node.bin().join(".moor-cni.new")));
}

#[test]
fn a_configuration_comes_last_and_goes_first() {
    let node = Node::new();
    let conf = node.wanted("10-rail.conflist", &conflist("macvlan"));
    let dir = node.conf().display().to_string();
    put(&node.conf().join("10-rail.conflist"), "the old one", 0o644);
    put(&node.conf().join("README"), "no configuration", 0o644);
    let before = copy_tree(&node.conf());
    let said = node.run(&["install", "--conf", &conf, "--conf-dir", &dir]);
    let last = said.ok().lines().last().map(str::to_owned);
    assert_eq!(last, Some(format!("{dir}/10-rail.conflist")));
    let text = || fs::read_to_string(node.conf().join("10-rail.conflist")).unwrap_or_default();
    assert_eq!(text(), conflist("macvlan"));
    // Installed twice, the first one's predecessor is still what comes back.
    node.run(&["install", &format!("--conf={conf}"), "--conf-dir", &dir])
        .ok();
    let said = node.run(&["uninstall"]);
    assert!(
        said.ok().starts_with(&format!("{dir}/10-rail.conflist")),
        "{}",
        said.stdout
    );
    assert_same_tree(before.path(), &node.conf());
}

#[test]
fn a_configuration_that_is_not_to_be_seen_keeps_its_plugins() {
    let node = Node::new();
    let conf = node.wanted("10-rail.conflist", &conflist("macvlan"));
    let (seen, elsewhere) = (node.conf(), node.dir.path().join("elsewhere"));
    let dir = seen.display().to_string();
    node.run(&["install", "--conf", &conf, "--conf-dir", &dir])
        .ok();
    fs::rename(&seen, &elsewhere).expect("another name");
    let before = hash_tree(node.dir.path());
    let said = node.run(&["uninstall"]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""));
    assert!(said.stderr.contains(&dir), "{}", said.stderr);
    assert_eq!(before, hash_tree(node.dir.path()));
    fs::rename(&elsewhere, &seen).expect("its own name");
    node.run(&["uninstall"]).ok();
    assert!(!is_there(&seen.join("10-rail.conflist")));
    assert!(!is_there(&node.bin().join("macvlan")));
}

#[test]
fn a_configuration_that_was_edited_is_kept_out_of_the_runtimes_sight() {
    let node = Node::new();
    let conf = node.wanted("10-rail.conflist", &conflist("macvlan"));
    let dir = node.conf().display().to_string();
    node.run(&["install", "--conf", &conf, "--conf-dir", &dir])
        .ok();
    put(&node.conf().join("10-rail.conflist"), "edited", 0o644);
    node.run(&["uninstall"]).ok();
    let kept = fs::read_to_string(node.conf().join("10-rail.conflist.kept"));
    assert_eq!(kept.ok().as_deref(), Some("edited"));
    assert!(!is_there(&node.conf().join("10-rail.conflist")));
}

#[test]
fn a_configuration_that_would_do_nothing_is_refused_before_anything_is_touched() {
    let node = Node::new();
    let dir = node.conf().display().to_string();
    put(&node.conf().join("05-other.conflist"), "{}", 0o644);
    let shadowed = node.wanted("10-rail.conflist", &conflist("macvlan"));
    let cases = [
        (shadowed.clone(), "05-other.conflist"),
        (
            node.wanted("01-rail.txt", &conflist("macvlan")),
            ".conflist",
        ),
        (
            node.wanted("01-rail.conf", &conflist("macvlan")),
            "must be named .conflist",
        ),
        (
            node.wanted("02-rail.conflist", "{\"name\": \"n\"}"),
            "list of plugins",
        ),
        (node.wanted("03-rail.conflist", "{"), "EOF"),
        (
            node.wanted("04-rail.conflist", &conflist("nobody")),
            "\"nobody\"",
        ),
        (
            node.wanted(
                "04-rail.conf",
                "{\"name\": \"../n\", \"type\": \"macvlan\"}",
            ),
            "network name",
        ),
        (
            node.wanted(
                "04-x.conf",
                "{\"name\": \"n\", \"cniVersion\": \"7\", \"type\": \"macvlan\"}",
            ),
            "incompatible",
        ),
        (
            "/no/such/file.conflist".to_owned(),
            "/no/such/file.conflist",
        ),
    ];
    let before = hash_tree(node.dir.path());
    for (conf, word) in &cases {
        let said = node.run(&["install", "--conf", conf, "--conf-dir", &dir]);
        assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""), "{conf}");
        assert!(said.stderr.contains(word), "{conf}: {}", said.stderr);
        assert_eq!(hash_tree(node.dir.path()), before, "{conf}");
    }
    let said = node.run(&[
        "install",
        "--shadowed",
        "--conf",
        &shadowed,
        "--conf-dir",
        &dir,
    ]);
    assert!(
        said.ok().contains("warning: 05-other.conflist"),
        "{}",
        said.stdout
    );
    assert!(is_there(&node.conf().join("10-rail.conflist")));
}

#[test]
fn a_configuration_that_takes_the_default_network_over_says_so() {
    let node = Node::new();
    let dir = node.conf().display().to_string();
    put(&node.conf().join("10-flannel.conflist"), "{}", 0o644);
    let conf = node.wanted("00-rail.conflist", &conflist("macvlan"));
    let said = node.run(&["install", "--conf", &conf, "--conf-dir", &dir]);
    assert!(
        said.ok()
            .contains("10-flannel.conflist, which was the default network"),
        "{}",
        said.stdout
    );
}

#[test]
fn wrong_words_are_refused_with_a_hint_and_without_json() {
    let node = Node::new();
    for words in [
        &["instal"][..],
        &["install", "--nonsense", "x"],
        &["install", "macvlan"],
        &["install", "--conf"],
        &["uninstall", "--only", "x"],
    ] {
        let said = node.run(words);
        assert_eq!(
            (said.code, said.stdout.as_str()),
            (Some(2), ""),
            "{words:?}"
        );
        assert!(
            said.stderr.contains("help: moor-cni --help"),
            "{}",
            said.stderr
        );
    }
    let mut command = Command::new(PROGRAM);
    command.env_clear().args(["install", "--help"]);
    let said = run(command, b"");
    assert!(
        said.ok().contains("Examples") && said.ok().contains("amd-host-device"),
        "{}",
        said.stdout
    );
    let mut command = Command::new(PROGRAM);
    command.env_clear().arg("--version");
    assert!(run(command, b"").ok().starts_with("moor-cni "));
}
