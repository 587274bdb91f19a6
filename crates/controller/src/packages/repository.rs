//! A Repository is looked at again and again: who pushed wakes the variants, and what a person drafted is specialised.
//!
//! Easy to get wrong: looking must cost nothing when nobody pushed. One fetch tells; everything else is done only when a
//! ref or the pools changed, and now and then so that reservations of living drafts do not lapse.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kube::Api;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::controller::Action;
use mooring_api::kinds::porch;
use mooring_api::{Condition, Finding, Time};
use mooring_blueprint::Object;
use mooring_package::Kpt;
use mooring_package::revision::Standing;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::conditions::{condition, sentence, timed};
use super::draft::held_since;
use super::remote::Remote;
use super::{PORCH, Role, blocking, key, reference};
use crate::error::{Error, chain};

pub(super) const KIND: &str = "Repository";
/// How long drafts may go without being looked at, though nothing changed.
const RENEW: Duration = Duration::from_mins(5);

/// What was seen of every repository last.
#[derive(Default)]
pub(super) struct Memory {
    looked: Mutex<BTreeMap<String, Looked>>,
    /// Where each package that is or was open was seen last, by its id.
    homes: Mutex<BTreeMap<String, String>>,
}

/// What was seen of one.
#[derive(Clone, Debug)]
pub(super) struct Looked {
    /// Differs when anybody pushed.
    refs: String,
    /// Differs when anybody pushed, or a pool or cluster changed.
    all: String,
    /// When drafts were specialised last.
    renewed: Instant,
    /// When it was seen.
    at: Instant,
    /// The ids of packages with a draft or a proposal.
    open: BTreeSet<String>,
    /// What the places of its packages begin with, in the book.
    root: String,
    /// The places of everything that is open or published in it; None where its deployment branch is absent, which says
    /// nothing about anybody.
    places: Option<BTreeSet<String>>,
    /// Since when a draft that a person pushed cannot be specialised.
    held: Option<Time>,
}

impl Memory {
    fn get(&self, name: &str) -> Option<Looked> {
        lock(&self.looked).get(name).cloned()
    }

    /// Whether it was looked at since the program began.
    pub(super) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Differs when anybody pushed to it; None where it was never seen.
    pub(super) fn refs(&self, name: &str) -> Option<String> {
        self.get(name).map(|looked| looked.refs)
    }

    fn put(&self, name: String, looked: Looked) {
        let mut homes = lock(&self.homes);
        for id in &looked.open {
            homes.insert(id.clone(), name.clone());
        }
        drop(homes);
        lock(&self.looked).insert(name, looked);
    }

    /// The ids that are open in these, by the last look at each.
    pub(super) fn open(&self, names: &[String]) -> BTreeSet<String> {
        let looked = lock(&self.looked);
        let known = names.iter().filter_map(|name| looked.get(name));
        known.flat_map(|l| l.open.iter().cloned()).collect()
    }

    /// Since when a draft of a person waits in one of these.
    pub(super) fn held(&self, names: &[String]) -> Option<Time> {
        let looked = lock(&self.looked);
        let known = names.iter().filter_map(|name| looked.get(name));
        known.filter_map(|l| l.held).min()
    }

    /// Since when all of these are known; None where one was never seen.
    pub(super) fn since(&self, names: &[String]) -> Option<Instant> {
        let looked = lock(&self.looked);
        let mut since = Instant::now();
        for name in names {
            since = since.min(looked.get(name)?.at);
        }
        Some(since)
    }

    /// The repository that a package was open in last, as far as this program saw.
    pub(super) fn home(&self, id: &str) -> Option<String> {
        lock(&self.homes).get(id).cloned()
    }

    /// The repository of a place, and whether anything is there; None for a place in none of these, or where one of them
    /// cannot say. Two repositories may be branches of one: then either may have it.
    pub(super) fn stands(&self, place: &str, names: &[String]) -> Option<(String, bool)> {
        let looked = lock(&self.looked);
        let known = names
            .iter()
            .filter_map(|name| Some((name, looked.get(name)?)));
        let around: Vec<_> = known.filter(|(_, l)| place.starts_with(&l.root)).collect();
        let (name, _) = around.first()?;
        let mut stands = false;
        for (_, looked) in &around {
            stands |= looked.places.as_ref()?.contains(place);
        }
        Some(((*name).clone(), stands))
    }

    /// The place of a package in a repository, where that was seen.
    pub(super) fn place(&self, name: &str, package: &str) -> Option<String> {
        Some(format!("{}{package}", self.get(name)?.root))
    }

    /// A package is looked for in this repository.
    pub(super) fn belongs(&self, id: &str, name: &str) {
        lock(&self.homes).insert(id.to_owned(), name.to_owned());
    }

    /// A package that nobody asks for any more.
    pub(super) fn forget(&self, id: &str) {
        lock(&self.homes).remove(id);
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One look.
pub(super) async fn reconcile(object: Object, role: Arc<Role>) -> Action {
    let work = async {
        let outcome = pass(&object, &role).await;
        if let Err(error) = &outcome
            && !matches!(error, Error::NotLeader)
        {
            let said = condition("RepositoryReady", false, error.reason(), chain(error));
            if let Err(other) = report_unread(&object, said, &role).await {
                tracing::warn!(error = chain(&other), "the status is not written");
            }
        }
        outcome
    };
    role.world.pass(KIND, &key(&object), work).await
}

/// Whether packages of this repository are for clusters.
pub(super) fn is_deployment(repository: &Object) -> bool {
    repository.value.pointer("/spec/deployment") == Some(&Value::Bool(true))
}

async fn pass(object: &Object, role: &Arc<Role>) -> Result<Option<Duration>, Error> {
    let poll = role.world.args.packages.git_poll;
    if object
        .value
        .pointer("/metadata/deletionTimestamp")
        .is_some()
        || !role.is_used(object).await?
    {
        return Ok(None);
    }
    let remote = match role.remote(object).await? {
        Ok(remote) => Arc::new(remote),
        Err(finding) => {
            let said = condition(
                "RepositoryReady",
                false,
                finding.code.as_str(),
                sentence(&finding),
            );
            report_unread(object, said, role).await?;
            return Ok(None);
        }
    };
    // Before Git is read: see `keep`.
    let variants = role.variants().await?;
    let site = role.site(object.namespace()).await?;
    let at = Instant::now();
    let standing = {
        let _turn = role.turns.take(&remote.packages.repository.url).await;
        let remote = remote.clone();
        blocking(move || Ok(remote.packages.standing()?)).await?
    };
    let name = key(object);
    let before = role.memory.get(&name);
    let mut all = digest(&standing, object, &site);
    all.push_str(&role.beside(object, &standing).await?);
    let pushed = before.as_ref().is_none_or(|b| b.refs != standing.digest);
    let changed = before
        .as_ref()
        .is_none_or(|b| b.all != all || b.renewed.elapsed() > RENEW);
    if pushed && before.is_some() {
        role.wake_repository(object).await?;
    }
    // Also at the first look: a package may have read something older.
    if pushed && is_deployment(object) {
        role.wake_linked(object.namespace());
    }
    let mut looked = Looked {
        refs: standing.digest.clone(),
        all,
        renewed: before.as_ref().map_or(at, |b| b.renewed),
        at,
        open: ids(&standing),
        root: place(&remote, ""),
        places: places(&remote, &standing),
        held: held_since(&standing.open),
    };
    let mut findings: Vec<Finding> = Vec::new();
    let mut kept = None;
    let ours = is_deployment(object) && role.is_ours(object).await;
    if ours {
        kept = role
            .keep_published(object, &remote, &standing, &variants, &site)
            .await?;
    }
    if changed && ours {
        findings = role.drafts(object, &remote, standing, site).await?;
        looked.renewed = at;
    }
    role.memory.put(name, looked);
    role.found(KIND, &findings);
    for finding in &findings {
        role.world
            .tell(
                &reference(object),
                true,
                finding.code.as_str(),
                &sentence(finding),
            )
            .await;
    }
    let said = condition(
        "RepositoryReady",
        true,
        "Ready",
        "the repository can be read",
    );
    report(object, [said].into_iter().chain(kept).collect(), role).await?;
    Ok(Some(poll))
}

/// What the book calls a package of a repository.
fn place(remote: &Remote, package: &str) -> String {
    remote
        .packages
        .repository
        .place(package)
        .display()
        .to_string()
}

fn places(remote: &Remote, standing: &Standing) -> Option<BTreeSet<String>> {
    let open = standing.open.iter().map(|(package, _)| package);
    let all = open.chain(standing.deployed.as_ref()?);
    let places = all.map(|package| place(remote, package.as_str()));
    Some(places.collect())
}

/// The ids of packages that are open.
pub(super) fn ids(standing: &Standing) -> BTreeSet<String> {
    let open = standing
        .open
        .iter()
        .filter_map(|(_, open)| Kpt::read(&open.files));
    open.map(|kpt| kpt.id).filter(|id| !id.is_empty()).collect()
}

/// Differs when anybody pushed, or a pool, a cluster or what the repository says of itself changed.
fn digest(standing: &Standing, repository: &Object, site: &[Object]) -> String {
    let mut all = Sha256::new();
    all.update(&standing.digest);
    for object in site.iter().chain([repository]) {
        all.update(object.value["metadata"]["labels"].to_string());
        all.update(object.value["metadata"]["annotations"].to_string());
        all.update(object.value["spec"].to_string());
    }
    super::hex(&all.finalize()[..16])
}

impl Role {
    /// Whether anything of ours is in this repository.
    async fn is_used(&self, repository: &Object) -> Result<bool, Error> {
        if is_deployment(repository) {
            return Ok(true);
        }
        let name = repository.name();
        let uses = |o: &Object| {
            let at = |at: &str| o.value.pointer(at).and_then(Value::as_str) == Some(name);
            o.namespace() == repository.namespace()
                && (at("/spec/upstream/repo") || at("/spec/downstream/repo"))
        };
        Ok(self.variants().await?.iter().any(uses))
    }
}

/// Git cannot be read: what was said of its packages stays.
async fn report_unread(object: &Object, said: Condition, role: &Role) -> Result<(), Error> {
    let (reason, message) = (said.reason.clone(), said.message.clone());
    let others = object.value["status"]["conditions"].as_array();
    let others = others.into_iter().flatten();
    let others = others.filter_map(|c| serde_json::from_value::<Condition>(c.clone()).ok());
    let others: Vec<Condition> = others.filter(|c| c.kind != said.kind).collect();
    if report(object, [said].into_iter().chain(others).collect(), role).await? {
        role.world
            .tell(&reference(object), true, &reason, &message)
            .await;
    }
    Ok(())
}

/// Writes the status; whether it is another one.
async fn report(object: &Object, said: Vec<Condition>, role: &Role) -> Result<bool, Error> {
    // Where Porch serves repositories, their status is Porch's.
    if !role.is_ours(object).await {
        return Ok(false);
    }
    let before = object.value.get("status").cloned().unwrap_or_default();
    let generation = object
        .value
        .pointer("/metadata/generation")
        .and_then(Value::as_i64);
    let status = json!({ "conditions": timed(&before, said, generation, role.world.now()) });
    if before == status {
        return Ok(false);
    }
    let resource = ApiResource::erase::<porch::Repository>(&());
    let client = role.world.client.clone();
    let api: Api<DynamicObject> = Api::namespaced_with(client, object.namespace(), &resource);
    let object_status = json!({
        "apiVersion": PORCH, "kind": KIND,
        "metadata": { "name": object.name(), "namespace": object.namespace() },
        "status": status,
    });
    role.world
        .apply_status(
            &api,
            object.name(),
            &object_status,
            "write the status of a repository",
        )
        .await?;
    role.world.metrics.wrote(KIND);
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(repositories: &[(&str, &str, Option<&[&str]>)]) -> (Memory, Vec<String>) {
        let memory = Memory::default();
        for (name, root, places) in repositories {
            let places = places.map(|all| all.iter().map(|p| format!("{root}{p}")).collect());
            let looked = Looked {
                refs: String::new(),
                all: String::new(),
                renewed: Instant::now(),
                at: Instant::now(),
                open: BTreeSet::new(),
                root: (*root).to_owned(),
                places,
                held: None,
            };
            memory.put((*name).to_owned(), looked);
        }
        let names = repositories.iter().map(|(name, ..)| (*name).to_owned());
        (memory, names.collect())
    }

    #[test]
    fn a_package_stands_where_its_repository_has_it() {
        let (memory, names) = memory(&[
            ("edge", "git:a#", Some(&["upf"])),
            ("core", "git:b#", Some(&[])),
        ]);
        let stands = |place: &str| memory.stands(place, &names);
        assert_eq!(stands("git:a#upf"), Some(("edge".to_owned(), true)));
        assert_eq!(stands("git:b#upf"), Some(("core".to_owned(), false)));
        assert_eq!(stands("/a/directory/upf"), None, "no repository of ours");
    }

    #[test]
    fn a_repository_without_its_branch_says_nothing() {
        let (memory, names) = memory(&[("edge", "git:a#", None)]);
        assert_eq!(memory.stands("git:a#upf", &names), None);
    }

    #[test]
    fn of_two_branches_of_one_repository_either_may_have_it() {
        let both = [
            ("edge", "git:a#", Some(&[][..])),
            ("core", "git:a#", Some(&["upf"][..])),
        ];
        let (memory, names) = memory(&both);
        assert_eq!(
            memory.stands("git:a#upf", &names),
            Some(("edge".to_owned(), true))
        );
    }
}
