//! VLAN ids: 2 to 4094, and 1 for who asks for it by number. The instance is the VLANIndex; it needs no
//! prefix and is not looked up among the instances.

use mooring_api::{Time, VlanId};

use crate::candidates::{Rest, exhausted};
use crate::walk::Hash;
use crate::{Candidate, Claim, Decision, Lease, Order, Pools, Refusal, Table, Thing};

/// The lowest id that is given without being asked for: switches treat 1 as "untagged".
const LOWEST: u16 = 2;

pub(crate) fn candidates<'a>(
    table: &'a Table,
    claim: &'a Claim,
    id: Option<VlanId>,
    now: Time,
) -> Result<Decision<'a>, Refusal> {
    let has = |lease: &Lease| match (lease.thing, id) {
        (Thing::Vlan(vlan), Some(id)) => vlan == id,
        (thing, _) => matches!(thing, Thing::Vlan(_)),
    };
    if let Some(lease) = table.held_by(&claim.holder).into_iter().find(has) {
        return Ok(Decision::Keep(lease));
    }
    let only = match (id, claim.order) {
        (Some(id), _) => Some(id),
        (None, Order::Index(index)) => Some(nth(claim, index)?),
        (None, _) => None,
    };
    if let Some(vlan) = only {
        let thing = Thing::Vlan(vlan);
        return match table.blocker_at(&thing, None, &claim.holder, now) {
            Some(by) => Err(Refusal::blocked(thing, by)),
            None => Ok(Decision::offer(offer(vlan), Rest::Nothing)),
        };
    }
    let before = match claim.before {
        Some(Thing::Vlan(vlan)) => Some(vlan),
        _ => None,
    };
    let span = VlanId::MAX.get() - LOWEST + 1;
    let start = match claim.order {
        Order::Rendezvous => Hash::new(&claim.holder, "vlan").of(0) % u128::from(span),
        _ => 0,
    };
    let start = u16::try_from(start).expect("a remainder of 4093 fits");
    let in_order = (0..span)
        .map(move |i| LOWEST + (start + i) % span)
        .filter_map(|id| VlanId::try_from(id).ok())
        .filter(move |vlan| Some(*vlan) != before);
    let mut free = before
        .into_iter()
        .chain(in_order)
        .filter(move |vlan| !table.has_vlan(*vlan, now))
        .map(offer);
    match free.next() {
        Some(first) => Ok(Decision::offer(first, Rest::Vlans(Box::new(free)))),
        None => Err(exhausted(&Pools::default(), table, claim, now)),
    }
}

fn nth(claim: &Claim, index: u32) -> Result<VlanId, Refusal> {
    let id = u16::try_from(index)
        .ok()
        .and_then(|n| n.checked_add(LOWEST));
    id.and_then(|id| VlanId::try_from(id).ok())
        .ok_or_else(|| Refusal::Exhausted {
            instance: claim.instance.clone(),
            want: claim.want,
            prefixes: Vec::new(),
            more: 0,
        })
}

fn offer(vlan: VlanId) -> Candidate {
    Candidate {
        thing: Thing::Vlan(vlan),
        subnet: None,
        gateway: None,
    }
}
