//! `moor pool list`: every pool, its size, and what is left.

use mooring_api::{Finding, Time};
use mooring_book::{Filter, Store as _};
use mooring_ipam::{InstanceKey, Pools, Usage};
use serde::Serialize;

use crate::args::PoolListArgs;
use crate::output::{Output, Table, exit_of};
use crate::world::{self, Access, Book, Exit, World};

/// One pool, in addresses: `size` is the sum of the five that follow it.
#[derive(Serialize)]
struct Row {
    network: String,
    prefix: String,
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
}

pub(crate) fn list(
    args: &PoolListArgs,
    world: &World,
    output: &mut Output,
) -> anyhow::Result<Exit> {
    let mgmt = world.needed_mgmt(&args.mgmt)?;
    let management = mooring_package::management(&mgmt)?;
    if management.findings.iter().any(Finding::is_error) {
        output.findings(&management.findings);
        return Ok(Exit::Wrong);
    }
    let wanted = args.network.as_deref().map(super::claim::instance);
    let book = world.book(&args.book, Some(&mgmt), Access::Read);
    let rows = rows(&management.pools, &book, wanted.as_ref(), world.now)?;
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
    output.findings(&management.findings);
    if rows.is_empty() {
        output.say(&format!("there is no IPPrefix in {}", mgmt.display()));
    }
    Ok(exit_of(&management.findings))
}

/// One row per prefix, by instance.
fn rows(
    pools: &Pools,
    book: &Book,
    wanted: Option<&InstanceKey>,
    now: Time,
) -> Result<Vec<Row>, mooring_book::Error> {
    let mut rows = Vec::new();
    let instances = pools.instances.keys();
    for instance in instances.filter(|key| wanted.is_none_or(|w| w == *key)) {
        let mut taken = mooring_ipam::Table::new(instance.clone());
        let filter = Filter {
            instance: Some(instance.clone()),
            ..Filter::default()
        };
        for lease in book.leases(&filter)? {
            // The book never holds two leases that overlap, so none is refused here.
            let _ = taken.insert(lease);
        }
        rows.extend(
            pools
                .usage(&taken, now)
                .iter()
                .map(|usage| row(instance, usage)),
        );
    }
    Ok(rows)
}

fn row(instance: &InstanceKey, usage: &Usage) -> Row {
    let size = usage.prefix.range().count();
    let taken = usage.used + usage.reserved + usage.cooling;
    let open = taken + usage.free;
    Row {
        network: instance.to_string(),
        prefix: usage.prefix.to_string(),
        size,
        aside: size.saturating_sub(open),
        used: usage.used,
        reserved: usage.reserved,
        cooling: usage.cooling,
        free: usage.free,
        full: per_mille(taken, open),
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
        ">size",
        ">aside",
        ">used",
        ">reserved",
        ">cooling",
        ">free",
        ">full",
    ]);
    for row in rows {
        let taken = [row.used, row.reserved, row.cooling];
        let [used, reserved, cooling] = taken.map(|n| n.to_string());
        let [size, aside, free] = [row.size, row.aside, row.free].map(|n| n.to_string());
        let full = format!("{}.{}%", row.full / 10, row.full % 10);
        let (network, prefix) = (row.network.clone(), row.prefix.clone());
        table.row([
            network, prefix, size, aside, used, reserved, cooling, free, full,
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::per_mille;

    #[test]
    fn only_an_empty_pool_shows_zero_and_only_a_full_one_shows_all() {
        assert_eq!(per_mille(0, 180), 0);
        assert_eq!(per_mille(1, 1 << 64), 1);
        assert_eq!(per_mille(180, 180), 1000);
        assert_eq!(per_mille(0, 0), 1000);
        assert_eq!(per_mille(9_999, 10_000), 999);
        assert_eq!(per_mille(u128::MAX, u128::MAX), 1000);
    }
}
