//! `moor reserve ADDRESS|RANGE|CIDR`: addresses for what no package renders, with owner, reason and perhaps an end.
//!
//! Where it lies is decided by `mooring_ipam`; the lease is taken as any other. Easy to get wrong: a length of time counts from
//! when the reservation was made, not from now, so that the same command again changes nothing.

use std::path::PathBuf;

use mooring_api::{AddrRange, Cidr, Finding, Span, Time};
use mooring_book::{Outcome, Reservation, Store as _, Txn};
use mooring_ipam::{InstanceKey, Lease, Pools, Refusal, State};

use super::who_has::{describe, table};
use crate::args::ReserveArgs;
use crate::moment::Moment;
use crate::output::{Output, count, rfc3339};
use crate::world::{Access, Book, Exit, Usage, World};

/// A transaction lives only between two writes of this run.
const TTL: Span = Span(60);

/// How many holders in the way are named.
const NAMED: usize = 8;

/// Checked arguments.
struct Request {
    mgmt: PathBuf,
    instance: InstanceKey,
    range: AddrRange,
    block: Option<Cidr>,
    owner: String,
    reason: String,
    until: Option<Moment>,
    check: bool,
}

/// What came of it.
struct Reserved {
    lease: Lease,
    reservation: Reservation,
    /// Whether anything was, or would be, written.
    changed: bool,
}

pub(crate) fn run(args: &ReserveArgs, world: &World, output: &mut Output) -> anyhow::Result<Exit> {
    let request = check(args, world)?;
    let management = mooring_package::management(&request.mgmt)?;
    if management.findings.iter().any(Finding::is_error) {
        output.findings(&management.findings);
        output.say("nothing was reserved");
        return Ok(Exit::Wrong);
    }
    let access = if request.check {
        Access::Read
    } else {
        Access::Write
    };
    let book = world.book(&args.book, Some(&request.mgmt), access);
    let outcome = book.settle(|book| reserve(book, &management.pools, &request, world.now))?;
    let Reserved {
        lease,
        reservation,
        changed,
    } = match outcome {
        Ok(reserved) => reserved,
        Err(findings) => {
            output.findings(&findings);
            output.say("nothing was reserved");
            return Ok(Exit::Wrong);
        }
    };
    let shown =
        [describe(&lease, &[], world.now).reserved(std::slice::from_ref(&reservation), &lease)];
    output.show(args.format.format, &shown, |shown| table(shown))?;
    let (what, owner) = (lease.thing, &reservation.owner);
    let until = match reservation.until {
        Some(until) => format!(" until {}", rfc3339(until)),
        None => String::new(),
    };
    output.say(&match (changed, request.check) {
        (false, _) => format!("{what} is reserved for {owner}{until} already: unchanged"),
        (true, true) => format!("{what} would be reserved for {owner}{until}"),
        (true, false) => format!("{what} is reserved for {owner}{until}"),
    });
    Ok(if changed && request.check {
        Exit::WouldChange
    } else {
        Exit::Done
    })
}

/// Reserves it, or says who is in the way.
fn reserve(
    book: &Book,
    pools: &Pools,
    request: &Request,
    now: Time,
) -> Result<Result<Reserved, Vec<Finding>>, mooring_book::Error> {
    let placed = pools.reserving(&request.instance, request.range, request.block);
    let candidate = match placed {
        Ok(candidate) => candidate,
        Err(refusal) => return Ok(Err(vec![refusal.finding()])),
    };
    let mut reservation = Reservation {
        instance: request.instance.clone(),
        thing: candidate.thing,
        owner: request.owner.clone(),
        reason: request.reason.clone(),
        until: None,
    };
    let mut txn = book.begin(now)?;
    let holder = reservation.holder();
    let taken = txn.try_take(&request.instance, &candidate, &holder)?;
    let Outcome::Won(lease) = taken else {
        return in_the_way(txn.as_ref(), &request.instance, &candidate, &reservation).map(Err);
    };
    reservation.until = request.until.map(|until| until.end(lease.since));
    txn.note_reservation(reservation.clone())?;
    let changed = !txn.is_unchanged();
    if changed && !request.check {
        let id = txn.reserve(TTL)?;
        book.commit(id, now)?;
    }
    let lease = Lease {
        state: State::Held,
        ..lease
    };
    Ok(Ok(Reserved {
        lease,
        reservation,
        changed,
    }))
}

/// One finding for each holder.
fn in_the_way(
    txn: &dyn Txn,
    instance: &InstanceKey,
    candidate: &mooring_ipam::Candidate,
    reservation: &Reservation,
) -> Result<Vec<Finding>, mooring_book::Error> {
    let mut blockers = Vec::new();
    txn.with_table(instance, &mut |table| {
        blockers = table.blockers(candidate, &reservation.holder());
    })?;
    let more = blockers.len().saturating_sub(NAMED);
    let refusal = |by: Lease| Refusal::blocked(reservation.thing, by).finding();
    let mut findings: Vec<Finding> = blockers.into_iter().take(NAMED).map(refusal).collect();
    if let (Some(last), true) = (findings.last_mut(), more > 0) {
        let rest = count(more, "more lease");
        last.message = format!("{}; and {rest} in the way", last.message);
    }
    Ok(findings)
}

/// Raw arguments, checked.
fn check(args: &ReserveArgs, world: &World) -> Result<Request, Usage> {
    let (range, block) = range(&args.what)?;
    let until = args.until.as_deref();
    let until = until
        .map(|text| Moment::parse(text, "--until"))
        .transpose()?;
    if let Some(Moment::Day(_, end) | Moment::At(end)) = until
        && end <= world.now
    {
        let message = format!("--until {} is over", args.until.as_deref().unwrap_or(""));
        return Err(Usage::new(message, "name a time that is to come"));
    }
    Ok(Request {
        mgmt: world.needed_mgmt(&args.mgmt)?,
        instance: super::claim::instance(&args.instance),
        range,
        block,
        owner: args.owner.clone(),
        reason: args.reason.clone(),
        until,
        check: args.check,
    })
}

/// An address, `FIRST-LAST`, or a prefix.
pub(super) fn range(text: &str) -> Result<(AddrRange, Option<Cidr>), Usage> {
    let bad = |why: &dyn std::fmt::Display| {
        Usage::new(
            format!("{text:?} is neither an address, a range nor a prefix: {why}"),
            "write 10.1.2.5, 10.1.2.30-10.1.2.39 or 10.1.2.64/28",
        )
    };
    if text.contains('/') {
        let block: Cidr = text.parse().map_err(|e| bad(&e))?;
        return Ok((block.range(), Some(block)));
    }
    if text.contains('-') {
        return text.parse().map(|r| (r, None)).map_err(|e| bad(&e));
    }
    let address = text.parse().map_err(|e| bad(&e))?;
    Ok((AddrRange::single(address), None))
}
