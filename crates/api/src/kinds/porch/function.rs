//! Functions that a variant puts in front of a package's pipeline.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kinds::kpt::ObjectSelector;

/// Functions, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pipeline {
    /// They change objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub mutators: Vec<Function>,
    /// They only look.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub validators: Vec<Function>,
}

/// A function and its configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    { "rule": "has(self.image) && self.image != ''",
      "message": "is missing; a variant's function is an image", "fieldPath": ".image" },
    { "rule": "!has(self.name) || !self.name.contains('.')",
      "message": "has a dot; dots separate the parts of the name that the function gets in the Kptfile", "fieldPath": ".name" },
]))]
pub struct Function {
    /// Name of the step, without dots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub name: Option<String>,
    /// Container image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub image: Option<String>,
    /// Version of the image, or a constraint on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
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
