//! Rules in nftables: the MAC check and masquerading, with the packets that they are about.

use serde_json::{Value, json};

use super::{assert_clean, gateway};
use crate::stage::{Pod, Stage, Tools};

const WHAT: &str = "nftables rules of the bridge plugin";

fn stage() -> Option<Stage> {
    Some(Stage::new(WHAT)?.with(Tools::nft(WHAT)?))
}

fn reaches(from: &Pod, to: &str) -> Option<bool> {
    let ping = mooring_testkit::component("iputils-ping", WHAT)?.join("bin/ping");
    Some(from.netns.run(ping, &["-c", "1", "-W", "1", to]).code == Some(0))
}

#[test]
fn a_pod_with_the_mac_check_may_send_with_its_own_mac_and_no_other() {
    let Some(stage) = stage() else { return };
    let pod = stage.pod("c1", gateway()).with("macspoofchk", json!(true));
    let result = pod.add();
    let rules = stage.rules();
    for part in [
        "cni-br-iface-c1-net1",
        "cni-br-iface-c1-net1-mac",
        "macspoofchk-c1-net1",
        result["interfaces"][1]["name"].as_str().unwrap(),
        result["interfaces"][2]["mac"].as_str().unwrap(),
    ] {
        assert!(rules.contains(part), "{part}: {rules}");
    }
    pod.check(&result).ok();
    if let Some(honest) = reaches(&pod, "10.88.0.1") {
        assert!(honest);
        pod.netns.ip("link set net1 address 02:00:00:00:00:99");
        assert_eq!(reaches(&pod, "10.88.0.1"), Some(false));
        let mac = result["interfaces"][2]["mac"].as_str().unwrap();
        pod.netns.ip(&format!("link set net1 address {mac}"));
        assert_eq!(reaches(&pod, "10.88.0.1"), Some(true));
    }
    stage
        .run("nft", &["flush", "chain", "bridge", "nat", "PREROUTING"])
        .ok();
    let said = pod.check(&result);
    assert!(
        said.code != Some(0) && said.stdout.contains("MAC check"),
        "{said:?}"
    );
    pod.del();
    assert!(!stage.rules().contains("c1-net1"), "{}", stage.rules());
    pod.del();
    assert_clean(&stage, "after DEL");
}

#[test]
fn a_second_add_leaves_one_jump_and_del_without_a_namespace_leaves_none() {
    let Some(stage) = stage() else { return };
    let pod = stage.pod("c1", gateway()).with("macspoofchk", json!(true));
    let other = stage.pod("c2", gateway()).with("macspoofchk", json!(true));
    other.add();
    pod.add();
    pod.add();
    let jumps = |id: &str| {
        stage
            .rules()
            .matches(&format!("\"comment\": \"macspoofchk-{id}-net1\""))
            .count()
    };
    // In PREROUTING, in the interface's chain and in its MAC chain.
    assert_eq!(jumps("c1"), 3, "{}", stage.rules());
    pod.del_blind();
    assert_eq!(jumps("c1"), 0);
    assert_eq!(jumps("c2"), 3);
}

#[test]
fn what_leaves_the_subnet_leaves_under_the_nodes_address() {
    let Some(stage) = stage() else { return };
    let outside = stage.sandbox.netns("outside");
    let name = outside.path();
    let name = name.rsplit('/').next().unwrap();
    stage.node.ip(&format!(
        "link add uplink type veth peer name uplink netns {name}"
    ));
    stage.node.ip("addr add 192.0.2.1/24 dev uplink");
    stage.node.ip("link set uplink up");
    // It has no route back to the pods: only a masqueraded packet gets an answer.
    outside.ip("addr add 192.0.2.2/24 dev uplink");
    outside.ip("link set uplink up");
    let config = gateway();
    let plain = stage
        .pod("c1", config.clone())
        .with("isDefaultGateway", json!(true));
    plain.add();
    let ranges = json!({"type": "host-local", "ranges": [[{"subnet": "10.88.0.0/24"}], [{"subnet": "fd88::/64"}]]});
    let pod = stage
        .pod("c2", config)
        .with("isDefaultGateway", json!(true))
        .with("ipMasq", json!(true))
        // What this names is done with nftables too.
        .with("ipMasqBackend", json!("iptables"))
        .with("ipam", ranges);
    let result = pod.add();
    if let Some(answered) = reaches(&plain, "192.0.2.2") {
        assert!(!answered);
        assert_eq!(reaches(&pod, "192.0.2.2"), Some(true));
    }
    let rules = stage.rules();
    assert_eq!(rules.matches("\"masquerade\"").count(), 2, "{rules}");
    assert!(
        rules.contains("cni_plugins_masquerade") && rules.contains("net: net, if: net1, id: c2")
    );
    pod.check(&result).ok();
    pod.add();
    assert_eq!(stage.rules().matches("\"masquerade\"").count(), 2);
    pod.end();
    pod.del();
    assert_eq!(stage.rules().matches("\"masquerade\"").count(), 0);
    pod.del();
}

#[test]
fn gc_removes_rules_of_its_network_that_nobody_owns() {
    let Some(stage) = stage() else { return };
    let config = gateway();
    let make = |container: &str, name: &str| {
        let pod = stage.pod(container, config.clone());
        pod.with("name", json!(name))
            .with("macspoofchk", json!(true))
            .with("ipMasq", json!(true))
    };
    let (a, b, other) = (
        make("c1", "net"),
        make("c2", "net"),
        make("c3", "other")
            .with("ipam", super::ipam("10.90.0.0/24"))
            .with("bridge", json!("br2")),
    );
    for pod in [&a, &b, &other] {
        pod.add();
    }
    a.gc(&["c1"]);
    let rules = stage.rules();
    assert!(
        rules.contains("c1-net1") && rules.contains("c3-net1"),
        "{rules}"
    );
    assert!(!rules.contains("c2-net1"), "{rules}");
    assert_eq!(rules.matches("\"masquerade\"").count(), 2, "{rules}");
    // A pod that ended without a DEL, of whatever network: its rule names an interface that is gone.
    other.end();
    wait_until(|| stage.pairs().len() == 1, || stage.pairs().join(" "));
    a.gc(&["c1"]);
    assert!(!stage.rules().contains("c3-net1"), "{}", stage.rules());
}

/// The kernel ends a namespace some time after its name.
#[track_caller]
pub(super) fn wait_until(done: impl Fn() -> bool, seen: impl Fn() -> String) {
    for _ in 0..500 {
        if done() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("it did not come to pass: {}", seen());
}

#[test]
fn a_name_with_the_marks_of_a_rule_stays_a_name() {
    let Some(stage) = stage() else { return };
    let mut pod = stage
        .pod("c1", gateway())
        .with("macspoofchk", json!(true))
        .with("ipMasq", json!(true));
    pod.ifname = "a;b{}\"'$#".to_owned();
    let result = pod.add();
    pod.check(&result).ok();
    pod.del();
    let rules = stage.rules();
    assert!(!rules.contains("c1-"), "{rules}");
}

#[test]
fn without_nft_status_says_so_and_add_holds_nothing() {
    // No tools: what counts is what the machine itself has.
    let Some(stage) = Stage::new(WHAT) else {
        return;
    };
    let installed = [
        "/usr/sbin/nft",
        "/usr/bin/nft",
        "/sbin/nft",
        "/usr/local/sbin/nft",
    ];
    let installed = installed
        .iter()
        .any(|path| std::path::Path::new(path).exists());
    for key in ["macspoofchk", "ipMasq"] {
        let pod = stage.pod("c1", gateway()).with(key, json!(true));
        if installed {
            pod.call("STATUS").ok();
        } else {
            for verb in ["STATUS", "ADD"] {
                let (code, text) = pod.refuse(verb);
                assert!(code == 50 && text.contains("nft"), "{code} {text}");
            }
            assert_eq!(pod.link(), None);
        }
        pod.del();
        assert_clean(&stage, key);
        pod.end();
    }
}

/// Another configuration than that of the ADD, as an edited network has it.
type Edit = fn(&mut Value);

#[test]
fn del_removes_the_rules_that_add_made_whatever_the_configuration_says_by_then() {
    let Some(stage) = stage() else { return };
    let gone: Edit = |config| {
        let config = config.as_object_mut().unwrap();
        config.remove("macspoofchk");
        config.remove("ipMasq");
    };
    let edits: [(&str, Edit); 6] = [
        ("the same", |_| {}),
        ("both keys gone", gone),
        ("both keys false", |config| {
            config["macspoofchk"] = json!(false);
            config["ipMasq"] = json!(false);
        }),
        ("keys that cannot be read", |config| {
            config["macspoofchk"] = json!("yes");
            config["ipMasq"] = json!({});
        }),
        ("another key that is refused", |config| {
            config["vlan"] = json!(9999);
        }),
        ("another name of the network", |config| {
            config["name"] = json!("renamed");
        }),
    ];
    for (nth, (what, edit)) in edits.into_iter().enumerate() {
        let pod = stage
            .pod(&format!("c{nth}"), gateway())
            .with("macspoofchk", json!(true))
            .with("ipMasq", json!(true));
        pod.add();
        let rules = stage.rules();
        let marks = ["macspoofchk-c", "\"masquerade\"", "cni-br-iface-c"];
        for mark in marks {
            assert!(rules.contains(mark), "{what}: no {mark}: {rules}");
        }
        let mut edited = pod.clone();
        edit(&mut edited.config);
        edited.del();
        let rules = stage.rules();
        for mark in marks {
            assert!(!rules.contains(mark), "{what}: {mark} is left: {rules}");
        }
        assert_eq!(notes(&stage), [""; 0], "{what}");
        edited.del();
    }
}

/// What ours keeps about rules.
fn notes(stage: &Stage) -> Vec<String> {
    let entries = std::fs::read_dir(stage.root().join("run/cni/moor/rules"));
    let entries = entries.into_iter().flatten();
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
    entries
        .map(|entry| name(entry).to_string_lossy().into_owned())
        .collect()
}

#[test]
fn a_kill_between_the_rules_and_the_end_leaves_nothing_that_an_edited_del_does_not_remove() {
    let Some(stage) = stage() else { return };
    for (nth, point) in ["bridge-noted", "bridge-spoof-check", "bridge-masquerade"]
        .into_iter()
        .enumerate()
    {
        let pod = stage
            .pod(&format!("c{nth}"), gateway())
            .with("macspoofchk", json!(true))
            .with("ipMasq", json!(true));
        assert!(pod.killed_at("ADD", point), "{point}");
        let mut plain = stage.pod_in(pod.netns.clone(), &pod.container, gateway());
        plain.ifname.clone_from(&pod.ifname);
        assert!(
            point == "bridge-noted" || plain.killed_at("DEL", "bridge-rules-removed"),
            "{point}"
        );
        plain.del();
        let rules = stage.rules();
        assert!(
            !rules.contains(&format!("{}-net1", pod.container)),
            "{rules}"
        );
        assert!(!rules.contains("\"masquerade\""), "{point}: {rules}");
        assert_eq!(notes(&stage), [""; 0], "{point}");
    }
}

#[test]
fn gc_forgets_the_notes_of_what_it_sweeps() {
    let Some(stage) = stage() else { return };
    let make = |container: &str| stage.pod(container, gateway()).with("ipMasq", json!(true));
    let (kept, dead) = (make("c1"), make("c2"));
    kept.add();
    dead.add();
    assert_eq!(notes(&stage).len(), 2);
    kept.gc(&["c1"]);
    assert_eq!(notes(&stage).len(), 1);
    kept.del();
    assert_eq!(notes(&stage), [""; 0]);
}

#[test]
fn a_pod_that_never_had_a_rule_starts_no_program() {
    let Some(stage) = Stage::new(WHAT) else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let started = dir.path().join("started");
    for program in ["nft", "iptables-save", "ip6tables-save"] {
        let text = format!(
            "#!/bin/sh\necho {program} >> {}\nexit 1\n",
            started.display()
        );
        mooring_testkit::script(&dir.path().join(program), &text);
    }
    let mut pod = stage.pod("c1", gateway());
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", dir.path().display());
    pod.variables.insert("PATH", path);
    pod.add();
    pod.del();
    pod.del_blind();
    assert!(!started.exists(), "{:?}", std::fs::read_to_string(&started));
    // The programs are found: with the key, DEL asks.
    pod.with("macspoofchk", json!(true)).call("DEL");
    assert!(started.exists());
}
