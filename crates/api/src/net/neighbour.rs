//! An entry of the neighbour table (ARP, ND).

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::Mac;

/// An entry of the neighbour table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Neighbour {
    /// The link.
    pub index: u32,
    /// The neighbour's address.
    pub address: IpAddr,
    /// Its MAC, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<Mac>,
    /// How it is known.
    pub state: NeighbourState,
    /// We answer for it, instead of knowing it.
    #[serde(default)]
    pub proxy: bool,
    /// It is a router (IPv6).
    #[serde(default)]
    pub router: bool,
}

impl Neighbour {
    /// An entry that stays until it is taken away.
    pub fn permanent(index: u32, address: IpAddr, mac: Mac) -> Self {
        Self {
            index,
            address,
            mac: Some(mac),
            state: NeighbourState::PERMANENT,
            proxy: false,
            router: false,
        }
    }

    /// An address that we answer for.
    pub fn proxy(index: u32, address: IpAddr) -> Self {
        Self {
            index,
            address,
            mac: None,
            state: NeighbourState::PERMANENT,
            proxy: true,
            router: false,
        }
    }
}

/// How a neighbour is known: the kernel's bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NeighbourState(pub u16);

impl NeighbourState {
    /// Seen a moment ago.
    pub const REACHABLE: Self = Self(0x02);
    /// Seen some time ago.
    pub const STALE: Self = Self(0x04);
    /// Does not answer.
    pub const FAILED: Self = Self(0x20);
    /// Needs no asking.
    pub const NOARP: Self = Self(0x40);
    /// Put there by the administrator.
    pub const PERMANENT: Self = Self(0x80);

    /// Whether it stays until it is taken away.
    pub fn is_permanent(self) -> bool {
        self.0 & Self::PERMANENT.0 != 0
    }
}
