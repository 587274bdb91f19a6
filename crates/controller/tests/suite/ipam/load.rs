//! What many claims cost: three writes each, and nothing once they stand.

use serde_json::json;

use super::{GROUP, all_ready, assert_one_lease_each, claim, site};
use crate::harness::{Cluster, Controller, until};

/// Enough to see a write per claim too many; the ten thousand of the budget are a benchmark.
const CLAIMS: u16 = 500;

fn writes(controller: &Controller) -> f64 {
    controller
        .metric("mooring_writes_total", &[])
        .unwrap_or(0.0)
}

#[test]
fn five_hundred_claims_cost_three_writes_each_and_a_new_leader_writes_nothing() {
    let Some(cluster) = Cluster::own() else {
        return;
    };
    let ns = "load";
    let pools: Vec<String> = (0..4).map(|n| format!("10.9.{n}.0/24")).collect();
    let names: Vec<String> = (0..4).map(|n| format!("p{n}")).collect();
    let prefixes: Vec<_> = names.iter().zip(&pools).collect();
    let prefixes: Vec<_> = prefixes
        .iter()
        .map(|(n, p)| (n.as_str(), p.as_str(), json!({})))
        .collect();
    site(&cluster, ns, &prefixes);
    let mut controller = Controller::start(&cluster, &["ipam"], &[]);
    let claims = (0..CLAIMS).map(|n| claim(ns, &format!("c{n}"))).collect();
    cluster.create_all(&format!("{GROUP}/namespaces/{ns}/ipclaims"), claims);
    let ready = until("all are Ready", || {
        all_ready(&cluster, ns, usize::from(CLAIMS))
    });
    assert_one_lease_each(&cluster, ns, &ready);
    let written = |kind: &str| controller.metric("mooring_writes_total", &[("kind", kind)]);
    let count = Some(f64::from(CLAIMS));
    assert_eq!(written("IPLease"), count);
    assert_eq!(written("IPAllocation"), count);
    assert_eq!(written("IPClaim"), count);
    let statuses = writes(&controller) - 3.0 * f64::from(CLAIMS);
    assert!(
        statuses < 60.0,
        "pools wrote {statuses} times for {CLAIMS} claims"
    );
    let full = "the pools count";
    until(full, || {
        let pools = cluster.list(&format!("{GROUP}/namespaces/{ns}/ipprefixes"));
        let used = |p: &serde_json::Value| {
            p["status"]["used"]
                .as_str()
                .and_then(|n| n.parse::<u16>().ok())
        };
        let sum: Option<u16> = pools.iter().map(used).sum();
        (sum == Some(CLAIMS))
            .then_some(())
            .ok_or(format!("{sum:?}"))
    });
    controller.kill();
    controller.restart();
    until("the new leader looked at every claim", || {
        let passes = controller.metric(
            "mooring_reconciles_total",
            &[("kind", "IPClaim"), ("outcome", "Done")],
        );
        (passes >= count).then_some(()).ok_or(format!("{passes:?}"))
    });
    assert!(writes(&controller) < 1.0, "{}", controller.metrics());
}
