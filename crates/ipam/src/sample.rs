//! Small values for this room's tests.

use std::collections::BTreeMap;
use std::net::IpAddr;

use mooring_api::{AddrRange, Cidr, Family, ObjectRef, Selector, Span, Time};

use crate::{
    Candidate, Claim, Holder, Instance, InstanceKey, Kind, Lease, Order, Pools, Prefix, Refusal,
    State, Table, Want, candidates,
};

pub(crate) const T0: Time = Time(1_000);

pub(crate) fn addr(s: &str) -> IpAddr {
    s.parse().unwrap()
}

pub(crate) fn cidr(s: &str) -> Cidr {
    s.parse().unwrap()
}

pub(crate) fn range(s: &str) -> AddrRange {
    s.parse().unwrap()
}

pub(crate) fn instance() -> InstanceKey {
    InstanceKey::new("", "vpc")
}

pub(crate) fn holder(interface: &str) -> Holder {
    Holder {
        cluster: "edge".into(),
        package: "pkg".into(),
        namespace: String::new(),
        workload: String::new(),
        interface: interface.into(),
        family: Family::V4,
        ordinal: 0,
    }
}

pub(crate) fn prefix(net: &str) -> Prefix {
    Prefix {
        origin: ObjectRef::new("ipam.resource.nephio.org/v1alpha1", "IPPrefix", net),
        field: "spec.prefix".into(),
        instance: instance(),
        cidr: cidr(net),
        kind: Kind::Network,
        labels: BTreeMap::new(),
        gateway: None,
        ranges: Vec::new(),
        exclude: Vec::new(),
        cool_down: Span(0),
        drain: false,
        kept: Vec::new(),
    }
}

/// Pools of one instance; the prefixes are named p0, p1, …
pub(crate) fn pools(mut prefixes: Vec<Prefix>) -> Pools {
    for (i, p) in prefixes.iter_mut().enumerate() {
        p.origin.name = format!("p{i}");
    }
    let key = instance();
    let vpc = Instance {
        origin: ObjectRef::new(
            "ipam.resource.nephio.org/v1alpha1",
            "NetworkInstance",
            "vpc",
        ),
        key: key.clone(),
        isolated: false,
        aggregates: Vec::new(),
    };
    Pools {
        instances: BTreeMap::from([(key, vpc)]),
        prefixes,
    }
}

pub(crate) fn table() -> Table {
    Table::new(instance())
}

/// A claim for an address; its family is that of `net`.
pub(crate) fn claim(interface: &str, net: &str) -> Claim {
    let mut holder = holder(interface);
    if net.contains(':') {
        holder.family = Family::V6;
    }
    Claim {
        holder,
        instance: instance(),
        kind: Kind::Network,
        want: Want::Address,
        selector: Selector::default(),
        fixed: None,
        before: None,
        names: Vec::new(),
        order: Order::LowestFirst,
    }
}

pub(crate) fn block(interface: &str, kind: Kind, len: u8) -> Claim {
    Claim {
        kind,
        want: Want::Block { len },
        ..claim(interface, "")
    }
}

pub(crate) fn first(pools: &Pools, table: &Table, claim: &Claim) -> Result<Candidate, Refusal> {
    candidates(pools, table, claim, T0).map(|d| d.first().expect("an offer is never empty"))
}

pub(crate) fn lease(claim: &Claim, candidate: Candidate) -> Lease {
    Lease {
        instance: claim.instance.clone(),
        thing: candidate.thing,
        subnet: candidate.subnet,
        gateway: candidate.gateway,
        holder: claim.holder.clone(),
        state: State::Held,
        since: T0,
    }
}

pub(crate) fn take(table: &mut Table, claim: &Claim, candidate: Candidate) {
    table
        .insert(lease(claim, candidate))
        .expect("a candidate is free");
}
