//! Kptfile: what makes a directory a package. A file and not a kind of the API server, so it has no
//! schema here; unknown keys are let through, because kpt adds some with every release.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Condition;

/// The API version.
pub const API_VERSION: &str = "kpt.dev/v1";

/// A package's own file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Kptfile {
    /// `kpt.dev/v1`.
    #[serde(default)]
    pub api_version: String,
    /// `Kptfile`.
    #[serde(default)]
    pub kind: String,
    /// Name and annotations.
    #[serde(default)]
    pub metadata: Metadata,
    /// About the package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub info: Option<Info>,
    /// What renders it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<Pipeline>,
    /// What was rendered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<KptfileStatus>,
}

/// Name, labels and annotations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// Name of the package.
    #[serde(default)]
    pub name: String,
    /// Namespace, where one is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// About the package.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Info {
    /// One sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What must be True before the package may be published.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readiness_gates: Vec<ReadinessGate>,
}

/// A condition that gates publishing.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadinessGate {
    /// The condition's type.
    pub condition_type: String,
}

/// Functions, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pipeline {
    /// They change objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mutators: Vec<Function>,
    /// They only look.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub validators: Vec<Function>,
}

/// A function: an image or a program, and its configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Function {
    /// Name of the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Container image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec: Option<String>,
    /// A file of the package that holds its configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_path: Option<String>,
    /// Its configuration, written here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub config_map: BTreeMap<String, String>,
    /// Only these objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub selectors: Vec<ObjectSelector>,
    /// Not these objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<ObjectSelector>,
}

/// Objects by what they are called; everything that is written must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectSelector {
    /// API version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// What was rendered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KptfileStatus {
    /// Conditions, without time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
