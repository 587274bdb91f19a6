//! Dependency: another package whose objects this one needs. Resolved between packages.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kinds::Reference;

/// Which package.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "req.nephio.org",
    version = "v1alpha1",
    kind = "Dependency",
    plural = "dependencies",
    namespaced,
    status = "DependencyStatus",
    category = "nephio",
    derive = "PartialEq",
    derive = "Default",
    doc = "Another package whose objects this one needs.",
    printcolumn(name = "Package", type_ = "string", json_path = ".spec.packageName"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct DependencySpec {
    /// The package.
    pub package_name: String,
    /// Which of its objects, by API version and kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub injectors: Vec<Reference>,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DependencyStatus {
    /// The objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub injected: Vec<Reference>,
}
