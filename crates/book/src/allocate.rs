//! The one loop between deciding and keeping: candidates are tried in order until one is won.
//!
//! Every hand allocates with this (render, `fn`, claim, controller, agent), so that an address is chosen in one
//! way. Easy to get wrong: the outer error is the book's trouble, the inner one is the person's.

use std::collections::BTreeSet;

use mooring_ipam::{Candidate, Claim, Decision, Lease, Pools, Refusal, Thing, candidates};

use crate::error::Error;
use crate::store::{Outcome, Txn};

/// How many offers are taken from the table at a time, once the first was lost. With one writer it is won.
const BATCH: usize = 32;

/// Takes what the claim wants, in the transaction. The time is the transaction's.
pub fn allocate(
    txn: &mut dyn Txn,
    pools: &Pools,
    claim: &Claim,
) -> Result<Result<Lease, Refusal>, Error> {
    let (mut tried, mut lost, mut batch) = (BTreeSet::new(), None, 1);
    loop {
        let offers = match offers(txn, pools, claim, &tried, batch)? {
            Ok(offers) => offers,
            Err(refusal) => return Ok(Err(refusal)),
        };
        for offer in &offers {
            match txn.try_take(&claim.instance, offer, &claim.holder)? {
                Outcome::Won(lease) => return Ok(Ok(lease)),
                Outcome::Lost(by) => lost = Some((offer.thing, by)),
            }
        }
        // By thing and not by count: a view that learns of the loss offers the lost no more.
        tried.extend(offers.iter().map(|offer| offer.thing));
        if offers.len() < batch {
            let (thing, by) = lost.expect("the table offered something, and it was lost");
            let by = Box::new(by);
            return Ok(Err(Refusal::Held { thing, by }));
        }
        batch = BATCH;
    }
}

fn offers(
    txn: &dyn Txn,
    pools: &Pools,
    claim: &Claim,
    tried: &BTreeSet<Thing>,
    batch: usize,
) -> Result<Result<Vec<Candidate>, Refusal>, Error> {
    let (mut answer, now) = (Ok(Vec::new()), txn.now());
    txn.with_table(&claim.instance, &mut |table| {
        answer = candidates(pools, table, claim, now).map(|decision| match decision {
            Decision::Keep(lease) => {
                let Lease {
                    thing,
                    subnet,
                    gateway,
                    ..
                } = lease;
                let own = Candidate {
                    thing,
                    subnet,
                    gateway,
                };
                Vec::from_iter((!tried.contains(&thing)).then_some(own))
            }
            Decision::Offer(offers) => {
                let new = offers.filter(|offer| !tried.contains(&offer.thing));
                new.take(batch).collect()
            }
        });
    })?;
    Ok(answer)
}
