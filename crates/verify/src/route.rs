//! The routes that a NAD brings into a pod: one reading for the rules and for the packet story.
//!
//! The reference plugins add a route with `NLM_F_CREATE` and nothing else. For IPv4 that puts it before what is
//! there for the same network, so a default route in a NAD takes the place of the cluster's own
//! (`ip route prepend` shows it). For IPv6 it stands beside the cluster's own, and a packet takes either:
//! nothing can rely on it.
//!
//! Easy to get wrong: `default-route` in the annotation is another thing. The meta plugin then takes the default
//! routes of all other interfaces away, those of NADs too.

use std::net::IpAddr;

use mooring_api::{Cidr, HostCidr};
use serde_json::{Map, Value};

use crate::world::{Nad, list, word};

/// A route of a NAD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) to: Cidr,
    pub(crate) gateway: Option<IpAddr>,
}

impl Route {
    /// Whether a packet to its network takes it, and no other of that length.
    pub(crate) fn leads(&self) -> bool {
        !self.to.is_default() || self.to.network().is_ipv4()
    }
}

/// The NAD's routes. One without a gateway takes that of the address of its family, as the plugins do.
pub(crate) fn routes(nad: &Nad<'_>) -> Vec<Route> {
    let mut out = Vec::new();
    for ipam in nad.ipams() {
        let gateways = gateways(ipam);
        for route in list(ipam, "routes") {
            let text = |key: &str| word(route.as_object()?, key);
            let Some(Ok(to)) = text("dst").map(str::parse::<HostCidr>) else {
                continue;
            };
            let to = to.subnet();
            let own = text("gw").and_then(|gw| gw.parse().ok());
            let same = |gw: &&IpAddr| gw.is_ipv4() == to.network().is_ipv4();
            let gateway = own.or_else(|| gateways.iter().find(same).copied());
            out.push(Route { to, gateway });
        }
    }
    out
}

/// The gateways beside the addresses: of static, of host-local in both of its forms, of whereabouts.
fn gateways(ipam: &Map<String, Value>) -> Vec<IpAddr> {
    let sets = list(ipam, "ranges")
        .iter()
        .filter_map(Value::as_array)
        .flatten();
    let beside = list(ipam, "addresses").iter().chain(sets);
    let beside = beside.filter_map(Value::as_object).chain([ipam]);
    beside
        .filter_map(|one| word(one, "gateway")?.parse().ok())
        .collect()
}
