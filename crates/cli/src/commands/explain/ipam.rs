//! `moor explain ipam PATH…`: which of the five IPAM solutions fits each network, and why.

use std::fmt::Write as _;

use mooring_api::Finding;
use mooring_verify::fits::{self, Advice};

use crate::args::{ExplainArgs, Format};
use crate::commands::verify::survey;
use crate::output::{Output, Table};
use crate::world::{Exit, World};

pub(super) fn run(args: &ExplainArgs, world: &World, output: &mut Output) -> anyhow::Result<Exit> {
    let here = [".".to_owned()];
    let sources = if args.sources.is_empty() {
        &here[..]
    } else {
        &args.sources
    };
    let survey = survey(sources, world.mgmt(&args.mgmt)?.as_deref())?;
    // Advice about half of the objects would be a guess.
    if survey.findings().iter().any(Finding::is_error) {
        output.findings(survey.findings());
        return Ok(Exit::Wrong);
    }
    let advice = fits::fits(&survey.fleet());
    if args.format.format == Format::Table {
        output.data(&text(&advice))?;
    } else {
        output.show(args.format.format, &advice, |_| Table::new(["network"]))?;
    }
    if advice.is_empty() {
        output.say("no secondary network is here: no NAD, no Interface, no IPClaim");
    }
    Ok(Exit::Done)
}

fn text(advice: &[Advice]) -> String {
    let mut text = String::new();
    for (at, one) in advice.iter().enumerate() {
        let space = if at == 0 { "" } else { "\n" };
        let name = one.solution.name();
        let _ = writeln!(
            text,
            "{space}{}: {name} (solution {})",
            one.network, one.number
        );
        for reason in &one.because {
            let _ = writeln!(text, "  because  {reason}");
        }
        for line in &one.write {
            let _ = writeln!(text, "  write    {line}");
        }
        let now = one.now.join(" and ");
        match one.kept {
            Some(true) => drop(writeln!(text, "  now      {now}: stays as it is")),
            Some(false) => drop(writeln!(text, "  now      {now}: change it")),
            None => {}
        }
        let mut others: Vec<(&str, Vec<&str>)> = Vec::new();
        for other in &one.instead_of {
            let name = other.solution.name();
            match others.iter_mut().find(|(why, _)| *why == other.why) {
                Some((_, names)) => names.push(name),
                None => others.push((&other.why, vec![name])),
            }
        }
        for (why, names) in others {
            let _ = writeln!(text, "  not      {}: {why}", names.join(", "));
        }
    }
    text
}
