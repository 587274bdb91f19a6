//! `moor release ADDRESS|--holder NAME|--cluster NAME`: gives back what was taken by hand, or all of a cluster that is gone.
//!
//! Easy to get wrong: a package's address comes back at its next render anyway, unless somebody else took it meanwhile; so
//! what a package holds is only released with `--force`, or with its whole cluster.

use std::path::Path;

use mooring_api::{AddrRange, Code, Finding, Span, Time};
use mooring_book::{Filter, PackageRecord, Reservation, Store as _};
use mooring_ipam::{InstanceKey, Lease, State};

use super::who_has::{Held, describe, table};
use crate::args::ReleaseArgs;
use crate::output::{Output, count, rfc3339};
use crate::world::{Access, Book, Exit, Usage, World};

/// Long enough for two writes to the same file, short enough to forget.
const TTL: Span = Span(60);

/// What is to be released.
struct Wanted<'a> {
    range: Option<AddrRange>,
    holder: Option<&'a str>,
    cluster: Option<&'a str>,
    network: Option<InstanceKey>,
    force: bool,
}

/// What is, or would be, released: leases, and packages that are forgotten with their cluster.
struct Released {
    leases: Vec<Lease>,
    packages: Vec<PackageRecord>,
    /// What an unfinished run of the cluster counts on.
    drafted: usize,
}

pub(crate) fn run(args: &ReleaseArgs, world: &World, output: &mut Output) -> anyhow::Result<Exit> {
    let wanted = check(args)?;
    let mgmt = world.mgmt(&args.mgmt)?;
    let access = if args.check {
        Access::Read
    } else {
        Access::Write
    };
    let book = world.book(&args.book, mgmt.as_deref(), access);
    if !book.exists() {
        output.say(&format!(
            "there is no book at {}: nothing to release",
            book.path().display()
        ));
        return Ok(Exit::Done);
    }
    let cool_downs = cool_downs(mgmt.as_deref())?;
    let preview = find(&book, &wanted, world.now)?;
    let found = match &preview {
        Ok(found) => found,
        Err(finding) => {
            output.findings(&[(**finding).clone()]);
            output.say("nothing was released");
            return Ok(Exit::Wrong);
        }
    };
    if found.leases.is_empty() && found.packages.is_empty() {
        output.say(&nothing(&wanted, found));
        return Ok(Exit::Done);
    }
    let (packages, reservations) = (book.packages()?, book.reservations()?);
    let shown = show(
        &found.leases,
        &packages,
        &reservations,
        &cool_downs,
        world.now,
    );
    let whole = wanted.cluster.map(|name| summary(name, found));
    if args.check || (whole.is_some() && !args.yes) {
        output.show(args.format.format, &shown, |shown| table(shown))?;
        let what = whole.unwrap_or_else(|| count(found.leases.len(), "lease"));
        if args.check {
            output.say(&format!("would release {what}"));
            return Ok(Exit::WouldChange);
        }
        if !world.confirm(&format!("Release {what}?"), output)? {
            output.say("nothing was released");
            return Ok(Exit::Done);
        }
    }
    let seen = (&found.leases, &found.packages);
    let done = book.settle(|book| release(book, &wanted, seen, &cool_downs, world.now))?;
    if !done {
        output.say("the book changed while you decided: nothing was released; run again");
        return Ok(Exit::Wrong);
    }
    if wanted.cluster.is_none() || args.yes {
        output.show(args.format.format, &shown, |shown| table(shown))?;
    }
    let what = wanted.cluster.map(|name| summary(name, found));
    let what = what.unwrap_or_else(|| count(found.leases.len(), "lease"));
    output.say(&format!("released {what}"));
    if mgmt.is_none() {
        output.say(
            "without --mgmt a pool's cool-down is not known: the address can be handed out at once",
        );
    }
    Ok(Exit::Done)
}

fn nothing(wanted: &Wanted<'_>, found: &Released) -> String {
    match wanted.cluster {
        Some(name) if found.drafted > 0 => format!(
            "cluster {name} has only what an unfinished run reserved: wait until that has ended"
        ),
        Some(name) => format!("cluster {name} has nothing: nothing to release"),
        None => "nobody has it: nothing to release".to_owned(),
    }
}

fn summary(cluster: &str, found: &Released) -> String {
    let drafted = match found.drafted {
        0 => String::new(),
        number => format!(
            " (not {} that an unfinished run reserved)",
            count(number, "lease")
        ),
    };
    format!(
        "{} and {} of cluster {cluster}{drafted}",
        count(found.leases.len(), "lease"),
        count(found.packages.len(), "package")
    )
}

fn show(
    leases: &[Lease],
    packages: &[PackageRecord],
    reservations: &[Reservation],
    cool_downs: &CoolDowns,
    now: Time,
) -> Vec<Held> {
    let one = |lease: &Lease| {
        let mut held = describe(lease, packages, now).reserved(reservations, lease);
        held.state = match cool_downs.of(lease) {
            Span(0) => "released".to_owned(),
            span => format!("cooling until {}", rfc3339(now.after(span))),
        };
        held
    };
    leases.iter().map(one).collect()
}

/// What is meant, or why it is not released.
fn find(
    book: &Book,
    wanted: &Wanted<'_>,
    now: Time,
) -> Result<Result<Released, Box<Finding>>, mooring_book::Error> {
    drop(book.begin(now)?);
    let all = book.leases(&Filter {
        instance: wanted.network.clone(),
        addr: wanted.range.map(|r| r.first()),
        cluster: wanted.cluster.map(str::to_owned),
        ..Filter::default()
    })?;
    let taken = |l: &&Lease| !matches!(l.state, State::Cooling { .. });
    let leases: Vec<Lease> = all.iter().filter(taken).cloned().collect();
    if let Some(cluster) = wanted.cluster {
        let mut packages = book.packages()?;
        packages.retain(|p| p.cluster == cluster && wanted.network.is_none());
        let (held, drafted): (Vec<_>, Vec<_>) =
            leases.into_iter().partition(|l| l.state == State::Held);
        return Ok(Ok(Released {
            leases: held,
            packages,
            drafted: drafted.len(),
        }));
    }
    let meant: Vec<Lease> = leases.iter().filter(|l| wanted.means(l)).cloned().collect();
    if let Some(finding) = refusal(&meant, &leases, wanted) {
        return Ok(Err(Box::new(finding)));
    }
    Ok(Ok(Released {
        leases: meant,
        packages: Vec::new(),
        drafted: 0,
    }))
}

/// Releases what was shown, if it still is all there is.
fn release(
    book: &Book,
    wanted: &Wanted<'_>,
    seen: (&Vec<Lease>, &Vec<PackageRecord>),
    cool_downs: &CoolDowns,
    now: Time,
) -> Result<bool, mooring_book::Error> {
    match find(book, wanted, now)? {
        Ok(found) if (&found.leases, &found.packages) == seen => {}
        _ => return Ok(false),
    }
    let mut txn = book.begin(now)?;
    for lease in seen.0 {
        txn.release(&lease.instance, &lease.thing, cool_downs.of(lease))?;
    }
    for package in seen.1 {
        txn.forget_package(&package.cluster, &package.id)?;
    }
    if !txn.is_unchanged() {
        let id = txn.reserve(TTL)?;
        book.commit(id, now)?;
    }
    Ok(true)
}

impl Wanted<'_> {
    /// A lease of exactly these addresses, or one that the named holder took by hand.
    fn means(&self, lease: &Lease) -> bool {
        let by_address = self.range.is_some() && lease.thing.range() == self.range;
        let by_hand =
            lease.holder.package.is_empty() && self.holder == Some(lease.holder.workload.as_str());
        by_address || by_hand
    }
}

/// Why these leases are not released.
fn refusal(meant: &[Lease], around: &[Lease], wanted: &Wanted<'_>) -> Option<Finding> {
    let instances: std::collections::BTreeSet<&InstanceKey> =
        meant.iter().map(|l| &l.instance).collect();
    if wanted.range.is_some() && instances.len() > 1 {
        let names: Vec<String> = instances.iter().map(ToString::to_string).collect();
        let message = format!(
            "the address is held in several network instances: {}",
            names.join(", ")
        );
        return Some(Finding::error(Code::AddressHeld, message).help("say which with --network"));
    }
    if let (Some(range), [], [part, ..]) = (wanted.range, meant, around) {
        let message = format!(
            "{range} is a part of {}, which {} has",
            part.thing, part.holder
        );
        let help = format!(
            "only all of it can be released: moor release {}",
            part.thing
        );
        return Some(Finding::error(Code::AddressHeld, message).help(help));
    }
    let owned = meant.iter().find(|l| !l.holder.package.is_empty())?;
    let message = format!("{} belongs to a package: {}", owned.thing, owned.holder);
    let finding = Finding::error(Code::AddressHeld, message)
        .help("remove its Interface and render the package again, or add --force");
    (!wanted.force).then_some(finding)
}

/// Raw arguments, checked.
fn check(args: &ReleaseArgs) -> Result<Wanted<'_>, Usage> {
    let range = args.address.as_deref().map(super::reserve::range);
    Ok(Wanted {
        range: range.transpose()?.map(|(range, _)| range),
        holder: args.holder.as_deref(),
        cluster: args.cluster.as_deref().filter(|name| !name.is_empty()),
        network: args.network.as_deref().map(super::claim::instance),
        force: args.force,
    })
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
