//! What is taken: one lease per address, block, range or VLAN.

use std::fmt;
use std::net::IpAddr;

use mooring_api::{AddrRange, Cidr, Time, VlanId};
use serde::{Deserialize, Serialize};

use crate::{Holder, InstanceKey};

/// What a lease is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Thing {
    /// One address.
    Addr(IpAddr),
    /// A prefix.
    Block(Cidr),
    /// Consecutive addresses.
    Range(AddrRange),
    /// A VLAN id.
    Vlan(VlanId),
}

impl Thing {
    /// The addresses it covers; None for a VLAN.
    pub fn range(&self) -> Option<AddrRange> {
        match self {
            Self::Addr(a) => Some(AddrRange::single(*a)),
            Self::Block(c) => Some(c.range()),
            Self::Range(r) => Some(*r),
            Self::Vlan(_) => None,
        }
    }
}

impl fmt::Display for Thing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Addr(a) => a.fmt(f),
            Self::Block(c) => c.fmt(f),
            Self::Range(r) => r.fmt(f),
            Self::Vlan(v) => write!(f, "VLAN {v}"),
        }
    }
}

/// A transaction of the book, for as long as it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TxnId(pub u64);

/// Where a lease is in its life: reserved → held → cooling → gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Taken by an open transaction; reaped when it expires.
    Reserved {
        /// By which transaction.
        txn: TxnId,
        /// Until when.
        until: Time,
    },
    /// Taken.
    Held,
    /// Released; its last holder may take it again, others only after `until`.
    Cooling {
        /// Until when.
        until: Time,
    },
}

impl State {
    /// Whether it still counts at `now`: held, or its end has not come.
    pub fn is_live(&self, now: Time) -> bool {
        match self {
            Self::Held => true,
            Self::Reserved { until, .. } | Self::Cooling { until } => *until > now,
        }
    }
}

/// Somebody has something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Where.
    pub instance: InstanceKey,
    /// What.
    pub thing: Thing,
    /// The subnet it lies in; None for a VLAN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subnet: Option<Cidr>,
    /// That subnet's gateway when it was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<IpAddr>,
    /// Who.
    pub holder: Holder,
    /// Where it is in its life.
    pub state: State,
    /// Since when.
    pub since: Time,
}

/// A lease to be, by reference: what a table needs to take something without a copy of its holder.
#[derive(Clone, Copy, Debug)]
pub struct Grant<'a> {
    /// What.
    pub thing: Thing,
    /// The subnet it lies in.
    pub subnet: Option<Cidr>,
    /// That subnet's gateway.
    pub gateway: Option<IpAddr>,
    /// Who.
    pub holder: &'a Holder,
    /// Where it is in its life.
    pub state: State,
    /// Since when.
    pub since: Time,
}

impl<'a> From<&'a Lease> for Grant<'a> {
    fn from(lease: &'a Lease) -> Self {
        let Lease {
            thing,
            subnet,
            gateway,
            ref holder,
            state,
            since,
            ..
        } = *lease;
        Self {
            thing,
            subnet,
            gateway,
            holder,
            state,
            since,
        }
    }
}
