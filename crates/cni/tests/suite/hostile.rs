//! Bad input of every kind, to every plugin: a CNI error in JSON, and nothing changed on the node or on disk.

use std::fs;
use std::path::Path;

use mooring_host::record::Records;
use mooring_testkit::{Netns, Said, Sandbox, hash_tree};
use serde_json::{Value, json};

use super::protocol::{PROGRAM, error, not_text, plugin, plugins, run};

/// A node, a pod, and everything that must not change.
struct Scene {
    node: Netns,
    pod: Netns,
    dir: tempfile::TempDir,
    _sandbox: Sandbox,
}

impl Scene {
    fn new(what: &str) -> Option<Self> {
        let sandbox = Sandbox::new(what)?;
        let fabric = sandbox.fabric("fabric");
        let node = sandbox.plugged(&fabric, "node");
        let pod = sandbox.netns("pod");
        let dir = tempfile::tempdir().expect("a directory");
        fs::create_dir_all(dir.path().join("root/var/lib/cni/networks/n")).expect("a directory");
        Some(Self {
            node,
            pod,
            dir,
            _sandbox: sandbox,
        })
    }

    /// Links and addresses of both namespaces, and every file.
    fn state(&self) -> (String, String, String) {
        // Counters and timers change by themselves; names, indexes and addresses do not.
        let shown = |netns: &Netns| {
            let links = netns.ip("-o link show");
            let names = links
                .lines()
                .map(|l| l.split('<').next().unwrap_or_default().to_owned());
            names.collect::<Vec<_>>().join("\n")
        };
        let files = hash_tree(self.dir.path());
        (shown(&self.node), shown(&self.pod), format!("{files:?}"))
    }

    fn variables(&self, verb: &str) -> Vec<(&'static str, String)> {
        vec![
            ("CNI_COMMAND", verb.to_owned()),
            ("CNI_CONTAINERID", "pod1".to_owned()),
            ("CNI_NETNS", self.pod.path()),
            ("CNI_IFNAME", "net1".to_owned()),
            ("CNI_PATH", "/nowhere".to_owned()),
            (
                "MOOR_CNI_ROOT",
                self.dir.path().join("root").display().to_string(),
            ),
        ]
    }

    fn call(&self, variables: &[(&'static str, String)], stdin: &str) -> Said {
        self.node.run_with(PROGRAM, &[""; 0], variables, stdin)
    }
}

/// A configuration that would work, were it not for one thing.
fn config(kind: &str) -> Value {
    json!({"cniVersion": "0.4.0", "name": "n", "type": kind, "master": "eth1", "vlanId": 7,
        "bridge": "br7", "device": "eth1", "deviceID": "0000:00:00.0",
        "ipam": {"type": "host-local", "subnet": "10.66.0.0/24"}})
}

#[test]
fn hostile_json_is_an_error_and_changes_nothing() {
    let Some(node) = Scene::new("hostile JSON") else {
        return;
    };
    let before = node.state();
    let deep = format!("{}1{}", "{\"name\":".repeat(5_000), "}".repeat(5_000));
    let large = format!("{{\"name\": \"n\", \"x\": \"{}\"}}", "x".repeat(9 << 20));
    let mut tried = 0;
    for (nth, kind) in plugins().into_iter().enumerate() {
        let text = config(&kind).to_string();
        let inputs = [
            "",
            "{",
            "null",
            "[]",
            "\u{0}",
            "\u{feff}{}",
            "{\"name\": \"n\"",
            &text[..text.len() - 1],
            &format!("{text} {text}"),
            &deep,
            &text.replace("\"n\"", "\"../../n\""),
            &text.replace("\"n\"", "\"\""),
            &text.replace("\"n\"", "{}"),
            &text.replace("0.4.0", "0.4"),
            &text.replace("{\"type\":\"host-local\"", "{\"type\":[1]"),
        ];
        for (at, bad) in inputs.into_iter().enumerate() {
            // Every input meets every verb, each of them at a third of the plugins.
            let verb = ["ADD", "DEL", "CHECK"][(nth + at) % 3];
            let value = error(&node.call(&node.variables(verb), bad));
            let code = value["code"].as_u64().unwrap_or_default();
            assert!(
                [1, 6, 7].contains(&code),
                "{kind} {verb}: {value}: {bad:.80}"
            );
            tried += 1;
        }
    }
    let value = error(&node.call(&node.variables("ADD"), &large));
    assert_eq!(value["code"], 6);
    assert_eq!(node.state(), before, "after {tried} calls");
    assert!(tried > 150, "only {tried}");
}

#[test]
fn a_hostile_environment_is_an_error_and_changes_nothing() {
    let Some(node) = Scene::new("a hostile environment") else {
        return;
    };
    let before = node.state();
    let file = node.dir.path().join("plain").display().to_string();
    fs::File::create(&file).expect("a file");
    let dir = node.dir.path().display().to_string();
    let state = node.state();
    let mut tried = 0;
    for kind in plugins() {
        let text = config(&kind).to_string();
        for (name, bad, code) in [
            ("CNI_CONTAINERID", "../../etc/passwd", 4),
            ("CNI_CONTAINERID", "a/b", 4),
            ("CNI_CONTAINERID", "a\nb", 4),
            ("CNI_CONTAINERID", "-rf", 4),
            ("CNI_IFNAME", "a234567890123456", 4),
            ("CNI_IFNAME", "../eth0", 4),
            ("CNI_IFNAME", "..", 4),
            ("CNI_IFNAME", "a b", 4),
            ("CNI_IFNAME", "eth0:1", 4),
            ("CNI_COMMAND", "ADD;DEL", 4),
        ] {
            let mut variables = node.variables("ADD");
            variables.retain(|(n, _)| *n != name);
            variables.push((name, bad.to_owned()));
            let value = error(&node.call(&variables, &text));
            assert_eq!(value["code"], code, "{kind} {name}={bad}: {value}");
            tried += 1;
        }
        if ["static", "host-local"].contains(&kind.as_str()) {
            // They never look at the namespace.
            continue;
        }
        for netns in [
            "/run/netns/no-such",
            &file,
            &dir,
            "/proc/self/ns/mnt",
            "/dev/null",
            "a\nb",
            "../../x",
        ] {
            let mut variables = node.variables("ADD");
            variables.retain(|(n, _)| *n != "CNI_NETNS");
            variables.push(("CNI_NETNS", netns.to_owned()));
            error(&node.call(&variables, &text));
            tried += 1;
        }
    }
    assert_ne!(before, state, "the plain file counts");
    assert_eq!(node.state().0, state.0, "after {tried} calls");
    assert_eq!(node.state().1, state.1, "after {tried} calls");
    // Addresses that were taken before the namespace was looked at were given back.
    let left = addresses(&node.dir.path().join("root/var/lib/cni/networks/n"));
    assert_eq!(left, [""; 0], "addresses are left");
}

/// The files of host-local that are addresses.
fn addresses(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let names = entries.filter_map(|e| e.file_name().into_string().ok());
    names
        .filter(|n| n.parse::<std::net::IpAddr>().is_ok())
        .collect()
}

#[test]
fn a_variable_that_is_no_text_is_an_error() {
    for name in ["CNI_COMMAND", "CNI_CONTAINERID", "CNI_IFNAME", "CNI_ARGS"] {
        let mut command = plugin("macvlan");
        command
            .env("CNI_COMMAND", "ADD")
            .env("CNI_CONTAINERID", "pod1")
            .env("CNI_NETNS", "/run/netns/no-such")
            .env("CNI_IFNAME", "net1")
            .env("CNI_PATH", "/nowhere")
            .env(name, not_text());
        let value = error(&run(command, config("macvlan").to_string().as_bytes()));
        assert_eq!(value["code"], 4);
        assert_eq!(value["msg"], format!("{name} is not UTF-8"));
    }
}

/// Every file that a DEL may read, and whether it is still there when nobody could read it.
const PLACES: [(&str, Kept); 11] = [
    ("var/lib/cni/networks/n/10.66.0.2", Kept::Unless("nothing")),
    ("var/lib/cni/networks/n/last_reserved_ip.0", Kept::Always),
    ("var/lib/cni/sriov/pod1-net1", Kept::Always),
    ("var/lib/cni/sriov/pci/0000:00:00.0", Kept::Always),
    (
        "var/lib/cni/amd-host-device/ip-interface-mappings.json",
        Kept::Always,
    ),
    ("run/cni/tuning/pod1_net1.json", Kept::Until(&["tuning"])),
    ("run/cni/moor/devices/pci-0000:00:00.0.json", Kept::Always),
    (
        "run/cni/moor/vlan/eth1.7/pod1:net1",
        Kept::Until(&["macvlan", "ipvlan", "vlan"]),
    ),
    (
        "run/cni/moor/shim/moor-eth1/pod1:net1",
        Kept::Until(&["macvlan"]),
    ),
    ("run/cni/moor/vlan/eth1.8/other:net1", Kept::Always),
    // The hash of this attachment; without nft its rules cannot be looked for, and the note stays.
    ("run/cni/moor/rules/b20f4d862ef84401", Kept::Always),
];

/// What becomes of a file that says nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kept {
    /// It is not the DEL's to remove.
    Always,
    /// It is found by its name and goes with the DEL of this plugin.
    Until(&'static [&'static str]),
    /// A file of host-local that says nothing at all is a crash's.
    Unless(&'static str),
}

#[test]
fn state_files_of_any_bytes_do_not_stop_a_del() {
    let Some(node) = Scene::new("state files of any bytes") else {
        return;
    };
    let root = node.dir.path().join("root");
    let deep = "[".repeat(10_000);
    let seeds: [(&str, &[u8]); 15] = [
        ("nothing", b""),
        ("nothing", b"\0\0\0\0"),
        ("nothing", b"\r\n\r\n"),
        ("half", b"{"),
        ("deep", deep.as_bytes()),
        ("a list", b"[]"),
        ("null", b"null"),
        ("a number", b"7"),
        ("no text", &[0xff; 4096]),
        ("another's", b"somebody\r\nnet1"),
        (
            "no entries",
            br#"{"path": 7, "format": "x", "network": []}"#,
        ),
        (
            "no entry",
            br#"{"0000:00:00.0": 7, "deviceID": 7, "mac": 7, "format": 1}"#,
        ),
        (
            "an entry of nothing",
            br#"{"0000:00:00.0": {"hostInterfaceName": 7}, "deviceID": "../..", "mtu": -1}"#,
        ),
        (
            "an entry of null",
            br#"{"0000:00:00.0": null, "deviceID": null, "mtu": null, "txQLen": 1e99}"#,
        ),
        (
            "another form",
            br#"{"format": 99, "OrigVfState": {"Vlan": 70000}, "mtu": 5000000000}"#,
        ),
    ];
    let write = |seed: &[u8]| {
        for (place, _) in PLACES {
            let path = root.join(place);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            fs::write(&path, seed).expect("a file");
        }
    };
    let mut tried = 0;
    for kind in plugins() {
        for (name, seed) in seeds {
            write(seed);
            let said = node.call(&node.variables("DEL"), &config(&kind).to_string());
            assert_eq!(said.code, Some(0), "{kind}, {name} {seed:.40?}: {said:?}");
            assert_eq!(said.stdout, "", "{kind}, {name}: {said:?}");
            for (place, kept) in PLACES {
                let there = fs::read(root.join(place)).ok();
                let goes = match kept {
                    Kept::Always => false,
                    Kept::Until(plugins) => plugins.contains(&kind.as_str()),
                    Kept::Unless(what) => what == name && there.is_none(),
                };
                let wanted = (!goes).then(|| seed.to_owned());
                assert_eq!(there, wanted, "{kind}, {name} in {place}: {said:?}");
            }
            tried += 1;
        }
    }
    assert!(tried > 150, "only {tried}");
}

#[test]
fn every_seed_of_a_device_record_is_read_or_refused_and_both_occur() {
    let seeds = mooring_testkit::workspace_root().join("fuzz/corpus/cni_state");
    let dir = tempfile::tempdir().expect("a directory");
    let records = Records::new(dir.path());
    let (mut read, mut refused) = (0, 0);
    for entry in fs::read_dir(seeds).expect("the corpus is part of the repository") {
        let path = entry.expect("an entry").path();
        fs::copy(&path, dir.path().join("device.json")).expect("a copy");
        let held = records.lock("device").expect("the lock");
        match held.read() {
            Ok(record) => {
                let record = record.expect("a record");
                held.write(&record).expect("written");
                let again = held.read().expect("what we write, we can read");
                assert_eq!(
                    again.as_ref().map(|r| &r.before),
                    Some(&record.before),
                    "{}",
                    path.display()
                );
                assert!(!record.device.key().contains('/'), "{}", path.display());
                let moved = record.before.moved_to(7, "net7");
                assert!(
                    moved.addrs.iter().all(|addr| addr.index == 7),
                    "{}",
                    path.display()
                );
                read += 1;
            }
            Err(_) => refused += 1,
        }
    }
    assert!(read >= 5, "only {read} are read");
    assert!(refused >= 10, "only {refused} are refused");
}
