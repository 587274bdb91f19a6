//! A change to the whole book at once, planned outside of it: what an import, a rename or a retirement comes to.
//!
//! Easy to get wrong: it is planned from what was read. [`Store::amend`](crate::Store::amend) therefore looks at every
//! lease again and changes nothing where one of them is not what the plan saw.

use mooring_ipam::Lease;

use crate::reservation::Reservation;
use crate::store::PackageRecord;

/// What goes, and what comes. What goes makes room for what comes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Amendment {
    /// Leases that go, as they are.
    pub drop: Vec<Lease>,
    /// Leases that come, or come in place of the holder's own.
    pub put: Vec<Lease>,
    /// Packages that are forgotten: cluster and id.
    pub forget: Vec<(String, String)>,
    /// Packages that are remembered; after what is forgotten.
    pub note: Vec<PackageRecord>,
    /// Reservations, each with a lease that comes or is there.
    pub reservations: Vec<Reservation>,
}

impl Amendment {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        let Self {
            drop,
            put,
            forget,
            note,
            reservations,
        } = self;
        let leases = drop.is_empty() && put.is_empty() && reservations.is_empty();
        leases && forget.is_empty() && note.is_empty()
    }
}
