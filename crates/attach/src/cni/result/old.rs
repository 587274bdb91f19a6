//! The result of 0.1.0 and 0.2.0: one address per family, with its routes.

use std::net::IpAddr;

use mooring_api::{Family, HostCidr};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{CniResult, CniRoute, Dns, Ip, plain};

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Old {
    ip4: Option<Part>,
    ip6: Option<Part>,
    dns: Dns,
}

#[derive(Serialize, Deserialize)]
struct Part {
    ip: HostCidr,
    #[serde(
        default,
        deserialize_with = "super::address",
        skip_serializing_if = "Option::is_none"
    )]
    gateway: Option<IpAddr>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    routes: Vec<CniRoute>,
}

impl From<Old> for CniResult {
    fn from(old: Old) -> Self {
        let mut result = Self {
            dns: old.dns,
            ..Self::default()
        };
        for part in [old.ip4, old.ip6].into_iter().flatten() {
            result.ips.push(Ip::new(part.ip, part.gateway));
            for mut route in part.routes {
                // In the old shape a route without a router goes via its part's gateway; said so, it
                // stays true once the parts are gone.
                route.gw = route.gw.or(part.gateway);
                result.routes.push(route);
            }
        }
        result
    }
}

pub(super) fn write(result: &CniResult, out: &mut Map<String, Value>) {
    for (key, family) in [("ip4", Family::V4), ("ip6", Family::V6)] {
        let first = result.ips.iter().find(|ip| ip.address.family() == family);
        let Some(ip) = first else { continue };
        let routes = result.routes.iter().filter(|r| r.dst.family() == family);
        let part = Part {
            ip: ip.address,
            gateway: ip.gateway,
            routes: routes.cloned().collect(),
        };
        out.insert(key.into(), plain(&part));
    }
}
