//! The tuning plugin in the kernel: what it changes, and that DEL brings back what was.

mod life;

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::conformance::bed::Shown as _;
use crate::stage::{Pod, Stage};

/// A pod whose `net1` was made by hand, as an earlier plugin would have, and its result.
fn pod(stage: &Stage, container: &str, config: Value) -> Pod {
    let mut pod = stage.pod(container, config).with("type", json!("tuning"));
    let path = pod.netns.path();
    let name = path.rsplit('/').next().unwrap();
    stage.node.ip(&format!(
        "link add {container} type veth peer name net1 netns {name}"
    ));
    pod.netns.ip("link set net1 up");
    let mac = pod.link().unwrap()["address"].clone();
    pod.config["prevResult"] = json!({"cniVersion": "1.1.0",
        "interfaces": [{"name": "net1", "mac": mac, "sandbox": path}, {"name": "other", "mac": mac}],
        "dns": {"domain": "example"}});
    pod
}

fn sysctl(pod: &Pod, key: &str) -> String {
    let said = pod.netns.run("cat", &[format!("/proc/sys/{key}")]);
    said.ok().trim().to_owned()
}

/// MAC, MTU, queue length and the two flags.
fn attributes(pod: &Pod) -> (Value, Value, Value, bool, bool) {
    let link = pod.link().unwrap();
    let flags = link["flags"].to_string();
    let has = |flag: &str| flags.contains(&format!("{flag:?}"));
    let [mac, mtu, queue] = ["address", "mtu", "txqlen"].map(|key| link[key].clone());
    (mac, mtu, queue, has("PROMISC"), has("ALLMULTI"))
}

fn backup(stage: &Stage, container: &str) -> PathBuf {
    stage
        .root()
        .join(format!("run/cni/tuning/{container}_net1.json"))
}

fn everything() -> Value {
    json!({"mac": "02:00:00:00:00:07", "mtu": 1400, "promisc": true, "txQLen": 77, "allmulti": true,
        "sysctl": {"net.ipv4.conf.IFNAME.arp_filter": "1", "net.ipv4.ip_local_port_range": "1024 65000"}})
}

#[test]
fn what_is_asked_is_set_and_the_result_is_passed_on_with_the_new_mac() {
    let Some(stage) = Stage::new("the tuning plugin") else {
        return;
    };
    let pod = pod(&stage, "c1", everything());
    let before = attributes(&pod);
    let result = pod.add();
    let mut wanted = pod.config["prevResult"].clone();
    wanted["interfaces"][0]["mac"] = json!("02:00:00:00:00:07");
    assert_eq!(result, wanted);
    assert_eq!(
        attributes(&pod),
        (
            json!("02:00:00:00:00:07"),
            json!(1400),
            json!(77),
            true,
            true
        )
    );
    assert_eq!(sysctl(&pod, "net/ipv4/conf/net1/arp_filter"), "1");
    pod.check(&result).ok();
    pod.del();
    assert_eq!(attributes(&pod), before);
    assert!(!backup(&stage, "c1").exists());
    pod.del();
}

#[test]
fn check_notices_every_attribute_that_drifted() {
    let Some(stage) = Stage::new("CHECK of the tuning plugin") else {
        return;
    };
    let pod = pod(&stage, "c1", everything());
    let result = pod.add();
    for (change, back, word) in [
        ("mtu 1300", "mtu 1400", "MTU"),
        (
            "address 02:00:00:00:00:08",
            "address 02:00:00:00:00:07",
            "MAC",
        ),
        ("promisc off", "promisc on", "promiscuous"),
        ("allmulticast off", "allmulticast on", "all-multicast"),
        ("txqueuelen 5", "txqueuelen 77", "queue"),
    ] {
        pod.netns.ip(&format!("link set net1 {change}"));
        let said = pod.check(&result);
        assert!(
            said.code != Some(0) && said.stdout.contains(word),
            "{change}: {said:?}"
        );
        pod.netns.ip(&format!("link set net1 {back}"));
        pod.check(&result).ok();
    }
    pod.netns
        .run(
            "sh",
            &["-c", "echo 0 > /proc/sys/net/ipv4/conf/net1/arp_filter"],
        )
        .ok();
    let said = pod.check(&result);
    assert!(said.stdout.contains("arp_filter"), "{said:?}");
}

#[test]
fn an_attachments_own_words_win_and_nothing_else_is_touched() {
    let Some(stage) = Stage::new("args.cni of the tuning plugin") else {
        return;
    };
    let pod = pod(
        &stage,
        "c1",
        json!({"mtu": 1400, "mac": "02:00:00:00:00:01",
        "runtimeConfig": {"mac": "02:00:00:00:00:02"},
        "args": {"cni": {"mtu": 1300, "mac": "02:00:00:00:00:03", "sysctl": {"net.ipv4.conf.IFNAME.log_martians": "1"}}}}),
    );
    let before = attributes(&pod);
    let result = pod.add();
    let seen = attributes(&pod);
    assert_eq!(
        (&seen.0, &seen.1),
        (&json!("02:00:00:00:00:03"), &json!(1300))
    );
    assert_eq!((&seen.2, seen.3, seen.4), (&before.2, before.3, before.4));
    assert_eq!(sysctl(&pod, "net/ipv4/conf/net1/log_martians"), "1");
    // The interface of that name, and no other.
    assert_eq!(result["interfaces"][1]["mac"], before.0);
    let file: Value =
        serde_json::from_slice(&std::fs::read(backup(&stage, "c1")).unwrap()).unwrap();
    assert_eq!(file["mac"], before.0);
    assert_eq!(file.get("promisc"), None);
    let sysctls = json!({"sysctl": {"net.ipv4.conf.IFNAME.log_martians": "0"}});
    let only = stage.pod_in(pod.netns.clone(), "c2", sysctls);
    let only = only
        .with("type", json!("tuning"))
        .with("prevResult", result);
    only.add();
    assert!(
        !backup(&stage, "c2").exists(),
        "a sysctl ends with its namespace"
    );
}

#[test]
fn a_sysctl_outside_of_net_or_of_the_allow_list_changes_nothing() {
    let Some(stage) = Stage::new("sysctls that are refused") else {
        return;
    };
    let pod = pod(&stage, "c1", json!({"mtu": 1300}));
    let before = attributes(&pod);
    for key in [
        "kernel.domainname",
        "net/../kernel/domainname",
        "net.ipv4.no_such_thing",
        "",
    ] {
        let refused = pod.clone().with("sysctl", json!({key: "x"}));
        let (code, text) = refused.refuse("ADD");
        assert!(code == 7 && text.contains("sysctl"), "{key}: {code} {text}");
    }
    let twice = pod
        .clone()
        .with("sysctl", json!({"net.core.a": "1", "net/core/a": "1"}));
    assert_eq!(twice.refuse("ADD").0, 7);
    let list = stage.root().join("etc/cni/tuning/allowlist.conf");
    std::fs::create_dir_all(list.parent().unwrap()).unwrap();
    std::fs::write(&list, "^net.ipv4.conf.IFNAME.log_martians$\n").unwrap();
    let other = pod
        .clone()
        .with("sysctl", json!({"net.ipv4.conf.IFNAME.arp_filter": "1"}));
    let (code, text) = other.refuse("ADD");
    assert!(
        code == 7 && text.contains("arp_filter is not allowed"),
        "{code} {text}"
    );
    assert_eq!(attributes(&pod), before);
    assert_eq!(sysctl(&pod, "net/ipv4/conf/net1/arp_filter"), "0");
    let allowed = pod
        .clone()
        .with("sysctl", json!({"net.ipv4.conf.IFNAME.log_martians": "1"}));
    allowed.add();
    assert_eq!(sysctl(&pod, "net/ipv4/conf/net1/log_martians"), "1");
}

#[test]
fn what_the_kernel_refuses_is_an_error_and_the_rest_is_put_back() {
    let Some(stage) = Stage::new("a MAC that is none") else {
        return;
    };
    let pod = pod(
        &stage,
        "c1",
        json!({"mtu": 1300, "mac": "01:00:5e:00:00:01"}),
    );
    let before = attributes(&pod);
    let (code, text) = pod.refuse("ADD");
    assert!(code == 999 && text.contains("net1"), "{code} {text}");
    assert_eq!(attributes(&pod), before);
    assert!(!backup(&stage, "c1").exists());
    let missing = pod.clone().with("prevResult", Value::Null);
    assert_eq!(missing.refuse("ADD").0, 7);
    stage.node.links();
}
