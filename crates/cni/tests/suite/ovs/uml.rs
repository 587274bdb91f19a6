//! The same with the switch in the kernel, as on a node.

use serde_json::json;

use super::switch::Switch;
use super::{assert_clean, config};

#[test]
#[ignore = "kernel: uml"]
fn a_switch_in_the_kernel_carries_a_pods_frames_in_its_vlan() {
    let what = "the kernel's own switch";
    let (stage, switch) = Switch::with(what, "system").expect("Open vSwitch was set up");
    let ping = mooring_testkit::component("iputils-ping", what).expect("ping was set up");
    let ping = ping.join("bin/ping");
    let pods = [("c1", 100), ("c2", 100), ("c3", 200)].map(|(name, vlan)| {
        let pod = stage.pod(name, config()).with("vlan", json!(vlan));
        let result = pod.add();
        pod.check(&result).ok();
        pod
    });
    let reaches = |to: &str| pods[0].netns.run(&ping, &["-c", "2", "-W", "2", to]).code == Some(0);
    let state = || {
        let show = switch.ask(&stage, &["show"]);
        format!("{show}\n{}\n{}", stage.node.ip("-br link"), switch.log())
    };
    assert!(reaches("10.66.0.3"), "{}", state());
    assert!(!reaches("10.66.0.4"));
    for pod in &pods {
        pod.del();
    }
    assert_clean(&stage, &switch, "after DEL");
}
