//! PackageVariant: one blueprint, one place where its variant stands, and what differs there.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::Pipeline;
use crate::kinds::{Reference, StatusCondition};

/// Which blueprint becomes which package, and how.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "config.porch.kpt.dev",
    version = "v1alpha1",
    kind = "PackageVariant",
    plural = "packagevariants",
    namespaced,
    status = "PackageVariantStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "A variant of a blueprint: where it stands, and what differs there.",
    printcolumn(
        name = "Upstream",
        type_ = "string",
        json_path = ".spec.upstream.package"
    ),
    printcolumn(
        name = "Repository",
        type_ = "string",
        json_path = ".spec.downstream.repo"
    ),
    printcolumn(
        name = "Package",
        type_ = "string",
        json_path = ".spec.downstream.package"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
    ),
    printcolumn(name = "Lifecycle", type_ = "string", json_path = ".status.lifecycle"),
    printcolumn(name = "Version", type_ = "integer", json_path = ".status.version"),
    printcolumn(
        name = "Deployed",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Deployed')].status"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].reason"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct PackageVariantSpec {
    /// The blueprint.
    pub upstream: Upstream,
    /// Where the variant stands.
    pub downstream: Downstream,
    /// What happens to a package that stands there already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adoption_policy: Option<AdoptionPolicy>,
    /// What happens to the package when the variant goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<DeletionPolicy>,
    /// Labels of the package.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations of the package.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// What the package knows about itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package_context: Option<PackageContext>,
    /// Functions that run before the package's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<Pipeline>,
    /// What fills the package's injection points, first match first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub injectors: Vec<Injector>,
}

/// A blueprint.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct Upstream {
    /// Its repository.
    #[schemars(length(min = 1))]
    pub repo: String,
    /// Its name, with the directories above it in the repository.
    #[schemars(length(min = 1))]
    pub package: String,
    /// Its revision; none or -1 is whatever stands there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    /// Its workspace, where a revision has not been published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_name: Option<String>,
}

/// Where a variant stands.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct Downstream {
    /// The repository.
    #[schemars(length(min = 1))]
    pub repo: String,
    /// The package's name, with the directories above it in the repository.
    #[schemars(length(min = 1))]
    pub package: String,
}

/// What happens to a package that stands already where a variant goes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum AdoptionPolicy {
    /// It is left alone.
    #[default]
    AdoptNone,
    /// It becomes the variant.
    AdoptExisting,
}

/// What happens to a package whose variant goes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum DeletionPolicy {
    /// It goes too.
    #[default]
    Delete,
    /// It stays, and is nobody's.
    Orphan,
}

/// Keys of the ConfigMap `kptfile.kpt.dev` in a package.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PackageContext {
    /// Keys to set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "context_data")]
    pub data: BTreeMap<String, String>,
    /// Keys to take away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "context_keys")]
    pub remove_keys: Vec<String>,
}

pub(super) fn context_data(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object", "additionalProperties": { "type": "string" },
        "description": "Keys to set.",
        "x-kubernetes-validations": [{ "rule": "!('name' in self) && !('package-path' in self)",
            "message": "sets name or package-path; these follow from where the package stands" }]
    })
}

pub(super) fn context_keys(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array", "items": { "type": "string" }, "maxItems": 256,
        "description": "Keys to take away.",
        "x-kubernetes-validations": [{ "rule": "!('name' in self) && !('package-path' in self)",
            "message": "removes name or package-path; every package has these" }]
    })
}

/// An object that fills injection points. Where group, version or kind are written, only points that have
/// the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Injector {
    /// Group of the points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Version of the points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Kind of the points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Name of the object.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// What the controller says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PackageVariantStatus {
    /// Stalled, Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<StatusCondition>,
    /// The package revisions that were made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub downstream_targets: Vec<DownstreamTarget>,
    /// Draft, Proposed or Published: the newest revision of the package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<String>,
    /// The workspace of the draft or proposal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The version that is published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub version: Option<u32>,
    /// The commit of the newest revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The cluster that the package is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// What each interface of the newest revision has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<InterfaceAddress>,
}

/// What an interface has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InterfaceAddress {
    /// Its name.
    pub interface: String,
    /// Address and subnet length, or a range.
    pub address: String,
}

/// A package revision that was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DownstreamTarget {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How its last render ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub render_status: Option<RenderStatus>,
}

/// How a render ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RenderStatus {
    /// What the functions said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ResultList>,
    /// Why it failed, or empty.
    #[serde(default)]
    pub error: String,
}

/// What the functions said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResultList {
    /// API version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub metadata: Option<serde_json::Value>,
    /// How it ended.
    #[serde(default)]
    pub exit_code: i64,
    /// One per function.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<FunctionResult>,
}

fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// What one function said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FunctionResult {
    /// Its image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Its program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec: Option<String>,
    /// How it ended.
    #[serde(default)]
    pub exit_code: i64,
    /// What it said aside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    /// Its findings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<ResultItem>,
}

/// A finding of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResultItem {
    /// What happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How bad.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<String>,
    /// About which object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_ref: Option<Reference>,
    /// Which field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<FieldRef>,
    /// In which file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileRef>,
    /// More.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
}

/// A field, and what it should be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FieldRef {
    /// Path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_value: Option<String>,
    /// What it should be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposed_value: Option<String>,
}

/// A document in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileRef {
    /// Path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Which document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<i64>,
}
