//! Collector: where mirrored traffic goes, over GRE out of a mirror VRF.

use std::net::IpAddr;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::terms;
use crate::kinds::StatusCondition;
use crate::{IfName, Selector};

/// The endpoint and the VRF.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "network.t-caas.telekom.com",
    version = "v1alpha1",
    kind = "Collector",
    plural = "collectors",
    status = "CollectorStatus",
    category = "schiff",
    derive = "PartialEq",
    doc = "A GRE endpoint that mirrored traffic is sent to.",
    printcolumn(name = "Address", type_ = "string", json_path = ".spec.address"),
    printcolumn(name = "Protocol", type_ = "string", json_path = ".spec.protocol"),
    printcolumn(
        name = "Interface",
        type_ = "string",
        json_path = ".status.greInterface"
    ),
    printcolumn(name = "Nodes", type_ = "integer", json_path = ".status.activeNodes"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    { "rule": "self.protocol == oldSelf.protocol",
      "message": "cannot change, since the tunnel is named after it; make another Collector", "fieldPath": ".protocol" },
]))]
pub struct CollectorSpec {
    /// The address of the collector.
    #[schemars(schema_with = "terms::address")]
    pub address: IpAddr,
    /// How packets are wrapped.
    pub protocol: GreProtocol,
    /// The GRE key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 4_294_967_295_u32))]
    pub key: Option<u32>,
    /// The Destination that is the mirror VRF. It has loopbacks.
    pub mirror_destination: MirrorDestination,
    /// Only on nodes with these labels, of those that mirror anything here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "terms::nodes")]
    pub node_selector: Option<Selector>,
}

/// How packets are wrapped.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum GreProtocol {
    /// Packets.
    L3gre,
    /// Frames.
    L2gre,
}

impl GreProtocol {
    /// As written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::L3gre => "l3gre",
            Self::L2gre => "l2gre",
        }
    }
}

/// The Destination that is the mirror VRF.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MirrorDestination {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Which of its loopbacks is the source, where it has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loopback: Option<IfName>,
}

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CollectorStatus {
    /// The tunnel on the nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gre_interface: Option<String>,
    /// How many TrafficMirrors name it.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub reference_count: u32,
    /// On how many nodes the tunnel is.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub active_nodes: u32,
    /// Resolved, Compiled, RolledOut, Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<StatusCondition>,
}
