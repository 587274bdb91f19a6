//! `ref.nephio.org/v1alpha1` Config: an object of another package, carried whole.

use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The group.
pub const GROUP: &str = "ref.nephio.org";

/// What is carried.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "ref.nephio.org",
    version = "v1alpha1",
    kind = "Config",
    plural = "configs",
    namespaced,
    category = "nephio",
    derive = "PartialEq",
    derive = "Default",
    doc = "An object of another package, carried whole.",
    printcolumn(name = "Kind", type_ = "string", json_path = ".spec.config.kind"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct ConfigSpec {
    /// The object.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "any_object")]
    pub config: Map<String, Value>,
}

fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}
