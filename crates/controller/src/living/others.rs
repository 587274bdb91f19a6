//! Who else may be here, and by what it is known: an API group, a Deployment, a finalizer.
//!
//! Least privilege: groups are public to every account, finalizers stand on objects that we read anyway. Deployments are
//! looked at only where the account may list them; where not, that evidence is missing and the log says so.

use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::ListParams;

use crate::args::Role;
use crate::error::Error;
use crate::world::World;

/// One other controller.
struct Other {
    role: Role,
    name: &'static str,
    /// An API group that only it serves.
    group: &'static str,
    /// A part of its Deployment's name.
    deployment: &'static str,
    /// A finalizer that it puts on objects.
    finalizer: &'static str,
}

const OTHERS: [Other; 4] = [
    Other {
        role: Role::Ipam,
        name: "Nephio's resource backend",
        group: "",
        deployment: "resource-backend",
        finalizer: "ipam.nephio.org/finalizer",
    },
    Other {
        role: Role::Ipam,
        name: "Nephio's resource backend",
        group: "",
        deployment: "",
        finalizer: "vlan.nephio.org/finalizer",
    },
    Other {
        role: Role::Packages,
        name: "Porch",
        group: "porch.kpt.dev",
        deployment: "",
        finalizer: "config.porch.kpt.dev/packagevariants",
    },
    Other {
        role: Role::Sync,
        name: "Config Sync",
        group: "configmanagement.gke.io",
        deployment: "reconciler-manager",
        finalizer: "configsync.gke.io/reconciler-manager",
    },
];

/// The first other controller of the role's kinds that is seen.
pub(super) async fn seen(world: &World, role: Role) -> Result<Option<String>, Error> {
    let others = || OTHERS.iter().filter(|other| other.role == role);
    let groups = world.client.list_api_groups().await;
    let groups = groups.map_err(Error::api("list the API groups"))?.groups;
    let served = |other: &&Other| groups.iter().any(|g| g.name == other.group);
    if let Some(other) = others().filter(|o| !o.group.is_empty()).find(served) {
        return Ok(Some(other.name.to_owned()));
    }
    if others().all(|other| other.deployment.is_empty()) {
        return Ok(None);
    }
    let api: Api<Deployment> = Api::all(world.client.clone());
    let deployments = match api.list_metadata(&ListParams::default().match_any()).await {
        Ok(list) => list.items,
        Err(kube::Error::Api(status)) if status.code == 403 => {
            tracing::debug!(
                "Deployments may not be listed: other controllers are known by finalizers only"
            );
            return Ok(None);
        }
        Err(error) => return Err(Error::api("list the Deployments")(error)),
    };
    let mut names = deployments
        .iter()
        .filter_map(|d| d.metadata.name.as_deref());
    let named = |name: &str| {
        let mut known = others().filter(|o| !o.deployment.is_empty());
        known.find(|o| name.contains(o.deployment))
    };
    Ok(names.find_map(named).map(|o| o.name.to_owned()))
}

/// Whose finalizer it is, where we know it.
pub(super) fn by_finalizer(finalizer: &str) -> Option<&'static str> {
    let mut others = OTHERS.iter().filter(|o| !o.finalizer.is_empty());
    others.find(|o| o.finalizer == finalizer).map(|o| o.name)
}
