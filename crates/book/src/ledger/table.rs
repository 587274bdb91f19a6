//! Small questions to an [`ipam::Table`](mooring_ipam::Table) that drafting, planning and restoring share.

use mooring_api::{Cidr, Time};
use mooring_ipam::{Holder, Lease, State, Table, Thing, TxnId};

/// Whether a lease is reserved by that transaction.
pub(crate) fn is_reserved_by(lease: &Lease, by: TxnId) -> bool {
    matches!(lease.state, State::Reserved { txn, .. } if txn == by)
}

/// Puts a lease in, whatever its state was.
///
/// Plans only put what fits. Should one ever not, the table keeps what it has; `Table::check` and the next load
/// of the instance both tell.
pub(super) fn put(table: &mut Table, lease: Lease) {
    let outcome = table.insert(lease);
    debug_assert!(outcome.is_ok(), "a plan put {outcome:?} in the way");
}

/// Takes out the cooling leases that keep `holder` from taking `thing` and have no right to: their time is over,
/// or they are the holder's own. Gives them back, or the lease that stays in the way (then nothing is taken out).
pub(super) fn make_room(
    table: &mut Table,
    thing: &Thing,
    subnet: Option<Cidr>,
    holder: &Holder,
    now: Time,
) -> Result<Vec<Lease>, Box<Lease>> {
    let mut evicted = Vec::new();
    while let Some(other) = table.blocker(thing, subnet, holder) {
        let gives_way = match other.state {
            State::Cooling { until } => until <= now || other.holder == *holder,
            State::Held | State::Reserved { .. } => false,
        };
        if !gives_way {
            for lease in evicted {
                put(table, lease);
            }
            return Err(Box::new(other));
        }
        evicted.extend(table.remove(&other.thing));
    }
    Ok(evicted)
}
