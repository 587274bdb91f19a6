//! What each pool says of itself. Pure.
//!
//! An error finding on an object means that it is not ready; a warning (it is full) is the reason of a condition that stays
//! True, since who has an address keeps it.

use std::collections::BTreeMap;

use mooring_api::{Finding, ObjectRef};
use mooring_ipam::{InstanceKey, Kind, Usage};

use super::super::claims::join;
use super::super::status::Verdict;
use super::gather::Gathered;

/// How many ids a VLANIndex hands out: 2 to 4094.
const VLANS: u128 = 4093;

/// What a pool has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fill {
    pub(super) size: u128,
    pub(super) used: u128,
    /// Reserved by drafts, or resting.
    pub(super) reserved: u128,
    pub(super) free: u128,
}

/// What is said about pools.
pub(super) struct Rows {
    /// By kind, namespace and name, whatever the group: an IPPrefix or a NetworkInstance.
    pub(super) fills: BTreeMap<(&'static str, String, String), Fill>,
    /// Of each prefix, for the gauges: instance, prefix.
    pub(super) gauges: Vec<(InstanceKey, String, Fill)>,
    warnings: BTreeMap<ObjectRef, Finding>,
    errors: BTreeMap<ObjectRef, Finding>,
}

impl Fill {
    fn of(usage: &Usage) -> Self {
        Self {
            size: usage.size,
            used: usage.used,
            reserved: usage.reserved + usage.cooling,
            free: usage.free,
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            size: self.size.saturating_add(other.size),
            used: self.used.saturating_add(other.used),
            reserved: self.reserved.saturating_add(other.reserved),
            free: self.free.saturating_add(other.free),
        }
    }

    /// The share that is not free, from 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "a gauge is a rough number")]
    pub(super) fn ratio(self) -> f64 {
        if self.size == 0 {
            return 0.0;
        }
        1.0 - self.free as f64 / self.size as f64
    }
}

pub(super) fn decide(gathered: &Gathered) -> Rows {
    let mut rows = Rows {
        fills: BTreeMap::new(),
        gauges: Vec::new(),
        warnings: BTreeMap::new(),
        errors: BTreeMap::new(),
    };
    for (object, findings) in &gathered.known.findings {
        if let Some(error) = findings.iter().find(|f| f.is_error()) {
            rows.errors.insert(object.clone(), error.clone());
        }
    }
    for (key, usage) in &gathered.usage {
        let mut sum = Fill::default();
        // What lies in an aggregate is counted where it lies.
        let alone = usage.iter().all(|u| u.kind == Kind::Aggregate);
        for row in usage {
            let fill = Fill::of(row);
            if alone || row.kind != Kind::Aggregate {
                sum = sum.and(fill);
            }
            rows.gauges
                .push((key.clone(), row.prefix.to_string(), fill));
            if row.origin.kind == "IPPrefix" {
                let name = (row.origin.namespace.clone(), row.origin.name.clone());
                rows.fills.insert(("IPPrefix", name.0, name.1), fill);
            }
            for finding in row.findings() {
                rows.warnings.entry(row.origin.clone()).or_insert(finding);
            }
        }
        let name = (key.namespace().to_owned(), key.name().to_owned());
        rows.fills.insert(("NetworkInstance", name.0, name.1), sum);
    }
    for (key, (used, reserved)) in &gathered.vlans {
        let fill = Fill {
            size: VLANS,
            used: *used,
            reserved: *reserved,
            free: VLANS.saturating_sub(used + reserved),
        };
        let name = (key.namespace().to_owned(), key.name().to_owned());
        rows.fills.insert(("VLANIndex", name.0, name.1), fill);
        rows.gauges.push((key.clone(), "vlan".to_owned(), fill));
    }
    rows
}

impl Rows {
    /// What a pool's condition says.
    pub(super) fn verdict(&self, object: &ObjectRef) -> Verdict {
        let (finding, ready) = match (self.errors.get(object), self.warnings.get(object)) {
            (Some(error), _) => (Some(error), false),
            (None, warning) => (warning, true),
        };
        match finding {
            Some(finding) => Verdict {
                ready,
                reason: finding.code.as_str(),
                message: join(&finding.message, &finding.help),
            },
            None => Verdict {
                ready,
                reason: "Ready",
                message: String::new(),
            },
        }
    }
}
