//! Gathers what a pass needs: the Secret, the directory in Git, the inventory, the kinds that are served, and the objects of
//! the cluster that are not surely ours. Only reads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::{Api, Client};
use mooring_api::kinds::configsync::Auth;
use mooring_api::{Code, Finding, annotation, label};
use mooring_package::git::{Files, Git, Mirror, Oid};

use super::decide::{Live, Step};
use super::inventory::Inventory;
use super::object::{Key, Kind, Kinds, Served, api_version};
use super::settings::Settings;
use crate::credentials::Opened;
use crate::error::Error;
use crate::world::World;

/// How many requests are under way at once.
pub(super) const AT_ONCE: usize = 8;
/// The key of the inventory in its ConfigMap.
pub(super) const INVENTORY: &str = "inventory.json";

/// A directory of a commit.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    /// The repository, for whoever commits back.
    pub(crate) mirror: Mirror,
    pub(crate) commit: Oid,
    pub(crate) files: Files,
    /// What opens it, kept as long as the mirror is used.
    pub(crate) _opened: Arc<Opened>,
}

/// Why the source could not be read.
#[derive(Clone, Debug)]
pub(crate) struct Unreadable {
    pub(crate) finding: Finding,
    /// A short word for the condition.
    pub(crate) reason: &'static str,
    /// Whether it may go away without an edit.
    pub(crate) transient: bool,
}

impl Unreadable {
    pub(super) fn new(reason: &'static str, message: impl Into<String>, help: &str) -> Self {
        Self {
            finding: Finding::error(Code::SourceUnreadable, message).help(help),
            reason,
            transient: false,
        }
    }

    fn git(error: &mooring_package::git::Error) -> Self {
        let mut unreadable = Self::new(error.reason(), error.to_string(), error.help());
        unreadable.transient = error.is_transient();
        unreadable
    }
}

/// Reads what opens the repository.
pub(crate) async fn opened(
    world: &World,
    namespace: &str,
    settings: &Settings,
) -> Result<Result<Opened, Unreadable>, Error> {
    if settings.auth == Auth::None {
        return Ok(Ok(Opened::none()));
    }
    let name = &settings.secret;
    let api: Api<Secret> = Api::namespaced(world.client.clone(), namespace);
    let secret = match api.get_opt(name).await {
        Ok(secret) => secret,
        Err(kube::Error::Api(status)) if status.code == 403 => {
            let message = format!("the Secret {name} may not be read by this controller");
            let help = "Allow its account to get Secrets of this namespace: the chart's sync.secretNamespaces.";
            return Ok(Err(Unreadable::new("SecretForbidden", message, help)));
        }
        Err(error) => return Err(Error::api("read the Secret")(error)),
    };
    let help = "Make it in the namespace of the RootSync, with username and token, or ssh-privatekey and known_hosts.";
    let Some(secret) = secret else {
        let message = format!("there is no Secret {name} in {namespace}");
        return Ok(Err(Unreadable::new("SecretMissing", message, help)));
    };
    let opened = Opened::read(settings.auth, &secret);
    Ok(opened.map_err(|why| {
        let message = format!("the Secret {name} in {namespace} cannot be used: {why}");
        Unreadable::new("SecretIncomplete", message, help)
    }))
}

/// Fetches the directory. Blocks: git is another program.
pub(crate) fn fetch(
    git: &Git,
    settings: &Settings,
    opened: Opened,
) -> Result<Snapshot, Unreadable> {
    let mut repository = settings.repository.clone();
    repository.credentials = opened.credentials.clone();
    let mirror = git.open(&repository).map_err(|e| Unreadable::git(&e))?;
    let commit = commit(&mirror, settings)?;
    let dir = &settings.repository.directory;
    let files = mirror.read(&commit, dir).map_err(|e| Unreadable::git(&e))?;
    let files = match files {
        Some(files) => files,
        // A directory that went with its last file is an empty one, where that is allowed.
        None if settings.allow_empty => Files::new(),
        None => {
            let branch = &settings.repository.branch;
            return Err(Unreadable::new(
                "DirectoryMissing",
                format!(
                    "there is no directory {dir:?} on {branch} at {}",
                    commit.short()
                ),
                "Correct spec.git.dir, or push the directory. If it went on purpose, set spec.allowEmpty: true.",
            ));
        }
    };
    Ok(Snapshot {
        mirror,
        commit,
        files,
        _opened: Arc::new(opened),
    })
}

fn commit(mirror: &Mirror, settings: &Settings) -> Result<Oid, Unreadable> {
    let branch = &settings.repository.branch;
    let Some(revision) = &settings.revision else {
        let end = mirror.branch(branch).map(|end| end.commit.clone());
        return end.ok_or_else(|| {
            let message = format!("there is no branch {branch} in {}", mirror.repository());
            Unreadable::new(
                "BranchMissing",
                message,
                "Correct spec.git.branch, or push the branch.",
            )
        });
    };
    let tag = mirror.tag(revision).map(|tag| tag.commit.clone());
    let branch = || mirror.branch(revision).map(|end| end.commit.clone());
    let id = || {
        let id = Oid::parse(revision)?;
        let there = mirror.id_at(&id, "").ok().flatten();
        there.map(|_| id)
    };
    tag.or_else(branch).or_else(id).ok_or_else(|| {
        let message = format!(
            "there is no tag, branch or commit {revision} in {}",
            mirror.repository()
        );
        let help = "Write a tag, a branch or the full id of a commit in spec.git.revision.";
        Unreadable::new("RevisionMissing", message, help)
    })
}

/// The inventory, and the version of its ConfigMap.
pub(crate) async fn inventory(
    world: &World,
    name: &str,
) -> Result<Result<(Inventory, Option<String>), Unreadable>, Error> {
    let api: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.args.namespace);
    let found = api
        .get_opt(name)
        .await
        .map_err(Error::api("read the inventory"))?;
    let Some(found) = found else {
        return Ok(Ok((Inventory::default(), None)));
    };
    let text = found.data.as_ref().and_then(|data| data.get(INVENTORY));
    let text = text.map_or("", String::as_str);
    let inventory = Inventory::parse(text).map_err(|why| {
        let namespace = &world.args.namespace;
        let message =
            format!("the inventory in ConfigMap {namespace}/{name} cannot be read: {why}");
        let help =
            "Restore it, or delete it: then nothing that left Git before is removed any more.";
        Unreadable::new("InventoryUnreadable", message, help)
    });
    Ok(inventory.map(|inventory| (inventory, found.metadata.resource_version)))
}

/// How the cluster serves these kinds; what it does not serve is left out.
pub(crate) async fn served(client: &Client, wanted: &BTreeSet<Kind>) -> Result<Kinds, Error> {
    let versions: BTreeSet<(&str, &str)> = wanted
        .iter()
        .map(|kind| (kind.group.as_str(), kind.version.as_str()))
        .collect();
    let mut kinds = Kinds::new();
    for (group, version) in versions {
        let listed = if group.is_empty() {
            client.list_core_api_resources(version).await
        } else {
            client
                .list_api_group_resources(&api_version(group, version))
                .await
        };
        let listed = match listed {
            Ok(listed) => listed,
            Err(kube::Error::Api(status)) if status.code == 404 => continue,
            Err(error) => return Err(Error::api("ask which kinds are served")(error)),
        };
        for resource in listed
            .resources
            .into_iter()
            .filter(|r| !r.name.contains('/'))
        {
            let kind = Kind {
                group: group.to_owned(),
                version: version.to_owned(),
                kind: resource.kind,
            };
            let served = Served {
                plural: resource.name,
                namespaced: resource.namespaced,
            };
            kinds.insert(kind, served);
        }
    }
    Ok(kinds)
}

/// The API of one object.
pub(crate) fn api(
    client: &Client,
    key: &Key,
    version: &str,
    served: &Served,
) -> Api<DynamicObject> {
    let resource = resource(&key.group, version, &key.kind, served);
    if served.namespaced {
        Api::namespaced_with(client.clone(), &key.namespace, &resource)
    } else {
        Api::all_with(client.clone(), &resource)
    }
}

fn resource(group: &str, version: &str, kind: &str, served: &Served) -> ApiResource {
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: api_version(group, version),
        kind: kind.to_owned(),
        plural: served.plural.clone(),
    }
}

/// What is in the cluster of objects that are not surely ours.
pub(crate) async fn live(
    client: &Client,
    asked: Vec<(Key, String, Served)>,
) -> Result<BTreeMap<Key, Live>, Error> {
    let asked: Vec<_> = asked
        .into_iter()
        .map(|asked| look(client, asked).boxed())
        .collect();
    let found = futures::stream::iter(asked).buffer_unordered(AT_ONCE);
    let found: Vec<_> = found.try_collect().await?;
    Ok(found.into_iter().flatten().collect())
}

async fn look(
    client: &Client,
    (key, version, served): (Key, String, Served),
) -> Result<Option<(Key, Live)>, Error> {
    let api = api(client, &key, &version, &served);
    let found = match api.get_metadata_opt(&key.name).await {
        Ok(found) => found,
        // A kind that comes with this commit is not served yet; and whether we may is found out when it is applied, for
        // this object alone.
        Err(kube::Error::Api(status)) if status.code == 404 || status.code == 403 => None,
        Err(error) => return Err(Error::api("look at the objects of the cluster")(error)),
    };
    Ok(found.map(|found| (key, look_at(&found.metadata))))
}

pub(super) fn look_at(metadata: &kube::api::ObjectMeta) -> Live {
    let annotations = metadata.annotations.as_ref();
    Live {
        label: metadata
            .labels
            .as_ref()
            .and_then(|labels| labels.get(label::SYNC))
            .cloned(),
        synced_by: annotations
            .and_then(|all| all.get(annotation::SYNCED_BY))
            .cloned()
            .unwrap_or_default(),
    }
}

/// The versions of everything that carries our label, of the kinds of these steps.
pub(crate) async fn versions(
    client: &Client,
    steps: &[Vec<Step>],
    identity: &str,
) -> Result<BTreeMap<Key, String>, Error> {
    let mut kinds: BTreeMap<Kind, Served> = BTreeMap::new();
    for step in steps.iter().flatten() {
        let kind = Kind {
            group: step.key.group.clone(),
            version: step.version.clone(),
            kind: step.key.kind.clone(),
        };
        kinds.insert(kind, step.served.clone());
    }
    let selector = format!("{}={identity}", label::SYNC);
    let mut seen = BTreeMap::new();
    for (kind, served) in kinds {
        let resource = resource(&kind.group, &kind.version, &kind.kind, &served);
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        let listed = match api
            .list_metadata(&ListParams::default().labels(&selector))
            .await
        {
            Ok(listed) => listed,
            // The kind went, so its objects did; applying them says so.
            Err(kube::Error::Api(status)) if status.code == 404 || status.code == 403 => continue,
            Err(error) => return Err(Error::api("list what was applied")(error)),
        };
        for found in listed {
            let metadata = found.metadata;
            let version = version(&metadata);
            let key = Key {
                group: kind.group.clone(),
                kind: kind.kind.clone(),
                namespace: metadata.namespace.unwrap_or_default(),
                name: metadata.name.unwrap_or_default(),
            };
            seen.insert(key, version);
        }
    }
    Ok(seen)
}

/// What changes with every change of an object.
pub(super) fn version(metadata: &kube::api::ObjectMeta) -> String {
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    format!(
        "{}/{}",
        text(&metadata.uid),
        text(&metadata.resource_version)
    )
}
