//! The keys that name a device: of the configuration, of the runtime, and what Multus injects.
//!
//! ```text
//!  runtimeConfig.deviceID ► device ► hwaddr ► kernelpath ► pciBusID ► deviceID
//! ```
//!
//! Shared by host-device and amd-host-device. Easy to get wrong: Multus injects `deviceID` *and* `pciBusID` at the top level; the
//! reference reads only the second one.

use std::path::{Component, Path};

use mooring_api::Mac;
use mooring_attach::cni::{CniError, Config};
use mooring_host::device::Selector;
use mooring_host::pci::{Bdf, Devices};
use serde::Deserialize;

#[derive(Deserialize)]
struct Keys {
    #[serde(default)]
    device: String,
    #[serde(default)]
    hwaddr: String,
    #[serde(default)]
    kernelpath: String,
    #[serde(default, rename = "pciBusID")]
    pci_bus_id: String,
    #[serde(default, rename = "deviceID")]
    device_id: String,
}

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// How the device is named.
    pub(crate) selector: Selector,
    /// The driver of user space that has it: then there is no interface to move.
    pub(crate) userspace: Option<String>,
}

/// What a configuration asks for.
pub(crate) fn wanted(config: &Config, devices: &Devices) -> Result<Wanted, CniError> {
    let selector = named(config, devices)?.ok_or_else(missing)?;
    let userspace = match &selector {
        Selector::Pci(bdf) => devices
            .userspace_driver(bdf)
            .map_err(|e| CniError::io(format!("cannot read the driver of {bdf}"), e))?,
        _ => None,
    };
    Ok(Wanted {
        selector,
        userspace,
    })
}

/// The device that a configuration names, if any.
pub(crate) fn named(config: &Config, devices: &Devices) -> Result<Option<Selector>, CniError> {
    let keys: Keys = config.keys()?;
    match config.runtime.get("deviceID") {
        None => {}
        Some(id) => match id.as_str() {
            Some("") => {}
            Some(id) => return on_a_bus("runtimeConfig.deviceID", id, devices).map(Some),
            None => return Err(CniError::config("runtimeConfig.deviceID", "it is no text")),
        },
    }
    if !keys.device.is_empty() {
        return Ok(Some(Selector::Name(keys.device)));
    }
    if !keys.hwaddr.is_empty() {
        let mac: Mac = keys
            .hwaddr
            .parse()
            .map_err(|e| CniError::config("hwaddr", e))?;
        return Ok(Some(Selector::Mac(mac)));
    }
    if !keys.kernelpath.is_empty() {
        let path = Path::new(&keys.kernelpath);
        let inside = path.starts_with("/sys/devices")
            && !path.components().any(|c| matches!(c, Component::ParentDir));
        if !inside {
            let why = format!(
                "{:?} must be an absolute path below /sys/devices/",
                keys.kernelpath
            );
            return Err(CniError::config("kernelpath", why));
        }
        return Ok(Some(Selector::Path(path.to_owned())));
    }
    if !keys.pci_bus_id.is_empty() {
        let bdf: Bdf = keys
            .pci_bus_id
            .parse()
            .map_err(|e| CniError::config("pciBusID", e))?;
        return Ok(Some(Selector::Pci(bdf)));
    }
    if !keys.device_id.is_empty() {
        return on_a_bus("deviceID", &keys.device_id, devices).map(Some);
    }
    Ok(None)
}

/// For a configuration that names none.
pub(crate) fn missing() -> CniError {
    CniError::config(
        "device",
        "name the device: write one of device, hwaddr, kernelpath, pciBusID or deviceID, or let a device plugin inject deviceID",
    )
}

/// An id that a device plugin gave: a PCI address, or a name on the auxiliary bus.
fn on_a_bus(field: &str, id: &str, devices: &Devices) -> Result<Selector, CniError> {
    if let Ok(bdf) = id.parse::<Bdf>() {
        // Also one that is not there: whoever has its record gets it back, and an ADD says that it is absent.
        return Ok(Selector::Pci(bdf));
    }
    if devices.has_auxiliary(id) {
        return Ok(Selector::Auxiliary(id.to_owned()));
    }
    let why = format!("{id:?} is neither on the PCI bus nor on the auxiliary bus of this node");
    Err(CniError::config(field, why))
}

#[cfg(test)]
mod tests {
    use mooring_attach::cni::Verb;

    use super::*;

    fn asked(keys: &str) -> Result<Wanted, CniError> {
        let text = format!(r#"{{"cniVersion":"1.0.0","name":"n","type":"host-device",{keys}}}"#);
        let config = Config::parse(Verb::Add, text.as_bytes()).expect("a configuration");
        wanted(&config, &Devices::new("/nowhere"))
    }

    fn selected(keys: &str) -> Selector {
        asked(keys).expect("a selector").selector
    }

    #[test]
    fn the_runtime_wins_and_then_the_order_is_fixed() {
        let all = r#""device":"eth1","hwaddr":"02:00:00:00:00:01","kernelpath":"/sys/devices/a","pciBusID":"0000:01:00.0","deviceID":"0000:02:00.0""#;
        let runtime = format!(r#"{all},"runtimeConfig":{{"deviceID":"0000:03:00.0"}}"#);
        let bdf = |s: &str| Selector::Pci(s.parse().expect("a PCI address"));
        assert_eq!(selected(&runtime), bdf("0000:03:00.0"));
        let steps: Vec<&str> = all.split(',').collect();
        assert_eq!(
            selected(&steps.join(",")),
            Selector::Name("eth1".to_owned())
        );
        let mac = "02:00:00:00:00:01".parse().expect("a MAC");
        assert_eq!(selected(&steps[1..].join(",")), Selector::Mac(mac));
        assert_eq!(
            selected(&steps[2..].join(",")),
            Selector::Path("/sys/devices/a".into())
        );
        assert_eq!(selected(&steps[3..].join(",")), bdf("0000:01:00.0"));
        assert_eq!(selected(&steps[4..].join(",")), bdf("0000:02:00.0"));
    }

    #[test]
    fn empty_texts_are_absent_keys() {
        let keys =
            r#""device":"","hwaddr":"","runtimeConfig":{"deviceID":""},"pciBusID":"0000:01:00.0""#;
        assert!(matches!(selected(keys), Selector::Pci(_)));
    }

    #[test]
    fn each_refusal_names_its_key() {
        for (keys, named) in [
            (r#""mtu":1"#, "device"),
            (r#""hwaddr":"02:00""#, "hwaddr"),
            (r#""kernelpath":"/sys/class/net/eth1""#, "kernelpath"),
            (r#""kernelpath":"/sys/devices/../class""#, "kernelpath"),
            (r#""pciBusID":"../../x""#, "pciBusID"),
            (r#""deviceID":"mlx5_core.sf.9""#, "deviceID"),
            (
                r#""runtimeConfig":{"deviceID":7}"#,
                "runtimeConfig.deviceID",
            ),
            (r#""deviceID":7"#, "deviceID"),
        ] {
            let error = asked(keys).expect_err(keys);
            assert_eq!(error.code, CniError::CONFIG, "{keys}");
            let said = format!("{} {}", error.msg, error.details);
            assert!(said.contains(named), "{keys}: {said}");
        }
    }
}
