//! `moor pool grow|shrink|split|drain|renumber`: shows who would change, asks, and does it in one transaction.
//!
//! Easy to get wrong: what a person agreed to is what is done. The plan that was shown goes along with the request, and
//! one that came out differently is refused.

use std::io::{BufRead as _, IsTerminal as _};
use std::path::Path;

use mooring_api::{Code, Finding};
use mooring_book::Store as _;
use mooring_ipam::{Candidate, Change, Effect, Thing};
use mooring_package::{PoolReport, PoolRequest};
use serde::Serialize;

use super::Names;
use crate::args::{
    ActArg, PoolDrainArgs, PoolGrowArgs, PoolRenumberArgs, PoolShrinkArgs, PoolSplitArgs, WhichArg,
};
use crate::output::{Output, Table, count};
use crate::world::{Access, Exit, Usage, World};

/// What is printed as data.
#[derive(Serialize)]
struct Shown {
    network: String,
    prefix: String,
    /// What becomes of it.
    becomes: Vec<String>,
    effects: Vec<Row>,
    files: Vec<String>,
    #[serde(rename = "renderAgain")]
    again: Vec<Again>,
    notes: Vec<String>,
    findings: Vec<Finding>,
    /// Whether anything changes.
    changed: bool,
    /// Whether it was done.
    done: bool,
}

/// Somebody who changes.
#[derive(Serialize)]
struct Row {
    holder: String,
    from: String,
    /// Null where it stays and should not.
    to: Option<String>,
    gateway: Option<String>,
    why: String,
}

/// A package to be rendered again.
#[derive(Serialize)]
struct Again {
    cluster: String,
    package: String,
    path: String,
}

pub(super) fn grow(
    args: &PoolGrowArgs,
    world: &World,
    output: &mut Output,
) -> anyhow::Result<Exit> {
    let (to, ranges) = (args.to, args.ranges.clone());
    run(
        (&args.which, &args.act),
        Change::Grow { to, ranges },
        false,
        world,
        output,
    )
}

pub(super) fn shrink(
    args: &PoolShrinkArgs,
    world: &World,
    output: &mut Output,
) -> anyhow::Result<Exit> {
    let change = Change::Shrink {
        to: args.to,
        ranges: args.ranges.clone(),
        exclude: args.exclude.clone(),
    };
    run((&args.which, &args.act), change, args.moves, world, output)
}

pub(super) fn split(
    args: &PoolSplitArgs,
    world: &World,
    output: &mut Output,
) -> anyhow::Result<Exit> {
    let change = Change::Split { len: args.at };
    run((&args.which, &args.act), change, args.moves, world, output)
}

pub(super) fn drain(
    args: &PoolDrainArgs,
    world: &World,
    output: &mut Output,
) -> anyhow::Result<Exit> {
    let change = if args.undo {
        Change::Undrain
    } else {
        Change::Drain
    };
    run((&args.which, &args.act), change, args.moves, world, output)
}

pub(super) fn renumber(
    args: &PoolRenumberArgs,
    world: &World,
    output: &mut Output,
) -> anyhow::Result<Exit> {
    let change = Change::Renumber { to: args.to };
    run((&args.which, &args.act), change, true, world, output)
}

fn run(
    (which, act): (&WhichArg, &ActArg),
    change: Change,
    moves: bool,
    world: &World,
    output: &mut Output,
) -> anyhow::Result<Exit> {
    let mut request = PoolRequest {
        mgmt: world.needed_mgmt(&act.mgmt)?,
        prefix: which.prefix.clone(),
        network: which
            .network
            .as_deref()
            .map(crate::commands::claim::instance),
        change,
        moves,
        check: true,
        agreed: None,
        now: world.now,
    };
    let ask = !act.yes;
    if ask {
        let book = world.book(&act.book, Some(&request.mgmt), Access::Read);
        let report = mooring_package::change_pool(&book, &request)?;
        let cut_off = report
            .findings
            .iter()
            .any(|f| f.code == Code::RenderInterrupted);
        if !cut_off || act.check {
            let names = Names::of(&book.packages()?);
            show(&report, &names, act, false, output)?;
            if report.has_errors() {
                output.say("nothing was changed");
                return Ok(Exit::Wrong);
            }
            if !report.is_changed() {
                return Ok(Exit::Done);
            }
            if act.check {
                return Ok(Exit::WouldChange);
            }
            if !agreed(output)? {
                output.say("nothing was changed");
                return Ok(Exit::Done);
            }
            request.agreed = report.plan.map(Box::new);
        }
    }
    request.check = false;
    let book = world.book(&act.book, Some(&request.mgmt), Access::Write);
    let report = book.settle(|book| mooring_package::change_pool(book, &request))?;
    if report.finished {
        output.findings(&report.findings);
        output.say("the change that was cut off is finished; nothing else was done");
        return Ok(Exit::Done);
    }
    let done = report.is_changed();
    if !ask || report.has_errors() {
        let names = Names::of(&book.packages()?);
        show(&report, &names, act, done, output)?;
    } else {
        output.findings(&report.findings);
        tell(&report, true, output);
    }
    if report.has_errors() {
        output.say("nothing was changed");
        return Ok(Exit::Wrong);
    }
    Ok(Exit::Done)
}

/// Asks, where somebody can answer.
fn agreed(output: &mut Output) -> anyhow::Result<bool> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(Usage::new(
            "nothing was changed: nobody can be asked",
            "add --yes to do it, or --check to only look",
        )
        .into());
    }
    output.say("do it? [y/N]");
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn show(
    report: &PoolReport,
    names: &Names,
    act: &ActArg,
    done: bool,
    output: &mut Output,
) -> anyhow::Result<()> {
    let plan = report.plan.as_ref();
    let shown = Shown {
        network: plan.map(|p| p.instance.to_string()).unwrap_or_default(),
        prefix: plan.map(|p| p.before.cidr.to_string()).unwrap_or_default(),
        becomes: plan
            .map(|p| p.after.iter().map(|a| a.cidr.to_string()).collect())
            .unwrap_or_default(),
        effects: report.effects.iter().map(|e| row(e, names)).collect(),
        files: report
            .changes
            .iter()
            .map(|c| c.path.display().to_string())
            .collect(),
        again: report
            .again
            .iter()
            .map(|p| Again {
                cluster: p.cluster.clone(),
                package: p.name.clone(),
                path: p.path.clone(),
            })
            .collect(),
        notes: plan.map(|p| p.notes.clone()).unwrap_or_default(),
        findings: report.findings.iter().map(|f| names.finding(f)).collect(),
        changed: report.is_changed(),
        done,
    };
    output.show(act.format.format, &shown, |shown| table(&shown.effects))?;
    output.findings(&shown.findings);
    for note in &shown.notes {
        output.say(note);
    }
    if !report.has_errors() {
        tell(report, done, output);
    }
    Ok(())
}

fn row(effect: &Effect, names: &Names) -> Row {
    Row {
        holder: names.holder(&effect.holder),
        from: text(&effect.from),
        to: effect.to.as_ref().map(text),
        gateway: effect.to.and_then(|to| to.gateway).map(|g| g.to_string()),
        why: effect.why.clone(),
    }
}

/// An address with the length of its subnet; blocks and ranges as they are.
fn text(what: &Candidate) -> String {
    match (what.thing, what.subnet) {
        (Thing::Addr(addr), Some(subnet)) => subnet.host(addr).to_string(),
        (thing, _) => thing.to_string(),
    }
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(["holder", "from", "to", "why"]);
    for row in rows {
        let to = row.to.clone().unwrap_or_default();
        table.row([row.holder.clone(), row.from.clone(), to, row.why.clone()]);
    }
    table
}

/// The last sentences: what was done or would be, and what is left to do.
fn tell(report: &PoolReport, done: bool, output: &mut Output) {
    let Some(plan) = report.plan.as_ref().filter(|p| p.is_change()) else {
        output.say("nothing to do: it is so already");
        return;
    };
    let moved = plan.effects.iter().filter(|e| e.is_move()).count();
    let kept = plan.effects.iter().filter(|e| e.to.is_some()).count() - moved;
    let after: Vec<String> = plan.after.iter().map(|a| a.cidr.to_string()).collect();
    let before = plan.before.cidr;
    let what = match plan.after.as_slice() {
        [one] if one.cidr == before && one.drain != plan.before.drain => {
            let word = if one.drain {
                "drained"
            } else {
                "not drained any more"
            };
            format!("{before} is {word}")
        }
        [one] if one.cidr == before => format!("{before} gives out less"),
        _ => format!("{before} becomes {}", after.join(", ")),
    };
    let would = if done { "" } else { "would change: " };
    output.say(&format!(
        "{would}{what}; {} moved, {kept} with another mask or gateway",
        count(moved, "holder")
    ));
    let again = report.again.iter();
    let again = again.map(|p| format!("{} ({})", near(&p.path), p.cluster));
    let again: Vec<String> = again.collect();
    if !again.is_empty() {
        let word = if done {
            "render again"
        } else {
            "to be rendered again then"
        };
        output.say(&format!("{word}: {}", again.join(", ")));
    }
}

/// A path as one would type it here.
fn near(path: &str) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let below = Path::new(path).strip_prefix(&here);
    below.map_or_else(|_| path.to_owned(), |below| below.display().to_string())
}
