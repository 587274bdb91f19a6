//! The tables of the book file, and how a lease becomes a key.
//!
//! A lease is keyed by (namespace, instance, class, big-endian address bytes), so that one range scan
//! reads one instance in address order. Values are JSON: a book can be read with any redb tool, and a field that
//! a later version adds does not break an older file. The schema number rises only when an old reader would err.

use mooring_api::{AddrRange, Family};
use mooring_ipam::{Lease, Thing};
use redb::TableDefinition;

/// The schema this version reads and writes.
pub(super) const SCHEMA: u64 = 1;

pub(super) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
pub(super) const META_SCHEMA: &str = "schema";
pub(super) const META_NEXT_TXN: &str = "next_txn";
pub(super) const META_NEXT_ENTRY: &str = "next_entry";
/// How often the book was changed.
pub(super) const META_CHANGES: &str = "changes";

/// (namespace, instance, class, address).
pub(super) type LeaseKey<'a> = (&'a str, &'a str, u8, &'a [u8]);
pub(super) const LEASES: TableDefinition<'_, LeaseKey<'static>, &[u8]> =
    TableDefinition::new("leases");

/// (cluster, package, then the lease's key).
pub(super) type HolderKey<'a> = (&'a str, &'a str, &'a str, &'a str, u8, &'a [u8]);
pub(super) const HOLDERS: TableDefinition<'_, HolderKey<'static>, ()> =
    TableDefinition::new("holders");

/// (cluster, id).
pub(super) const PACKAGES: TableDefinition<'_, (&str, &str), &[u8]> =
    TableDefinition::new("packages");
/// What was reserved by hand, by the lease's key. Books that are older than reservations do not have it.
pub(super) const RESERVATIONS: TableDefinition<'_, LeaseKey<'static>, &[u8]> =
    TableDefinition::new("reservations");
pub(super) const TXNS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("transactions");
pub(super) const COMMITTED: TableDefinition<'_, u64, u64> = TableDefinition::new("committed");
pub(super) const AUDIT: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("audit");

/// Above every class, so that it ends a scan over an instance.
pub(super) const CLASS_END: u8 = u8::MAX;

/// Class, and the bytes that order a thing inside it: first address, kind, last address. The first address alone
/// would not do, since a block and what was taken from a subnet inside it may begin at the same one.
pub(super) fn place(thing: &Thing) -> (u8, Vec<u8>) {
    let (kind, range) = match thing {
        Thing::Vlan(id) => return (100, id.get().to_be_bytes().to_vec()),
        Thing::Addr(addr) => (0, AddrRange::single(*addr)),
        Thing::Block(block) => (1, block.range()),
        Thing::Range(range) => (2, *range),
    };
    let (class, skip) = match range.family() {
        Family::V4 => (4, 12),
        Family::V6 => (6, 0),
    };
    let number = |addr| Family::number(addr).to_be_bytes();
    let mut bytes = number(range.first())[skip..].to_vec();
    bytes.push(kind);
    bytes.extend_from_slice(&number(range.last())[skip..]);
    (class, bytes)
}

/// The owned parts of a lease's keys.
pub(super) struct Keys<'a> {
    lease: &'a Lease,
    class: u8,
    place: Vec<u8>,
}

impl<'a> Keys<'a> {
    pub(super) fn of(lease: &'a Lease) -> Self {
        let (class, place) = place(&lease.thing);
        Self {
            lease,
            class,
            place,
        }
    }

    pub(super) fn lease(&self) -> LeaseKey<'_> {
        let instance = &self.lease.instance;
        (
            instance.namespace(),
            instance.name(),
            self.class,
            &self.place,
        )
    }

    pub(super) fn holder(&self) -> HolderKey<'_> {
        let (namespace, name, class, place) = self.lease();
        let holder = &self.lease.holder;
        (
            &holder.cluster,
            &holder.package,
            namespace,
            name,
            class,
            place,
        )
    }
}
