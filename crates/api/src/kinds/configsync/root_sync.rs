//! RootSync: which directory of which branch a cluster follows.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kinds::StatusCondition;

/// Which directory of which branch this cluster follows.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "configsync.gke.io",
    version = "v1beta1",
    kind = "RootSync",
    plural = "rootsyncs",
    namespaced,
    status = "RootSyncStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "A directory in Git that this cluster follows.",
    printcolumn(
        name = "SourceCommit",
        type_ = "string",
        json_path = ".status.source.commit"
    ),
    printcolumn(
        name = "SyncCommit",
        type_ = "string",
        json_path = ".status.sync.commit"
    ),
    printcolumn(
        name = "Synced",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Synced')].status"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Synced')].reason"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct RootSyncSpec {
    /// How the directory is laid out. Absent means hierarchy, which is not read: write unstructured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_format: Option<SourceFormat>,
    /// Where the objects come from: git, which is also what absence means. oci and helm are not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub source_type: Option<String>,
    /// The repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitSource>,
    /// How often Git is asked, where git.period says nothing; default 15s. Twin: mooring.dev/poll-interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub poll_interval: Option<String>,
    /// Where objects go that need a namespace and name none; default `default`. Twin: mooring.dev/default-namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub default_namespace: Option<String>,
    /// Whether .status/sync-status.yaml is committed back to the branch; default false. Twin: mooring.dev/commit-status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_status: Option<bool>,
    /// This cluster's name in that file; default is what the controller was started with. Twin: mooring.dev/cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub cluster: Option<String>,
    /// Whether everything may be removed because nothing is left in Git; default false. Twin: mooring.dev/allow-empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_empty: Option<bool>,
    /// What happens to a field that somebody else set first; default Report. Twin: mooring.dev/conflicts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflicts: Option<Conflicts>,
}

/// How a directory is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SourceFormat {
    /// Config Sync's own layout of directories.
    Hierarchy,
    /// Any files in any directories.
    Unstructured,
}

/// What happens to a field of an object that was not ours before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Conflicts {
    /// The object is left as it is, and the status names who set the field.
    #[default]
    Report,
    /// What stands in Git wins.
    Force,
}

/// A directory of a branch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitSource {
    /// Its address.
    #[schemars(length(min = 1, max = 2048))]
    pub repo: String,
    /// The branch; default master, as Config Sync has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub branch: Option<String>,
    /// A tag or commit instead of the branch's end; HEAD means the branch's end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub revision: Option<String>,
    /// The directory; default the whole repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub dir: Option<String>,
    /// How often Git is asked; default 15s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub period: Option<String>,
    /// How the repository is opened.
    pub auth: Auth,
    /// What opens it: a Secret in the namespace of the RootSync.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretRef>,
}

/// How a repository is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Auth {
    /// By anybody.
    #[default]
    None,
    /// The Secret's `ssh-privatekey`, and `known_hosts`.
    Ssh,
    /// The Secret's `username` and `token`.
    Token,
    /// Config Sync's; not served here.
    Cookiefile,
    /// Config Sync's; not served here.
    Gcenode,
    /// Config Sync's; not served here.
    Gcpserviceaccount,
    /// Config Sync's; not served here.
    Githubapp,
}

impl Auth {
    /// As written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Ssh => "ssh",
            Self::Token => "token",
            Self::Cookiefile => "cookiefile",
            Self::Gcenode => "gcenode",
            Self::Gcpserviceaccount => "gcpserviceaccount",
            Self::Githubapp => "githubapp",
        }
    }
}

/// A Secret by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretRef {
    /// The name; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RootSyncStatus {
    /// The generation that was acted upon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The last commit that was applied without an error.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_synced_commit: String,
    /// What was read from Git.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceStatus>,
    /// What was applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync: Option<SyncedStatus>,
    /// Synced, Syncing, Stalled, Reconciling, and StatusCommitted where asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<StatusCondition>,
}

/// What was read from Git.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceStatus {
    /// From where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_status: Option<GitStatus>,
    /// The commit.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub commit: String,
    /// When this was last different (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_update: Option<String>,
    /// Why it is not applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<SyncError>,
}

/// What was applied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SyncedStatus {
    /// From where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_status: Option<GitStatus>,
    /// The commit that was applied last, wholly or in part.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub commit: String,
    /// When this was last different (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_update: Option<String>,
    /// What could not be applied or removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<SyncError>,
    /// How many objects there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<ObjectCounts>,
}

/// How many objects there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectCounts {
    /// In Git.
    #[serde(default)]
    pub wanted: u32,
    /// In the cluster as Git has them.
    #[serde(default)]
    pub applied: u32,
    /// Not applied, or not removed.
    #[serde(default)]
    pub failed: u32,
}

/// Where in Git.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitStatus {
    /// The repository's address, without what opens it.
    #[serde(default)]
    pub repo: String,
    /// The branch.
    #[serde(default)]
    pub branch: String,
    /// The revision.
    #[serde(default)]
    pub revision: String,
    /// The directory.
    #[serde(default)]
    pub dir: String,
}

/// Something that went wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SyncError {
    /// A finding's code.
    pub code: String,
    /// What happened and what to do.
    pub error_message: String,
    /// Which objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<SyncResource>,
}

/// An object, and where it stands in Git.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SyncResource {
    /// The file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source_path: String,
    /// The group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The kind.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The namespace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
}
