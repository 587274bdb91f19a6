//! WorkloadCluster: where a package goes, and what its nodes offer.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kinds::nephio::req::CniType;
use crate::kinds::text::{empty_is_none, if_name_or_empty};
use crate::{Cidr, IfName};

/// A cluster that workloads run in.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "infra.nephio.org",
    version = "v1alpha1",
    kind = "WorkloadCluster",
    plural = "workloadclusters",
    namespaced,
    status = "WorkloadClusterStatus",
    category = "nephio",
    derive = "PartialEq",
    derive = "Default",
    doc = "A cluster that workloads run in, and the NICs and CNIs of its nodes.",
    printcolumn(name = "Cluster", type_ = "string", json_path = ".spec.clusterName"),
    printcolumn(name = "Master", type_ = "string", json_path = ".spec.masterInterface"),
    printcolumn(name = "CNIs", type_ = "string", json_path = ".spec.cnis"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    { "rule": "!has(self.podCIDRs) || !has(self.serviceCIDRs) || self.podCIDRs.all(p, self.serviceCIDRs.all(s, !cidr(p).containsCIDR(s) && !cidr(s).containsCIDR(p)))",
      "message": "overlaps podCIDRs; give pods and services different networks", "fieldPath": ".serviceCIDRs" },
]))]
pub struct WorkloadClusterSpec {
    /// Its name; without one, the name of the injected object or of this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_name: Option<String>,
    /// The CNI types that it offers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cnis: Vec<String>,
    /// The NIC for macvlan, ipvlan, vlan and bridge.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "empty_is_none"
    )]
    #[schemars(schema_with = "if_name_or_empty")]
    pub master_interface: Option<IfName>,
    /// The NICs of its nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-validations" = [
        { "rule": "self.all(x, self.exists_one(y, y.name == x.name))",
          "message": "names a NIC twice; keep one entry per NIC" }]))]
    pub network_interfaces: Vec<Nic>,
    /// The networks of its pods. Secondary networks stay outside.
    #[serde(rename = "podCIDRs", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub pod_cidrs: Vec<Cidr>,
    /// The networks of its services.
    #[serde(
        rename = "serviceCIDRs",
        default,
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(length(max = 64))]
    pub service_cidrs: Vec<Cidr>,
    /// Its nodes by name, where ranges are divided per node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
}

/// A NIC that every node of the cluster has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Nic {
    /// Its name on the node.
    #[schemars(extend("maxLength" = 15))]
    pub name: IfName,
    /// What it is used with; without one, with any CNI type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cni: Option<CniType>,
    /// Its virtual functions may be handed to pods.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sriov_enabled: bool,
    /// The device plugin resource of its virtual functions, `domain/name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        regex(
            pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
        ),
        length(max = 317)
    )]
    pub resource_name: Option<String>,
    /// The largest packet that its network carries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 68, max = 65535))]
    pub mtu: Option<u16>,
}

/// Nothing is published here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadClusterStatus {}
