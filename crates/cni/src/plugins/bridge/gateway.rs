//! Which address the bridge has as a gateway, and which routes follow: pure.
//!
//! Called by ADD between the answer of the IPAM plugin and the kernel. Easy to get wrong: the gateway of a configuration
//! without one is the first address of the *pod's* subnet, so two subnets of one family give a bridge two addresses.

use std::net::IpAddr;

use mooring_api::{Cidr, Family, HostCidr};
use mooring_attach::cni::{CniError, CniResult, CniRoute};

/// Fills in missing gateways and default routes, and says which addresses the bridge needs. Nothing happens without
/// `isGateway`.
pub(super) fn settle(
    result: &mut CniResult,
    gateway: bool,
    default_gateway: bool,
) -> Result<Vec<HostCidr>, CniError> {
    if !gateway {
        return Ok(Vec::new());
    }
    let mut wanted = Vec::new();
    for ip in &mut result.ips {
        let addr = match ip.gateway {
            Some(addr) => addr,
            None => first(ip.address)?,
        };
        ip.gateway = Some(addr);
        let own = Cidr::containing(addr, ip.address.prefix_len()).host(addr);
        if !wanted.contains(&own) {
            wanted.push(own);
        }
        if default_gateway {
            let dst = default_of(ip.address.family());
            let has = |r: &CniRoute| r.dst == dst && r.gw.is_some();
            if !result.routes.iter().any(has) {
                result.routes.push(CniRoute::new(dst, Some(addr)));
            }
        }
    }
    Ok(wanted)
}

fn first(address: HostCidr) -> Result<IpAddr, CniError> {
    let subnet = address.subnet();
    let family = address.family();
    if subnet.prefix_len() == family.bits() {
        let why =
            format!("{address} has no room for a gateway; give ipam one, or leave out isGateway");
        return Err(CniError::config("isGateway", why));
    }
    Ok(family.addr(Family::number(subnet.network()) + 1))
}

/// `0.0.0.0/0` or `::/0`.
pub(crate) fn default_of(family: Family) -> Cidr {
    Cidr::containing(family.addr(0), 0)
}

/// What has to go from a link before `wanted` fits beside it. Several IPv6 addresses may stand together where their
/// subnets differ, a second IPv4 one may not.
pub(super) fn in_the_way(wanted: HostCidr, seen: &[HostCidr]) -> Vec<HostCidr> {
    let conflicts = |other: &&HostCidr| {
        let same_family = other.family() == wanted.family();
        let overlap = wanted.subnet().overlaps(&other.subnet());
        same_family && **other != wanted && (wanted.family() == Family::V4 || overlap)
    };
    seen.iter().filter(conflicts).copied().collect()
}

#[cfg(test)]
mod tests {
    use mooring_attach::cni::Ip;

    use super::*;

    fn result(ips: &[(&str, Option<&str>)]) -> CniResult {
        let ip = |(address, gateway): &(&str, Option<&str>)| {
            Ip::new(
                address.parse().unwrap(),
                gateway.map(|g| g.parse().unwrap()),
            )
        };
        CniResult {
            ips: ips.iter().map(ip).collect(),
            ..CniResult::default()
        }
    }

    fn text(list: &[HostCidr]) -> Vec<String> {
        list.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn without_a_gateway_in_the_answer_it_is_the_first_address_of_the_subnet() {
        let mut answer = result(&[("10.1.2.7/24", None), ("fd00::7/64", Some("fd00::ffff"))]);
        let own = settle(&mut answer, true, false).unwrap();
        assert_eq!(text(&own), ["10.1.2.1/24", "fd00::ffff/64"]);
        assert_eq!(answer.ips[0].gateway, Some("10.1.2.1".parse().unwrap()));
        assert!(answer.routes.is_empty());
    }

    #[test]
    fn a_default_route_is_added_once_per_family_and_not_beside_one_that_is_there() {
        let mut answer = result(&[
            ("10.1.2.7/24", None),
            ("10.9.2.7/24", None),
            ("fd00::7/64", None),
        ]);
        let there = CniRoute::new(default_of(Family::V6), Some("fd00::9".parse().unwrap()));
        answer.routes.push(there.clone());
        settle(&mut answer, true, true).unwrap();
        assert_eq!(answer.routes.len(), 2, "{:?}", answer.routes);
        assert_eq!(answer.routes[0], there);
        assert_eq!(answer.routes[1].gw, Some("10.1.2.1".parse().unwrap()));
    }

    #[test]
    fn a_single_address_has_no_room_for_a_gateway() {
        assert!(settle(&mut result(&[("10.1.2.7/32", None)]), true, false).is_err());
        let own = settle(
            &mut result(&[("10.1.2.7/32", Some("10.1.2.1"))]),
            true,
            false,
        )
        .unwrap();
        assert_eq!(text(&own), ["10.1.2.1/32"]);
        assert!(
            settle(&mut result(&[("10.1.2.7/32", None)]), false, false)
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn another_address_is_in_the_way_for_ipv4_always_and_for_ipv6_where_subnets_meet() {
        let seen: Vec<HostCidr> = [
            "10.1.2.1/24",
            "10.9.0.1/16",
            "fd00::1/64",
            "fd01::1/64",
            "fe80::1/64",
        ]
        .map(|a| a.parse().unwrap())
        .into();
        let way = |wanted: &str| text(&in_the_way(wanted.parse().unwrap(), &seen));
        assert_eq!(way("10.1.2.1/24"), ["10.9.0.1/16"]);
        assert_eq!(way("10.5.0.1/24"), ["10.1.2.1/24", "10.9.0.1/16"]);
        assert_eq!(way("fd00::2/64"), ["fd00::1/64"]);
        assert!(way("fd02::1/64").is_empty());
        assert!(way("fd01::1/64").is_empty());
    }
}
