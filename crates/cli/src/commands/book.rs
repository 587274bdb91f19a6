//! `moor book …`: the book itself. Rebuilding it and reading its trail are here; carrying a whole one is below.

mod copy;
mod merge;

use mooring_book::{AuditFilter, Entry, Store as _};
use serde::Serialize;

use crate::args::{AuditArgs, RebuildArgs};
use crate::moment::Moment;
use crate::output::{Output, Table, count, exit_of, rfc3339};
use crate::world::{Access, Book, Exit, Usage, World};

pub(crate) use copy::{backup, restore};
pub(crate) use merge::{export, import};

/// Puts the leases of rendered packages back.
pub(crate) fn rebuild(
    args: &RebuildArgs,
    world: &World,
    output: &mut Output,
) -> anyhow::Result<Exit> {
    if let Some(absent) = args.sources.iter().find(|s| !s.exists()) {
        let message = format!("{} does not exist", absent.display());
        return Err(Usage::new(
            message,
            "PATH is a rendered package, or a directory of them",
        )
        .into());
    }
    let mgmt = world.mgmt(&args.mgmt)?;
    let access = if args.check {
        Access::Read
    } else {
        Access::Write
    };
    let book = world.book(&args.book, mgmt.as_deref(), access);
    let report = mooring_package::rebuild(&book, &args.sources, world.now, args.check)?;
    output.show(args.format.format, &report, |r| {
        super::render::got(&r.packages)
    })?;
    output.findings(&report.findings);
    let interfaces: usize = report.packages.iter().map(|p| p.interfaces.len()).sum();
    let size = format!(
        "{}, {}",
        count(report.packages.len(), "package"),
        count(interfaces, "interface")
    );
    let path = book.path().display();
    output.say(&match (report.book_changed, args.check) {
        (false, _) => format!("{size}: {path} is complete"),
        (true, true) => format!("{size}: {path} misses some of this; run again without --check"),
        (true, false) => format!("{size}: {path} is complete again"),
    });
    Ok(match exit_of(&report.findings) {
        Exit::Done if args.check && report.book_changed => Exit::WouldChange,
        exit => exit,
    })
}

/// One line of the trail, as it is shown.
#[derive(Serialize)]
struct Line {
    at: String,
    event: String,
    network: String,
    thing: String,
    holder: String,
}

impl From<&Entry> for Line {
    fn from(entry: &Entry) -> Self {
        Self {
            at: rfc3339(entry.at),
            event: format!("{:?}", entry.event).to_lowercase(),
            network: entry.instance.to_string(),
            thing: entry.thing.to_string(),
            holder: entry.holder.to_string(),
        }
    }
}

/// Which entries are asked for.
fn filter(args: &AuditArgs, book: &Book, world: &World) -> anyhow::Result<AuditFilter> {
    let since = args.since.as_deref();
    let since = since
        .map(|text| Moment::parse(text, "--since"))
        .transpose()?;
    let package = match &args.package {
        Some(name) => {
            // People know packages by name, the trail by id.
            let records = book.packages()?;
            let named = records.iter().find(|p| p.name == *name);
            Some(named.map_or_else(|| name.clone(), |p| p.id.clone()))
        }
        None => None,
    };
    Ok(AuditFilter {
        instance: None,
        addr: args.address,
        package,
        cluster: args.cluster.clone(),
        holder: args.holder.clone(),
        since: since.map(|moment| moment.begin(world.now)),
    })
}

/// Who took and freed what, newest first.
pub(crate) fn audit(args: &AuditArgs, world: &World, output: &mut Output) -> anyhow::Result<Exit> {
    let mgmt = world.mgmt(&args.mgmt)?;
    let book = world.book(&args.book, mgmt.as_deref(), Access::Read);
    let entries = if book.exists() {
        book.audit(&filter(args, &book, world)?, args.limit)?
    } else {
        output.say(&format!(
            "there is no book at {} yet",
            book.path().display()
        ));
        Vec::new()
    };
    let lines: Vec<Line> = entries.iter().rev().map(Line::from).collect();
    output.show(args.format.format, &lines, |lines| {
        let mut table = Table::new(["at", "event", "network", "what", "holder"]);
        for line in lines {
            let Line {
                at,
                event,
                network,
                thing,
                holder,
            } = line;
            table.row([at, event, network, thing, holder].map(Clone::clone));
        }
        table
    })?;
    Ok(Exit::Done)
}
