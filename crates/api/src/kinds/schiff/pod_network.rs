//! PodNetwork: more addresses for pods, and the way from them to VRFs.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::network_spec::NetworkSpec;
use super::terms::{self, Community, NodeProgress, Route};
use crate::Selector;
use crate::kinds::StatusCondition;

/// The addresses and the VRFs.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "network.t-caas.telekom.com",
    version = "v1alpha1",
    kind = "PodNetwork",
    plural = "podnetworks",
    status = "PodNetworkStatus",
    category = "schiff",
    derive = "PartialEq",
    doc = "An additional network that pods take addresses from.",
    printcolumn(name = "Pools", type_ = "string", json_path = ".status.ipPools"),
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
    { "rule": "has(self.network.subnet) || (has(self.network.ipv4) && has(self.network.ipv4.subnet))",
      "message": "has no subnet; write network.subnet, network.ipv4.subnet or both", "fieldPath": ".network" },
    { "rule": "self.network == oldSelf.network",
      "message": "cannot change under the pods that use it; make another PodNetwork", "fieldPath": ".network" },
]))]
pub struct PodNetworkSpec {
    /// The network that pods take addresses from.
    pub network: NetworkSpec,
    /// Which Destinations.
    #[schemars(schema_with = "terms::destinations")]
    pub destinations: Selector,
    /// Prefixes beyond what the Destinations define.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub routes: Vec<Route>,
    /// On the nodes of these groups; without groups and nodeSelector on all nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub worker_groups: Vec<String>,
    /// And only on nodes with these labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "terms::nodes")]
    pub node_selector: Option<Selector>,
    /// Communities of its exported routes; those of the Destinations otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub communities: Vec<Community>,
}

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodNetworkStatus {
    /// The pools of the CNI that pods name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ip_pools: Vec<String>,
    /// The matched Destinations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub destinations: Vec<String>,
    /// Their VRFs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vrfs: Vec<String>,
    /// The revision that carries it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// How far the rollout is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<NodeProgress>,
    /// Resolved, Compiled, RolledOut, PlatformReady, Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<StatusCondition>,
}
