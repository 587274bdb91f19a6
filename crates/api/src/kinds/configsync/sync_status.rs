//! SyncStatus: what a cluster commits back to the branch that it follows, as `<dir>/.status/sync-status.yaml`.
//!
//! Written by the sync role, read by the management side, which never talks to a workload cluster. Everything below
//! `.status/` is neither applied nor a change, so writing it wakes nobody.
//!
//! ```yaml
//! apiVersion: configsync.gke.io/v1beta1
//! kind: SyncStatus
//! metadata:
//!   name: edge01
//!   annotations: {config.kubernetes.io/local-config: "true"}
//! status:
//!   format: 1
//!   cluster: edge01
//!   sync: {commit: 4f2a…, content: "sha256:9c1e…", lastSyncTime: "2026-01-24T10:30:00Z"}
//!   conditions:
//!   - {type: Synced, status: "True", reason: Synced, message: "…"}
//!   objects:
//!   - {apiVersion: apps/v1, kind: Deployment, namespace: upf, name: upf, state: Applied, file: upf/deployment.yaml}
//!   errors: []
//! ```
//!
//! Easy to get wrong: `sync.commit` is the commit whose *content* was applied. The commit that adds this file comes after it
//! and has the same content.

use serde::{Deserialize, Serialize};

use crate::kinds::StatusCondition;
use crate::{ObjectRef, annotation};

/// Where it stands, below the directory that the cluster follows.
pub const SYNC_STATUS_FILE: &str = ".status/sync-status.yaml";

const API_VERSION: &str = "configsync.gke.io/v1beta1";
const KIND: &str = "SyncStatus";

/// What a cluster says about what it follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SyncStatus {
    /// `configsync.gke.io/v1beta1`.
    pub api_version: String,
    /// `SyncStatus`.
    pub kind: String,
    /// The cluster's name, and that this is for no cluster.
    #[serde(default)]
    pub metadata: serde_json::Map<String, serde_json::Value>,
    /// What it says.
    pub status: SyncReport,
}

/// What a cluster says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SyncReport {
    /// The version of this shape; fields that a reader does not know are to be ignored. Absent in the seed, and then 0.
    #[serde(default)]
    pub format: u32,
    /// Which cluster; empty where nobody said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cluster: String,
    /// What it has.
    #[serde(default)]
    pub sync: SyncedCommit,
    /// Synced: True when all of `sync.commit` is in the cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<StatusCondition>,
    /// Every object of that commit, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<ObjectReport>,
    /// What went wrong, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
}

/// Which commit a cluster has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SyncedCommit {
    /// The commit; empty while there is none.
    #[serde(default)]
    pub commit: String,
    /// A digest of the files that were read, so that a reader can tell the same content under another commit.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub content: String,
    /// When it was applied (RFC 3339).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_sync_time: String,
}

/// An object and how it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectReport {
    /// Which.
    #[serde(flatten)]
    pub object: ObjectRef,
    /// How it is.
    pub state: ObjectState,
    /// The file it stands in, below the directory that the cluster follows; empty for what left.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file: String,
}

/// How an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ObjectState {
    /// As Git has it.
    Applied,
    /// Not as Git has it; `errors` says why.
    Failed,
    /// Gone from Git and still in the cluster; it is removed once everything else is applied.
    Leaving,
}

impl SyncStatus {
    /// The version of the shape that we write.
    pub const FORMAT: u32 = 1;

    /// A file of ours.
    pub fn new(report: SyncReport) -> Self {
        let mut metadata = serde_json::Map::new();
        let name = if report.cluster.is_empty() {
            "cluster"
        } else {
            &report.cluster
        };
        metadata.insert("name".to_owned(), name.into());
        metadata.insert(
            "annotations".to_owned(),
            serde_json::json!({ annotation::LOCAL_CONFIG: "true" }),
        );
        Self {
            api_version: API_VERSION.to_owned(),
            kind: KIND.to_owned(),
            metadata,
            status: report,
        }
    }

    /// Reads a parsed document; None where it is something else. A newer format is read as far as we know it.
    pub fn read(document: &serde_json::Value) -> Option<Self> {
        let read: Self = serde_json::from_value(document.clone()).ok()?;
        (read.kind == KIND && read.api_version.starts_with("configsync.gke.io/")).then_some(read)
    }

    /// Whether the cluster has all of its commit.
    pub fn is_synced(&self) -> bool {
        let synced = |c: &&StatusCondition| c.kind == "Synced";
        let condition = self.status.conditions.iter().find(synced);
        condition.is_some_and(|c| c.status == crate::Status::True)
    }

    /// Whether a reader of `before` learns nothing from `self`. The time alone tells nothing, and neither does
    /// another commit with the same content.
    pub fn says_the_same_as(&self, before: &Self) -> bool {
        let without = |status: &Self| {
            let mut report = status.status.clone();
            report.sync.last_sync_time.clear();
            if !report.sync.content.is_empty() {
                report.sync.commit.clear();
            }
            for condition in &mut report.conditions {
                condition.last_transition_time = None;
                condition.observed_generation = None;
            }
            report
        };
        without(self) == without(before)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn synced(commit: &str, content: &str) -> SyncStatus {
        SyncStatus::new(SyncReport {
            format: SyncStatus::FORMAT,
            cluster: "edge01".to_owned(),
            sync: SyncedCommit {
                commit: commit.to_owned(),
                content: content.to_owned(),
                last_sync_time: format!("2026-01-24T10:30:{:02}Z", commit.len()),
            },
            objects: vec![ObjectReport {
                object: ObjectRef::new("v1", "ConfigMap", "a").within("upf"),
                state: ObjectState::Applied,
                file: "upf/a.yaml".to_owned(),
            }],
            ..SyncReport::default()
        })
    }

    #[test]
    fn the_seeds_form_is_read() {
        let seed = json!({
            "apiVersion": "configsync.gke.io/v1beta1", "kind": "SyncStatus",
            "status": {
                "sync": { "commit": "abc123", "lastSyncTime": "2026-01-24T10:30:00Z" },
                "conditions": [{ "type": "Synced", "status": "True" }],
            },
        });
        let read = SyncStatus::read(&seed).expect("it is one");
        assert!(read.is_synced());
        assert_eq!(read.status.sync.commit, "abc123");
        assert_eq!(read.status.format, 0);
    }

    #[test]
    fn what_is_written_reads_back_and_another_kind_does_not() {
        let status = synced("a", "sha256:1");
        let mut document = serde_json::to_value(&status).expect("its keys are strings");
        assert_eq!(SyncStatus::read(&document), Some(status));
        document["kind"] = "RootSync".into();
        assert_eq!(SyncStatus::read(&document), None);
    }

    #[test]
    fn the_same_content_under_another_commit_says_the_same() {
        assert!(synced("a", "sha256:1").says_the_same_as(&synced("bb", "sha256:1")));
        assert!(!synced("a", "sha256:1").says_the_same_as(&synced("a", "sha256:2")));
        let mut failed = synced("a", "sha256:1");
        failed.status.objects[0].state = ObjectState::Failed;
        assert!(!failed.says_the_same_as(&synced("a", "sha256:1")));
    }
}
