//! NetworkInstance as seed 000 writes it: which Interfaces of a package belong to an instance.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Member;

/// The members of an instance.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "infra.nephio.org",
    version = "v1alpha1",
    kind = "NetworkInstance",
    plural = "networkinstances",
    namespaced,
    category = "nephio",
    derive = "PartialEq",
    derive = "Default",
    doc = "Which Interfaces of a package belong to a network instance.",
    printcolumn(name = "Instance", type_ = "string", json_path = ".spec.name"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct NetworkInstanceSpec {
    /// The instance; the same as the object's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The Interfaces, by label.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub interfaces: Vec<Member>,
}
