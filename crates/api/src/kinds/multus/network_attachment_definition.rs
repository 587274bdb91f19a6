//! NetworkAttachmentDefinition: a CNI configuration by name. Whether the text in it is a good
//! configuration is for `attach` and `verify`; here it is a string.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A CNI configuration.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "k8s.cni.cncf.io",
    version = "v1",
    kind = "NetworkAttachmentDefinition",
    singular = "network-attachment-definition",
    plural = "network-attachment-definitions",
    shortname = "net-attach-def",
    namespaced,
    derive = "PartialEq",
    derive = "Default",
    doc = "A CNI configuration that pods ask for by name.",
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
pub struct NetworkAttachmentDefinitionSpec {
    /// A plugin or a list of plugins, as JSON. Without one, the node's CNI directory has a file of
    /// that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
}
