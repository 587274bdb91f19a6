//! A variant goes: its package and every address with it, or it leaves both on purpose.
//!
//! The order is Git first, the book second, the finalizer last: an address is free only when nothing in Git says that it
//! is in use, and a crash between two steps is found again by the next pass.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use mooring_api::kinds::porch::{DeletionPolicy, PackageVariantSpec};
use mooring_blueprint::Object;
use mooring_book::{Filter, Store as _};
use mooring_package::revision::PackageName;
use mooring_package::{Kpt, retire};

use super::super::remote::{self, Remote};
use super::super::{Role, blocking, reference, site_of};
use super::decide::Remembered;
use super::remembered;
use super::report::Told;
use crate::error::Error;

/// What there is to release.
struct Left {
    remote: Arc<Remote>,
    package: PackageName,
    /// The mark of the variant.
    mark: String,
    /// Identities that are known from elsewhere.
    ids: BTreeSet<String>,
}

impl Role {
    /// Releases what a deleted variant has, then lets it go.
    pub(super) async fn release(&self, object: &Object) -> Result<Option<Duration>, Error> {
        let finalizers = object.value.pointer("/metadata/finalizers");
        let ours = |f: &serde_json::Value| f.to_string().contains(super::FINALIZER);
        if !finalizers.is_some_and(ours) {
            return Ok(None);
        }
        let known = remembered(object);
        let spec = object.spec::<PackageVariantSpec>().ok();
        let orphan = spec
            .as_ref()
            .is_some_and(|s| s.deletion_policy == Some(DeletionPolicy::Orphan));
        if orphan {
            let note = "the package and its addresses stay, as the deletion policy says";
            self.world
                .tell(&reference(object), false, "Orphaned", note)
                .await;
        } else {
            let mut places = BTreeSet::from([known.place.clone()]);
            places.extend(spec.map(|s| format!("{}/{}", s.downstream.repo, s.downstream.package)));
            for place in places.into_iter().filter(|p| !p.is_empty()) {
                if let Err(finding) = self.remove(object, &place, &known).await? {
                    self.report(object, &Told::Refused(&[finding])).await?;
                    return Ok(None);
                }
            }
        }
        self.finalizer(object, false).await?;
        self.written.forget(object);
        Ok(None)
    }

    /// The variant was given another place: what it made at the old one goes, or stays, as when it is deleted.
    pub(super) async fn leave(&self, object: &Object, known: &Remembered) -> Result<(), Error> {
        let spec = object.spec::<PackageVariantSpec>().ok();
        if spec.is_some_and(|s| s.deletion_policy == Some(DeletionPolicy::Orphan)) {
            return Ok(());
        }
        match self.remove(object, &known.place, known).await? {
            Ok(()) => Ok(()),
            Err(finding) => Err(Error::Waiting(Box::new(finding))),
        }
    }

    /// Removes what a variant made at a place, and frees its addresses.
    async fn remove(
        &self,
        object: &Object,
        place: &str,
        known: &Remembered,
    ) -> Result<Result<(), mooring_api::Finding>, Error> {
        let Some((repo, package)) = place.split_once('/') else {
            return Ok(Ok(()));
        };
        let Ok(package) = package.parse::<PackageName>() else {
            return Ok(Ok(()));
        };
        let repositories = self.repositories().await?;
        let Some(repository) = remote::find(&repositories, object.namespace(), repo) else {
            // Nothing was ever made there.
            if known.place != place {
                return Ok(Ok(()));
            }
            let finding = remote::missing(repo, object.namespace(), "spec.downstream.repo");
            let help =
                "Apply the Repository again, or set deletionPolicy: orphan to leave the package.";
            return Ok(Err(finding.on(&object.reference()).help(help)));
        };
        let remote = match self.remote(repository).await? {
            Ok(remote) => Arc::new(remote),
            Err(finding) => return Ok(Err(finding)),
        };
        let left = Left {
            remote: remote.clone(),
            package,
            mark: format!("{}/{}", object.namespace(), object.name()),
            ids: BTreeSet::from([known.id.clone()]),
        };
        let site = self.site(object.namespace()).await?;
        let _turn = self.turns.take(&remote.packages.repository.url).await;
        let world = self.world.clone();
        let book = self.book.clone();
        let freed = blocking(move || {
            world.fence()?;
            let ids = left.remove_from_git()?;
            let site = site_of(&site);
            book.with(|store| {
                let mut freed = 0;
                for id in ids {
                    let filter = Filter {
                        package: Some(id.clone()),
                        ..Filter::default()
                    };
                    let leases = store.leases(&filter)?;
                    freed += leases.len();
                    let mut clusters: BTreeSet<String> =
                        leases.into_iter().map(|l| l.holder.cluster).collect();
                    let records = store.packages()?.into_iter().filter(|r| r.id == id);
                    clusters.extend(records.map(|r| r.cluster));
                    for cluster in clusters {
                        world.fence()?;
                        retire(store, &site, &cluster, &id, world.now())?;
                    }
                }
                Ok(freed)
            })
        });
        let freed = freed.await?;
        let note = format!("{place} is removed from Git, and {freed} addresses are free");
        self.world
            .tell(&reference(object), false, "Removed", &note)
            .await;
        Ok(Ok(()))
    }
}

impl Left {
    /// Removes what is the variant's, in one push. The identities that it had.
    fn remove_from_git(&self) -> Result<BTreeSet<String>, Error> {
        let packages = &self.remote.packages;
        let seen = packages.look(&self.package)?;
        let mut ids = self.ids.clone();
        let mine = |kpt: &Kpt| kpt.variant == self.mark;
        let mut drafts = Vec::new();
        for open in &seen.open {
            if let Some(kpt) = Kpt::read(&open.files).filter(mine) {
                ids.insert(kpt.id);
                drafts.push(open.workspace.clone());
            }
        }
        let deployed = seen
            .deployed
            .and_then(|content| Kpt::read(&content.files))
            .filter(mine);
        if let Some(kpt) = deployed {
            ids.insert(kpt.id);
            packages.delete(&self.package)?;
        } else {
            for workspace in drafts {
                packages.discard(&self.package, &workspace)?;
            }
        }
        ids.remove("");
        Ok(ids)
    }
}
