use std::fs;
use std::path::Path;

mod leftovers;

use super::*;
use crate::file::write_atomic;
use crate::{Netns, User, Vlans};

struct Bench {
    dir: tempfile::TempDir,
    doctor: Doctor,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let doctor = Doctor {
            paths: Paths::under(dir.path()),
            conf_dir: dir.path().join("net.d"),
            bin_dir: dir.path().join("bin"),
            check: true,
            tools: false,
        };
        Self { dir, doctor }
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        write_atomic(path, text.as_bytes()).unwrap();
    }

    fn exists(&self, path: &str) -> bool {
        self.dir.path().join(path).exists()
    }

    /// A plugin that answers every call alike.
    fn plugin(&self, name: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        self.write(&format!("bin/{name}"), &format!("#!/bin/sh\n{script}\n"));
        let path = self.dir.path().join("bin").join(name);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn cached(&self, container: &str, netns: &str, conf: &str) {
        use base64::Engine as _;
        let conf = base64::engine::general_purpose::STANDARD.encode(conf);
        let text = format!(
            r#"{{"kind":"cniCacheV1","containerId":"{container}","config":"{conf}","ifName":"net1","networkName":"rail",
            "netns":"{netns}","cniArgs":[["K8S_POD_NAME","upf"]],"capabilityArgs":{{"ips":["10.1.2.9/24"],"mac":"x"}},
            "result":{{"cniVersion":"1.0.0","ips":[{{"address":"10.1.2.9/24"}}]}}}}"#
        );
        self.write(&format!("var/lib/cni/results/rail-{container}-net1"), &text);
    }

    fn codes(&self) -> Vec<&'static str> {
        let report = self.doctor.look().unwrap();
        report.findings.iter().map(|f| f.code.as_str()).collect()
    }
}

const HERE: &str = "/proc/self/ns/net";
const CONF: &str = r#"{"cniVersion":"1.0.0","name":"rail","plugins":[
    {"type":"macvlan","capabilities":{"ips":true}}]}"#;

#[test]
fn an_empty_node_is_well() {
    let bench = Bench::new();
    let report = bench.doctor.look().unwrap();
    assert!(report.is_well());
    assert!(
        report.text().ends_with("nothing is left over\n"),
        "{}",
        report.text()
    );
}

#[test]
fn an_owner_that_nobody_knows_of_is_no_proof_that_all_is_well() {
    let bench = Bench::new();
    bench.write("var/lib/cni/networks/rail/10.1.2.9", "unheard-of\r\nnet1");
    let text = bench.doctor.look().unwrap().text();
    assert!(text.ends_with("the owner of one is not known\n"), "{text}");
}

#[test]
fn an_address_goes_with_its_owner_and_only_with_it() {
    let bench = Bench::new();
    bench.cached("alive", HERE, CONF);
    bench.cached("gone", "/run/netns/no-such-namespace", CONF);
    bench.plugin("macvlan", "exit 0");
    for (address, text) in [
        ("10.1.2.7", "alive\r\nnet1"),
        ("10.1.2.8", "gone\r\nnet1"),
        ("10.1.2.9", "unheard-of\r\nnet1"),
        ("10.1.2.10", ""),
    ] {
        bench.write(&format!("var/lib/cni/networks/rail/{address}"), text);
    }
    assert_eq!(
        bench.codes(),
        ["StateLeftOver"; 3],
        "two addresses and the runtime's memory"
    );
    let report = bench.doctor.fix().unwrap();
    assert_eq!(
        report.fixed,
        ["address 10.1.2.10 is free", "address 10.1.2.8 is free"]
    );
    assert!(bench.exists("var/lib/cni/networks/rail/10.1.2.7"));
    assert!(!bench.exists("var/lib/cni/networks/rail/10.1.2.8"));
    assert!(
        bench.exists("var/lib/cni/networks/rail/10.1.2.9"),
        "its owner is not known"
    );
    assert!(!bench.exists("var/lib/cni/networks/rail/10.1.2.10"));
    assert!(report.is_well(), "{}", report.text());
}

#[test]
fn an_address_whose_owner_nobody_knows_stays_however_old_it_looks() {
    let bench = Bench::new();
    bench.write("var/lib/cni/networks/rail/10.1.2.7", "unheard-of\r\nnet1");
    let path = bench.dir.path().join("var/lib/cni/networks/rail/10.1.2.7");
    // As a node writes it that has no clock before it reaches a time server.
    let old = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(old).unwrap();
    assert_eq!(bench.codes(), [""; 0]);
    bench.doctor.fix().unwrap();
    assert!(path.exists());
}

#[test]
fn a_user_of_a_vlan_that_is_gone_is_taken_away_and_one_that_lives_stays() {
    let bench = Bench::new();
    let here = Netns::open(HERE).unwrap();
    let objects = crate::shared::Objects::new(bench.doctor.paths.own.join("vlan"));
    let object = objects.lock("eth9.100").unwrap();
    object
        .add(&User::new("rail", "alive", "net1", &here))
        .unwrap();
    let mut gone = User::new("rail", "gone", "net1", &here);
    gone.boot = "another".to_owned();
    object.add(&gone).unwrap();
    drop(object);
    let report = bench.doctor.look().unwrap();
    assert_eq!(report.kept.len(), 2);
    assert_eq!(bench.codes(), ["StateLeftOver"]);
    let after = bench.doctor.fix().unwrap();
    assert!(after.is_well(), "{}", after.text());
    let users: Vec<&str> = after
        .kept
        .iter()
        .map(|k| k.who.container.as_str())
        .collect();
    assert_eq!(users, ["alive"]);
    drop(Vlans::new(bench.doctor.paths.own.join("vlan")));
}

#[test]
fn check_is_asked_with_what_the_runtime_knows_and_its_answer_is_shown() {
    let bench = Bench::new();
    bench.cached("alive", HERE, CONF);
    bench.plugin(
        "macvlan",
        "cat > \"$CNI_PATH/seen\"; echo \"$CNI_COMMAND $CNI_ARGS\" > \"$CNI_PATH/called\"; exit 0",
    );
    let report = bench.doctor.look().unwrap();
    assert_eq!(report.attachments[0].verdict, Some(Verdict::Good));
    let seen = fs::read(bench.dir.path().join("bin/seen")).unwrap();
    let seen: serde_json::Value = serde_json::from_slice(&seen).unwrap();
    assert_eq!(seen["name"], "rail");
    assert_eq!(seen["prevResult"]["ips"][0]["address"], "10.1.2.9/24");
    let runtime = serde_json::json!({ "ips": ["10.1.2.9/24"] });
    assert_eq!(seen["runtimeConfig"], runtime, "only what it declares");
    assert!(seen.get("capabilities").is_none());
    let called = fs::read_to_string(bench.dir.path().join("bin/called")).unwrap();
    assert_eq!(called, "CHECK K8S_POD_NAME=upf\n");

    bench.plugin(
        "macvlan",
        r#"echo '{"code":100,"msg":"10.1.2.9/24 is not on net1"}'; exit 1"#,
    );
    let report = bench.doctor.look().unwrap();
    assert!(!report.is_well());
    assert_eq!(report.findings[0].code, Code::AttachmentDrifted);
    assert!(
        report.findings[0]
            .message
            .contains("10.1.2.9/24 is not on net1")
    );
}

#[test]
fn an_old_configuration_has_no_check() {
    let bench = Bench::new();
    bench.cached("alive", HERE, &CONF.replace("1.0.0", "0.3.1"));
    let report = bench.doctor.look().unwrap();
    let verdict = report.attachments[0].verdict.clone();
    assert!(
        matches!(verdict, Some(Verdict::Unasked { .. })),
        "{verdict:?}"
    );
    assert!(report.is_well());
}

#[test]
fn the_first_configuration_by_name_is_taken_and_must_work() {
    let bench = Bench::new();
    bench.plugin("macvlan", "exit 0");
    bench.write("net.d/10-rail.conflist", CONF);
    assert_eq!(bench.codes(), [""; 0]);
    bench.write(
        "net.d/20-other.conf",
        r#"{"cniVersion":"1.0.0","name":"x","type":"macvlan"}"#,
    );
    bench.write("net.d/00-notes.txt", "not for a runtime");
    assert_eq!(bench.codes(), ["ConfigurationShadowed"]);
    bench.write(
        "net.d/05-first.conf",
        r#"{"cniVersion":"1.0.0","name":"x","type":"nowhere"}"#,
    );
    assert_eq!(
        bench.codes(),
        [
            "ConfigurationBroken",
            "ConfigurationShadowed",
            "ConfigurationShadowed"
        ]
    );
    let report = bench.doctor.look().unwrap();
    let wins: Vec<bool> = report.configurations.iter().map(|c| c.wins).collect();
    assert_eq!(wins, [true, false, false]);
}

#[test]
fn a_torn_file_is_said_and_never_touched() {
    let bench = Bench::new();
    bench.write("var/lib/cni/results/rail-x-net1", "{\"kind\":");
    bench.write("run/cni/moor/devices/pci-0000:01:00.0.json", "{");
    assert_eq!(bench.codes(), ["StateUnreadable"; 2]);
    bench.doctor.fix().unwrap();
    assert!(bench.exists("var/lib/cni/results/rail-x-net1"));
    assert!(bench.exists("run/cni/moor/devices/pci-0000:01:00.0.json"));
}

#[test]
fn a_mark_of_a_function_whose_namespace_is_gone_is_removed() {
    let bench = Bench::new();
    bench.write(
        "var/lib/cni/sriov/pci/0000:01:10.0",
        "/run/netns/no-such-namespace",
    );
    bench.write("var/lib/cni/sriov/pci/0000:01:10.2", HERE);
    let report = bench.doctor.fix().unwrap();
    assert_eq!(report.fixed.len(), 1);
    assert!(!bench.exists("var/lib/cni/sriov/pci/0000:01:10.0"));
    assert!(Path::new(&bench.dir.path().join("var/lib/cni/sriov/pci/0000:01:10.2")).exists());
}
