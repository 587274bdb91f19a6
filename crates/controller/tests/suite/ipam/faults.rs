//! What happens when things break: no address twice, none lost, everything Ready at the end.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::{GROUP, all_ready, assert_one_lease_each, claim, claim_path, site};
use crate::harness::{Cluster, Controller, await_condition, until, until_within};

const READY: (&str, &str) = ("True", "Ready");
const LONG: Duration = Duration::from_mins(2);

fn claims_of(ns: &str) -> String {
    format!("{GROUP}/namespaces/{ns}/ipclaims")
}

#[test]
fn a_controller_killed_in_the_middle_of_two_hundred_claims_leaves_no_duplicate_and_no_leak() {
    let Some(cluster) = Cluster::own() else {
        return;
    };
    let ns = "killed";
    site(&cluster, ns, &[("n3", "10.9.0.0/24", json!({}))]);
    let mut controller = Controller::start(&cluster, &["ipam"], &["--no-leader-election"]);
    let mut kills = 0;
    for round in 0..4 {
        let claims = (0..50)
            .map(|n| claim(ns, &format!("c{round}-{n}")))
            .collect();
        cluster.create_all(&claims_of(ns), claims);
        // In the middle: some leases are there, not all.
        let (from, to) = (round * 50, (round + 1) * 50);
        let seen = until("some leases of the round are there", || {
            let count = super::leases(&cluster, ns).len();
            (count > from).then_some(count).ok_or(count.to_string())
        });
        kills += usize::from(seen < to);
        controller.kill();
        controller.restart();
    }
    assert!(kills > 0, "no kill came in the middle");
    let ready = until_within(LONG, "all are Ready", || all_ready(&cluster, ns, 200));
    assert_one_lease_each(&cluster, ns, &ready);
    for n in 0..50 {
        cluster.delete(&claim_path(ns, &format!("c2-{n}")));
    }
    controller.kill();
    // Made again while nobody looks: the same name, another object.
    cluster.delete(&claim_path(ns, "c3-7"));
    let again = cluster.create(&claims_of(ns), &claim(ns, "c3-7"));
    controller.restart();
    until("what was deleted goes back", || {
        let count = super::leases(&cluster, ns).len();
        (count == 150).then_some(()).ok_or(count.to_string())
    });
    until(
        "the lease of the claim that was made again names it",
        || {
            let leases = super::leases(&cluster, ns);
            let of = leases
                .iter()
                .find(|l| l["spec"]["claimRef"]["name"] == "c3-7");
            let named =
                of.is_some_and(|l| l["spec"]["claimRef"]["uid"] == again["metadata"]["uid"]);
            named.then_some(()).ok_or(format!("{of:?}"))
        },
    );
    let ready = until("all are Ready", || all_ready(&cluster, ns, 150));
    assert_one_lease_each(&cluster, ns, &ready);
}

/// Every claim and lease, with the number of its last write.
fn versions(cluster: &Cluster, ns: &str) -> BTreeMap<String, String> {
    let claims = cluster.list(&claims_of(ns));
    let leases = super::leases(cluster, ns);
    let version = |o: &Value| {
        let of = |field: &str| o["metadata"][field].as_str().unwrap_or_default().to_owned();
        (of("uid"), of("resourceVersion"))
    };
    claims.iter().chain(&leases).map(version).collect()
}

#[test]
fn a_leader_that_stood_still_past_its_lease_writes_nothing_when_it_goes_on() {
    let Some(cluster) = Cluster::own() else {
        return;
    };
    let ns = "frozen";
    site(&cluster, ns, &[("n3", "10.9.0.0/24", json!({}))]);
    let args = ["--lease-duration", "3s"];
    let mut replicas = [
        Controller::start(&cluster, &["ipam"], &args),
        Controller::start(&cluster, &["ipam"], &args),
    ];
    let leads =
        |replica: &Controller| replica.metric("mooring_leader", &[("role", "ipam")]) == Some(1.0);
    until("one leads", || {
        let leading = replicas.iter().filter(|r| leads(r)).count();
        (leading == 1).then_some(()).ok_or(leading.to_string())
    });
    if leads(&replicas[1]) {
        replicas.swap(0, 1);
    }
    let [first, second] = replicas;
    let made = |from: usize, to: usize| {
        let claims = (from..to).map(|n| claim(ns, &format!("c{n}"))).collect();
        cluster.create_all(&claims_of(ns), claims);
    };
    made(0, 40);
    // Frozen with claims on its hands.
    first.freeze();
    until_within(LONG, "the other takes over", || {
        leads(&second).then_some(()).ok_or_else(|| second.log())
    });
    made(40, 80);
    until_within(LONG, "all are Ready", || all_ready(&cluster, ns, 80));
    let before = versions(&cluster, ns);
    // Metrics of a frozen process cannot be read; its own count is read when it goes on.
    first.thaw();
    until("it sees that it does not lead", || {
        (!leads(&first)).then_some(()).ok_or_else(|| first.log())
    });
    assert_eq!(before, versions(&cluster, ns), "a late write came through");
    let late = first.metric("mooring_writes_total", &[]).map(f64::to_bits);
    made(80, 120);
    let ready = until_within(LONG, "all are Ready", || all_ready(&cluster, ns, 120));
    assert_one_lease_each(&cluster, ns, &ready);
    let now = first.metric("mooring_writes_total", &[]).map(f64::to_bits);
    assert_eq!(late, now, "a follower wrote");
    let passes = second.metric("mooring_reconciles_total", &[("kind", "IPClaim")]);
    assert!(passes >= Some(80.0), "the second did the work: {passes:?}");
}

#[test]
fn an_api_server_that_goes_and_comes_back_costs_nothing() {
    let Some(cluster) = Cluster::own() else {
        return;
    };
    let ns = "restarted";
    site(&cluster, ns, &[("n3", "10.9.0.0/24", json!({}))]);
    let controller = Controller::start(&cluster, &["ipam"], &[]);
    // A server that has just come back may still refuse a request or two: who makes claims then asks again.
    let made = |from: usize, to: usize| {
        for n in from..to {
            until("a claim is made", || {
                let made =
                    cluster.request("POST", &claims_of(ns), Some(&claim(ns, &format!("c{n}"))));
                match made {
                    Ok(_) => Ok(()),
                    Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
                    Err(error) => Err(error.to_string()),
                }
            });
        }
    };
    made(0, 50);
    await_condition(&cluster, &claim_path(ns, "c0"), "Ready", READY);
    cluster.plane().stop_api_server();
    cluster.plane().start_api_server();
    made(50, 100);
    cluster.plane().restart_etcd();
    made(100, 150);
    let ready = until_within(LONG, "all are Ready", || all_ready(&cluster, ns, 150));
    assert_one_lease_each(&cluster, ns, &ready);
    assert!(controller.is_running(), "{}", controller.log());
}

#[test]
fn a_claim_that_is_made_again_at_once_is_never_moved_from_what_it_was_told() {
    let Some(cluster) = Cluster::own() else {
        return;
    };
    let ns = "again";
    site(&cluster, ns, &[("n3", "10.9.0.0/24", json!({}))]);
    let _controller = Controller::start(&cluster, &["ipam"], &["--no-leader-election"]);
    let mut told = BTreeMap::new();
    for round in 0..40 {
        // Some names go and come back at once, in another order each time, while the sweep gives back what they had.
        for n in (0..12).map(|n| (n * 5 + round) % 12) {
            let name = format!("c{n}");
            if (n + round) % 3 != 0 {
                cluster.delete(&claim_path(ns, &name));
                cluster.create(&claims_of(ns), &claim(ns, &name));
            } else if round == 0 {
                cluster.create(&claims_of(ns), &claim(ns, &name));
            }
        }
        for seen in cluster.list(&claims_of(ns)) {
            let (uid, prefix) = (&seen["metadata"]["uid"], &seen["status"]["prefix"]);
            if let (Some(uid), Some(prefix)) = (uid.as_str(), prefix.as_str()) {
                let first = told.entry(uid.to_owned()).or_insert(prefix.to_owned());
                assert_eq!(first, prefix, "{} was moved", seen["metadata"]["name"]);
            }
        }
    }
    let ready = until_within(LONG, "all are Ready", || all_ready(&cluster, ns, 12));
    for seen in &ready {
        let uid = seen["metadata"]["uid"].as_str().unwrap();
        let first = told.get(uid).map(String::as_str);
        let now = seen["status"]["prefix"].as_str();
        assert!(first.is_none() || first == now, "{first:?} became {now:?}");
    }
    until("what nobody claims goes back", || {
        let count = super::leases(&cluster, ns).len();
        (count == 12).then_some(()).ok_or(count.to_string())
    });
    assert_one_lease_each(&cluster, ns, &ready);
}
