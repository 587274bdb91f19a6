//! Has it, take it, or why not: `mooring-ipam` decides over the table, this keeps claims that run at once apart. Pure.

use std::collections::BTreeSet;

use mooring_api::Time;
use mooring_ipam::{
    self as ipam, Claim, InstanceKey, Lease, Pools, Refusal, State, Table, Thing, candidates,
};

/// What is to be done for a claim.
#[derive(Debug)]
pub(super) enum Step {
    /// It holds this, and nothing about it changed: no write.
    Has(Lease),
    /// Ask the book, for this first.
    Take(Claim, Option<Thing>),
    /// Everything that is free is being taken by others at this moment.
    Busy,
    /// There is nothing for it.
    Refused(Box<Refusal>),
}

/// Decides over what is taken and what is being taken.
pub(super) fn decide(
    pools: &Pools,
    table: &Table,
    claim: &Claim,
    taking: &BTreeSet<(InstanceKey, Thing)>,
    now: Time,
) -> Step {
    match candidates(pools, table, claim, now) {
        Ok(ipam::Decision::Keep(lease)) => {
            let is_complete = table
                .get(&lease.thing)
                .is_some_and(|stored| stored == lease);
            if is_complete && lease.state == State::Held {
                Step::Has(lease)
            } else {
                Step::Take(claim.clone(), None)
            }
        }
        Ok(ipam::Decision::Offer(mut offers)) => {
            let free = |thing: &Thing| !taking.contains(&(claim.instance.clone(), *thing));
            match offers.find(|offer| free(&offer.thing)) {
                Some(offer) => {
                    let mut claim = claim.clone();
                    claim.before = Some(offer.thing);
                    Step::Take(claim, Some(offer.thing))
                }
                None => Step::Busy,
            }
        }
        Err(refusal) => Step::Refused(Box::new(refusal)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mooring_blueprint::{Object, pools, standing};
    use serde_json::json;

    fn pools() -> Pools {
        let value = json!({
            "apiVersion": "ipam.resource.nephio.org/v1alpha1", "kind": "IPPrefix",
            "metadata": { "name": "n3" },
            "spec": { "prefix": "10.1.2.0/29", "networkInstance": { "name": "ran" } },
        });
        let source = None;
        pools::read(&[Object { value, source }]).0
    }

    fn claim(name: &str) -> Claim {
        let value = json!({
            "apiVersion": "ipam.resource.nephio.org/v1alpha1", "kind": "IPClaim",
            "metadata": { "name": name }, "spec": { "networkInstance": { "name": "ran" } },
        });
        let source = None;
        let wish = standing::wish(&Object { value, source }, &pools());
        wish.unwrap().unwrap().claim
    }

    fn lease(claim: &Claim, addr: &str) -> Lease {
        Lease {
            instance: claim.instance.clone(),
            thing: Thing::Addr(addr.parse().unwrap()),
            subnet: Some("10.1.2.0/29".parse().unwrap()),
            gateway: Some("10.1.2.1".parse().unwrap()),
            holder: claim.holder.clone(),
            state: State::Held,
            since: Time(1),
        }
    }

    #[test]
    fn claims_at_once_are_offered_different_addresses() {
        let (pools, mut taking) = (pools(), BTreeSet::new());
        let table = Table::new(claim("a").instance);
        for expected in 2..=6 {
            let step = decide(&pools, &table, &claim("a"), &taking, Time(5));
            let Step::Take(claim, Some(thing)) = step else {
                panic!("{step:?}");
            };
            assert_eq!(thing.to_string(), format!("10.1.2.{expected}"));
            assert_eq!(claim.before, Some(thing));
            taking.insert((claim.instance, thing));
        }
        let step = decide(&pools, &table, &claim("a"), &taking, Time(5));
        assert!(matches!(step, Step::Busy), "{step:?}");
    }

    #[test]
    fn what_is_held_and_complete_costs_no_write_and_what_is_not_does() {
        let (pools, claim, none) = (pools(), claim("a"), BTreeSet::new());
        let mut table = Table::new(claim.instance.clone());
        table.insert(lease(&claim, "10.1.2.5")).unwrap();
        let step = decide(&pools, &table, &claim, &none, Time(5));
        assert!(matches!(step, Step::Has(_)), "{step:?}");
        let thing = lease(&claim, "10.1.2.5").thing;
        table.set_state(&thing, State::Cooling { until: Time(99) });
        let step = decide(&pools, &table, &claim, &none, Time(5));
        assert!(matches!(step, Step::Take(_, None)), "{step:?}");
    }
}
