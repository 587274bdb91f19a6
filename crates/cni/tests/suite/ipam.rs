//! The IPAM plugins beside the reference's: the same calls on stores of their own, and on one store in turns.
//!
//! No namespaces are needed: these plugins touch files only. Easy to get wrong: agreement is on the *bytes* in the store
//! and on the answers, after every single call; at the end of a sequence two different paths may have met again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::conformance::peer::Peer;

/// Starts an IPAM plugin; several may run at once.
fn start(
    peer: &Peer,
    plugin: &str,
    verb: &str,
    container: &str,
    args: &str,
    config: &Value,
) -> Child {
    use std::io::Write as _;
    let mut child = Command::new(peer.program(plugin))
        .env_clear()
        .env("CNI_COMMAND", verb)
        .env("CNI_CONTAINERID", container)
        .env("CNI_IFNAME", "net1")
        .env("CNI_NETNS", "/proc/1/ns/net")
        .env("CNI_NETNS_OVERRIDE", "1")
        .env("CNI_PATH", &peer.dir)
        .env("CNI_ARGS", args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(config.to_string().as_bytes()).unwrap();
    child
}

/// The answer: a result, or the text of the error.
fn end(child: Child) -> Result<Value, String> {
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let value: Value = serde_json::from_str(&text).unwrap_or_default();
    if output.status.success() {
        return Ok(value);
    }
    let msg = value["msg"].as_str();
    Err(msg
        .unwrap_or_else(|| panic!("no error object: {text}"))
        .to_owned())
}

fn call(
    peer: &Peer,
    plugin: &str,
    verb: &str,
    container: &str,
    args: &str,
    config: &Value,
) -> Result<Value, String> {
    end(start(peer, plugin, verb, container, args, config))
}

/// Every file of a store but the lock.
fn store(dir: &Path) -> BTreeMap<String, String> {
    let Ok(entries) = std::fs::read_dir(dir.join("net")) else {
        return BTreeMap::new();
    };
    let file = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        (name, std::fs::read_to_string(entry.path()).unwrap())
    };
    entries
        .map(file)
        .filter(|(name, _)| name != "lock")
        .collect()
}

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

fn config(ranges: &Value, dir: &Path, more: &Value) -> Value {
    let mut config = json!({"cniVersion": "1.0.0", "name": "net", "type": "x", "ipam": {
        "type": "host-local", "dataDir": dir, "ranges": ranges, "routes": [{"dst": "0.0.0.0/0"}]}});
    for (key, value) in more.as_object().unwrap() {
        config[key] = value.clone();
    }
    config
}

#[test]
fn host_local_and_the_reference_give_the_same_addresses_and_write_the_same_bytes() {
    let Some(reference) = Peer::reference("host-local beside the reference") else {
        return;
    };
    let ours = Peer::ours();
    let shapes = [
        json!([[{"subnet": "10.1.0.0/29"}]]),
        json!([[{"subnet": "10.1.0.0/29", "rangeStart": "10.1.0.3", "rangeEnd": "10.1.0.5", "gateway": "10.1.0.4"},
            {"subnet": "10.2.0.0/30"}], [{"subnet": "fd00:0:0:1::/64", "rangeEnd": "fd00:0:0:1::4"}]]),
        json!([[{"subnet": "2001:db8:0:0:1::/126", "gateway": "2001:db8::9"}], [{"subnet": "10.3.0.0/30"}]]),
    ];
    let (mut given, mut refused, mut released) = (0, 0, 0);
    for (number, ranges) in shapes.iter().enumerate() {
        let mut dice = Dice(number as u64 + 7);
        let dirs: Vec<tempfile::TempDir> = (0..3).map(|_| tempfile::tempdir().unwrap()).collect();
        for step in 0..90 {
            let container = format!("c{}", dice.roll(7));
            let verb = if dice.roll(5) < 3 { "ADD" } else { "DEL" };
            let wish = match dice.roll(14) {
                0 => json!({"runtimeConfig": {"ips": ["10.1.0.5"]}}),
                1 => json!({"args": {"cni": {"ips": ["10.1.0.4/29"]}}}),
                _ => json!({}),
            };
            // A repeated ADD is where the two differ on purpose.
            let known = store(dirs[0].path())
                .values()
                .any(|owner| owner.starts_with(&format!("{container}\r")));
            if verb == "ADD" && known {
                continue;
            }
            let mut answers = Vec::new();
            for (at, dir) in dirs.iter().enumerate() {
                let peer = match at {
                    0 => &reference,
                    1 => &ours,
                    _ if step % 2 == 0 => &ours,
                    _ => &reference,
                };
                let config = config(ranges, dir.path(), &wish);
                answers.push((
                    peer.name,
                    call(peer, "host-local", verb, &container, "", &config),
                ));
            }
            if answers[0].1.is_err() {
                // The reference has moved its cursor when it finds that a later set is full; ours writes nothing then.
                same_cursors(&dirs);
            }
            let stores: Vec<_> = dirs.iter().map(|dir| store(dir.path())).collect();
            let told = format!("{verb} {container} {wish} at step {step} of {ranges}");
            assert_eq!(stores[0], stores[1], "{told}");
            assert_eq!(stores[0], stores[2], "{told}, in turns");
            for (name, answer) in &answers[1..] {
                match (&answers[0].1, answer) {
                    (Ok(theirs), Ok(ours)) => {
                        for key in ["ips", "routes", "cniVersion"] {
                            assert_eq!(theirs[key], ours[key], "{name} at step {step}");
                        }
                    }
                    (Err(theirs), Err(ours)) => {
                        // The reference lists what is left over in any order.
                        let head =
                            |text: &str| text.split(": ").take(2).collect::<Vec<_>>().join(": ");
                        assert_eq!(head(theirs), head(ours), "{name} at step {step}");
                    }
                    (theirs, ours) => panic!("{name} at step {step}: {theirs:?} and {ours:?}"),
                }
            }
            match (verb, &answers[0].1) {
                ("ADD", Ok(_)) => given += 1,
                ("ADD", Err(_)) => refused += 1,
                _ => released += 1,
            }
        }
    }
    println!("{given} given, {refused} refused, {released} released");
    assert!(
        given > 30 && refused > 5 && released > 30,
        "{given} {refused} {released}"
    );
}

/// The cursors of the first store, in all.
fn same_cursors(dirs: &[tempfile::TempDir]) {
    for (name, _) in store(dirs[0].path()) {
        if name.starts_with("last_reserved_ip.") {
            for dir in &dirs[1..] {
                std::fs::copy(
                    dirs[0].path().join("net").join(&name),
                    dir.path().join("net").join(&name),
                )
                .unwrap();
            }
        }
    }
}

#[test]
fn static_addresses_are_the_references_for_every_source() {
    let Some(reference) = Peer::reference("static beside the reference") else {
        return;
    };
    let ours = Peer::ours();
    let ipam = json!({"type": "static", "addresses": [{"address": "10.0.0.2/24", "gateway": "10.0.0.1"},
        {"address": "fd00::2/64"}], "routes": [{"dst": "192.0.2.0/24", "gw": "10.0.0.9"}, {"dst": "::/0"}],
        "dns": {"nameservers": ["192.0.2.53"], "search": ["example"]}});
    let bare = json!({"type": "static"});
    let rows = [
        ("", json!({"ipam": ipam}), true),
        (
            "IP=10.1.0.2/24;GATEWAY=10.1.0.1",
            json!({"ipam": ipam}),
            true,
        ),
        (
            "IP=10.1.0.2/24, fd01::2/64;GATEWAY=fd01::1",
            json!({"ipam": bare}),
            true,
        ),
        (
            "IP=10.1.0.2/24",
            json!({"ipam": ipam, "args": {"cni": {"ips": ["10.2.0.2/24"]}}}),
            true,
        ),
        (
            "IP=10.1.0.2/24",
            json!({"ipam": ipam, "args": {"cni": {"ips": ["10.2.0.2/24"]}},
            "runtimeConfig": {"ips": ["10.3.0.2/24", "fd03::2/64"]}}),
            true,
        ),
        (
            "IgnoreUnknown=1;K8S_POD_NAME=p",
            json!({"ipam": ipam}),
            true,
        ),
        ("K8S_POD_NAME=p", json!({"ipam": ipam}), false),
        ("IP=10.1.0.2", json!({"ipam": ipam}), false),
        ("GATEWAY=x", json!({"ipam": ipam}), false),
        (
            "",
            json!({"ipam": bare, "runtimeConfig": {"ips": ["10.3.0.2"]}}),
            false,
        ),
        (
            "",
            json!({"ipam": {"type": "static", "addresses": [{"address": "10.0.0.2"}]}}),
            false,
        ),
        ("", json!({}), false),
    ];
    for (args, more, good) in &rows {
        for version in ["0.2.0", "0.4.0", "1.0.0", "1.1.0"] {
            let mut config = json!({"cniVersion": version, "name": "net", "type": "static"});
            for (key, value) in more.as_object().unwrap() {
                config[key] = value.clone();
            }
            let theirs = call(&reference, "static", "ADD", "c", args, &config);
            let ours = call(&ours, "static", "ADD", "c", args, &config);
            match (theirs, ours) {
                (Ok(theirs), Ok(ours)) => {
                    assert!(good, "{args} {more}");
                    assert_eq!(sorted(&theirs), sorted(&ours), "{args} {config}");
                }
                (Err(_), Err(_)) => assert!(!good || version == "0.2.0", "{args} {config}"),
                (theirs, ours) => panic!("{args} {config}: {theirs:?} and {ours:?}"),
            }
        }
    }
}

/// Members in one order, and none that says nothing (`dns: {}`).
fn sorted(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let says = map.iter().filter(|(_, v)| **v != json!({}));
            let map: BTreeMap<&String, String> = says.map(|(k, v)| (k, sorted(v))).collect();
            format!("{map:?}")
        }
        Value::Array(list) => format!("{:?}", list.iter().map(sorted).collect::<Vec<_>>()),
        other => other.to_string(),
    }
}

#[test]
fn sixteen_processes_of_both_kinds_share_a_range_without_one_address_twice() {
    let ours = Peer::ours();
    let Some(reference) = Peer::reference("host-local in parallel with the reference") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let config = config(
        &json!([[{"subnet": "10.1.0.0/25"}]]),
        dir.path(),
        &json!({}),
    );
    let mut given = BTreeSet::new();
    for round in 0..7 {
        let children: Vec<Child> = (0..16)
            .map(|nth| {
                let peer = if nth % 2 == 0 { &ours } else { &reference };
                start(
                    peer,
                    "host-local",
                    "ADD",
                    &format!("c{round}-{nth}"),
                    "",
                    &config,
                )
            })
            .collect();
        for child in children {
            let result = end(child).unwrap();
            let address = result["ips"][0]["address"].as_str().unwrap().to_owned();
            assert!(given.insert(address.clone()), "{address} twice");
        }
    }
    assert_eq!(given.len(), 112);
    let children: Vec<Child> = (0..16)
        .map(|nth| {
            start(
                &ours,
                "host-local",
                "ADD",
                &format!("late-{nth}"),
                "",
                &config,
            )
        })
        .collect();
    let answers: Vec<_> = children.into_iter().map(end).collect();
    // 126 hosts without the gateway, of which 112 are gone.
    assert_eq!(
        answers.iter().filter(|answer| answer.is_ok()).count(),
        13,
        "{answers:?}"
    );
    for error in answers.into_iter().filter_map(Result::err) {
        assert!(
            error.contains("no IP addresses available in range set: 10.1.0.1-10.1.0.126"),
            "{error}"
        );
    }
}

#[test]
fn a_repeated_add_gets_its_address_again_where_the_reference_stays_broken() {
    let ours = Peer::ours();
    let dir = tempfile::tempdir().unwrap();
    let config = config(
        &json!([[{"subnet": "10.1.0.0/29"}]]),
        dir.path(),
        &json!({}),
    );
    let add = |peer: &Peer, args: &str| call(peer, "host-local", "ADD", "c", args, &config);
    let first = add(&ours, "").unwrap();
    assert_eq!(add(&ours, "").unwrap(), first);
    assert_eq!(add(&ours, "IP=10.1.0.2").unwrap(), first);
    if let Some(reference) = Peer::reference("a repeated ADD of the reference") {
        assert!(
            add(&reference, "")
                .unwrap_err()
                .contains("duplicate allocation")
        );
    }
}

#[test]
fn a_file_that_a_killed_reference_left_empty_is_used_again() {
    let ours = Peer::ours();
    let dir = tempfile::tempdir().unwrap();
    let config = config(
        &json!([[{"subnet": "10.1.0.0/30"}]]),
        dir.path(),
        &json!({}),
    );
    std::fs::create_dir_all(dir.path().join("net")).unwrap();
    std::fs::File::create(dir.path().join("net/10.1.0.2")).unwrap();
    if let Some(reference) = Peer::reference("an empty file and the reference") {
        let theirs = call(&reference, "host-local", "ADD", "c", "", &config);
        assert!(theirs.unwrap_err().contains("no IP addresses available"));
    }
    let result = call(&ours, "host-local", "ADD", "c", "", &config).unwrap();
    assert_eq!(result["ips"][0]["address"], "10.1.0.2/30");
}
