//! MirrorTarget and MirrorSelector: where mirrored traffic goes, and which traffic it is, said in full.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::collector::GreProtocol;
use super::terms::{Mirroring, TrafficMatch};
use crate::kinds::StatusCondition;

/// A GRE endpoint.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "network.t-caas.telekom.com",
    version = "v1alpha1",
    kind = "MirrorTarget",
    plural = "mirrortargets",
    shortname = "mirrortarget",
    status = "MirrorTargetStatus",
    category = "schiff",
    derive = "PartialEq",
    doc = "A GRE endpoint that mirrored traffic is sent to, with its VRF and loopback.",
    printcolumn(name = "Type", type_ = "string", json_path = ".spec.type"),
    printcolumn(
        name = "Destination",
        type_ = "string",
        json_path = ".spec.destinationIP"
    ),
    printcolumn(name = "VRF", type_ = "string", json_path = ".spec.destinationVrf")
)]
#[serde(rename_all = "camelCase")]
pub struct MirrorTargetSpec {
    /// How packets are wrapped.
    #[serde(rename = "type")]
    pub protocol: GreProtocol,
    /// The address of the collector.
    #[serde(rename = "destinationIP")]
    #[schemars(regex(
        pattern = r"^((([0-9]{1,3}\.){3}[0-9]{1,3})|(([0-9a-fA-F]{0,4}:){2,7}[0-9a-fA-F]{0,4}))$"
    ))]
    pub destination_ip: String,
    /// The GRE key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 4_294_967_295_u32))]
    pub key: Option<u32>,
    /// The VRF of the tunnel.
    #[schemars(length(max = 12))]
    pub destination_vrf: String,
    /// The loopback of that VRF that is the source.
    pub source_loopback: String,
}

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MirrorTargetStatus {
    /// On how many nodes.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub active_nodes: u32,
    /// How many MirrorSelectors name it.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub active_selectors: u32,
    /// Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<StatusCondition>,
}

/// Which traffic.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "network.t-caas.telekom.com",
    version = "v1alpha1",
    kind = "MirrorSelector",
    plural = "mirrorselectors",
    shortname = "mirrorselector",
    status = "MirrorSelectorStatus",
    category = "schiff",
    derive = "PartialEq",
    doc = "Traffic of a segment or VRF that is copied to a MirrorTarget.",
    printcolumn(name = "Direction", type_ = "string", json_path = ".spec.direction"),
    printcolumn(
        name = "Source",
        type_ = "string",
        json_path = ".spec.mirrorSource.name"
    ),
    printcolumn(
        name = "Target",
        type_ = "string",
        json_path = ".spec.mirrorTarget.name"
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    { "rule": "self.mirrorTarget.kind == 'MirrorTarget' && (!has(self.mirrorTarget.apiGroup) || self.mirrorTarget.apiGroup == 'network.t-caas.telekom.com')",
      "message": "must name a MirrorTarget; write kind: MirrorTarget", "fieldPath": ".mirrorTarget" },
    { "rule": "(self.mirrorSource.kind == 'Layer2NetworkConfiguration' || self.mirrorSource.kind == 'VRFRouteConfiguration') && (!has(self.mirrorSource.apiGroup) || self.mirrorSource.apiGroup == 'network.t-caas.telekom.com')",
      "message": "must name a Layer2NetworkConfiguration or a VRFRouteConfiguration; write one of these as kind", "fieldPath": ".mirrorSource" },
]))]
pub struct MirrorSelectorSpec {
    /// Only such traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic_match: Option<TrafficMatch>,
    /// Where to.
    pub mirror_target: MirrorObject,
    /// Whose.
    pub mirror_source: MirrorObject,
    /// Which way, as the workload sees it.
    pub direction: Mirroring,
}

/// An object by group, kind and name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MirrorObject {
    /// Group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_group: Option<String>,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Namespace; these kinds have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MirrorSelectorStatus {
    /// Resolved, Applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<StatusCondition>,
}
