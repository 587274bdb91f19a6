//! Compiling intents: so many attachments on so many nodes of twenty groups.
//!
//! ```text
//!  twenty Destinations in twenty VRFs; every attachment is of one group and one VRF; every node of one group
//! ```
//!
//! One change is one of three: another MTU for a segment, a prefix more on a Destination, a node more. The curve shows the dearest.
//!
//! Easy to get wrong: the budget is for deciding. Reading objects and taking addresses stand beside it, since the hands do
//! them once and keep what they read.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use mooring_intent::{
    Answers, Compiled, Inputs, Prior, admit, allocate, compile, recompile, wants,
};
use serde_json::Value;

use super::measure::seconds;
use super::{Curve, Report, Row, peak_kib};

const RUNS: usize = 5;
const GROUPS: usize = 20;
const MADE: &str = "'2026-01-01T00:00:00Z'";
const CHANGES: [&str; 3] = [
    "one change, another MTU",
    "one change, a prefix more",
    "one change, a node more",
];
/// 1,000 nodes in 20 groups, 1,000 attachments, 50 per node: all of it, and one change.
const BUDGET: (usize, Duration, Duration) =
    (1_000, Duration::from_secs(1), Duration::from_millis(50));

#[derive(Clone, Copy)]
struct Cost {
    read: Duration,
    addresses: Duration,
    full: Duration,
    changes: [Duration; 3],
    admission: Duration,
    peak_kib: u64,
}

pub(super) fn intents() -> Result<Report> {
    let mut report = Report::default();
    let mut curve = Curve::new(
        "So many nodes and attachments, in 20 groups",
        &[
            "nodes",
            "attachments",
            "full compile",
            "one change",
            "admission",
            "read",
            "addresses",
            "peak memory",
        ],
    );
    for (nodes, attachments) in [(100, 100), (1_000, 100), (100, 1_000), (BUDGET.0, BUDGET.0)] {
        let cost = best(nodes, attachments)?;
        curve.push([
            nodes.to_string(),
            attachments.to_string(),
            seconds(cost.full),
            seconds(cost.changes.into_iter().max().unwrap_or_default()),
            seconds(cost.admission),
            seconds(cost.read),
            seconds(cost.addresses),
            format!("{} MiB", cost.peak_kib.div_ceil(1024)),
        ]);
        if (nodes, attachments) == (BUDGET.0, BUDGET.0) {
            let work = "1,000 nodes in 20 groups, 1,000 attachments";
            let changes = CHANGES.into_iter().zip(cost.changes);
            let changes = changes.map(|(what, took)| (what, took, BUDGET.2));
            let full = ("full compile", cost.full, BUDGET.1);
            for (what, took, budget) in std::iter::once(full).chain(changes) {
                report.rows.push(Row::new(
                    &format!("{work}: {what}"),
                    &format!("≤ {}", seconds(budget)),
                    seconds(took),
                    took <= budget,
                ));
            }
        }
    }
    report.curves.push(curve);
    Ok(report)
}

fn best(nodes: usize, attachments: usize) -> Result<Cost> {
    let text = network(nodes, attachments);
    // One by one: the reader takes no more than a thousand documents at once.
    let documents = text.split("---\n").filter(|one| !one.is_empty());
    let objects: Vec<Value> = documents
        .map(|one| serde_saphyr::from_str(one).context("cannot read the network"))
        .collect::<Result<_>>()?;
    let mut best: Option<Cost> = None;
    for _ in 0..RUNS {
        super::render::forget_peak()?;
        let begin = Instant::now();
        let inputs = Inputs::read(&objects);
        let read = begin.elapsed();
        let begin = Instant::now();
        let (answers, _) = allocate(&wants(&inputs), &Answers::default());
        let addresses = begin.elapsed();
        let begin = Instant::now();
        let compiled = compile(&inputs, &answers, &Prior::default());
        let full = begin.elapsed();
        sound(&compiled, nodes)?;
        let changes = changes(&inputs, &answers, &compiled)?;
        let now = Cost {
            read,
            addresses,
            full,
            changes,
            admission: admission(&inputs, &objects)?,
            peak_kib: peak_kib()?,
        };
        best = Some(best.map_or(now, |best| Cost {
            read: best.read.min(now.read),
            addresses: best.addresses.min(now.addresses),
            full: best.full.min(now.full),
            changes: std::array::from_fn(|nth| best.changes[nth].min(now.changes[nth])),
            admission: best.admission.min(now.admission),
            peak_kib: best.peak_kib.max(now.peak_kib),
        }));
    }
    best.context("nothing was measured")
}

fn sound(compiled: &Compiled, nodes: usize) -> Result<()> {
    ensure!(
        compiled.findings.is_empty(),
        "{} findings",
        compiled.findings.len()
    );
    ensure!(compiled.nodes.len() == nodes, "a node is missing");
    Ok(())
}

/// Three changes, each compiled against what ran.
fn changes(inputs: &Inputs, answers: &Answers, ran: &Compiled) -> Result<[Duration; 3]> {
    let mut mtu = inputs.clone();
    mtu.layer2_attachments[0].spec.mtu = 9_000;
    let mut prefix = inputs.clone();
    let more = "203.0.113.0/24".parse().context("a prefix")?;
    prefix.destinations[0].spec.prefixes.push(more);
    let mut node = inputs.clone();
    let mut another = node.nodes[0].clone();
    another.name.push('x');
    node.nodes.insert(1, another);
    let prior = Prior::new(ran.contributions.clone());
    let mut took = [Duration::ZERO; 3];
    let changed = [(mtu, false), (prefix, false), (node, true)];
    for (took, (changed, same)) in took.iter_mut().zip(changed) {
        let (answers, _) = allocate(&wants(&changed), answers);
        let begin = Instant::now();
        let compiled = recompile(ran, &changed, &answers, &prior);
        *took = begin.elapsed();
        ensure!((compiled.digest == ran.digest) == same, "another change");
        ensure!(
            compiled.nodes.len() == changed.nodes.len(),
            "a node is missing"
        );
    }
    Ok(took)
}

/// What a review of the webhook costs beside all others: the last attachment takes the VLAN of one on its nodes.
fn admission(inputs: &Inputs, objects: &[Value]) -> Result<Duration> {
    let is_attachment = |o: &&Value| o["kind"] == "Layer2Attachment";
    let of_its_group = |o: &&Value| o["spec"]["workerGroups"][0] == "g0";
    let mut same = objects.iter().filter(is_attachment).filter(of_its_group);
    let first = same.next().context("no attachment")?;
    let old = same.next_back().context("one attachment")?;
    let mut new = old.clone();
    // Of two that want the same, the older has it.
    new["metadata"]["creationTimestamp"] = "2026-01-02T00:00:00Z".into();
    new["spec"]["network"]["vlanID"] = first["spec"]["network"]["vlanID"].clone();
    let begin = Instant::now();
    let said = admit(inputs, Some(old), &new);
    let took = begin.elapsed();
    ensure!(said.refused.len() == 1, "it is admitted: {said:?}");
    Ok(took)
}

fn network(nodes: usize, attachments: usize) -> String {
    let group = "apiVersion: network.t-caas.telekom.com/v1alpha1";
    let mut text = String::new();
    for n in 0..GROUPS {
        let _ = writeln!(
            text,
            "---\n{{{group}, kind: Destination, metadata: {{name: d{n}, labels: {{zone: z{n}}}}}, spec: {{vrf: v{n}, vni: {}, \
             routeTarget: '64500:{n}', prefixes: [10.{n}.0.0/16, 172.16.{n}.0/24]}}}}",
            100 + n
        );
    }
    for n in 0..attachments {
        let _ = writeln!(
            text,
            "---\n{{{group}, kind: Layer2Attachment, metadata: {{name: s{n}, creationTimestamp: {MADE}}}, spec: {{network: {{vlanID: {}, vni: {}, \
             ipv4: {{subnet: 192.{}.{}.0/24}}}}, interfaceName: i{n}, workerGroups: [g{}], nodeIPs: {{enabled: true}}, \
             destinations: {{matchLabels: {{zone: z{}}}}}}}}}",
            1 + n % 4_000,
            1_000 + n,
            n / 250,
            n % 250,
            n % GROUPS,
            n % GROUPS
        );
    }
    for n in 0..nodes {
        let _ = writeln!(
            text,
            "---\n{{apiVersion: v1, kind: Node, metadata: {{name: n{n:04}, labels: {{network.t-caas.telekom.com/worker-group: g{}}}}}}}",
            n % GROUPS
        );
    }
    text
}
