//! NFDeployment: a network function with everything it was given. Its operator makes pods of it.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kinds::StatusCondition;
use crate::kinds::nephio::req::CapacitySpec;

/// What the function is, and what it was given.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "workload.nephio.org",
    version = "v1alpha1",
    kind = "NFDeployment",
    plural = "nfdeployments",
    namespaced,
    status = "NFDeploymentStatus",
    category = "nephio",
    derive = "PartialEq",
    derive = "Default",
    doc = "A network function, with the interfaces, networks and parameters it was given.",
    printcolumn(name = "Provider", type_ = "string", json_path = ".spec.provider"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct NFDeploymentSpec {
    /// Who makes it run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub provider: String,
    /// How large it shall be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<CapacitySpec>,
    /// Its interfaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<InterfaceConfig>,
    /// The networks it is in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub network_instances: Vec<NetworkInstanceConfig>,
    /// Objects that configure it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters_refs: Vec<ObjectName>,
}

/// An interface with its addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InterfaceConfig {
    /// Name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// IPv4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv4: Option<IpConfig>,
    /// IPv6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv6: Option<IpConfig>,
    /// The VLAN.
    #[serde(rename = "vlanID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 65535))]
    pub vlan_id: Option<u16>,
}

/// An address and its gateway, as written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IpConfig {
    /// The address with the length of its subnet.
    pub address: String,
    /// The gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<String>,
}

/// A network that the function is in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkInstanceConfig {
    /// Name.
    pub name: String,
    /// By which interfaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<String>,
    /// Whom it meets there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<Peer>,
    /// What it serves there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data_networks: Vec<ServedNetwork>,
    /// How it speaks BGP there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bgp: Option<Bgp>,
}

/// Another function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Peer {
    /// Name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub name: Option<String>,
    /// IPv4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv4: Option<IpConfig>,
    /// IPv6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv6: Option<IpConfig>,
}

/// A data network with its pools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServedNetwork {
    /// Name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub name: Option<String>,
    /// Its pools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pool: Vec<PoolPrefix>,
}

/// A pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolPrefix {
    /// The prefix.
    pub prefix: String,
}

/// BGP in a network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Bgp {
    /// The router's id.
    #[serde(rename = "routerID")]
    pub router_id: String,
    /// The function's own AS.
    pub autonomous_system: i64,
    /// Its neighbours.
    pub bgp_neighbors: Vec<BgpNeighbor>,
}

/// A BGP neighbour.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BgpNeighbor {
    /// Its address.
    pub address: String,
    /// Its AS.
    #[serde(rename = "peerAS")]
    pub peer_as: i64,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// An object by kind and name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectName {
    /// API version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Kind.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
}

/// How it runs, as its operator says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NFDeploymentStatus {
    /// Of which generation this speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i32>,
    /// Reconciling, Stalled, Available, Peering, Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<StatusCondition>,
}
