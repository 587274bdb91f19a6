//! `moor book export`, `moor book import`: the book as text, and two books as one.
//!
//! Easy to get wrong: an import reads the book, decides, and writes; in between another run may have changed it. The whole is
//! then done again, so that nothing is written that was decided from an older book.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;
use mooring_api::{Code, Finding, Time};
use mooring_book::{
    Content, FileStore, LARGEST_TEXT, Merge, RealDisk, Side, Store as _, Text, is_book,
};
use mooring_ipam::{Lease, State};

use super::copy::{Line, in_the_way, table};
use crate::args::{BookArg, ExportArgs, ImportArgs, KeepArg, TextFormat};
use crate::output::{Output, count, rfc3339};
use crate::world::{Access, Book, Exit, Usage, World};

/// Writes the book as text.
pub(crate) fn export(
    args: &ExportArgs,
    world: &World,
    output: &mut Output,
) -> anyhow::Result<Exit> {
    let mgmt = world.mgmt(&args.mgmt)?;
    let book = world.book(&args.book, mgmt.as_deref(), Access::Read);
    if !book.exists() {
        let path = book.path().display();
        output.say(&format!("there is no book at {path}: this is an empty one"));
    }
    let content = read(&book, world.now)?;
    let text = Text::from(&content);
    let text = match args.format {
        TextFormat::Yaml => serde_saphyr::to_string(&text).context("cannot write YAML")?,
        TextFormat::Json => {
            serde_json::to_string_pretty(&text).context("cannot write JSON")? + "\n"
        }
    };
    if text.len() as u64 > LARGEST_TEXT {
        output
            .say("this text is too large to be imported: use `moor book backup` to carry the book");
    }
    let Some(out) = &args.out else {
        output.data(&text)?;
        return Ok(Exit::Done);
    };
    match mooring_book::write_whole(&RealDisk, out, text.as_bytes(), args.force) {
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
            output.findings(&[in_the_way(out)]);
            return Ok(Exit::Wrong);
        }
        done => done.with_context(|| format!("cannot write {}", out.display()))?,
    }
    let leases = count(content.leases.len(), "lease");
    output.say(&format!("{} written: {leases}", out.display()));
    Ok(Exit::Done)
}

/// What the book holds now: what has ended is not among it.
fn read(book: &Book, now: Time) -> Result<Content, mooring_book::Error> {
    drop(book.begin(now)?);
    Content::of(book)
}

/// What an import is to do.
struct Request {
    theirs: Option<Content>,
    rename: Option<(String, String)>,
    keep: Option<Side>,
}

/// What it comes to.
enum Answer {
    /// Nothing may be written.
    Refused(Vec<Finding>),
    Merged(Merge),
}

/// Merges another book into this one, or renames a cluster of this one.
pub(crate) fn import(
    args: &ImportArgs,
    world: &World,
    output: &mut Output,
) -> anyhow::Result<Exit> {
    let rename = args.rename_cluster.as_deref().map(pair).transpose()?;
    let theirs = match &args.from {
        Some(from) => match theirs(from, &args.book, world)? {
            Ok(content) => Some(content),
            Err(findings) => {
                output.findings(&findings);
                output.say("nothing was imported");
                return Ok(Exit::Wrong);
            }
        },
        None => None,
    };
    let request = Request {
        theirs,
        rename,
        keep: args.keep.map(|keep| match keep {
            KeepArg::Ours => Side::Ours,
            KeepArg::Theirs => Side::Theirs,
        }),
    };
    let mgmt = world.mgmt(&args.mgmt)?;
    let access = if args.check {
        Access::Read
    } else {
        Access::Write
    };
    let book = world.book(&args.book, mgmt.as_deref(), access);
    let answer = book.settle(|book| -> Result<Answer, mooring_book::Error> {
        let answer = decide(book, &request, world.now)?;
        if let (Answer::Merged(merge), false) = (&answer, args.check) {
            book.amend(&merge.amendment, world.now)?;
        }
        Ok(answer)
    })?;
    match answer {
        Answer::Refused(findings) => {
            output.findings(&findings);
            output.say("nothing was imported");
            Ok(Exit::Wrong)
        }
        Answer::Merged(merge) => tell(args, &merge, &book, output),
    }
}

fn decide(book: &Book, request: &Request, now: Time) -> Result<Answer, mooring_book::Error> {
    let ours = read(book, now)?;
    let merge = match (&request.theirs, &request.rename) {
        (Some(theirs), rename) => {
            let theirs = theirs.clone();
            let theirs = match rename {
                Some((from, to)) if theirs.has_cluster(from) => {
                    theirs.with_cluster_renamed(from, to)
                }
                Some((from, _)) => return Ok(Answer::Refused(vec![unknown(from, "the file")])),
                None => theirs,
            };
            mooring_book::merge(&ours, &theirs, request.keep, now)
        }
        (None, Some((from, to))) => {
            if !ours.has_cluster(from) {
                return Ok(Answer::Refused(vec![unknown(from, "the book")]));
            }
            if let Some(finding) = unfinished(&ours, from) {
                return Ok(Answer::Refused(vec![finding]));
            }
            mooring_book::rename(&ours, from, to)
        }
        (None, None) => Merge::default(),
    };
    let decided = request.keep.is_some() && merge.undecided == 0;
    if merge.clashes.is_empty() || decided {
        return Ok(Answer::Merged(merge));
    }
    let clashes = merge.clashes.iter();
    Ok(Answer::Refused(
        clashes.map(|clash| clash.finding(rfc3339)).collect(),
    ))
}

fn unknown(cluster: &str, place: &str) -> Finding {
    let message = format!("{place} knows no cluster {cluster}");
    Finding::error(Code::MissingCluster, message)
        .help("write the name as `moor who-has` and `moor book export` show it")
}

/// A run that reserved something for the cluster would commit it under the old name.
fn unfinished(ours: &Content, cluster: &str) -> Option<Finding> {
    let of_it = |l: &&Lease| l.holder.cluster == cluster;
    let mut ends = ours.leases.iter().filter(of_it).filter_map(|l| {
        let State::Reserved { until, .. } = l.state else {
            return None;
        };
        Some(until)
    });
    let first = ends.next()?;
    let until = rfc3339(ends.fold(first, Ord::max));
    let message =
        format!("a run for cluster {cluster} has not ended; what it reserved lapses at {until}");
    let help = "let it end, or render its package again, and then rename";
    Some(Finding::error(Code::BookBusy, message).help(help))
}

fn tell(
    args: &ImportArgs,
    merge: &Merge,
    book: &Book,
    output: &mut Output,
) -> anyhow::Result<Exit> {
    let amendment = &merge.amendment;
    let renames = args.from.is_none();
    let key = |lease: &Lease| (lease.instance.clone(), lease.thing);
    let mut gone: BTreeMap<_, _> = amendment.drop.iter().map(|l| (key(l), l)).collect();
    let change = if renames { "renames" } else { "adds" };
    let mut lines = Vec::new();
    for lease in &amendment.put {
        let before = gone.remove(&key(lease));
        let before = before.map(|l| l.holder.to_string()).unwrap_or_default();
        lines.push(Line::new(change, lease, before));
    }
    let drops = gone.into_values();
    lines.extend(drops.map(|lease| Line::new("drops", lease, String::new())));
    output.show(args.format.format, &lines, |lines| table(lines))?;
    let changed = !amendment.is_empty();
    let path = book.path().display();
    let said = if renames {
        format!("{path}: {} renamed", count(amendment.put.len(), "lease"))
    } else {
        let added = count(amendment.put.len(), "lease");
        format!("{path}: {added} added, {} the same", merge.same)
    };
    let clashes = count(merge.clashes.len(), "conflict");
    let decided = match args.keep {
        _ if merge.clashes.is_empty() => String::new(),
        Some(KeepArg::Theirs) => format!(", {clashes} decided for theirs"),
        Some(KeepArg::Ours) | None => format!(", {clashes} decided for ours"),
    };
    let end = match (changed, args.check) {
        (false, _) => ": unchanged",
        (true, true) => "; that is what would be, nothing was written",
        (true, false) => "",
    };
    output.say(&format!("{said}{decided}{end}"));
    Ok(if changed && args.check {
        Exit::WouldChange
    } else {
        Exit::Done
    })
}

/// `OLD=NEW`.
fn pair(text: &str) -> Result<(String, String), Usage> {
    let names = text.split_once('=');
    let names = names.filter(|(a, b)| !a.is_empty() && !b.is_empty() && a != b && !b.contains('='));
    names
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .ok_or_else(|| {
            let message = format!("--rename-cluster {text:?} does not name two clusters");
            Usage::new(message, "write OLD=NEW")
        })
}

/// Another book, or the text of one.
fn theirs(
    from: &Path,
    arg: &BookArg,
    world: &World,
) -> anyhow::Result<Result<Content, Vec<Finding>>> {
    if !from.is_file() {
        let message = format!("there is no file {}", from.display());
        let help = "FILE is what `moor book export` wrote, a backup, or another book";
        return Err(Usage::new(message, help).into());
    }
    let shown = from.display().to_string();
    let reading = || format!("cannot read {shown}");
    let mut file = File::open(from).with_context(reading)?;
    let mut begin = [0; 4];
    let length = file.metadata().with_context(reading)?.len();
    if length >= 4 {
        file.read_exact(&mut begin).with_context(reading)?;
    }
    if is_book(&begin) {
        drop(file);
        let store = FileStore::open_to_read(from, &world.book_options(arg))?;
        return Ok(Ok(Content::of(&store)?));
    }
    if length > LARGEST_TEXT {
        let message = format!("{shown} is larger than {} MiB", LARGEST_TEXT >> 20);
        let help = "import the book itself, or a backup of it, instead of its text";
        let finding = Finding::error(Code::FileTooLarge, message).help(help);
        return Ok(Err(vec![finding.located(shown, 1, 1)]));
    }
    drop(file);
    let bytes = std::fs::read(from).with_context(reading)?;
    let Ok(text) = String::from_utf8(bytes) else {
        let message = format!("{shown} is neither a book nor text");
        let help = "name a file that `moor book export` wrote, or a book";
        let finding = Finding::error(Code::ImportInvalid, message).help(help);
        return Ok(Err(vec![finding.located(shown, 1, 1)]));
    };
    Ok(mooring_book::read_text(&text, &shown))
}
