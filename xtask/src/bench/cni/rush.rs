//! Sixteen pods at once, as after the start of a node.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::super::measure::per_second;
use super::super::{Curve, Report, Row};
use super::node::{Attachment, Node, PODS, Who};
use super::{Case, PLUGINS, rounds};

pub(super) fn measure(node: &Node, report: &mut Report) -> Result<()> {
    let title = format!("{PODS} calls at once, as calls per second (median of the rounds)");
    let columns = ["", "ours", "reference 1.9.1", "base", "ours / reference"];
    let mut curve = Curve::new(&title, &columns);
    for plugin in PLUGINS {
        let case = Case {
            plugin,
            ipam: "host-local",
            v6: false,
        };
        eprintln!("bench: cni: {PODS} times {case} …");
        let mut rates: [[Vec<f64>; 2]; 3] = Default::default();
        for _ in 0..rounds().div_ceil(8).max(2) {
            for (who, rates) in Who::ALL.iter().zip(&mut rates) {
                let attachments = (0..PODS).map(|pod| node.attachment(*who, case, pod));
                let mut attachments: Vec<Attachment> = attachments.collect();
                for (verb, rates) in ["ADD", "DEL"].iter().zip(rates) {
                    let took = at_once(node, *who, verb, &mut attachments)?;
                    rates.push(per_second(u32::try_from(PODS)?, took));
                }
            }
        }
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
                report.rows.push(Row::new(
                    &work,
                    "≥ 3 × the reference's rate",
                    measured,
                    ratio >= 3.0,
                ));
            }
        }
    }
    report.curves.push(curve);
    Ok(())
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
