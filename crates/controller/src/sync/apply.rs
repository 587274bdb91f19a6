//! Acts on a plan: remembers first, applies in order, removes last.
//!
//! ```text
//!  remember(ahead) ─► apply, rank by rank ─► wait for CRDs ─► … ─► remove what left ─► remember(what is)
//! ```
//!
//! A failed object does not stop the others. Nothing is removed unless everything was applied: what left may be what a
//! failed object still needs. An API server that does not answer ends the pass; the next one begins again from the inventory.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use kube::core::response::Status;
use mooring_api::{Code, Finding, annotation};
use serde_json::json;

use super::decide::{Failure, Plan, Step, Whose};
use super::gather::{self, AT_ONCE, INVENTORY};
use super::inventory::{Entry, Inventory};
use super::object::{Key, Kind, Served, api_version, rank};
use crate::error::Error;
use crate::world::World;

/// How long a CRD may take until its kind is served.
const ESTABLISHED: Duration = Duration::from_secs(30);
/// Between two looks at it.
const LOOK: Duration = Duration::from_millis(200);
/// The mark of other appliers for what stays in the cluster when it leaves Git.
const DETACH: (&str, &str) = ("client.lifecycle.config.k8s.io/deletion", "detach");

/// What was done.
#[derive(Clone, Debug, Default)]
pub(crate) struct Done {
    /// The versions of what was applied in this pass.
    pub(crate) versions: BTreeMap<Key, String>,
    pub(crate) failures: Vec<Failure>,
    /// What was deleted and is still there, because somebody's finalizer holds it.
    pub(crate) going: BTreeSet<Key>,
    pub(crate) inventory: Inventory,
}

/// The ConfigMap of an inventory as it was read.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) name: String,
    pub(crate) inventory: Inventory,
    pub(crate) version: Option<String>,
}

/// Does it. With `only`, what is not in it is as it should be already.
pub(crate) async fn apply(
    world: &World,
    record: &mut Record,
    plan: &Plan,
    only: Option<&BTreeSet<Key>>,
    whose: Whose<'_>,
) -> Result<Done, Error> {
    remember(world, record, &plan.ahead, whose).await?;
    let mut done = Done {
        failures: plan.failures.clone(),
        ..Done::default()
    };
    for steps in &plan.steps {
        let wanted = steps
            .iter()
            .filter(|step| only.is_none_or(|only| only.contains(&step.key)));
        let tries: Vec<_> = wanted.map(|step| try_step(world, step).boxed()).collect();
        let tries = futures::stream::iter(tries).buffered(AT_ONCE);
        let tried: Vec<_> = tries.try_collect().await?;
        let mut established = Vec::new();
        for (step, tried) in tried {
            match tried {
                Ok(version) => {
                    done.versions.insert(step.key.clone(), version);
                    if rank(&step.key.group, &step.key.kind) == 1 {
                        established.push(step);
                    }
                }
                Err(finding) => done.failures.push(Failure {
                    key: step.key.clone(),
                    version: step.version.clone(),
                    file: step.file.clone(),
                    finding: *finding,
                }),
            }
        }
        for step in established {
            wait_established(world, step).await?;
        }
    }
    let mut left = plan.leaving.clone();
    if done.failures.is_empty() {
        left = remove(world, &plan.leaving, whose, &mut done).await?;
    }
    let failed: BTreeSet<&Key> = done.failures.iter().map(|failure| &failure.key).collect();
    let gone: BTreeSet<&Key> = plan
        .leaving
        .iter()
        .map(|entry| &entry.key)
        .filter(|key| !left.iter().any(|entry| entry.key == **key))
        .collect();
    let stays = plan
        .ahead
        .entries
        .iter()
        .filter(|entry| !gone.contains(&entry.key));
    let entries = stays.cloned().map(|mut entry| {
        entry.applied |= !failed.contains(&entry.key) && !left.iter().any(|l| l.key == entry.key);
        entry
    });
    let inventory = Inventory::new(entries.collect());
    remember(world, record, &inventory, whose).await?;
    done.inventory = inventory;
    Ok(done)
}

/// Writes the inventory where it differs. Somebody else's write in between is a conflict, and a new pass.
async fn remember(
    world: &World,
    record: &mut Record,
    inventory: &Inventory,
    whose: Whose<'_>,
) -> Result<(), Error> {
    if record.inventory == *inventory {
        return Ok(());
    }
    let api: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.args.namespace);
    let mut map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": record.name, "namespace": world.args.namespace,
            "labels": { "app.kubernetes.io/managed-by": world.manager() },
            "annotations": { annotation::SYNCED_BY: whose.name },
        },
        "data": { INVENTORY: inventory.text() },
    });
    if let Some(version) = &record.version {
        map["metadata"]["resourceVersion"] = version.as_str().into();
    }
    let written = world
        .apply(&api, &record.name, &map, "write the inventory")
        .await?;
    record.version = written.metadata.resource_version;
    record.inventory = inventory.clone();
    Ok(())
}

type Tried<'s> = (&'s Step, Result<String, Box<Finding>>);

async fn try_step<'s>(world: &World, step: &'s Step) -> Result<Tried<'s>, Error> {
    world.fence()?;
    let api = gather::api(&world.client, &step.key, &step.version, &step.served);
    let mut params = PatchParams::apply(world.manager());
    params.force = step.force;
    match api
        .patch(&step.key.name, &params, &Patch::Apply(&step.body))
        .await
    {
        Ok(applied) => Ok((step, Ok(gather::version(&applied.metadata)))),
        Err(kube::Error::Api(status)) => {
            let finding = refused("apply", &step.key, &step.version, &status);
            Ok((step, Err(Box::new(finding))))
        }
        Err(error) => Err(Error::api("apply what stands in Git")(error)),
    }
}

/// What the API server says, for a person.
fn refused(act: &str, key: &Key, version: &str, status: &Status) -> Finding {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let conflicts: Vec<String> = causes
        .filter(|cause| cause.reason == "FieldManagerConflict")
        .map(|cause| {
            let who = cause.message.trim_start_matches("conflict with ");
            format!("{} is set by {who}", cause.field.trim_start_matches('.'))
        })
        .collect();
    let finding = if conflicts.is_empty() {
        let help = match status.code {
            403 => {
                "Allow the account of the sync role to do it, or take the object out of the directory."
            }
            404 => "Check that its namespace exists, or put the Namespace into the directory.",
            _ => "Correct the object as the API server says.",
        };
        let message = format!("the API server refuses to {act} it: {}", status.message);
        Finding::error(Code::ApplyRefused, message).help(help)
    } else {
        let message = format!("somebody else was first: {}", conflicts.join("; "));
        Finding::error(Code::FieldConflict, message).help(
            "Take the fields out of the file, or set spec.conflicts: Force (annotation mooring.dev/conflicts) to let Git win.",
        )
    };
    finding.on(&key.reference(version))
}

/// Waits until a CRD's kind is served, so that its objects, which come next, are understood. Too long is not an error: they say
/// it themselves.
async fn wait_established(world: &World, step: &Step) -> Result<(), Error> {
    let api = gather::api(&world.client, &step.key, &step.version, &step.served);
    let look = async {
        loop {
            let crd = api
                .get(&step.key.name)
                .await
                .map_err(Error::api("look at a CRD"))?;
            let conditions = crd.data["status"]["conditions"].as_array();
            let established =
                |c: &serde_json::Value| c["type"] == "Established" && c["status"] == "True";
            if conditions.is_some_and(|all| all.iter().any(established)) {
                return Ok(());
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::time::timeout(ESTABLISHED, look)
        .await
        .unwrap_or(Ok(()))
}

/// Removes what left; gives what is still there.
async fn remove(
    world: &World,
    leaving: &[Entry],
    whose: Whose<'_>,
    done: &mut Done,
) -> Result<Vec<Entry>, Error> {
    if leaving.is_empty() {
        return Ok(Vec::new());
    }
    let kinds: BTreeSet<Kind> = leaving
        .iter()
        .map(|entry| Kind {
            group: entry.key.group.clone(),
            version: entry.version.clone(),
            kind: entry.key.kind.clone(),
        })
        .collect();
    let mut served = gather::served(&world.client, &kinds).await?;
    let mut left = Vec::new();
    for entry in leaving {
        let kind = Kind {
            group: entry.key.group.clone(),
            version: entry.version.clone(),
            kind: entry.key.kind.clone(),
        };
        let found = match served.get(&kind) {
            Some(found) => Some((kind.version.clone(), found.clone())),
            None => other_version(world, &kind).await?,
        };
        // A kind that nobody serves any more has no objects.
        let Some((version, how)) = found else {
            continue;
        };
        served.insert(
            Kind {
                version: version.clone(),
                ..kind
            },
            how.clone(),
        );
        let api = gather::api(&world.client, &entry.key, &version, &how);
        match remove_one(world, &api, entry, &version, whose).await? {
            Removed::Gone => {}
            Removed::Going => {
                done.going.insert(entry.key.clone());
                left.push(entry.clone());
            }
            Removed::Refused(status) => {
                let finding = refused("remove", &entry.key, &entry.version, &status);
                done.failures.push(Failure {
                    key: entry.key.clone(),
                    version: entry.version.clone(),
                    file: String::new(),
                    finding,
                });
                left.push(entry.clone());
            }
        }
    }
    Ok(left)
}

/// Another version that the cluster serves the kind in.
async fn other_version(world: &World, kind: &Kind) -> Result<Option<(String, Served)>, Error> {
    let groups = world.client.list_api_groups().await;
    let groups = groups
        .map_err(Error::api("ask which kinds are served"))?
        .groups;
    let group = groups.into_iter().find(|group| group.name == kind.group);
    for version in group.into_iter().flat_map(|group| group.versions) {
        let kind = Kind {
            version: version.version.clone(),
            ..kind.clone()
        };
        let served = gather::served(&world.client, &BTreeSet::from([kind.clone()])).await?;
        if let Some(found) = served.get(&kind) {
            return Ok(Some((version.version, found.clone())));
        }
    }
    Ok(None)
}

enum Removed {
    Gone,
    Going,
    Refused(Box<Status>),
}

async fn remove_one(
    world: &World,
    api: &Api<DynamicObject>,
    entry: &Entry,
    version: &str,
    whose: Whose<'_>,
) -> Result<Removed, Error> {
    let name = &entry.key.name;
    let live = match api.get_metadata_opt(name).await {
        Ok(live) => live,
        Err(kube::Error::Api(status)) if status.code == 404 => None,
        Err(kube::Error::Api(status)) => return Ok(Removed::Refused(status)),
        Err(error) => return Err(Error::api("look at what left Git")(error)),
    };
    let Some(live) = live else {
        return Ok(Removed::Gone);
    };
    // What does not carry our mark was never applied by us, or has been taken over.
    if gather::look_at(&live.metadata).label.as_deref() != Some(whose.identity) {
        return Ok(Removed::Gone);
    }
    let annotations = live.metadata.annotations.as_ref();
    let detached = annotations
        .and_then(|all| all.get(DETACH.0))
        .is_some_and(|v| v == DETACH.1);
    if detached {
        return Ok(Removed::Gone);
    }
    world.fence()?;
    let outcome = if entry.adopted {
        // It was there before us: our fields go, the object stays.
        let mut body = json!({
            "apiVersion": api_version(&entry.key.group, version), "kind": entry.key.kind,
            "metadata": { "name": name },
        });
        if !entry.key.namespace.is_empty() {
            body["metadata"]["namespace"] = entry.key.namespace.as_str().into();
        }
        let params = PatchParams::apply(world.manager()).force();
        api.patch(name, &params, &Patch::Apply(&body))
            .await
            .map(|_| Removed::Gone)
    } else if live.metadata.deletion_timestamp.is_some() {
        Ok(Removed::Going)
    } else {
        let preconditions = Preconditions {
            uid: live.metadata.uid.clone(),
            resource_version: None,
        };
        let params = DeleteParams::background().preconditions(preconditions);
        let deleted = api.delete(name, &params).await;
        deleted.map(|answer| answer.either(|_| Removed::Going, |_| Removed::Gone))
    };
    match outcome {
        Ok(removed) => Ok(removed),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Removed::Gone),
        Err(kube::Error::Api(status)) => Ok(Removed::Refused(status)),
        Err(error) => Err(Error::api("remove what left Git")(error)),
    }
}

#[cfg(test)]
mod tests {
    use kube::core::response::{StatusCause, StatusDetails};

    use super::*;

    fn key() -> Key {
        Key {
            group: String::new(),
            kind: "ConfigMap".to_owned(),
            namespace: "upf".to_owned(),
            name: "a".to_owned(),
        }
    }

    #[test]
    fn a_conflict_names_the_field_and_who_set_it() {
        let status = Status {
            code: 409,
            details: Some(StatusDetails {
                causes: vec![StatusCause {
                    reason: "FieldManagerConflict".to_owned(),
                    message: "conflict with \"kubectl-client-side-apply\" using v1".to_owned(),
                    field: ".data.mtu".to_owned(),
                }],
                name: "a".to_owned(),
                group: String::new(),
                kind: "configmaps".to_owned(),
                uid: String::new(),
                retry_after_seconds: 0,
            }),
            ..Status::default()
        };
        let finding = refused("apply", &key(), "v1", &status);
        assert_eq!(finding.code, Code::FieldConflict);
        assert!(
            finding
                .message
                .contains("data.mtu is set by \"kubectl-client-side-apply\""),
            "{}",
            finding.message
        );
    }

    #[test]
    fn a_refusal_keeps_the_servers_words() {
        let status = Status {
            code: 403,
            message: "configmaps is forbidden".to_owned(),
            ..Status::default()
        };
        let finding = refused("apply", &key(), "v1", &status);
        assert_eq!(finding.code, Code::ApplyRefused);
        assert!(finding.message.ends_with("configmaps is forbidden"));
        assert!(finding.help.contains("account"));
    }
}
