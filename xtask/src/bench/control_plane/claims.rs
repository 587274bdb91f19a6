//! Claims by the thousand. Each size has a server of its own, so that none pays for what the one before left behind.
//!
//! The controller runs while the claims are created, as in a cluster; the clock starts when the last one is there.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::super::measure::seconds;
use super::super::{Curve, Report, Row};
use super::program::{Program, wait};
use super::server::{Server, Writes, of, since};

const SIZES: [u64; 4] = [1_000, 2_000, 5_000, 10_000];
const PREFIXES: u64 = 20;
const LIST: &str = "/apis/ipam.resource.nephio.org/v1alpha1/namespaces/bench/ipclaims";
/// Budgets.
const READY: Duration = Duration::from_mins(1);
const WRITES: u64 = 3;
const MEMORY_MIB: u64 = 150;
/// What is written for a claim; the rest is for pools and for the election of a leader.
const OF_A_CLAIM: [&str; 4] = ["ipleases", "ipallocations", "ipclaims", "events"];

struct Run {
    create: Duration,
    ready: Duration,
    writes: Writes,
    counted: u64,
    of_claims: u64,
    of_pools: u64,
    peak_kib: u64,
    cpu: f64,
    resync: u64,
    resync_time: Duration,
}

pub(super) fn measure(report: &mut Report) -> Result<()> {
    let columns = [
        "claims",
        "created in",
        "last Ready after the last was created",
        "from first creation to last Ready",
        "CPU of the controller",
        "writes each",
        "writes for the 20 pools",
        "peak memory",
        "a new controller: time, writes",
    ];
    let mut curve = Curve::new("The controller, claims over 20 prefixes", &columns);
    let mut last = None;
    for count in SIZES {
        eprintln!("bench: {count} claims …");
        let run = run(count)?;
        curve.push([
            count.to_string(),
            seconds(run.create),
            seconds(run.ready),
            seconds(run.create + run.ready),
            format!("{:.1} s", run.cpu),
            each(run.of_claims, count),
            run.of_pools.to_string(),
            format!("{} MiB", run.peak_kib.div_ceil(1024)),
            format!("{}, {}", seconds(run.resync_time), run.resync),
        ]);
        last = Some((count, run));
    }
    let (count, run) = last.context("there is a size")?;
    report.rows.push(Row::new(
        "controller: 10,000 claims over 20 prefixes, all Ready after the last was created",
        "≤ 60 s",
        format!(
            "{:.1} s ({:.1} s from the first creation; {:.0} claims a second)",
            run.ready.as_secs_f64(),
            (run.create + run.ready).as_secs_f64(),
            count_f64(count) / (run.create + run.ready).as_secs_f64(),
        ),
        run.ready <= READY,
    ));
    report.rows.push(Row::new(
        "controller: writes for each of 10,000 claims, counted by the API server",
        "≤ 3",
        format!(
            "{} ({}; {} more for pools; our own count is {})",
            each(run.of_claims, count),
            shown(&run.writes),
            run.of_pools,
            run.counted,
        ),
        run.of_claims <= WRITES * count,
    ));
    let mib = run.peak_kib.div_ceil(1024);
    report.rows.push(Row::new(
        "controller: peak memory with 10,000 claims",
        "≤ 150 MiB",
        format!("{mib} MiB"),
        mib <= MEMORY_MIB,
    ));
    report.rows.push(Row::new(
        "controller: writes of a new one that finds 10,000 claims answered",
        "0",
        format!("{} in {}", run.resync, seconds(run.resync_time)),
        run.resync == 0,
    ));
    report.curves.push(curve);
    Ok(())
}

fn run(count: u64) -> Result<Run> {
    let server = Server::start()?;
    server.apply(&site());
    let program = Program::start(&server)?;
    wait("the pools are Ready", || {
        let pools = server.list(&LIST.replace("ipclaims", "ipprefixes")).ok()?;
        pools.iter().all(is_ready).then_some(())
    })?;
    let before = server.writes();
    let create = server.post_all(LIST, (0..count).map(claim).collect())?;
    let began = Instant::now();
    program.reaches("mooring_writes_total", &["kind=\"IPClaim\""], count)?;
    let ready = began.elapsed();
    all_are_ready(&server, count)?;
    wait("the pools say how full they are", || {
        let pools = server.list(&LIST.replace("ipclaims", "ipprefixes")).ok()?;
        let used = |p: &Value| p["status"]["used"].as_str()?.parse::<u64>().ok();
        let sum: Option<u64> = pools.iter().map(used).sum();
        (sum == Some(count)).then_some(())
    })?;
    let mut writes = since(&before, &server.writes());
    // Ours: what a person does is not what the controller does.
    let created = writes.remove(&("ipclaims".to_owned(), "POST".to_owned()));
    ensure!(created == Some(count), "{created:?} claims were created");
    writes.retain(|(resource, _), _| resource != "leases");
    let of_claims: u64 = OF_A_CLAIM.iter().map(|r| of(&writes, r)).sum();
    let all: u64 = writes.values().sum();
    let (peak_kib, cpu) = (program.peak_kib()?, program.cpu_seconds()?);
    let counted = program.metric("mooring_writes_total", &[]);
    drop(program);
    let before = server.writes();
    let began = Instant::now();
    let again = Program::start(&server)?;
    let passes = ["kind=\"IPClaim\"", "outcome=\"Done\""];
    again.reaches("mooring_reconciles_total", &passes, count)?;
    let resync_time = began.elapsed();
    let mut rewritten = since(&before, &server.writes());
    rewritten.retain(|(resource, _), _| resource != "leases");
    Ok(Run {
        create,
        ready,
        counted,
        of_claims,
        of_pools: all - of_claims,
        writes,
        peak_kib: peak_kib.max(again.peak_kib()?),
        cpu,
        resync: rewritten.values().sum(),
        resync_time,
    })
}

fn site() -> String {
    let mut text = "
apiVersion: v1
kind: Namespace
metadata: {name: bench}
---
apiVersion: v1
kind: Namespace
metadata: {name: mooring-system}
---
apiVersion: ipam.resource.nephio.org/v1alpha1
kind: NetworkInstance
metadata: {name: bench, namespace: bench}
spec: {prefixes: []}
"
    .to_owned();
    for nth in 0..PREFIXES {
        // 509 hosts each for 500 claims each: nearly full at the end.
        let _ = write!(
            text,
            "---
apiVersion: ipam.resource.nephio.org/v1alpha1
kind: IPPrefix
metadata: {{name: p{nth}, namespace: bench, labels: {{pool: p{nth}}}}}
spec: {{prefix: 10.9.{}.0/23, networkInstance: {{name: bench, namespace: bench}}}}
",
            2 * nth
        );
    }
    text
}

fn claim(nth: u64) -> Value {
    json!({
        "apiVersion": "ipam.resource.nephio.org/v1alpha1", "kind": "IPClaim",
        "metadata": { "name": format!("c{nth}"), "namespace": "bench" },
        "spec": {
            "networkInstance": { "name": "bench", "namespace": "bench" },
            "selector": { "matchLabels": { "pool": format!("p{}", nth % PREFIXES) } },
        },
    })
}

fn is_ready(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions.is_some_and(|all| {
        all.iter()
            .any(|c| c["type"] == "Ready" && c["status"] == "True")
    })
}

/// By the server's word, with an address of its own each.
fn all_are_ready(server: &Server, count: u64) -> Result<()> {
    let claims = server.list(LIST)?;
    let addresses: BTreeSet<String> = claims
        .iter()
        .filter(|c| is_ready(c))
        .map(|c| c["status"]["prefix"].to_string())
        .collect();
    ensure!(
        addresses.len() as u64 == count,
        "{} addresses for {count} claims",
        addresses.len()
    );
    Ok(())
}

fn each(writes: u64, count: u64) -> String {
    format!("{:.3}", count_f64(writes) / count_f64(count))
}

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn count_f64(count: u64) -> f64 {
    count as f64
}

fn shown(writes: &Writes) -> String {
    let one =
        |((resource, verb), count): (&(String, String), &u64)| format!("{verb} {resource} {count}");
    writes.iter().map(one).collect::<Vec<_>>().join(", ")
}
