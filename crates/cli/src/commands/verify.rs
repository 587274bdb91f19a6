//! `moor verify PATH…`: judges everything that is, or will be, deployed, over all clusters at once.
//!
//! Easy to get wrong: findings are talk and go to stderr as everywhere; stdout has the clusters, or all of it as data. With
//! `--fix --check` it has the diff instead.

pub(super) mod diff;
mod sarif;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use mooring_api::{Finding, Severity};
use mooring_book::{Filter, Store as _};
use mooring_package::{Fixed, Fixing, From, Source, Survey, Verified};
use serde::Serialize;

use crate::args::{BookArg, Format, VerifyArgs, VerifyFormat};
use crate::output::{Output, Table, count, exit_of};
use crate::world::{Access, Exit, Usage, World};

/// What `-o json` shows: what was seen, and what was fixed.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    verified: &'a Verified,
    #[serde(skip_serializing_if = "Option::is_none")]
    fixed: Option<&'a [Fixed]>,
}

pub(crate) fn run(args: &VerifyArgs, world: &World, output: &mut Output) -> anyhow::Result<Exit> {
    let book = args.book.as_deref().map(existing_book).transpose()?;
    let mgmt = world.mgmt(&args.mgmt)?;
    let mut fixing = if args.fix {
        let sources = sources(&args.sources)?;
        writable(&sources)?;
        mooring_package::fix(&sources, mgmt.as_deref(), args.check)
    } else {
        Fixing {
            survey: survey(&args.sources, mgmt.as_deref())?,
            ..Fixing::default()
        }
    };
    if let Some(path) = book {
        let arg = BookArg {
            book: Some(path),
            wait: None,
        };
        let book = world.book(&arg, None, Access::Read);
        let leases = book.leases(&Filter::default())?;
        fixing.survey.reserve(&leases, world.now);
    }
    output.findings(&fixing.findings);
    if exit_of(&fixing.findings) != Exit::Done {
        return Ok(Exit::Wrong);
    }
    let verified = fixing.survey.verify();
    if args.check {
        return preview(args, &fixing, &verified, output);
    }
    let shown = Shown {
        verified: &verified,
        fixed: args.fix.then_some(&fixing.fixed),
    };
    match args.format {
        VerifyFormat::Sarif => output.data(&sarif::log(&verified.findings)?)?,
        VerifyFormat::Table => output.show(Format::Table, &verified, clusters)?,
        VerifyFormat::Yaml => output.show(Format::Yaml, &shown, |s| clusters(s.verified))?,
        VerifyFormat::Json => output.show(Format::Json, &shown, |s| clusters(s.verified))?,
    }
    tell(&fixing.fixed, "fixed", output);
    let all: Vec<Finding> = [&verified.findings[..], &verified.unjudged[..]].concat();
    output.findings(&all);
    let (exit, verdict) = verdict(&verified, args.strict);
    if args.fix {
        let files = count(fixing.files.len(), "file");
        output.say(&match fixing.fixed.len() {
            0 => "nothing here has a fix that is safe without asking".to_owned(),
            fixed => format!("{} in {files}", count(fixed, "change")),
        });
    }
    output.say(&format!("{}: {verdict}", seen(&verified)));
    Ok(exit)
}

/// What `--fix` would do.
fn preview(
    args: &VerifyArgs,
    fixing: &Fixing,
    verified: &Verified,
    output: &mut Output,
) -> anyhow::Result<Exit> {
    let fixed = Some(&fixing.fixed[..]);
    let shown = Shown { verified, fixed };
    match args.format {
        VerifyFormat::Yaml => output.show(Format::Yaml, &shown, |s| clusters(s.verified))?,
        VerifyFormat::Json => output.show(Format::Json, &shown, |s| clusters(s.verified))?,
        VerifyFormat::Table | VerifyFormat::Sarif => {
            for file in &fixing.files {
                output.data(&diff::unified(&file.shown, &file.before, &file.after))?;
            }
        }
    }
    tell(&fixing.fixed, "would fix", output);
    let left = count(verified.findings.len(), "finding");
    let files = count(fixing.files.len(), "file");
    let changes = count(fixing.fixed.len(), "change");
    output.say(&format!(
        "would make {changes} in {files}; {left} would stay"
    ));
    Ok(if fixing.fixed.is_empty() {
        exit_of(&verified.findings)
    } else {
        Exit::WouldChange
    })
}

fn tell(fixed: &[Fixed], word: &str, output: &mut Output) {
    for one in fixed {
        let Fixed {
            file,
            line,
            code,
            object,
            what,
            why,
        } = one;
        output.say(&format!(
            "{word}[{code}]: {what}, of {object}\n --> {file}:{line}\n  = safe: {why}"
        ));
    }
}

/// A stream and a revision cannot be written.
fn writable(sources: &[Source]) -> Result<(), Usage> {
    let name = sources.iter().find_map(|source| match &source.from {
        From::Path(_) => None,
        From::Git(name) => Some(name.as_str()),
        From::Text { .. } => Some("stdin"),
    });
    let Some(name) = name else { return Ok(()) };
    let help = "check it out, or save it to a file, and name that";
    Err(Usage::new(
        format!("{name} cannot be fixed: --fix writes files"),
        help,
    ))
}

/// Reads what the arguments name. Also for `moor trace`.
pub(super) fn survey(names: &[String], mgmt: Option<&Path>) -> anyhow::Result<Survey> {
    Ok(Survey::read(&sources(names)?, mgmt))
}

fn sources(sources: &[String]) -> anyhow::Result<Vec<Source>> {
    let streams = sources.iter().filter(|s| is_stdin(s)).count();
    if streams > 1 {
        return Err(Usage::new("stdin is named twice", "name - once").into());
    }
    sources.iter().map(|text| source(text)).collect()
}

/// `PATH`, `-`, `REVISION:PATH`, or any of them after `CLUSTER=`. What exists under the whole text is meant as it is.
fn source(text: &str) -> anyhow::Result<Source> {
    let named = text
        .split_once('=')
        .filter(|(cluster, _)| !cluster.is_empty() && !cluster.contains(['/', ':']));
    let (cluster, path) = match named {
        Some((cluster, path)) if !Path::new(text).exists() => (Some(cluster.to_owned()), path),
        _ => (None, text),
    };
    if path == "-" {
        let mut bytes = Vec::new();
        std::io::stdin()
            .read_to_end(&mut bytes)
            .context("cannot read stdin")?;
        let shown = "stdin".to_owned();
        let from = From::Text { shown, bytes };
        return Ok(Source { cluster, from });
    }
    if !Path::new(path).exists() && path.split_once(':').is_some_and(|(rev, _)| !rev.is_empty()) {
        let from = From::Git(path.to_owned());
        return Ok(Source { cluster, from });
    }
    if !Path::new(path).exists() {
        let help = "PATH is a directory of packages or manifests, a file, REVISION:PATH of Git, or - for stdin; CLUSTER=PATH names its cluster";
        return Err(Usage::new(format!("{path} does not exist"), help).into());
    }
    let from = From::Path(PathBuf::from(path));
    Ok(Source { cluster, from })
}

fn is_stdin(text: &str) -> bool {
    text == "-" || text.ends_with("=-")
}

fn existing_book(path: &Path) -> Result<PathBuf, Usage> {
    if path.is_file() {
        return Ok(path.to_owned());
    }
    Err(Usage::new(
        format!("there is no book at {}", path.display()),
        "--book names the file that `moor claim` and `moor render` wrote",
    ))
}

/// A line per cluster.
fn clusters(verified: &Verified) -> Table {
    let header = ["cluster", ">packages", ">objects", ">errors", ">warnings"];
    let mut table = Table::new(header);
    for one in &verified.per_cluster {
        let numbers = [one.packages, one.objects, one.errors, one.warnings];
        let [packages, objects, errors, warnings] = numbers.map(|n| n.to_string());
        table.row([one.name.clone(), packages, objects, errors, warnings]);
    }
    table
}

/// How much was looked at.
fn seen(verified: &Verified) -> String {
    let addresses = count(verified.addresses, "address");
    let ranges = count(verified.ranges, "range");
    let carried = match (verified.addresses, verified.ranges) {
        (_, 0) => addresses,
        (0, _) => ranges,
        _ => format!("{addresses} and {ranges}"),
    };
    let whole = if verified.packages > 0 {
        count(verified.packages, "package")
    } else {
        count(verified.objects, "object")
    };
    let clusters = count(verified.clusters, "cluster");
    format!("checked {carried} of {whole} in {clusters}")
}

fn verdict(verified: &Verified, strict: bool) -> (Exit, &'static str) {
    let findings = &verified.findings;
    let warned = findings.iter().any(|f| f.severity == Severity::Warning);
    if exit_of(findings) != Exit::Done {
        return (Exit::Wrong, "something is wrong, see the errors");
    }
    let strictly = if strict { Exit::Wrong } else { Exit::Done };
    if verified.addresses + verified.ranges == 0 {
        return (
            strictly,
            "nothing here has an address, so nothing is proven",
        );
    }
    match (warned, strict) {
        (true, true) => (
            Exit::Wrong,
            "no address is used twice, but --strict allows no warning",
        ),
        _ => (Exit::Done, "no address is used twice"),
    }
}
