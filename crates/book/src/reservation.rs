//! What somebody reserved by hand: an address or a range for what is no pod, with owner, reason and perhaps an end.
//!
//! ```text
//!  a lease (held, its holder is the owner) ─ and beside it ─ a Reservation: reason, until
//! ```
//!
//! The lease is what keeps others away, so nothing that allocates needs to know reservations. Easy to get wrong: this is
//! not the *reserved* state of a lease, which belongs to an open transaction. What they share is that an end is
//! reaped when the next transaction begins, and leaves a line in the trail.

use std::collections::BTreeMap;

use mooring_api::{Family, Time};
use mooring_ipam::{Holder, InstanceKey, Lease, State, Thing, TxnId};
use serde::{Deserialize, Serialize};

/// The interface of every holder that a reservation makes: an owner that also claims has two identities.
const INTERFACE: &str = "reservation";

/// Why a lease that no package has is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// Where.
    pub instance: InstanceKey,
    /// What.
    pub thing: Thing,
    /// Whose it is: a team, a device.
    pub owner: String,
    /// What for.
    pub reason: String,
    /// Until when; None is until somebody releases it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
}

impl Reservation {
    /// The holder of the lease beside it.
    pub fn holder(&self) -> Holder {
        let family = self.thing.range().map_or(Family::V4, |r| r.family());
        Holder::outside(&self.owner, INTERFACE, family)
    }

    /// Whether it is over.
    pub fn has_ended(&self, now: Time) -> bool {
        self.until.is_some_and(|until| until <= now)
    }

    pub(crate) fn key(&self) -> (InstanceKey, Thing) {
        (self.instance.clone(), self.thing)
    }
}

/// Leases as a person counts them: what is reserved by hand is reserved, and free once that has ended. For showing; a book
/// itself holds them until they end.
pub fn as_reserved(mut leases: Vec<Lease>, reservations: &[Reservation]) -> Vec<Lease> {
    let known: BTreeMap<_, _> = reservations
        .iter()
        .map(|r| ((&r.instance, r.thing), r.until))
        .collect();
    for lease in leases.iter_mut().filter(|l| l.state == State::Held) {
        if let Some(until) = known.get(&(&lease.instance, lease.thing)) {
            // No transaction has this number: those count from the clock.
            let (txn, until) = (TxnId(0), until.unwrap_or(Time(u64::MAX)));
            lease.state = State::Reserved { txn, until };
        }
    }
    leases
}

/// What a change does to the reservations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReservationNote {
    Note(Reservation),
    Forget { instance: InstanceKey, thing: Thing },
}

impl ReservationNote {
    pub(crate) fn key(&self) -> (&InstanceKey, &Thing) {
        match self {
            Self::Note(r) => (&r.instance, &r.thing),
            Self::Forget { instance, thing } => (instance, thing),
        }
    }
}
