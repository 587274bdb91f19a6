//! What has addresses and is no more in Git as it was: a draft that somebody published is committed; one that is gone, and a
//! package that somebody deleted, give back what they have.
//!
//! ```text
//!  reserved and open nowhere, or published and nowhere any more, for some looks ─► alone (nothing is reserved and not yet pushed)
//!     ─► Git is read once more ─┬ open after all ─► stays
//!                               ├ published ──────► committed
//!                               └ neither ────────► given back
//! ```
//!
//! Git refs are the truth. Easy to get wrong: a draft is reserved before it is pushed, and a repository that cannot be read
//! hides its drafts. So nothing is given back while a pass of ours is between the two, and never while the repository of the
//! draft is away (any of them, where this program never saw the draft); its reservations lapse by themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mooring_blueprint::Object;
use mooring_book::{Filter, Store as _};
use mooring_ipam::State;
use mooring_package::revision::PackageName;
use mooring_package::{Files, Kpt, discard, retire};
use serde_json::Value;

use super::remote::Remote;
use super::{Role, blocking, key, repository, site_of};
use crate::error::{Error, chain};

/// How long something must be missing, in looks at Git: another program may have reserved it and push it yet.
const LOOKS: u32 = 3;
/// How long to wait until we are alone, while others wait behind us.
const ALONE: Duration = Duration::from_secs(2);

/// A package by cluster and id.
type Owner = (String, String);
/// What is published, by its id: files, which package, where, and the Repository.
type Published = BTreeMap<String, (Files, PackageName, Arc<Remote>, Object)>;

/// Since when a variant is not what is wanted, in seconds since 1970: not Ready, or its draft held back by gates. None
/// where it is, or is on its way out.
fn waits_since(variant: &Object) -> Option<u64> {
    let text = |value: &Value, at: &str| value.pointer(at)?.as_str().map(ToOwned::to_owned);
    if variant
        .value
        .pointer("/metadata/deletionTimestamp")
        .is_some()
    {
        return None;
    }
    let conditions = variant
        .value
        .pointer("/status/conditions")
        .and_then(Value::as_array);
    let seconds = |since: String| {
        let since: jiff::Timestamp = since.parse().ok()?;
        u64::try_from(since.as_second()).ok()
    };
    let of = |kind: &str| conditions?.iter().find(|c| c["type"] == kind);
    let Some(ready) = of("Ready") else {
        return text(&variant.value, "/metadata/creationTimestamp").and_then(seconds);
    };
    let held = |c: &Value| c["status"] == "False";
    let both = [Some(ready), of("Specialised")].into_iter().flatten();
    let since = both
        .filter(|c| held(c))
        .filter_map(|c| text(c, "/lastTransitionTime"));
    since.filter_map(seconds).min()
}

/// What stands on a variant.
fn refused(variant: &Object) -> Option<&str> {
    let conditions = variant.value.pointer("/status/conditions")?.as_array()?;
    let ready = conditions.iter().find(|c| c["type"] == "Ready")?;
    let reason = ready["reason"].as_str()?;
    (ready["status"] == "False").then_some(reason)
}

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
                self.world.metrics.variant_waits.set(0.0);
                self.world.metrics.stand(self.world.role.name(), []);
                continue;
            }
            if let (Ok(variants), Ok(repositories)) =
                (self.variants().await, self.repositories().await)
            {
                let now = self.world.now();
                let names: Vec<String> = repositories.iter().map(key).collect();
                let by_hand = self.memory.held(&names).map(|since| since.0);
                let waits = variants.iter().filter_map(waits_since).chain(by_hand);
                let longest = waits.map(|since| now.0.saturating_sub(since)).max();
                #[expect(clippy::cast_precision_loss, reason = "seconds, for a graph")]
                self.world
                    .metrics
                    .variant_waits
                    .set(longest.unwrap_or(0) as f64);
                let found = variants.iter().filter_map(refused);
                let found = found.map(|reason| ("PackageVariant", reason));
                self.world.metrics.stand(self.world.role.name(), found);
            }
            if let Err(error) = self.sweep_once(&mut missing, poll * LOOKS).await {
                tracing::warn!(error = chain(&error), reason = error.reason(), "not swept");
            }
        }
    }

    async fn sweep_once(
        &self,
        missing: &mut BTreeMap<Owner, Instant>,
        patience: Duration,
    ) -> Result<(), Error> {
        let (reserved, published) = self.owners().await?;
        let mut ours = self.repositories().await?;
        ours.retain(repository::is_deployment);
        let names: Vec<String> = ours.iter().map(key).collect();
        let open = self.memory.open(&names);
        let lost = reserved.into_iter().filter(|(_, id)| !open.contains(id));
        let mut lost: BTreeSet<Owner> = lost.collect();
        lost.extend(self.deleted(published, &names).await?);
        missing.retain(|owner, _| lost.contains(owner));
        for owner in &lost {
            missing.entry(owner.clone()).or_insert_with(Instant::now);
        }
        let mut needed = BTreeSet::new();
        let mut due = Vec::new();
        for (owner, since) in &*missing {
            let homes = self.homes(&owner.1, &names);
            let known = self
                .memory
                .since(&homes)
                .is_some_and(|known| known > *since);
            if since.elapsed() >= patience && known {
                needed.extend(homes);
                due.push(owner.clone());
            }
        }
        if due.is_empty() {
            return Ok(());
        }
        let Ok(_alone) = tokio::time::timeout(ALONE, self.flight.clone().write_owned()).await
        else {
            return Ok(()); // next time
        };
        let (mut still, published) = self.owners().await?;
        still.extend(published.into_keys());
        ours.retain(|repository| needed.contains(&key(repository)));
        let Some((open, mut published)) = self.read_git(&ours).await? else {
            return Ok(());
        };
        for owner in due {
            missing.remove(&owner);
            self.memory.forget(&owner.1);
            if !still.contains(&owner) || open.contains(&owner.1) {
                continue;
            }
            match published.remove(&owner.1) {
                Some(published) => self.commit(published, &owner).await?,
                None => self.give_back(&owner).await?,
            }
        }
        Ok(())
    }

    /// Of what was published, what stands nowhere any more and is no variant's: a variant decides about its own.
    async fn deleted(
        &self,
        published: BTreeMap<Owner, String>,
        names: &[String],
    ) -> Result<Vec<Owner>, Error> {
        let text = |v: &Object, at: &str| {
            v.value
                .pointer(at)
                .and_then(Value::as_str)
                .map(ToOwned::to_owned)
        };
        let variants = self.variants().await?;
        let place = |v: &Object| {
            let repo = text(v, "/spec/downstream/repo")?;
            let name = format!("Repository {}/{repo}", v.namespace());
            self.memory
                .place(&name, &text(v, "/spec/downstream/package")?)
        };
        let decided: BTreeSet<String> = variants.iter().filter_map(place).collect();
        let mut gone = Vec::new();
        for (owner, place) in published {
            if let Some((home, false)) = self.memory.stands(&place, names)
                && !decided.contains(&place)
            {
                self.memory.belongs(&owner.1, &home);
                gone.push(owner);
            }
        }
        Ok(gone)
    }

    /// The repositories that say whether a package is open: the one where it was, as far as this program saw it; else all.
    fn homes(&self, id: &str, all: &[String]) -> Vec<String> {
        match self.memory.home(id).filter(|home| all.contains(home)) {
            Some(home) => vec![home],
            None => all.to_vec(),
        }
    }

    /// The ids that are open, and what is published; None where a repository is not in order.
    async fn read_git(
        &self,
        repositories: &[Object],
    ) -> Result<Option<(BTreeSet<String>, Published)>, Error> {
        let mut open = BTreeSet::new();
        let mut published = Published::new();
        for object in repositories {
            let Ok(remote) = self.remote(object).await? else {
                return Ok(None);
            };
            let remote = Arc::new(remote);
            let _turn = self.turns.take(&remote.packages.repository.url).await;
            let there = remote.clone();
            let (standing, all) = blocking(move || {
                let standing = there.packages.standing()?;
                Ok((standing, there.packages.published()?))
            })
            .await?;
            open.extend(repository::ids(&standing));
            for (package, files) in all {
                let id = Kpt::read(&files).map(|kpt| kpt.id).unwrap_or_default();
                let place = (files, package, remote.clone(), object.clone());
                published.insert(id, place);
            }
        }
        Ok(Some((open, published)))
    }

    /// Who has something reserved; and who was published, with its place.
    async fn owners(&self) -> Result<(BTreeSet<Owner>, BTreeMap<Owner, String>), Error> {
        let book = self.book.clone();
        blocking(move || {
            book.with(|store| {
                let reserved = store.leases(&Filter::default())?.into_iter();
                let reserved = reserved.filter(|l| matches!(l.state, State::Reserved { .. }));
                let owners = reserved.map(|l| (l.holder.cluster, l.holder.package));
                let owners = owners.filter(|(_, id)| !id.is_empty()).collect();
                let records = store.packages()?.into_iter();
                let published = records.map(|r| ((r.cluster, r.id), r.path)).collect();
                Ok((owners, published))
            })
        })
        .await
    }

    /// It was published: its addresses are final, and what drafts reserved beside them goes.
    async fn commit(
        &self,
        (files, package, remote, repository): (Files, PackageName, Arc<Remote>, Object),
        (cluster, id): &Owner,
    ) -> Result<(), Error> {
        let site = self.site(repository.namespace()).await?;
        let hands = self.hands(&repository, &remote, &site, Vec::new());
        let (book, world) = (self.book.clone(), self.world.clone());
        let (cluster, id) = (cluster.clone(), id.clone());
        tracing::info!(%package, id, "published: its addresses are committed");
        blocking(move || {
            let kpt = Kpt::read(&files).unwrap_or_default();
            // None of its drafts is open: they were looked for.
            let errors = hands.keep(&package, &files, &kpt, false, &site_of(&site))?;
            if errors.is_empty() {
                // It may have been drafted for another cluster.
                book.with(|store| discard(store, &cluster, &id, &BTreeSet::new(), world.now()))?;
            } else {
                tracing::warn!(%package, "the addresses of a published package cannot be committed");
            }
            Ok(())
        })
        .await
    }

    /// There is neither draft nor version: what it has goes back.
    async fn give_back(&self, (cluster, id): &Owner) -> Result<(), Error> {
        let site = self.pools().await?;
        let (book, world) = (self.book.clone(), self.world.clone());
        let (cluster, id) = (cluster.clone(), id.clone());
        tracing::info!(
            cluster,
            id,
            "the package is gone: its addresses are given back"
        );
        blocking(move || {
            world.fence()?;
            let site = site_of(&site);
            book.with(|store| retire(store, &site, &cluster, &id, world.now()))?;
            Ok(())
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_variant_waits_from_when_it_stopped_to_be_ready() {
        let variant = |value: Value| Object {
            value,
            source: None,
        };
        let ready = |status: &str| json!([{ "type": "Ready", "status": status, "lastTransitionTime": "1970-01-01T00:02:00Z" }]);
        let made = json!({ "creationTimestamp": "1970-01-01T00:01:00Z" });
        let with = |conditions: Value| {
            variant(json!({ "metadata": made, "status": { "conditions": conditions } }))
        };
        assert_eq!(waits_since(&with(ready("True"))), None);
        assert_eq!(waits_since(&with(ready("False"))), Some(120));
        let gates = json!([
            { "type": "Ready", "status": "True", "lastTransitionTime": "1970-01-01T00:02:00Z" },
            { "type": "Specialised", "status": "False", "lastTransitionTime": "1970-01-01T00:03:00Z" },
        ]);
        assert_eq!(
            waits_since(&with(gates)),
            Some(180),
            "a draft behind gates is stuck too"
        );
        assert_eq!(waits_since(&variant(json!({ "metadata": made }))), Some(60));
        let leaves = json!({ "metadata": { "deletionTimestamp": "1970-01-01T00:01:00Z" } });
        assert_eq!(waits_since(&variant(leaves)), None);
    }
}
