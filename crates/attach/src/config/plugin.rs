//! The main plugins: which keys each one reads.
//!
//! Easy to get wrong: `vlan` is the key of sriov, bridge and ovs, `vlanId` that of the vlan plugin, and
//! macvlan and ipvlan have none: their VLAN is in the master's name ([`super::sub_interface`]).

use mooring_api::{IfName, VlanId};
use serde_json::{Map, Value, json};

use super::ConfigError;

const MACVLAN_MODES: [&str; 4] = ["bridge", "private", "vepa", "passthru"];
const IPVLAN_MODES: [&str; 3] = ["l2", "l3", "l3s"];

/// How the interface comes about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plugin {
    /// A MAC address of its own on a NIC.
    Macvlan {
        /// The NIC or its VLAN sub-interface.
        master: IfName,
        /// bridge (also when not said), private, vepa, passthru.
        mode: Option<String>,
        /// MTU; else the master's.
        mtu: Option<u32>,
    },
    /// The NIC's MAC address, addresses of its own. Needs IPAM.
    Ipvlan {
        /// The NIC or its VLAN sub-interface.
        master: IfName,
        /// l2 (also when not said), l3, l3s.
        mode: Option<String>,
        /// MTU; else the master's.
        mtu: Option<u32>,
    },
    /// An 802.1Q child of a NIC, in the pod. Needs IPAM.
    Vlan {
        /// The NIC.
        master: IfName,
        /// The VLAN.
        vlan: VlanId,
        /// MTU; else the master's.
        mtu: Option<u32>,
    },
    /// A veth on a Linux bridge.
    Bridge {
        /// The bridge.
        bridge: IfName,
        /// Access VLAN of the port.
        vlan: Option<VlanId>,
        /// MTU of the veth.
        mtu: Option<u32>,
    },
    /// A virtual function that the device plugin chose. An MTU is a chained tuning step: sriov reads none.
    Sriov {
        /// VLAN that the NIC tags.
        vlan: Option<VlanId>,
        /// MTU.
        mtu: Option<u32>,
    },
    /// A whole device of the host. An MTU is a chained tuning step.
    HostDevice {
        /// Which one.
        device: Device,
        /// MTU.
        mtu: Option<u32>,
    },
    /// A whole device whose addresses come with it. An MTU is a chained tuning step.
    AmdHostDevice {
        /// Which one; usually the device plugin's.
        device: Device,
        /// MTU.
        mtu: Option<u32>,
    },
    /// A port on an Open vSwitch bridge.
    Ovs {
        /// The bridge.
        bridge: IfName,
        /// Access VLAN of the port.
        vlan: Option<VlanId>,
        /// MTU.
        mtu: Option<u32>,
    },
}

/// Which device of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Device {
    /// By interface name.
    Name(IfName),
    /// By PCI address, such as `0000:01:00.0`.
    Pci(String),
    /// The one that the device plugin allocated: the runtime injects its PCI address.
    Allocated,
}

impl Plugin {
    /// The plugin's `type`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Macvlan { .. } => "macvlan",
            Self::Ipvlan { .. } => "ipvlan",
            Self::Vlan { .. } => "vlan",
            Self::Bridge { .. } => "bridge",
            Self::Sriov { .. } => "sriov",
            Self::HostDevice { .. } => "host-device",
            Self::AmdHostDevice { .. } => "amd-host-device",
            Self::Ovs { .. } => "ovs",
        }
    }

    /// ipvlan and vlan refuse to make a link without addresses.
    pub(super) fn needs_ipam(&self) -> bool {
        matches!(self, Self::Ipvlan { .. } | Self::Vlan { .. })
    }

    /// The plugin's own keys, `type` first.
    pub(super) fn object(&self) -> Result<Map<String, Value>, ConfigError> {
        let mut map = Map::new();
        let mut set = |key: &str, value: Value| {
            if !value.is_null() {
                map.insert(key.to_owned(), value);
            }
        };
        let vlan_value = |vlan: &Option<VlanId>| json!(vlan.map(VlanId::get));
        set("type", self.type_name().into());
        match self {
            Self::Macvlan { master, mode, mtu } => {
                set("master", master.as_str().into());
                set("mode", self.mode(mode.as_deref(), &MACVLAN_MODES)?.into());
                set("mtu", json!(mtu));
            }
            Self::Ipvlan { master, mode, mtu } => {
                set("master", master.as_str().into());
                set("mode", self.mode(mode.as_deref(), &IPVLAN_MODES)?.into());
                set("mtu", json!(mtu));
            }
            Self::Vlan { master, vlan, mtu } => {
                set("master", master.as_str().into());
                set("vlanId", vlan.get().into());
                set("mtu", json!(mtu));
            }
            Self::Bridge { bridge, vlan, mtu } | Self::Ovs { bridge, vlan, mtu } => {
                set("bridge", bridge.as_str().into());
                set("vlan", vlan_value(vlan));
                set("mtu", json!(mtu));
            }
            Self::Sriov { vlan, mtu: _ } => set("vlan", vlan_value(vlan)),
            Self::HostDevice { device, mtu: _ } | Self::AmdHostDevice { device, mtu: _ } => {
                match device {
                    Device::Name(name) => set("device", name.as_str().into()),
                    Device::Pci(address) => set("pciBusID", address.as_str().into()),
                    Device::Allocated => {}
                }
            }
        }
        Ok(map)
    }

    /// The steps after the plugin.
    pub(super) fn chained(&self) -> Vec<Map<String, Value>> {
        let mtu = match self {
            Self::Sriov { mtu, .. }
            | Self::HostDevice { mtu, .. }
            | Self::AmdHostDevice { mtu, .. } => *mtu,
            _ => None,
        };
        let tuning = |mtu: u32| {
            let keys = [("type", json!("tuning")), ("mtu", json!(mtu))];
            keys.map(|(k, v)| (k.to_owned(), v)).into_iter().collect()
        };
        mtu.map(tuning).into_iter().collect()
    }

    /// The first mode is the plugin's default; it is written all the same, as in the seed.
    fn mode<'m>(&self, mode: Option<&'m str>, known: &[&'m str]) -> Result<&'m str, ConfigError> {
        let wanted = mode.unwrap_or(known[0]);
        if known.contains(&wanted) {
            return Ok(wanted);
        }
        Err(ConfigError::UnknownMode {
            plugin: self.type_name(),
            mode: wanted.to_owned(),
            known: known.join(", "),
        })
    }
}
