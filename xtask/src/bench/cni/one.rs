//! One call at a time: ours, the reference and base in turns.

use std::time::Duration;

use anyhow::Result;

use super::super::measure::seconds;
use super::super::{Curve, Report, Row};
use super::node::{Node, Who};
use super::{Case, IPAMS, PLUGINS, rounds};

/// Before each call: the kernel ends what the one before left to it (grace periods, devices that go), which the next would
/// wait for. Between a pod's ADD and its DEL lies more.
const REST: Duration = Duration::from_millis(60);

/// How much longer the rest is in each round than in the one before, up to [`TICK`]. A move of a device waits for the kernel's
/// clock to tick, and so begins the next call: always the same time later would be always the same part of a tick.
const STEP: Duration = Duration::from_micros(1300);
const TICK: Duration = Duration::from_millis(10);

/// In one round of so many the reference makes its IPv6 calls too: it waits two seconds for duplicate address detection.
const SELDOM: usize = 4;

/// Times of ADD and DEL, sorted.
#[derive(Default)]
struct Times {
    add: Vec<Duration>,
    del: Vec<Duration>,
}

pub(super) fn measure(node: &Node, report: &mut Report) -> Result<()> {
    let mut curve = Curve::new(
        "One call at a time, median (95th percentile); ours syncs host-local's files to the disk",
        &[
            "",
            "ours",
            "reference 1.9.1",
            "base",
            "(ours − base) / (reference − base)",
        ],
    );
    for v6 in [false, true] {
        for plugin in PLUGINS {
            for ipam in IPAMS {
                let case = Case { plugin, ipam, v6 };
                eprintln!("bench: cni: {case} …");
                let times = turns(node, case)?;
                rows(case, &times, report, &mut curve);
            }
        }
    }
    report.curves.push(curve);
    Ok(())
}

fn turns(node: &Node, case: Case) -> Result<[Times; 3]> {
    let mut times: [Times; 3] = Default::default();
    for round in 0..=rounds() {
        let rest = REST + rest_more(round);
        for turn in 0..3 {
            let at = (turn + round) % 3;
            let who = Who::ALL[at];
            if case.v6 && who == Who::Reference && round % SELDOM != 0 {
                continue;
            }
            let mut attachment = node.attachment(who, case, 0);
            let [add, del] = ["ADD", "DEL"].map(|verb| {
                std::thread::sleep(rest);
                node.call(who, verb, &mut attachment)
            });
            let (add, del) = (add?, del?);
            // The first round fills caches.
            if round > 0 {
                times[at].add.push(add);
                times[at].del.push(del);
            }
        }
    }
    for times in &mut times {
        times.add.sort_unstable();
        times.del.sort_unstable();
    }
    Ok(times)
}

fn rest_more(round: usize) -> Duration {
    let more = STEP * u32::try_from(round).unwrap_or(0);
    Duration::from_nanos(u64::try_from(more.as_nanos() % TICK.as_nanos()).unwrap_or(0))
}

fn rows(case: Case, [ours, reference, base]: &[Times; 3], report: &mut Report, curve: &mut Curve) {
    for (verb, ours, reference, base) in [
        ("ADD", &ours.add, &reference.add, &base.add),
        ("DEL", &ours.del, &reference.del, &base.del),
    ] {
        let [o, r, b] = [ours, reference, base].map(|times| median(times).as_secs_f64());
        let ratio = (o - b) / (r - b);
        let show =
            |times: &[Duration]| format!("{} ({})", seconds(median(times)), seconds(high(times)));
        curve.push([
            format!("{verb} {case}"),
            show(ours),
            show(reference),
            show(base),
            format!("{ratio:.2}"),
        ]);
        // What the reference waits for is no measure.
        if case.v6 && verb == "ADD" {
            let within = |times: &[Duration]| median(times) <= Duration::from_millis(20);
            let measured = format!(
                "{} (base {}, the reference {})",
                seconds(median(ours)),
                seconds(median(base)),
                seconds(median(reference))
            );
            let work = format!("ADD {case} with gateway");
            let row = Row::new(&work, "≤ 20 ms", measured, within(ours));
            report.rows.push(row.floor(within(base)));
        } else {
            let measured = format!("{ratio:.2} × (reference − base)");
            // A base that is not below the reference says nothing; then ours must not be above it either.
            let met = if r > b { ratio <= 0.5 } else { o <= b };
            let budget = "ours − base ≤ 0.5 × (reference − base)";
            report
                .rows
                .push(Row::new(&format!("{verb} {case}"), budget, measured, met));
        }
    }
}

fn median(sorted: &[Duration]) -> Duration {
    sorted[sorted.len() / 2]
}

fn high(sorted: &[Duration]) -> Duration {
    sorted[(sorted.len() * 95 / 100).min(sorted.len() - 1)]
}
