//! `moor pool map PREFIX`: the pool as a field of cells, in the terminal, as SVG, or as data.

use std::path::Path;

use mooring_api::Finding;
use mooring_book::Store as _;
use mooring_ipam::{Cell, Map, Pools};
use mooring_package::disk::RealDisk;
use mooring_package::journal::{Change, CommitError, Plan, commit_files};
use serde::Serialize;

use super::{Names, draw, svg, taken};
use crate::args::{Format, PoolMapArgs, WhichArg};
use crate::output::{Output, Table, exit_of};
use crate::world::{Access, Exit, Usage, World};

/// Rows at most.
const ROWS: u32 = 16;

/// A part of the map that is not empty.
#[derive(Serialize)]
struct Part {
    first: String,
    last: String,
    held: u128,
    reserved: u128,
    cooling: u128,
    free: u128,
    who: Vec<String>,
}

pub(super) fn run(args: &PoolMapArgs, world: &World, output: &mut Output) -> anyhow::Result<Exit> {
    let mgmt = world.needed_mgmt(&args.mgmt)?;
    let management = mooring_package::management(&mgmt)?;
    if management.findings.iter().any(Finding::is_error) {
        output.findings(&management.findings);
        return Ok(Exit::Wrong);
    }
    let pools = &management.pools;
    let prefix = &pools.prefixes[find(pools, &args.which)?];
    let book = world.book(&args.book, Some(&mgmt), Access::Read);
    let table = taken(&book, &prefix.instance)?;
    let names = Names::of(&book.packages()?);
    // An IPv6 address in front of the row needs more room.
    let columns = if prefix.cidr.network().is_ipv6() {
        32
    } else {
        64
    };
    let name = |holder: &mooring_ipam::Holder| names.holder(holder);
    let map = pools.cells(prefix, &table, (columns, ROWS), &name, world.now);
    let title = format!(
        "{} ({}) of {}",
        prefix.cidr, prefix.origin.name, prefix.instance
    );
    match (&args.svg, args.format.format) {
        (Some(file), _) if file == Path::new("-") => output.data(&svg::svg(&title, &map))?,
        (Some(file), _) => {
            write(file, svg::svg(&title, &map).into_bytes(), output)?;
        }
        (None, Format::Table) => output.data(&draw::draw(&title, &map))?,
        (None, format) => output.show(format, &parts(&map), |_| Table::new([]))?,
    }
    output.findings(&management.findings);
    Ok(exit_of(&management.findings))
}

/// The one pool that is meant.
fn find(pools: &Pools, which: &WhichArg) -> Result<usize, Usage> {
    let network = which
        .network
        .as_deref()
        .map(crate::commands::claim::instance);
    let found = pools.find(&which.prefix, network.as_ref());
    match found.as_slice() {
        [one] => Ok(*one),
        [] => {
            let known = pools.prefixes.iter().take(8).map(|p| p.cidr.to_string());
            let known: Vec<String> = known.collect();
            let help = format!("there are {}; see moor pool list", known.join(", "));
            Err(Usage::new(
                format!("there is no pool {}", which.prefix),
                help,
            ))
        }
        _ => Err(Usage::new(
            format!("{} may be several pools", which.prefix),
            "say which with --network, or by the name of its IPPrefix",
        )),
    }
}

fn parts(map: &Map) -> Vec<Part> {
    let cells = map.rows.iter().flat_map(|row| &row.cells);
    let used = cells.filter(|cell| cell.taken() > 0);
    used.map(|cell: &Cell| Part {
        first: cell.range.first().to_string(),
        last: cell.range.last().to_string(),
        held: cell.held,
        reserved: cell.reserved,
        cooling: cell.cooling,
        free: cell.free(),
        who: cell.who.clone(),
    })
    .collect()
}

/// Written beside and renamed, as every file that we write.
fn write(file: &Path, bytes: Vec<u8>, output: &mut Output) -> anyhow::Result<()> {
    let (Some(name), Some(parent)) = (file.file_name(), file.parent()) else {
        return Err(Usage::new("--svg names no file", "name a file, or - for stdout").into());
    };
    let parent = if parent == Path::new("") {
        Path::new(".")
    } else {
        parent
    };
    let change = Change::Write {
        path: name.to_string_lossy().into_owned(),
        bytes,
    };
    let plan = Plan {
        root: parent.to_owned(),
        changes: vec![change],
        txn: None,
    };
    match commit_files(&RealDisk, &plan, |_| Ok(())) {
        Ok(_) => output.say(&format!("wrote {}", file.display())),
        Err(CommitError::Refused(findings)) => {
            let why = findings
                .first()
                .map(|f| f.message.clone())
                .unwrap_or_default();
            return Err(Usage::new(why, "name a file that can be written, or - for stdout").into());
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}
