//! What came out of it.

use std::collections::BTreeSet;
use std::fmt;

use mooring_api::Finding;
use mooring_attach::nad::Use;

use crate::carried::Carried;
use crate::input::{Input, Origin};

/// Findings, and how much was looked at.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// In the order of objects, then of addresses; the same for the same objects.
    pub found: Vec<Found>,
    /// What could not be judged, once per cluster: nothing to correct, but something to supply.
    pub unjudged: Vec<Found>,
    /// How much was looked at.
    pub summary: Summary,
}

/// A finding and where its object stands: the object alone may stand in many packages.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// What to tell. Its location is for the caller, who has the text, to fill in.
    pub finding: Finding,
    /// Where it is.
    pub origin: Origin,
}

/// How much was looked at, for the line at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Clusters.
    pub clusters: usize,
    /// Packages, counted per cluster.
    pub packages: usize,
    /// Objects.
    pub objects: usize,
    /// Different addresses that pods get.
    pub addresses: usize,
    /// Ranges that plugins hand out from.
    pub ranges: usize,
    /// Users that came second to an address.
    pub duplicates: usize,
    /// Ranges or addresses that meet a range of another cluster.
    pub overlaps: usize,
}

impl Report {
    /// The findings alone.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.found.iter().map(|found| &found.finding)
    }
}

impl Found {
    /// A finding about an object, at a field of it; an empty field is none.
    pub(crate) fn at(finding: Finding, origin: &Origin, field: &str) -> Self {
        let finding = finding.on(&origin.object);
        Self {
            finding: if field.is_empty() {
                finding
            } else {
                finding.at(field)
            },
            origin: origin.clone(),
        }
    }

    /// What findings are sorted by: never the order of the input.
    pub(crate) fn order(&self) -> (&Origin, &str, Option<&str>, &str) {
        let Finding {
            code,
            field,
            message,
            ..
        } = &self.finding;
        (&self.origin, code.as_str(), field.as_deref(), message)
    }
}

impl Summary {
    pub(crate) fn count(
        inputs: &[Input<'_>],
        carried: &[Carried<'_>],
        duplicates: usize,
        overlaps: usize,
    ) -> Self {
        let origins = || inputs.iter().map(|i| &i.origin);
        let clusters: BTreeSet<&str> = origins().map(|o| o.cluster.as_str()).collect();
        let packages: BTreeSet<(&str, &str)> = origins()
            .map(|o| (o.cluster.as_str(), o.package.as_str()))
            .collect();
        let mut addresses = BTreeSet::new();
        let mut ranges = 0;
        for one in carried {
            match one.what {
                Use::Address(host) => {
                    addresses.insert((one.scope, host.addr()));
                }
                Use::Range { .. } => ranges += 1,
            }
        }
        Self {
            clusters: clusters.len(),
            packages: packages.len(),
            objects: inputs.len(),
            addresses: addresses.len(),
            ranges,
            duplicates,
            overlaps,
        }
    }
}

/// `4 addresses and 2 ranges over 2 clusters and 3 packages: no address twice`.
impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = |n: usize, one: &str, many: &str| {
            let word = if n == 1 { one } else { many };
            format!("{n} {word}")
        };
        let addresses = counted(self.addresses, "address", "addresses");
        let ranges = counted(self.ranges, "range", "ranges");
        let clusters = counted(self.clusters, "cluster", "clusters");
        let packages = counted(self.packages, "package", "packages");
        write!(
            f,
            "{addresses} and {ranges} over {clusters} and {packages}: "
        )?;
        match (self.duplicates, self.overlaps) {
            (0, 0) => f.write_str("no address twice"),
            (0, overlaps) => write!(f, "{}", counted(overlaps, "overlap", "overlaps")),
            (twice, 0) => write!(f, "{twice} used twice"),
            (twice, overlaps) => {
                let overlaps = counted(overlaps, "overlap", "overlaps");
                write!(f, "{twice} used twice, {overlaps}")
            }
        }
    }
}
