//! Attaching a device of the node: what host-device and amd-host-device have in common.
//!
//! Easy to get wrong: an ADD that is repeated for the same container and name, after a crash or a timeout of the runtime, gets the
//! device that it has. If it was done, the answer of then is the answer; if not, addresses that may have been given are
//! released before new ones are asked for.

use mooring_api::net::Link;
use mooring_attach::cni::{CniError, CniResult, Interface, Version};
use mooring_host::device::{DeviceError, Mover, Prepared, Returned};
use mooring_host::record::{Owner, Record};
use mooring_host::{Netns, fault};
use serde_json::{Value, json};

use super::keys;
use crate::call::Call;
use crate::configure::{Options, check_configured, configure};

/// An attachment that was made.
pub(crate) struct Added {
    pub(crate) result: CniResult,
    /// The device's record; none for a device that a driver of user space has.
    pub(crate) record: Option<Record>,
}

/// The mover with this program's records.
pub(crate) fn mover(call: &Call) -> Result<Mover, CniError> {
    let paths = call.paths;
    Mover::new(paths.own.join("devices"), &paths.sys, &paths.proc).map_err(failed)
}

/// An error of a device, for the runtime.
pub(crate) fn failed(error: DeviceError) -> CniError {
    let text = error.to_string();
    let made = if error.is_transient() {
        CniError::try_again(text)
    } else {
        CniError::internal(text)
    };
    match std::error::Error::source(&error) {
        Some(source) => made.because(source),
        None => made,
    }
}

/// The pod's namespace, which ADD and CHECK must have.
pub(crate) fn open_pod(call: &Call) -> Result<Netns, CniError> {
    let path = call.netns()?;
    Netns::open(path).map_err(|e| CniError::netns(path.display(), &e))
}

/// The attachments that GC of this network cleans up.
fn group(call: &Call) -> String {
    let config = call.config();
    format!("{}/{}", config.plugin, config.name)
}

/// This attachment as the owner of a device.
pub(crate) fn owner(call: &Call, pod: &Netns) -> Owner {
    Owner {
        holder: call.container().to_owned(),
        ifname: call.ifname().to_owned(),
        group: group(call),
        netns: pod.path().to_owned(),
        netns_id: pod.id(),
    }
}

/// What a record keeps for a repeated ADD.
pub(crate) fn kept(result: &CniResult) -> Value {
    json!({ "result": result.to(Version::NEWEST) })
}

/// What an earlier ADD answered.
pub(crate) fn answered(record: &Record) -> Option<CniResult> {
    CniResult::parse(record.kept.get("result")?, Version::NEWEST).ok()
}

/// Takes the device and configures it. `given` are addresses that come from the device instead of an IPAM plugin.
pub(crate) fn add(
    call: &Call,
    given: &dyn Fn(&Record) -> Option<CniResult>,
) -> Result<Added, CniError> {
    let mover = mover(call)?;
    let wanted = keys::wanted(call.config(), mover.devices())?;
    let pod = open_pod(call)?;
    if wanted.userspace.is_some() {
        return userspace(call);
    }
    let mut prepared = mover
        .prepare(&wanted.selector, &owner(call, &pod))
        .map_err(failed)?;
    let adopted = prepared.is_adopted();
    let result = match answered(prepared.record()).filter(|_| adopted) {
        Some(result) => Ok(result),
        None => attach(call, &mut prepared, &pod, given),
    };
    match result {
        Ok(result) => Ok(Added {
            result,
            record: Some(prepared.into_record()),
        }),
        Err(error) => Err(match prepared.undo() {
            Ok(()) => error,
            Err(more) => error.with_details(failed(more).to_string()),
        }),
    }
}

/// A device that a driver of user space has: nothing moves, the pod gets its addresses told.
fn userspace(call: &Call) -> Result<Added, CniError> {
    let mut result = call.ipam_add()?.unwrap_or_default();
    if !call.config().dns.is_empty() {
        result.dns = call.config().dns.clone();
    }
    Ok(Added {
        result,
        record: None,
    })
}

fn attach(
    call: &Call,
    prepared: &mut Prepared<'_>,
    pod: &Netns,
    given: &dyn Fn(&Record) -> Option<CniResult>,
) -> Result<CniResult, CniError> {
    let mut inside = pod.netlink().map_err(|e| failed(e.into()))?;
    let link = prepared.enter(pod, &mut inside).map_err(failed)?;
    let given = given(prepared.record());
    let from_device = given.is_some();
    let mut options = Options::of(call)?;
    // The node had them on this very link before.
    options.detect &= !from_device;
    let found = if from_device {
        given
    } else {
        if prepared.is_begun() {
            // The attempt before this one may have got addresses and died before anybody knew them.
            let _ = call.ipam_del();
        }
        let found = call.ipam_add()?;
        fault::point("device-addressed");
        found
    };
    let from_ipam = !from_device && found.is_some();
    let result = described(call, prepared.record(), &link, found.unwrap_or_default());
    let done = configure(pod, &mut inside, &link, &result, options);
    let done = done.and_then(|ready| {
        fault::point("device-configured");
        prepared.configured(kept(&result)).map_err(failed)?;
        Ok(ready)
    });
    match done {
        Ok(ready) => {
            ready.tell(call, pod, &mut inside);
            Ok(result)
        }
        Err(error) if from_ipam => Err(call.undo_ipam(error)),
        Err(error) => Err(error),
    }
}

/// The result of an attachment to one interface.
pub(crate) fn described(
    call: &Call,
    record: &Record,
    link: &Link,
    mut result: CniResult,
) -> CniResult {
    result.interfaces = vec![Interface {
        name: link.name.clone(),
        mac: link.mac.map(|mac| mac.to_string()),
        mtu: Some(link.mtu),
        sandbox: Some(call.request.sandbox()),
        pci_id: record.device.pci.as_ref().map(ToString::to_string),
        ..Interface::default()
    }];
    result.assign(0);
    if !call.config().dns.is_empty() {
        result.dns = call.config().dns.clone();
    }
    result
}

/// Brings home what this attachment has by its record.
pub(crate) fn give_back(call: &Call) -> Result<(Mover, Returned), CniError> {
    let mover = mover(call)?;
    let returned = mover
        .give_back(call.container(), call.ifname())
        .map_err(failed)?;
    for name in &returned.forgotten {
        call.log(format_args!(
            "{name} is gone, there is nothing to bring home"
        ));
    }
    Ok((mover, returned))
}

/// Whether the pod has the device, with the addresses and routes of `prevResult`.
pub(crate) fn check(call: &Call) -> Result<(), CniError> {
    let prev = call.prev()?;
    let pod = open_pod(call)?;
    let mover = mover(call)?;
    let wanted = keys::wanted(call.config(), mover.devices())?;
    if wanted.userspace.is_some() {
        return Ok(());
    }
    let key = mover.records().held_by(call.container(), call.ifname());
    let key = key.map_err(|e| failed(e.into()))?;
    if let Some(key) = key {
        let held = mover.records().lock(&key).map_err(|e| failed(e.into()))?;
        let record = held.read().map_err(|e| failed(e.into()))?;
        if let Some(record) = record
            && !mover.is_with_owner(&record).map_err(failed)?
        {
            let name = &record.device.name;
            return Err(CniError::internal(format!(
                "{name} is not in the pod any more"
            )));
        }
    }
    let link = check_configured(&pod, call.ifname(), prev)?;
    let told = prev.interfaces.iter().find(|i| i.name == call.ifname());
    let mac = link.mac.map(|mac| mac.to_string());
    if let Some(wanted) = told.and_then(|i| i.mac.as_ref())
        && mac
            .as_ref()
            .is_none_or(|mac| !mac.eq_ignore_ascii_case(wanted))
    {
        let seen = mac.unwrap_or_else(|| "none".to_owned());
        let name = call.ifname();
        return Err(CniError::internal(format!(
            "{name} is not as it was made: its MAC is {seen}, and was {wanted}"
        )));
    }
    Ok(())
}

/// Brings home what no valid attachment of this network has, but for what `is_anothers` says is not its record's any more.
pub(crate) fn gc(call: &Call, is_anothers: impl Fn(&Record) -> bool) -> Result<(), CniError> {
    let group = group(call);
    let valid = &call.config().valid;
    let returned = mover(call)?.give_back_invalid(|record| {
        let owner = &record.owner;
        owner.group != group
            || is_anothers(record)
            || valid
                .iter()
                .any(|a| a.container == owner.holder && a.ifname == owner.ifname)
    });
    returned.map(|_| ()).map_err(failed)
}
