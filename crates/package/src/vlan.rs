//! A VLAN belongs to a network in a cluster. It goes back when no package there uses it any more.

use std::collections::{BTreeMap, BTreeSet};

use mooring_api::Span;
use mooring_blueprint::claim::vlan_holder;
use mooring_book::{Filter, Store, Txn};
use mooring_ipam::{InstanceKey, Thing};

use crate::Error;
use crate::decide::Decided;

/// Releases the VLANs of networks that the packages of this run used before and nobody uses now.
/// `moved` has (cluster, id) of packages that went elsewhere.
pub(crate) fn give_back(
    store: &dyn Store,
    txn: &mut dyn Txn,
    decided: &[Decided],
    moved: &[(String, String)],
) -> Result<(), Error> {
    let mut before: BTreeMap<(String, String), BTreeSet<InstanceKey>> = store
        .packages()?
        .into_iter()
        .filter(|p| !p.vlans.is_empty())
        .map(|p| ((p.cluster, p.id), p.vlans))
        .collect();
    let mut dropped = BTreeSet::new();
    for key in moved {
        for network in before.remove(key).unwrap_or_default() {
            dropped.insert((key.0.clone(), network));
        }
    }
    for package in decided {
        let Some(cluster) = &package.outcome.cluster else {
            continue;
        };
        let now = package.outcome.vlans.clone();
        let key = (cluster.name.clone(), package.id.clone());
        for network in before.remove(&key).unwrap_or_default().difference(&now) {
            dropped.insert((cluster.name.clone(), network.clone()));
        }
        if !now.is_empty() {
            before.insert(key, now);
        }
    }
    let used = |cluster: &str, network: &InstanceKey| {
        before
            .iter()
            .any(|((c, _), networks)| c == cluster && networks.contains(network))
    };
    for (cluster, network) in dropped.iter().filter(|(c, n)| !used(c, n)) {
        let holder = vlan_holder(network, cluster);
        for lease in store.leases(&Filter {
            cluster: Some(cluster.clone()),
            ..Filter::default()
        })? {
            if lease.holder == holder && matches!(lease.thing, Thing::Vlan(_)) {
                txn.release(&lease.instance, &lease.thing, Span::default())?;
            }
        }
    }
    Ok(())
}
