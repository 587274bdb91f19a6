//! A package that went to another cluster in place: nothing on disk speaks for the old one any more, so
//! what it held there goes back. `render` calls this after every package is decided.
//!
//! Easy to get wrong: one package rendered with `--out` for several clusters lies at several paths, and
//! holds addresses in each of them. Only the same path for another cluster is a move.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use mooring_book::{Store, Txn};
use mooring_ipam::Pools;

use crate::Error;
use crate::decide::{Decided, cool_down};

/// Releases what moved packages held, and returns (cluster, id) of where they were.
pub(crate) fn give_back(
    store: &dyn Store,
    txn: &mut dyn Txn,
    decided: &[(PathBuf, &Decided)],
    pools: &Pools,
) -> Result<Vec<(String, String)>, Error> {
    let now: BTreeMap<&str, (&Path, &str)> = decided
        .iter()
        .filter_map(|(path, d)| {
            let cluster = d.outcome.cluster.as_ref()?;
            Some((d.id.as_str(), (path.as_path(), cluster.name.as_str())))
        })
        .collect();
    let mut moved = Vec::new();
    for record in store.packages()? {
        let Some((path, cluster)) = now.get(record.id.as_str()) else {
            continue;
        };
        if record.cluster == *cluster || Path::new(&record.path) != *path {
            continue;
        }
        forget(txn, &record.cluster, &record.id, pools)?;
        moved.push((record.cluster, record.id));
    }
    Ok(moved)
}

/// Releases what a package holds in a cluster, and forgets it.
pub(crate) fn forget(
    txn: &mut dyn Txn,
    cluster: &str,
    id: &str,
    pools: &Pools,
) -> Result<(), Error> {
    for lease in txn.held_by_package(cluster, id)? {
        txn.release(&lease.instance, &lease.thing, cool_down(pools, &lease))?;
    }
    txn.forget_package(cluster, id)?;
    Ok(())
}
