//! BGPNeighbor: a neighbour over which workloads announce the addresses of inbound connections.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::terms;
use crate::Span;
use crate::kinds::StatusCondition;

/// Whose addresses may be announced, and how.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "network.t-caas.telekom.com",
    version = "v1alpha1",
    kind = "BGPNeighbor",
    plural = "bgpneighbors",
    status = "BGPNeighborStatus",
    category = "schiff",
    derive = "PartialEq",
    doc = "A BGP neighbour over which workloads announce routes to the backbone.",
    printcolumn(name = "AS", type_ = "string", json_path = ".status.asNumber"),
    printcolumn(
        name = "Workload AS",
        type_ = "integer",
        json_path = ".status.workloadASNumber"
    ),
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
pub struct BGPNeighborSpec {
    /// Connections whose addresses may be announced: inbound, without load balancer.
    #[schemars(length(max = 64))]
    pub allowed_connections: Vec<AllowedConnection>,
    /// The transfer networks are exported too.
    #[serde(default)]
    pub advertise_transfer_network: bool,
    /// How long a silent neighbour is waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "terms::duration")]
    pub hold_time: Option<Span>,
    /// How often a neighbour says that it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "terms::duration")]
    pub keepalive_time: Option<Span>,
    /// How many prefixes may be announced, per family.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub maximum_prefixes: Option<u32>,
    /// The AS of the workloads; empty takes that of the OperatorConfig.
    #[serde(
        default,
        rename = "workloadAS",
        skip_serializing_if = "String::is_empty"
    )]
    #[schemars(schema_with = "terms::as_number")]
    pub workload_as: String,
    /// The transfer range of the OperatorConfig that neighbour addresses come from; the first otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub transfer_range: Option<String>,
}

/// Connections of one VRFAttachment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AllowedConnection {
    /// The VRFAttachment.
    pub vrf_attachment: NameReference,
    /// Its connections.
    #[schemars(length(max = 64))]
    pub connection_names: Vec<String>,
}

/// An object of the cluster by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NameReference {
    /// Name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BGPNeighborStatus {
    /// The AS of the nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_number: Option<String>,
    /// Where workloads find their neighbour: an address and its transfer network, per node.
    #[serde(default, rename = "neighborIPs", skip_serializing_if = "Vec::is_empty")]
    pub neighbor_ips: Vec<String>,
    /// The AS of the neighbour that workloads see.
    #[serde(
        default,
        rename = "neighborASNumber",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 0))]
    pub neighbor_as_number: Option<u32>,
    /// The AS of the workloads.
    #[serde(
        default,
        rename = "workloadASNumber",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 0))]
    pub workload_as_number: Option<u32>,
    /// In force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_time: Option<String>,
    /// In force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keepalive_time: Option<String>,
    /// In force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub maximum_prefixes: Option<u32>,
    /// Resolved, Compiled, RolledOut, Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<StatusCondition>,
}
