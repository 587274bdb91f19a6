//! The kind of Config Sync that says which directory of which Git repository a cluster follows, and the record of what came
//! of it that the cluster commits back.
//!
//! Fields of the published CRD keep their meaning. What the seeds and we add is optional and has an annotation twin, because
//! the published CRD may be the one that is installed. Easy to get wrong: [`SyncStatus`] is a file in Git and no kind of the
//! API, although it looks like one.

mod root_sync;
mod sync_status;

pub use root_sync::{
    Auth, Conflicts, GitSource, GitStatus, ObjectCounts, RootSync, RootSyncSpec, RootSyncStatus,
    SecretRef, SourceFormat, SourceStatus, SyncError, SyncResource, SyncedStatus,
};
pub use sync_status::{
    ObjectReport, ObjectState, SYNC_STATUS_FILE, SyncReport, SyncStatus, SyncedCommit,
};

/// The API group.
pub const GROUP: &str = "configsync.gke.io";
