//! Ranges of host-local: what a configuration means, and which address is tried next. Pure.
//!
//! ```text
//!  ranges: [ [10.1.0.0/24, 10.2.0.0/24],   set 0: one address, from the first range or the second
//!            [fd00::/64] ]                 set 1: one address more
//! ```
//!
//! Called by `config` (parsing) and `decide` (choosing). Easy to get wrong: the order is the reference plugin's, so
//! that a node may be switched over and back: from behind the address that was given last, through all ranges of
//! the set, once around.

use std::net::IpAddr;

use mooring_api::{AddrRange, Cidr, Family, HostCidr};

/// Addresses of one subnet that may be given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) subnet: Cidr,
    pub(super) span: AddrRange,
    /// Never given. There is always one: the subnet's first address unless the configuration names another.
    pub(super) gateway: IpAddr,
}

/// Ranges that stand in for each other: an attachment gets one address from a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RangeSet(Vec<Range>);

/// The texts of one range, as they stand in the configuration.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RangeKeys {
    pub(super) subnet: Option<String>,
    pub(super) range_start: Option<String>,
    pub(super) range_end: Option<String>,
    pub(super) gateway: Option<String>,
}

/// What is wrong with a range: which key, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BadRange {
    pub(super) key: &'static str,
    pub(super) why: String,
}

impl BadRange {
    fn new(key: &'static str, why: impl Into<String>) -> Self {
        Self {
            key,
            why: why.into(),
        }
    }
}

impl Range {
    pub(super) fn new(keys: &RangeKeys) -> Result<Self, BadRange> {
        let text = keys.subnet.as_deref().unwrap_or_default();
        let written: HostCidr = text.parse().map_err(|_| {
            BadRange::new("subnet", format!("{text:?} is no network in CIDR notation"))
        })?;
        let subnet = written.subnet();
        if written.addr() != subnet.network() {
            return Err(BadRange::new(
                "subnet",
                format!("{text} has host bits set; the network is {subnet}"),
            ));
        }
        let family = subnet.family();
        if subnet.prefix_len() + 2 > family.bits() {
            let why = format!(
                "{subnet} is too small to allocate from; it takes a /{} or larger",
                family.bits() - 2
            );
            return Err(BadRange::new("subnet", why));
        }
        let hosts = subnet.hosts();
        let inside = |key, text: &Option<String>, default| match address(key, text.as_deref())? {
            None => Ok(default),
            Some(addr) if subnet.contains(addr) => Ok(addr),
            Some(addr) => Err(BadRange::new(key, format!("{addr} is not in {subnet}"))),
        };
        let first = inside("rangeStart", &keys.range_start, hosts.first())?;
        let last = inside("rangeEnd", &keys.range_end, hosts.last())?;
        let span = AddrRange::new(first, last).map_err(|_| {
            BadRange::new("rangeEnd", format!("{last} lies before the start {first}"))
        })?;
        let gateway = address("gateway", keys.gateway.as_deref())?.unwrap_or(hosts.first());
        Ok(Self {
            subnet,
            span,
            gateway,
        })
    }
}

/// An address, where one is written. An empty text is as good as none: the reference reads it so.
fn address(key: &'static str, text: Option<&str>) -> Result<Option<IpAddr>, BadRange> {
    match text.filter(|text| !text.is_empty()) {
        None => Ok(None),
        Some(text) => match text.parse::<IpAddr>() {
            Ok(addr) => Ok(Some(addr.to_canonical())),
            Err(_) => Err(BadRange::new(key, format!("{text:?} is no IP address"))),
        },
    }
}

impl RangeSet {
    /// The ranges of a set, in one family and apart from each other. An error says which range it is about.
    pub(super) fn new(ranges: &[RangeKeys]) -> Result<Self, (usize, BadRange)> {
        let mut made: Vec<Range> = Vec::with_capacity(ranges.len());
        for (at, keys) in ranges.iter().enumerate() {
            let range = Range::new(keys).map_err(|bad| (at, bad))?;
            for earlier in &made {
                if earlier.span.family() != range.span.family() {
                    let why = "mixed address families in one set; a second family is a second set";
                    return Err((at, BadRange::new("subnet", why)));
                }
                if earlier.span.overlaps(&range.span) {
                    let why = format!("{} and {} overlap", show(earlier), show(&range));
                    return Err((at, BadRange::new("subnet", why)));
                }
            }
            made.push(range);
        }
        if made.is_empty() {
            return Err((0, BadRange::new("subnet", "empty range set")));
        }
        Ok(Self(made))
    }

    pub(super) fn family(&self) -> Family {
        self.0[0].span.family()
    }

    pub(super) fn overlaps(&self, other: &Self) -> bool {
        let pairs = self
            .0
            .iter()
            .flat_map(|a| other.0.iter().map(move |b| (a, b)));
        pairs.into_iter().any(|(a, b)| a.span.overlaps(&b.span))
    }

    pub(super) fn contains(&self, addr: IpAddr) -> bool {
        self.range_of(addr).is_some()
    }

    pub(super) fn range_of(&self, addr: IpAddr) -> Option<&Range> {
        self.0.iter().find(|range| range.span.contains(addr))
    }

    /// Whether an address is the gateway of one of the ranges.
    pub(super) fn is_gateway(&self, addr: IpAddr) -> bool {
        self.0.iter().any(|range| range.gateway == addr)
    }

    /// How many addresses could be given at most.
    pub(super) fn capacity(&self) -> u128 {
        let size = |sum: u128, range: &Range| sum.saturating_add(range.span.count());
        let all = self.0.iter().fold(0, size);
        let mut gateways: Vec<IpAddr> = self.0.iter().map(|range| range.gateway).collect();
        gateways.sort_unstable();
        gateways.dedup();
        let inside = gateways.iter().filter(|gateway| self.contains(**gateway));
        all - inside.count() as u128
    }

    /// The first address for which `taken` says no, from behind `last` and once around. `last` of another range (the
    /// configuration changed) only loses the turn.
    pub(super) fn next_free(
        &self,
        last: Option<IpAddr>,
        taken: impl Fn(IpAddr) -> bool,
    ) -> Option<(&Range, IpAddr)> {
        let begin = last.and_then(|last| {
            let at = self.0.iter().position(|range| range.span.contains(last))?;
            Some((at, Family::number(last)))
        });
        let free = |range: &Range, first: u128, last: u128| {
            let family = range.span.family();
            let mut numbers = first..=last;
            // Numbers, since addresses do not count; the walk ends after as many steps as addresses are taken.
            numbers.find_map(|number| {
                let addr = family.addr(number);
                (!self.is_gateway(addr) && !taken(addr)).then_some(addr)
            })
        };
        let whole = |range: &Range| {
            let (first, last) = ends(range);
            free(range, first, last)
        };
        let Some((at, last)) = begin else {
            return self.0.iter().find_map(|range| Some((range, whole(range)?)));
        };
        let start = &self.0[at];
        let (lowest, highest) = ends(start);
        let behind = last
            .checked_add(1)
            .and_then(|next| free(start, next, highest));
        behind
            .map(|addr| (start, addr))
            .or_else(|| {
                let after = self.0[at + 1..].iter().chain(&self.0[..at]);
                after
                    .into_iter()
                    .find_map(|range| Some((range, whole(range)?)))
            })
            .or_else(|| Some((start, free(start, lowest, last)?)))
    }
}

fn ends(range: &Range) -> (u128, u128) {
    (
        Family::number(range.span.first()),
        Family::number(range.span.last()),
    )
}

/// Always both ends: people search for this text.
fn show(range: &Range) -> String {
    format!("{}-{}", range.span.first(), range.span.last())
}

impl std::fmt::Display for RangeSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all: Vec<String> = self.0.iter().map(show).collect();
        f.write_str(&all.join(","))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn keys(subnet: &str, start: &str, end: &str, gateway: &str) -> RangeKeys {
        let some = |text: &str| Some(text.to_owned());
        RangeKeys {
            subnet: some(subnet),
            range_start: some(start),
            range_end: some(end),
            gateway: some(gateway),
        }
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn set(ranges: &[(&str, &str, &str, &str)]) -> RangeSet {
        let ranges: Vec<RangeKeys> = ranges.iter().map(|(a, b, c, d)| keys(a, b, c, d)).collect();
        RangeSet::new(&ranges).unwrap()
    }

    #[test]
    fn a_subnet_alone_means_its_hosts_and_its_first_address_as_gateway() {
        for (subnet, span, gateway) in [
            ("10.1.2.0/24", "10.1.2.1-10.1.2.254", "10.1.2.1"),
            ("10.1.2.0/30", "10.1.2.1-10.1.2.2", "10.1.2.1"),
            ("fd00::/120", "fd00::1-fd00::ff", "fd00::1"),
        ] {
            let range = Range::new(&keys(subnet, "", "", "")).unwrap();
            assert_eq!(show(&range), span);
            assert_eq!(range.gateway, ip(gateway));
        }
    }

    #[test]
    fn a_bad_range_names_the_key_and_the_reason() {
        for (written, key, why) in [
            (keys("", "", "", ""), "subnet", "CIDR"),
            (keys("10.1.2.0", "", "", ""), "subnet", "CIDR"),
            (keys("10.1.2.1/24", "", "", ""), "subnet", "host bits"),
            (keys("10.1.2.0/31", "", "", ""), "subnet", "too small"),
            (keys("fd00::/127", "", "", ""), "subnet", "too small"),
            (
                keys("10.1.2.0/24", "10.1.3.1", "", ""),
                "rangeStart",
                "not in",
            ),
            (
                keys("10.1.2.0/24", "", "10.1.3.1", ""),
                "rangeEnd",
                "not in",
            ),
            (
                keys("10.1.2.0/24", "fd00::1", "", ""),
                "rangeStart",
                "not in",
            ),
            (
                keys("10.1.2.0/24", "10.1.2.9", "10.1.2.8", ""),
                "rangeEnd",
                "before",
            ),
            (keys("10.1.2.0/24", "x", "", ""), "rangeStart", "no IP"),
            (
                keys("10.1.2.0/24", "", "", "10.1.2.300"),
                "gateway",
                "no IP",
            ),
        ] {
            let bad = Range::new(&written).unwrap_err();
            assert_eq!(bad.key, key, "{written:?}");
            assert!(bad.why.contains(why), "{bad:?}");
        }
    }

    #[test]
    fn a_set_is_of_one_family_and_its_ranges_lie_apart() {
        let refused = |ranges: &[RangeKeys]| RangeSet::new(ranges).unwrap_err();
        assert!(refused(&[]).1.why.contains("empty"));
        let v4 = keys("10.1.2.0/24", "", "", "");
        let (at, bad) = refused(&[v4.clone(), keys("fd00::/64", "", "", "")]);
        assert_eq!((at, bad.why.contains("mixed")), (1, true));
        let (at, bad) = refused(&[v4.clone(), keys("10.1.0.0/16", "10.1.2.254", "", "")]);
        assert_eq!((at, bad.why.contains("overlap")), (1, true));
    }

    #[test]
    fn the_next_address_lies_behind_the_last_and_goes_around_all_ranges() {
        let set = set(&[
            ("10.0.0.0/29", "10.0.0.2", "10.0.0.4", ""),
            ("10.9.0.0/30", "", "", "10.9.0.1"),
        ]);
        let next = |last: &str, taken: &[&str]| {
            let taken: BTreeSet<IpAddr> = taken.iter().map(|t| ip(t)).collect();
            let last = (!last.is_empty()).then(|| ip(last));
            let found = set.next_free(last, |addr| taken.contains(&addr));
            found.map(|(range, addr)| format!("{addr} in {}", range.subnet))
        };
        assert_eq!(next("", &[]).unwrap(), "10.0.0.2 in 10.0.0.0/29");
        assert_eq!(next("10.0.0.2", &[]).unwrap(), "10.0.0.3 in 10.0.0.0/29");
        // The second range's first address is its gateway.
        assert_eq!(next("10.0.0.4", &[]).unwrap(), "10.9.0.2 in 10.9.0.0/30");
        assert_eq!(next("10.9.0.2", &[]).unwrap(), "10.0.0.2 in 10.0.0.0/29");
        assert_eq!(
            next("10.0.0.3", &["10.0.0.4", "10.9.0.2"]).unwrap(),
            "10.0.0.2 in 10.0.0.0/29"
        );
        // The one that was given last is tried too, when all others are taken.
        assert_eq!(
            next("10.0.0.3", &["10.0.0.4", "10.9.0.2", "10.0.0.2"]).unwrap(),
            "10.0.0.3 in 10.0.0.0/29"
        );
        let all = ["10.0.0.2", "10.0.0.3", "10.0.0.4", "10.9.0.2"];
        assert_eq!(next("10.0.0.3", &all), None);
        assert_eq!(next("", &all), None);
        // A cursor of an earlier configuration.
        assert_eq!(next("192.0.2.1", &[]).unwrap(), "10.0.0.2 in 10.0.0.0/29");
        assert_eq!(set.capacity(), 4);
    }

    #[test]
    fn every_address_of_a_set_is_given_once_before_one_comes_again() {
        let set = set(&[
            ("10.0.0.0/28", "", "", ""),
            ("10.1.0.0/28", "10.1.0.3", "10.1.0.9", "10.1.0.5"),
            ("10.2.0.0/29", "", "", "10.2.0.6"),
        ]);
        for origin in ["", "10.0.0.1", "10.0.0.14", "10.1.0.5", "10.2.0.6"] {
            let mut last = (!origin.is_empty()).then(|| ip(origin));
            let mut taken = BTreeSet::new();
            while let Some((_, addr)) = set.next_free(last, |addr| taken.contains(&addr)) {
                assert!(!set.is_gateway(addr), "{addr}");
                assert!(taken.insert(addr), "{addr} twice from {origin:?}");
                last = Some(addr);
            }
            assert_eq!(taken.len() as u128, set.capacity(), "from {origin:?}");
        }
    }

    #[test]
    fn the_end_of_all_addresses_is_no_overflow() {
        let set = set(&[("ffff:ffff::/32", "", "", "")]);
        let last = ip("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
        let (_, addr) = set.next_free(Some(last), |_| false).unwrap();
        assert_eq!(addr, ip("ffff:ffff::2"));
        let whole = RangeSet::new(&[keys("::/0", "", "", "")]).unwrap();
        assert_eq!(whole.capacity(), u128::MAX - 1);
    }

    #[test]
    fn a_set_is_written_as_people_search_for_it() {
        let set = set(&[
            ("10.0.0.0/24", "10.0.0.9", "10.0.0.9", ""),
            ("10.1.0.0/24", "", "", ""),
        ]);
        assert_eq!(set.to_string(), "10.0.0.9-10.0.0.9,10.1.0.1-10.1.0.254");
    }
}
