//! A reference to another object, in the shape of core/v1 ObjectReference.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Another object. Only name and namespace are used to find it; the other fields are carried because
/// published manifests may have them.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct Reference {
    /// Name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Namespace; empty means `default`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// API version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Kind.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// UID.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Resource version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// A part of the object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub field_path: String,
}

impl Reference {
    /// A reference by name.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// The namespace to look in: an empty one means `default`.
    pub fn namespace_or_default(&self) -> &str {
        if self.namespace.is_empty() {
            "default"
        } else {
            &self.namespace
        }
    }
}
