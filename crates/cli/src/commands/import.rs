//! `moor import nephio PATH…`: what another system knows of addresses, into the book.
//!
//! Easy to get wrong: as with `moor book import`, what was decided from the book must be written to that book; where another
//! run was faster, all of it is done again.

use std::collections::BTreeSet;

use mooring_api::Finding;
use mooring_book::{Content, Merge, Store as _};
use mooring_ipam::{InstanceKey, Lease, Thing};
use serde::Serialize;

use crate::args::ImportNephioArgs;
use crate::output::{Output, Table, count, exit_of, rfc3339};
use crate::world::{Access, Exit, Usage, World};

/// One line of what was imported.
#[derive(Serialize)]
struct Line {
    address: String,
    network: String,
    /// `lease` of an identity, or `reserved` for an object.
    #[serde(rename = "as")]
    kind: &'static str,
    cluster: String,
    package: String,
    holder: String,
    /// Whether the book had it already.
    new: bool,
}

type Things<'a> = BTreeSet<(&'a InstanceKey, Thing)>;

impl Line {
    fn new(lease: &Lease, reserved: &Things<'_>, new: &Things<'_>) -> Self {
        let key = (&lease.instance, lease.thing);
        let holder = &lease.holder;
        Self {
            address: lease.thing.to_string(),
            network: lease.instance.to_string(),
            kind: if reserved.contains(&key) {
                "reserved"
            } else {
                "lease"
            },
            cluster: holder.cluster.clone(),
            package: holder.package.clone(),
            holder: if holder.package.is_empty() {
                holder.workload.clone()
            } else {
                holder.interface.clone()
            },
            new: new.contains(&key),
        }
    }
}

fn table(lines: &[Line]) -> Table {
    let mut table = Table::new([
        "address", "network", "as", "cluster", "package", "holder", "new",
    ]);
    for line in lines {
        let or_dash = |text: &str| match text {
            "" => "-".to_owned(),
            text => text.to_owned(),
        };
        table.row([
            line.address.clone(),
            line.network.clone(),
            line.kind.to_owned(),
            or_dash(&line.cluster),
            or_dash(&line.package),
            line.holder.clone(),
            if line.new { "yes" } else { "no" }.to_owned(),
        ]);
    }
    table
}

/// Reads, merges and writes, or says why not.
pub(crate) fn nephio(
    args: &ImportNephioArgs,
    world: &World,
    output: &mut Output,
) -> anyhow::Result<Exit> {
    if let Some(absent) = args.sources.iter().find(|s| !s.exists()) {
        let message = format!("{} does not exist", absent.display());
        let help = "PATH is a file that kubectl wrote, a rendered package, or a directory of them";
        return Err(Usage::new(message, help).into());
    }
    let mgmt = world.mgmt(&args.mgmt)?;
    let imported = mooring_package::import_nephio(&args.sources, mgmt.as_deref(), world.now);
    output.findings(&imported.findings);
    if exit_of(&imported.findings) == Exit::Wrong {
        output.say("nothing was imported");
        return Ok(Exit::Wrong);
    }
    let access = if args.check {
        Access::Read
    } else {
        Access::Write
    };
    let book = world.book(&args.book, mgmt.as_deref(), access);
    let merge = book.settle(|book| -> Result<Merge, mooring_book::Error> {
        // What has ended is nobody's.
        drop(book.begin(world.now)?);
        let merge = imported.merge(&Content::of(book)?, world.now);
        if merge.clashes.is_empty() && !merge.amendment.is_empty() && !args.check {
            book.amend(&merge.amendment, world.now)?;
        }
        Ok(merge)
    })?;
    if !merge.clashes.is_empty() {
        let clashes = merge.clashes.iter().map(|clash| clash.finding(rfc3339));
        let help = "release one of the two, or leave it out of what is imported";
        let clashes: Vec<Finding> = clashes.map(|f| f.help(help)).collect();
        output.findings(&clashes);
        output.say("nothing was imported");
        return Ok(Exit::Wrong);
    }
    let reservations = imported.reservations.iter();
    let reserved: Things<'_> = reservations.map(|r| (&r.instance, r.thing)).collect();
    let put = merge.amendment.put.iter();
    let new: Things<'_> = put.map(|l| (&l.instance, l.thing)).collect();
    let leases = imported.leases.iter();
    let lines: Vec<Line> = leases.map(|l| Line::new(l, &reserved, &new)).collect();
    output.show(args.format.format, &lines, |lines| table(lines))?;
    let changed = !merge.amendment.is_empty();
    let mut said = format!(
        "{}: {} imported, {} the same",
        book.path().display(),
        count(merge.amendment.put.len(), "lease"),
        merge.same
    );
    said += match (changed, args.check) {
        (false, _) => ": unchanged",
        (true, true) => "; that is what would be, nothing was written",
        (true, false) => "",
    };
    output.say(&said);
    if imported.pools > 0 {
        let pools = count(imported.pools, "entry").replace("entrys", "entries");
        output.say(&format!(
            "{pools} of pools: keep NetworkInstance, IPPrefix and Network objects in the management directory"
        ));
    }
    Ok(if changed && args.check {
        Exit::WouldChange
    } else {
        Exit::Done
    })
}
