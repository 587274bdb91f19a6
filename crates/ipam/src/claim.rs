//! What is wanted.

use std::net::IpAddr;

use mooring_api::{AddrRange, Cidr, HostCidr, Selector, VlanId};

use crate::{Holder, InstanceKey, Kind, Thing};

/// A wish for addresses in an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Who wants it.
    pub holder: Holder,
    /// Where.
    pub instance: InstanceKey,
    /// For what.
    pub kind: Kind,
    /// How much.
    pub want: Want,
    /// Which prefixes may serve it.
    pub selector: Selector,
    /// This address or block and no other. A host address with any length means that address.
    pub fixed: Option<HostCidr>,
    /// What it had before (a status, a rendered NAD): taken again if it is free and fits.
    pub before: Option<Thing>,
    /// Names under which `spec.allocations` may keep something for it.
    pub names: Vec<String>,
    /// How to choose.
    pub order: Order,
}

/// How much is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Want {
    /// One address.
    Address,
    /// A block of that prefix length.
    Block {
        /// Prefix length.
        len: u8,
    },
    /// That many consecutive addresses, without alignment, for one cluster or node.
    Range {
        /// How many.
        count: u32,
    },
    /// A VLAN id. The instance is then the VLANIndex.
    Vlan {
        /// This id and no other.
        id: Option<VlanId>,
    },
}

/// In which order free addresses are offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// Lowest first. Needs one writer.
    #[default]
    LowestFirst,
    /// Nephio's: the smallest free aligned block that fits, lowest address among equals.
    BestFit,
    /// The n-th usable address of the first prefix, counted from 0, and no other.
    Index(u32),
    /// By a hash of holder and address: many writers do not collide.
    Rendezvous,
}

/// An offer: free as far as the view knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// What.
    pub thing: Thing,
    /// The subnet it lies in; None for a VLAN.
    pub subnet: Option<Cidr>,
    /// That subnet's gateway.
    pub gateway: Option<IpAddr>,
}

impl Candidate {
    /// The range of addresses it covers; None for a VLAN.
    pub fn range(&self) -> Option<AddrRange> {
        self.thing.range()
    }
}
