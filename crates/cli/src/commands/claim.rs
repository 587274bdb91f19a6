//! `moor claim NAME --network INSTANCE`: takes an address for somebody that no package renders.
//!
//! The address is chosen as for a package, by `mooring_book::allocate`; only the holder differs.

use std::path::PathBuf;

use mooring_api::{Family, Finding, HostCidr, Selector, Span, Time};
use mooring_book::{Store as _, allocate};
use mooring_ipam::{Claim, Holder, InstanceKey, Kind, Lease, Order, Pools, Refusal, Want};

use super::who_has::{describe, table};
use crate::args::{ClaimArgs, FamilyArg};
use crate::output::Output;
use crate::world::{Access, Book, Exit, Usage, World};

/// A reservation lives only between two writes of this run.
const TTL: Span = Span(60);

/// Checked arguments.
struct Request {
    mgmt: PathBuf,
    claim: Claim,
}

pub(crate) fn run(args: &ClaimArgs, world: &World, output: &mut Output) -> anyhow::Result<Exit> {
    let request = check(args, world)?;
    let management = mooring_package::management(&request.mgmt)?;
    if management.findings.iter().any(Finding::is_error) {
        output.findings(&management.findings);
        output.say("nothing was taken");
        return Ok(Exit::Wrong);
    }
    let book = world.book(&args.book, Some(&request.mgmt), Access::Write);
    let taken = book.settle(|book| take(book, &management.pools, &request.claim, world.now))?;
    let (lease, known) = match taken {
        Ok(taken) => taken,
        Err(refusal) => {
            output.findings(&[refusal.finding()]);
            output.say("nothing was taken");
            return Ok(Exit::Wrong);
        }
    };
    let leases = book.leases(&mooring_book::Filter {
        instance: Some(lease.instance.clone()),
        addr: lease.thing.range().map(|r| r.first()),
        ..Default::default()
    })?;
    let shown: Vec<_> = leases.iter().map(|l| describe(l, &[], world.now)).collect();
    output.show(args.format.format, &shown, |shown| table(shown))?;
    let word = if known {
        "has it already"
    } else {
        "has it now"
    };
    output.say(&format!("{} {word}: {}", args.name, lease.thing));
    Ok(Exit::Done)
}

/// Takes it, and says whether the holder had it before.
fn take(
    book: &Book,
    pools: &Pools,
    claim: &Claim,
    now: Time,
) -> Result<Result<(Lease, bool), Refusal>, mooring_book::Error> {
    let mut txn = book.begin(now)?;
    let lease = match allocate(txn.as_mut(), pools, claim)? {
        Ok(lease) => lease,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let known = txn.is_unchanged();
    if known {
        return Ok(Ok((lease, known)));
    }
    let id = txn.reserve(TTL)?;
    book.commit(id, now)?;
    Ok(Ok((lease, known)))
}

/// Raw arguments, checked.
fn check(args: &ClaimArgs, world: &World) -> Result<Request, Usage> {
    if args.name.is_empty() {
        return Err(Usage::new(
            "the holder has no name",
            "say who takes the address",
        ));
    }
    let asked = args.family.map(|family| match family {
        FamilyArg::Ipv4 => Family::V4,
        FamilyArg::Ipv6 => Family::V6,
    });
    let written = args.address.map(Family::of);
    if let (Some(asked), Some(written)) = (asked, written)
        && asked != written
    {
        let message = format!("--address is {written}, and --family is {asked}");
        return Err(Usage::new(message, "leave --family out"));
    }
    let family = written.or(asked).unwrap_or(Family::V4);
    let mut holder = Holder::outside(&args.name, &args.interface, family);
    holder.cluster.clone_from(&args.cluster);
    Ok(Request {
        mgmt: world.needed_mgmt(&args.mgmt)?,
        claim: Claim {
            holder,
            instance: instance(&args.network),
            kind: Kind::Network,
            want: Want::Address,
            selector: Selector::default(),
            fixed: args.address.map(HostCidr::single),
            before: None,
            names: vec![args.name.clone()],
            order: Order::LowestFirst,
        },
    })
}

/// `NAME` or `NAMESPACE/NAME`.
pub(super) fn instance(text: &str) -> InstanceKey {
    let (namespace, name) = text.split_once('/').unwrap_or(("", text));
    InstanceKey::new(namespace, name)
}
