//! A link: one that was seen, one to be made, and a change of one.

use serde::{Deserialize, Serialize};

use super::{Bridge, BridgePort, Vf};
use crate::Mac;

/// A link as the kernel shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Link {
    /// Its number in its namespace.
    pub index: u32,
    /// Its name there.
    pub name: String,
    /// What it is; [`LinkKind::Device`] for hardware and loopback.
    pub kind: LinkKind,
    /// ARPHRD number: 1 Ethernet, 772 loopback, 32 InfiniBand.
    pub hardware: u16,
    /// Its address now, where it has six bytes.
    pub mac: Option<Mac>,
    /// The address its hardware came with.
    pub permanent_mac: Option<Mac>,
    /// Largest packet.
    pub mtu: u32,
    /// Smallest MTU its driver takes; 0 when it does not say.
    pub min_mtu: u32,
    /// Largest MTU its driver takes; 0 when it does not say.
    pub max_mtu: u32,
    /// Administratively up.
    pub up: bool,
    /// The wire (or the parent) is there.
    pub carrier: bool,
    /// RFC 2863 state.
    pub state: OperState,
    /// Promiscuous by a user's wish (the flag, not the count of listeners).
    pub promiscuous: bool,
    /// Takes all multicast by a user's wish.
    pub all_multicast: bool,
    /// Does ARP.
    pub arp: bool,
    /// Takes part in multicast.
    pub multicast: bool,
    /// Transmit queue length.
    pub txqlen: u32,
    /// Free text of the administrator.
    pub alias: Option<String>,
    /// Further names.
    pub altnames: Vec<String>,
    /// The bridge, VRF or bond it belongs to.
    pub master: Option<u32>,
    /// The link below it, or a veth's other end; see `parent_netns`.
    pub parent: Option<u32>,
    /// The kernel's id of the namespace of `parent`, when it is another one.
    pub parent_netns: Option<i32>,
    /// Device group.
    pub group: u32,
    /// The bus address of its device, such as `0000:3b:00.0`, where the kernel says it (5.14 and newer).
    pub device: Option<String>,
    /// The name its port has on the NIC, such as `p0` or `pf0vf1`.
    pub port_name: Option<String>,
    /// What it is as a port of a bridge.
    pub port: Option<BridgePort>,
    /// How many VFs are enabled; only of a PF.
    pub vf_count: Option<u32>,
    /// The VFs, where they were asked for.
    pub vfs: Vec<Vf>,
}

/// What a link is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LinkKind {
    /// Hardware, loopback: the kernel names no kind.
    #[default]
    Device,
    /// One end of a pair.
    Veth,
    /// A bridge.
    Bridge(Bridge),
    /// A macvlan child.
    #[serde(rename_all = "camelCase")]
    Macvlan {
        /// How children of one parent see each other.
        mode: MacvlanMode,
        /// Length of the broadcast queue; the kernel's default is 1000.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        broadcast_queue: Option<u32>,
    },
    /// An ipvlan child.
    Ipvlan {
        /// Where it switches or routes.
        mode: IpvlanMode,
        /// How children of one parent see each other.
        #[serde(default)]
        flag: IpvlanFlag,
    },
    /// A VLAN sub-interface.
    Vlan {
        /// Its id, 0 to 4094.
        id: u16,
        /// Its tag.
        #[serde(default)]
        protocol: VlanProtocol,
    },
    /// A VRF.
    Vrf {
        /// Its routing table.
        table: u32,
    },
    /// A link that drops what it is given.
    Dummy,
    /// Any other kind, by the kernel's word.
    Other(String),
}

impl LinkKind {
    /// The kernel's word for it; empty for a device.
    pub fn word(&self) -> &str {
        match self {
            Self::Device => "",
            Self::Veth => "veth",
            Self::Bridge(_) => "bridge",
            Self::Macvlan { .. } => "macvlan",
            Self::Ipvlan { .. } => "ipvlan",
            Self::Vlan { .. } => "vlan",
            Self::Vrf { .. } => "vrf",
            Self::Dummy => "dummy",
            Self::Other(word) => word,
        }
    }
}

/// How macvlan children of one parent see each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MacvlanMode {
    /// They never do.
    Private,
    /// Through the switch outside.
    Vepa,
    /// Directly.
    #[default]
    Bridge,
    /// One child has the parent for itself.
    Passthru,
    /// By listed source addresses.
    Source,
}

/// Where an ipvlan switches or routes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IpvlanMode {
    /// Layer 2.
    #[default]
    L2,
    /// Layer 3, past the host's netfilter.
    L3,
    /// Layer 3, through the host's netfilter.
    L3s,
}

/// How ipvlan children of one parent see each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IpvlanFlag {
    /// Directly.
    #[default]
    Bridge,
    /// They never do.
    Private,
    /// Through the switch outside.
    Vepa,
}

/// The tag of a VLAN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum VlanProtocol {
    /// 0x8100.
    #[default]
    #[serde(rename = "802.1q")]
    Dot1q,
    /// 0x88a8, the outer tag of QinQ.
    #[serde(rename = "802.1ad")]
    Dot1ad,
}

impl VlanProtocol {
    /// The Ethernet type.
    pub fn ethertype(self) -> u16 {
        match self {
            Self::Dot1q => 0x8100,
            Self::Dot1ad => 0x88a8,
        }
    }

    /// The protocol of an Ethernet type.
    pub fn of(ethertype: u16) -> Option<Self> {
        match ethertype {
            0x8100 => Some(Self::Dot1q),
            0x88a8 => Some(Self::Dot1ad),
            _ => None,
        }
    }
}

/// The state of RFC 2863.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OperState {
    /// The driver does not say.
    #[default]
    Unknown,
    /// A part is missing.
    #[serde(rename = "notpresent")]
    NotPresent,
    /// Down.
    Down,
    /// Something below is down.
    #[serde(rename = "lowerlayerdown")]
    LowerLayerDown,
    /// Under test.
    Testing,
    /// Waits for an event from outside.
    Dormant,
    /// Up.
    Up,
}

/// How the kernel makes IPv6 link-local addresses of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AddrGenMode {
    /// From its MAC.
    Eui64,
    /// None is made.
    None,
    /// From a secret.
    StablePrivacy,
    /// From a secret that is random.
    Random,
}

/// A link to be made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NewLink {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: LinkKind,
    /// The link below it, as an index of the namespace of the socket that makes it (also when the new link goes
    /// elsewhere).
    pub parent: Option<u32>,
    /// The other end, for a veth.
    pub peer: Option<Peer>,
    /// A wish for its index; the kernel chooses otherwise.
    pub index: Option<u32>,
    /// Everything that can also be changed later. `set.name` is not looked at.
    pub set: LinkChange,
}

impl NewLink {
    /// A link of that name and kind, with the kernel's defaults.
    pub fn new(name: impl Into<String>, kind: LinkKind) -> Self {
        Self {
            name: name.into(),
            kind,
            ..Self::default()
        }
    }

    /// Puts it on another link.
    #[must_use]
    pub fn on(mut self, parent: u32) -> Self {
        self.parent = Some(parent);
        self
    }

    /// A pair: `name` here, `peer` at the other end.
    pub fn veth(name: impl Into<String>, peer: impl Into<String>) -> Self {
        let mut link = Self::new(name, LinkKind::Veth);
        link.peer = Some(Peer {
            name: peer.into(),
            set: LinkChange::default(),
        });
        link
    }
}

/// The other end of a veth.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Peer {
    /// Its name.
    pub name: String,
    /// Its attributes. `up` is not looked at: the kernel opens no end before the pair is whole.
    pub set: LinkChange,
}

/// What to change of a link; what is `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LinkChange {
    /// A new name; older kernels want the link down for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A new address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<Mac>,
    /// A new MTU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// Up or down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up: Option<bool>,
    /// Promiscuous.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promiscuous: Option<bool>,
    /// All multicast.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all_multicast: Option<bool>,
    /// ARP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arp: Option<bool>,
    /// Multicast.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multicast: Option<bool>,
    /// Transmit queue length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub txqlen: Option<u32>,
    /// Free text; empty takes it away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// The bridge, VRF or bond to join; 0 leaves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub master: Option<u32>,
    /// Device group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<u32>,
    /// How link-local addresses are made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub addr_gen: Option<AddrGenMode>,
    /// Attributes of its kind, such as a bridge's VLAN filtering. Of a new link [`NewLink::kind`] says them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<LinkKind>,
}

impl LinkChange {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Just up.
    pub fn up() -> Self {
        Self {
            up: Some(true),
            ..Self::default()
        }
    }

    /// Just down.
    pub fn down() -> Self {
        Self {
            up: Some(false),
            ..Self::default()
        }
    }
}
