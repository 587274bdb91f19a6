//! `moor book backup FILE`, `moor book restore FILE`: one whole book out, and in.

use std::io::ErrorKind;
use std::path::Path;

use mooring_api::{Code, Finding};
use mooring_book::{Difference, RealDisk, Restoration};
use mooring_ipam::{Lease, State};
use serde::Serialize;

use crate::args::{BackupArgs, RestoreArgs};
use crate::output::{Output, Table, count, rfc3339};
use crate::world::{Exit, Usage, World};

/// Writes the book as one file.
pub(crate) fn backup(
    args: &BackupArgs,
    world: &World,
    output: &mut Output,
) -> anyhow::Result<Exit> {
    let mgmt = world.mgmt(&args.mgmt)?;
    let book = world.book_path(&args.book, mgmt.as_deref());
    different(&book, &args.to)?;
    if !book.exists() {
        let message = format!("there is no book at {}", book.display());
        return Err(Usage::new(message, "name it with --book, or with --mgmt").into());
    }
    if !args.force && args.to.exists() {
        output.findings(&[in_the_way(&args.to)]);
        return Ok(Exit::Wrong);
    }
    let options = world.book_options(&args.book);
    let done = mooring_book::backup(&RealDisk, &book, &args.to, args.force, &options);
    let content = match done {
        // Made by somebody since we looked.
        Err(mooring_book::Error::Unusable { source, .. }) if is_there(&*source) => {
            output.findings(&[in_the_way(&args.to)]);
            return Ok(Exit::Wrong);
        }
        done => done?,
    };
    output.say(&format!(
        "{} written: {}, {}, {}",
        args.to.display(),
        count(content.leases.len(), "lease"),
        count(content.reservations.len(), "reservation"),
        count(content.packages.len(), "package"),
    ));
    Ok(Exit::Done)
}

/// A file that would be overwritten.
pub(super) fn in_the_way(path: &Path) -> Finding {
    let message = format!("{} is there already; nothing was written", path.display());
    Finding::error(Code::FileInTheWay, message)
        .help("choose another name, or add --force to replace it")
}

fn is_there(cause: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    let io = cause.downcast_ref::<std::io::Error>();
    io.is_some_and(|e| e.kind() == ErrorKind::AlreadyExists)
}

fn different(book: &Path, other: &Path) -> Result<(), Usage> {
    let same = book.canonicalize().ok().zip(other.canonicalize().ok());
    if same.is_some_and(|(a, b)| a == b) {
        let message = format!("{} is the book itself", other.display());
        return Err(Usage::new(message, "name another file"));
    }
    Ok(())
}

/// One line of the preview.
#[derive(Serialize)]
pub(super) struct Line {
    pub(super) change: &'static str,
    pub(super) address: String,
    pub(super) network: String,
    pub(super) holder: String,
    /// Whose it was, or what it was.
    pub(super) before: String,
    pub(super) since: String,
}

impl Line {
    pub(super) fn new(change: &'static str, lease: &Lease, before: String) -> Self {
        Self {
            change,
            address: lease.thing.to_string(),
            network: lease.instance.to_string(),
            holder: lease.holder.to_string(),
            before,
            since: rfc3339(lease.since),
        }
    }
}

impl From<&Difference> for Line {
    fn from(difference: &Difference) -> Self {
        match difference {
            Difference::Gains(lease) => Self::new("gains", lease, String::new()),
            Difference::Loses(lease) => Self::new("loses", lease, String::new()),
            Difference::Passes { from, to } => Self::new("passes", to, from.holder.to_string()),
            Difference::Changes { from, to } => {
                let word = format!("{} → {}", word(from.state), word(to.state));
                Self::new("changes", to, word)
            }
        }
    }
}

fn word(state: State) -> &'static str {
    match state {
        State::Held => "held",
        State::Reserved { .. } => "reserved",
        State::Cooling { .. } => "cooling",
    }
}

pub(super) fn table(lines: &[Line]) -> Table {
    let mut table = Table::new(["change", "address", "network", "holder", "before", "since"]);
    for line in lines {
        let Line {
            change,
            address,
            network,
            holder,
            before,
            since,
        } = line;
        let change = (*change).to_owned();
        let [address, network, holder] = [address, network, holder].map(Clone::clone);
        table.row([
            change,
            address,
            network,
            holder,
            before.clone(),
            since.clone(),
        ]);
    }
    table
}

/// What is wrong with a backup is not mended by what mends a book.
fn about_the_backup(error: mooring_book::Error, from: &Path) -> mooring_book::Error {
    match error {
        mooring_book::Error::Unusable { path, source, .. } if Path::new(&path) == from => {
            let remedy =
                "name a file that `moor book backup` wrote; `moor book import` reads an export";
            mooring_book::Error::Unusable {
                path,
                remedy,
                source,
            }
        }
        other => other,
    }
}

/// Replaces the book by a backup.
pub(crate) fn restore(
    args: &RestoreArgs,
    world: &World,
    output: &mut Output,
) -> anyhow::Result<Exit> {
    let mgmt = world.mgmt(&args.mgmt)?;
    let book = world.book_path(&args.book, mgmt.as_deref());
    different(&book, &args.from)?;
    if !args.from.is_file() {
        let message = format!("there is no file {}", args.from.display());
        return Err(Usage::new(message, "FILE is what `moor book backup` wrote").into());
    }
    let options = world.book_options(&args.book);
    let restoration = Restoration::prepare(&book, &args.from, &options);
    let restoration = restoration.map_err(|error| about_the_backup(error, &args.from))?;
    let empty = mooring_book::Content::default();
    let before = match &restoration.before {
        Ok(Some(content)) => Some(content),
        Ok(None) => Some(&empty),
        Err(error) => {
            let text = format!("the book that is replaced cannot be read: {error}");
            output.say(&text);
            None
        }
    };
    let differences = before.unwrap_or(&empty).differences(&restoration.after);
    let lines: Vec<Line> = differences.iter().map(Line::from).collect();
    output.show(args.format.format, &lines, |lines| table(lines))?;
    let same = before == Some(&restoration.after);
    if same && restoration.previous().is_some() {
        output.say(&format!(
            "{} holds what {} holds: unchanged",
            book.display(),
            args.from.display()
        ));
        return Ok(Exit::Done);
    }
    let changes = count(lines.len(), "lease");
    if args.check {
        let text = format!("{changes} of {} would change", book.display());
        output.say(&text);
        return Ok(Exit::WouldChange);
    }
    let question = format!(
        "Replace {} by {}? {changes} would change.",
        book.display(),
        args.from.display()
    );
    if !args.yes && !world.confirm(&question, output)? {
        output.say("nothing was changed");
        return Ok(Exit::Done);
    }
    restoration.write(&RealDisk, &options)?;
    let kept = restoration.previous();
    let kept = kept.map(|path| format!("; what it was is {}", path.display()));
    output.say(&format!(
        "{} is restored, {changes} changed{}",
        book.display(),
        kept.unwrap_or_default()
    ));
    Ok(Exit::Done)
}
