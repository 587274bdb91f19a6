//! The network of an attachment. Layer2Attachment, VRFAttachment and PodNetwork share it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Cidr, Family, VlanId};

/// The network; everything is written by the user. It never changes: make another attachment instead.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    { "rule": "!has(self.subnet) || cidr(self.subnet).ip().family() == 6",
      "message": "is the IPv6 subnet, and this is IPv4; write it as ipv4.subnet", "fieldPath": ".subnet" },
    { "rule": "!has(self.ipv4) || !has(self.ipv4.subnet) || cidr(self.ipv4.subnet).ip().family() == 4",
      "message": "has an IPv6 subnet; write it as subnet", "fieldPath": ".ipv4" },
    { "rule": "!has(self.disablev6) || !self.disablev6 || !has(self.subnet)",
      "message": "switches IPv6 off, but there is an IPv6 subnet; remove one of them", "fieldPath": ".disablev6" },
]))]
pub struct NetworkSpec {
    /// The VLAN.
    #[serde(default, rename = "vlanID", skip_serializing_if = "Option::is_none")]
    pub vlan_id: Option<VlanId>,
    /// The VXLAN network identifier of the segment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 16_777_215))]
    pub vni: Option<u32>,
    /// The IPv6 subnet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subnet: Option<Cidr>,
    /// IPv4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv4: Option<Ipv4Config>,
    /// No IPv6.
    #[serde(default, rename = "disablev6")]
    pub disable_v6: bool,
    /// Reserved: a network of OpenStack or vSphere. Not processed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub network_name: Option<String>,
    /// Reserved: the allocation class of BM4X, such as `public/internet`. Not processed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub harmonization: Option<String>,
}

/// IPv4 of a network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ipv4Config {
    /// The IPv4 subnet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subnet: Option<Cidr>,
    /// Reserved: how many addresses are needed. Not processed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub size: Option<u32>,
}

impl NetworkSpec {
    /// The subnets, IPv4 first.
    pub fn subnets(&self) -> impl Iterator<Item = Cidr> + '_ {
        [Family::V4, Family::V6]
            .into_iter()
            .filter_map(|family| self.subnet_of(family))
    }

    /// The subnet of a family.
    pub fn subnet_of(&self, family: Family) -> Option<Cidr> {
        match family {
            Family::V4 => self.ipv4.as_ref().and_then(|v4| v4.subnet),
            Family::V6 => self.subnet,
        }
    }

    /// The reserved fields that are set: accepted, and not acted upon.
    pub fn reserved(&self) -> Vec<&'static str> {
        let size = self.ipv4.as_ref().and_then(|v4| v4.size);
        let fields = [
            ("spec.network.networkName", self.network_name.is_some()),
            ("spec.network.harmonization", self.harmonization.is_some()),
            ("spec.network.ipv4.size", size.is_some()),
        ];
        let set = fields.into_iter().filter(|(_, set)| *set);
        set.map(|(field, _)| field).collect()
    }
}
