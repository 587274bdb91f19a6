//! CompiledRevision: the typed form that a NetworkConfigRevision came from, and why every part of it is there.
//!
//! Written by the controller from what the room `intent` compiled; read by `moor explain`. One revision may be several
//! objects, so that none comes near etcd's limit: `part` of `parts`, joined in order.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A part of a compiled revision.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "mooring.dev",
    version = "v1alpha1",
    kind = "CompiledRevision",
    plural = "compiledrevisions",
    category = "mooring",
    derive = "PartialEq",
    doc = "The form that a NetworkConfigRevision was made from, with the origin of every part.",
    printcolumn(name = "Revision", type_ = "string", json_path = ".spec.revision"),
    printcolumn(name = "Part", type_ = "integer", json_path = ".spec.part"),
    printcolumn(name = "Parts", type_ = "integer", json_path = ".spec.parts"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    { "rule": "self.revision == oldSelf.revision",
      "message": "never changes; a new form is a new revision", "fieldPath": ".revision" },
]))]
pub struct CompiledRevisionSpec {
    /// The digest of the whole form.
    #[schemars(length(min = 1, max = 64))]
    pub revision: String,
    /// Which part this is, from 0.
    #[serde(default)]
    #[schemars(range(min = 0, max = 4096))]
    pub part: u16,
    /// How many there are.
    #[schemars(range(min = 1, max = 4096))]
    pub parts: u16,
    /// The form, as canonical JSON: this part of its text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1_000_000))]
    pub form: String,
    /// Configurations of nodes by digest, each written once.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "bodies")]
    pub bodies: BTreeMap<String, serde_json::Value>,
    /// Which node has which body.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub nodes: BTreeMap<String, String>,
    /// Why each part of the form is there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub provenance: Vec<ProvenanceEntry>,
}

fn bodies(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "additionalProperties": {
        "type": "object", "x-kubernetes-preserve-unknown-fields": true } })
}

/// Who put a part of the form there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProvenanceEntry {
    /// The part, such as `vrf/m2m_enc/import/192.0.2.0/24`.
    pub path: String,
    /// `Kind/name field: rule`, one per origin.
    pub origins: Vec<String>,
}
