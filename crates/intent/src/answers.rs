//! Addresses: what a compilation wants, and what it was given.
//!
//! [`wants()`] says which addresses, transfer networks and claims the inputs need, each under a key that does not change
//! when a node joins or another object comes. The hands take them from the book; offline [`allocate()`] does the same
//! arithmetic with the same room. Keys carry an ordinal, so that growing keeps what is there and shrinking gives back
//! from the end.
//!
//! Easy to get wrong: an answer that nobody wants any more is not kept here. Who holds it releases it, but never one of an
//! object in [`crate::Compiled::frozen`]: its last good form still uses what its present spec no longer wants.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use mooring_api::{AddrRange, Cidr, Family, Finding, HostCidr, ObjectRef, Span, Time};
use mooring_ipam::{
    Claim, Holder, Instance, InstanceKey, Kind, Lease, Order, Pools, Prefix, State, Table, Thing,
    candidates,
};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use crate::compile::{self, Context};
use crate::{Inputs, Prior};

/// What was given, by key. An address has the length of its family. A copy costs nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "BTreeMap<String, Cidr>")]
pub struct Answers(Arc<BTreeMap<String, Cidr>>);

impl From<BTreeMap<String, Cidr>> for Answers {
    fn from(given: BTreeMap<String, Cidr>) -> Self {
        Self(Arc::new(given))
    }
}

impl Serialize for Answers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.as_ref().serialize(serializer)
    }
}

impl Answers {
    /// Notes an answer.
    pub fn give(&mut self, key: impl Into<String>, what: Cidr) {
        Arc::make_mut(&mut self.0).insert(key.into(), what);
    }

    /// The answer to a key.
    pub fn get(&self, key: &str) -> Option<Cidr> {
        self.0.get(key).copied()
    }

    /// The address that answers a key.
    pub fn address(&self, key: &str) -> Option<IpAddr> {
        self.get(key).map(|c| c.network())
    }

    /// All of them, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Cidr)> {
        self.0.iter().map(|(key, what)| (key.as_str(), *what))
    }

    /// Those of both; `other` counts where both have one.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let mut both = self.clone();
        if !other.0.is_empty() {
            let all = Arc::make_mut(&mut both.0);
            all.extend(other.0.iter().map(|(k, v)| (k.clone(), *v)));
        }
        both
    }

    /// The keys whose answers two sets do not agree on.
    pub(crate) fn differing<'a>(&'a self, other: &'a Self) -> BTreeSet<&'a str> {
        if Arc::ptr_eq(&self.0, &other.0) {
            return BTreeSet::new();
        }
        let (mut ours, mut theirs) = (self.iter().peekable(), other.iter().peekable());
        let mut keys = BTreeSet::new();
        loop {
            let order = match (ours.peek(), theirs.peek()) {
                (None, None) => return keys,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(one), Some(other)) if one == other => {
                    ours.next();
                    theirs.next();
                    continue;
                }
                (Some((one, _)), Some((other, _))) => one.cmp(other),
            };
            if order.is_le() {
                keys.extend(ours.next().map(|(key, _)| key));
            }
            if order.is_ge() {
                keys.extend(theirs.next().map(|(key, _)| key));
            }
        }
    }
}

/// Something that a compilation wants.
#[derive(Clone, Debug, PartialEq)]
pub struct Want {
    /// The key of its answer.
    pub key: String,
    /// The object that wants it.
    pub owner: ObjectRef,
    /// The field that says so.
    pub field: String,
    /// The routing domain: addresses of one do not disturb another's. For a subnet that an object writes it is that
    /// subnet, which never changes, and not its VRFs, which a label on a Destination can change.
    pub instance: String,
    /// Where from.
    pub source: Source,
}

/// Where something wanted comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// One address.
    Address {
        /// Of this subnet.
        subnet: Cidr,
        /// This one and no other.
        fixed: Option<IpAddr>,
        /// None of these.
        avoid: Vec<AddrRange>,
    },
    /// A smaller network.
    Block {
        /// Of this range.
        range: Cidr,
        /// Of this length.
        len: u8,
    },
    /// An IPAddressClaim of Cluster API IPAM, to be applied; its IPAddress is the answer.
    Claim {
        /// The object.
        object: Value,
    },
}

/// What the inputs need, in a stable order: older objects first.
pub fn wants(inputs: &Inputs) -> Vec<Want> {
    let (answers, prior) = (Answers::default(), Prior::default());
    let context = Context::new(inputs, &answers, &prior);
    compile::wants(&context)
}

/// Answers from the arithmetic alone: what was given before first, then what is fixed, then the lowest that is free.
pub fn allocate(wants: &[Want], before: &Answers) -> (Answers, Vec<Finding>) {
    let mut pools: BTreeMap<(&str, Cidr), Vec<&Want>> = BTreeMap::new();
    for want in wants {
        let subnet = match &want.source {
            Source::Address { subnet, .. } => *subnet,
            Source::Block { range, .. } => *range,
            Source::Claim { .. } => continue,
        };
        pools
            .entry((&want.instance, subnet))
            .or_default()
            .push(want);
    }
    let (mut given, mut findings) = (Answers::default(), Vec::new());
    for ((instance, subnet), wants) in pools {
        serve(instance, subnet, &wants, before, &mut given, &mut findings);
    }
    (given, findings)
}

fn serve(
    instance: &str,
    subnet: Cidr,
    wants: &[&Want],
    before: &Answers,
    given: &mut Answers,
    findings: &mut Vec<Finding>,
) {
    let key = InstanceKey::new("intents", instance);
    let pools = pool(&key, subnet, wants);
    let mut table = Table::new(key.clone());
    let is_fixed = |w: &Want| matches!(&w.source, Source::Address { fixed: Some(_), .. });
    let rank = |w: &Want| (!is_fixed(w), before.get(&w.key).is_none());
    let mut ordered = wants.to_vec();
    ordered.sort_by_key(|want| rank(want));
    for want in ordered {
        let claim = claim(&key, want, before);
        let candidate = match candidates(&pools, &table, &claim, Time(0)) {
            Ok(decision) => decision.first(),
            Err(refusal) => {
                findings.push(refusal.finding().on(&want.owner).at(want.field.clone()));
                continue;
            }
        };
        let Some(candidate) = candidate else {
            let refusal = mooring_ipam::exhausted(&pools, &table, &claim, Time(0));
            findings.push(refusal.finding().on(&want.owner).at(want.field.clone()));
            continue;
        };
        let what = match candidate.thing {
            Thing::Addr(addr) => Cidr::containing(addr, Family::of(addr).bits()),
            Thing::Block(block) => block,
            _ => continue,
        };
        let lease = Lease {
            instance: key.clone(),
            thing: candidate.thing,
            subnet: candidate.subnet,
            gateway: None,
            holder: claim.holder,
            state: State::Held,
            since: Time(0),
        };
        if table.insert(lease).is_ok() {
            given.give(want.key.clone(), what);
        }
    }
}

fn pool(key: &InstanceKey, subnet: Cidr, wants: &[&Want]) -> Pools {
    let owner = wants.first().map(|w| w.owner.clone()).unwrap_or_default();
    let mut exclude: Vec<AddrRange> = Vec::new();
    let mut kind = Kind::Pool;
    for want in wants {
        if let Source::Address { avoid, .. } = &want.source {
            kind = Kind::Network;
            exclude.extend(
                avoid
                    .iter()
                    .filter(|a| !exclude.contains(a))
                    .copied()
                    .collect::<Vec<_>>(),
            );
        }
    }
    let prefix = Prefix {
        origin: owner.clone(),
        field: "spec.network".to_owned(),
        instance: key.clone(),
        cidr: subnet,
        kind,
        labels: BTreeMap::new(),
        gateway: None,
        ranges: Vec::new(),
        exclude,
        cool_down: Span(0),
        drain: false,
        kept: Vec::new(),
    };
    let instance = Instance {
        origin: owner,
        key: key.clone(),
        isolated: true,
        aggregates: Vec::new(),
    };
    Pools {
        instances: BTreeMap::from([(key.clone(), instance)]),
        prefixes: vec![prefix],
    }
}

fn claim(key: &InstanceKey, want: &Want, before: &Answers) -> Claim {
    let (family, kind, amount, fixed) = match &want.source {
        Source::Block { range, len } => (
            range.family(),
            Kind::Pool,
            mooring_ipam::Want::Block { len: *len },
            None,
        ),
        Source::Address { subnet, fixed, .. } => (
            subnet.family(),
            Kind::Network,
            mooring_ipam::Want::Address,
            fixed.map(HostCidr::single),
        ),
        Source::Claim { .. } => (Family::V4, Kind::Network, mooring_ipam::Want::Address, None),
    };
    let before = before.get(&want.key).map(|had| match amount {
        mooring_ipam::Want::Block { .. } => Thing::Block(had),
        _ => Thing::Addr(had.network()),
    });
    Claim {
        holder: Holder::outside(want.owner.to_string(), want.key.clone(), family),
        instance: key.clone(),
        kind,
        want: amount,
        selector: mooring_api::Selector::default(),
        fixed,
        before,
        names: Vec::new(),
        order: Order::LowestFirst,
    }
}
