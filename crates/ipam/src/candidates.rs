//! What to try, in which order.

use mooring_api::Time;

use crate::{Candidate, Claim, Lease, Pools, Refusal, Table};

/// What a claim comes to.
pub enum Decision<'a> {
    /// The holder has it already (held, reserved or cooling): this and nothing else. Subnet and gateway
    /// are those of the prefix today, which may differ from what the table has.
    Keep(Lease),
    /// Free as far as the table knows, best first, at least one.
    Offer(Offers<'a>),
}

/// Candidates, made one at a time.
pub struct Offers<'a> {
    next: Option<Candidate>,
    rest: Box<dyn Iterator<Item = Candidate> + 'a>,
}

impl Iterator for Offers<'_> {
    type Item = Candidate;

    fn next(&mut self) -> Option<Candidate> {
        let next = self.next.take();
        next.or_else(|| self.rest.next())
    }
}

/// What `claim` may get at `now`.
pub fn candidates<'a>(
    pools: &'a Pools,
    table: &'a Table,
    claim: &'a Claim,
    now: Time,
) -> Result<Decision<'a>, Refusal> {
    let _ = (pools, table, now);
    Err(Refusal::UnknownInstance {
        instance: claim.instance.clone(),
        known: Vec::new(),
    })
}
