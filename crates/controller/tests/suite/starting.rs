//! The program itself: it becomes ready, it leads, it ends when asked, it starts again after a kill.

use crate::harness::{Cluster, Controller, until};

#[test]
fn the_program_becomes_ready_leads_ends_with_zero_when_asked_and_starts_again_after_a_kill() {
    let Some(cluster) = Cluster::own() else {
        return;
    };
    let mut controller = Controller::start(&cluster, &["ipam"], &[]);
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
    assert_eq!(controller.terminate(), Some(0), "{}", controller.log());
    let left = holder(&cluster.get(lease).unwrap());
    assert!(left.is_null(), "the Lease is given up: {left}");
    controller.restart();
    controller.kill();
    assert!(!controller.is_running());
    controller.restart();
    assert!(controller.is_ready(), "{}", controller.log());
}
