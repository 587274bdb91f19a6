//! The sync role, on a workload cluster: what stands in a directory in Git is applied here, and what left it is removed.
//!
//! ```text
//!  gather: Secret, git fetch, inventory, kinds ─► check: settings, source ─► decide: resolve, plan
//!     ─► apply: remember, apply, remove, remember ─► report: status, Event ─► commit: .status/ back to the branch
//! ```
//!
//! Woken by an edit of the RootSync and by its period. Between two commits only drift is looked for: one list per kind by our
//! label, and what changed or went is applied again. Everything is applied again every few minutes, and after a start.
//!
//! Easy to get wrong: our own write of the status wakes us too. A pass that nobody edited for and that is not due yet does
//! nothing. And when the source cannot be read, the last good one is kept up from memory.

mod apply;
mod commit;
mod decide;
mod gather;
mod inventory;
mod object;
mod report;
mod settings;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use futures::StreamExt as _;
use kube::api::{ListParams, Patch, PatchParams};
use kube::runtime::controller::Action;
use kube::runtime::watcher::{self, watcher};
use kube::runtime::{Controller, WatchStreamExt as _, reflector};
use kube::{Api, Resource as _, ResourceExt as _};
use mooring_api::Status;
use mooring_api::kinds::configsync::{RootSync, RootSyncStatus};
use mooring_package::git::Git;
use serde_json::json;

use crate::error::Error;
use crate::living::{Living, Need};
use crate::told::{Gone, told};
use crate::world::World;
use apply::Record;
use decide::{Plan, Whose};
use gather::{Snapshot, Unreadable};
use object::{Key, Kind, Kinds, Written};
use report::{Committed, Pass, Synced, Unread};
use settings::Settings;

/// Everything is applied again after this long, drift or not.
const RESYNC: Duration = Duration::from_mins(5);
/// A push that was refused is tried again after this long.
const REFUSED: Duration = Duration::from_mins(5);
/// How long a replica that does not lead waits before it looks again.
const FOLLOW: Duration = Duration::from_secs(1);
/// The kind, as metrics know it.
const KIND: &str = "RootSync";

/// The definition of RootSync.
const DEFINITION: &str = "rootsyncs.configsync.gke.io";
/// Fields that the definition of Config Sync does not have; each has an annotation twin.
const NEEDS: &[Need] = &[Need {
    definition: DEFINITION,
    fields: &[
        "spec.pollInterval",
        "spec.defaultNamespace",
        "spec.commitStatus",
        "spec.cluster",
        "spec.allowEmpty",
        "spec.conflicts",
        "status.sync.objects",
    ],
}];

/// What is known between two passes. Nothing here must survive the process.
#[derive(Default)]
struct Memory {
    /// What the object looked like when it was last acted upon.
    seen: Option<Seen>,
    /// When the next pass is due.
    due: Option<Instant>,
    /// The last commit without a mistake in it.
    good: Option<Good>,
    /// The version of every object as we left it.
    versions: BTreeMap<Key, String>,
    /// When everything was last applied without a failure.
    full: Option<Instant>,
    /// The status as we wrote it: what a foreign definition drops from it is not missed.
    status: Option<RootSyncStatus>,
    /// A refused push, and when.
    refused: Option<(Instant, Committed)>,
}

/// What of a RootSync makes a pass due at once.
#[derive(PartialEq)]
struct Seen {
    uid: Option<String>,
    generation: Option<i64>,
    annotations: BTreeMap<String, String>,
    labels: BTreeMap<String, String>,
}

/// A commit without a mistake in it.
#[derive(Clone)]
struct Good {
    commit: String,
    /// The first commit that we saw with this content: later ones may only have added our own status.
    since: String,
    content: String,
    written: Arc<Vec<Written>>,
}

/// The role.
struct Role {
    world: World,
    living: Living,
    memory: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<Memory>>>>,
}

/// Runs until the end.
pub(crate) async fn run(world: World) -> Result<()> {
    world.readiness.set("sync", false);
    let api: Api<RootSync> = Api::all(world.client.clone());
    let looked = async {
        loop {
            match look(&world, &api).await {
                Ok(living) => return living,
                Err(error) => {
                    tracing::warn!(error = crate::error::chain(&error), "cannot begin yet");
                    tokio::time::sleep(FOLLOW).await;
                }
            }
        }
    };
    let living = tokio::select! {
        living = looked => living,
        () = world.shutdown.clone().wait() => return Ok(()),
    };
    world.readiness.set("sync", true);
    let shutdown = world.shutdown.clone();
    let role = Arc::new(Role {
        world,
        living,
        memory: Mutex::default(),
    });
    let reconcile = |root: Arc<RootSync>, role: Arc<Role>| async move {
        Ok::<_, std::convert::Infallible>(role.reconcile(&root).await)
    };
    let (store, writer) = reflector::store();
    let events = watcher(api, watcher::Config::default())
        .default_backoff()
        .reflect(writer);
    let passes = Controller::for_stream(told(events, store.clone(), Gone::Not), store)
        .graceful_shutdown_on(shutdown.wait())
        .run(reconcile, |_, error, _| match *error {}, role.clone())
        .for_each(|_| std::future::ready(()));
    let others = async {
        role.living.other_comes(&role.world).await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = passes => {}
        () = others => {}
    }
    Ok(())
}

/// Whether RootSync objects are served, and who else is here.
async fn look(world: &World, api: &Api<RootSync>) -> Result<Living, Error> {
    let listed = api.list_metadata(&ListParams::default().limit(1)).await;
    listed.map_err(Error::api("list RootSync objects"))?;
    Living::look(world, NEEDS).await
}

impl Role {
    fn memory(&self, name: &str) -> Arc<tokio::sync::Mutex<Memory>> {
        let mut all = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(name.to_owned()).or_default().clone()
    }

    async fn reconcile(&self, root: &RootSync) -> Action {
        if !self.world.leadership.holds() {
            return Action::requeue(FOLLOW);
        }
        if root.meta().deletion_timestamp.is_some() {
            return Action::await_change();
        }
        self.living.notice(root.meta());
        if !self.living.is_ours(root.meta()) {
            self.living
                .tell_ignored(&self.world, &root.object_ref(&()))
                .await;
            return Action::await_change();
        }
        let on = root.object_ref(&());
        self.living.tell_missing(&self.world, DEFINITION, &on).await;
        let namespace = root.namespace().unwrap_or_default();
        let name = format!("{namespace}/{}", root.name_any());
        let memory = self.memory(&name);
        let mut memory = memory.lock().await;
        let seen = Seen {
            uid: root.uid(),
            generation: root.meta().generation,
            annotations: root.annotations().clone(),
            labels: root.labels().clone(),
        };
        if memory
            .seen
            .as_ref()
            .is_some_and(|before| before.uid != seen.uid)
        {
            *memory = Memory::default();
        }
        let now = Instant::now();
        if let Some(due) = memory
            .due
            .filter(|due| *due > now && memory.seen.as_ref() == Some(&seen))
        {
            return Action::requeue(due - now);
        }
        if memory.seen.as_ref() != Some(&seen) {
            // What was asked changed: a new try for everything.
            memory.full = None;
            memory.refused = None;
        }
        memory.seen = Some(seen);
        let work = async {
            let outcome = self.pass(root, &namespace, &name, &mut memory).await;
            let again = outcome.as_ref().ok().copied().flatten();
            memory.due = again.map(|wait| Instant::now() + wait);
            outcome
        };
        self.world.pass(KIND, &name, work).await
    }

    /// One pass; says when the next is due.
    async fn pass(
        &self,
        root: &RootSync,
        namespace: &str,
        name: &str,
        memory: &mut Memory,
    ) -> Result<Option<Duration>, Error> {
        let settings = match settings::check(root, self.world.args.cluster.as_deref()) {
            Ok(settings) => settings,
            Err(refused) => {
                let pass = Pass {
                    refused,
                    ..Pass::default()
                };
                self.report(root, &pass, None, memory).await?;
                return Ok(None);
            }
        };
        let git = Git::new(self.world.args.git_cache(), self.world.now());
        let (snapshot, read) = self.read(&git, namespace, &settings).await?;
        let mut pass = Pass {
            commit: snapshot
                .as_ref()
                .map(|s| s.commit.to_string())
                .unwrap_or_default(),
            ..Pass::default()
        };
        match read {
            Ok(mut good) => {
                if let Some(before) = memory.good.as_ref().filter(|b| b.content == good.content) {
                    good.since.clone_from(&before.since);
                }
                let planned = self.sync(name, &settings, good.clone(), memory).await?;
                pass.synced = planned.0;
                pass.unread = planned.1;
                if pass.unread.is_none() {
                    memory.good = Some(good);
                }
            }
            Err(unread) => pass.unread = Some(unread),
        }
        if pass.unread.is_some()
            && let Some(good) = memory.good.clone()
        {
            pass.synced = self.sync(name, &settings, good, memory).await?.0;
        }
        if settings.commit_status {
            pass.committed = self.commit(git, snapshot, &settings, &pass, memory).await?;
        }
        self.report(root, &pass, Some(&settings), memory).await?;
        Ok(Some(settings.period))
    }

    /// Gathers and checks the source.
    async fn read(
        &self,
        git: &Git,
        namespace: &str,
        settings: &Settings,
    ) -> Result<(Option<Snapshot>, Result<Good, Unread>), Error> {
        let opened = match gather::opened(&self.world, namespace, settings).await? {
            Ok(opened) => opened,
            Err(unreadable) => return Ok((None, Err(unread(unreadable)))),
        };
        let (git, settings) = (git.clone(), settings.clone());
        let fetched = tokio::task::spawn_blocking(move || gather::fetch(&git, &settings, opened));
        let fetched = fetched
            .await
            .map_err(|e| Error::Other(format!("git panicked: {e}")))?;
        let snapshot = match fetched {
            Ok(snapshot) => snapshot,
            Err(unreadable) => return Ok((None, Err(unread(unreadable)))),
        };
        let read = match source::read(&snapshot.files) {
            Ok(written) => Ok(Good {
                commit: snapshot.commit.to_string(),
                since: snapshot.commit.to_string(),
                content: source::content(&snapshot.files),
                written: Arc::new(written),
            }),
            Err(findings) => Err(mistakes(findings)),
        };
        Ok((Some(snapshot), read))
    }

    /// Decides and applies one good source. What is found out only here about the source is returned beside.
    async fn sync(
        &self,
        name: &str,
        settings: &Settings,
        good: Good,
        memory: &mut Memory,
    ) -> Result<(Option<Synced>, Option<Unread>), Error> {
        let (namespace, own) = name.split_once('/').unwrap_or(("", name));
        let identity = source::identity(namespace, own);
        let whose = Whose {
            identity: &identity,
            name,
            force: settings.force,
            allow_empty: settings.allow_empty,
        };
        let record = format!("moor-sync-{identity}");
        let (inventory, version) = match gather::inventory(&self.world, &record).await? {
            Ok(found) => found,
            Err(unreadable) => return Ok((None, Some(unread(unreadable)))),
        };
        let mut record = Record {
            name: record,
            inventory,
            version,
        };
        let promised = decide::promised(&good.written);
        let wanted: BTreeSet<Kind> = good
            .written
            .iter()
            .map(|written| written.kind.clone())
            .collect();
        let mut kinds: Kinds = gather::served(&self.world.client, &wanted).await?;
        kinds.extend(promised);
        let resolved = match decide::resolve(&good.written, &kinds, &settings.namespace) {
            Ok(resolved) => resolved,
            Err(findings) => return Ok((None, Some(mistakes(findings)))),
        };
        let surely = |key: &Key| record.inventory.get(key).is_some_and(|entry| entry.applied);
        let asked = resolved.wanted.iter().filter(|wanted| !surely(&wanted.key));
        let asked = asked.map(|w| (w.key.clone(), w.version.clone(), w.served.clone()));
        let live = gather::live(&self.world.client, asked.collect()).await?;
        let plan = match decide::plan(&resolved, &record.inventory, &live, whose) {
            Ok(plan) => plan,
            Err(finding) => return Ok((None, Some(mistakes(vec![*finding])))),
        };
        let same = memory
            .good
            .as_ref()
            .is_some_and(|before| before.content == good.content);
        let recent = memory.full.is_some_and(|full| full.elapsed() < RESYNC);
        let only = if same && recent {
            let seen = gather::versions(&self.world.client, &plan.steps, &identity).await?;
            Some(decide::drifted(&plan.steps, &memory.versions, &seen))
        } else {
            None
        };
        let done = apply::apply(&self.world, &mut record, &plan, only.as_ref(), whose).await?;
        if only.is_none() {
            memory.versions.clear();
        }
        memory.versions.extend(done.versions.clone());
        if !done.failures.is_empty() {
            memory.full = None;
        } else if only.is_none() {
            memory.full = Some(Instant::now());
        }
        Ok((Some(synced(good, &plan, done, resolved)), None))
    }

    async fn commit(
        &self,
        git: Git,
        snapshot: Option<Snapshot>,
        settings: &Settings,
        pass: &Pass,
        memory: &mut Memory,
    ) -> Result<Option<Committed>, Error> {
        // Where Git cannot be read it cannot be written either; the next pass says what became of it.
        let file = report::file(pass, &settings.cluster, &self.now());
        let (Some(snapshot), Some(file)) = (snapshot, file) else {
            let message = "Git cannot be reached, or nothing was applied yet.".to_owned();
            let reason = "Waiting";
            return Ok(Some(Committed::No { reason, message }));
        };
        if let Some((at, refused)) = &memory.refused
            && at.elapsed() < REFUSED
        {
            return Ok(Some(refused.clone()));
        }
        self.world.fence()?;
        let settings = settings.clone();
        let pushed =
            tokio::task::spawn_blocking(move || commit::commit(&git, &snapshot, &settings, &file));
        let pushed = pushed
            .await
            .map_err(|e| Error::Other(format!("git panicked: {e}")))?;
        memory.refused = None;
        match pushed {
            Ok(Committed::Yes) => Ok(Some(Committed::Yes)),
            Ok(refused) => {
                memory.refused = Some((Instant::now(), refused.clone()));
                Ok(Some(refused))
            }
            Err(error) => Ok(Some(Committed::No {
                reason: error.reason(),
                message: format!("{error}; tried again at the next period"),
            })),
        }
    }

    fn now(&self) -> String {
        let seconds = i64::try_from(self.world.now().0).unwrap_or(0);
        jiff::Timestamp::from_second(seconds)
            .map(|t| t.to_string())
            .unwrap_or_default()
    }

    /// Writes the status where it differs, and an Event where Synced does.
    async fn report(
        &self,
        root: &RootSync,
        pass: &Pass,
        settings: Option<&Settings>,
        memory: &mut Memory,
    ) -> Result<(), Error> {
        let known = memory.status.clone().or_else(|| root.status.clone());
        let before = known.unwrap_or_default();
        let git = settings.map(report::git_status);
        let after = report::status(&before, pass, git, root.meta().generation, &self.now());
        if after == before {
            return Ok(());
        }
        let namespace = root.namespace().unwrap_or_default();
        let api: Api<RootSync> = Api::namespaced(self.world.client.clone(), &namespace);
        let name = root.name_any();
        let body = json!({
            "apiVersion": RootSync::api_version(&()), "kind": RootSync::kind(&()),
            "metadata": { "name": name, "namespace": namespace },
            "status": after,
        });
        let act = "write the status of a RootSync";
        if self.living.schemas.missing(DEFINITION).next().is_none() {
            self.world.apply_status(&api, &name, &body, act).await?;
        } else {
            // A server-side apply with a field that the definition lacks is refused whole; a merge only drops it.
            self.world.fence()?;
            let params = PatchParams {
                field_manager: Some(self.world.manager().to_owned()),
                ..PatchParams::default()
            };
            let merged = api.patch_status(&name, &params, &Patch::Merge(&body)).await;
            merged.map_err(Error::api(act))?;
        }
        memory.status = Some(after.clone());
        let (old, new) = (synced_condition(&before), synced_condition(&after));
        if let Some((holds, reason, message)) = new
            && old.is_none_or(|(before, why, _)| (before, why) != (holds, reason))
        {
            self.world
                .tell(&root.object_ref(&()), !holds, reason, message)
                .await;
        }
        Ok(())
    }
}

fn synced_condition(status: &RootSyncStatus) -> Option<(bool, &str, &str)> {
    let found = status.conditions.iter().find(|c| c.kind == "Synced")?;
    Some((
        found.status == Status::True,
        found.reason.as_str(),
        found.message.as_str(),
    ))
}

fn synced(good: Good, plan: &Plan, done: apply::Done, resolved: decide::Resolved) -> Synced {
    let known = resolved
        .wanted
        .into_iter()
        .map(|w| (w.key, w.version, w.at.file));
    let unknown = resolved
        .unknown
        .into_iter()
        .map(|f| (f.key, f.version, f.file));
    let kept: BTreeSet<&Key> = done
        .inventory
        .entries
        .iter()
        .map(|entry| &entry.key)
        .collect();
    let leaving = plan
        .leaving
        .iter()
        .filter(|entry| kept.contains(&entry.key));
    let leaving = leaving.map(|entry| (entry.key.clone(), entry.version.clone()));
    Synced {
        commit: good.commit,
        since: good.since,
        content: good.content,
        wanted: known.chain(unknown).collect(),
        leaving: leaving.collect(),
        failures: done.failures,
        going: done.going,
    }
}

fn unread(unreadable: Unreadable) -> Unread {
    Unread {
        reason: unreadable.reason.to_owned(),
        transient: unreadable.transient,
        findings: vec![unreadable.finding],
    }
}

/// What is wrong with a commit: only another one helps.
fn mistakes(findings: Vec<mooring_api::Finding>) -> Unread {
    let reason = findings.first().map(|finding| finding.code.to_string());
    Unread {
        reason: reason.unwrap_or_default(),
        transient: false,
        findings,
    }
}
