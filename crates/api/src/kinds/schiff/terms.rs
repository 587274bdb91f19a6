//! Words that several kinds of the group share: names of VRFs, route targets, communities, routes, traffic.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::value::{BadValue, string_value};
use crate::{Cidr, Expression};

/// The name of a VRF: at most 12 characters, since devices are named after it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VrfName(String);

impl VrfName {
    /// The longest name.
    pub const MAX: usize = 12;

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for VrfName {
    type Err = BadValue;

    fn from_str(s: &str) -> Result<Self, BadValue> {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let why = if s.is_empty() {
            "it is empty"
        } else if s.len() > Self::MAX {
            "at most 12 characters are allowed"
        } else if !s.starts_with(|c: char| c.is_ascii_alphanumeric()) || !s.chars().all(fits) {
            "it has letters, digits, underscores, hyphens and dots, and begins with a letter or digit"
        } else {
            return Ok(Self(s.to_owned()));
        };
        Err(BadValue::new("the name of a VRF", s, why))
    }
}

impl fmt::Display for VrfName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

string_value!(
    VrfName,
    "The name of a VRF, at most 12 characters.",
    "maxLength" = 12,
    "pattern" = "^[a-zA-Z0-9][a-zA-Z0-9_.-]*$"
);

/// A BGP route target: `ASN:n` or `ADDRESS:n`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteTarget(String);

impl RouteTarget {
    /// As written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for RouteTarget {
    type Err = BadValue;

    fn from_str(s: &str) -> Result<Self, BadValue> {
        let bad = || {
            let why = "write ASN:NUMBER or ADDRESS:NUMBER; one half has 16 bits, the other 32";
            BadValue::new("a route target", s, why)
        };
        let (left, right) = s.split_once(':').ok_or_else(bad)?;
        let number = |t: &str| -> Option<u64> {
            let plain = !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
            plain.then(|| t.parse().ok()).flatten()
        };
        let right = number(right).ok_or_else(bad)?;
        let (short, long) = (u64::from(u16::MAX), u64::from(u32::MAX));
        let fits = match number(left) {
            Some(asn) => (asn <= short && right <= long) || (asn <= long && right <= short),
            None => left.parse::<Ipv4Addr>().is_ok() && right <= short,
        };
        if fits {
            Ok(Self(s.to_owned()))
        } else {
            Err(bad())
        }
    }
}

impl fmt::Display for RouteTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

string_value!(
    RouteTarget,
    "A BGP route target, such as 64500:10100.",
    "maxLength" = 26,
    "pattern" = r"^([0-9]{1,10}|([0-9]{1,3}\.){3}[0-9]{1,3}):[0-9]{1,10}$"
);

/// A BGP community, `AA:NN`, each at most 65535.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Community(String);

impl Community {
    /// As written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Community {
    type Err = BadValue;

    fn from_str(s: &str) -> Result<Self, BadValue> {
        let half = |t: &str| t.bytes().all(|b| b.is_ascii_digit()) && t.parse::<u16>().is_ok();
        match s.split_once(':') {
            Some((left, right)) if half(left) && half(right) => Ok(Self(s.to_owned())),
            _ => Err(BadValue::new(
                "a BGP community",
                s,
                "write two numbers of at most 65535, such as 64500:999",
            )),
        }
    }
}

impl fmt::Display for Community {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

string_value!(
    Community,
    "A BGP community, such as 64500:999.",
    "maxLength" = 11,
    "pattern" = "^[0-9]{1,5}:[0-9]{1,5}$"
);

/// Prefixes beyond what the matched Destinations define.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Route {
    /// The prefixes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub prefixes: Vec<Cidr>,
    /// Towards which side they travel; an import from every matched VRF unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<RouteDirection>,
}

/// Towards which side a route travels.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum RouteDirection {
    /// From the VRF to us.
    Import,
    /// From us to the VRF.
    Export,
}

/// Which way a connection is opened.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Towards the cluster.
    Inbound,
    /// Out of the cluster.
    Outbound,
    /// Both; not built yet.
    Bidirectional,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Inbound => "inbound",
            Self::Outbound => "outbound",
            Self::Bidirectional => "bidirectional",
        })
    }
}

/// Which traffic is mirrored, as the workload sees it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Mirroring {
    /// Towards the workload.
    Ingress,
    /// From the workload.
    Egress,
}

/// Which packets are meant. What is absent matches everything.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct TrafficMatch {
    /// Where from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 49))]
    pub src_prefix: Option<String>,
    /// Where to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 49))]
    pub dst_prefix: Option<String>,
    /// From which port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 65535))]
    pub src_port: Option<u16>,
    /// To which port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 65535))]
    pub dst_port: Option<u16>,
    /// tcp, udp, sctp, icmp, in either case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub protocol: Option<String>,
}

/// How far a rollout is with an intent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeProgress {
    /// Nodes that shall have it.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub desired: u32,
    /// Nodes that have it.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub applied: u32,
    /// Nodes that could not apply it.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub failed: u32,
}

/// A label selector without the bare map, which the API server would not show to a rule.
fn selector(g: &mut SchemaGenerator, rules: &serde_json::Value, nullable: bool) -> Schema {
    let expression = g.subschema_for::<Expression>();
    let mut schema = json_schema!({
        "type": "object",
        "properties": {
            "matchLabels": { "type": "object", "additionalProperties": { "type": "string" } },
            "matchExpressions": { "type": "array", "maxItems": 16, "items": expression }
        }
    });
    if rules.is_array() {
        schema.insert("x-kubernetes-validations".to_owned(), rules.clone());
    }
    if nullable {
        schema.insert("nullable".to_owned(), true.into());
    }
    schema
}

/// Which nodes. Absent means no restriction.
pub(super) fn nodes(g: &mut SchemaGenerator) -> Schema {
    selector(g, &serde_json::Value::Null, true)
}

fn named_labels() -> serde_json::Value {
    serde_json::json!([{
        "rule": "(has(self.matchLabels) && self.matchLabels.size() > 0) || (has(self.matchExpressions) && self.matchExpressions.size() > 0)",
        "message": "is empty and would select every Destination; write the labels of those that are meant"
    }])
}

/// Which Destinations; an empty selector would be every VRF there is.
pub(super) fn destinations(g: &mut SchemaGenerator) -> Schema {
    selector(g, &named_labels(), false)
}

/// The same where none may be given.
pub(super) fn some_destinations(g: &mut SchemaGenerator) -> Schema {
    selector(g, &named_labels(), true)
}

/// A duration in whole seconds, as in `90s` or `1m30s`.
pub(super) fn duration(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "nullable": true, "maxLength": 16, "pattern": "^([0-9]+[hms])+$|^0$" })
}

/// An AS number as text; empty takes that of the OperatorConfig.
pub(super) fn as_number(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "maxLength": 10, "pattern": "^([1-9][0-9]*)?$" })
}

/// An address.
pub(super) fn address(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string", "maxLength": 45,
        "x-kubernetes-validations": [{ "rule": "isIP(self)",
            "message": "must be an address, such as 192.0.2.100" }]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_target_has_one_long_half() {
        for good in [
            "64500:10100",
            "65188:2026",
            "4200000000:100",
            "192.0.2.1:7",
            "1:4294967295",
        ] {
            assert!(good.parse::<RouteTarget>().is_ok(), "{good}");
        }
        for bad in [
            "",
            "64500",
            "64500:",
            "70000:70000",
            "a:1",
            "192.0.2.1:70000",
            "+1:2",
        ] {
            assert!(bad.parse::<RouteTarget>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_community_has_two_halves_of_sixteen_bits() {
        assert!("64500:999".parse::<Community>().is_ok());
        for bad in ["64500", "70000:1", "1:70000", ":1", "1:", "a:b"] {
            assert!(bad.parse::<Community>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_vrf_has_at_most_twelve_characters() {
        assert!("m2m_enc".parse::<VrfName>().is_ok());
        assert!("abcdefghijkl".parse::<VrfName>().is_ok());
        for bad in ["", "abcdefghijklm", "a b", "_x", "a/b"] {
            assert!(bad.parse::<VrfName>().is_err(), "{bad}");
        }
    }
}
