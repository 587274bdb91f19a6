//! The Deployed condition of a variant: what a cluster says in Git, which `mooring_package` reads.

use std::sync::Arc;

use mooring_api::Condition;
use mooring_package::revision::{Lifecycle, PackageName};

use super::conditions::condition;
use super::remote::Remote;
use super::variant::Applied;
use super::{Role, blocking};
use crate::error::chain;

impl Role {
    /// The Deployed condition of a published package; None where nothing is published.
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
        let read = blocking(move || {
            let mut all = remote
                .packages
                .deployments(std::slice::from_ref(&package))?;
            Ok(all.remove(&package))
        });
        let said = read.await.unwrap_or_else(|error| {
            tracing::debug!(
                error = chain(&error),
                "the status of the cluster is not read"
            );
            None
        })?;
        Some(condition(
            "Deployed",
            said.deployed,
            said.reason,
            said.message,
        ))
    }
}
