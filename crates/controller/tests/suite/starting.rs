//! The program itself: it becomes ready, it leads, it tells a collector, it ends when asked, it starts again after a kill.

use serde_json::json;

use crate::harness::{Cluster, Collector, Controller, await_condition, until};
use crate::ipam::{claim, claim_path, site};

#[test]
fn the_program_becomes_ready_leads_ends_with_zero_when_asked_and_starts_again_after_a_kill() {
    let Some(cluster) = Cluster::own() else {
        return;
    };
    let collector = Collector::start();
    let args = ["--otlp-endpoint", &collector.endpoint()];
    let mut controller = Controller::start(&cluster, &["ipam"], &args);
    until("the replica leads", || {
        let leads = controller.metric("mooring_leader", &[("role", "ipam")]);
        (leads == Some(1.0))
            .then_some(())
            .ok_or(format!("{leads:?}"))
    });
    let lease =
        "/apis/coordination.k8s.io/v1/namespaces/mooring-system/leases/moor-controller-ipam";
    let holder = |lease: &serde_json::Value| lease["spec"]["holderIdentity"].clone();
    assert!(holder(&cluster.get(lease).unwrap()).is_string());
    site(&cluster, "spans", &[("n3", "10.9.0.0/24", json!({}))]);
    let path = claim_path("spans", "c1");
    cluster.create(path.trim_end_matches("/c1"), &claim("spans", "c1"));
    await_condition(&cluster, &path, "Ready", ("True", "Ready"));
    assert_eq!(controller.terminate(), Some(0), "{}", controller.log());
    // What was not sent before is sent at the end, so that nothing is waited for here.
    for part in ["pass", "moor-controller", "IPClaim/spans/c1", "Done"] {
        assert!(collector.has(part), "no {part}\n{}", controller.log());
    }
    let left = holder(&cluster.get(lease).unwrap());
    assert!(left.is_null(), "the Lease is given up: {left}");
    controller.restart();
    controller.kill();
    assert!(!controller.is_running());
    controller.restart();
    assert!(controller.is_ready(), "{}", controller.log());
}
