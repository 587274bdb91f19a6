//! `moor pool …`: what there is to take from, how full it is, and how it is changed.

mod change;
mod draw;
mod map;
mod svg;

use std::collections::BTreeMap;

use mooring_api::{Finding, Time};
use mooring_book::{Filter, PackageRecord, Store as _};
use mooring_ipam::{InstanceKey, Pools, Usage};
use serde::Serialize;

use crate::args::{PoolCommand, PoolListArgs};
use crate::output::{Output, Table, exit_of};
use crate::world::{self, Access, Book, Exit, World};

/// One pool, in addresses: `size` is the sum of the five that follow it.
#[derive(Serialize)]
struct Row {
    network: String,
    prefix: String,
    /// The IPPrefix, or the NetworkInstance that serves from its own.
    name: String,
    size: u128,
    /// What nobody is given: outside of the ranges, excluded, the gateway, or kept for a claim that has not come.
    aside: u128,
    used: u128,
    reserved: u128,
    cooling: u128,
    free: u128,
    /// Per mille of what is not aside.
    #[serde(rename = "fullPerMille")]
    full: u128,
    #[serde(rename = "largestFree")]
    largest_free: Option<String>,
    /// Nothing new is handed out.
    drained: bool,
    /// Who has most.
    holders: Vec<Share>,
    /// Taken from it, but it does not cover them any more.
    outside: Vec<Stray>,
    /// In it, but where its ranges and exclusions give nothing.
    unlisted: Vec<Stray>,
}

/// Somebody's part of a pool.
#[derive(Serialize)]
struct Share {
    holder: String,
    addresses: u128,
}

/// A lease that is not where it should be.
#[derive(Serialize)]
struct Stray {
    address: String,
    holder: String,
}

pub(crate) fn run(
    command: &PoolCommand,
    world: &World,
    output: &mut Output,
) -> anyhow::Result<Exit> {
    match command {
        PoolCommand::List(args) => list(args, world, output),
        PoolCommand::Map(args) => map::run(args, world, output),
        PoolCommand::Grow(args) => change::grow(args, world, output),
        PoolCommand::Shrink(args) => change::shrink(args, world, output),
        PoolCommand::Split(args) => change::split(args, world, output),
        PoolCommand::Drain(args) => change::drain(args, world, output),
        PoolCommand::Renumber(args) => change::renumber(args, world, output),
    }
}

fn list(args: &PoolListArgs, world: &World, output: &mut Output) -> anyhow::Result<Exit> {
    let mgmt = world.needed_mgmt(&args.mgmt)?;
    let management = mooring_package::management(&mgmt)?;
    if management.findings.iter().any(Finding::is_error) {
        output.findings(&management.findings);
        return Ok(Exit::Wrong);
    }
    let wanted = args.network.as_deref().map(super::claim::instance);
    let book = world.book(&args.book, Some(&mgmt), Access::Read);
    let names = Names::of(&book.packages()?);
    let usages = usages(&management.pools, &book, wanted.as_ref(), &names, world.now)?;
    let rows: Vec<Row> = usages.iter().map(|(key, usage)| row(key, usage)).collect();
    if let (Some(wanted), true) = (&wanted, rows.is_empty()) {
        let known: Vec<String> = management
            .pools
            .instances
            .keys()
            .map(ToString::to_string)
            .collect();
        let help = format!("there are {}", known.join(", "));
        return Err(world::Usage::new(
            format!("no pool belongs to the network instance {wanted}"),
            help,
        )
        .into());
    }
    output.show(args.format.format, &rows, |rows| table(rows))?;
    let mut findings = management.findings;
    findings.extend(usages.iter().flat_map(|(_, usage)| usage.findings()));
    let findings: Vec<Finding> = findings.iter().map(|f| names.finding(f)).collect();
    output.findings(&findings);
    if rows.is_empty() {
        output.say(&format!("there is no IPPrefix in {}", mgmt.display()));
    }
    Ok(exit_of(&findings))
}

/// What is taken in one instance.
fn taken(book: &Book, instance: &InstanceKey) -> Result<mooring_ipam::Table, mooring_book::Error> {
    let mut taken = mooring_ipam::Table::new(instance.clone());
    let filter = Filter {
        instance: Some(instance.clone()),
        ..Filter::default()
    };
    let leases = mooring_book::as_reserved(book.leases(&filter)?, &book.reservations()?);
    for lease in leases {
        // The book never holds two leases that overlap, so none is refused here.
        let _ = taken.insert(lease);
    }
    Ok(taken)
}

/// One per prefix, by instance. Packages are called by their names.
fn usages(
    pools: &Pools,
    book: &Book,
    wanted: Option<&InstanceKey>,
    names: &Names,
    now: Time,
) -> Result<Vec<(InstanceKey, Usage)>, mooring_book::Error> {
    let mut all = Vec::new();
    let instances = pools.instances.keys();
    for instance in instances.filter(|key| wanted.is_none_or(|w| w == *key)) {
        for mut usage in pools.usage(&taken(book, instance)?, now) {
            for (holder, _) in &mut usage.holders {
                *holder = names.group(holder);
            }
            all.push((instance.clone(), usage));
        }
    }
    Ok(all)
}

/// What people call the packages.
struct Names(BTreeMap<String, String>);

impl Names {
    fn of(packages: &[PackageRecord]) -> Self {
        let named = packages.iter().map(|p| {
            let (id, name) = (&p.id, &p.name);
            (
                format!("{} / {id}", p.cluster),
                format!("{} / {name}", p.cluster),
            )
        });
        Self(named.collect())
    }

    /// `cluster / package`, by its name.
    fn group(&self, told: &str) -> String {
        self.0.get(told).cloned().unwrap_or_else(|| told.to_owned())
    }

    /// A sentence, with names instead of ids.
    fn finding(&self, finding: &Finding) -> Finding {
        let mut finding = finding.clone();
        for (id, name) in &self.0 {
            if finding.message.contains(id) {
                finding.message = finding.message.replace(id, name);
            }
        }
        finding
    }

    /// A whole holder.
    fn holder(&self, holder: &mooring_ipam::Holder) -> String {
        let group = format!("{} / {}", holder.cluster, holder.package);
        match self.0.get(&group) {
            Some(name) => holder.to_string().replacen(&group, name, 1),
            None => holder.to_string(),
        }
    }
}

fn row(instance: &InstanceKey, usage: &Usage) -> Row {
    let size = usage.prefix.range().count();
    let taken = usage.used + usage.reserved + usage.cooling;
    let open = taken + usage.free;
    let strays = |leases: &[mooring_ipam::Lease]| {
        let stray = leases.iter().map(|l| Stray {
            address: l.thing.to_string(),
            holder: l.holder.to_string(),
        });
        stray.collect()
    };
    Row {
        network: instance.to_string(),
        prefix: usage.prefix.to_string(),
        name: usage.origin.name.clone(),
        size,
        aside: size.saturating_sub(open),
        used: usage.used,
        reserved: usage.reserved,
        cooling: usage.cooling,
        free: usage.free,
        full: per_mille(taken, open),
        largest_free: usage.largest_free.map(|c| c.to_string()),
        drained: usage.drain,
        holders: usage
            .holders
            .iter()
            .map(|(holder, addresses)| Share {
                holder: holder.clone(),
                addresses: *addresses,
            })
            .collect(),
        outside: strays(&usage.outside),
        unlisted: strays(&usage.unlisted),
    }
}

/// Rounded up, so that only an empty pool shows nothing, but never to the whole while something is left.
fn per_mille(part: u128, whole: u128) -> u128 {
    match whole {
        0 => 1000,
        // An IPv6 subnet is too large to multiply.
        _ if whole > u128::MAX / 1000 => part / (whole / 1000),
        _ if part < whole => (part * 1000).div_ceil(whole).min(999),
        _ => 1000,
    }
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        "network",
        "prefix",
        "full",
        ">size",
        ">aside",
        ">used",
        ">reserved",
        ">cooling",
        ">free",
        "largest free",
        "most held by",
    ]);
    for row in rows {
        let taken = [row.used, row.reserved, row.cooling];
        let [used, reserved, cooling] = taken.map(|n| n.to_string());
        let [size, aside, free] = [row.size, row.aside, row.free].map(|n| n.to_string());
        let holders = row
            .holders
            .iter()
            .map(|s| format!("{}: {}", s.holder, s.addresses));
        let prefix = match (row.drained, row.outside.len() + row.unlisted.len()) {
            (true, _) => format!("{} (drained)", row.prefix),
            (false, 0) => row.prefix.clone(),
            (false, outside) => format!("{} ({outside} outside)", row.prefix),
        };
        table.row([
            row.network.clone(),
            prefix,
            bar(row.full),
            size,
            aside,
            used,
            reserved,
            cooling,
            free,
            row.largest_free.clone().unwrap_or_default(),
            holders.collect::<Vec<_>>().join(", "),
        ]);
    }
    table
}

/// `[####······] 42.0 %`: something taken is at least one mark, and something free at least one dot.
fn bar(per_mille: u128) -> String {
    let marks = match per_mille {
        0 => 0,
        1000.. => 10,
        some => usize::try_from(some / 100).unwrap_or(9).clamp(1, 9),
    };
    let (whole, tenth) = (per_mille / 10, per_mille % 10);
    format!(
        "[{}{}] {whole}.{tenth} %",
        "#".repeat(marks),
        "·".repeat(10 - marks)
    )
}

#[cfg(test)]
mod tests {
    use super::{bar, per_mille};

    #[test]
    fn only_an_empty_pool_shows_zero_and_only_a_full_one_shows_all() {
        assert_eq!(per_mille(0, 180), 0);
        assert_eq!(per_mille(1, 1 << 64), 1);
        assert_eq!(per_mille(180, 180), 1000);
        assert_eq!(per_mille(0, 0), 1000);
        assert_eq!(per_mille(9_999, 10_000), 999);
        assert_eq!(per_mille(u128::MAX, u128::MAX), 1000);
    }

    #[test]
    fn a_bar_tells_nothing_little_and_all_apart() {
        assert_eq!(bar(0), "[··········] 0.0 %");
        assert_eq!(bar(1), "[#·········] 0.1 %");
        assert_eq!(bar(420), "[####······] 42.0 %");
        assert_eq!(bar(999), "[#########·] 99.9 %");
        assert_eq!(bar(1000), "[##########] 100.0 %");
    }
}
