//! Which object: the reference every finding and every edit uses, and the keys we read and write.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An object by API version, kind, namespace and name. An empty namespace means none was written.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRef {
    /// `group/version`, or `v1`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace, or empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl ObjectRef {
    /// A reference without namespace.
    pub fn new(
        api_version: impl Into<String>,
        kind: impl Into<String>,
        name: impl Into<String>,
    ) -> Self {
        Self {
            api_version: api_version.into(),
            kind: kind.into(),
            namespace: String::new(),
            name: name.into(),
        }
    }

    /// The same in a namespace.
    #[must_use]
    pub fn within(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// The part of `apiVersion` before the slash; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version
            .split_once('/')
            .map_or("", |(group, _)| group)
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            write!(f, "{}/{}", self.kind, self.name)
        } else {
            write!(f, "{}/{} in {}", self.kind, self.name, self.namespace)
        }
    }
}

/// Annotation keys that mean something to us.
pub mod annotation {
    /// Not applied to clusters.
    pub const LOCAL_CONFIG: &str = "config.kubernetes.io/local-config";
    /// The name of the object that was injected here.
    pub const INJECTED_RESOURCE: &str = "kpt.dev/injected-resource";
    /// Marks an injection point: `required` or `optional`.
    pub const CONFIG_INJECTION: &str = "kpt.dev/config-injection";
    /// A pod's secondary networks.
    pub const NETWORKS: &str = "k8s.v1.cni.cncf.io/networks";
    /// The device plugin resource that serves a NAD.
    pub const RESOURCE_NAME: &str = "k8s.v1.cni.cncf.io/resourceName";
    /// `Kind/name` of what a generated object was made for. Only such objects are ever removed.
    pub const OWNED_BY: &str = "mooring.dev/owned-by";
    /// The package's minted identity, on its Kptfile.
    pub const PACKAGE_ID: &str = "mooring.dev/package-id";
    /// On a Kptfile: `namespace/name` of the PackageVariant that made the package.
    pub const VARIANT: &str = "mooring.dev/variant";
    /// On a Kptfile: a digest of the blueprint, the variant and what was injected when the package was cloned.
    pub const MADE_FROM: &str = "mooring.dev/made-from";
    /// On a Repository or a Kptfile: the WorkloadCluster that packages are for. On a RootSync: the twin of `spec.cluster`.
    pub const CLUSTER: &str = "mooring.dev/cluster";
    /// On a PackageVariant: "true" ships IPClaim and IPAllocation to the cluster as inert records.
    pub const DEPLOY_RECORDS: &str = "mooring.dev/deploy-records";
    /// static, host-local, whereabouts, moor, external.
    pub const IPAM_FLAVOUR: &str = "mooring.dev/ipam-flavour";
    /// nad, annotation.
    pub const IPAM_CARRIER: &str = "mooring.dev/ipam-carrier";
    /// `CIDR [via ADDR]`, comma separated.
    pub const ROUTES: &str = "mooring.dev/routes";
    /// true or false.
    pub const DEFAULT_ROUTE: &str = "mooring.dev/default-route";
    /// `Kind/name`.
    pub const WORKLOAD: &str = "mooring.dev/workload";
    /// Twin of `Interface.spec.mtu`.
    pub const MTU: &str = "mooring.dev/mtu";
    /// Twin of `Interface.spec.vlan`.
    pub const VLAN: &str = "mooring.dev/vlan";
    /// Name of the NAD.
    pub const NAD_NAME: &str = "mooring.dev/nad-name";
    /// The plugin's mode.
    pub const MODE: &str = "mooring.dev/mode";
    /// How many addresses a range claim asks for.
    pub const RANGE_SIZE: &str = "mooring.dev/range-size";
    /// On an Interface: `cluster` (default) or `node`.
    pub const RANGE_PER: &str = "mooring.dev/range-per";
    /// On an Interface: how many addresses it gets; default 1.
    pub const ADDRESSES: &str = "mooring.dev/addresses";
    /// DNS servers, comma separated.
    pub const DNS: &str = "mooring.dev/dns";
    /// Twin of `IPPrefix.spec.ranges`: where addresses are taken from.
    pub const RANGES: &str = "mooring.dev/ranges";
    /// Twin of `IPPrefix.spec.exclude`: what is never handed out.
    pub const EXCLUDE: &str = "mooring.dev/exclude";
    /// Twin of `IPPrefix.spec.coolDown`: how long a released address rests.
    pub const COOL_DOWN: &str = "mooring.dev/cool-down";
    /// Twin of `IPPrefix.spec.allocations`: `ADDRESS=CLAIM` or `ADDRESS=CLAIM@CLUSTER`, comma separated.
    pub const ALLOCATIONS: &str = "mooring.dev/allocations";
    /// On an IPPrefix: "true" while nothing new is handed out from it.
    pub const DRAIN: &str = "mooring.dev/drain";
    /// On a NetworkInstance: a routing domain of its own.
    pub const ISOLATED: &str = "mooring.dev/isolated";
    /// On a WorkloadCluster.
    pub const POD_CIDRS: &str = "mooring.dev/pod-cidrs";
    /// On a WorkloadCluster.
    pub const SERVICE_CIDRS: &str = "mooring.dev/service-cidrs";
    /// Twin of `WorkloadCluster.spec.networkInterfaces`: the same list, as JSON.
    pub const NETWORK_INTERFACES: &str = "mooring.dev/network-interfaces";
    /// On a WorkloadCluster: its nodes, comma separated.
    pub const NODES: &str = "mooring.dev/nodes";
    /// On a WorkloadCluster: the domain of device plugin resources.
    pub const RESOURCE_PREFIX: &str = "mooring.dev/resource-prefix";
    /// Twin of `RootSync.spec.pollInterval`.
    pub const POLL_INTERVAL: &str = "mooring.dev/poll-interval";
    /// Twin of `RootSync.spec.defaultNamespace`.
    pub const DEFAULT_NAMESPACE: &str = "mooring.dev/default-namespace";
    /// Twin of `RootSync.spec.commitStatus`.
    pub const COMMIT_STATUS: &str = "mooring.dev/commit-status";
    /// Twin of `RootSync.spec.allowEmpty`.
    pub const ALLOW_EMPTY: &str = "mooring.dev/allow-empty";
    /// Twin of `RootSync.spec.conflicts`.
    pub const CONFLICTS: &str = "mooring.dev/conflicts";
    /// On what the sync role applied: `namespace/name` of its RootSync.
    pub const SYNCED_BY: &str = "mooring.dev/synced-by";
    /// On a workload or its pod template: which network function it is, such as `upf` or `gnb`.
    pub const NETWORK_FUNCTION: &str = "mooring.dev/network-function";
}

/// Label keys that mean something to us.
pub mod label {
    /// The logical network of a prefix or claim.
    pub const NETWORK_NAME: &str = "nephio.org/network-name";
    /// The cluster that a prefix belongs to.
    pub const CLUSTER_NAME: &str = "nephio.org/cluster-name";
    /// ipv4 or ipv6.
    pub const ADDRESS_FAMILY: &str = "nephio.org/address-family";
    /// "true": the host part of this prefix is the gateway.
    pub const GATEWAY: &str = "nephio.org/gateway";
    /// "true": ours to act on, where another controller serves the kind too.
    pub const MANAGED: &str = "mooring.dev/managed";
    /// On what the sync role applied: which RootSync did, as a digest of its namespace and name.
    pub const SYNC: &str = "mooring.dev/sync";
    /// pool, loopback, network.
    pub const PREFIX_KIND: &str = "nephio.org/prefix-kind";
}
