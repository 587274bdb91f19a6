//! Putting leases back: what `book rebuild` found in packages, what `book import` read from an export.
//!
//! Nothing is ever overwritten. Two packages that claim the same address are both told, as findings, and the
//! one that came first (or was in the book already) keeps it.

use mooring_api::{Code, Finding};
use mooring_ipam::Lease;

/// What a restore came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// How many leases were put back.
    pub added: usize,
    /// How many were there already, with the same holder.
    pub unchanged: usize,
    /// Those that were not, because somebody else has it.
    pub conflicts: Vec<Conflict>,
}

/// Two holders of one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// What could not be put back.
    pub wanted: Lease,
    /// What is in the book.
    pub has: Lease,
}

impl Conflict {
    /// As something to tell a person.
    pub fn finding(&self) -> Finding {
        let Self { wanted, has } = self;
        let message = format!(
            "{} in {} is claimed by {}, but the book has {} for {}",
            wanted.thing, wanted.instance, wanted.holder, has.thing, has.holder
        );
        Finding::error(Code::DuplicateAddress, message)
            .help("render one of the two again with another address, then rebuild")
    }
}

impl Restored {
    /// The conflicts as findings, in the order of the leases.
    pub fn findings(&self) -> Vec<Finding> {
        self.conflicts.iter().map(Conflict::finding).collect()
    }
}
