//! Sessions of a node: whoever calls from a subnet, an address of the host, the far end of a transfer network.
//!
//! Addresses of the host are behind the node: the router needs a route to them and the session two hops, the host a
//! dummy interface that has them.

use std::net::IpAddr;

use mooring_api::kinds::mooring::NodeNames;
use mooring_api::kinds::schiff::{AddressFamily, BgpPeer, Loopback, NextHop, StaticRoute};
use mooring_api::{Cidr, Family, HostCidr};

use crate::Answers;
use crate::compile::node_key;
use crate::form::{Peer, PrefixRule, Who, short_hash};

use super::filter;

/// A dummy interface on the host.
#[derive(Debug)]
pub(super) struct Dummy {
    pub(super) name: String,
    pub(super) address: HostCidr,
}

/// A session and what it needs.
pub(super) struct Made {
    pub(super) peer: BgpPeer,
    pub(super) route: Option<StaticRoute>,
    pub(super) loopback: Option<(String, Loopback)>,
    pub(super) dummy: Option<Dummy>,
}

pub(super) fn peer(
    answers: &Answers,
    names: &NodeNames,
    node: &str,
    wanted: &Peer,
) -> Option<Made> {
    match &wanted.who {
        Who::Range(range) => {
            let mut peer = session(wanted, &[range.family()]);
            peer.listen_range = Some(range.to_string());
            let (route, loopback, dummy) = (None, None, None);
            Some(Made {
                peer,
                route,
                loopback,
                dummy,
            })
        }
        Who::Host(addr) => {
            // A session over IPv6 carries IPv4 too.
            let families: &[Family] = match Family::of(*addr) {
                Family::V4 => &[Family::V4],
                Family::V6 => &[Family::V4, Family::V6],
            };
            let dummy = Dummy {
                name: format!("bgp{}", short_hash(&addr.to_string(), 10)),
                address: HostCidr::single(*addr),
            };
            let peer = session(wanted, families);
            Some(behind(names, peer, *addr, None, dummy))
        }
        Who::Transfer { key, family } => {
            let network = answers.get(&node_key(key, node))?;
            let dummy = Dummy {
                name: format!("bgp{}", short_hash(key, 10)),
                address: network.host(network.last()),
            };
            let near = Loopback {
                ip_addresses: vec![host(network.network()).to_string()],
            };
            let near = Some((format!("lo.{}", short_hash(key, 8)), near));
            let peer = session(wanted, &[*family]);
            Some(behind(names, peer, network.last(), near, dummy))
        }
    }
}

fn host(addr: IpAddr) -> Cidr {
    Cidr::containing(addr, Family::of(addr).bits())
}

fn behind(
    names: &NodeNames,
    mut peer: BgpPeer,
    addr: IpAddr,
    loopback: Option<(String, Loopback)>,
    dummy: Dummy,
) -> Made {
    peer.address = Some(addr.to_string());
    peer.multihop = Some(2);
    let via = names.host_next_hop.to_string();
    let route = StaticRoute {
        prefix: host(addr).to_string(),
        next_hop: Some(NextHop {
            address: Some(via),
            vrf: None,
        }),
        bfd_profile: None,
    };
    Made {
        peer,
        route: Some(route),
        loopback,
        dummy: Some(dummy),
    }
}

fn session(wanted: &Peer, families: &[Family]) -> BgpPeer {
    let routes = |family: Family| {
        families.contains(&family).then(|| {
            let of = |rules: &[PrefixRule]| {
                let here = rules.iter().filter(|r| r.prefix.family() == family);
                filter::listed(here)
            };
            AddressFamily {
                export_filter: Some(of(&wanted.export)),
                import_filter: Some(of(&wanted.import)),
                max_prefixes: wanted.maximum_prefixes,
            }
        })
    };
    BgpPeer {
        remote_asn: wanted.remote_as,
        ipv4: routes(Family::V4),
        ipv6: routes(Family::V6),
        hold_time: wanted.hold_time.clone(),
        keepalive_time: wanted.keepalive_time.clone(),
        ..BgpPeer::default()
    }
}
