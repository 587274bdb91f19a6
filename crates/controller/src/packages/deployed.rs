//! Whether a cluster has what is published: its own word, from `.status/sync-status.yaml` on the deployment branch.
//!
//! The management side never talks to a workload cluster. Easy to get wrong: the commit that a cluster names is the whole
//! branch's; a package has arrived when its content is the same there as in what the cluster applied.

use std::sync::Arc;

use mooring_api::Condition;
use mooring_api::kinds::configsync::{ObjectState, SYNC_STATUS_FILE, SyncStatus};
use mooring_package::revision::{Lifecycle, PackageName, Packages, Which};

use super::conditions::condition;
use super::remote::Remote;
use super::variant::Applied;
use super::{Role, blocking};
use crate::error::{Error, chain};

const KIND: &str = "Deployed";

impl Role {
    /// The Deployed condition of a published package; None where nothing is published, or no cluster speaks.
    pub(super) async fn deployed(
        &self,
        applied: &Applied,
        remote: &Arc<Remote>,
    ) -> Option<Condition> {
        if applied.version.is_none() && applied.lifecycle != Some(Lifecycle::Published) {
            return None;
        }
        let package: PackageName = applied.package.clone()?;
        let remote = remote.clone();
        let _turn = self.turns.take(&remote.packages.repository.url).await;
        let read = blocking(move || read(&remote.packages, &package)).await;
        read.unwrap_or_else(|error| {
            tracing::debug!(
                error = chain(&error),
                "the status of the cluster is not read"
            );
            None
        })
    }
}

fn read(packages: &Packages, package: &PackageName) -> Result<Option<Condition>, Error> {
    let directory = &packages.repository.directory;
    let place = if directory.is_empty() {
        SYNC_STATUS_FILE.to_owned()
    } else {
        format!("{directory}/{SYNC_STATUS_FILE}")
    };
    let mut bytes = packages.file(&place)?;
    if bytes.is_none() && !directory.is_empty() {
        bytes = packages.file(SYNC_STATUS_FILE)?;
    }
    let Some(bytes) = bytes else {
        return Ok(Some(condition(
            KIND,
            false,
            "NotReported",
            "no cluster has reported on this branch yet",
        )));
    };
    let Some(status) = mooring_package::document(&bytes)
        .as_ref()
        .and_then(SyncStatus::read)
    else {
        return Ok(Some(condition(
            KIND,
            false,
            "Unreadable",
            format!("{place} cannot be read"),
        )));
    };
    let there = packages.read(package, &Which::Ref(status.status.sync.commit.clone()));
    let now = packages.read(package, &Which::Deployed)?;
    let arrived =
        matches!((&there, &now), (Ok(Some(there)), Some(now)) if there.files == now.files);
    Ok(Some(judge(&status, package.as_str(), arrived)))
}

/// What the cluster's word means for one package.
fn judge(status: &SyncStatus, package: &str, arrived: bool) -> Condition {
    let report = &status.status;
    let cluster = if report.cluster.is_empty() {
        "the cluster"
    } else {
        &report.cluster
    };
    let commit: String = report.sync.commit.chars().take(10).collect();
    let ours = |file: &str| {
        file.strip_prefix(package)
            .is_some_and(|rest| rest.starts_with('/'))
    };
    let failed = report
        .objects
        .iter()
        .find(|o| o.state == ObjectState::Failed && ours(&o.file));
    if let Some(object) = failed {
        let error = report
            .errors
            .first()
            .map(String::as_str)
            .unwrap_or_default();
        let said = format!("{cluster} could not apply {}: {error}", object.object);
        return condition(KIND, false, "ApplyFailed", said);
    }
    if !arrived {
        let said = format!("{cluster} is at {commit}, which has not this version");
        return condition(KIND, false, "Syncing", said);
    }
    let known = report.objects.iter().any(|o| ours(&o.file));
    if !status.is_synced() && !known {
        let said = report
            .errors
            .first()
            .cloned()
            .unwrap_or_else(|| format!("{cluster} is not in sync"));
        return condition(KIND, false, "NotSynced", said);
    }
    condition(
        KIND,
        true,
        "Synced",
        format!("{cluster} has it, at {commit}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use mooring_api::kinds::StatusCondition;
    use mooring_api::kinds::configsync::{ObjectReport, SyncReport};
    use mooring_api::{ObjectRef, Status};

    fn status(state: ObjectState, file: &str, synced: bool) -> SyncStatus {
        SyncStatus::new(SyncReport {
            cluster: "edge01".into(),
            conditions: vec![StatusCondition {
                kind: "Synced".into(),
                status: if synced { Status::True } else { Status::False },
                reason: String::new(),
                message: String::new(),
                last_transition_time: None,
                observed_generation: None,
            }],
            objects: vec![ObjectReport {
                object: ObjectRef::new("v1", "ConfigMap", "a"),
                state,
                file: file.into(),
            }],
            errors: vec!["refused".into()],
            ..SyncReport::default()
        })
    }

    #[test]
    fn a_package_is_deployed_when_its_version_has_arrived_and_none_of_its_objects_failed() {
        let reason = |status: &SyncStatus, arrived| judge(status, "upf", arrived).reason;
        let good = status(ObjectState::Applied, "upf/a.yaml", true);
        assert_eq!(reason(&good, true), "Synced");
        assert_eq!(reason(&good, false), "Syncing");
        let own = status(ObjectState::Failed, "upf/a.yaml", false);
        assert_eq!(reason(&own, true), "ApplyFailed");
        let other = status(ObjectState::Failed, "upf-b/a.yaml", false);
        assert_eq!(
            reason(&other, true),
            "NotSynced",
            "nothing of it is known to be there"
        );
    }
}
