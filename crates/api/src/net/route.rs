//! A route.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::{Cidr, Family};

/// The table that `ip route` shows.
pub const TABLE_MAIN: u32 = 254;
/// The table of a host's own addresses, kept by the kernel.
pub const TABLE_LOCAL: u32 = 255;

/// A route. Numbers keep the kernel's own values, so that what was read can be written back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Route {
    /// Where it leads; `0.0.0.0/0` or `::/0` for a default route.
    pub dst: Cidr,
    /// Only for packets from there (IPv6).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub src: Option<Cidr>,
    /// Its table.
    #[serde(default = "main")]
    pub table: u32,
    /// The next router; of another family when IPv4 goes over IPv6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<IpAddr>,
    /// The link it leaves by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oif: Option<u32>,
    /// The gateway is reachable on the link though no address says so.
    #[serde(default)]
    pub onlink: bool,
    /// The source address packets get.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefsrc: Option<IpAddr>,
    /// Its metric; `None` is the kernel's default (0 for IPv4, 1024 for IPv6).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<u32>,
    /// Path MTU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// TCP's maximum segment size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advmss: Option<u32>,
    /// Further metrics by the kernel's number (`RTAX_…`), which includes the bits of locked ones.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<u16, u32>,
    /// How far the destination is; `None` lets us choose as `ip route` does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// Who made it.
    #[serde(default)]
    pub protocol: RouteProtocol,
    /// What it does with a packet.
    #[serde(default)]
    pub kind: RouteKind,
    /// Only for packets of that type of service (IPv4).
    #[serde(default)]
    pub tos: u8,
    /// Seconds until it ends (IPv6); `None` for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u32>,
    /// Several next hops instead of one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next_hops: Vec<NextHop>,
    /// What else the kernel said and takes back: encapsulation, realm, router preference.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra: Vec<Attribute>,
}

fn main() -> u32 {
    TABLE_MAIN
}

impl Route {
    /// A route of the main table.
    pub fn to(dst: Cidr) -> Self {
        Self {
            dst,
            src: None,
            table: TABLE_MAIN,
            gateway: None,
            oif: None,
            onlink: false,
            prefsrc: None,
            metric: None,
            mtu: None,
            advmss: None,
            metrics: BTreeMap::new(),
            scope: None,
            protocol: RouteProtocol::default(),
            kind: RouteKind::default(),
            tos: 0,
            expires: None,
            next_hops: Vec::new(),
            extra: Vec::new(),
        }
    }

    /// The same through a router.
    #[must_use]
    pub fn via(mut self, gateway: IpAddr) -> Self {
        self.gateway = Some(gateway);
        self
    }

    /// The same out of a link.
    #[must_use]
    pub fn dev(mut self, index: u32) -> Self {
        self.oif = Some(index);
        self
    }

    /// The same in another table.
    #[must_use]
    pub fn table(mut self, table: u32) -> Self {
        self.table = table;
        self
    }

    /// The same with a metric.
    #[must_use]
    pub fn metric(mut self, metric: u32) -> Self {
        self.metric = Some(metric);
        self
    }

    /// Its family.
    pub fn family(&self) -> Family {
        self.dst.family()
    }

    /// Whether it leaves by that link, with one next hop or with any of several.
    pub fn uses(&self, index: u32) -> bool {
        self.oif == Some(index) || self.next_hops.iter().any(|hop| hop.oif == index)
    }

    /// What the kernel calls the same route: adding a second one with an equal key is refused.
    pub fn key(&self) -> (u32, Cidr, u8, u32) {
        let metric = self.metric.unwrap_or(match self.family() {
            Family::V4 => 0,
            Family::V6 => 1024,
        });
        (self.table, self.dst, self.tos, metric)
    }

    /// The scope that is written: the one that is set, else the narrowest that the route allows.
    pub fn effective_scope(&self) -> Scope {
        match (self.scope, self.kind) {
            (Some(scope), _) => scope,
            _ if self.family() == Family::V6 => Scope::UNIVERSE,
            (None, RouteKind::LOCAL | RouteKind::NAT) => Scope::HOST,
            (None, RouteKind::BROADCAST | RouteKind::MULTICAST | RouteKind::ANYCAST) => Scope::LINK,
            (None, RouteKind::UNICAST | RouteKind::UNSPEC)
                if self.gateway.is_none() && self.next_hops.is_empty() =>
            {
                Scope::LINK
            }
            _ => Scope::UNIVERSE,
        }
    }
}

/// One of several next hops.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NextHop {
    /// The link it leaves by.
    pub oif: u32,
    /// The next router.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<IpAddr>,
    /// Its share, from 1.
    #[serde(default = "one")]
    pub weight: u16,
    /// The gateway is reachable on the link though no address says so.
    #[serde(default)]
    pub onlink: bool,
    /// What else the kernel said of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra: Vec<Attribute>,
}

fn one() -> u16 {
    1
}

/// A netlink attribute that we keep as it came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attribute {
    /// Its number, with the kernel's nested flag where it had one.
    pub kind: u16,
    /// Its bytes.
    pub value: Vec<u8>,
}

/// How far something is: of an address, its validity; of a route, its destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Scope(pub u8);

impl Scope {
    /// Anywhere.
    pub const UNIVERSE: Self = Self(0);
    /// This site.
    pub const SITE: Self = Self(200);
    /// This link.
    pub const LINK: Self = Self(253);
    /// This host.
    pub const HOST: Self = Self(254);
    /// Nowhere.
    pub const NOWHERE: Self = Self(255);
}

/// Who made a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RouteProtocol(pub u8);

impl RouteProtocol {
    /// Unknown.
    pub const UNSPEC: Self = Self(0);
    /// The kernel, for an address.
    pub const KERNEL: Self = Self(2);
    /// Somebody at boot; what `ip route add` says.
    pub const BOOT: Self = Self(3);
    /// The administrator.
    pub const STATIC: Self = Self(4);
    /// A router advertisement.
    pub const RA: Self = Self(9);
}

impl Default for RouteProtocol {
    fn default() -> Self {
        Self::BOOT
    }
}

/// What a route does with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RouteKind(pub u8);

impl RouteKind {
    /// Unknown.
    pub const UNSPEC: Self = Self(0);
    /// Sends it on.
    pub const UNICAST: Self = Self(1);
    /// It is for this host.
    pub const LOCAL: Self = Self(2);
    /// Broadcasts it.
    pub const BROADCAST: Self = Self(3);
    /// Takes it as broadcast, sends it as unicast.
    pub const ANYCAST: Self = Self(4);
    /// Multicast.
    pub const MULTICAST: Self = Self(5);
    /// Drops it.
    pub const BLACKHOLE: Self = Self(6);
    /// Drops it, says unreachable.
    pub const UNREACHABLE: Self = Self(7);
    /// Drops it, says prohibited.
    pub const PROHIBIT: Self = Self(8);
    /// Looks in the next table.
    pub const THROW: Self = Self(9);
    /// Translates.
    pub const NAT: Self = Self(10);
}

impl Default for RouteKind {
    fn default() -> Self {
        Self::UNICAST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scope_is_the_one_that_ip_route_would_choose() {
        let to = |text: &str| Route::to(text.parse().unwrap());
        let of = |kind, route: Route| Route { kind, ..route }.effective_scope();
        assert_eq!(to("10.0.0.0/8").dev(5).effective_scope(), Scope::LINK);
        let routed = to("10.0.0.0/8").via("192.0.2.1".parse().unwrap());
        assert_eq!(routed.effective_scope(), Scope::UNIVERSE);
        assert_eq!(to("fd00::/8").dev(5).effective_scope(), Scope::UNIVERSE);
        assert_eq!(of(RouteKind::LOCAL, to("10.0.0.5/32")), Scope::HOST);
        assert_eq!(of(RouteKind::BLACKHOLE, to("10.0.0.0/8")), Scope::UNIVERSE);
        let mut set = to("10.0.0.0/8").dev(5);
        set.scope = Some(Scope::SITE);
        assert_eq!(set.effective_scope(), Scope::SITE);
    }

    #[test]
    fn a_default_metric_is_part_of_the_key() {
        let four = Route::to("0.0.0.0/0".parse().unwrap());
        assert_eq!(four.key(), four.clone().metric(0).key());
        let six = Route::to("::/0".parse().unwrap());
        assert_eq!(six.key(), six.clone().metric(1024).key());
        assert_ne!(six.key(), six.clone().table(100).key());
    }
}
