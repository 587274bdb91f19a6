//! One address, held at once, without a transaction: what the controller does for an IPClaim and the agent for a pod.
//!
//! ```text
//!  candidates(view) ─► POST as held ─┬ 201 ─► ours
//!                                    └ 409 ─► ours already? ours. Somebody's? the next candidate
//! ```
//!
//! Easy to get wrong: two processes may serve the same holder at once. Both try the same candidates in the same order, so
//! they nearly always meet at one lease. Where they did not, the older lease stays, and who notices gives back the other.

use std::sync::Arc;

use mooring_api::kinds::mooring::ClaimRef;
use mooring_api::{Span, Time};
use mooring_ipam::{
    Candidate, Claim, Holder, InstanceKey, Lease, Pools, Refusal, State, Table, Thing, TxnId, Want,
};

use super::form::Record;
use super::hands::{Hands, Mark, Taken, has_rested};
use super::keep::nonce;
use crate::allocate::allocate;
use crate::audit::{Entry, Event};
use crate::error::Error;
use crate::reservation::Reservation;
use crate::store::{Outcome, PackageRecord, Txn};

/// How often one candidate is tried again because what stood there changed.
const ROUNDS: u32 = 8;

/// No transaction has this number: those count from the clock.
const NONE: TxnId = TxnId(0);

/// A transaction that is none: each take is final at once.
struct Direct<'a> {
    hands: &'a Arc<Hands>,
    asked_by: Option<&'a ClaimRef>,
    now: Time,
}

pub(super) fn take(
    hands: &Arc<Hands>,
    pools: &Pools,
    claim: &Claim,
    asked_by: Option<&ClaimRef>,
    now: Time,
) -> Result<Result<Lease, Refusal>, Error> {
    let mut direct = Direct {
        hands,
        asked_by,
        now,
    };
    let won = match allocate(&mut direct, pools, claim)? {
        Ok(lease) => lease,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let alone = claim.fixed.is_none() && matches!(claim.want, Want::Address | Want::Vlan { .. });
    if alone {
        return settle(hands, won, now).map(Ok);
    }
    Ok(Ok(won))
}

/// Where the holder has several of what it wants once, the oldest stays.
fn settle(hands: &Arc<Hands>, won: Lease, now: Time) -> Result<Lease, Error> {
    let same = |lease: &Lease| {
        let (a, b) = (&lease.thing, &won.thing);
        std::mem::discriminant(a) == std::mem::discriminant(b)
            && lease.state == State::Held
            && lease.subnet == won.subnet
    };
    let mut all = hands.index().table(&won.instance).held_by(&won.holder);
    all.retain(same);
    if all.len() < 2 {
        return Ok(won);
    }
    let mut sure = Vec::new();
    for lease in all {
        let fresh = fresh(hands, &lease.instance, &lease.thing)?;
        sure.extend(fresh.filter(|r| r.lease.holder == won.holder && same(&r.lease)));
    }
    sure.sort_by_key(|record| (record.lease.since, record.lease.thing));
    let mut sure = sure.into_iter();
    let Some(stays) = sure.next() else {
        return Ok(won);
    };
    for goes in sure {
        remove(hands, &goes)?;
        tell(hands, Event::Released, &goes.lease, now);
    }
    Ok(stays.lease)
}

pub(super) fn release(
    hands: &Arc<Hands>,
    instance: &InstanceKey,
    thing: &Thing,
    still: impl Fn(&Record) -> bool,
    cool_down: Span,
    now: Time,
) -> Result<bool, Error> {
    for _ in 0..ROUNDS {
        let Some(was) = fresh(hands, instance, thing)? else {
            return Ok(false);
        };
        if !still(&was) || was.lease.state != State::Held {
            return Ok(false);
        }
        let done = if cool_down == Span(0) {
            remove(hands, &was)?
        } else {
            let mut to = was.clone();
            to.lease.state = State::Cooling {
                until: now.after(cool_down),
            };
            to.lease.since = now;
            (to.reservation, to.claim, to.nonce) = (None, None, nonce());
            change(hands, &was, &to)?
        };
        if done {
            tell(hands, Event::Released, &was.lease, now);
            return Ok(true);
        }
    }
    Err(hands.busy(&thing.to_string()))
}

/// Rests that are over, and addresses that lie in a prefix of somebody else.
pub(super) fn tidy(hands: &Arc<Hands>, now: Time) -> Result<usize, Error> {
    let ended: Vec<Record> = {
        let index = hands.index();
        let ended = index.records().filter(|record| {
            let lease = &record.lease;
            has_rested(lease, now) || !index.counts(&lease.instance, &lease.thing)
        });
        ended.cloned().collect()
    };
    let mut count = 0;
    for record in ended {
        // By the server's word: a prefix that is being withdrawn voids nothing.
        if !has_rested(&record.lease, now) && around(hands, &record.lease)?.is_none() {
            continue;
        }
        if remove(hands, &record)? {
            tell(hands, Event::Expired, &record.lease, now);
            count += 1;
        }
    }
    Ok(count)
}

fn run<T: Send + 'static>(hands: &Arc<Hands>, work: impl Future<Output = T> + Send + 'static) -> T {
    hands.wire.run(work)
}

fn fresh(
    hands: &Arc<Hands>,
    instance: &InstanceKey,
    thing: &Thing,
) -> Result<Option<Record>, Error> {
    let (by, instance, thing) = (Arc::clone(hands), instance.clone(), *thing);
    run(hands, async move { by.fresh(&instance, &thing).await })
}

fn around(hands: &Arc<Hands>, lease: &Lease) -> Result<Option<Lease>, Error> {
    let (by, lease) = (Arc::clone(hands), lease.clone());
    run(hands, async move { by.around(&lease).await })
}

fn change(hands: &Arc<Hands>, was: &Record, to: &Record) -> Result<bool, Error> {
    let (by, was, to) = (Arc::clone(hands), Mark::of(was), to.clone());
    run(hands, async move { by.change(&was, &to).await })
}

fn remove(hands: &Arc<Hands>, was: &Record) -> Result<bool, Error> {
    let (by, was) = (Arc::clone(hands), Mark::of(was));
    run(hands, async move { by.remove(&was).await })
}

fn tell(hands: &Hands, event: Event, lease: &Lease, now: Time) {
    hands.trail.tell(Entry {
        at: now,
        event,
        instance: lease.instance.clone(),
        thing: lease.thing,
        holder: lease.holder.clone(),
        txn: None,
    });
}

impl Direct<'_> {
    /// What keeps the candidate from being taken, by the watch's word.
    fn in_the_way(&self, lease: &Lease) -> Option<Record> {
        let mut index = self.hands.index();
        let table = index.table(&lease.instance);
        let other = table.blocker(&lease.thing, lease.subnet, &lease.holder)?;
        index.record(&other.instance, &other.thing).cloned()
    }

    /// The holder's own lease of the thing, made held and complete.
    fn own(&self, was: Record, wanted: &Lease) -> Result<Option<Lease>, Error> {
        let mut to = was.clone();
        to.lease.subnet = wanted.subnet;
        to.lease.gateway = wanted.gateway;
        if was.lease.state != State::Held {
            (to.lease.state, to.lease.since) = (State::Held, self.now);
        }
        if let Some(asked_by) = self.asked_by {
            to.claim = Some(asked_by.clone());
        }
        // A process that ended between its POST and its look at the ledger left the look to us.
        if around(self.hands, &was.lease)?.is_some() {
            remove(self.hands, &was)?;
            return Ok(None);
        }
        if to == was && was.checked {
            return Ok(Some(to.lease));
        }
        to.nonce = nonce();
        if !was.checked {
            // The same with a prefix, whose look is at the addresses.
            let by = Arc::clone(self.hands);
            return match run(self.hands, async move { by.confirm(was, to).await })? {
                Taken::Won(record) => Ok(Some(record.lease)),
                Taken::Lost(_) => Ok(None),
            };
        }
        if !change(self.hands, &was, &to)? {
            return Ok(None);
        }
        if was.lease.state != State::Held {
            tell(self.hands, Event::Taken, &to.lease, self.now);
        }
        Ok(Some(to.lease))
    }
}

impl Txn for Direct<'_> {
    fn id(&self) -> TxnId {
        NONE
    }

    fn now(&self) -> Time {
        self.now
    }

    fn with_table(
        &self,
        instance: &InstanceKey,
        look: &mut dyn FnMut(&Table),
    ) -> Result<(), Error> {
        look(self.hands.index().table(instance));
        Ok(())
    }

    fn held_by(&self, instance: &InstanceKey, holder: &Holder) -> Result<Vec<Lease>, Error> {
        let mut leases = self.hands.index().table(instance).held_by(holder);
        leases.retain(|lease| lease.state == State::Held);
        Ok(leases)
    }

    fn held_by_package(&self, cluster: &str, package: &str) -> Result<Vec<Lease>, Error> {
        let index = self.hands.index();
        let things = index.of_package(cluster, package);
        let leases = things.iter().filter_map(|(instance, thing)| {
            let record = index.record(instance, thing)?;
            (record.lease.state == State::Held).then(|| record.lease.clone())
        });
        Ok(leases.collect())
    }

    fn try_take(
        &mut self,
        instance: &InstanceKey,
        candidate: &Candidate,
        holder: &Holder,
    ) -> Result<Outcome, Error> {
        let wanted = Lease {
            instance: instance.clone(),
            thing: candidate.thing,
            subnet: candidate.subnet,
            gateway: candidate.gateway,
            holder: holder.clone(),
            state: State::Held,
            since: self.now,
        };
        for _ in 0..ROUNDS {
            let known = self.hands.index().record(instance, &wanted.thing).cloned();
            let own = known.filter(|record| record.lease.holder == *holder);
            if own.is_some() {
                // Not by the watch's word: it may have been given back.
                let own = fresh(self.hands, instance, &wanted.thing)?;
                match own.filter(|record| record.lease.holder == *holder) {
                    Some(own) => match self.own(own, &wanted)? {
                        Some(lease) => return Ok(Outcome::Won(lease)),
                        None => continue,
                    },
                    None => continue,
                }
            }
            if let Some(other) = self.in_the_way(&wanted) {
                let own_rest = other.lease.holder == *holder
                    && matches!(other.lease.state, State::Cooling { .. });
                if !(has_rested(&other.lease, self.now) || own_rest) {
                    return Ok(Outcome::Lost(other.lease));
                }
                remove(self.hands, &other)?;
                continue;
            }
            let mut record = Record::new(wanted.clone(), nonce());
            record.claim = self.asked_by.cloned();
            let by = Arc::clone(self.hands);
            match run(self.hands, async move { by.take(record).await })? {
                Taken::Won(record) => {
                    tell(self.hands, Event::Taken, &record.lease, self.now);
                    return Ok(Outcome::Won(record.lease));
                }
                Taken::Lost(lease) => {
                    let same = lease.thing == wanted.thing;
                    let again = lease.holder == *holder || has_rested(&lease, self.now);
                    if !(same && again) {
                        return Ok(Outcome::Lost(*lease));
                    }
                }
            }
        }
        Err(self.hands.busy(&wanted.thing.to_string()))
    }

    fn release(
        &mut self,
        instance: &InstanceKey,
        thing: &Thing,
        cool_down: Span,
    ) -> Result<(), Error> {
        let known = self.hands.index().record(instance, thing).cloned();
        if let Some(known) = known {
            let still = |record: &Record| record.lease.holder == known.lease.holder;
            release(self.hands, instance, thing, still, cool_down, self.now)?;
        }
        Ok(())
    }

    fn note_package(&mut self, _: PackageRecord) -> Result<(), Error> {
        Err(Error::NotOpen(NONE))
    }

    fn forget_package(&mut self, _: &str, _: &str) -> Result<(), Error> {
        Err(Error::NotOpen(NONE))
    }

    fn package(&self, _: &str, _: &str) -> Result<Option<PackageRecord>, Error> {
        Ok(None)
    }

    fn note_reservation(&mut self, _: Reservation) -> Result<(), Error> {
        Err(Error::NotOpen(NONE))
    }

    fn is_unchanged(&self) -> bool {
        true
    }

    fn reserve(self: Box<Self>, _: Span) -> Result<TxnId, Error> {
        Err(Error::NotOpen(NONE))
    }
}
