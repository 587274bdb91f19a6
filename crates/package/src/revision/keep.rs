//! What is published has its addresses for good, whoever published it: an approval or a rollback that only moved Git is found afterwards.
//!
//! ```text
//!  published files ─► specialise, pinned ─┬ right ──────► committed; what left the package is released
//!                                         └ an error ───► what the files say and nobody has is put into the book; the error is told
//! ```
//!
//! The controller calls it for packages that are no variant's. What drafts had reserved goes in the same act: a transaction that still counts
//! on an address which the next version gives up would hold it until it lapses. Easy to get wrong: an address that somebody else has by then stays theirs, and
//! must not keep the package's others from being protected; else a second one could be given away while a person looks at the first.

use std::collections::BTreeSet;

use mooring_api::{Code, Finding};
use mooring_book::{Filter, Store};
use mooring_ipam::InstanceKey;

use super::addressed::{Addressed, Desk, Way};
use super::{Error, PackageName};
use crate::differ::{Said, differ};
use crate::git::Files;
use crate::read;
use crate::report::Report;
use crate::specialise::{holders, units};

impl<D: Desk> Addressed<'_, D> {
    /// Makes the addresses final that a published package says it has, and lets go what its drafts reserved; `open` says whether it has
    /// any left, which keep theirs. With an error finding, only those that are free: the finding says which is whose.
    pub fn keep(&self, package: &PackageName, files: &Files, open: bool) -> Result<Report, Error> {
        let way = Way {
            commit: true,
            pinned: true,
            previous: Some(files),
            ..Way::default()
        };
        let report = self.specialise(package, files, way)?.report;
        let copied = |f: &Finding| f.code == Code::CopiedPackage;
        if !report.has_errors() {
            if open {
                self.tidy_after(package, None, files)?;
            } else {
                self.give_back(&holders(files), &BTreeSet::new())?;
            }
        } else if !report.findings.iter().any(copied) {
            self.desk
                .with(&mut |store| self.put_back(store, package, files))?;
        }
        Ok(report)
    }

    fn put_back(
        &self,
        store: &dyn Store,
        package: &PackageName,
        files: &Files,
    ) -> Result<(), crate::Error> {
        let place = self.packages.repository.place(package.as_str());
        let (mut all, mut records) = (Said::default(), Vec::new());
        for unit in units(files) {
            if let Some(told) = read::told(&unit, &place, self.now) {
                records.push(told.record);
                all.leases.extend(told.said.leases);
            }
        }
        // What has ended is nobody's.
        drop(store.begin(self.now)?);
        let mut instances: Vec<InstanceKey> =
            all.leases.iter().map(|l| l.instance.clone()).collect();
        instances.sort();
        instances.dedup();
        let mut known = Vec::new();
        for instance in instances {
            let filter = Filter {
                instance: Some(instance),
                ..Filter::default()
            };
            known.extend(store.leases(&filter)?);
        }
        let free = differ(&known, all, self.now).restore;
        store.restore(&free, &records, self.now)?;
        Ok(())
    }
}
