//! Values for tests, short to write.

use mooring_api::{Family, Span, Time};
use mooring_book::{Error, Outcome, PackageRecord, Store, Txn};
use mooring_ipam::{Candidate, Holder, InstanceKey, Lease, Table, Thing, TxnId};

pub(crate) const NOW: Time = Time(1_000_000);
pub(crate) const TTL: Span = Span(600);

pub(crate) fn later(seconds: u64) -> Time {
    NOW.after(Span(seconds))
}

pub(crate) fn instance() -> InstanceKey {
    InstanceKey::new("", "vpc-ran")
}

/// The interface `n{n}` of package `{package}` in cluster `edge`.
pub(crate) fn holder_of(package: &str, n: u32) -> Holder {
    Holder {
        cluster: "edge".to_owned(),
        package: package.to_owned(),
        namespace: "free5gc".to_owned(),
        workload: String::new(),
        interface: format!("n{n}"),
        family: Family::V4,
        ordinal: 0,
    }
}

pub(crate) fn holder(n: u32) -> Holder {
    holder_of("upf", n)
}

pub(crate) fn thing(text: &str) -> Thing {
    if let Some(id) = text.strip_prefix("vlan ") {
        let id: u16 = id.parse().unwrap();
        Thing::Vlan(id.try_into().unwrap())
    } else if text.contains('/') {
        Thing::Block(text.parse().unwrap())
    } else if text.contains('-') {
        Thing::Range(text.parse().unwrap())
    } else {
        Thing::Addr(text.parse().unwrap())
    }
}

/// A candidate in a /16 or a /48 around it.
pub(crate) fn candidate(text: &str) -> Candidate {
    let thing = thing(text);
    let subnet = thing.range().map(|r| {
        let len = if r.family() == Family::V4 { 16 } else { 48 };
        mooring_api::Cidr::containing(r.first(), len)
    });
    Candidate {
        thing,
        subnet,
        gateway: subnet.map(|s| s.hosts().first()),
    }
}

pub(crate) fn take(txn: &mut dyn Txn, text: &str, holder: &Holder) -> Outcome {
    txn.try_take(&instance(), &candidate(text), holder).unwrap()
}

pub(crate) fn win(txn: &mut dyn Txn, text: &str, holder: &Holder) -> Lease {
    match take(txn, text, holder) {
        Outcome::Won(lease) => lease,
        Outcome::Lost(lease) => panic!("{text} was lost to {}", lease.holder),
    }
}

pub(crate) fn lose(txn: &mut dyn Txn, text: &str, holder: &Holder) -> Lease {
    match take(txn, text, holder) {
        Outcome::Lost(lease) => lease,
        Outcome::Won(_) => panic!("{text} was won by {holder}"),
    }
}

pub(crate) fn release(txn: &mut dyn Txn, text: &str, cool_down: u64) {
    txn.release(&instance(), &thing(text), Span(cool_down))
        .unwrap();
}

pub(crate) fn reserve(store: &dyn Store, now: Time, work: impl FnOnce(&mut dyn Txn)) -> TxnId {
    let mut txn = store.begin(now).unwrap();
    work(&mut *txn);
    txn.reserve(TTL).unwrap()
}

pub(crate) fn commit(store: &dyn Store, now: Time, work: impl FnOnce(&mut dyn Txn)) -> TxnId {
    let id = reserve(store, now, work);
    store.commit(id, now).unwrap();
    id
}

pub(crate) fn package(id: &str, path: &str) -> PackageRecord {
    PackageRecord {
        id: id.to_owned(),
        cluster: "edge".to_owned(),
        name: "upf".to_owned(),
        path: path.to_owned(),
        workloads: std::collections::BTreeMap::new(),
        vlans: std::collections::BTreeSet::new(),
        at: NOW,
    }
}

/// Leases as `thing holder state`, one per line.
pub(crate) fn shown(store: &dyn Store) -> Vec<String> {
    use mooring_ipam::State::{Cooling, Held, Reserved};
    let all = store.leases(&mooring_book::Filter::default()).unwrap();
    let line = |lease: &Lease| {
        let state = match lease.state {
            Held => "held".to_owned(),
            Reserved { .. } => "reserved".to_owned(),
            Cooling { until } => format!("cooling {}", until.0 - NOW.0),
        };
        format!("{} {} {state}", lease.thing, lease.holder.interface)
    };
    all.iter().map(line).collect()
}

/// What a table itself finds wrong, over all instances. Ends with no transaction open.
pub(crate) fn defects(store: &dyn Store, now: Time) -> Result<Vec<String>, Error> {
    let leases = store.leases(&mooring_book::Filter::default())?;
    let mut instances: Vec<InstanceKey> = leases.into_iter().map(|l| l.instance).collect();
    instances.dedup();
    let txn = store.begin(now)?;
    let mut wrong = Vec::new();
    for instance in &instances {
        txn.with_table(instance, &mut |table: &Table| wrong.extend(table.check()))?;
    }
    Ok(wrong)
}

/// A small generator, the same numbers every time.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % n.max(1)
    }
}
