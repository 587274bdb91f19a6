//! What an ADD answers, in its newest shape, and the way to and from the older ones.
//!
//! ```text
//!   0.1.0 0.2.0            0.3.0 0.3.1 0.4.0            1.0.0 1.1.0
//!   ip4, ip6        ◄───►  interfaces, ips+version ◄──►  interfaces, ips      = CniResult
//! ```
//!
//! Every plugin makes one; only the frame prints it. Easy to get wrong: `ips[].interface` is an index into
//! `interfaces`. A plugin that puts an interface in front moves every index.

mod old;
#[cfg(test)]
mod tests;

use std::net::IpAddr;

use mooring_api::{Cidr, Family, HostCidr};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

use super::error::CniError;
use super::fold::{member, read};
use super::version::Version;

/// Interfaces, addresses, routes and name servers of an attachment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct CniResult {
    /// Every interface that was made or used, on the host and in the container.
    pub interfaces: Vec<Interface>,
    /// Addresses.
    pub ips: Vec<Ip>,
    /// Routes in the container.
    pub routes: Vec<CniRoute>,
    /// Name servers.
    pub dns: Dns,
}

/// An interface of a result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its hardware address.
    #[serde(
        default,
        deserialize_with = "filled",
        skip_serializing_if = "Option::is_none"
    )]
    pub mac: Option<String>,
    /// Its MTU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// The namespace's path; none for an interface on the host.
    #[serde(
        default,
        deserialize_with = "filled",
        skip_serializing_if = "Option::is_none"
    )]
    pub sandbox: Option<String>,
    /// A socket that stands for it (vhost-user).
    #[serde(
        rename = "socketPath",
        default,
        deserialize_with = "filled",
        skip_serializing_if = "Option::is_none"
    )]
    pub socket_path: Option<String>,
    /// The PCI device behind it.
    #[serde(
        rename = "pciID",
        default,
        deserialize_with = "filled",
        skip_serializing_if = "Option::is_none"
    )]
    pub pci_id: Option<String>,
}

/// An address of a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ip {
    /// Which interface has it, as an index into `interfaces`; IPAM plugins leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<usize>,
    /// The address with its subnet's length.
    pub address: HostCidr,
    /// The subnet's gateway.
    #[serde(
        default,
        deserialize_with = "address",
        skip_serializing_if = "Option::is_none"
    )]
    pub gateway: Option<IpAddr>,
}

/// A route of a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CniRoute {
    /// Where to.
    #[serde(deserialize_with = "network")]
    pub dst: Cidr,
    /// Via which router; without one the family's gateway, else the link.
    #[serde(
        default,
        deserialize_with = "address",
        skip_serializing_if = "Option::is_none"
    )]
    pub gw: Option<IpAddr>,
    /// Path MTU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// TCP segment size to advertise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advmss: Option<u32>,
    /// Metric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// Table; none is main.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<u32>,
    /// 0 global, 253 link, 254 host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<u8>,
}

impl CniRoute {
    /// A route without anything special.
    pub fn new(dst: Cidr, gw: Option<IpAddr>) -> Self {
        Self {
            dst,
            gw,
            mtu: None,
            advmss: None,
            priority: None,
            table: None,
            scope: None,
        }
    }
}

/// Name servers, as the protocol writes them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Dns {
    /// Servers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nameservers: Vec<String>,
    /// The domain.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub domain: String,
    /// Search domains.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub search: Vec<String>,
    /// Options of the resolver.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

impl Dns {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl CniResult {
    /// Reads a result of that version. The version is the configuration's (a prevResult) or the result's own
    /// (a delegate's answer); the text's `cniVersion` is not looked at.
    pub fn parse(value: &Value, version: Version) -> Result<Self, CniError> {
        let bad = |why: &dyn std::fmt::Display| {
            CniError::decode(format!("the result as version {version}"), why)
        };
        if !value.is_object() {
            // Serde would read a list as the fields in their order.
            return Err(bad(&"it is not a JSON object"));
        }
        let parsed = if version.has_old_result() {
            read::<old::Old>(value).map(CniResult::from)
        } else {
            read(value)
        };
        parsed.map_err(|e| bad(&e))
    }

    /// The result of a delegate: its own version decides, without one the configuration's.
    pub fn parse_answer(text: &[u8], config: Version) -> Result<Self, CniError> {
        let value: Value = serde_json::from_slice(text)
            .map_err(|e| CniError::decode("the delegate's result", e))?;
        let version = match value
            .as_object()
            .and_then(|answer| member(answer, "cniVersion")?.as_str())
        {
            None | Some("") => config,
            Some(text) => text.parse()?,
        };
        Self::parse(&value, version)
    }

    /// The result in the shape of a version. 0.1.0 and 0.2.0 keep the first address per family and no
    /// interfaces; a result without addresses stays without, which their text allows.
    pub fn to(&self, version: Version) -> Value {
        let mut out = Map::new();
        out.insert("cniVersion".into(), json!(version.as_str()));
        if version.has_old_result() {
            old::write(self, &mut out);
        } else {
            let list = |items: Vec<Value>| (!items.is_empty()).then_some(Value::Array(items));
            let interfaces = self.interfaces.iter().map(|i| i.to(version));
            let ips = self.ips.iter().map(|ip| ip.to(version));
            let parts = [
                ("interfaces", list(interfaces.collect())),
                ("ips", list(ips.collect())),
                ("routes", list(self.routes.iter().map(plain).collect())),
            ];
            for (key, part) in parts {
                if let Some(part) = part {
                    out.insert(key.into(), part);
                }
            }
        }
        if !self.dns.is_empty() {
            out.insert("dns".into(), plain(&self.dns));
        }
        Value::Object(out)
    }

    /// Gives every address to the interface at that index, as a plugin does with what IPAM or a plugin before it gave.
    pub fn assign(&mut self, interface: usize) {
        for ip in &mut self.ips {
            ip.interface = Some(interface);
        }
    }

    /// The addresses of the interface at that index, and those without one.
    pub fn ips_of(&self, interface: usize) -> impl Iterator<Item = &Ip> {
        self.ips
            .iter()
            .filter(move |ip| ip.interface.is_none_or(|i| i == interface))
    }
}

impl Interface {
    fn to(&self, version: Version) -> Value {
        if version >= Version::V1_0_0 {
            return plain(self);
        }
        plain(&Self {
            mtu: None,
            socket_path: None,
            pci_id: None,
            ..self.clone()
        })
    }
}

impl Ip {
    /// An address that no interface has yet.
    pub fn new(address: HostCidr, gateway: Option<IpAddr>) -> Self {
        Self {
            interface: None,
            address,
            gateway,
        }
    }

    fn to(&self, version: Version) -> Value {
        let Value::Object(body) = plain(self) else {
            return Value::Null;
        };
        let mut out = Map::new();
        if version < Version::V1_0_0 {
            let family = match self.address.family() {
                Family::V4 => "4",
                Family::V6 => "6",
            };
            out.insert("version".into(), json!(family));
        }
        out.extend(body);
        Value::Object(out)
    }
}

fn plain(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("these structs have string keys and plain values")
}

/// An empty string is no value.
fn filled<'de, D: Deserializer<'de>>(d: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<String>::deserialize(d)?.filter(|text| !text.is_empty()))
}

/// An empty string is no address.
pub(super) fn address<'de, D: Deserializer<'de>>(d: D) -> Result<Option<IpAddr>, D::Error> {
    let text = filled(d)?;
    let parsed = text.map(|t| t.parse().map_err(|_| format!("{t:?} is not an address")));
    parsed.transpose().map_err(serde::de::Error::custom)
}

/// Host bits are cut off: the reference reads `10.1.2.3/8` as a destination, the kernel wants `10.0.0.0/8`.
fn network<'de, D: Deserializer<'de>>(d: D) -> Result<Cidr, D::Error> {
    Ok(HostCidr::deserialize(d)?.subnet())
}
