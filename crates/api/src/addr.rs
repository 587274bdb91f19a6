//! Addresses: a network, an address in its network, a range, a family.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::value::{BadValue, string_value};

/// IPv4 or IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "kinds", derive(schemars::JsonSchema))]
pub enum Family {
    /// IPv4.
    #[serde(rename = "ipv4")]
    V4,
    /// IPv6.
    #[serde(rename = "ipv6")]
    V6,
}

impl Family {
    /// The family of an address.
    pub fn of(addr: IpAddr) -> Self {
        if addr.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    /// 32 or 128.
    pub fn bits(self) -> u8 {
        match self {
            Self::V4 => 32,
            Self::V6 => 128,
        }
    }

    /// The address whose number is `number`; the upper bits are dropped for IPv4.
    pub fn addr(self, number: u128) -> IpAddr {
        match self {
            #[allow(
                clippy::cast_possible_truncation,
                reason = "an IPv4 number has 32 bits"
            )]
            Self::V4 => IpAddr::from((number as u32).to_be_bytes()),
            Self::V6 => IpAddr::from(number.to_be_bytes()),
        }
    }

    /// An address as a number, so that arithmetic has one form.
    pub fn number(addr: IpAddr) -> u128 {
        match addr {
            IpAddr::V4(a) => u128::from(u32::from(a)),
            IpAddr::V6(a) => u128::from(a),
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V4 => "ipv4",
            Self::V6 => "ipv6",
        })
    }
}

/// A network: `10.1.2.0/24`. Host bits are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cidr(IpNet);

/// An address that knows its subnet: `10.1.2.20/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostCidr(IpNet);

impl Cidr {
    /// The network of that length which contains `addr`; `len` above the family's bits is clamped.
    pub fn containing(addr: IpAddr, len: u8) -> Self {
        let len = len.min(Family::of(addr).bits());
        Self(IpNet::new_assert(addr, len).trunc())
    }

    /// Network address.
    pub fn network(&self) -> IpAddr {
        self.0.network()
    }

    /// Highest address (the broadcast address of an IPv4 subnet).
    pub fn last(&self) -> IpAddr {
        self.0.broadcast()
    }

    /// Prefix length.
    pub fn prefix_len(&self) -> u8 {
        self.0.prefix_len()
    }

    /// Whether it is the whole address space (`0.0.0.0/0`, `::/0`).
    pub fn is_default(&self) -> bool {
        self.0.prefix_len() == 0
    }

    /// Family.
    pub fn family(&self) -> Family {
        Family::of(self.network())
    }

    /// Whether `addr` lies inside.
    pub fn contains(&self, addr: IpAddr) -> bool {
        self.0.contains(&addr)
    }

    /// Whether `other` lies wholly inside (or is equal).
    pub fn covers(&self, other: &Cidr) -> bool {
        self.0.contains(&other.0)
    }

    /// Whether the two share an address.
    pub fn overlaps(&self, other: &Cidr) -> bool {
        self.covers(other) || other.covers(self)
    }

    /// The same subnet with `addr` as host part.
    pub fn host(&self, addr: IpAddr) -> HostCidr {
        HostCidr(IpNet::new_assert(addr, self.prefix_len()))
    }

    /// All addresses, first to last.
    pub fn range(&self) -> AddrRange {
        AddrRange {
            first: self.network(),
            last: self.last(),
        }
    }

    /// The addresses a host may have: without network and broadcast (IPv4 up to /30), without the
    /// subnet-router anycast address (IPv6 up to /126). /31, /32, /127 and /128 have no such address.
    pub fn hosts(&self) -> AddrRange {
        let AddrRange { first, last } = self.range();
        let family = self.family();
        if self.prefix_len() + 2 > family.bits() {
            return AddrRange { first, last };
        }
        let first = family.addr(Family::number(first) + 1);
        let last = match family {
            Family::V4 => family.addr(Family::number(last) - 1),
            Family::V6 => last,
        };
        AddrRange { first, last }
    }
}

impl HostCidr {
    /// The address.
    pub fn addr(&self) -> IpAddr {
        self.0.addr()
    }

    /// Prefix length of its subnet.
    pub fn prefix_len(&self) -> u8 {
        self.0.prefix_len()
    }

    /// Its subnet.
    pub fn subnet(&self) -> Cidr {
        Cidr(self.0.trunc())
    }

    /// Whether there are host bits: `10.1.2.20/24` and not `10.1.2.0/24`. A /32 or /128 is a host.
    pub fn is_host(&self) -> bool {
        self.0.addr() != self.0.network() || self.prefix_len() == self.family().bits()
    }

    /// Family.
    pub fn family(&self) -> Family {
        Family::of(self.addr())
    }

    /// Only that address: length 32 or 128.
    pub fn single(addr: IpAddr) -> Self {
        Self(IpNet::from(addr))
    }
}

impl From<Cidr> for HostCidr {
    fn from(c: Cidr) -> Self {
        Self(c.0)
    }
}

fn parse_net(what: &'static str, s: &str) -> Result<IpNet, BadValue> {
    s.parse()
        .map_err(|_| BadValue::new(what, s, "write ADDRESS/LENGTH, such as 10.1.2.0/24"))
}

impl FromStr for Cidr {
    type Err = BadValue;

    fn from_str(s: &str) -> Result<Self, BadValue> {
        let net = parse_net("a network", s)?;
        if net.addr() != net.network() {
            return Err(BadValue::new("a network", s, "it has host bits set"));
        }
        Ok(Self(net))
    }
}

impl FromStr for HostCidr {
    type Err = BadValue;

    fn from_str(s: &str) -> Result<Self, BadValue> {
        parse_net("an address with its subnet length", s).map(Self)
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for HostCidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

string_value!(Cidr, "A network, such as 10.1.2.0/24.",
    "maxLength" = 49,
    "x-kubernetes-validations" = [{ "rule": "isCIDR(self) && cidr(self) == cidr(self).masked()",
        "message": "must be a network without host bits, such as 10.1.2.0/24" }]);
string_value!(HostCidr, "An address with its subnet length, such as 10.1.2.20/24.",
    "maxLength" = 49,
    "x-kubernetes-validations" = [{ "rule": "isCIDR(self)",
        "message": "must be an address with its subnet length, such as 10.1.2.20/24" }]);

/// Consecutive addresses, both ends included. Written `a-b`, a network, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AddrRange {
    first: IpAddr,
    last: IpAddr,
}

impl AddrRange {
    /// `first` to `last`, both included.
    pub fn new(first: IpAddr, last: IpAddr) -> Result<Self, BadValue> {
        let text = || format!("{first}-{last}");
        if Family::of(first) != Family::of(last) {
            return Err(BadValue::new(
                "an address range",
                text(),
                "its ends differ in family",
            ));
        }
        if last < first {
            return Err(BadValue::new(
                "an address range",
                text(),
                "its end lies before its start",
            ));
        }
        Ok(Self { first, last })
    }

    /// One address.
    pub fn single(addr: IpAddr) -> Self {
        Self {
            first: addr,
            last: addr,
        }
    }

    /// Lowest address.
    pub fn first(&self) -> IpAddr {
        self.first
    }

    /// Highest address.
    pub fn last(&self) -> IpAddr {
        self.last
    }

    /// Family.
    pub fn family(&self) -> Family {
        Family::of(self.first)
    }

    /// Whether `addr` lies inside.
    pub fn contains(&self, addr: IpAddr) -> bool {
        self.family() == Family::of(addr) && self.first <= addr && addr <= self.last
    }

    /// Whether the two share an address.
    pub fn overlaps(&self, other: &AddrRange) -> bool {
        self.family() == other.family() && self.first <= other.last && other.first <= self.last
    }

    /// How many addresses; saturates for the whole of IPv6.
    pub fn count(&self) -> u128 {
        (Family::number(self.last) - Family::number(self.first)).saturating_add(1)
    }
}

impl FromStr for AddrRange {
    type Err = BadValue;

    fn from_str(s: &str) -> Result<Self, BadValue> {
        let addr = |t: &str| {
            t.trim().parse::<IpAddr>().map_err(|_| {
                BadValue::new(
                    "an address range",
                    s,
                    "write FIRST-LAST, a network, or an address",
                )
            })
        };
        if let Some((first, last)) = s.split_once('-') {
            Self::new(addr(first)?, addr(last)?)
        } else if s.contains('/') {
            Ok(s.trim().parse::<Cidr>()?.range())
        } else {
            addr(s).map(Self::single)
        }
    }
}

impl fmt::Display for AddrRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            return self.first.fmt(f);
        }
        write!(f, "{}-{}", self.first, self.last)
    }
}

string_value!(
    AddrRange,
    "Addresses as FIRST-LAST, a network, or one address."
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_no_host_bits_and_a_host_has_a_subnet() {
        assert!("10.1.2.20/24".parse::<Cidr>().is_err());
        let host: HostCidr = "10.1.2.20/24".parse().unwrap();
        assert_eq!(host.subnet().to_string(), "10.1.2.0/24");
        assert!(host.is_host());
        assert!(!"10.1.2.0/24".parse::<HostCidr>().unwrap().is_host());
        assert!("10.1.2.0/32".parse::<HostCidr>().unwrap().is_host());
    }

    #[test]
    fn hosts_leave_out_what_nobody_may_have() {
        let hosts = |s: &str| s.parse::<Cidr>().unwrap().hosts().to_string();
        assert_eq!(hosts("10.1.2.0/24"), "10.1.2.1-10.1.2.254");
        assert_eq!(hosts("10.1.2.0/31"), "10.1.2.0-10.1.2.1");
        assert_eq!(hosts("10.1.2.7/32"), "10.1.2.7");
        assert_eq!(hosts("fd00::/126"), "fd00::1-fd00::3");
        assert_eq!(hosts("fd00::/127"), "fd00::-fd00::1");
    }

    #[test]
    fn a_range_is_written_three_ways() {
        for (text, shown) in [
            ("10.0.0.1-10.0.0.9", "10.0.0.1-10.0.0.9"),
            ("10.0.0.0/30", "10.0.0.0-10.0.0.3"),
            ("10.0.0.7", "10.0.0.7"),
        ] {
            assert_eq!(text.parse::<AddrRange>().unwrap().to_string(), shown);
        }
        assert!("10.0.0.9-10.0.0.1".parse::<AddrRange>().is_err());
        assert!("10.0.0.9-fd00::1".parse::<AddrRange>().is_err());
        assert_eq!("::/0".parse::<AddrRange>().unwrap().count(), u128::MAX);
    }

    #[test]
    fn serde_speaks_strings() {
        let c: Cidr = serde_json::from_str("\"fd00::/64\"").unwrap();
        assert_eq!(serde_json::to_string(&c).unwrap(), "\"fd00::/64\"");
        assert!(serde_json::from_str::<Cidr>("\"fd00::1/64\"").is_err());
    }
}
