//! Virtual functions, as their physical function sets them: read, changed in the order that drivers take, and put back.
//!
//! Called by the sriov plugin and, on the way home, by the mover ([`crate::device`]). Easy to get wrong: drivers answer EBUSY while a VF
//! resets itself, which is what a change of its MAC makes it do. A step is tried again for a moment before it has failed.

use std::time::Duration;

use mooring_api::net::{Vf, VfChange};

use crate::device::DeviceError;
use crate::pci::Devices;
use crate::record::VfBefore;
use crate::{Change, Netlink, NetlinkError};

/// How often a busy driver is asked again, and after how long: two seconds in all.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(100);

/// A VF and the number of its physical function's link.
pub fn look(host: &mut Netlink, pf: &str, number: u32) -> Result<Option<(u32, Vf)>, DeviceError> {
    let Some(link) = host.link(pf).map_err(failed("look for", pf))? else {
        return Ok(None);
    };
    let vfs = host
        .vfs(link.index)
        .map_err(failed("read the VFs of", pf))?;
    let vf = vfs.into_iter().find(|vf| vf.number == number);
    Ok(vf.map(|vf| (link.index, vf)))
}

/// One message per setting, in the order VLAN, MAC, rates, spoof check, trust, link state: some drivers refuse several at
/// once, and a VLAN after a MAC resets the MAC on others.
pub fn steps(change: &VfChange) -> Vec<VfChange> {
    let none = VfChange::default;
    let all = [
        VfChange {
            vlan: change.vlan,
            ..none()
        },
        VfChange {
            mac: change.mac,
            ..none()
        },
        VfChange {
            rate: change.rate,
            ..none()
        },
        VfChange {
            spoof_check: change.spoof_check,
            ..none()
        },
        VfChange {
            trust: change.trust,
            ..none()
        },
        VfChange {
            link_state: change.link_state,
            ..none()
        },
    ];
    all.into_iter().filter(|step| !step.is_empty()).collect()
}

/// Changes a VF; asks a busy driver again for a bounded time.
pub fn set(host: &mut Netlink, pf: u32, number: u32, change: &VfChange) -> Result<(), DeviceError> {
    for step in steps(change) {
        patiently(|| {
            let change = step.clone();
            host.apply(&[Change::SetVf {
                pf,
                vf: number,
                change,
            }])
        })
        .map_err(failed(said(&step), &format!("VF {number}")))?;
    }
    Ok(())
}

/// Puts a VF back as it was, whatever was changed. A physical function that is gone took its VFs with it.
pub fn restore(
    host: &mut Netlink,
    devices: &Devices,
    before: &VfBefore,
) -> Result<(), DeviceError> {
    let Some((pf, seen)) = look_again(host, devices, before)? else {
        return Ok(());
    };
    let number = before.vf.number;
    for step in steps(&VfChange::between(&before.vf, &seen)) {
        let tried = patiently(|| {
            let change = step.clone();
            host.apply(&[Change::SetVf {
                pf,
                vf: number,
                change,
            }])
        });
        match tried {
            // A driver may refuse to take its own first value back: no MAC at all, or rates on a link that is down.
            Err(error) if is_first_value(&step) && !error.is_transient() => {}
            tried => tried.map_err(failed(said(&step), &format!("VF {number}")))?,
        }
    }
    let Some((_, seen)) = look_again(host, devices, before)? else {
        return Ok(());
    };
    let left: Vec<String> = steps(&VfChange::between(&before.vf, &seen))
        .into_iter()
        .filter(|step| !is_first_value(step))
        .map(|step| format!("its {}", setting(&step)))
        .collect();
    if left.is_empty() {
        return Ok(());
    }
    Err(DeviceError::Incomplete {
        device: format!("VF {number} of {}", before.pf_name),
        left,
    })
}

/// The VF by its physical function's address, under whatever name that has now.
fn look_again(
    host: &mut Netlink,
    devices: &Devices,
    before: &VfBefore,
) -> Result<Option<(u32, Vf)>, DeviceError> {
    let mut names = vec![before.pf_name.clone()];
    if let Some(pf) = &before.pf {
        let now = devices.interfaces_of_pci(pf);
        let now = now.map_err(|source| DeviceError::Sysfs {
            what: pf.to_string(),
            source,
        })?;
        names.splice(0..0, now);
    }
    for name in names {
        if let Some(found) = look(host, &name, before.vf.number)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Asks a busy driver again, for a bounded time.
pub fn patiently(
    mut attempt: impl FnMut() -> Result<(), NetlinkError>,
) -> Result<(), NetlinkError> {
    let mut tries = 1;
    loop {
        match attempt() {
            Err(error) if error.is_transient() && tries < TRIES => {
                tries += 1;
                std::thread::sleep(PAUSE);
            }
            done => return done,
        }
    }
}

fn is_first_value(step: &VfChange) -> bool {
    step.mac.is_some_and(|mac| mac.octets() == [0; 6])
        || step.rate.is_some_and(|r| r.min == 0 && r.max == 0)
}

fn setting(step: &VfChange) -> &'static str {
    match step {
        VfChange { vlan: Some(_), .. } => "VLAN",
        VfChange { mac: Some(_), .. } => "MAC",
        VfChange { rate: Some(_), .. } => "transmit rates",
        VfChange {
            spoof_check: Some(_),
            ..
        } => "spoof check",
        VfChange { trust: Some(_), .. } => "trust",
        _ => "link state",
    }
}

fn said(step: &VfChange) -> &'static str {
    match setting(step) {
        "VLAN" => "set the VLAN of",
        "MAC" => "set the MAC of",
        "transmit rates" => "set the transmit rates of",
        "spoof check" => "set the spoof check of",
        "trust" => "set the trust of",
        _ => "set the link state of",
    }
}

fn failed(doing: &'static str, device: &str) -> impl FnOnce(NetlinkError) -> DeviceError {
    let device = device.to_owned();
    move |source| DeviceError::Netlink {
        doing,
        device,
        source,
    }
}

#[cfg(test)]
mod tests {
    use mooring_api::net::{VfLinkState, VfRate, VfVlan};

    use super::*;

    #[test]
    fn settings_are_changed_one_by_one_in_the_order_that_drivers_take() {
        let change = VfChange {
            mac: "02:00:00:00:00:01".parse().ok(),
            vlan: Some(VfVlan {
                id: 100,
                ..VfVlan::default()
            }),
            rate: Some(VfRate { min: 0, max: 500 }),
            spoof_check: Some(false),
            trust: Some(true),
            link_state: Some(VfLinkState::Enable),
        };
        let order: Vec<_> = steps(&change).iter().map(setting).collect();
        assert_eq!(
            order,
            [
                "VLAN",
                "MAC",
                "transmit rates",
                "spoof check",
                "trust",
                "link state"
            ]
        );
        assert!(steps(&VfChange::default()).is_empty());
    }

    #[test]
    fn only_what_was_changed_is_put_back() {
        let before = Vf {
            trust: Some(false),
            spoof_check: Some(true),
            ..Vf::default()
        };
        let mut seen = before.clone();
        assert!(steps(&VfChange::between(&before, &seen)).is_empty());
        seen.trust = Some(true);
        seen.vlan.id = 7;
        let order: Vec<_> = steps(&VfChange::between(&before, &seen))
            .iter()
            .map(setting)
            .collect();
        assert_eq!(order, ["VLAN", "trust"]);
    }

    #[test]
    fn a_driver_that_takes_no_empty_mac_is_forgiven_and_one_that_keeps_a_vlan_is_not() {
        let empty = VfChange {
            mac: Some([0; 6].into()),
            ..VfChange::default()
        };
        assert!(is_first_value(&empty));
        let vlan = VfChange {
            vlan: Some(VfVlan::default()),
            ..VfChange::default()
        };
        assert!(!is_first_value(&vlan));
        let rate = VfChange {
            rate: Some(VfRate { min: 0, max: 10 }),
            ..VfChange::default()
        };
        assert!(!is_first_value(&rate));
    }
}
