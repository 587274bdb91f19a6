//! A bridge, a port of one, and the VLANs of a port.

use serde::{Deserialize, Serialize};

use super::VlanProtocol;

/// Attributes of a bridge; what is `None` stays, or has the kernel's default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Bridge {
    /// Looks at VLAN tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vlan_filtering: Option<bool>,
    /// The VLAN a new port gets; 0 for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_pvid: Option<u16>,
    /// The tag it filters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vlan_protocol: Option<VlanProtocol>,
    /// Spanning tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stp: Option<bool>,
    /// Multicast snooping.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multicast_snooping: Option<bool>,
    /// How long an address is remembered, in hundredths of a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ageing: Option<u32>,
    /// Delay before a port forwards, in hundredths of a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forward_delay: Option<u32>,
}

/// Attributes of a port; what is `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BridgePort {
    /// Frames may go back out of the port they came in by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hairpin: Option<bool>,
    /// Sees no other isolated port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolated: Option<bool>,
    /// Shuts the port when a BPDU arrives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guard: Option<bool>,
    /// Never becomes the root port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_block: Option<bool>,
    /// Leaves multicast groups at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fast_leave: Option<bool>,
    /// Learns addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learning: Option<bool>,
    /// Floods unknown unicast.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flood: Option<bool>,
    /// Floods multicast.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multicast_flood: Option<bool>,
    /// Floods broadcast.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broadcast_flood: Option<bool>,
    /// Answers ARP for others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy_arp: Option<bool>,
    /// Keeps ARP and ND to itself where it knows the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub neighbour_suppress: Option<bool>,
    /// Takes frames only from known addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locked: Option<bool>,
    /// Spanning-tree cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<u32>,
    /// Spanning-tree priority.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u16>,
}

/// A range of VLANs of a port, or of the bridge itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BridgeVlan {
    /// The port, or the bridge.
    pub index: u32,
    /// First id.
    pub first: u16,
    /// Last id, equal to `first` for one VLAN.
    pub last: u16,
    /// Untagged frames that come in belong to it; only for a single VLAN.
    pub pvid: bool,
    /// Frames go out without a tag.
    pub untagged: bool,
    /// `index` is the bridge itself, not a port.
    pub on_bridge: bool,
}

impl BridgeVlan {
    /// One VLAN of a port, tagged.
    pub fn tagged(index: u32, id: u16) -> Self {
        Self::range(index, id, id)
    }

    /// A range of VLANs of a port, tagged.
    pub fn range(index: u32, first: u16, last: u16) -> Self {
        Self {
            index,
            first,
            last,
            ..Self::default()
        }
    }

    /// The VLAN of an access port: untagged in and out.
    pub fn access(index: u32, id: u16) -> Self {
        Self {
            pvid: true,
            untagged: true,
            ..Self::tagged(index, id)
        }
    }
}
