//! Destination: somewhere to reach, as a rule a VRF of the backbone. Attachments select it by label.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::terms::{Community, RouteTarget, VrfName};
use crate::kinds::StatusCondition;
use crate::{Cidr, IfName};

/// Where, and what can be reached there.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "network.t-caas.telekom.com",
    version = "v1alpha1",
    kind = "Destination",
    plural = "destinations",
    status = "DestinationStatus",
    category = "schiff",
    derive = "PartialEq",
    doc = "Somewhere to reach: a VRF of the backbone, defined once and selected by label.",
    printcolumn(name = "VRF", type_ = "string", json_path = ".spec.vrf"),
    printcolumn(name = "VNI", type_ = "integer", json_path = ".spec.vni"),
    printcolumn(
        name = "References",
        type_ = "integer",
        json_path = ".status.referenceCount"
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
#[schemars(extend("x-kubernetes-validations" = [
    { "rule": "self.vrf == oldSelf.vrf",
      "message": "of a Destination cannot change; make another Destination and relabel", "fieldPath": ".vrf" },
    { "rule": "has(self.vni) == has(self.routeTarget)",
      "message": "and routeTarget belong together; write both, or neither and let the OperatorConfig say", "fieldPath": ".vni" },
]))]
pub struct DestinationSpec {
    /// The VRF.
    pub vrf: VrfName,
    /// What can be reached there. Everything that selects the Destination inherits these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024))]
    pub prefixes: Vec<Cidr>,
    /// Routes inside the prefixes are taken too, not only the prefixes themselves. A default route stays exact.
    #[serde(default)]
    pub more_specifics: bool,
    /// The VXLAN network identifier of the VRF.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 16_777_215))]
    pub vni: Option<u32>,
    /// The route target of the VRF.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route_target: Option<RouteTarget>,
    /// The community of routes that are exported there, unless an attachment names its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub community: Option<Community>,
    /// Loopbacks inside the VRF, with an address per node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-validations" = [
        { "rule": "self.all(l, self.exists_one(m, m.name == l.name))",
          "message": "lists a name twice; give every loopback its own" }]))]
    pub loopbacks: Vec<DestinationLoopback>,
    /// Routing by source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sbr: Option<Sbr>,
}

/// A loopback inside the VRF. Its addresses come from a pool of Cluster API IPAM or from a subnet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    { "rule": "has(self.poolRef) != has(self.subnet)",
      "message": "and subnet exclude each other; write where the addresses come from once", "fieldPath": ".poolRef" },
]))]
pub struct DestinationLoopback {
    /// The interface, such as `lo.mir`.
    #[schemars(extend("maxLength" = 15))]
    pub name: IfName,
    /// A pool of Cluster API IPAM: one claim per node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool_ref: Option<PoolReference>,
    /// A subnet to take one address per node from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subnet: Option<Cidr>,
}

/// A pool by group, kind and name.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct PoolReference {
    /// Group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_group: String,
    /// Kind, such as `InClusterIPPool`.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// Name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Namespace of the pool, where its kind has one; the OperatorConfig's otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub namespace: Option<String>,
}

/// Routing by source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sbr {
    /// True forces an intermediate VRF; false leaves it to the compiler, which makes one where it is needed.
    #[serde(default)]
    pub enabled: bool,
}

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DestinationStatus {
    /// How many attachments and connections select it.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub reference_count: u32,
    /// The VNI in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub vni: Option<u32>,
    /// The route target in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route_target: Option<String>,
    /// Resolved, Compiled, RolledOut, Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<StatusCondition>,
}
