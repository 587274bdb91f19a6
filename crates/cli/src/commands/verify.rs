//! `moor verify PATH…`: judges everything that is, or will be, deployed, over all clusters at once.
//!
//! Easy to get wrong: findings are talk and go to stderr as everywhere; stdout has the clusters, or all of it as data.

mod sarif;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use mooring_api::{Finding, Severity};
use mooring_book::{Filter, Store as _};
use mooring_package::{From, Source, Survey, Verified};

use crate::args::{BookArg, Format, VerifyArgs, VerifyFormat};
use crate::output::{Output, Table, count, exit_of};
use crate::world::{Access, Exit, Usage, World};

pub(crate) fn run(args: &VerifyArgs, world: &World, output: &mut Output) -> anyhow::Result<Exit> {
    let book = args.book.as_deref().map(existing_book).transpose()?;
    let mut survey = survey(&args.sources, world.mgmt(&args.mgmt)?.as_deref())?;
    if let Some(path) = book {
        let arg = BookArg {
            book: Some(path),
            wait: None,
        };
        let book = world.book(&arg, None, Access::Read);
        survey.reserve(&book.leases(&Filter::default())?, world.now);
    }
    let verified = survey.verify();
    let format = match args.format {
        VerifyFormat::Sarif => {
            output.data(&sarif::log(&verified.findings)?)?;
            None
        }
        VerifyFormat::Table => Some(Format::Table),
        VerifyFormat::Yaml => Some(Format::Yaml),
        VerifyFormat::Json => Some(Format::Json),
    };
    if let Some(format) = format {
        output.show(format, &verified, clusters)?;
    }
    let all: Vec<Finding> = [&verified.findings[..], &verified.unjudged[..]].concat();
    output.findings(&all);
    let (exit, verdict) = verdict(&verified, args.strict);
    output.say(&format!("{}: {verdict}", seen(&verified)));
    Ok(exit)
}

/// Reads what the arguments name. Also for `moor trace`.
pub(super) fn survey(sources: &[String], mgmt: Option<&Path>) -> anyhow::Result<Survey> {
    let streams = sources.iter().filter(|s| is_stdin(s)).count();
    if streams > 1 {
        return Err(Usage::new("stdin is named twice", "name - once").into());
    }
    let sources: Vec<Source> = sources
        .iter()
        .map(|text| source(text))
        .collect::<anyhow::Result<_>>()?;
    Ok(Survey::read(&sources, mgmt))
}

/// `PATH`, `-`, or either after `CLUSTER=`. What exists under the whole text is meant as it is.
fn source(text: &str) -> anyhow::Result<Source> {
    let named = text
        .split_once('=')
        .filter(|(cluster, _)| !cluster.is_empty() && !cluster.contains('/'));
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
    if !Path::new(path).exists() {
        let help = "PATH is a directory of packages or manifests, a file, or - for stdin; CLUSTER=PATH names its cluster";
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
