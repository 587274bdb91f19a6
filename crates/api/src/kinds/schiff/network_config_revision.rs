//! NetworkConfigRevision: every low-level line of one moment, immutable. Its name is the beginning of its digest.
//!
//! Written by the compiler: published fields and nothing more, since a foreign CRD would prune the rest.

use kube::CustomResource;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

use super::bgp_peering::BGPPeeringSpec;
use super::layer2_network_configuration::Layer2NetworkConfigurationSpec;
use super::mirror::{MirrorSelectorSpec, MirrorTargetSpec};
use super::vrf_route_configuration::VRFRouteConfigurationSpec;

/// What was in force.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "network.t-caas.telekom.com",
    version = "v1alpha1",
    kind = "NetworkConfigRevision",
    plural = "networkconfigrevisions",
    shortname = "ncr",
    status = "NetworkConfigRevisionStatus",
    category = "schiff",
    derive = "PartialEq",
    doc = "The whole network configuration of one moment.",
    printcolumn(name = "Invalid", type_ = "boolean", json_path = ".status.isInvalid"),
    printcolumn(name = "Queued", type_ = "integer", json_path = ".status.queued"),
    printcolumn(name = "Ongoing", type_ = "integer", json_path = ".status.ongoing"),
    printcolumn(name = "Ready", type_ = "integer", json_path = ".status.ready"),
    printcolumn(name = "Total", type_ = "integer", json_path = ".status.total"),
    printcolumn(
        name = "FailedNode",
        type_ = "string",
        json_path = ".status.failedNode"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = without_rules)]
pub struct NetworkConfigRevisionSpec {
    /// Segments, by VLAN.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layer2: Vec<Layer2Revision>,
    /// Routes, by VRF and sequence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vrf: Vec<VrfRevision>,
    /// Sessions, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bgp: Vec<BgpRevision>,
    /// Endpoints of mirrored traffic, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mirror_targets: Vec<MirrorTargetRevision>,
    /// Mirrored traffic, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mirror_selectors: Vec<MirrorSelectorRevision>,
    /// The digest.
    pub revision: String,
}

macro_rules! named {
    ($(#[doc = $doc:literal])+ $name:ident, $spec:ty) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            /// The object.
            #[serde(default, skip_serializing_if = "String::is_empty")]
            pub name: String,
            /// What it said.
            #[serde(flatten)]
            pub spec: $spec,
        }
    };
}

named!(
    /// A segment.
    Layer2Revision,
    Layer2NetworkConfigurationSpec
);
named!(
    /// Routes of a VRF.
    VrfRevision,
    VRFRouteConfigurationSpec
);
named!(
    /// Sessions.
    BgpRevision,
    BGPPeeringSpec
);
named!(
    /// An endpoint.
    MirrorTargetRevision,
    MirrorTargetSpec
);
named!(
    /// Mirrored traffic.
    MirrorSelectorRevision,
    MirrorSelectorSpec
);

/// What the compiler writes was checked where it came from; rules over lists of lists would cost more than an API server allows.
fn without_rules(schema: &mut Schema) {
    fn strip(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Object(map) => {
                map.remove("x-kubernetes-validations");
                map.values_mut().for_each(strip);
            }
            serde_json::Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    if let Some(map) = schema.as_object_mut() {
        map.values_mut().for_each(strip);
    }
}

/// How far its rollout is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkConfigRevisionStatus {
    /// A node could not apply it.
    #[serde(default)]
    pub is_invalid: bool,
    /// Nodes that have it.
    #[serde(default)]
    pub ready: i64,
    /// Nodes that apply it now.
    #[serde(default)]
    pub ongoing: i64,
    /// Nodes that wait.
    #[serde(default)]
    pub queued: i64,
    /// All nodes.
    #[serde(default)]
    pub total: i64,
    /// The node that could not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_node: Option<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_message: Option<String>,
    /// When (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub failed_at: Option<String>,
}
