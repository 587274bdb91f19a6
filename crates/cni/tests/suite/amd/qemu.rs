//! amd-host-device with hardware: the addresses survive the death of the pod.

use serde_json::json;

use crate::host_device::qemu::{CARD, Machine, interface, ip, picture, until};

#[test]
#[ignore = "kernel: qemu"]
fn a_rail_whose_pod_died_has_its_name_addresses_and_routes_again_after_del() {
    let machine = Machine::new();
    let name = interface(CARD).expect("the card has an interface");
    ip(&format!("link set {name} up"));
    ip(&format!("addr replace 10.0.0.0/31 dev {name}"));
    ip(&format!(
        "route replace 10.1.0.0/16 via 10.0.0.1 dev {name}"
    ));
    let before = picture(&name);
    let config = json!({"type": "amd-host-device", "cniVersion": "0.3.1", "deviceID": CARD});
    for (n, dies) in [false, true, true].into_iter().enumerate() {
        let pod = machine.pod(&format!("rail{n}"), config.clone());
        let result = pod.add();
        let ips = result["ips"].as_array().unwrap();
        let rail = ips
            .iter()
            .find(|ip| ip["address"] == "10.0.0.0/31")
            .unwrap();
        assert_eq!(rail["gateway"], "10.0.0.1");
        assert!(pod.ip("addr show dev net1").contains("10.0.0.0/31"));
        assert!(pod.ip("route show").contains("10.1.0.0/16 via 10.0.0.1"));
        if dies {
            pod.end();
            until("the card", || interface(CARD));
        }
        pod.del();
        assert_eq!(picture(&name), before);
        assert_eq!(machine.records(), 0);
    }
}
