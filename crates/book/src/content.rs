//! Everything a book holds, as a value: what an export writes, what an import and a restore compare.
//!
//! Easy to get wrong: two books of the same content can differ in bytes. Contents are compared, files never.

use std::collections::BTreeMap;

use mooring_ipam::{Holder, InstanceKey, Lease, State, Thing};
use serde::Serialize;

use crate::audit::{AuditFilter, Entry};
use crate::error::Error;
use crate::keep::TRAIL;
use crate::reservation::Reservation;
use crate::store::{Filter, PackageRecord, Store};

/// What a book holds. Each part is sorted as its store gives it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// Leases, by instance, then thing.
    pub leases: Vec<Lease>,
    /// What was reserved by hand, by instance, then thing.
    pub reservations: Vec<Reservation>,
    /// Packages, by cluster, then id.
    pub packages: Vec<PackageRecord>,
    /// The trail, oldest first.
    pub audit: Vec<Entry>,
}

/// What one lease is in two books.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Difference {
    /// A holder gets something.
    Gains(Lease),
    /// A holder has it no more.
    Loses(Lease),
    /// It is somebody else's.
    Passes {
        /// Whose it was.
        from: Lease,
        /// Whose it will be.
        to: Lease,
    },
    /// The same holder, and another state or end.
    Changes {
        /// As it was.
        from: Lease,
        /// As it will be.
        to: Lease,
    },
}

impl Content {
    /// Reads a book. Two leases that overlap are [`Error::Unusable`], so what comes back is whole.
    pub fn of(store: &dyn Store) -> Result<Self, Error> {
        Ok(Self {
            leases: store.leases(&Filter::default())?,
            reservations: store.reservations()?,
            packages: store.packages()?,
            audit: store.audit(&AuditFilter::default(), TRAIL)?,
        })
    }

    /// Who gains, loses or changes what when this becomes `after`; times and package records are not told.
    pub fn differences(&self, after: &Self) -> Vec<Difference> {
        let by_thing = |content: &Self| -> BTreeMap<(InstanceKey, Thing), Lease> {
            let leases = content.leases.iter();
            leases
                .map(|l| ((l.instance.clone(), l.thing), l.clone()))
                .collect()
        };
        let (was, mut will) = (by_thing(self), by_thing(after));
        let mut out = Vec::new();
        for (key, from) in was {
            let Some(to) = will.remove(&key) else {
                out.push(Difference::Loses(from));
                continue;
            };
            if from.holder != to.holder {
                out.push(Difference::Passes { from, to });
            } else if word(from.state) != word(to.state) {
                out.push(Difference::Changes { from, to });
            }
        }
        out.extend(will.into_values().map(Difference::Gains));
        out.sort_by_key(|d| (d.lease().instance.clone(), d.lease().thing));
        out
    }

    /// The leases, package records and reservations of a cluster.
    pub fn has_cluster(&self, cluster: &str) -> bool {
        self.leases.iter().any(|l| l.holder.cluster == cluster)
            || self.packages.iter().any(|p| p.cluster == cluster)
    }

    /// Calls a cluster by another name. What is in its way shows when the content is merged.
    #[must_use]
    pub fn with_cluster_renamed(mut self, from: &str, to: &str) -> Self {
        let rename = |holder: &mut Holder| {
            if holder.cluster == from {
                to.clone_into(&mut holder.cluster);
            }
        };
        for lease in &mut self.leases {
            rename(&mut lease.holder);
        }
        for entry in &mut self.audit {
            rename(&mut entry.holder);
        }
        for package in &mut self.packages {
            if package.cluster == from {
                to.clone_into(&mut package.cluster);
            }
        }
        self.packages
            .sort_by(|a, b| (&a.cluster, &a.id).cmp(&(&b.cluster, &b.id)));
        self
    }
}

impl Difference {
    /// What it is about.
    pub fn lease(&self) -> &Lease {
        match self {
            Self::Gains(lease) | Self::Loses(lease) => lease,
            Self::Passes { to, .. } | Self::Changes { to, .. } => to,
        }
    }
}

/// The state without its end.
fn word(state: State) -> &'static str {
    match state {
        State::Held => "held",
        State::Reserved { .. } => "reserved",
        State::Cooling { .. } => "cooling",
    }
}
