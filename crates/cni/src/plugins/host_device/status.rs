//! STATUS of host-device and amd-host-device: whether the keys are sound, and the device that they name is on this node.
//!
//! Easy to get wrong: a device that a pod has is not on the host and not absent either; the pod gives it back. And where
//! a device plugin gives the device, a configuration names none before there is a pod.

use mooring_attach::cni::CniError;
use mooring_host::device::{Mover, Selector, look_up};
use mooring_host::record::Record;

use super::attach::{failed, mover};
use super::keys;
use crate::call::Call;

/// Whether an ADD could find its device, and addresses. `given` says that the device comes with the pod where the
/// configuration names none.
pub(crate) fn status(call: &Call, given: bool) -> Result<(), CniError> {
    let mover = mover(call)?;
    match keys::named(call.config(), mover.devices())? {
        None if given || is_declared(call) => {}
        None => return Err(keys::missing()),
        Some(selector) => {
            if !is_there(call, &mover, &selector)? {
                return Err(CniError::unavailable(format!(
                    "this node has no {selector}, which the network {:?} takes",
                    call.config().name
                )));
            }
        }
    }
    call.ipam_status()
}

/// Whether the configuration asks the runtime for the device.
fn is_declared(call: &Call) -> bool {
    let wished = call.config().raw.get("capabilities");
    // A map, whose keys have the case that they have.
    let wished = wished.and_then(|wished| wished.get("deviceID"));
    wished.and_then(serde_json::Value::as_bool) == Some(true)
}

fn is_there(call: &Call, mover: &Mover, selector: &Selector) -> Result<bool, CniError> {
    // The bus shows a device in every namespace.
    let on_bus = match selector {
        Selector::Pci(bdf) => mover.devices().has_pci(bdf),
        Selector::Auxiliary(name) => mover.devices().has_auxiliary(name),
        Selector::Path(path) => path
            .strip_prefix("/sys")
            .is_ok_and(|below| call.paths.sys.join(below).exists()),
        Selector::Name(_) | Selector::Mac(_) => false,
    };
    if on_bus {
        return Ok(true);
    }
    let mut host = mover.host().netlink().map_err(|e| failed(e.into()))?;
    let found = look_up(selector, &mut host, mover.devices()).map_err(failed)?;
    if found.is_some() {
        return Ok(true);
    }
    let records = mover.records().all().map_err(|e| failed(e.into()))?;
    let away = |record: &Record| {
        selector.selects(&record.device)
            && (record.device.is_hardware() || mover.is_with_owner(record).unwrap_or(true))
    };
    Ok(records.iter().any(|(_, record)| away(record)))
}
