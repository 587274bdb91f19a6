//! Sixteen pods at once, as after the start of a node.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::super::measure::per_second;
use super::super::{Curve, Report, Row};
use super::node::{Attachment, Node, PODS, Who};
use super::{Case, IPAMS, PLUGINS, rounds};

pub(super) fn measure(node: &Node, report: &mut Report) -> Result<()> {
    let title = format!("{PODS} calls at once, as calls per second (median of the rounds)");
    let columns = ["", "ours", "reference 1.9.1", "base", "ours / reference"];
    let mut curve = Curve::new(&title, &columns);
    for v6 in [false, true] {
        for plugin in PLUGINS {
            for ipam in IPAMS {
                let case = Case { plugin, ipam, v6 };
                eprintln!("bench: cni: {PODS} times {case} …");
                let rates = turns(node, case)?;
                rows(case, rates, report, &mut curve);
            }
        }
    }
    report.curves.push(curve);
    Ok(())
}

/// Calls per second of ADD and DEL, of each round.
type Rates = [Vec<f64>; 2];

fn turns(node: &Node, case: Case) -> Result<[Rates; 3]> {
    // The reference waits two seconds for duplicate address detection.
    let rounds = rounds().div_ceil(if case.v6 { 20 } else { 12 }).max(2);
    let mut rates: [Rates; 3] = Default::default();
    for _ in 0..rounds {
        for (who, rates) in Who::ALL.iter().zip(&mut rates) {
            let attachments = (0..PODS).map(|pod| node.attachment(*who, case, pod));
            let mut attachments: Vec<Attachment> = attachments.collect();
            for (verb, rates) in ["ADD", "DEL"].iter().zip(rates) {
                let took = at_once(node, *who, verb, &mut attachments)?;
                rates.push(per_second(u32::try_from(PODS)?, took));
            }
        }
    }
    Ok(rates)
}

fn rows(case: Case, mut rates: [Rates; 3], report: &mut Report, curve: &mut Curve) {
    for (at, verb) in ["ADD", "DEL"].iter().enumerate() {
        let [ours, reference, base] = rates.each_mut().map(|rates| median(&mut rates[at]));
        let ratio = ours / reference;
        let text = |rate: f64| format!("{rate:.0}/s");
        curve.push([
            format!("{verb} {case}"),
            text(ours),
            text(reference),
            text(base),
            format!("{ratio:.1}"),
        ]);
        if *verb == "ADD" {
            let measured =
                format!("{ratio:.1} × ({ours:.0}/s; {reference:.0}/s; base {base:.0}/s)");
            let work = format!("{PODS} ADDs at once, {case}");
            let within = |rate: f64| rate / reference >= 3.0;
            let budget = "≥ 3 × the reference's rate";
            let row = Row::new(&work, budget, measured, within(ours));
            report.rows.push(row.floor(within(base)));
        }
    }
}

/// From the first start to the last exit. Each call notes its own start: who waits for them may be late himself.
fn at_once(node: &Node, who: Who, verb: &str, attachments: &mut [Attachment]) -> Result<Duration> {
    let ready = Barrier::new(attachments.len());
    let spans = std::thread::scope(|threads| {
        let running: Vec<_> = attachments
            .iter_mut()
            .map(|attachment| {
                let ready = &ready;
                threads.spawn(move || {
                    ready.wait();
                    let begin = Instant::now();
                    let outcome = node.call(who, verb, attachment);
                    outcome.map(|_| (begin, Instant::now()))
                })
            })
            .collect();
        let joined = running.into_iter().map(|thread| {
            let outcome = thread.join().ok();
            outcome.context("a call panicked").flatten()
        });
        joined.collect::<Result<Vec<_>>>()
    })?;
    let begin = spans.iter().map(|(begin, _)| *begin).min();
    let end = spans.iter().map(|(_, end)| *end).max();
    Ok(end
        .zip(begin)
        .map(|(end, begin)| end - begin)
        .unwrap_or_default())
}

fn median(rates: &mut [f64]) -> f64 {
    rates.sort_unstable_by(f64::total_cmp);
    rates[rates.len() / 2]
}
