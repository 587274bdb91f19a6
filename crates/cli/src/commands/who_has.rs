//! `moor who-has ADDRESS`: cluster, package, workload, interface, since when.
//!
//! An address that nobody has is an answer too: exit code 0, and stdout stays empty in a table.

use mooring_api::Time;
use mooring_book::{Filter, PackageRecord, Reservation, Store as _};
use mooring_ipam::{Holder, Lease, State};
use serde::Serialize;

use crate::args::WhoHasArgs;
use crate::output::{Output, Table, age, rfc3339};
use crate::world::{Access, Exit, World};

/// A lease as people ask about it: the package by its name.
#[derive(Serialize)]
pub(super) struct Held {
    pub(super) address: String,
    pub(super) network: String,
    pub(super) cluster: String,
    pub(super) package: String,
    #[serde(rename = "packageId")]
    pub(super) package_id: String,
    /// Where the package was written last.
    pub(super) path: String,
    pub(super) namespace: String,
    pub(super) workload: String,
    pub(super) interface: String,
    pub(super) state: String,
    /// What a reservation by hand is for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) reason: String,
    pub(super) since: String,
    pub(super) age: String,
}

pub(crate) fn run(args: &WhoHasArgs, world: &World, output: &mut Output) -> anyhow::Result<Exit> {
    let mgmt = world.mgmt(&args.mgmt)?;
    let book = world.book(&args.book, mgmt.as_deref(), Access::Read);
    let filter = Filter {
        addr: Some(args.address),
        ..Filter::default()
    };
    let (leases, packages, reservations) = if book.exists() {
        // What has ended is nobody's, though nobody wrote that down yet.
        drop(book.begin(world.now)?);
        let reservations = book.reservations()?;
        (book.leases(&filter)?, book.packages()?, reservations)
    } else {
        output.say(&format!(
            "there is no book at {} yet",
            book.path().display()
        ));
        Default::default()
    };
    let held: Vec<Held> = leases
        .iter()
        .filter(|lease| !has_rested(lease, world.now))
        .map(|lease| describe(lease, &packages, world.now).reserved(&reservations, lease))
        .collect();
    output.show(args.format.format, &held, |held| table(held))?;
    if held.is_empty() {
        output.say(&format!("nobody has {}", args.address));
    }
    Ok(Exit::Done)
}

impl Held {
    /// The same, where it is reserved by hand with its reason and its end.
    pub(super) fn reserved(mut self, reservations: &[Reservation], lease: &Lease) -> Self {
        let its = |r: &&Reservation| (&r.instance, r.thing) == (&lease.instance, lease.thing);
        if let (Some(found), State::Held) = (reservations.iter().find(its), lease.state) {
            self.reason.clone_from(&found.reason);
            self.state = match found.until {
                Some(until) => format!("reserved until {}", rfc3339(until)),
                None => "reserved".to_owned(),
            };
        }
        self
    }
}

/// The book keeps a released lease until somebody else takes the address; nobody has it any more.
fn has_rested(lease: &Lease, now: Time) -> bool {
    matches!(lease.state, State::Cooling { until } if until <= now)
}

/// The lease in words.
pub(super) fn describe(lease: &Lease, packages: &[PackageRecord], now: Time) -> Held {
    let holder = &lease.holder;
    let same = |p: &&PackageRecord| p.id == holder.package && p.cluster == holder.cluster;
    let record = packages.iter().find(same);
    let state = match lease.state {
        State::Held => "held".to_owned(),
        State::Reserved { until, .. } => format!("reserved until {}", rfc3339(until)),
        State::Cooling { until } => format!("cooling until {}", rfc3339(until)),
    };
    Held {
        address: lease.thing.to_string(),
        network: lease.instance.to_string(),
        cluster: holder.cluster.clone(),
        package: record.map(|r| r.name.clone()).unwrap_or_default(),
        package_id: holder.package.clone(),
        path: record.map(|r| r.path.clone()).unwrap_or_default(),
        namespace: holder.namespace.clone(),
        workload: workload(holder, record),
        interface: holder.interface.clone(),
        state,
        reason: String::new(),
        since: rfc3339(lease.since),
        age: age(lease.since, now),
    }
}

/// As written on the Interface, else what the last render attached it to.
fn workload(holder: &Holder, record: Option<&PackageRecord>) -> String {
    if !holder.workload.is_empty() {
        return holder.workload.clone();
    }
    let attached = record.and_then(|r| r.workloads.get(&holder.interface));
    attached.cloned().unwrap_or_default()
}

/// Leases as a table; reasons have a column where there is one.
pub(super) fn table(held: &[Held]) -> Table {
    let mut header = vec![
        "address",
        "network",
        "cluster",
        "package",
        "id",
        "namespace",
        "workload",
        "interface",
        "state",
        "age",
        "since",
    ];
    let with_reason = held.iter().any(|one| !one.reason.is_empty());
    header.extend(with_reason.then_some("reason"));
    let mut table = Table::of(&header);
    for one in held {
        let Held {
            address,
            network,
            cluster,
            package,
            package_id,
            path: _,
            namespace,
            workload,
            interface,
            state,
            reason,
            since,
            age,
        } = one;
        let cells = [
            address, network, cluster, package, package_id, namespace, workload, interface, state,
            age, since,
        ];
        let reason = with_reason.then_some(reason);
        table.cells(cells.into_iter().chain(reason).cloned().collect());
    }
    table
}
