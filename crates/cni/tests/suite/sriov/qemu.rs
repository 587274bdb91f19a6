//! sriov with a card that has VFs: what its physical function sets, and that all of it is put back.

use serde_json::{Value, json};

use crate::host_device::qemu::{Machine, Pod, interface, ip, picture, until};

const PF: &str = "0000:01:00.0";

/// The first card with its VFs; gives the names of the PF, and the address and name of VF 1.
fn vf() -> (String, String, String) {
    let pf = interface(PF).expect("the card has an interface");
    let count = format!("/sys/bus/pci/devices/{PF}/sriov_numvfs");
    if std::fs::read_to_string(&count).unwrap().trim() == "0" {
        std::fs::write(&count, "3").unwrap();
    }
    ip(&format!("link set {pf} up"));
    let target = std::fs::read_link(format!("/sys/bus/pci/devices/{PF}/virtfn1")).unwrap();
    let bdf = target.file_name().unwrap().to_str().unwrap().to_owned();
    let name = until("the VF's interface", || interface(&bdf));
    (pf, bdf, name)
}

/// VF 1 as its PF shows it, without a MAC that the VF chose itself: igb shows that one too, once the VF has told it.
fn settings(pf: &str, name: &str) -> Value {
    let mut vf = shown(pf);
    if vf["address"] == picture(name)["mac"] || vf["address"] == "00:00:00:00:00:00" {
        vf["address"] = json!("its own");
    }
    vf
}

/// VF 1 as its PF shows it.
fn shown(pf: &str) -> Value {
    let links: Value = serde_json::from_str(&ip(&format!("-j -d link show dev {pf}"))).unwrap();
    let vfs = links[0]["vfinfo_list"].as_array().unwrap();
    vfs.iter().find(|vf| vf["vf"] == 1).unwrap().clone()
}

fn config(bdf: &str) -> Value {
    json!({
        "type": "sriov", "deviceID": bdf,
        "vlan": 100, "vlanQoS": 3, "mac": "02:00:00:00:00:A7", "spoofchk": "off", "trust": "on",
        "ipam": {"type": "static", "addresses": [{"address": "192.0.2.99/24"}, {"address": "2001:db8::99/64"}]},
    })
}

#[test]
#[ignore = "kernel: qemu"]
fn a_vf_gets_its_settings_and_loses_all_of_them_again() {
    let machine = Machine::new();
    let (pf, bdf, name) = vf();
    ip(&format!("link set {pf} vf 1 spoofchk on"));
    let (before, link) = (settings(&pf, &name), picture(&name));
    let pod = machine.pod("settings", config(&bdf));
    let result = pod.add();
    assert_eq!(result["interfaces"][0]["mac"], "02:00:00:00:00:a7");
    assert_eq!(result["interfaces"][0]["pciID"], bdf);
    let set = shown(&pf);
    assert_eq!(set["address"], "02:00:00:00:00:a7", "{set}");
    assert_eq!(set["vlan_list"][0]["vlan"], 100, "{set}");
    assert_eq!(set["vlan_list"][0]["qos"], 3, "{set}");
    assert_eq!(set["spoofchk"], false, "{set}");
    assert_eq!(set["trust"], true, "{set}");
    let inside = pod.ip("addr show dev net1");
    for part in [
        "02:00:00:00:00:a7",
        "192.0.2.99/24",
        "2001:db8::99/64",
        "UP",
    ] {
        assert!(inside.contains(part), "{part} is not in {inside}");
    }
    pod.check(&result).ok();
    ip(&format!("link set {pf} vf 1 trust off"));
    let said = pod.check(&result);
    assert!(
        said.code != Some(0) && said.stdout.contains("trust"),
        "{said:?}"
    );
    pod.del();
    assert_eq!(settings(&pf, &name), before);
    assert_eq!(picture(&name), link);
    assert!(
        !machine
            .root()
            .join(format!("var/lib/cni/sriov/pci/{bdf}"))
            .exists()
    );
    pod.del();
    assert_eq!(settings(&pf, &name), before);
    assert_eq!(machine.records(), 0);
}

#[test]
#[ignore = "kernel: qemu"]
fn a_vf_whose_pod_died_falls_back_and_a_late_del_restores_it_whole() {
    let machine = Machine::new();
    let (pf, bdf, name) = vf();
    let (before, link) = (settings(&pf, &name), picture(&name));
    let pod = machine.pod("vf-died", config(&bdf));
    pod.add();
    pod.end();
    until("the VF", || interface(&bdf));
    pod.del();
    assert_eq!(settings(&pf, &name), before);
    assert_eq!(picture(&name), link);
}

#[test]
#[ignore = "kernel: qemu"]
fn the_late_del_of_an_old_pod_leaves_the_settings_of_the_new_one() {
    let machine = Machine::new();
    let (pf, bdf, name) = vf();
    let (before, link) = (settings(&pf, &name), picture(&name));
    let old = machine.pod("vf-old", config(&bdf));
    old.add();
    old.end();
    until("the VF", || interface(&bdf));
    let new = machine.pod("vf-new", config(&bdf));
    new.add();
    let set = shown(&pf);
    old.del();
    assert_eq!(shown(&pf), set);
    assert_eq!(set["vlan_list"][0]["vlan"], 100, "{set}");
    new.del();
    assert_eq!(settings(&pf, &name), before);
    assert_eq!(picture(&name), link);
}

#[test]
#[ignore = "kernel: qemu"]
fn a_setting_that_the_card_does_not_know_is_refused_and_the_vf_is_as_it_was() {
    let machine = Machine::new();
    let (pf, bdf, name) = vf();
    let (before, link) = (settings(&pf, &name), picture(&name));
    let mut wish = config(&bdf);
    wish["link_state"] = json!("enable");
    let pod = machine.pod("vf-refused", wish);
    let said = pod.call("ADD", &[]);
    assert_ne!(said.code, Some(0));
    assert!(said.stdout.contains("link state"), "{said:?}");
    assert_eq!(settings(&pf, &name), before);
    assert_eq!(picture(&name), link);
    assert_eq!(machine.records(), 0);
    pod.del();
}

/// What comes between a kill and the last DEL, in turn: nothing, ADD again, the end of the namespace, GC, and another pod that gets the VF
/// when the first one is gone, before anybody has cleaned up after it.
fn follow(machine: &Machine, bdf: &str, pod: &Pod<'_>, n: usize) {
    match n % 5 {
        1 => {
            let result = pod.add();
            pod.check(&result).ok();
        }
        2 => {
            pod.end();
            until("the VF", || interface(bdf));
        }
        3 => {
            let mut gc = config(bdf);
            gc["cni.dev/valid-attachments"] = json!([]);
            let gc = machine.pod(&format!("{}-gc", pod.name), gc);
            gc.call("GC", &[]).ok();
        }
        4 => {
            pod.end();
            until("the VF", || interface(bdf));
            let other = machine.pod(&format!("{}-other", pod.name), config(bdf));
            let result = other.add();
            pod.del();
            other.check(&result).ok();
            other.del();
        }
        _ => {}
    }
}

#[test]
#[ignore = "kernel: qemu"]
fn a_vf_survives_a_kill_at_every_step() {
    let machine = Machine::new();
    let (pf, bdf, name) = vf();
    let (before, link) = (settings(&pf, &name), picture(&name));
    let counted = machine.pod("vf-count", config(&bdf));
    let points = |verb: &str| {
        let file = machine.root().join(verb);
        let noted = file.display().to_string();
        counted.call(verb, &[("MOOR_CNI_POINTS", &noted)]).ok();
        let text = std::fs::read_to_string(file).unwrap();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let (add, del) = (points("ADD"), points("DEL"));
    for (wanted, points) in [
        ("vf-recorded", &add),
        ("vf-set", &add),
        ("device-moved", &add),
        ("vf-restored", &del),
    ] {
        assert!(points.iter().any(|p| p == wanted), "{wanted}: {points:?}");
    }
    for (verb, points) in [("ADD", add), ("DEL", del)] {
        for (n, point) in points.iter().enumerate() {
            let pod = machine.pod(&format!("vf-{verb}{n}"), config(&bdf));
            if verb == "DEL" {
                pod.add();
            }
            let nth = (n + 1).to_string();
            let said = pod.call(verb, &[("MOOR_CNI_DIE_AT", &nth)]);
            assert_eq!(said.code, None, "{verb} {point}: {said:?}");
            follow(&machine, &bdf, &pod, n);
            pod.del();
            let when = format!("{verb} killed after {point}, then {}", n % 5);
            assert_eq!(settings(&pf, &name), before, "{when}");
            assert_eq!(picture(&name), link, "{when}");
            assert_eq!(machine.records(), 0, "{when}");
        }
        println!("{verb} was killed at {points:?}");
    }
}

#[test]
#[ignore = "kernel: qemu"]
fn a_vf_that_is_taken_away_while_a_pod_has_it_is_forgotten() {
    let machine = Machine::new();
    let (_, bdf, _) = vf();
    let pod = machine.pod("vf-gone", config(&bdf));
    pod.add();
    std::fs::write(format!("/sys/bus/pci/devices/{PF}/sriov_numvfs"), "0").unwrap();
    pod.del();
    assert_eq!(machine.records(), 0);
    assert!(
        !machine
            .root()
            .join(format!("var/lib/cni/sriov/pci/{bdf}"))
            .exists()
    );
}

/// The VF in the hands of vfio-pci, as an administrator puts it there for a program of user space; its own driver has it again afterwards.
struct UserSpace<'a> {
    bdf: &'a str,
}

impl<'a> UserSpace<'a> {
    fn takes(bdf: &'a str) -> Self {
        let taken = Self { bdf };
        taken.rebind("vfio-pci");
        until("vfio-pci to take the VF", || {
            (taken.driver().as_deref() == Some("vfio-pci")).then_some(())
        });
        assert_eq!(interface(bdf), None, "a VF of user space has no interface");
        taken
    }

    fn driver(&self) -> Option<String> {
        let link = format!("/sys/bus/pci/devices/{}/driver", self.bdf);
        let target = std::fs::read_link(link).ok()?;
        Some(target.file_name()?.to_str()?.to_owned())
    }

    /// Nothing at all is a driver's name that leaves the choice to the kernel.
    fn rebind(&self, driver: &str) {
        let bdf = self.bdf;
        let device = format!("/sys/bus/pci/devices/{bdf}");
        std::fs::write(format!("{device}/driver_override"), format!("{driver}\n")).unwrap();
        std::fs::write(format!("{device}/driver/unbind"), bdf).unwrap();
        std::fs::write("/sys/bus/pci/drivers_probe", bdf).unwrap();
    }
}

impl Drop for UserSpace<'_> {
    fn drop(&mut self) {
        self.rebind("");
        until("the VF's interface", || interface(self.bdf));
    }
}

#[test]
#[ignore = "kernel: qemu"]
fn a_vf_of_user_space_gets_its_settings_where_it_is_and_loses_them_again() {
    let machine = Machine::new();
    let (pf, bdf, _) = vf();
    let _held = UserSpace::takes(&bdf);
    let without_mac = |pf: &str| {
        let mut vf = shown(pf);
        vf["address"] = json!(null);
        vf
    };
    let before = without_mac(&pf);
    let pod = machine.pod("vf-dpdk", config(&bdf));
    let result = pod.add();
    assert_eq!(result["interfaces"][0]["mac"], "02:00:00:00:00:a7");
    assert_eq!(result["ips"][0]["address"], "192.0.2.99/24");
    assert_eq!(shown(&pf)["vlan_list"][0]["vlan"], 100);
    assert!(
        !pod.ip("link").contains("net1"),
        "there is no interface to move"
    );
    let other = machine.pod("vf-dpdk-other", config(&bdf));
    let said = other.call("ADD", &[]);
    assert!(said.stdout.contains("\"code\": 11"), "{said:?}");
    pod.check(&result).ok();
    pod.del();
    assert_eq!(without_mac(&pf), before);
    assert_eq!(machine.records(), 0);
}
