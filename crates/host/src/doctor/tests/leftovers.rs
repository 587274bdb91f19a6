//! Every sort of leftover: shown with its owner, cleaned when that is gone, and left alone otherwise.

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::*;
use crate::foreign::amd::{Entry, File};
use crate::record::{Record, Records};

const VF: &str = "0000:01:10.0";
const GONE: &str = "/run/netns/no-such-namespace";

/// The record of a device that is in a pod which lives here, or was in one before the node started anew.
fn record(bench: &Bench, pci: &str, container: &str, lives: bool) -> String {
    let here = Netns::open(HERE).unwrap();
    let mut record = Record::sample();
    record.device.pci = Some(pci.parse().unwrap());
    record.device.name = format!("dev-{container}");
    record.owner.holder = container.to_owned();
    record.owner.ifname = "net1".to_owned();
    record.owner.netns = HERE.into();
    record.owner.netns_id = here.id();
    if lives {
        record.boot = Boot::read(Path::new("/proc")).unwrap().id;
    }
    let key = record.device.key();
    let records = Records::new(bench.doctor.paths.own.join("devices"));
    records.lock(&key).unwrap().write(&record).unwrap();
    key
}

fn cache(bench: &Bench, container: &str, device: &str, recorded: bool) -> String {
    let mut text = json!({"name": "rail", "type": "sriov", "deviceID": device,
        "OrigVfState": {"HostIFName": "ens1v0"}});
    if recorded {
        text["recorded"] = json!(true);
    }
    let path = format!("var/lib/cni/sriov/{container}-net1");
    bench.write(&path, &text.to_string());
    path
}

fn allocate(bench: &Bench, device: &str, netns: &str) -> PathBuf {
    bench.write(&format!("var/lib/cni/sriov/pci/{device}"), netns);
    bench.dir.path().join("var/lib/cni/sriov/pci").join(device)
}

fn map(bench: &Bench, entries: &[(&str, Option<&str>)]) -> File {
    let file = File::new(&bench.doctor.paths);
    let mut mapping = file.read().unwrap().unwrap_or_default();
    for (device, record) in entries {
        let entry = Entry {
            host_interface_name: "rail0".to_owned(),
            record: record.map(ToOwned::to_owned),
            ..Entry::default()
        };
        mapping.set(device, &entry);
    }
    file.write(&mapping).unwrap();
    file
}

fn devices(file: &File) -> Vec<String> {
    let mapping = file.read().unwrap().unwrap();
    mapping.devices().map(ToOwned::to_owned).collect()
}

/// Sort, container and life of everything that is kept.
fn shown(report: &Report) -> Vec<(String, String, String)> {
    let one = |k: &Kept| {
        (
            k.sort.to_string(),
            k.who.container.clone(),
            k.life.to_string(),
        )
    };
    report.kept.iter().map(one).collect()
}

fn row(sort: &str, container: &str, life: &str) -> (String, String, String) {
    (sort.to_owned(), container.to_owned(), life.to_owned())
}

#[test]
fn a_device_goes_home_with_what_other_plugins_would_look_for_and_a_living_pods_stays() {
    let bench = Bench::new();
    let dead = record(&bench, VF, "gone", false);
    let alive = record(&bench, "0000:01:10.2", "alive", true);
    let gone = cache(&bench, "gone", VF, true);
    let kept = cache(&bench, "alive", "0000:01:10.2", true);
    allocate(&bench, VF, GONE);
    let allocation = allocate(&bench, "0000:01:10.2", HERE);
    let file = map(
        &bench,
        &[
            (VF, Some(&dead)),
            ("0000:01:10.2", Some(&alive)),
            ("0000:09:00.0", None),
        ],
    );
    let report = bench.doctor.look().unwrap();
    assert_eq!(
        shown(&report),
        [
            row("device", "alive", "lives"),
            row("device", "gone", "gone"),
            row("AMD mapping", "gone", "gone"),
            row("AMD mapping", "alive", "lives"),
            row("AMD mapping", "", "not known"),
            row("VF", "gone", "gone"),
            row("VF", "alive", "lives"),
            row("VF cache", "gone", "gone"),
            row("VF cache", "alive", "lives"),
        ]
    );
    let report = bench.doctor.fix().unwrap();
    assert!(report.is_well(), "{}", report.text());
    assert_eq!(report.fixed.len(), 4, "{:?}", report.fixed);
    assert!(report.fixed[0].contains("dev-gone"), "{:?}", report.fixed);
    let left = Records::new(bench.doctor.paths.own.join("devices")).all();
    let left: Vec<String> = left.unwrap().into_iter().map(|(key, _)| key).collect();
    assert_eq!(left, [alive]);
    assert!(!bench.exists(&gone) && bench.exists(&kept));
    assert!(allocation.exists());
    assert_eq!(devices(&file), ["0000:01:10.2", "0000:09:00.0"]);
    assert_eq!(bench.doctor.fix().unwrap().fixed, [""; 0]);
}

#[test]
fn what_our_record_left_behind_goes_and_what_others_wrote_is_told_how_to_restore() {
    let bench = Bench::new();
    // As after a kill between the record and the files.
    let ours = cache(&bench, "killed", VF, true);
    let file = map(&bench, &[(VF, Some("pci-gone"))]);
    // As sriov-cni and AMD's plugin leave it: only their own DEL knows the way back.
    let conf = r#"{"cniVersion":"1.0.0","name":"rail","type":"amd-host-device","deviceID":"0000:09:00.0"}"#;
    bench.cached("gone", GONE, conf);
    let theirs = cache(&bench, "gone", "0000:01:10.4", false);
    map(&bench, &[("0000:09:00.0", None)]);
    let report = bench.doctor.look().unwrap();
    let helps: Vec<&str> = report.findings.iter().map(|f| f.help.as_str()).collect();
    let by_del = |help: &&&str| help.contains("CNI_COMMAND=DEL CNI_CONTAINERID=gone");
    assert_eq!(helps.iter().filter(by_del).count(), 2, "{helps:?}");
    let report = bench.doctor.fix().unwrap();
    assert_eq!(report.fixed.len(), 2, "{:?}", report.fixed);
    assert!(!bench.exists(&ours) && bench.exists(&theirs));
    assert_eq!(devices(&file), ["0000:09:00.0"]);
    assert!(!report.is_well(), "what is left is still said");
}

#[test]
fn a_user_of_a_shim_that_is_gone_is_taken_away_and_one_that_lives_stays() {
    let bench = Bench::new();
    let here = Netns::open(HERE).unwrap();
    let objects = crate::shared::Objects::new(bench.doctor.paths.own.join("shim"));
    let object = objects.lock("moor-eth9").unwrap();
    object
        .add(&User::new("rail", "alive", "net1", &here))
        .unwrap();
    let mut gone = User::new("rail", "gone", "net1", &here);
    gone.netns = GONE.into();
    object.add(&gone).unwrap();
    drop(object);
    assert_eq!(bench.codes(), ["StateLeftOver"]);
    let after = bench.doctor.fix().unwrap();
    assert!(after.is_well(), "{}", after.text());
    assert_eq!(shown(&after), [row("shim", "alive", "lives")]);
}

#[test]
fn values_of_tuning_go_with_their_owner_and_only_with_it() {
    let bench = Bench::new();
    let own = bench.dir.path().join("own-tuning");
    let conf = json!({"cniVersion": "1.0.0", "name": "rail", "plugins": [
        {"type": "macvlan"}, {"type": "tuning", "dataDir": own}]});
    bench.cached("alive", HERE, CONF);
    bench.cached("gone", GONE, &conf.to_string());
    bench.plugin("macvlan", "exit 0");
    for container in ["alive", "gone", "unheard-of"] {
        bench.write(&format!("run/cni/tuning/{container}_net1.json"), "{}");
    }
    bench.write("own-tuning/gone_net1.json", "{}");
    let report = bench.doctor.fix().unwrap();
    assert_eq!(report.fixed.len(), 2, "{:?}", report.fixed);
    assert!(!bench.exists("run/cni/tuning/gone_net1.json"));
    assert!(!bench.exists("own-tuning/gone_net1.json"));
    assert!(bench.exists("run/cni/tuning/alive_net1.json"));
    assert!(bench.exists("run/cni/tuning/unheard-of_net1.json"));
}

#[test]
fn addresses_in_a_directory_that_a_configuration_names_are_seen_and_freed() {
    let bench = Bench::new();
    let own = bench.dir.path().join("own");
    let conf = |name: &str| {
        let ipam = json!({"type": "host-local", "dataDir": own});
        json!({"cniVersion": "1.0.0", "name": name, "type": "macvlan", "ipam": ipam}).to_string()
    };
    bench.plugin("macvlan", "exit 0");
    bench.write("net.d/10-file.conf", &conf("file"));
    bench.cached("gone", GONE, &conf("rail"));
    bench.write("own/rail/10.1.2.7", "gone\r\nnet1");
    bench.write("own/file/10.1.3.7", "gone\r\nnet1");
    bench.write("own/nobodys/10.1.4.7", "gone\r\nnet1");
    let report = bench.doctor.fix().unwrap();
    let freed = ["address 10.1.2.7 is free", "address 10.1.3.7 is free"];
    assert_eq!(report.fixed, freed);
    assert!(!bench.exists("own/rail/10.1.2.7") && !bench.exists("own/file/10.1.3.7"));
    assert!(bench.exists("own/nobodys/10.1.4.7"), "no network of ours");
}

#[test]
fn nothing_is_removed_by_what_an_earlier_look_saw() {
    let bench = Bench::new();
    bench.cached("gone", GONE, CONF);
    bench.plugin("macvlan", "exit 0");
    bench.write("run/cni/tuning/gone_net1.json", "{}");
    let allocation = allocate(&bench, VF, GONE);
    let stale = bench.doctor.look().unwrap();
    assert_eq!(shown(&stale).len(), 2);
    // Both begin anew before the fix comes to them.
    bench.cached("gone", HERE, CONF);
    bench.write(&format!("var/lib/cni/sriov/pci/{VF}"), HERE);
    let done: Vec<String> = fix::fix(&bench.doctor, &stale)
        .into_iter()
        .map(|done| done.unwrap_or_else(|finding| finding.message))
        .collect();
    assert!(allocation.exists(), "{done:?}");
    assert!(bench.exists("run/cni/tuning/gone_net1.json"), "{done:?}");
}

/// Waits until somebody waits for a lock that this process holds.
fn await_waiter(lock: &Path) {
    let inode = fs::metadata(lock).unwrap().ino();
    let waits = |line: &&str| line.contains("->") && line.contains(&format!(":{inode} "));
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let locks = fs::read_to_string("/proc/locks").unwrap();
        if locks.lines().any(|line| waits(&line)) {
            return;
        }
        assert!(Instant::now() < end, "nobody waits for {inode}: {locks}");
        std::thread::yield_now();
    }
}

#[test]
fn a_vf_that_somebody_sets_up_is_waited_for_and_looked_at_again() {
    let bench = Bench::new();
    let allocation = allocate(&bench, VF, GONE);
    let lock = bench
        .dir
        .path()
        .join(format!("var/lib/cni/sriov/pci/vf_lock/{VF}.lock"));
    let held = crate::file::Lock::exclusive(&lock, Duration::from_secs(1)).unwrap();
    std::thread::scope(|scope| {
        let fixed = scope.spawn(|| bench.doctor.fix().unwrap().fixed);
        await_waiter(&lock);
        bench.write(&format!("var/lib/cni/sriov/pci/{VF}"), HERE);
        drop(held);
        let fixed = fixed.join().unwrap();
        assert!(fixed[0].contains("left alone"), "{fixed:?}");
    });
    assert!(allocation.exists());
}

#[test]
fn torn_files_of_other_plugins_are_said_and_never_touched() {
    let bench = Bench::new();
    let paths = [
        "var/lib/cni/sriov/c1-net1",
        "var/lib/cni/amd-host-device/ip-interface-mappings.json",
    ];
    for path in paths {
        bench.write(path, "{\"device");
    }
    assert_eq!(bench.codes(), ["StateUnreadable"; 2]);
    bench.doctor.fix().unwrap();
    assert!(paths.iter().all(|path| bench.exists(path)));
}

#[test]
fn the_report_for_programs_says_what_each_thing_is_and_whose() {
    let bench = Bench::new();
    cache(&bench, "my-pod", VF, true);
    record(&bench, VF, "my-pod", true);
    let report = serde_json::to_value(bench.doctor.look().unwrap()).unwrap();
    let of = |sort: &str| -> Value {
        let kept = report["kept"].as_array().unwrap();
        kept.iter().find(|k| k["sort"] == sort).unwrap().clone()
    };
    assert_eq!(of("cache")["who"]["container"], "my-pod");
    assert_eq!(of("cache")["who"]["ifname"], "net1");
    assert_eq!(of("cache")["life"], "alive");
    assert_eq!(of("device")["name"], "dev-my-pod");
}
