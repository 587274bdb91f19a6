//! What a NAD tells its CNI plugin: `spec.config`, as ordered JSON.
//!
//! ```text
//!  Conf { plugin, ipam } ── build ──► {"cniVersion", "type", …, "ipam"}          one plugin
//!                                └──► {"cniVersion", "name", "plugins": […]}     only with a chained step
//! ```
//!
//! Called by `blueprint`. The key names are the real plugins' and the key order is the seed's, so the
//! same intent always gives the same bytes.
//!
//! Easy to get wrong: a `gateway` adds no route. The reference plugins only use it for routes that
//! name none, and `runtimeConfig.ips` drops it; so every route that is asked for carries its own `gw`.

mod ipam;
mod plugin;
#[cfg(test)]
mod tests;

use std::net::IpAddr;

use mooring_api::{AddrRange, BadValue, Cidr, Family, IfName, VlanId};
use serde_json::{Map, Value, json};

pub use ipam::{Dns, Ipam, MoorRef, Range};
pub use plugin::{Device, Plugin};

use crate::print;

/// The version in every configuration we write: what the seeds use and every runtime reads.
pub const CNI_VERSION: &str = "0.3.1";

/// What a NAD says.
#[derive(Clone, Debug, PartialEq)]
pub struct Conf {
    /// How the interface comes about.
    pub plugin: Plugin,
    /// How it gets its addresses.
    pub ipam: Ipam,
}

/// A route in the pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Route {
    /// Where to.
    pub dst: Cidr,
    /// Via which router; without one the plugin takes the family's gateway, else the link.
    pub gw: Option<IpAddr>,
}

/// The configuration cannot be said to that plugin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The plugin insists on IPAM.
    #[error("{plugin} needs an ipam section; a link without addresses is not possible")]
    IpamRequired {
        /// The plugin.
        plugin: &'static str,
    },
    /// The plugin has no such mode.
    #[error("{plugin} has no mode {mode:?}; it knows {known}")]
    UnknownMode {
        /// The plugin.
        plugin: &'static str,
        /// What was asked for.
        mode: String,
        /// What there is.
        known: String,
    },
    /// whereabouts takes one address from each range, so two of a family would be two addresses.
    #[error(
        "whereabouts cannot choose between {first} and {second}: it takes one address from each"
    )]
    TwoSubnets {
        /// One subnet.
        first: Cidr,
        /// Another one of the same family.
        second: Cidr,
    },
    /// A range leaves its subnet.
    #[error("{range} is not inside {subnet}")]
    RangeOutside {
        /// The range.
        range: String,
        /// Its subnet.
        subnet: Cidr,
    },
    /// A gateway that nobody in the subnet can reach.
    #[error("gateway {gateway} is not inside {subnet}")]
    GatewayOutside {
        /// The gateway.
        gateway: IpAddr,
        /// The subnet.
        subnet: Cidr,
    },
    /// A route and its router differ in family.
    #[error("the route to {dst} cannot go via {gw}: they differ in family")]
    RouteFamily {
        /// Where to.
        dst: Cidr,
        /// Via which router.
        gw: IpAddr,
    },
    /// An IPAM that hands out nothing.
    #[error("{ipam} has no {what}")]
    Empty {
        /// The IPAM plugin.
        ipam: &'static str,
        /// What it should have.
        what: &'static str,
    },
}

/// The configuration of one NAD.
///
/// `name` is the network's name; it is written only in a list, where the runtime needs it (for a
/// single plugin Multus puts the NAD's name there).
pub fn build(name: &str, conf: &Conf) -> Result<Value, ConfigError> {
    let Conf { plugin, ipam } = conf;
    let mut first = plugin.object()?;
    if ipam.from_annotation() {
        first.insert("capabilities".into(), json!({ "ips": true }));
    }
    match ipam.object()? {
        Some(ipam) => {
            first.insert("ipam".into(), Value::Object(ipam));
        }
        None if plugin.needs_ipam() => {
            return Err(ConfigError::IpamRequired {
                plugin: plugin.type_name(),
            });
        }
        None => {}
    }

    let mut conf = Map::new();
    conf.insert("cniVersion".into(), CNI_VERSION.into());
    let steps = plugin.chained();
    if steps.is_empty() {
        conf.extend(first);
    } else {
        let plugins = std::iter::once(first).chain(steps).map(Value::Object);
        conf.insert("name".into(), name.into());
        conf.insert("plugins".into(), plugins.collect());
    }
    Ok(Value::Object(conf))
}

/// A configuration as it stands in `spec.config`: one key per line, indented by two, no newline at
/// the end.
pub fn text(config: &Value) -> String {
    print::block(config)
}

/// The VLAN sub-interface that is the master for a VLAN on a NIC: `ens3.100`.
///
/// Fails where the kernel would refuse the name (more than 15 bytes).
pub fn sub_interface(nic: &IfName, vlan: VlanId) -> Result<IfName, BadValue> {
    format!("{nic}.{vlan}").parse()
}

/// `routes` as the plugins read it.
fn routes(routes: &[Route]) -> Result<Value, ConfigError> {
    let route = |route: &Route| {
        let Route { dst, gw } = *route;
        if let Some(gw) = gw.filter(|gw| Family::of(*gw) != dst.family()) {
            return Err(ConfigError::RouteFamily { dst, gw });
        }
        let mut map = Map::new();
        map.insert("dst".into(), dst.to_string().into());
        if let Some(gw) = gw {
            map.insert("gw".into(), gw.to_string().into());
        }
        Ok(Value::Object(map))
    };
    routes.iter().map(route).collect()
}

/// The fewest networks that are exactly this range: whereabouts excludes networks, not ranges.
pub(crate) fn blocks(range: &AddrRange) -> Vec<Cidr> {
    let family = range.family();
    let (mut first, last) = (Family::number(range.first()), Family::number(range.last()));
    let mut out = Vec::new();
    loop {
        let aligned = if first == 0 {
            128
        } else {
            first.trailing_zeros()
        };
        let room = (last - first).saturating_add(1).ilog2();
        let bits = aligned.min(room).min(u32::from(family.bits()));
        let whole_v6 = first == 0 && last == u128::MAX;
        let len = if whole_v6 {
            0
        } else {
            u32::from(family.bits()) - bits
        };
        let len = u8::try_from(len).expect("a length is at most 128");
        let block = Cidr::containing(family.addr(first), len);
        out.push(block);
        let end = Family::number(block.last());
        if end >= last {
            return out;
        }
        first = end + 1;
    }
}
