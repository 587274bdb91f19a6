//! VRFAttachment: addresses of a cluster in VRFs, for traffic that comes in and for traffic that goes out.

use std::net::IpAddr;

use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::network_spec::NetworkSpec;
use super::terms::{self, Community, Direction, NodeProgress, Route};
use crate::Selector;
use crate::kinds::StatusCondition;

/// The addresses, the VRFs and the connections.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "network.t-caas.telekom.com",
    version = "v1alpha1",
    kind = "VRFAttachment",
    plural = "vrfattachments",
    status = "VRFAttachmentStatus",
    category = "schiff",
    derive = "PartialEq",
    doc = "Addresses of the cluster in VRFs, with inbound and outbound connections.",
    printcolumn(name = "VRFs", type_ = "string", json_path = ".status.vrfs"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].reason"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    { "rule": "has(self.network.subnet) || (has(self.network.ipv4) && has(self.network.ipv4.subnet))",
      "message": "has no subnet; write network.subnet, network.ipv4.subnet or both", "fieldPath": ".network" },
    { "rule": "self.network == oldSelf.network",
      "message": "cannot change under its addresses; make another VRFAttachment", "fieldPath": ".network" },
    { "rule": "self.connections.all(c, oldSelf.connections.all(o, o.name != c.name || o.direction == c.direction))",
      "message": "cannot turn a connection round; give the new direction a connection of its own", "fieldPath": ".connections" },
]))]
pub struct VRFAttachmentSpec {
    /// The network that addresses are taken from.
    pub network: NetworkSpec,
    /// Which Destinations.
    #[schemars(schema_with = "terms::destinations")]
    pub destinations: Selector,
    /// The connections.
    #[schemars(length(max = 64), extend("x-kubernetes-validations" = [
        { "rule": "self.all(c, self.exists_one(d, d.name == c.name))",
          "message": "lists a name twice; give every connection its own" }]))]
    pub connections: Vec<Connection>,
    /// On the nodes of these groups; without groups and nodeSelector on all nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub worker_groups: Vec<String>,
    /// And only on nodes with these labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "terms::nodes")]
    pub node_selector: Option<Selector>,
    /// Communities of its exported routes; those of the Destinations otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub communities: Vec<Community>,
}

/// A way in or out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    { "rule": "self.direction != 'bidirectional'",
      "message": "cannot be bidirectional yet, since one address cannot be both a load balancer's and the source of NAT; write an inbound and an outbound connection", "fieldPath": ".direction" },
]))]
pub struct Connection {
    /// Its name; with the attachment's it names what is made for it.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub name: String,
    /// Which way it is opened.
    pub direction: Direction,
    /// No load balancer: workloads announce the addresses themselves, over a BGPNeighbor.
    #[serde(default)]
    pub disable_load_balancer: bool,
    /// How many addresses, per family; of an outbound connection also how many gateways.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 65535))]
    pub count: u16,
    /// Exactly these addresses instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), schema_with = "addresses")]
    pub addresses: Vec<IpAddr>,
    /// Only those of the attachment's Destinations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "terms::some_destinations")]
    pub destinations: Option<Selector>,
    /// Prefixes beyond what the Destinations define, for the addresses of this connection.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub routes: Vec<Route>,
    /// How the load balancer makes its addresses known; as the OperatorConfig says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advertisement: Option<Advertisement>,
}

fn one() -> u16 {
    1
}

fn addresses(g: &mut SchemaGenerator) -> Schema {
    let item = terms::address(g);
    json_schema!({ "type": "array", "maxItems": 256, "items": item })
}

/// How a load balancer makes its addresses known.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Advertisement {
    /// By BGP.
    #[default]
    Bgp,
    /// By ARP and neighbour discovery.
    L2,
    /// Not by the load balancer: something else does it.
    None,
}

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VRFAttachmentStatus {
    /// The addresses of each connection.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connections: Vec<ConnectionStatus>,
    /// The matched Destinations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub destinations: Vec<String>,
    /// Their VRFs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vrfs: Vec<String>,
    /// The class that Services write to be served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_balancer_class: Option<String>,
    /// The revision that carries it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// How far the rollout is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<NodeProgress>,
    /// Resolved, Compiled, RolledOut, PlatformReady, Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<StatusCondition>,
}

/// The addresses of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionStatus {
    /// The connection.
    pub name: String,
    /// IPv6.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
    /// IPv4.
    #[serde(default, rename = "addressesv4", skip_serializing_if = "Vec::is_empty")]
    pub addresses_v4: Vec<String>,
}
