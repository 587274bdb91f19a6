//! The keys of a sriov configuration, as a wish for a VF.
//!
//! Easy to get wrong: a VLAN of 0 is a wish too (no VLAN), and not the absence of one; what is absent is left as it is.

use mooring_api::Mac;
use mooring_api::net::{Vf, VfChange, VfLinkState, VfRate, VfVlan, VlanProtocol};
use mooring_attach::cni::{CniArgs, CniError, Config};
use mooring_host::pci::Bdf;
use serde::Deserialize;

use crate::call::Call;

#[derive(Deserialize)]
struct Keys {
    #[serde(default, rename = "deviceID")]
    device_id: String,
    #[serde(default)]
    mac: String,
    vlan: Option<i64>,
    #[serde(rename = "vlanQoS")]
    vlan_qos: Option<i64>,
    #[serde(rename = "vlanProto")]
    vlan_proto: Option<String>,
    #[serde(default)]
    spoofchk: String,
    #[serde(default)]
    trust: String,
    #[serde(default)]
    link_state: String,
    min_tx_rate: Option<i64>,
    max_tx_rate: Option<i64>,
}

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wish {
    /// The VF.
    pub(super) device: Bdf,
    pub(super) mac: Option<Mac>,
    pub(super) vlan: Option<VfVlan>,
    pub(super) min_rate: Option<u32>,
    pub(super) max_rate: Option<u32>,
    pub(super) spoof_check: Option<bool>,
    pub(super) trust: Option<bool>,
    pub(super) link_state: Option<VfLinkState>,
}

impl Wish {
    /// The wish of a call.
    pub(super) fn read(call: &Call) -> Result<Self, CniError> {
        Self::named(call)?.ok_or_else(|| {
            CniError::config(
                "deviceID",
                "missing: the PCI address of a VF, which a device plugin gives through the resourceName of the NetworkAttachmentDefinition",
            )
        })
    }

    /// The same where a VF is named; without one, whether the other keys are sound.
    pub(super) fn named(call: &Call) -> Result<Option<Self>, CniError> {
        Self::of(call.config(), &call.request.args)
    }

    fn of(config: &Config, args: &CniArgs) -> Result<Option<Self>, CniError> {
        let keys: Keys = config.keys()?;
        let device = match config.runtime.text("deviceID").unwrap_or(&keys.device_id) {
            "" => None,
            text => Some(text.parse().map_err(|e| CniError::config("deviceID", e))?),
        };
        let given = config.runtime.text("mac");
        let given = given
            .map(|mac| ("runtimeConfig.mac", mac))
            .or_else(|| args.get("MAC").map(|mac| ("CNI_ARGS MAC", mac)))
            .unwrap_or(("mac", &keys.mac));
        let mac = match given {
            (_, "") => None,
            (field, text) => Some(text.parse().map_err(|e| CniError::config(field, e))?),
        };
        let min_rate = number("min_tx_rate", keys.min_tx_rate, 0..=i64::from(u32::MAX))?;
        let max_rate = number("max_tx_rate", keys.max_tx_rate, 0..=i64::from(u32::MAX))?;
        if let (Some(min), Some(max)) = (min_rate, max_rate)
            && max != 0
            && min > max
        {
            let why = format!("{min} is above max_tx_rate, {max}");
            return Err(CniError::config("min_tx_rate", why));
        }
        let link_state = match keys.link_state.as_str() {
            "" => None,
            "auto" => Some(VfLinkState::Auto),
            "enable" => Some(VfLinkState::Enable),
            "disable" => Some(VfLinkState::Disable),
            other => {
                let why = format!("{other:?} is not one of auto, enable and disable");
                return Err(CniError::config("link_state", why));
            }
        };
        let vlan = vlan(&keys)?;
        let spoof_check = switch("spoofchk", &keys.spoofchk)?;
        let trust = switch("trust", &keys.trust)?;
        Ok(device.map(|device| Self {
            device,
            mac,
            vlan,
            min_rate,
            max_rate,
            spoof_check,
            trust,
            link_state,
        }))
    }

    /// Whether the physical function is to set anything.
    pub(super) fn is_any(&self) -> bool {
        !self.change(&Vf::default()).is_empty()
    }

    /// What to set, given what there was: a rate that is not asked for stays.
    pub(super) fn change(&self, before: &Vf) -> VfChange {
        let rate = (self.min_rate.is_some() || self.max_rate.is_some()).then(|| VfRate {
            min: self.min_rate.unwrap_or(before.rate.min),
            max: self.max_rate.unwrap_or(before.rate.max),
        });
        VfChange {
            mac: self.mac,
            vlan: self.vlan,
            rate,
            spoof_check: self.spoof_check,
            trust: self.trust,
            link_state: self.link_state,
        }
    }

    /// What was asked for and is not there. What a driver does not say is not judged.
    pub(super) fn missing(&self, seen: &Vf) -> Vec<String> {
        fn differs<T: PartialEq>(wanted: Option<T>, seen: Option<T>) -> bool {
            wanted.is_some() && seen.is_some() && wanted != seen
        }
        let wanted = self.change(seen);
        let all = [
            ("VLAN", wanted.vlan.is_some_and(|vlan| vlan != seen.vlan)),
            ("MAC", differs(wanted.mac, seen.mac)),
            ("rates", wanted.rate.is_some_and(|rate| rate != seen.rate)),
            ("spoof check", differs(wanted.spoof_check, seen.spoof_check)),
            ("trust", differs(wanted.trust, seen.trust)),
            ("link state", differs(wanted.link_state, seen.link_state)),
        ];
        let missing = all.into_iter().filter(|(_, differs)| *differs);
        missing
            .map(|(what, _)| format!("its {what} was changed"))
            .collect()
    }
}

fn vlan(keys: &Keys) -> Result<Option<VfVlan>, CniError> {
    let id: Option<u16> = number("vlan", keys.vlan, 0..=4094)?;
    let qos: Option<u8> = number("vlanQoS", keys.vlan_qos, 0..=7)?;
    let protocol = match keys
        .vlan_proto
        .as_deref()
        .map(str::to_ascii_lowercase)
        .as_deref()
    {
        None | Some("" | "802.1q") => VlanProtocol::Dot1q,
        Some("802.1ad") => VlanProtocol::Dot1ad,
        Some(other) => {
            let why = format!("{other:?} is neither 802.1q nor 802.1ad");
            return Err(CniError::config("vlanProto", why));
        }
    };
    let tagged = id.is_some_and(|id| id != 0);
    if !tagged && qos.is_some_and(|qos| qos != 0) {
        return Err(CniError::config(
            "vlanQoS",
            "a priority needs a vlan above 0",
        ));
    }
    if !tagged && protocol == VlanProtocol::Dot1ad {
        return Err(CniError::config(
            "vlanProto",
            "802.1ad needs a vlan above 0",
        ));
    }
    Ok(id.map(|id| VfVlan {
        id,
        qos: qos.unwrap_or(0),
        protocol,
    }))
}

fn number<T: TryFrom<i64>>(
    field: &str,
    value: Option<i64>,
    allowed: std::ops::RangeInclusive<i64>,
) -> Result<Option<T>, CniError> {
    let Some(value) = value else { return Ok(None) };
    let inside = allowed.contains(&value).then(|| T::try_from(value).ok());
    inside.flatten().map(Some).ok_or_else(|| {
        let (first, last) = (allowed.start(), allowed.end());
        CniError::config(field, format!("{value} is not between {first} and {last}"))
    })
}

fn switch(field: &str, value: &str) -> Result<Option<bool>, CniError> {
    match value {
        "" => Ok(None),
        "on" => Ok(Some(true)),
        "off" => Ok(Some(false)),
        other => Err(CniError::config(
            field,
            format!("{other:?} is neither on nor off"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use mooring_attach::cni::Verb;

    use super::*;

    fn wish(keys: &str, args: &str) -> Result<Wish, CniError> {
        let text = format!(
            r#"{{"cniVersion":"1.0.0","name":"n","type":"sriov","deviceID":"0000:01:10.0"{keys}}}"#
        );
        let config = Config::parse(Verb::Add, text.as_bytes()).expect("a configuration");
        Wish::of(&config, &CniArgs::parse(args)).map(|wish| wish.expect("a VF is named"))
    }

    fn good(keys: &str) -> Wish {
        wish(keys, "").expect(keys)
    }

    #[test]
    fn every_key_is_read_and_an_absent_one_changes_nothing() {
        assert!(!good("").is_any());
        let all = good(
            r#","vlan":100,"vlanQoS":3,"vlanProto":"802.1AD","mac":"02:00:00:00:00:AA","spoofchk":"off",
            "trust":"on","link_state":"enable","min_tx_rate":10,"max_tx_rate":100"#,
        );
        let wanted = VfChange {
            mac: "02:00:00:00:00:aa".parse().ok(),
            vlan: Some(VfVlan {
                id: 100,
                qos: 3,
                protocol: VlanProtocol::Dot1ad,
            }),
            rate: Some(VfRate { min: 10, max: 100 }),
            spoof_check: Some(false),
            trust: Some(true),
            link_state: Some(VfLinkState::Enable),
        };
        assert_eq!(all.change(&Vf::default()), wanted);
    }

    #[test]
    fn vlan_0_is_a_wish_and_one_rate_leaves_the_other() {
        assert_eq!(good(r#","vlan":0"#).vlan, Some(VfVlan::default()));
        let before = Vf {
            rate: VfRate { min: 5, max: 50 },
            ..Vf::default()
        };
        let rate = good(r#","max_tx_rate":0"#).change(&before).rate;
        assert_eq!(rate, Some(VfRate { min: 5, max: 0 }));
    }

    #[test]
    fn the_runtimes_mac_wins_over_cni_args_and_those_over_the_key_and_an_empty_one_over_none() {
        let mac = |keys: &str, args: &str| wish(keys, args).expect(keys).mac.map(|m| m.octets()[5]);
        let key = r#","mac":"02:00:00:00:00:01""#;
        let runtime = r#","mac":"02:00:00:00:00:01","runtimeConfig":{"mac":"02:00:00:00:00:03"}"#;
        assert_eq!(mac(key, ""), Some(1));
        assert_eq!(mac(key, "IgnoreUnknown=1;MAC=02:00:00:00:00:02"), Some(2));
        assert_eq!(mac(runtime, "MAC=02:00:00:00:00:02"), Some(3));
        let empty = r#","mac":"02:00:00:00:00:01","runtimeConfig":{"mac":""}"#;
        assert_eq!(mac(empty, "MAC=02:00:00:00:00:02"), Some(2));
        assert_eq!(mac(empty, "MAC="), Some(1));
    }

    #[test]
    fn the_runtimes_device_wins() {
        let other = good(r#","runtimeConfig":{"deviceID":"0000:01:10.2"}"#);
        assert_eq!(other.device.as_str(), "0000:01:10.2");
    }

    #[test]
    fn each_refusal_names_its_key() {
        for (keys, named) in [
            (r#","vlan":4095"#, "vlan"),
            (r#","vlan":-1"#, "vlan"),
            (r#","vlan":"7""#, "vlan"),
            (r#","vlan":7,"vlanQoS":8"#, "vlanQoS"),
            (r#","vlanQoS":3"#, "vlanQoS"),
            (r#","vlan":0,"vlanQoS":3"#, "vlanQoS"),
            (r#","vlan":7,"vlanProto":"802.1x""#, "vlanProto"),
            (r#","vlan":0,"vlanProto":"802.1ad""#, "vlanProto"),
            (r#","mac":"nonsense""#, "mac"),
            (r#","spoofchk":"yes""#, "spoofchk"),
            (r#","trust":"maybe""#, "trust"),
            (r#","link_state":"up""#, "link_state"),
            (r#","min_tx_rate":-1"#, "min_tx_rate"),
            (r#","min_tx_rate":9,"max_tx_rate":8"#, "min_tx_rate"),
            (r#","runtimeConfig":{"deviceID":"x"}"#, "deviceID"),
        ] {
            let error = wish(keys, "").expect_err(keys);
            assert_eq!(error.code, CniError::CONFIG, "{keys}");
            let said = format!("{} {}", error.msg, error.details);
            assert!(said.contains(named), "{keys}: {said}");
        }
    }

    #[test]
    fn check_names_each_setting_that_was_changed_and_judges_none_that_a_driver_hides() {
        let wish = good(r#","vlan":100,"trust":"on","spoofchk":"on""#);
        let mut seen = Vf {
            trust: Some(true),
            ..Vf::default()
        };
        seen.vlan.id = 100;
        assert!(wish.missing(&seen).is_empty());
        seen.trust = Some(false);
        seen.vlan.qos = 1;
        assert_eq!(
            wish.missing(&seen),
            ["its VLAN was changed", "its trust was changed"]
        );
    }
}
