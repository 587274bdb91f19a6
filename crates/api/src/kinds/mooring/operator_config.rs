//! OperatorConfig: what the platform decides for all intents of a cluster. There is one, called `cluster`.
//!
//! Read by the room `intent`; without one the defaults hold. Easy to get wrong: nothing here is about one tenant. What
//! two attachments could want differently stands on the attachment.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{Cidr, IfName, Span};

/// The platform's choices.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "mooring.dev",
    version = "v1alpha1",
    kind = "OperatorConfig",
    plural = "operatorconfigs",
    category = "mooring",
    derive = "PartialEq",
    derive = "Default",
    doc = "What the platform decides for the intents of this cluster.",
    printcolumn(name = "Mode", type_ = "string", json_path = ".spec.mode"),
    printcolumn(name = "Profile", type_ = "string", json_path = ".spec.profile"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase", default)]
pub struct OperatorConfigSpec {
    /// Whether anything is written.
    pub mode: Mode,
    /// The label of nodes that names their worker group. One under `node-restriction.kubernetes.io/` cannot be set by a node itself.
    #[schemars(length(min = 1, max = 317))]
    pub worker_group_label: String,
    /// VNI and route target of VRFs whose Destination does not say them.
    #[schemars(schema_with = "vrf_map")]
    pub vrfs: BTreeMap<String, VrfIdentity>,
    /// VNIs that nobody may use, such as those of the cluster and management VRFs.
    #[serde(rename = "reservedVNIs", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024))]
    pub reserved_vnis: Vec<u32>,
    /// VRFs that nobody may use beside `cluster`, such as that of management.
    #[serde(rename = "reservedVRFs", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub reserved_vrfs: Vec<String>,
    /// Addresses of the cluster's pods, which no intent's subnet may touch.
    #[serde(rename = "podCIDRs", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub pod_cidrs: Vec<Cidr>,
    /// Addresses of its Services, likewise.
    #[serde(rename = "serviceCIDRs", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub service_cidrs: Vec<Cidr>,
    /// Where objects of the platform are made.
    pub namespaces: Namespaces,
    /// Ranges that transfer networks of BGPNeighbors come from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub transfer_ranges: Vec<TransferRange>,
    /// What the cluster has, and how it is used.
    pub platform: Platform,
    /// What the hardware allows.
    pub profile: Profile,
    /// SR-IOV by worker group.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sriov: BTreeMap<String, SriovGroup>,
    /// The AS of the nodes.
    #[serde(rename = "localAS", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4_294_967_295_u32))]
    pub local_as: Option<u32>,
    /// The AS of workloads that name none.
    #[serde(rename = "defaultWorkloadAS", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4_294_967_295_u32))]
    pub default_workload_as: Option<u32>,
    /// The first half of gateways' MACs; the second is the VNI, so that two clusters with one VNI agree.
    #[schemars(regex(pattern = "^[0-9a-f][26ae](:[0-9a-f]{2}){2}$"))]
    pub anycast_mac_prefix: String,
    /// The node's own names.
    pub node: NodeNames,
    /// How fast a revision reaches the nodes.
    pub rollout: Rollout,
    /// What becomes of low-level objects that people make.
    pub low_level: LowLevel,
}

impl Default for OperatorConfigSpec {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            worker_group_label: "network.t-caas.telekom.com/worker-group".to_owned(),
            vrfs: BTreeMap::new(),
            reserved_vnis: Vec::new(),
            reserved_vrfs: Vec::new(),
            pod_cidrs: Vec::new(),
            service_cidrs: Vec::new(),
            namespaces: Namespaces::default(),
            transfer_ranges: Vec::new(),
            platform: Platform::default(),
            profile: Profile::default(),
            sriov: BTreeMap::new(),
            local_as: None,
            default_workload_as: None,
            anycast_mac_prefix: "02:4d:52".to_owned(),
            node: NodeNames::default(),
            rollout: Rollout::default(),
            low_level: LowLevel::default(),
        }
    }
}

/// Whether anything is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Everything is compiled, nothing written.
    #[default]
    Observe,
    /// Revisions are made and rolled out.
    Active,
}

/// VNI and route target of a VRF.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VrfIdentity {
    /// The VXLAN network identifier.
    #[schemars(range(min = 1, max = 16_777_215))]
    pub vni: u32,
    /// The route target.
    #[schemars(
        length(min = 3, max = 26),
        regex(pattern = r"^([0-9]{1,10}|([0-9]{1,3}\.){3}[0-9]{1,3}):[0-9]{1,10}$")
    )]
    pub route_target: String,
}

fn vrf_map(g: &mut SchemaGenerator) -> Schema {
    let item = g.subschema_for::<VrfIdentity>();
    json_schema!({ "type": "object", "additionalProperties": item })
}

/// Where objects of the platform are made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Namespaces {
    /// MetalLB's own.
    #[schemars(length(min = 1, max = 63))]
    pub metallb: String,
    /// Where egress gateways run.
    #[schemars(length(min = 1, max = 63))]
    pub egress: String,
    /// The SR-IOV operator's own.
    #[schemars(length(min = 1, max = 63))]
    pub sriov: String,
    /// Where NetworkAttachmentDefinitions of SR-IOV networks appear.
    #[schemars(length(min = 1, max = 63))]
    pub networks: String,
    /// Where claims of Cluster API IPAM are made.
    #[schemars(length(min = 1, max = 63))]
    pub claims: String,
}

impl Default for Namespaces {
    fn default() -> Self {
        Self {
            metallb: "metallb-system".to_owned(),
            egress: "egress".to_owned(),
            sriov: "sriov-network-operator".to_owned(),
            networks: "default".to_owned(),
            claims: "default".to_owned(),
        }
    }
}

/// A range that transfer networks come from: one /31 or /127 per node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TransferRange {
    /// Its name.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// IPv4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv4: Option<Cidr>,
    /// IPv6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv6: Option<Cidr>,
}

/// What the cluster has, and how it is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Platform {
    /// Who serves inbound connections.
    pub load_balancer: LoadBalancer,
    /// The class that the load balancer serves.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub load_balancer_class: Option<String>,
    /// How addresses of inbound connections are made known.
    pub advertisement: DefaultAdvertisement,
    /// Who translates outbound connections.
    pub egress: Egress,
    /// Who gives pods their addresses.
    pub pods: Pods,
    /// Which API of Calico is written.
    #[serde(rename = "calicoAPI")]
    pub calico_api: CalicoApi,
    /// Who makes virtual functions.
    pub sriov: SriovPlatform,
}

impl Default for Platform {
    fn default() -> Self {
        Self {
            load_balancer: LoadBalancer::Metallb,
            load_balancer_class: None,
            advertisement: DefaultAdvertisement::Bgp,
            egress: Egress::Coil,
            pods: Pods::Calico,
            calico_api: CalicoApi::V3,
            sriov: SriovPlatform::Operator,
        }
    }
}

macro_rules! choice {
    ($(#[doc = $doc:literal])+ $name:ident { $($(#[doc = $what:literal])+ $variant:ident = $text:literal,)+ }) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub enum $name {
            $($(#[doc = $what])+ #[serde(rename = $text)] $variant,)+
        }
    };
}

choice!(
    /// Who serves inbound connections.
    LoadBalancer {
        /// MetalLB.
        Metallb = "metallb",
        /// Nobody.
        None = "none",
    }
);
choice!(
    /// How addresses of inbound connections are made known, where the connection does not say.
    DefaultAdvertisement {
        /// By BGP.
        Bgp = "bgp",
        /// By ARP and neighbour discovery.
        L2 = "l2",
        /// By something else.
        None = "none",
    }
);
choice!(
    /// Who translates outbound connections.
    Egress {
        /// Coil.
        Coil = "coil",
        /// Nobody.
        None = "none",
    }
);
choice!(
    /// Who gives pods their addresses.
    Pods {
        /// Calico.
        Calico = "calico",
        /// Nobody.
        None = "none",
    }
);
choice!(
    /// Which API of Calico is written.
    CalicoApi {
        /// Its API server, which checks what is written.
        V3 = "projectcalico.org/v3",
        /// Its storage; we check in its place.
        V1 = "crd.projectcalico.org/v1",
    }
);
choice!(
    /// Who makes virtual functions.
    SriovPlatform {
        /// The SR-IOV network operator.
        Operator = "operator",
        /// Nobody.
        None = "none",
    }
);

/// What the hardware allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Everything.
    #[default]
    Generic,
    /// BM4X: an attachment with SR-IOV and an interface has one VRF.
    Bm4x,
}

/// SR-IOV of a worker group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SriovGroup {
    /// The resource that serves its virtual functions.
    #[schemars(length(min = 1, max = 253))]
    pub resource_name: String,
    /// The bridge that host interfaces join.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bridge: Option<IfName>,
}

/// The node's own names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeNames {
    /// The trunk between host and router.
    #[schemars(length(min = 1, max = 15))]
    pub trunk: String,
    /// The host, as the router sees it.
    #[schemars(schema_with = "ipv6")]
    pub host_next_hop: Ipv6Addr,
}

impl Default for NodeNames {
    fn default() -> Self {
        Self {
            trunk: "hbn".to_owned(),
            host_next_hop: Ipv6Addr::new(0xfd00, 7, 0xcaa5, 0, 0, 0, 0, 1),
        }
    }
}

fn ipv6(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "maxLength": 45 })
}

/// How fast a revision reaches the nodes, and when it stops.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Rollout {
    /// How many nodes change at once.
    #[schemars(range(min = 1, max = 1000))]
    pub max_updating: u32,
    /// How long a node may take.
    pub timeout: Span,
    /// How old a node's heartbeat may be.
    pub heartbeat: Span,
    /// No node is begun.
    pub paused: bool,
    /// How many good revisions are kept to go back to.
    #[schemars(range(min = 1, max = 100))]
    pub keep: u32,
    /// A label of nodes; those of one value are done before the next begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 317))]
    pub order_by: Option<String>,
    /// A revision that changes more nodes than this waits for approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_nodes: Option<u32>,
}

impl Default for Rollout {
    fn default() -> Self {
        Self {
            max_updating: 1,
            timeout: Span(120),
            heartbeat: Span(60),
            paused: false,
            keep: 10,
            order_by: None,
            max_nodes: None,
        }
    }
}

/// What becomes of low-level objects that people make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LowLevel {
    /// They count.
    #[default]
    Allow,
    /// They count, and it is said.
    Warn,
    /// They are refused.
    Deny,
}
