//! Capacity: how large a network function shall be. Carried, not interpreted.

use std::borrow::Cow;
use std::fmt;

use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// How much.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "req.nephio.org",
    version = "v1alpha1",
    kind = "Capacity",
    plural = "capacities",
    namespaced,
    status = "CapacityStatus",
    category = "nephio",
    derive = "PartialEq",
    derive = "Default",
    doc = "How large a network function shall be.",
    printcolumn(name = "Up", type_ = "string", json_path = ".spec.maxUplinkThroughput"),
    printcolumn(
        name = "Down",
        type_ = "string",
        json_path = ".spec.maxDownlinkThroughput"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct CapacitySpec {
    /// Bits per second to the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_uplink_throughput: Option<Quantity>,
    /// Bits per second from the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_downlink_throughput: Option<Quantity>,
    /// Sessions, in thousands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_sessions: Option<i64>,
    /// Subscribers, in thousands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_subscribers: Option<i64>,
    /// Other network functions that it talks to.
    #[serde(
        rename = "maxNFConnections",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 0, max = 65535))]
    pub max_nf_connections: Option<u16>,
}

/// Nothing is published here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CapacityStatus {}

/// A Kubernetes quantity as written: `10G`, or a plain number.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Quantity(pub String);

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Written;
        impl Visitor<'_> for Written {
            type Value = Quantity;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quantity, such as 10G")
            }

            fn visit_str<E: Error>(self, v: &str) -> Result<Quantity, E> {
                Ok(Quantity(v.to_owned()))
            }

            fn visit_i64<E: Error>(self, v: i64) -> Result<Quantity, E> {
                Ok(Quantity(v.to_string()))
            }

            fn visit_u64<E: Error>(self, v: u64) -> Result<Quantity, E> {
                Ok(Quantity(v.to_string()))
            }
        }
        d.deserialize_any(Written)
    }
}

impl JsonSchema for Quantity {
    fn schema_name() -> Cow<'static, str> {
        "Quantity".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "x-kubernetes-int-or-string": true,
            "description": "A quantity, such as 10G.",
            "pattern": r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$"
        })
    }
}
