//! Network: routing tables and bridge domains of a topology. A package carries a copy, so that routes
//! between the subnets of one routing table can be derived.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Selector;
use crate::kinds::StatusCondition;
use crate::kinds::nephio::ipam::Prefix;
use crate::kinds::nephio::req::AttachmentType;

/// What the network is made of.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "infra.nephio.org",
    version = "v1alpha1",
    kind = "Network",
    plural = "networks",
    namespaced,
    status = "NetworkStatus",
    category = "nephio",
    derive = "PartialEq",
    derive = "Default",
    doc = "Routing tables and bridge domains of a topology.",
    printcolumn(name = "Topology", type_ = "string", json_path = ".spec.topology"),
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
pub struct NetworkSpec {
    /// The topology that it belongs to.
    pub topology: String,
    /// Layer 3.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub routing_tables: Vec<RoutingTable>,
    /// Layer 2.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub bridge_domains: Vec<BridgeDomain>,
}

/// A routing domain with its networks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoutingTable {
    /// Name.
    pub name: String,
    /// The networks that it owns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub prefixes: Vec<Prefix>,
    /// What is attached to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub interfaces: Vec<Member>,
}

/// A broadcast domain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BridgeDomain {
    /// Name.
    pub name: String,
    /// What is attached to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub interfaces: Vec<Member>,
}

/// What is attached: an interface of a node, interfaces by label, or a bridge domain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    { "rule": "self.kind != 'bridgedomain' || has(self.bridgeDomainName)",
      "message": "is missing; name the bridge domain, or write kind: interface", "fieldPath": ".bridgeDomainName" },
]))]
pub struct Member {
    /// What it is.
    #[serde(default)]
    pub kind: MemberKind,
    /// The bridge domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bridge_domain_name: Option<String>,
    /// The interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface_name: Option<String>,
    /// The node of the interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// Interfaces by their labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<Selector>,
    /// Tagged or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attachment_type: Option<AttachmentType>,
}

/// What a [`Member`] is.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum MemberKind {
    /// An interface.
    #[default]
    Interface,
    /// A bridge domain.
    BridgeDomain,
}

/// What the controller says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkStatus {
    /// Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<StatusCondition>,
}
