//! Which kinds the role watches, in which groups they are served, and which of their fields it needs.
//!
//! The older group `ipam.nephio.org` is the same kinds where its definitions are installed; what is made for a claim follows
//! the claim's group.

use kube::Client;
use kube::api::{ApiResource, GroupVersionKind};
use mooring_blueprint::bundle::group;

use crate::error::Error;
use crate::living::Need;

/// What a kind is to this role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    Instance,
    Prefix,
    Index,
    Claim,
    VlanClaim,
    /// Written for claims, watched so that a lost one comes back.
    Allocation,
}

impl What {
    /// The kind, as a metric label too.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::Instance => "NetworkInstance",
            Self::Prefix => "IPPrefix",
            Self::Index => "VLANIndex",
            Self::Claim => "IPClaim",
            Self::VlanClaim => "VLANClaim",
            Self::Allocation => "IPAllocation",
        }
    }

    /// Whether something is handed out to it.
    pub(super) fn is_claim(self) -> bool {
        matches!(self, Self::Claim | Self::VlanClaim)
    }

    /// Whether something is handed out from it.
    pub(super) fn is_pool(self) -> bool {
        matches!(self, Self::Instance | Self::Prefix | Self::Index)
    }
}

/// A kind as a server serves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Served {
    pub(super) what: What,
    pub(super) resource: ApiResource,
}

impl Served {
    /// The name of its definition.
    pub(super) fn definition(&self) -> String {
        format!("{}.{}", self.resource.plural, self.resource.group)
    }
}

const WANTED: [(What, &str); 10] = [
    (What::Instance, group::IPAM),
    (What::Prefix, group::IPAM),
    (What::Claim, group::IPAM),
    (What::Allocation, group::IPAM),
    (What::Instance, group::IPAM_SEED),
    (What::Prefix, group::IPAM_SEED),
    (What::Claim, group::IPAM_SEED),
    (What::Allocation, group::IPAM_SEED),
    (What::Index, group::VLAN),
    (What::VlanClaim, group::VLAN),
];

const FILL: [&str; 4] = [
    "status.size",
    "status.used",
    "status.reserved",
    "status.free",
];

/// The fields that a definition of somebody else may lack.
pub(crate) const NEEDS: &[Need] = &[
    Need {
        definition: "ipprefixes.ipam.resource.nephio.org",
        fields: &[
            "spec.ranges",
            "spec.exclude",
            "spec.coolDown",
            "spec.allocations",
            FILL[0],
            FILL[1],
            FILL[2],
            FILL[3],
        ],
    },
    Need {
        definition: "networkinstances.ipam.resource.nephio.org",
        fields: &FILL,
    },
    Need {
        definition: "vlanindices.vlan.resource.nephio.org",
        fields: &FILL,
    },
];

/// The kinds that this server serves, in the order of the table.
pub(super) async fn served(client: &Client) -> Result<Vec<Served>, Error> {
    let groups = client.list_api_groups().await;
    let groups = groups.map_err(Error::api("list the API groups"))?.groups;
    let mut found = Vec::new();
    for group in [group::IPAM, group::IPAM_SEED, group::VLAN] {
        let version = GroupVersionKind::gvk(group, "v1alpha1", "").api_version();
        if !groups.iter().any(|g| g.name == group) {
            continue;
        }
        let resources = match client.list_api_group_resources(&version).await {
            Ok(list) => list.resources,
            Err(kube::Error::Api(status)) if status.code == 404 => continue,
            Err(error) => return Err(Error::api("list the kinds of a group")(error)),
        };
        for (what, _) in WANTED.iter().filter(|(_, of)| *of == group) {
            let named = resources
                .iter()
                .find(|r| r.kind == what.kind() && !r.name.contains('/'));
            if let Some(resource) = named {
                let gvk = GroupVersionKind::gvk(group, "v1alpha1", what.kind());
                found.push(Served {
                    what: *what,
                    resource: ApiResource::from_gvk_with_plural(&gvk, &resource.name),
                });
            }
        }
    }
    Ok(found)
}
