//! TrafficMirror: which traffic of an attachment is copied to a Collector.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::terms::{Mirroring, TrafficMatch};
use crate::kinds::StatusCondition;

/// What is mirrored, and where to.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "network.t-caas.telekom.com",
    version = "v1alpha1",
    kind = "TrafficMirror",
    plural = "trafficmirrors",
    status = "TrafficMirrorStatus",
    category = "schiff",
    derive = "PartialEq",
    doc = "Traffic of an attachment that is copied to a Collector.",
    printcolumn(name = "Source", type_ = "string", json_path = ".spec.source.name"),
    printcolumn(name = "Collector", type_ = "string", json_path = ".spec.collector"),
    printcolumn(name = "Direction", type_ = "string", json_path = ".spec.direction"),
    printcolumn(name = "Nodes", type_ = "integer", json_path = ".status.activeNodes"),
    printcolumn(
        name = "Applied",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Applied')].status"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct TrafficMirrorSpec {
    /// Whose traffic.
    pub source: MirrorSource,
    /// The Collector.
    #[schemars(length(min = 1, max = 253))]
    pub collector: String,
    /// Which way, as the workload sees it.
    pub direction: Mirroring,
    /// Only such traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic_match: Option<TrafficMatch>,
}

/// An attachment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MirrorSource {
    /// Its kind.
    pub kind: MirrorSourceKind,
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// Attachments that can be mirrored.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum MirrorSourceKind {
    /// A segment.
    Layer2Attachment,
    /// Addresses in VRFs.
    VRFAttachment,
}

impl MirrorSourceKind {
    /// As written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Layer2Attachment => "Layer2Attachment",
            Self::VRFAttachment => "VRFAttachment",
        }
    }
}

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrafficMirrorStatus {
    /// On how many nodes.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub active_nodes: u32,
    /// Resolved, Applied, Compiled, RolledOut, Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<StatusCondition>,
}
