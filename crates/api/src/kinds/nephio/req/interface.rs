//! Interface: a secondary network interface of a workload. The seed's `sriovSpec`, `mtu`, `vlan` and
//! our `workload` stand beside the four published fields.

use std::fmt;
use std::str::FromStr;

use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::kinds::Reference;
use crate::kinds::nephio::ipam::IPClaimStatus;
use crate::kinds::nephio::vlan::VLANClaimStatus;
use crate::kinds::text::empty_is_none;
use crate::{BadValue, Family, IfName, VlanId};

/// What the interface shall be.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "req.nephio.org",
    version = "v1alpha1",
    kind = "Interface",
    plural = "interfaces",
    namespaced,
    status = "InterfaceStatus",
    category = "nephio",
    derive = "PartialEq",
    derive = "Default",
    doc = "A secondary network interface of a workload.",
    printcolumn(
        name = "Instance",
        type_ = "string",
        json_path = ".spec.networkInstance.name"
    ),
    printcolumn(name = "CNI", type_ = "string", json_path = ".spec.cniType"),
    printcolumn(
        name = "Address",
        type_ = "string",
        json_path = ".status.ipClaimStatus[0].prefix"
    ),
    printcolumn(
        name = "VLAN",
        type_ = "integer",
        json_path = ".status.vlanClaimStatus.vlanID"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    { "rule": "!has(self.sriovSpec) || (has(self.cniType) && self.cniType == 'sriov')",
      "message": "is only for cniType sriov; remove it, or write cniType: sriov", "fieldPath": ".sriovSpec" },
    { "rule": "!has(self.cniType) || self.cniType != 'vlan' || has(self.vlan) || (has(self.attachmentType) && self.attachmentType == 'vlan')",
      "message": "is vlan, but there is no VLAN; write vlan with an id, or attachmentType: vlan to claim one", "fieldPath": ".cniType" },
    { "rule": "!has(self.vlan) || !has(self.attachmentType) || self.attachmentType != 'none'",
      "message": "is given, but attachmentType is none; remove one of them", "fieldPath": ".vlan" },
    { "rule": "!has(self.mtu) || self.mtu >= 1280 || !has(self.ipFamilyPolicy) || self.ipFamilyPolicy in ['none', 'ipv4-only', 'ipv4only']",
      "message": "is too small for IPv6; write 1280 or more", "fieldPath": ".mtu" },
]))]
pub struct InterfaceSpec {
    /// The network instance; without one, that which selects this Interface by label. `default` is
    /// the pod network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_instance: Option<Reference>,
    /// The plugin that makes it; absent or empty, the interface is a loopback.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "empty_is_none"
    )]
    #[schemars(schema_with = "cni_type_or_empty")]
    pub cni_type: Option<CniType>,
    /// Tagged or not. With `vlan` and no id written here, an id is claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attachment_type: Option<AttachmentType>,
    /// Which addresses it gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_family_policy: Option<IpFamilyPolicy>,
    /// The physical function that an sriov interface is cut from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sriov_spec: Option<SriovSpec>,
    /// The largest packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 68, max = 65535))]
    pub mtu: Option<u16>,
    /// The VLAN id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<VlanId>,
    /// `Kind/name` of the workload that it is for; without one, the only workload of the package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[A-Z][A-Za-z0-9]*/[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"))]
    pub workload: Option<String>,
}

/// A virtual function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SriovSpec {
    /// The NIC on the node.
    pub pf_name: IfName,
    /// Which virtual function. The device plugin chooses; this cannot be said in a NAD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 65535))]
    pub vf_index: Option<u16>,
}

/// The plugin that makes an interface.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum CniType {
    /// A virtual function of an SR-IOV NIC.
    Sriov,
    /// ipvlan.
    Ipvlan,
    /// macvlan.
    Macvlan,
    /// An 802.1Q sub-interface.
    Vlan,
    /// A veth pair on a bridge.
    Bridge,
    /// A whole NIC of the node.
    HostDevice,
    /// A whole AMD NIC of the node, by its device plugin.
    AmdHostDevice,
    /// A port of Open vSwitch.
    Ovs,
}

impl CniType {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Sriov,
        Self::Ipvlan,
        Self::Macvlan,
        Self::Vlan,
        Self::Bridge,
        Self::HostDevice,
        Self::AmdHostDevice,
        Self::Ovs,
    ];

    /// As written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sriov => "sriov",
            Self::Ipvlan => "ipvlan",
            Self::Macvlan => "macvlan",
            Self::Vlan => "vlan",
            Self::Bridge => "bridge",
            Self::HostDevice => "host-device",
            Self::AmdHostDevice => "amd-host-device",
            Self::Ovs => "ovs",
        }
    }
}

impl fmt::Display for CniType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for CniType {
    type Err = BadValue;

    fn from_str(s: &str) -> Result<Self, BadValue> {
        let known = Self::ALL.into_iter().find(|c| c.as_str() == s);
        known.ok_or_else(|| {
            BadValue::new(
                "a CNI type",
                s,
                "it is one of sriov, ipvlan, macvlan, vlan, bridge, host-device, amd-host-device, ovs",
            )
        })
    }
}

fn cni_type_or_empty(_: &mut SchemaGenerator) -> Schema {
    let mut choices: Vec<_> = CniType::ALL.iter().map(|c| c.as_str()).collect();
    choices.push("");
    json_schema!({ "type": "string", "nullable": true, "enum": choices })
}

/// Tagged or not.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum AttachmentType {
    /// Untagged.
    None,
    /// In a VLAN.
    Vlan,
}

/// Which addresses an interface gets. The published CRD writes a hyphen, the published functions
/// compare without one; both are read, and what was read decides nothing about what is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum IpFamilyPolicy {
    /// No addresses.
    #[serde(rename = "none")]
    None,
    /// One IPv4 address.
    #[serde(rename = "ipv4-only", alias = "ipv4only")]
    Ipv4Only,
    /// One IPv6 address.
    #[serde(rename = "ipv6-only", alias = "ipv6only")]
    Ipv6Only,
    /// One of each.
    #[serde(rename = "dual-stack", alias = "dualstack")]
    DualStack,
}

impl IpFamilyPolicy {
    /// The families, IPv4 first.
    pub fn families(self) -> &'static [Family] {
        match self {
            Self::None => &[],
            Self::Ipv4Only => &[Family::V4],
            Self::Ipv6Only => &[Family::V6],
            Self::DualStack => &[Family::V4, Family::V6],
        }
    }
}

/// By hand: the derive does not list aliases.
impl JsonSchema for IpFamilyPolicy {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "IpFamilyPolicy".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "Which addresses an interface gets. Both spellings mean the same.",
            "enum": ["none", "ipv4-only", "ipv4only", "ipv6-only", "ipv6only", "dual-stack", "dualstack"]
        })
    }
}

/// What the interface was given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InterfaceStatus {
    /// One answer per address.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub ip_claim_status: Vec<IPClaimStatus>,
    /// The VLAN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan_claim_status: Option<VLANClaimStatus>,
}
