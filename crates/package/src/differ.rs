//! Where a book and rendered packages disagree, and why: what `rebuild` says besides what it puts back.
//!
//! ```text
//!  the package says A, the book has A for it      nothing to do
//!  the package says A, the book has nothing       put back
//!  the package says A, the book has B for it      differs: the book is kept
//!  the package says A, somebody else has it       a duplicate: the one in the book is kept
//!  the book has B, the package says nothing       differs: a removed Interface, or a lost status
//! ```
//!
//! Easy to get wrong: putting A back beside B would give one identity two addresses, and the next render would choose.

use std::collections::{BTreeMap, BTreeSet};

use mooring_api::{Code, Finding, Time};
use mooring_book::Conflict;
use mooring_ipam::{Holder, InstanceKey, Lease, State, Table};

/// What the packages that were read say.
#[derive(Debug, Default)]
pub(crate) struct Said {
    /// Leases, as their claims tell them.
    pub(crate) leases: Vec<Lease>,
    /// Holders whose claim tells nothing.
    pub(crate) silent: Vec<(InstanceKey, Holder)>,
    /// Holders that the agent serves when their pod starts: what the book has for them stands in no package.
    pub(crate) at_pod_start: Vec<(InstanceKey, Holder)>,
    /// Cluster and id of every package.
    pub(crate) packages: BTreeSet<(String, String)>,
}

/// What comes of comparing.
#[derive(Debug, Default)]
pub(crate) struct Differ {
    /// What can be put back, or is there.
    pub(crate) restore: Vec<Lease>,
    /// Whether that would change the book.
    pub(crate) changes: bool,
    /// What the store will find in the way.
    pub(crate) conflicts: Vec<Finding>,
    /// Where book and package disagree about one holder.
    pub(crate) findings: Vec<Finding>,
}

/// Compares what the book has with what packages say.
pub(crate) fn differ(known: &[Lease], said: Said, now: Time) -> Differ {
    let mut out = Differ::default();
    let mut own: BTreeMap<(&InstanceKey, &Holder), Vec<&Lease>> = BTreeMap::new();
    let mut tables: BTreeMap<InstanceKey, Table> = BTreeMap::new();
    for lease in known {
        let table = tables.entry(lease.instance.clone());
        let table = table.or_insert_with(|| Table::new(lease.instance.clone()));
        let rested = matches!(lease.state, State::Cooling { until } if until <= now);
        if !rested {
            // A book never holds two that overlap.
            let _ = table.insert(lease.clone());
        }
        if lease.state == State::Held {
            let key = (&lease.instance, &lease.holder);
            own.entry(key).or_default().push(lease);
        }
    }
    let mut told: BTreeSet<_> = said.at_pod_start.into_iter().collect();
    for lease in said.leases {
        told.insert((lease.instance.clone(), lease.holder.clone()));
        let has = own.get(&(&lease.instance, &lease.holder));
        let kind = std::mem::discriminant(&lease.thing);
        let alike = has.into_iter().flatten();
        let alike: Vec<_> = alike
            .filter(|l| std::mem::discriminant(&l.thing) == kind)
            .collect();
        if let Some(other) = alike.first()
            && alike.iter().all(|l| l.thing != lease.thing)
        {
            let Lease { thing, holder, .. } = &lease;
            let message = format!(
                "{holder}: the package says {thing}, the book has {}: the package was rendered with another book, or \
                 restored from before its last render",
                other.thing
            );
            let help = format!(
                "if the package is right: moor release {} --force, and rebuild again; if the book is: render the package",
                other.thing
            );
            out.findings
                .push(Finding::warning(Code::AddressDiffers, message).help(help));
            continue;
        }
        let table = tables.entry(lease.instance.clone());
        let table = table.or_insert_with(|| Table::new(lease.instance.clone()));
        let blocker = table.blocker(&lease.thing, lease.subnet, &lease.holder);
        if let Some(has) = blocker.filter(|b| b.holder != lease.holder) {
            let wanted = lease.clone();
            out.conflicts.push(Conflict { wanted, has }.finding());
        } else {
            let _ = table.insert(lease.clone());
            out.changes |= alike.is_empty();
        }
        out.restore.push(lease);
    }
    let silent: BTreeSet<_> = said.silent.into_iter().collect();
    for lease in known.iter().filter(|l| l.state == State::Held) {
        let Lease {
            instance,
            thing,
            holder,
            ..
        } = lease;
        let of_them = (holder.cluster.clone(), holder.package.clone());
        let key = (instance.clone(), holder.clone());
        if !said.packages.contains(&of_them) || told.contains(&key) {
            continue;
        }
        let (why, help) = if silent.contains(&key) {
            (
                "the package says none: its status was lost, or it was never rendered",
                "render the package; it gets the book's address",
            )
        } else {
            (
                "the package has no such interface: it was removed, and the package not rendered with this book since",
                "render the package; the address goes back to its pool",
            )
        };
        let message = format!("{holder}: the book has {thing}, {why}");
        out.findings
            .push(Finding::warning(Code::AddressDiffers, message).help(help));
    }
    for (instance, holder) in silent {
        if !own.contains_key(&(&instance, &holder)) {
            let message = format!(
                "{holder} in {instance}: neither the package nor the book has an address; its next render chooses one"
            );
            out.findings
                .push(Finding::info(Code::AddressDiffers, message));
        }
    }
    out
}
