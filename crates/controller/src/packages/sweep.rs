//! Reservations whose draft is no more: published by somebody, then they are committed; or gone, then they are given back.
//!
//! Git refs are the truth. What is reserved for a package that is open somewhere stays; the rest is looked for among what
//! is published, and otherwise given back. Easy to get wrong: a draft is reserved before it is pushed, and a repository
//! that cannot be read hides its drafts. So nothing is given back before it was missing for a while, and never while a
//! repository is away.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mooring_book::{Filter, Store as _};
use mooring_ipam::State;
use mooring_package::{Files, Kpt, Specialise, discard, specialise};

use super::remote::Remote;
use super::{Role, blocking, key, repository, site_of};
use crate::error::{Error, chain};

/// How long something must be missing, in looks at Git.
const LOOKS: u32 = 4;
/// At least.
const LEAST: Duration = Duration::from_secs(5);

/// A package by cluster and id.
type Owner = (String, String);

impl Role {
    /// Sweeps now and then, until the end.
    pub(super) async fn sweep(self: Arc<Self>) {
        let poll = self.world.args.packages.git_poll;
        let mut missing: BTreeMap<Owner, Instant> = BTreeMap::new();
        loop {
            tokio::select! {
                () = self.world.shutdown.clone().wait() => return,
                () = tokio::time::sleep(poll.max(Duration::from_secs(1))) => {}
            }
            if !self.world.leadership.holds() {
                missing.clear();
                continue;
            }
            if let Err(error) = self
                .sweep_once(&mut missing, (poll * LOOKS).max(LEAST))
                .await
            {
                tracing::warn!(error = chain(&error), reason = error.reason(), "not swept");
            }
        }
    }

    async fn sweep_once(
        &self,
        missing: &mut BTreeMap<Owner, Instant>,
        patience: Duration,
    ) -> Result<(), Error> {
        let reserved = self.reserved().await?;
        let repositories: Vec<_> = self.repositories().await?;
        let ours = repositories.iter().filter(|o| repository::is_deployment(o));
        let names: Vec<String> = ours.clone().map(key).collect();
        let recent = Instant::now().checked_sub(patience);
        let Some(open) = recent.and_then(|then| self.memory.open(&names, then)) else {
            missing.clear(); // a repository is away, or was not looked at yet
            return Ok(());
        };
        let lost: BTreeSet<Owner> = reserved
            .into_iter()
            .filter(|(_, id)| !open.contains(id))
            .collect();
        missing.retain(|owner, _| lost.contains(owner));
        for owner in &lost {
            missing.entry(owner.clone()).or_insert_with(Instant::now);
        }
        let due: Vec<Owner> = missing
            .iter()
            .filter(|(_, since)| since.elapsed() >= patience)
            .map(|(owner, _)| owner.clone())
            .collect();
        if due.is_empty() {
            return Ok(());
        }
        let mut published: BTreeMap<String, (Files, Arc<Remote>, String, String)> = BTreeMap::new();
        for object in ours {
            let Ok(remote) = self.remote(object).await? else {
                return Ok(());
            };
            let remote = Arc::new(remote);
            let _turn = self.turns.take(&remote.packages.repository.url).await;
            let there = remote.clone();
            let all = blocking(move || Ok(there.packages.published()?)).await?;
            for (package, files) in all {
                let id = Kpt::read(&files).map(|kpt| kpt.id).unwrap_or_default();
                let place = (
                    files,
                    remote.clone(),
                    package.to_string(),
                    object.namespace().to_owned(),
                );
                published.insert(id, place);
            }
        }
        for owner in due {
            let id = owner.1.clone();
            match published.remove(&id) {
                Some((files, remote, package, namespace)) => {
                    self.commit(files, &remote, &package, &namespace, &owner)
                        .await?;
                }
                None => self.give_back(&owner).await?,
            }
            missing.remove(&owner);
        }
        Ok(())
    }

    /// Who has something reserved.
    async fn reserved(&self) -> Result<BTreeSet<Owner>, Error> {
        let book = self.book.clone();
        blocking(move || {
            let leases = book.with(|store| store.leases(&Filter::default()))?;
            let reserved = leases
                .into_iter()
                .filter(|l| matches!(l.state, State::Reserved { .. }));
            let owners = reserved.map(|l| (l.holder.cluster, l.holder.package));
            Ok(owners.filter(|(_, id)| !id.is_empty()).collect())
        })
        .await
    }

    /// It was published, and nobody made its addresses final.
    async fn commit(
        &self,
        files: Files,
        remote: &Arc<Remote>,
        package: &str,
        namespace: &str,
        (cluster, id): &Owner,
    ) -> Result<(), Error> {
        let site = self.site(namespace).await?;
        let place = remote.packages.repository.place(package);
        let (book, world) = (self.book.clone(), self.world.clone());
        let (cluster, id) = (cluster.clone(), id.clone());
        tracing::info!(package, id, "published: its addresses are committed");
        blocking(move || {
            world.fence()?;
            let site = site_of(&site);
            let how = Specialise {
                previous: Some(&files),
                pinned: true,
                carries: Some(&|_, _| false),
                deploy_records: world.args.packages.deploy_records,
                ..Specialise::new(&site, place, world.now(), [0; 16])
            };
            book.with(|store| {
                let done = specialise(store, &files, &how)?;
                if done.report.has_errors() {
                    tracing::warn!(
                        id,
                        "the addresses of a published package cannot be committed"
                    );
                    return Ok(());
                }
                discard(store, &cluster, &id, &BTreeSet::new(), world.now())?;
                Ok(())
            })
        })
        .await
    }

    /// There is no such draft.
    async fn give_back(&self, (cluster, id): &Owner) -> Result<(), Error> {
        let (book, world) = (self.book.clone(), self.world.clone());
        let (cluster, id) = (cluster.clone(), id.clone());
        tracing::info!(
            cluster,
            id,
            "the draft is gone: its addresses are given back"
        );
        blocking(move || {
            world.fence()?;
            book.with(|store| discard(store, &cluster, &id, &BTreeSet::new(), world.now()))?;
            Ok(())
        })
        .await
    }
}
