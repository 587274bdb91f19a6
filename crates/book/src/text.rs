//! The book as text: `moor book export`, `moor book import`. Documented in docs/guides/day-two.md.
//!
//! ```yaml
//! format: mooring.dev/book
//! version: 1
//! leases:        what, network, holder, state, since; subnet, gateway and until where there is one
//! reservations:  what, network, owner, reason, until
//! packages:      the last known place of each rendered package
//! audit:         who took and freed what, the newest ten thousand; told, and never imported
//! ```
//!
//! Sorted, so that two exports of one book are the same bytes. Easy to get wrong: a file that is read here comes from
//! anywhere, so everything a table would refuse is found before anything is written, each with its line and field.

mod read;

use std::collections::{BTreeMap, BTreeSet};

use mooring_api::Time;
use mooring_ipam::{Holder, InstanceKey, Lease, State, Thing};
use serde::{Deserialize, Serialize};

use crate::audit::{Entry, Event};
use crate::content::Content;
use crate::reservation::Reservation;
use crate::store::PackageRecord;

pub use read::read_text;

/// What `version` says. It rises when an older reader would err.
pub const TEXT_VERSION: u64 = 1;

/// A larger text is not read: a book of a hundred thousand leases is two thirds of this, as JSON. What is larger is carried
/// as a backup.
pub const LARGEST_TEXT: u64 = 64 << 20;

/// How much of the trail an export tells, from the newest back.
pub const TAIL: usize = 10_000;

const FORMAT: &str = "mooring.dev/book";

/// A whole book, ready for any serde format.
#[derive(Debug, Serialize)]
pub struct Text {
    format: &'static str,
    version: u64,
    leases: Vec<LeaseRow>,
    reservations: Vec<ReservationRow>,
    packages: Vec<PackageRow>,
    audit: Vec<AuditRow>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LeaseRow {
    network: String,
    what: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    subnet: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gateway: Option<String>,
    holder: Holder,
    state: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    since: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReservationRow {
    network: String,
    what: String,
    owner: String,
    reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PackageRow {
    cluster: String,
    id: String,
    name: String,
    path: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    workloads: BTreeMap<String, String>,
    /// The networks whose VLAN it uses.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    vlans: BTreeSet<String>,
    at: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AuditRow {
    at: String,
    event: Event,
    network: String,
    what: String,
    holder: Holder,
}

impl From<&Content> for Text {
    fn from(content: &Content) -> Self {
        Self {
            format: FORMAT,
            version: TEXT_VERSION,
            leases: content.leases.iter().map(lease).collect(),
            reservations: content.reservations.iter().map(reservation).collect(),
            packages: content.packages.iter().map(package).collect(),
            audit: content.audit[content.audit.len().saturating_sub(TAIL)..]
                .iter()
                .map(entry)
                .collect(),
        }
    }
}

fn lease(lease: &Lease) -> LeaseRow {
    let (state, until) = match lease.state {
        State::Held => ("held", None),
        State::Reserved { until, .. } => ("reserved", Some(until)),
        State::Cooling { until } => ("cooling", Some(until)),
    };
    LeaseRow {
        network: lease.instance.to_string(),
        what: what(&lease.thing),
        subnet: lease.subnet.map(|s| s.to_string()),
        gateway: lease.gateway.map(|g| g.to_string()),
        holder: lease.holder.clone(),
        state: state.to_owned(),
        until: until.map(moment),
        since: moment(lease.since),
    }
}

fn reservation(reservation: &Reservation) -> ReservationRow {
    let Reservation {
        instance,
        thing,
        owner,
        reason,
        until,
    } = reservation;
    ReservationRow {
        network: instance.to_string(),
        what: what(thing),
        owner: owner.clone(),
        reason: reason.clone(),
        until: until.map(moment),
    }
}

fn package(record: &PackageRecord) -> PackageRow {
    PackageRow {
        cluster: record.cluster.clone(),
        id: record.id.clone(),
        name: record.name.clone(),
        path: record.path.clone(),
        workloads: record.workloads.clone(),
        vlans: record.vlans.iter().map(InstanceKey::to_string).collect(),
        at: moment(record.at),
    }
}

fn entry(entry: &Entry) -> AuditRow {
    AuditRow {
        at: moment(entry.at),
        event: entry.event,
        network: entry.instance.to_string(),
        what: what(&entry.thing),
        holder: entry.holder.clone(),
    }
}

/// `10.1.2.20`, `10.1.2.32/28`, `10.1.2.30-10.1.2.39` or `vlan 100`.
fn what(thing: &Thing) -> String {
    match thing {
        Thing::Addr(addr) => addr.to_string(),
        Thing::Block(block) => block.to_string(),
        Thing::Range(range) => format!("{}-{}", range.first(), range.last()),
        Thing::Vlan(vlan) => format!("vlan {vlan}"),
    }
}

/// RFC 3339 in UTC; a time that no calendar has is its seconds.
fn moment(time: Time) -> String {
    let seconds = i64::try_from(time.0).unwrap_or(i64::MAX);
    let stamp = jiff::Timestamp::from_second(seconds);
    stamp.map_or_else(|_| time.0.to_string(), |t| t.to_string())
}
