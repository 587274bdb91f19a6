//! VRFRouteConfiguration: what a VRF gives to the cluster and takes from it. Several may speak of one VRF.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::terms;
use crate::{Cidr, HostCidr, Selector};

/// The routes.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "network.t-caas.telekom.com",
    version = "v1alpha1",
    kind = "VRFRouteConfiguration",
    plural = "vrfrouteconfigurations",
    shortname = "vrf",
    status = "VRFRouteConfigurationStatus",
    category = "schiff",
    derive = "PartialEq",
    doc = "Routes between a VRF and the cluster.",
    printcolumn(name = "VRF", type_ = "string", json_path = ".spec.vrf"),
    printcolumn(name = "Sequence", type_ = "integer", json_path = ".spec.seq"),
    printcolumn(name = "Community", type_ = "string", json_path = ".spec.community")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    { "rule": "!has(self.community) || !has(self.communities) || self.communities.size() == 0",
      "message": "and communities exclude each other; write communities", "fieldPath": ".community" },
]))]
pub struct VRFRouteConfigurationSpec {
    /// The VRF.
    #[schemars(length(max = 12))]
    pub vrf: String,
    /// The VXLAN network identifier; with routeTarget, else as the OperatorConfig says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 16_777_215))]
    pub vni: Option<u32>,
    /// The route target; with vni.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route_target: Option<String>,
    /// What the cluster takes from the VRF.
    #[schemars(length(max = 4096))]
    pub import: Vec<PrefixItem>,
    /// What the VRF takes from the cluster and tells the fabric.
    #[schemars(length(max = 4096))]
    pub export: Vec<PrefixItem>,
    /// Prefixes that are announced as a whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024))]
    pub aggregate: Vec<HostCidr>,
    /// Sources whose traffic is steered into the VRF.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024))]
    pub sbr_prefixes: Vec<HostCidr>,
    /// The order among those of one VRF.
    #[schemars(range(min = 1, max = 65534))]
    pub seq: u16,
    /// One community of exported routes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub community: Option<String>,
    /// Communities of exported routes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub communities: Vec<String>,
    /// Which nodes; all without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "terms::nodes")]
    pub node_selector: Option<Selector>,
    /// Loopbacks inside the VRF.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub loopbacks: Vec<VrfLoopback>,
}

/// One line of a prefix list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrefixItem {
    /// The prefix.
    pub cidr: Cidr,
    /// Its place among the lines; unset ones come first, as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4_294_967_295_u32))]
    pub seq: Option<u32>,
    /// The shortest route that is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 128))]
    pub ge: Option<u8>,
    /// The longest route that is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 128))]
    pub le: Option<u8>,
    /// Whether it passes.
    pub action: ItemAction,
}

/// Whether a route passes.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ItemAction {
    /// It does.
    Permit,
    /// It does not.
    Deny,
}

/// A loopback with one address per node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VrfLoopback {
    /// The interface.
    #[schemars(length(max = 15))]
    pub name: String,
    /// Where its addresses come from.
    pub subnet: HostCidr,
}

/// Nothing yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VRFRouteConfigurationStatus {}
