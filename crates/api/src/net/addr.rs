//! An address of a link.

use std::net::{IpAddr, Ipv4Addr};

use serde::{Deserialize, Serialize};

use super::Scope;
use crate::HostCidr;

/// An address of a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Addr {
    /// The link.
    pub index: u32,
    /// The address with its prefix length. With a peer it is the peer's prefix length.
    pub address: HostCidr,
    /// The other end of a point-to-point link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<IpAddr>,
    /// IPv4 broadcast address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broadcast: Option<Ipv4Addr>,
    /// IPv4 label, such as `eth0:1`; `None` and the link's own name are the same wish.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// How far it is valid.
    #[serde(default)]
    pub scope: Scope,
    /// What the kernel knows or is told about it.
    #[serde(default)]
    pub flags: AddrFlags,
    /// Metric of the route that the kernel makes for its prefix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<u32>,
    /// Seconds it is valid for; `None` for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid: Option<u32>,
    /// Seconds it is preferred for; `None` for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred: Option<u32>,
    /// Who added it (IFA_PROTO); 0 unknown.
    #[serde(default)]
    pub protocol: u8,
}

impl Addr {
    /// A permanent address. An IPv4 one whose subnet has room for it gets the subnet's broadcast address, as `ip addr
    /// add … brd +` and the reference plugins do.
    pub fn new(index: u32, address: HostCidr) -> Self {
        let broadcast = match (address.addr(), address.subnet().last()) {
            (IpAddr::V4(_), IpAddr::V4(last)) if address.prefix_len() < 31 => Some(last),
            _ => None,
        };
        Self {
            index,
            address,
            peer: None,
            broadcast,
            label: None,
            scope: Scope::UNIVERSE,
            flags: AddrFlags::default(),
            metric: None,
            valid: None,
            preferred: None,
            protocol: 0,
        }
    }

    /// The same without duplicate address detection (IPv6).
    #[must_use]
    pub fn nodad(mut self) -> Self {
        self.flags.nodad = true;
        self
    }

    /// The same used while duplicate address detection runs (IPv6; the kernel must have it switched on).
    #[must_use]
    pub fn optimistic(mut self) -> Self {
        self.flags.optimistic = true;
        self
    }
}

/// Flags of an address. The first ones are told to the kernel, the later ones it tells us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AddrFlags {
    /// No duplicate address detection.
    pub nodad: bool,
    /// Used while detection runs.
    pub optimistic: bool,
    /// The home address of mobile IPv6.
    pub home: bool,
    /// The kernel makes temporary addresses beside it.
    pub manage_temp: bool,
    /// The kernel makes no route for its prefix.
    pub no_prefix_route: bool,
    /// Joins the multicast group.
    pub mc_autojoin: bool,
    /// Told by the kernel: it does not end.
    pub permanent: bool,
    /// Told by the kernel: a further address of a subnet (IPv4), or a temporary one (IPv6).
    pub secondary: bool,
    /// Told by the kernel: detection runs.
    pub tentative: bool,
    /// Told by the kernel: another host has it.
    pub dad_failed: bool,
    /// Told by the kernel: no longer preferred.
    pub deprecated: bool,
    /// Told by the kernel: made by it from a secret.
    pub stable_privacy: bool,
}

impl AddrFlags {
    /// Only what can be told to the kernel: two addresses that agree in this were wanted alike.
    #[must_use]
    pub fn settable(self) -> Self {
        Self {
            permanent: false,
            secondary: false,
            tentative: false,
            dad_failed: false,
            deprecated: false,
            stable_privacy: false,
            ..self
        }
    }
}
