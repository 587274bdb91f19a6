//! An object by what makes it that object in a cluster, and what the cluster serves.

use std::collections::BTreeMap;
use std::fmt;

use mooring_api::{Location, ObjectRef};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What makes an object that object, whatever version it is written in. The namespace is empty for an object of the whole
/// cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Key {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) group: String,
    pub(crate) kind: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Key {
    /// For findings and reports.
    pub(crate) fn reference(&self, version: &str) -> ObjectRef {
        ObjectRef::new(api_version(&self.group, version), &self.kind, &self.name)
            .within(&self.namespace)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reference("").fmt(f)
    }
}

/// A kind in a version.
#[expect(clippy::struct_field_names, reason = "Kubernetes calls it so")]
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kind {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
}

/// How a kind is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Served {
    pub(crate) plural: String,
    pub(crate) namespaced: bool,
}

/// What the cluster serves, and what the CRDs of a commit will make it serve.
pub(crate) type Kinds = BTreeMap<Kind, Served>;

/// An object as it stands in Git.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Written {
    pub(crate) kind: Kind,
    /// As written.
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) value: Value,
    pub(crate) at: Location,
}

impl Written {
    /// For findings.
    pub(crate) fn reference(&self) -> ObjectRef {
        let api_version = api_version(&self.kind.group, &self.kind.version);
        ObjectRef::new(api_version, &self.kind.kind, &self.name).within(&self.namespace)
    }
}

/// An object in Git whose place in the cluster is known.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wanted {
    pub(crate) key: Key,
    pub(crate) version: String,
    pub(crate) served: Served,
    pub(crate) value: Value,
    pub(crate) at: Location,
}

/// `group/version`, or the version alone for the core group.
pub(crate) fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}

/// In which order kinds are applied: what others need comes first. Removed in the opposite order.
pub(crate) fn rank(group: &str, kind: &str) -> u8 {
    match (group, kind) {
        ("", "Namespace") => 0,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => 1,
        // What pods refer to when they start: accounts, configuration, volumes, and the networks they attach to.
        (
            "",
            "ServiceAccount"
            | "ConfigMap"
            | "Secret"
            | "PersistentVolume"
            | "PersistentVolumeClaim"
            | "LimitRange"
            | "ResourceQuota",
        )
        | ("rbac.authorization.k8s.io" | "storage.k8s.io" | "scheduling.k8s.io", _)
        | ("k8s.cni.cncf.io", "NetworkAttachmentDefinition") => 2,
        ("", "Pod" | "ReplicationController") | ("apps" | "batch", _) => 4,
        // They may refuse or change everything that comes after them.
        ("admissionregistration.k8s.io" | "apiregistration.k8s.io", _) => 5,
        _ => 3,
    }
}
