//! `moor release ADDRESS|--holder NAME`: gives back what was taken by hand.
//!
//! Easy to get wrong: a package's address comes back at its next render anyway, unless somebody else took it meanwhile; so
//! what a package holds is only released with `--force`.

use std::net::IpAddr;
use std::path::Path;

use mooring_api::{Code, Finding, Span, Time};
use mooring_book::{Filter, Store as _};
use mooring_ipam::{InstanceKey, Lease, State};

use super::who_has::{describe, table};
use crate::args::ReleaseArgs;
use crate::output::{Output, count, rfc3339};
use crate::world::{Access, Book, Exit, World};

/// Long enough for two writes to the same file, short enough to forget.
const TTL: Span = Span(60);

pub(crate) fn run(args: &ReleaseArgs, world: &World, output: &mut Output) -> anyhow::Result<Exit> {
    let mgmt = world.mgmt(&args.mgmt)?;
    let book = world.book(&args.book, mgmt.as_deref(), Access::Write);
    if !book.exists() {
        output.say(&format!(
            "there is no book at {}: nothing to release",
            book.path().display()
        ));
        return Ok(Exit::Done);
    }
    let cool_downs = cool_downs(mgmt.as_deref())?;
    let leases = match book.settle(|book| release(book, args, &cool_downs, world.now))? {
        Ok(leases) => leases,
        Err(finding) => {
            output.findings(&[*finding]);
            output.say("nothing was released");
            return Ok(Exit::Wrong);
        }
    };
    if leases.is_empty() {
        output.say("nobody has it: nothing to release");
        return Ok(Exit::Done);
    }
    let packages = book.packages()?;
    let shown: Vec<_> = leases
        .iter()
        .map(|lease| {
            let mut held = describe(lease, &packages, world.now);
            held.state = match cool_downs.of(lease) {
                Span(0) => "released".to_owned(),
                span => format!("cooling until {}", rfc3339(world.now.after(span))),
            };
            held
        })
        .collect();
    output.show(args.format.format, &shown, |shown| table(shown))?;
    output.say(&format!("released {}", count(leases.len(), "lease")));
    if mgmt.is_none() {
        output.say(
            "without --mgmt a pool's cool-down is not known: the address can be handed out at once",
        );
    }
    Ok(Exit::Done)
}

/// Releases what is meant, and says what that was.
fn release(
    book: &Book,
    args: &ReleaseArgs,
    cool_downs: &CoolDowns,
    now: Time,
) -> Result<Result<Vec<Lease>, Box<Finding>>, mooring_book::Error> {
    let mut leases = book.leases(&Filter {
        instance: args.network.as_deref().map(super::claim::instance),
        addr: args.address,
        ..Filter::default()
    })?;
    leases.retain(|lease| is_meant(lease, args.address, args.holder.as_deref()));
    if let Some(finding) = refusal(&leases, args) {
        return Ok(Err(Box::new(finding)));
    }
    let mut txn = book.begin(now)?;
    for lease in &leases {
        txn.release(&lease.instance, &lease.thing, cool_downs.of(lease))?;
    }
    if !txn.is_unchanged() {
        let id = txn.reserve(TTL)?;
        book.commit(id, now)?;
    }
    Ok(Ok(leases))
}

/// A lease that exactly covers the address, or that the named holder took by hand; cooling ones are released already.
fn is_meant(lease: &Lease, address: Option<IpAddr>, holder: Option<&str>) -> bool {
    let taken = !matches!(lease.state, State::Cooling { .. });
    let by_address = address.is_some();
    let by_hand = lease.holder.package.is_empty() && holder == Some(lease.holder.workload.as_str());
    taken && (by_address || by_hand)
}

/// Why these leases are not released.
fn refusal(leases: &[Lease], args: &ReleaseArgs) -> Option<Finding> {
    let instances: std::collections::BTreeSet<&InstanceKey> =
        leases.iter().map(|l| &l.instance).collect();
    if args.address.is_some() && instances.len() > 1 {
        let names: Vec<String> = instances.iter().map(ToString::to_string).collect();
        let message = format!(
            "the address is held in several network instances: {}",
            names.join(", ")
        );
        return Some(Finding::error(Code::AddressHeld, message).help("say which with --network"));
    }
    let owned = leases.iter().find(|l| !l.holder.package.is_empty())?;
    let message = format!("{} belongs to a package: {}", owned.thing, owned.holder);
    let finding = Finding::error(Code::AddressHeld, message)
        .help("remove its Interface and render the package again, or add --force");
    (!args.force).then_some(finding)
}

/// How long each pool lets a released address rest.
struct CoolDowns(mooring_ipam::Pools);

fn cool_downs(mgmt: Option<&Path>) -> anyhow::Result<CoolDowns> {
    let pools = mgmt.map(mooring_package::management).transpose()?;
    Ok(CoolDowns(pools.map(|m| m.pools).unwrap_or_default()))
}

impl CoolDowns {
    fn of(&self, lease: &Lease) -> Span {
        let fits = |p: &&mooring_ipam::Prefix| {
            p.instance == lease.instance && lease.subnet.is_some_and(|s| p.cidr.covers(&s))
        };
        self.0
            .prefixes
            .iter()
            .filter(fits)
            .map(|p| p.cool_down)
            .max()
            .unwrap_or_default()
    }
}
