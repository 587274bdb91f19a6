//! host-device with hardware: what comes back to the host by itself when a pod dies, and under which name.
//!
//! The plugin runs in the machine's first namespace, since that is where the kernel puts hardware whose namespace ended. Each test takes
//! a card as it finds it and leaves it so.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use mooring_testkit::Said;
use serde_json::{Value, json};

/// The second card's physical function. The first one's VFs are for sriov.
pub(crate) const CARD: &str = "0000:02:00.0";

/// The machine, as a node.
pub(crate) struct Machine {
    root: tempfile::TempDir,
}

/// A pod of it; its namespace goes with it.
pub(crate) struct Pod<'a> {
    machine: &'a Machine,
    pub(crate) name: String,
    pub(crate) config: Value,
}

/// Runs a program; failing is a failed test.
#[track_caller]
fn run(program: &str, words: &str) -> String {
    let output = Command::new(program)
        .args(words.split_whitespace())
        .output();
    let said = Said::from(output.unwrap_or_else(|e| panic!("{program}: {e}")));
    assert_eq!(said.code, Some(0), "{program} {words}: {said:?}");
    said.stdout
}

#[track_caller]
pub(crate) fn ip(words: &str) -> String {
    run("ip", words)
}

/// Waits until `seen` gives something.
#[track_caller]
pub(crate) fn until<T>(what: &str, seen: impl Fn() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_mins(1);
    loop {
        if let Some(value) = seen() {
            return value;
        }
        assert!(
            Instant::now() < end,
            "waited in vain for {what}: {}",
            ip("link")
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The interface of a PCI function in the first namespace.
pub(crate) fn interface(bdf: &str) -> Option<String> {
    let mut dir = std::fs::read_dir(format!("/sys/bus/pci/devices/{bdf}/net")).ok()?;
    let entry = dir.find_map(Result::ok)?;
    entry.file_name().into_string().ok()
}

/// A link with its addresses, but for what the kernel counts.
pub(crate) fn picture(name: &str) -> Value {
    let links: Value = serde_json::from_str(&ip(&format!("-j -d addr show dev {name}"))).unwrap();
    let link = &links[0];
    let addresses: Vec<Value> = link["addr_info"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|a| a["scope"] == "global")
        .map(|a| json!([a["local"], a["prefixlen"], a["label"]]))
        .collect();
    let up = link["flags"].as_array().unwrap().contains(&json!("UP"));
    let routes: Vec<String> = ip(&format!("-4 route show table all dev {name}"))
        .lines()
        .map(|line| line.trim().replace(" linkdown", ""))
        .collect();
    json!({
        "name": link["ifname"], "mac": link["address"], "mtu": link["mtu"], "alias": link["ifalias"],
        "up": up, "addresses": addresses, "routes": routes,
    })
}

impl Machine {
    pub(crate) fn new() -> Self {
        Self {
            root: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn root(&self) -> &std::path::Path {
        self.root.path()
    }

    pub(crate) fn pod(&self, name: &str, config: Value) -> Pod<'_> {
        let mut all = json!({"cniVersion": "1.1.0", "name": "net"});
        for (key, value) in config.as_object().unwrap() {
            all[key] = value.clone();
        }
        ip(&format!("netns add {name}"));
        Pod {
            machine: self,
            name: name.to_owned(),
            config: all,
        }
    }

    pub(crate) fn records(&self) -> usize {
        let dir = self.root.path().join("run/cni/moor/devices");
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        let records = entries.filter(|e| e.path().extension().is_some_and(|x| x == "json"));
        records.count()
    }
}

impl Pod<'_> {
    pub(crate) fn call(&self, verb: &str, more: &[(&str, &str)]) -> Said {
        let mut child = Command::new(env!("CARGO_BIN_EXE_moor-cni"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("MOOR_CNI_ROOT", self.machine.root.path())
            .env("CNI_COMMAND", verb)
            .env("CNI_CONTAINERID", &self.name)
            .env("CNI_IFNAME", "net1")
            .env("CNI_NETNS", format!("/run/netns/{}", self.name))
            .env("CNI_PATH", "/nonexistent")
            .envs(more.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut stdin, self.config.to_string().as_bytes()).unwrap();
        drop(stdin);
        child.wait_with_output().unwrap().into()
    }

    #[track_caller]
    pub(crate) fn add(&self) -> Value {
        serde_json::from_str(self.call("ADD", &[]).ok()).unwrap()
    }

    #[track_caller]
    pub(crate) fn del(&self) {
        self.call("DEL", &[]).ok();
    }

    /// CHECK with a result.
    pub(crate) fn check(&self, result: &Value) -> Said {
        let mut config = self.config.clone();
        config["prevResult"] = result.clone();
        let again = Pod {
            machine: self.machine,
            name: self.name.clone(),
            config,
        };
        let said = again.call("CHECK", &[]);
        std::mem::forget(again);
        said
    }

    #[track_caller]
    pub(crate) fn ip(&self, words: &str) -> String {
        ip(&format!("-n {} {words}", self.name))
    }

    /// The pod dies.
    pub(crate) fn end(&self) {
        ip(&format!("netns del {}", self.name));
    }
}

impl Drop for Pod<'_> {
    fn drop(&mut self) {
        let _ = Command::new("ip")
            .args(["netns", "del", &self.name])
            .output();
    }
}

/// The card with an address and a route, as it is on a node.
fn furnished() -> (String, Value) {
    let name = interface(CARD).expect("the card has an interface");
    ip(&format!("link set {name} mtu 1400 up"));
    ip(&format!("addr replace 192.0.2.10/24 dev {name}"));
    ip(&format!(
        "route replace 198.51.100.0/24 via 192.0.2.1 dev {name}"
    ));
    let picture = picture(&name);
    (name, picture)
}

fn config() -> Value {
    json!({
        "type": "host-device", "pciBusID": CARD,
        "ipam": {"type": "static", "addresses": [{"address": "192.0.2.99/24"}]},
    })
}

#[test]
#[ignore = "kernel: qemu"]
fn a_card_goes_to_a_pod_and_comes_back() {
    let machine = Machine::new();
    let (name, before) = furnished();
    let pod = machine.pod("there-and-back", config());
    let result = pod.add();
    assert_eq!(result["interfaces"][0]["pciID"], CARD);
    assert_eq!(interface(CARD), None);
    pod.check(&result).ok();
    pod.del();
    assert_eq!(picture(&name), before);
    pod.del();
    assert_eq!(machine.records(), 0);
}

#[test]
#[ignore = "kernel: qemu"]
fn a_card_whose_pod_died_is_on_the_host_under_the_pods_name_until_del_restores_it() {
    let machine = Machine::new();
    let (name, before) = furnished();
    let pod = machine.pod("died", config());
    pod.add();
    pod.end();
    let fallen = until("the card", || interface(CARD));
    assert_eq!(fallen, "net1", "this is what the kernel does with hardware");
    pod.del();
    assert_eq!(picture(&name), before);
    assert_eq!(machine.records(), 0);
}

#[test]
#[ignore = "kernel: qemu"]
fn a_del_that_comes_before_the_kernel_has_cleaned_up_waits_for_the_card() {
    let machine = Machine::new();
    let (name, before) = furnished();
    for n in 0..3 {
        let pod = machine.pod(&format!("hurry{n}"), config());
        pod.add();
        pod.end();
        pod.del();
        assert_eq!(picture(&name), before);
        assert_eq!(machine.records(), 0);
    }
}

#[test]
#[ignore = "kernel: qemu"]
fn a_card_that_fell_back_under_a_name_of_the_kernel_is_found_by_its_address() {
    let machine = Machine::new();
    let (name, before) = furnished();
    let pod = machine.pod("clash", config());
    pod.add();
    ip("link add net1 type dummy");
    pod.end();
    let fallen = until("the card", || interface(CARD));
    assert!(fallen.starts_with("dev"), "{fallen}");
    pod.del();
    assert_eq!(picture(&name), before);
    ip("link del net1");
}

#[test]
#[ignore = "kernel: qemu"]
fn a_card_of_a_dead_pod_goes_to_the_next_one_and_home_as_it_was() {
    let machine = Machine::new();
    let (name, before) = furnished();
    let dead = machine.pod("dead", config());
    dead.add();
    dead.end();
    until("the card", || interface(CARD));
    let next = machine.pod("next", config());
    next.add();
    dead.del();
    assert!(next.ip("addr show dev net1").contains("192.0.2.99/24"));
    next.del();
    assert_eq!(picture(&name), before);
}

#[test]
#[ignore = "kernel: qemu"]
fn a_card_that_somebody_else_gave_to_another_pod_stays_there_until_it_is_home() {
    let machine = Machine::new();
    let (name, before) = furnished();
    let old = machine.pod("old", config());
    old.add();
    old.end();
    until("the card", || interface(CARD));
    // What the reference does: no word to us.
    let theirs = machine.pod("theirs", config());
    ip("link set net1 netns theirs");
    theirs.ip("link set net1 up");
    theirs.ip("addr add 192.0.2.77/24 dev net1");
    old.del();
    let gc = machine.pod("gc", config());
    let mut all = gc.config.clone();
    all["cni.dev/valid-attachments"] = json!([]);
    let gc = Pod {
        machine: &machine,
        name: "gc-again".to_owned(),
        config: all,
    };
    gc.call("GC", &[]).ok();
    let next = machine.pod("next", config());
    let said = next.call("ADD", &[]);
    assert!(said.stdout.contains("\"code\": 11"), "{said:?}");
    assert!(said.stdout.contains("/run/netns/theirs"), "{said:?}");
    next.del();
    assert!(theirs.ip("addr show dev net1").contains("192.0.2.77/24"));
    // Their DEL knows nothing of what it was; we do.
    theirs.end();
    until("the card", || interface(CARD));
    next.add();
    next.del();
    assert_eq!(picture(&name), before);
    assert_eq!(machine.records(), 0);
}

#[test]
#[ignore = "kernel: qemu"]
fn a_card_survives_a_kill_at_every_step_and_the_death_of_its_pod() {
    let machine = Machine::new();
    let (name, before) = furnished();
    let points = machine.root().join("points");
    let pod = machine.pod("count", config());
    let noted = points.display().to_string();
    pod.call("ADD", &[("MOOR_CNI_POINTS", &noted)]).ok();
    pod.del();
    let points = std::fs::read_to_string(points).unwrap();
    let mut tried = 0;
    for point in points.lines() {
        let pod = machine.pod(&format!("killed{tried}"), config());
        let said = pod.call("ADD", &[("MOOR_CNI_DIE_AT", point)]);
        assert_ne!(said.code, Some(0), "{point}");
        pod.end();
        pod.del();
        assert_eq!(picture(&name), before, "killed after {point}");
        assert_eq!(machine.records(), 0, "killed after {point}");
        tried += 1;
    }
    assert!(tried >= 5, "{points}");
}

/// A soft RDMA device on an interface, in a node that keeps RDMA devices apart; both end with it.
struct SoftRdma;

impl SoftRdma {
    const NAME: &str = "rxe-test";

    fn on(interface: &str) -> Self {
        let made = Self;
        run(
            "rdma",
            &format!("link add {} type rxe netdev {interface}", Self::NAME),
        );
        made
    }

    /// Devices are in one namespace each. The kernel changes that only while there is no namespace but the first, and one that was
    /// deleted is there for a while.
    fn keep_apart() {
        until("RDMA devices to be kept apart", || mode("exclusive"));
    }
}

fn mode(wanted: &str) -> Option<()> {
    let mut set = Command::new("rdma");
    set.args(["system", "set", "netns", wanted]);
    set.output().ok()?.status.success().then_some(())
}

impl Drop for SoftRdma {
    fn drop(&mut self) {
        let _ = Command::new("rdma")
            .args(["link", "del", Self::NAME])
            .output();
        if !std::thread::panicking() {
            until("RDMA devices to be shared again", || mode("shared"));
        }
    }
}

#[test]
#[ignore = "kernel: qemu"]
fn an_rdma_device_is_found_by_its_interface_and_a_node_says_how_it_keeps_them() {
    use mooring_host::Netns;
    use mooring_host::rdma::{Mode, Rdma};

    let (name, _) = furnished();
    let _soft = SoftRdma::on(&name);
    let here = Netns::current().unwrap();
    let mut rdma = Rdma::open(&here).unwrap().expect("this kernel has RDMA");
    assert_eq!(rdma.mode().unwrap(), Mode::Shared);
    let index = here.netlink().unwrap().link(&name).unwrap().unwrap().index;
    let device = rdma
        .of_link(index)
        .unwrap()
        .expect("rxe has the card as its port");
    assert_eq!(device.name, SoftRdma::NAME);
    assert_eq!(rdma.of_link(1).unwrap(), None, "the loopback has none");
    SoftRdma::keep_apart();
    assert_eq!(rdma.mode().unwrap(), Mode::Exclusive);
    // No soft device can be moved on this kernel: the refusal must be told, and must not be taken for a missing device.
    let other = Netns::temporary().unwrap();
    let moved = rdma.move_to(&device, &other).unwrap_err();
    assert!(moved.to_string().contains("a move"), "{moved}");
    assert_eq!(rdma.of_link(index).unwrap(), Some(device));
}

/// A soft RDMA device ends when its own interface leaves the namespace, so it cannot be refused a move behind it. This one is on another
/// interface, and the record of an ADD that was killed says that it belongs to the card.
#[test]
#[ignore = "kernel: qemu"]
fn a_card_whose_rdma_device_the_kernel_does_not_move_comes_back_and_the_add_fails() {
    let machine = Machine::new();
    let (name, before) = furnished();
    ip("link add other type dummy");
    ip("link set other up");
    let soft = SoftRdma::on("other");
    SoftRdma::keep_apart();
    let pod = machine.pod("rdma-refused", config());
    let died = pod.call("ADD", &[("MOOR_CNI_DIE_AT", "device-recorded")]);
    assert_ne!(died.code, Some(0), "{died:?}");
    let dir = machine.root().join("run/cni/moor/devices");
    let files = std::fs::read_dir(dir).unwrap().flatten();
    let file = files
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|e| e == "json"))
        .expect("a record");
    let mut record: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let shown: Value = serde_json::from_str(&run("rdma", "-j dev show")).unwrap();
    record["rdma"] = json!({"index": shown[0]["ifindex"], "name": SoftRdma::NAME});
    std::fs::write(&file, record.to_string()).unwrap();

    let said = pod.call("ADD", &[]);
    assert_ne!(said.code, Some(0), "{said:?}");
    for part in ["RDMA", &name, "a move"] {
        assert!(said.stdout.contains(part), "{part} is not in {said:?}");
    }
    assert_eq!(interface(CARD).as_ref(), Some(&name));
    assert_eq!(picture(&name), before);
    assert_eq!(machine.records(), 0);
    assert!(!pod.ip("link").contains("net1"));
    pod.del();
    assert_eq!(picture(&name), before);
    pod.end();
    drop(soft);
    ip("link del other");
}
