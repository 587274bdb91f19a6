//! `moor-cni doctor`, the program itself, on a node where one pod lives and another ended without a DEL.
//!
//! Both were attached by real ADDs of every plugin that keeps something; the runtime's cache is written here, because a test is the
//! runtime. Easy to get wrong: a veth ends with its namespace and a NIC does not, so the dead pod's NICs are moved out by hand, as the
//! kernel does with hardware.

use std::collections::BTreeSet;
use std::path::Path;

use mooring_testkit::Said;
use serde_json::{Value, json};

use crate::host_device::bed::{Bed, read};
use crate::protocol::{PROGRAM, plugins};
use crate::stage::{Pod, Stage, Tools};

/// Runs the doctor on the node, with plugins for its CHECKs.
pub(crate) fn doctor(stage: &Stage, words: &[&str]) -> Said {
    let root = stage.root();
    let bin = root.join("bin");
    if !bin.exists() {
        std::fs::create_dir_all(&bin).unwrap();
        for name in plugins() {
            std::os::unix::fs::symlink(PROGRAM, bin.join(name)).unwrap();
        }
    }
    let variable = format!("MOOR_CNI_ROOT={}", root.display());
    let bin = format!("--bin-dir={}", bin.display());
    let conf = format!("--conf-dir={}", root.join("net.d").display());
    let all = [&[&variable, PROGRAM, "doctor", &bin, &conf], words].concat();
    stage.run("env", &all)
}

/// The report as a program reads it, and whether the doctor found something wrong.
#[track_caller]
pub(crate) fn report(stage: &Stage, words: &[&str]) -> (Value, bool) {
    let said = doctor(stage, &[words, &["--output=json"]].concat());
    let report = serde_json::from_str(&said.stdout).unwrap_or_else(|e| panic!("{e}: {said:?}"));
    (report, said.code != Some(0))
}

/// Everything that is kept for a container, by sort, name and note.
pub(crate) fn kept(report: &Value, container: &str) -> Vec<String> {
    let all = report["kept"].as_array().unwrap().iter();
    let own = all.filter(|k| k["who"]["container"] == container);
    own.map(|k| {
        let text = |key: &str| k[key].as_str().unwrap_or_default().to_owned();
        format!("{} {} {}", text("sort"), text("name"), text("life"))
    })
    .collect()
}

/// What libcni remembers after an ADD with these plugins.
pub(crate) fn remember(root: &Path, pod: &Pod, plugins: &[Value], result: &Value) {
    let name = pod.config["name"].as_str().unwrap();
    let list = json!({"cniVersion": "1.1.0", "name": name, "plugins": plugins});
    let cached = json!({"kind": "cniCacheV1", "containerId": pod.container, "ifName": pod.ifname,
        "networkName": name, "netns": pod.netns.path(), "config": base64(list.to_string().as_bytes()),
        "cniArgs": [], "capabilityArgs": {}, "result": result});
    let dir = root.join("var/lib/cni/results");
    std::fs::create_dir_all(&dir).unwrap();
    let file = format!("{name}-{}-{}", pod.container, pod.ifname);
    std::fs::write(dir.join(file), cached.to_string()).unwrap();
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut three = [0; 3];
        three[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes([0, three[0], three[1], three[2]]);
        for nth in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * nth) & 63) as usize];
            let is_there = nth <= u32::try_from(chunk.len()).unwrap();
            text.push(if is_there { char::from(letter) } else { '=' });
        }
    }
    text
}

/// All that the doctor knows of a pod with everything.
const SORTS: [&str; 8] = [
    "address", "cache", "device", "function", "mapping", "rule", "shim", "tuning",
];

/// The NICs of one pod: an ordinary one and a VF.
struct Nics {
    rail: (&'static str, &'static str),
    vf: (&'static str, &'static str),
}

const DEAD: Nics = Nics {
    rail: ("dev0", "0000:5e:00.0"),
    vf: ("vf1", "0000:3b:10.2"),
};
const ALIVE: Nics = Nics {
    rail: ("dev1", "0000:5f:00.0"),
    vf: ("vf2", "0000:3b:10.4"),
};

/// A node with NICs, VFs and an uplink.
fn node(what: &str) -> Option<Bed> {
    let tools = Tools::nft(what)?;
    let bed = Bed::new(what)?;
    let bed = Bed {
        stage: bed.stage.with(tools),
        fabric: bed.fabric,
    };
    let node = bed.node();
    for (name, mac) in [
        ("dev1", 0x21),
        ("vf1", 0x31),
        ("vf2", 0x32),
        ("pf0", 0x99),
        ("up0", 0x41),
    ] {
        bed.device(name, &format!("02:00:00:00:00:{mac:02x}"));
        node.ip(&format!("link set {name} up"));
    }
    node.ip("addr add 10.9.0.0/31 dev dev1");
    node.ip("addr add 10.7.7.7/24 dev vf1");
    node.ip("addr add 10.1.2.5/24 dev up0");
    let pf = bed.sysfs("0000:3b:00.0", "pf0");
    for (nth, nics) in [DEAD, ALIVE].iter().enumerate() {
        bed.sysfs(nics.rail.1, nics.rail.0);
        let vf = bed.sysfs(nics.vf.1, nics.vf.0);
        std::os::unix::fs::symlink(&pf, vf.join("physfn")).unwrap();
        std::os::unix::fs::symlink(&vf, pf.join(format!("virtfn{nth}"))).unwrap();
    }
    Some(bed)
}

/// Attaches a pod to everything. Its interfaces are net1 (a NIC), net2 (a VF), net3 (bridge and tuning), net4 (macvlan).
fn attach(bed: &Bed, container: &str, nics: &Nics, host: u8) -> Vec<Pod> {
    let stage = &bed.stage;
    let root = stage.root();
    let netns = stage.sandbox.netns(container);
    let own = root.join("own-addresses");
    let pool = json!({"type": "host-local", "subnet": "10.88.0.0/24"});
    let own_pool = json!({"type": "host-local", "subnet": "10.66.0.0/24", "dataDir": own});
    let address = format!("10.1.2.{host}/24");
    let reached = json!({"type": "static", "addresses": [{"address": address}]});
    let configs = [
        json!({"name": "rails", "type": "amd-host-device", "deviceID": nics.rail.1}),
        json!({"name": "vfs", "type": "sriov", "deviceID": nics.vf.1, "ipam": own_pool}),
        json!({"name": "n3", "type": "bridge", "bridge": "br1", "isGateway": true, "ipMasq": true,
            "macspoofchk": true, "ipam": pool}),
        json!({"name": "n4", "type": "macvlan", "master": "up0", "hostReach": true, "ipam": reached}),
    ];
    let mut pods = Vec::new();
    for (nth, config) in configs.into_iter().enumerate() {
        let mut pod = stage.pod_in(netns.clone(), container, config);
        pod.ifname = format!("net{}", nth + 1);
        let mut result = pod.add();
        let mut plugins = vec![pod.config.clone()];
        if pod.ifname == "net3" {
            let config =
                json!({"name": "n3", "type": "tuning", "txQLen": 77, "prevResult": result});
            let mut tuning = stage.pod_in(netns.clone(), container, config);
            tuning.ifname.clone_from(&pod.ifname);
            result = tuning.add();
            plugins.push(json!({"type": "tuning", "txQLen": 77}));
        }
        remember(root, &pod, &plugins, &result);
        pods.push(pod);
    }
    pods
}

/// All that a living pod has, inside and on the node.
fn belongings(bed: &Bed, pods: &[Pod]) -> Vec<String> {
    let pod = &pods[0];
    let mut all: Vec<String> = pods
        .iter()
        .map(|p| format!("{:?}", p.addresses()))
        .collect();
    let names = |text: String| {
        let lines = text
            .lines()
            .map(|l| l.split('<').next().unwrap().to_owned());
        lines.collect::<Vec<_>>().join("\n")
    };
    all.push(names(pod.netns.ip("-o link show")));
    let rules = bed.stage.rules();
    all.push(
        rules
            .matches(&format!("{}-net3", pod.container))
            .count()
            .to_string(),
    );
    all.push(
        rules
            .matches(&format!("id: {}", pod.container))
            .count()
            .to_string(),
    );
    all.push(bed.node().ip("route show 10.1.2.20 dev moor-up0"));
    all
}

#[test]
fn the_doctor_finds_what_a_dead_pod_left_and_fix_takes_that_and_nothing_of_the_living() {
    let Some(bed) = node("moor-cni doctor") else {
        return;
    };
    let stage = &bed.stage;
    let (report_before, wrong) = report(stage, &[]);
    assert!(
        !wrong && report_before["kept"] == json!([]),
        "{report_before:#}"
    );
    let homes = [DEAD.rail.0, DEAD.vf.0].map(|name| bed.picture(name));
    let living = attach(&bed, "alive", &ALIVE, 20);
    let dead = attach(&bed, "dead", &DEAD, 21);

    let (well, wrong) = report(stage, &[]);
    assert!(!wrong, "two living pods: {well:#}");
    for container in ["alive", "dead"] {
        let all = kept(&well, container);
        assert!(all.iter().all(|line| line.ends_with(" alive")), "{all:#?}");
        let sorts: BTreeSet<&str> = all.iter().filter_map(|l| l.split(' ').next()).collect();
        assert_eq!(sorts, SORTS.into(), "{container}");
    }

    // The dead pod ends without a DEL.
    let path = bed.node().path();
    let node = path.rsplit('/').next().unwrap();
    for ifname in ["net1", "net2"] {
        dead[0].netns.ip(&format!("link set {ifname} down"));
        dead[0].netns.ip(&format!("link set {ifname} netns {node}"));
    }
    dead[0].end();
    let had = belongings(&bed, &living);
    let lives = kept(&well, "alive");

    let (sick, wrong) = report(stage, &[]);
    assert!(wrong, "{sick:#}");
    assert_eq!(kept(&sick, "alive"), lives);
    let left = kept(&sick, "dead");
    let gone = left.iter().filter(|line| line.ends_with(" gone")).count();
    assert!(left.len() >= 10, "{left:#?}");
    assert_eq!(gone, left.len(), "{left:#?}");
    let text = doctor(stage, &[]);
    assert_eq!(text.code, Some(1), "{text:?}");
    for part in [
        "error[StateLeftOver]",
        "device dev0",
        "AMD mapping",
        "VF cache",
        "macspoofchk",
        "help: ",
    ] {
        assert!(
            text.stdout.contains(part),
            "{part} is not in {}",
            text.stdout
        );
    }
    assert_eq!(
        kept(&report(stage, &[]).0, "dead"),
        left,
        "looking changes nothing"
    );

    let (fixed, wrong) = report(stage, &["--fix"]);
    assert!(!wrong, "{fixed:#}");
    assert_eq!(kept(&fixed, "dead"), [""; 0], "{fixed:#}");
    assert_eq!(kept(&fixed, "alive"), lives);
    assert!(fixed["fixed"].as_array().unwrap().len() >= 8, "{fixed:#}");
    assert_eq!(
        [DEAD.rail.0, DEAD.vf.0].map(|name| bed.picture(name)),
        homes
    );
    assert_eq!(belongings(&bed, &living), had);
    let rules = stage.rules();
    assert!(!rules.contains("dead"), "{rules}");
    let notes = stage.root().join("run/cni/moor/rules");
    let notes = std::fs::read_dir(notes).unwrap().map(|e| e.unwrap().path());
    let notes: Vec<Value> = notes.map(|path| read(&path)).collect();
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert_eq!(notes[0]["container"], "alive");
    let verdicts = fixed["attachments"].as_array().unwrap().iter();
    let verdicts: Vec<&Value> = verdicts
        .filter(|a| a["container"] == "alive")
        .map(|a| &a["verdict"])
        .collect();
    assert_eq!(verdicts, [&json!("good"); 4], "{fixed:#}");

    // Its late DELs find nothing, and the living pod leaves a clean node.
    for pod in dead.iter().chain(&living) {
        pod.del();
    }
    assert_eq!(
        [DEAD.rail.0, DEAD.vf.0].map(|name| bed.picture(name)),
        homes
    );
}
