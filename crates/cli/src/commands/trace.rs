//! `moor trace POD POD PATH…`: the packet story, as numbered steps. With `--node` that of one node's VRFs.

mod node;

use std::fmt::Write as _;

use mooring_api::Finding;
use mooring_verify::trace::{self, Place, Story};

use super::verify::survey;
use crate::args::{Format, TraceArgs};
use crate::output::{Output, Table};
use crate::world::{Exit, Usage, World};

pub(crate) fn run(args: &TraceArgs, world: &World, output: &mut Output) -> anyhow::Result<Exit> {
    if let Some(name) = &args.node {
        return node::run(name, args, output);
    }
    if !args.network.files.is_empty() {
        let help = "a network is traced on a node: add --node NAME";
        return Err(Usage::new("-f is given without --node", help).into());
    }
    let survey = survey(&args.sources, world.mgmt(&args.mgmt)?.as_deref())?;
    // A story of half of the objects would be a guess.
    if survey.findings().iter().any(Finding::is_error) {
        output.findings(survey.findings());
        return Ok(Exit::Wrong);
    }
    let story = trace::trace(&survey.fleet(), &args.from, &args.to)
        .map_err(|unclear| Usage::new(unclear.message, unclear.help))?;
    if args.format.format == Format::Table {
        output.data(&text(&story))?;
    } else {
        output.show(args.format.format, &story, |_| Table::new(["step"]))?;
    }
    Ok(if story.verdict.reached {
        Exit::Done
    } else {
        Exit::Wrong
    })
}

fn text(story: &Story) -> String {
    let mut text = format!("from  {}\nto    {}\n", place(&story.from), place(&story.to));
    for shared in &story.shared {
        let (network, from, to) = (&shared.network, &shared.from, &shared.to);
        let _ = writeln!(text, "both  {network}  {from}, {to}");
    }
    text.push('\n');
    let width = story.steps.iter().map(|s| s.what.len()).max().unwrap_or(0);
    for (number, step) in story.steps.iter().enumerate() {
        let _ = writeln!(text, "{}. {:width$}  {}", number + 1, step.what, step.text);
    }
    if !story.steps.is_empty() {
        text.push('\n');
    }
    let word = if story.verdict.reached {
        "reached"
    } else {
        "not reached"
    };
    let _ = writeln!(text, "{word}: {}", story.verdict.text);
    if !story.verdict.help.is_empty() {
        let _ = writeln!(text, "help: {}", story.verdict.help);
    }
    text
}

/// `my-ran/ran-gnb/Deployment/gnb  n2  192.168.100.50/24`.
fn place(place: &Place) -> String {
    let name = [&place.cluster, &place.namespace, &place.workload];
    let name: Vec<&str> = name
        .into_iter()
        .map(String::as_str)
        .filter(|p| !p.is_empty())
        .collect();
    let parts = [
        Some(name.join("/")),
        place.interface.clone(),
        place.address.clone(),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join("  ")
}
