//! A virtual function of an SR-IOV NIC, as its physical function sees it.

use serde::{Deserialize, Serialize};

use super::VlanProtocol;
use crate::Mac;

/// A VF as its PF sees it. `None` is what the driver does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Vf {
    /// Its number, from 0.
    pub number: u32,
    /// The address that the PF gives it; all zero means that the guest may choose.
    pub mac: Option<Mac>,
    /// The VLAN that the PF puts it in; id 0 is none.
    pub vlan: VfVlan,
    /// Transmit rates in Mbit/s; 0 is none.
    pub rate: VfRate,
    /// Drops frames with a source that is not its own.
    pub spoof_check: Option<bool>,
    /// May become promiscuous and choose its address.
    pub trust: Option<bool>,
    /// Follows the wire, or not.
    pub link_state: Option<VfLinkState>,
    /// May read its RSS configuration.
    pub rss_query: Option<bool>,
}

/// The VLAN of a VF.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct VfVlan {
    /// Its id; 0 is none.
    pub id: u16,
    /// Its priority, 0 to 7.
    pub qos: u8,
    /// Its tag.
    pub protocol: VlanProtocol,
}

/// Transmit rates of a VF in Mbit/s; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct VfRate {
    /// Guaranteed.
    pub min: u32,
    /// Bound.
    pub max: u32,
}

/// Whether a VF's link follows the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VfLinkState {
    /// As the PF's.
    Auto,
    /// Up, so that VFs of one PF talk without a wire.
    Enable,
    /// Down.
    Disable,
}

/// What to change of a VF; what is `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct VfChange {
    /// Its address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<Mac>,
    /// Its VLAN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vlan: Option<VfVlan>,
    /// Its rates; both are set together, as the kernel does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<VfRate>,
    /// Spoof check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spoof_check: Option<bool>,
    /// Trust.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<bool>,
    /// Link state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_state: Option<VfLinkState>,
}

impl VfChange {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What brings `seen` to `wanted`, leaving alone what the driver does not say.
    pub fn between(wanted: &Vf, seen: &Vf) -> Self {
        fn differs<T: PartialEq + Copy>(wanted: Option<T>, seen: Option<T>) -> Option<T> {
            wanted.filter(|_| wanted != seen)
        }
        Self {
            mac: differs(wanted.mac, seen.mac),
            vlan: (wanted.vlan != seen.vlan).then_some(wanted.vlan),
            rate: (wanted.rate != seen.rate).then_some(wanted.rate),
            spoof_check: differs(wanted.spoof_check, seen.spoof_check),
            trust: differs(wanted.trust, seen.trust),
            link_state: differs(wanted.link_state, seen.link_state),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_and_what_the_driver_says_is_changed() {
        let seen = Vf {
            number: 3,
            mac: Some("02:00:00:00:00:01".parse().unwrap()),
            spoof_check: Some(true),
            trust: None,
            ..Vf::default()
        };
        assert!(VfChange::between(&seen, &seen).is_empty());
        let wanted = Vf {
            mac: None,
            vlan: VfVlan {
                id: 100,
                ..VfVlan::default()
            },
            spoof_check: Some(false),
            trust: Some(true),
            ..seen.clone()
        };
        let change = VfChange::between(&wanted, &seen);
        assert_eq!(change.vlan.map(|vlan| vlan.id), Some(100));
        assert_eq!(
            (change.spoof_check, change.trust),
            (Some(false), Some(true))
        );
        assert_eq!(
            (change.mac, change.rate, change.link_state),
            (None, None, None)
        );
    }
}
