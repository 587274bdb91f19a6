//! Leases as they stand in objects, and back.
//!
//! A [`Record`] is a lease with what only this store keeps beside it. Easy to get wrong: every write gives a record a new
//! `nonce`, so that uid and nonce name one version of it whatever else (a label, an annotation) somebody edits.

use jiff::Timestamp;
use kube::api::ObjectMeta;
use mooring_api::Time;
use mooring_api::kinds::mooring::{
    ClaimRef, IPLease, IPLeaseSpec, InstanceRef, LeaseHolder, LeaseState, PrefixEntry,
    ReservationNote,
};
use mooring_ipam::{Holder, InstanceKey, Lease, State, Thing, TxnId};
use serde::{Deserialize, Serialize};

use super::name;
use crate::reservation::Reservation;

/// The last second that RFC 3339 can say. What ends later never ends.
const LAST: u64 = 253_402_207_200;

/// A lease, and what this store keeps beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) lease: Lease,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reservation: Option<ReservationNote>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) claim: Option<ClaimRef>,
    /// Of a prefix or a range: no address lay in its way after it was written.
    #[serde(default)]
    pub(super) checked: bool,
    pub(super) nonce: String,
}

impl Record {
    pub(super) fn new(lease: Lease, nonce: String) -> Self {
        Self {
            lease,
            reservation: None,
            claim: None,
            checked: false,
            nonce,
        }
    }

    /// What was reserved by hand, where this is beside it.
    pub(super) fn reservation(&self) -> Option<Reservation> {
        let note = self.reservation.as_ref()?;
        Some(Reservation {
            instance: self.lease.instance.clone(),
            thing: self.lease.thing,
            owner: note.owner.clone(),
            reason: note.reason.clone(),
            until: note.until.as_deref().and_then(time),
        })
    }
}

/// A reservation as it stands beside its lease.
pub(super) fn note(reservation: &Reservation) -> ReservationNote {
    ReservationNote {
        owner: reservation.owner.clone(),
        reason: reservation.reason.clone(),
        until: reservation.until.map(text),
    }
}

/// RFC 3339.
pub(super) fn text(time: Time) -> String {
    let seconds = i64::try_from(time.0.min(LAST)).unwrap_or_default();
    Timestamp::from_second(seconds).map_or_else(|_| String::new(), |t| t.to_string())
}

pub(super) fn time(text: &str) -> Option<Time> {
    let at: Timestamp = text.parse().ok()?;
    let seconds = u64::try_from(at.as_second()).ok()?;
    Some(Time(if seconds >= LAST { u64::MAX } else { seconds }))
}

fn instance(of: &InstanceRef) -> InstanceKey {
    InstanceKey::new(&of.namespace, &of.name)
}

pub(super) fn instance_ref(of: &InstanceKey) -> InstanceRef {
    InstanceRef {
        namespace: of.namespace().to_owned(),
        name: of.name().to_owned(),
    }
}

fn holder(of: &LeaseHolder) -> Holder {
    let LeaseHolder {
        cluster,
        package,
        namespace,
        workload,
        interface,
        family,
        ordinal,
    } = of.clone();
    Holder {
        cluster,
        package,
        namespace,
        workload,
        interface,
        family,
        ordinal,
    }
}

fn lease_holder(of: &Holder) -> LeaseHolder {
    let Holder {
        cluster,
        package,
        namespace,
        workload,
        interface,
        family,
        ordinal,
    } = of.clone();
    LeaseHolder {
        cluster,
        package,
        namespace,
        workload,
        interface,
        family,
        ordinal,
    }
}

fn state(state: LeaseState, txn: Option<&str>, until: Option<&str>) -> Option<State> {
    let until = until.and_then(time);
    match state {
        LeaseState::Held => Some(State::Held),
        LeaseState::Cooling => until.map(|until| State::Cooling { until }),
        LeaseState::Reserved => {
            let txn = TxnId(txn?.parse().ok()?);
            until.map(|until| State::Reserved { txn, until })
        }
    }
}

fn written(state: State) -> (LeaseState, Option<String>, Option<String>) {
    match state {
        State::Held => (LeaseState::Held, None, None),
        State::Cooling { until } => (LeaseState::Cooling, None, Some(text(until))),
        State::Reserved { txn, until } => (
            LeaseState::Reserved,
            Some(txn.0.to_string()),
            Some(text(until)),
        ),
    }
}

/// What an object says; None for one that no store wrote.
pub(super) fn read(object: &IPLease) -> Option<Record> {
    let spec = &object.spec;
    let thing = match (spec.address, spec.vlan) {
        (Some(addr), None) => Thing::Addr(addr),
        (None, Some(vlan)) => Thing::Vlan(vlan),
        _ => return None,
    };
    let instance = instance(&spec.instance);
    // A name that is not made from its content locks nothing.
    if object.metadata.name != name::of_lease(&instance, &thing) {
        return None;
    }
    Some(Record {
        lease: Lease {
            instance,
            thing,
            subnet: spec.subnet,
            gateway: spec.gateway,
            holder: holder(&spec.holder),
            state: state(spec.state, spec.txn.as_deref(), spec.until.as_deref())?,
            since: time(&spec.taken_at)?,
        },
        reservation: spec.reservation.clone(),
        claim: spec.claim_ref.clone(),
        checked: true,
        nonce: spec.nonce.clone(),
    })
}

/// A record as an object; None for what stands in a ledger.
pub(super) fn object(record: &Record) -> Option<IPLease> {
    let lease = &record.lease;
    let (address, vlan) = match lease.thing {
        Thing::Addr(addr) => (Some(addr), None),
        Thing::Vlan(vlan) => (None, Some(vlan)),
        Thing::Block(_) | Thing::Range(_) => return None,
    };
    let (state, txn, until) = written(lease.state);
    Some(IPLease {
        metadata: ObjectMeta {
            name: name::of_lease(&lease.instance, &lease.thing),
            labels: Some(name::labels(&lease.instance, &lease.holder)),
            ..ObjectMeta::default()
        },
        spec: IPLeaseSpec {
            instance: instance_ref(&lease.instance),
            address,
            vlan,
            subnet: lease.subnet,
            gateway: lease.gateway,
            holder: lease_holder(&lease.holder),
            who: lease.holder.to_string(),
            state,
            txn,
            until,
            taken_at: text(lease.since),
            reservation: record.reservation.clone(),
            claim_ref: record.claim.clone(),
            nonce: record.nonce.clone(),
        },
    })
}

/// What an entry of a ledger says.
pub(super) fn read_entry(of: &InstanceRef, entry: &PrefixEntry) -> Option<Record> {
    let thing = match (entry.prefix, entry.range) {
        (Some(block), None) => Thing::Block(block),
        (None, Some(range)) => Thing::Range(range),
        _ => return None,
    };
    Some(Record {
        lease: Lease {
            instance: instance(of),
            thing,
            subnet: entry.subnet,
            gateway: entry.gateway,
            holder: holder(&entry.holder),
            state: state(entry.state, entry.txn.as_deref(), entry.until.as_deref())?,
            since: time(&entry.taken_at)?,
        },
        reservation: entry.reservation.clone(),
        claim: entry.claim_ref.clone(),
        checked: entry.checked,
        nonce: entry.nonce.clone(),
    })
}

/// A record as an entry of a ledger; None for what is an object of its own.
pub(super) fn entry(record: &Record) -> Option<PrefixEntry> {
    let lease = &record.lease;
    let (prefix, range) = match lease.thing {
        Thing::Block(block) => (Some(block), None),
        Thing::Range(range) => (None, Some(range)),
        Thing::Addr(_) | Thing::Vlan(_) => return None,
    };
    let (state, txn, until) = written(lease.state);
    Some(PrefixEntry {
        prefix,
        range,
        subnet: lease.subnet,
        gateway: lease.gateway,
        holder: lease_holder(&lease.holder),
        state,
        txn,
        until,
        taken_at: text(lease.since),
        checked: record.checked,
        reservation: record.reservation.clone(),
        claim_ref: record.claim.clone(),
        nonce: record.nonce.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use mooring_api::Family;

    #[test]
    fn a_record_survives_its_object() {
        let states = [
            State::Held,
            State::Cooling { until: Time(77) },
            State::Reserved {
                txn: TxnId(1_048_576_000_001),
                until: Time(u64::MAX),
            },
        ];
        let things = ["10.0.0.1", "fd00::9"].map(|a| Thing::Addr(a.parse().unwrap()));
        let wide = [
            Thing::Block("10.0.0.0/24".parse().unwrap()),
            Thing::Range("10.0.0.3-10.0.0.9".parse().unwrap()),
        ];
        for (state, thing) in states
            .into_iter()
            .flat_map(|s| things.iter().chain(&wide).map(move |t| (s, *t)))
        {
            let lease = Lease {
                instance: InstanceKey::new("lab", "ran"),
                thing,
                subnet: Some("10.0.0.0/16".parse().unwrap()),
                gateway: None,
                holder: Holder::outside("router", "uplink", Family::V4),
                state,
                since: Time(1_000_000),
            };
            let mut record = Record::new(lease, "n".to_owned());
            record.checked = true;
            let back = match object(&record) {
                Some(object) => read(&object),
                None => read_entry(
                    &instance_ref(&record.lease.instance),
                    &entry(&record).unwrap(),
                ),
            };
            assert_eq!(back, Some(record));
        }
    }

    #[test]
    fn an_object_whose_name_is_not_made_from_its_content_is_not_a_lease() {
        let lease = Lease {
            instance: InstanceKey::new("", "ran"),
            thing: Thing::Addr("10.0.0.1".parse().unwrap()),
            subnet: None,
            gateway: None,
            holder: Holder::outside("router", "uplink", Family::V4),
            state: State::Held,
            since: Time(1),
        };
        let mut made = object(&Record::new(lease, String::new())).unwrap();
        made.metadata.name = Some("by-hand".to_owned());
        assert_eq!(read(&made), None);
    }
}
