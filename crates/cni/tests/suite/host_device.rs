//! host-device: a device of the node goes to a pod and comes back exactly as it was.

pub(crate) mod bed;
mod crash;
pub(crate) mod qemu;
mod switch;

use serde_json::{Value, json};

use crate::conformance::bed::Shown as _;
use crate::stage::Pod;
use bed::{BDF, Bed, addresses, pool, read};

#[test]
fn a_device_goes_to_the_pod_and_comes_back_exactly_as_it_was() {
    let Some(bed) = Bed::new("host-device there and back") else {
        return;
    };
    let before = bed.picture("dev0");
    let pod = bed.pod("c1");
    let result = pod.add();
    assert_eq!(bed.picture("dev0"), json!(null));
    assert_eq!(result["interfaces"][0]["name"], "net1");
    assert_eq!(result["interfaces"][0]["mac"], "02:00:00:00:00:10");
    assert_eq!(result["interfaces"][0]["sandbox"], json!(pod.netns.path()));
    assert_eq!(result["ips"][0]["address"], "192.0.2.99/24");
    assert_eq!(result["ips"][0]["interface"], 0);
    let link = pod.link().expect("in the pod");
    assert_eq!(link["ifalias"], "dev0");
    assert_eq!(link["mtu"], 1400);
    assert!(link["flags"].as_array().unwrap().contains(&json!("UP")));
    assert_eq!(pod.addresses(), ["192.0.2.99/24"]);
    let routes = pod.netns.ip("route show");
    assert!(
        routes.contains("198.18.0.0/15 via 192.0.2.1 dev net1"),
        "{routes}"
    );
    pod.check(&result).ok();
    assert_eq!(bed.records().len(), 1);
    pod.del();
    assert_eq!(bed.picture("dev0"), before);
    assert!(bed.records().is_empty());
    assert!(pod.link().is_none());
    pod.del();
    assert_eq!(bed.picture("dev0"), before);
}

#[test]
fn without_ipam_the_device_is_up_and_bare() {
    let Some(bed) = Bed::new("host-device without ipam") else {
        return;
    };
    let before = bed.picture("dev0");
    let pod = bed.stage.pod(
        "c1",
        json!({"type": "host-device", "device": "dev0", "cniVersion": "0.3.1"}),
    );
    let result = pod.add();
    assert_eq!(result["interfaces"][0]["name"], "net1");
    assert!(pod.addresses().is_empty());
    let link = pod.link().expect("in the pod");
    assert!(link["flags"].as_array().unwrap().contains(&json!("UP")));
    pod.del_blind();
    assert_eq!(bed.picture("dev0"), before);
}

#[test]
fn a_repeated_add_of_the_same_owner_gives_the_same_answer_and_one_address() {
    let Some(bed) = Bed::new("host-device repeated ADD") else {
        return;
    };
    let before = bed.picture("dev0");
    let pod = bed.pod("c1").with("ipam", pool());
    let first = pod.add();
    assert_eq!(pod.add(), first);
    assert_eq!(bed.stage.held(), 1);
    assert_eq!(pod.addresses().len(), 1);
    pod.del();
    assert_eq!(bed.stage.held(), 0);
    assert_eq!(bed.picture("dev0"), before);
}

#[test]
fn a_device_of_a_living_pod_is_refused_to_another_with_try_again() {
    let Some(bed) = Bed::new("host-device of a living pod") else {
        return;
    };
    let before = bed.picture("dev0");
    let first = bed.pod("c1");
    let second = bed.pod("c2");
    first.add();
    let (code, text) = second.refuse("ADD");
    assert_eq!(code, 11, "{text}");
    assert!(text.contains("c1"), "{text}");
    second.del();
    assert_eq!(
        first.addresses(),
        ["192.0.2.99/24"],
        "a DEL of the refused pod touches nothing"
    );
    first.del();
    second.add();
    second.del();
    assert_eq!(bed.picture("dev0"), before);
}

#[test]
fn what_a_dead_owner_left_is_restored_before_the_next_one_gets_it() {
    let Some(bed) = Bed::new("host-device of a dead owner") else {
        return;
    };
    let before = bed.picture("dev0");
    let dead = bed.pod("c1");
    dead.add();
    bed.fall_back(&dead, "net1");
    assert_ne!(bed.picture("net1"), before);
    let next = bed.pod("c2");
    next.add();
    let record = read(&bed.records()[0]);
    assert_eq!(record["owner"]["holder"], "c2");
    assert_eq!(record["device"]["name"], "dev0");
    dead.del_blind();
    assert_eq!(
        next.addresses(),
        ["192.0.2.99/24"],
        "a late DEL of the dead pod touches nothing"
    );
    next.del();
    assert_eq!(bed.picture("dev0"), before);
}

#[test]
fn a_device_that_fell_back_under_the_pods_name_or_a_kernels_name_is_found_and_restored() {
    let Some(bed) = Bed::new("host-device fallen back") else {
        return;
    };
    let before = bed.picture("dev0");
    for (container, name) in [("c1", "net1"), ("c2", "dev7")] {
        let pod = bed.pod(container);
        pod.add();
        bed.fall_back(&pod, name);
        pod.del();
        assert_eq!(bed.picture("dev0"), before, "{name}");
        assert!(bed.records().is_empty());
        assert!(bed.node().link(name).is_none());
    }
}

#[test]
fn a_device_that_was_renamed_inside_the_pod_comes_back() {
    let Some(bed) = Bed::new("host-device renamed inside") else {
        return;
    };
    let before = bed.picture("dev0");
    let pod = bed.pod("c1");
    pod.add();
    pod.netns.ip("link set net1 down");
    pod.netns
        .ip("link set net1 name weird0 address 02:00:00:00:00:77");
    pod.netns.ip("link set weird0 up");
    pod.del();
    assert_eq!(bed.picture("dev0"), before);
}

#[test]
fn the_name_on_the_host_may_be_one_that_the_pod_has_too() {
    let Some(bed) = Bed::new("host-device with a clashing name") else {
        return;
    };
    bed.device("eth0", "02:00:00:00:00:20");
    let before = bed.picture("eth0");
    let pod = bed.pod("c1").with("device", json!("eth0"));
    pod.netns.ip("link add eth0 type veth peer name other0");
    pod.add();
    assert_eq!(pod.link().expect("moved")["address"], "02:00:00:00:00:20");
    pod.del();
    assert_eq!(bed.picture("eth0"), before);
    assert!(pod.netns.link("eth0").is_some());
}

#[test]
fn a_pod_keeps_its_own_interface_that_has_the_name_of_a_device_which_it_never_got() {
    let Some(bed) = Bed::new("host-device that the node lacks") else {
        return;
    };
    let absent = bed.pod("c1").with("device", json!("eth0"));
    absent.netns.ip("link add eth0 type veth peer name other0");
    absent.refuse("ADD");
    absent.del();
    assert!(absent.netns.link("eth0").is_some());
    assert!(bed.node().link("eth0").is_none());

    // Another pod has it.
    bed.device("eth0", "02:00:00:00:00:20");
    let first = bed.pod("c2").with("device", json!("eth0"));
    first.add();
    let (code, text) = absent.refuse("ADD");
    assert_eq!(code, 11, "{text}");
    absent.del();
    assert!(absent.netns.link("eth0").is_some());
    assert!(bed.node().link("eth0").is_none());
    first.del();
    assert!(bed.node().link("eth0").is_some());
}

#[test]
fn a_port_goes_back_to_its_bridge_also_to_a_new_one_and_home_without_one_that_is_gone() {
    let Some(bed) = Bed::new("host-device that is a port") else {
        return;
    };
    let node = bed.node();
    let bridge = |words: &str| node.ip(&format!("link {words} br0 type bridge"));
    bridge("add");
    node.ip("link set dev0 master br0");
    let before = bed.picture("dev0");
    let master = || node.link("dev0").expect("it is home")["master"].clone();
    for (container, change) in [("c1", &[][..]), ("c2", &["del", "add"]), ("c3", &["del"])] {
        let pod = bed.pod(container);
        pod.add();
        for words in change {
            bridge(words);
        }
        pod.del();
        assert!(bed.records().is_empty(), "{container}");
        assert_eq!(bed.picture("dev0"), before, "{container}");
        let there = change != ["del"];
        assert_eq!(master(), if there { json!("br0") } else { json!(null) });
    }
}

#[test]
fn a_name_that_is_taken_in_the_pod_is_refused_and_what_has_it_stays_there() {
    let Some(bed) = Bed::new("host-device with a taken name") else {
        return;
    };
    let before = bed.picture("dev0");
    let pod = bed.pod("c1");
    pod.netns.ip("link add net1 type veth peer name other0");
    let (_, text) = pod.refuse("ADD");
    assert!(text.contains("net1"), "{text}");
    assert_eq!(bed.picture("dev0"), before);
    assert!(bed.records().is_empty());
    pod.del();
    assert!(pod.link().is_some());
    assert_eq!(bed.picture("dev0"), before);
}

#[test]
fn an_add_that_gets_no_address_leaves_the_device_as_it_was() {
    let Some(bed) = Bed::new("host-device without an address") else {
        return;
    };
    let before = bed.picture("dev0");
    let ipam = json!({"type": "host-local", "ranges": [[{"subnet": "192.0.2.0/30", "rangeStart": "192.0.2.2", "rangeEnd": "192.0.2.2"}]]});
    bed.device("dev1", "02:00:00:00:00:21");
    let holder = bed
        .pod("c1")
        .with("device", json!("dev1"))
        .with("ipam", ipam.clone());
    holder.add();
    let pod = bed.pod("c2").with("ipam", ipam);
    let (code, text) = pod.refuse("ADD");
    assert_eq!(code, 11, "{text}");
    assert_eq!(bed.picture("dev0"), before);
    assert_eq!(bed.records().len(), 1);
    let missing = bed.pod("c3").with("ipam", json!({"type": "not-installed"}));
    missing.refuse("ADD");
    assert_eq!(bed.picture("dev0"), before);
}

#[test]
fn a_device_is_found_by_mac_pci_address_and_injected_ids() {
    let Some(bed) = Bed::new("host-device selectors") else {
        return;
    };
    let before = bed.picture("dev0");
    bed.sysfs(BDF, "dev0");
    for (n, keys) in [
        json!({"hwaddr": "02:00:00:00:00:10"}),
        json!({"pciBusID": BDF}),
        json!({"deviceID": BDF}),
        json!({"runtimeConfig": {"deviceID": BDF}, "device": "nothing"}),
        json!({"kernelpath": format!("/sys/devices/pci0000:00/{BDF}")}),
    ]
    .into_iter()
    .enumerate()
    {
        let mut config = json!({"type": "host-device", "ipam": addresses()});
        for (key, value) in keys.as_object().unwrap() {
            config[key] = value.clone();
        }
        let pod = bed.stage.pod(&format!("c{n}"), config);
        let result = pod.add();
        assert_eq!(pod.addresses(), ["192.0.2.99/24"], "{keys}");
        if keys.get("pciBusID").is_some() {
            assert_eq!(result["interfaces"][0]["pciID"], BDF);
        }
        pod.del();
        assert_eq!(bed.picture("dev0"), before, "{keys}");
    }
}

#[test]
fn a_device_of_user_space_stays_where_it_is_and_the_pod_gets_its_addresses_told() {
    let Some(bed) = Bed::new("host-device DPDK") else {
        return;
    };
    bed.sysfs(BDF, "dev0");
    bed.bind(BDF, "vfio-pci");
    let before = bed.picture("dev0");
    let config = json!({"type": "host-device", "pciBusID": BDF, "ipam": pool()});
    let pod = bed.stage.pod("c1", config);
    let result = pod.add();
    assert_eq!(result["ips"][0]["address"], "192.0.2.50/24");
    assert_eq!(bed.picture("dev0"), before);
    assert!(pod.link().is_none());
    pod.check(&result).ok();
    assert_eq!(bed.stage.held(), 1);
    pod.del();
    assert_eq!(bed.stage.held(), 0);
    assert_eq!(bed.picture("dev0"), before);
}

#[test]
fn a_virtual_device_that_ended_with_its_pod_is_forgotten_and_its_address_released() {
    let Some(bed) = Bed::new("host-device ended with its pod") else {
        return;
    };
    let pod = bed.pod("c1").with("ipam", pool());
    pod.add();
    pod.end();
    assert_eq!(bed.stage.held(), 1);
    pod.del();
    assert_eq!(bed.stage.held(), 0);
    assert!(bed.records().is_empty());
    pod.del();
    // The kernel takes the other end away in the background.
    bed.device("dev9", "02:00:00:00:00:33");
    bed.node().ip("link set dev9 name dev0");
    let next = bed.pod("c2");
    next.add();
    next.del();
}

#[test]
fn after_a_reboot_a_late_del_changes_nothing_on_the_host() {
    let Some(bed) = Bed::new("host-device after a reboot") else {
        return;
    };
    let pod = bed.pod("c1");
    pod.add();
    bed.reboot();
    bed.fall_back(&pod, "dev0");
    bed.node().ip("addr add 198.51.100.200/24 dev dev0");
    let fresh = bed.picture("dev0");
    pod.del();
    assert_eq!(bed.picture("dev0"), fresh);
    assert!(bed.records().is_empty());
    let next = bed.pod("c2");
    next.add();
    next.del();
    assert_eq!(bed.picture("dev0"), fresh);
}

#[test]
fn gc_brings_home_what_no_valid_attachment_of_its_network_has() {
    let Some(bed) = Bed::new("host-device GC") else {
        return;
    };
    bed.device("dev1", "02:00:00:00:00:21");
    bed.device("dev2", "02:00:00:00:00:22");
    let before = bed.picture("dev0");
    let lost = bed.pod("c1").with("ipam", pool());
    let valid = bed
        .pod("c2")
        .with("device", json!("dev1"))
        .with("ipam", pool());
    let other = bed
        .pod("c3")
        .with("device", json!("dev2"))
        .with("name", json!("other"));
    for pod in [&lost, &valid, &other] {
        pod.add();
    }
    bed.fall_back(&lost, "net1");
    valid.gc(&["c2"]);
    assert_eq!(bed.picture("dev0"), before);
    assert!(valid.link().is_some());
    assert!(
        other.link().is_some(),
        "another network's device is not ours to clean up"
    );
    assert_eq!(bed.stage.held(), 1);
    assert_eq!(bed.records().len(), 2);
}

#[test]
fn check_tells_what_is_missing() {
    let Some(bed) = Bed::new("host-device CHECK") else {
        return;
    };
    let complaint = |pod: &Pod, result: &Value| {
        let said = pod.check(result);
        assert_ne!(said.code, Some(0), "{said:?}");
        said.stdout
    };
    let pod = bed.pod("c1");
    let result = pod.add();
    pod.netns.ip("addr del 192.0.2.99/24 dev net1");
    let said = complaint(&pod, &result);
    assert!(said.contains("192.0.2.99/24"), "{said}");
    pod.netns.ip("addr add 192.0.2.99/24 dev net1");
    pod.netns
        .ip("route add 198.18.0.0/15 via 192.0.2.1 dev net1");
    pod.check(&result).ok();
    pod.netns.ip("link set net1 address 02:00:00:00:00:55");
    let said = complaint(&pod, &result);
    assert!(said.contains("MAC"), "{said}");
    let node = bed.node().path();
    pod.netns.ip(&format!(
        "link set net1 netns {}",
        node.rsplit('/').next().unwrap()
    ));
    let said = complaint(&pod, &result);
    assert!(said.contains("dev0"), "{said}");
}

#[test]
fn bad_configurations_are_refused_by_the_key_and_change_nothing() {
    let Some(bed) = Bed::new("host-device bad keys") else {
        return;
    };
    let before = bed.picture("dev0");
    let bad = [
        (json!({"type": "host-device"}), 7, "device"),
        (
            json!({"type": "host-device", "hwaddr": "nonsense"}),
            7,
            "hwaddr",
        ),
        (
            json!({"type": "host-device", "pciBusID": "../../../etc"}),
            7,
            "pciBusID",
        ),
        (
            json!({"type": "host-device", "kernelpath": "/etc"}),
            7,
            "kernelpath",
        ),
        (json!({"type": "host-device", "device": 7}), 7, "device"),
        (
            json!({"type": "host-device", "device": "nothing0"}),
            999,
            "nothing0",
        ),
    ];
    for (n, (config, code, named)) in bad.into_iter().enumerate() {
        let pod = bed.stage.pod(&format!("c{n}"), config);
        let (got, text) = pod.refuse("ADD");
        assert_eq!(got, code, "{text}");
        assert!(text.contains(named), "{text}");
        pod.del();
    }
    assert_eq!(bed.picture("dev0"), before);
    assert!(bed.records().is_empty());
}

#[test]
fn a_device_at_home_keeps_its_name_when_a_late_del_comes_for_a_pod_that_called_it_the_same() {
    let Some(bed) = Bed::new("host-device with the pod's name") else {
        return;
    };
    bed.device("net1", "02:00:00:00:00:61");
    bed.node().ip("link set net1 alias storage up");
    bed.sysfs(BDF, "net1");
    let before = bed.picture("net1");
    for (n, keys) in [json!({"device": "net1"}), json!({"pciBusID": BDF})]
        .into_iter()
        .enumerate()
    {
        let mut config = json!({"type": "host-device", "ipam": addresses()});
        for (key, value) in keys.as_object().unwrap() {
            config[key] = value.clone();
        }
        let pod = bed.stage.pod(&format!("c{n}"), config);
        pod.add();
        pod.del();
        pod.del();
        pod.del_blind();
        assert_eq!(bed.picture("net1"), before, "{keys}");
        assert!(bed.node().link("storage").is_none());
    }
}

#[test]
fn status_tells_a_missing_selector_and_an_absent_device_and_takes_none_for_absent_that_a_pod_has() {
    let Some(bed) = Bed::new("host-device STATUS") else {
        return;
    };
    let network = |plugin: &str, keys: Value| {
        let mut config = json!({"type": plugin, "cniVersion": "1.1.0"});
        for (key, value) in keys.as_object().unwrap() {
            config[key] = value.clone();
        }
        bed.stage.pod_in(bed.stage.node.clone(), "c0", config)
    };
    let refused = |plugin: &str, keys: Value, code: u64, word: &str| {
        let (seen, text) = network(plugin, keys).refuse("STATUS");
        assert_eq!(seen, code, "{plugin}: {text}");
        assert!(text.contains(word), "{text}");
    };
    for plugin in ["host-device", "amd-host-device"] {
        let good = |keys: Value| network(plugin, keys).call("STATUS").ok().to_owned();
        good(json!({"device": "dev0"}));
        good(json!({"hwaddr": "02:00:00:00:00:10"}));
        refused(plugin, json!({"device": "nonexist"}), 50, "nonexist");
        refused(
            plugin,
            json!({"hwaddr": "02:00:00:00:99:99"}),
            50,
            "02:00:00:00:99:99",
        );
        refused(
            plugin,
            json!({"pciBusID": "0000:ff:1f.7"}),
            50,
            "0000:ff:1f.7",
        );
        refused(
            plugin,
            json!({"kernelpath": "/sys/devices/none"}),
            50,
            "/sys/devices/none",
        );
        refused(plugin, json!({"hwaddr": "nonsense"}), 7, "hwaddr");
        refused(plugin, json!({"device": 7}), 7, "device");
        // What a device plugin gives is not there before there is a pod.
        good(json!({"capabilities": {"deviceID": true}}));
        bed.sysfs(BDF, "dev0");
        good(json!({"runtimeConfig": {"deviceID": BDF}}));
    }
    refused("host-device", json!({}), 7, "device");
    network("amd-host-device", json!({})).call("STATUS").ok();

    let pod = bed.pod("c1");
    pod.add();
    let away = network("host-device", json!({"device": "dev0"}));
    away.call("STATUS").ok();
    network("host-device", json!({"hwaddr": "02:00:00:00:00:10"}))
        .call("STATUS")
        .ok();
    // A virtual device ends with its pod.
    pod.end();
    let mut seen = away.call("STATUS");
    for _ in 0..500 {
        if seen.code != Some(0) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        seen = away.call("STATUS");
    }
    let error: Value =
        serde_json::from_str(&seen.stdout).unwrap_or_else(|e| panic!("{e}: {seen:?}"));
    assert_eq!(error["code"], 50, "{error}");
}
