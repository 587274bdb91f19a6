//! Sixteen clients that take addresses of one pool at once: our book, bare POSTs of the objects that it wrote, whereabouts.
//!
//! Each client of the book is one of its own with its own watch, as agents on sixteen nodes have. The bare POSTs know
//! which names are free and watch nothing, so they are what no allocator can reach.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use mooring_api::{Cidr, Family, ObjectRef, Selector, Span, Time};
use mooring_book::{KubeOptions, KubeStore};
use mooring_ipam::{Claim, Holder, Instance, InstanceKey, Kind, Order, Pools, Prefix, Want};
use mooring_testkit::Whereabouts;
use serde_json::{Value, json};

use super::super::measure::per_second;
use super::super::{Curve, Report, Row};
use super::server::{CLIENTS, Server, of, since};

/// How many each client takes, per round.
const EACH: u32 = 100;
const ROUNDS: u32 = 3;
/// whereabouts takes turns: more would only take longer.
const ITS_EACH: u32 = 4;
const NOW: Time = Time(1_700_000_000);
const LEASES: &str = "/apis/mooring.dev/v1alpha1/ipleases";
/// Budgets.
const OF_BARE: f64 = 0.6;
const OF_WHEREABOUTS: f64 = 50.0;

pub(super) fn measure(report: &mut Report) -> Result<()> {
    eprintln!("bench: 16 clients …");
    let server = Server::start()?;
    let clients = u32::try_from(CLIENTS)?;
    let (mut book, mut bare) = (Duration::ZERO, Duration::ZERO);
    let (mut writes, mut others, mut duplicates) = (0, 0, 0);
    for round in 0..ROUNDS {
        let before = server.writes();
        let (time, taken) = take(&server, round)?;
        let new = since(&before, &server.writes());
        writes += of(&new, "ipleases");
        let rest = new
            .iter()
            .filter(|((r, _), _)| r != "ipleases" && r != "leases");
        others += rest.map(|(_, count)| count).sum::<u64>();
        let distinct: BTreeSet<&String> = taken.iter().collect();
        duplicates += taken.len() - distinct.len();
        book += time;
        let objects = copies(server.list(LEASES)?);
        ensure!(objects.len() == taken.len(), "{} leases", objects.len());
        server.clear(LEASES)?;
        bare += server.post_all(LEASES, objects)?;
        server.clear(LEASES)?;
    }
    let count = clients * EACH * ROUNDS;
    let (ours, best) = (per_second(count, book), per_second(count, bare));
    let theirs = whereabouts(&server)?;
    let mut curve = Curve::new(
        "Addresses of one pool, 16 clients at once",
        &["how", "addresses a second"],
    );
    curve.push([
        "the book, a store and a watch each".to_owned(),
        format!("{ours:.0}"),
    ]);
    curve.push([
        "bare POSTs of the same objects".to_owned(),
        format!("{best:.0}"),
    ]);
    curve.push(["whereabouts 0.8.0".to_owned(), format!("{theirs:.1}")]);
    report.curves.push(curve);
    report.rows.push(Row::new(
        "16 clients take addresses of one pool, beside bare POSTs of the same objects",
        "≥ 0.6 of their rate",
        format!("{:.2} ({ours:.0} and {best:.0} a second)", ours / best),
        ours >= OF_BARE * best,
    ));
    report.rows.push(Row::new(
        "the same beside whereabouts 0.8.0",
        "≥ 50 times its rate",
        format!("{:.0} times ({theirs:.1} a second)", ours / theirs),
        ours >= OF_WHEREABOUTS * theirs,
    ));
    report.rows.push(Row::new(
        "the same: writes for each address, counted by the API server",
        "1",
        format!("{writes} writes for {count} addresses, {others} of other kinds"),
        writes == u64::from(count) && others == 0,
    ));
    report.rows.push(Row::new(
        "the same: addresses given twice",
        "0",
        duplicates.to_string(),
        duplicates == 0,
    ));
    Ok(())
}

/// All take at once. Gives how long that took, and what was taken.
fn take(server: &Server, round: u32) -> Result<(Duration, Vec<String>)> {
    let pools = pools()?;
    let mut stores = Vec::new();
    for _ in 0..CLIENTS {
        let options = KubeOptions::default();
        let store = KubeStore::from_kubeconfig(server.plane.kubeconfig(), options)?;
        store.synced()?;
        stores.push(store);
    }
    let began = Instant::now();
    let taken = std::thread::scope(|scope| {
        let threads: Vec<_> = stores
            .iter()
            .enumerate()
            .map(|(client, store)| {
                let pools = &pools;
                scope.spawn(move || {
                    let mut mine = Vec::new();
                    for nth in 0..EACH {
                        let claim = claim(client, round * EACH + nth);
                        let lease = store.take_now(pools, &claim, None, NOW)?;
                        let lease = lease.map_err(|refusal| anyhow!("{:?}", refusal.finding()))?;
                        mine.push(lease.thing.to_string());
                    }
                    anyhow::Ok(mine)
                })
            })
            .collect();
        let mut all = Vec::new();
        for thread in threads {
            let mine = thread.join().map_err(|_| anyhow!("a client panicked"))?;
            all.extend(mine?);
        }
        anyhow::Ok(all)
    })?;
    Ok((began.elapsed(), taken))
}

/// What was stored, as it was sent.
fn copies(mut leases: Vec<Value>) -> Vec<Value> {
    for lease in &mut leases {
        lease["apiVersion"] = json!("mooring.dev/v1alpha1");
        lease["kind"] = json!("IPLease");
        if let Some(metadata) = lease["metadata"].as_object_mut() {
            for field in [
                "uid",
                "resourceVersion",
                "creationTimestamp",
                "generation",
                "managedFields",
            ] {
                metadata.remove(field);
            }
        }
    }
    leases
}

/// Addresses a second of the built whereabouts: sixteen pods at a time.
fn whereabouts(server: &Server) -> Result<f64> {
    eprintln!("bench: whereabouts …");
    let peer = Whereabouts::beside(&server.plane).context("whereabouts is not built")?;
    let config = json!({
        "cniVersion": "0.3.1", "name": "bench", "type": "macvlan",
        "ipam": { "type": "whereabouts", "range": "10.8.0.0/16", "configuration_path": peer.settings() },
    })
    .to_string();
    let began = Instant::now();
    let taken: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (peer, config) = (&peer, &config);
                scope.spawn(move || {
                    let pods = (0..ITS_EACH).map(|nth| format!("pod-{client}-{nth}"));
                    pods.map(|pod| peer.call("ADD", config, &pod))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| {
                thread
                    .join()
                    .expect("a thread that runs whereabouts does not panic")
            })
            .filter(|said| said.code == Some(0))
            .filter_map(|said| serde_json::from_str::<Value>(&said.stdout).ok())
            .map(|result| result["ips"][0]["address"].to_string())
            .collect()
    });
    let time = began.elapsed();
    let distinct: BTreeSet<&String> = taken.iter().collect();
    ensure!(!taken.is_empty(), "whereabouts gave nothing");
    // Those that ended in an error took their time too.
    Ok(per_second(u32::try_from(distinct.len())?, time))
}

fn instance() -> InstanceKey {
    InstanceKey::new("bench", "bench")
}

/// One network of 4,000 hosts: a third is taken in a round.
fn pools() -> Result<Pools> {
    let origin = ObjectRef::new(
        "ipam.resource.nephio.org/v1alpha1",
        "NetworkInstance",
        "bench",
    );
    let cidr: Cidr = "10.0.0.0/20".parse()?;
    let prefix = Prefix {
        origin: origin.clone(),
        field: "spec.prefix".to_owned(),
        instance: instance(),
        cidr,
        kind: Kind::Network,
        labels: std::collections::BTreeMap::new(),
        gateway: Some(cidr.hosts().first()),
        ranges: Vec::new(),
        exclude: Vec::new(),
        cool_down: Span(0),
        kept: Vec::new(),
        drain: false,
    };
    let known = Instance {
        origin,
        key: instance(),
        isolated: false,
        aggregates: Vec::new(),
    };
    Ok(Pools {
        instances: [(instance(), known)].into(),
        prefixes: vec![prefix],
    })
}

fn claim(client: usize, nth: u32) -> Claim {
    Claim {
        holder: Holder {
            cluster: "edge".to_owned(),
            package: format!("package-{client}"),
            namespace: "default".to_owned(),
            workload: format!("upf-{nth}"),
            interface: "n3".to_owned(),
            family: Family::V4,
            ordinal: 0,
        },
        instance: instance(),
        kind: Kind::Network,
        want: Want::Address,
        selector: Selector::default(),
        fixed: None,
        before: None,
        names: Vec::new(),
        order: Order::LowestFirst,
    }
}
