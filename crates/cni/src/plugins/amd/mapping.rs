//! The file of AMD's own amd-host-device: what it knows about NICs that are in pods. Read for attachments that it made; kept up to
//! date for ours, so that a node can be switched back.
//!
//! ```text
//!  /var/lib/cni/amd-host-device/ip-interface-mappings.json
//!  { "<deviceID>": { "hostInterfaceName": "rail0", "hostInterfaceIPs": ["10.0.0.0/31"], "state": "UP" } }
//! ```
//!
//! Our record is the truth, this file is for the other plugin: a torn one is left alone and fails nothing. Easy to get wrong: it is keyed
//! by device and names no owner, so an entry is used only for a NIC that is in the pod of the call, or fell back from it.

use std::path::PathBuf;
use std::time::Duration;

use mooring_api::HostCidr;
use mooring_api::net::{Addr, Link, LinkChange};
use mooring_attach::cni::CniError;
use mooring_host::device::{Mover, Selector, look_up};
use mooring_host::file::{self, Lock};
use mooring_host::record::Record;
use mooring_host::{Change, Netlink, Netns};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::call::Call;
use crate::plugins::host_device::attach::failed;

/// How long another of our processes may have the file: it is read and written in one go.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    host_interface_name: String,
    #[serde(default, rename = "hostInterfaceIPs")]
    host_interface_ips: Vec<String>,
    #[serde(default)]
    state: String,
}

fn path(call: &Call) -> PathBuf {
    call.paths
        .data
        .join("amd-host-device/ip-interface-mappings.json")
}

fn lock(call: &Call) -> Result<Lock, CniError> {
    let path = call.paths.own.join("amd-host-device.lock");
    Lock::exclusive(path, PATIENCE)
        .map_err(|e| CniError::try_again("AMD's mapping file is in use").because(&e))
}

/// The whole file; none where there is none, or what is there is no mapping.
fn load(call: &Call) -> Result<Option<Map<String, Value>>, CniError> {
    let path = path(call);
    let text = file::read(&path)
        .map_err(|e| CniError::io(format!("cannot read {}", path.display()), e))?;
    let Some(text) = text else {
        return Ok(None);
    };
    match serde_json::from_slice(&text) {
        Ok(map) => Ok(Some(map)),
        Err(error) => {
            call.log(format_args!(
                "{} holds no mapping and is left alone: {error}",
                path.display()
            ));
            Ok(None)
        }
    }
}

fn store(call: &Call, map: &Map<String, Value>) -> Result<(), CniError> {
    let path = path(call);
    let text = serde_json::to_vec(map).map_err(|e| CniError::internal(e.to_string()))?;
    file::write_atomic_mode(&path, &text, 0o644)
        .map_err(|e| CniError::io(format!("cannot write {}", path.display()), e))
}

/// The key of the device: what a device plugin calls it.
fn key(call: &Call) -> Option<String> {
    let of = |map: &Map<String, Value>, key: &str| {
        let text = map.get(key)?.as_str()?;
        (!text.is_empty()).then(|| text.to_owned())
    };
    let config = call.config();
    of(&config.raw, "deviceID")
        .or_else(|| of(&config.runtime, "deviceID"))
        .or_else(|| of(&config.raw, "pciBusID"))
}

/// Writes what AMD's plugin would have written about an attachment of ours.
pub(super) fn note(call: &Call, record: &Record) -> Result<(), CniError> {
    let Some(key) = key(call) else {
        return Ok(());
    };
    let _lock = lock(call)?;
    let exists = file::read(path(call)).is_ok_and(|text| text.is_some());
    let mut map = match load(call)? {
        Some(map) => map,
        None if exists => return Ok(()),
        None => Map::new(),
    };
    let before = &record.before;
    let entry = Entry {
        host_interface_name: record.device.name.clone(),
        host_interface_ips: before
            .addrs
            .iter()
            .filter(|addr| addr.scope != mooring_api::net::Scope::LINK)
            .map(|addr| addr.address.to_string())
            .collect(),
        state: if before.link.up { "UP" } else { "DOWN" }.to_owned(),
    };
    let entry = serde_json::to_value(entry).map_err(|e| CniError::internal(e.to_string()))?;
    map.insert(key, entry);
    store(call, &map)
}

/// Removes the entry of a device that came home by our record.
pub(super) fn strike(call: &Call, mover: &Mover) -> Result<(), CniError> {
    let Some(key) = key(call) else {
        return Ok(());
    };
    if is_recorded(mover, &key)? {
        return Ok(());
    }
    let _lock = lock(call)?;
    let mut map = load(call)?.unwrap_or_default();
    match map.remove(&key) {
        Some(_) => store(call, &map),
        None => Ok(()),
    }
}

/// Whether somebody has a record of ours for the device.
fn is_recorded(mover: &Mover, key: &str) -> Result<bool, CniError> {
    let records = mover.records().all().map_err(|e| failed(e.into()))?;
    let is_it = |record: &Record| {
        record
            .device
            .pci
            .as_ref()
            .is_some_and(|p| p.as_str() == key)
    };
    Ok(records.iter().any(|(_, record)| is_it(record)))
}

/// Brings home a NIC that AMD's plugin moved. Says whether the file had something about it.
pub(super) fn give_back(call: &Call, mover: &Mover) -> Result<bool, CniError> {
    let Some(key) = key(call) else {
        return Ok(false);
    };
    if is_recorded(mover, &key)? {
        // Another pod has it by now: this is a late DEL.
        return Ok(true);
    }
    let _lock = lock(call)?;
    let Some(mut map) = load(call)? else {
        return Ok(false);
    };
    let Some(entry) = map.get(&key) else {
        return Ok(false);
    };
    let entry: Entry = match serde_json::from_value(entry.clone()) {
        Ok(entry) => entry,
        Err(error) => {
            call.log(format_args!(
                "AMD's mapping of {key} is unreadable: {error}"
            ));
            return Ok(false);
        }
    };
    if bring_home(call, mover, &key, &entry)? {
        map.remove(&key);
        store(call, &map)?;
    }
    Ok(true)
}

/// Whether the entry has served: the NIC is home. Otherwise another pod has the NIC, and the entry is that pod's.
fn bring_home(call: &Call, mover: &Mover, key: &str, entry: &Entry) -> Result<bool, CniError> {
    let name = &entry.host_interface_name;
    let pod = call
        .request
        .netns
        .as_ref()
        .and_then(|p| Netns::open(p).ok());
    let pod = pod.filter(|pod| pod.id() != mover.host().id());
    let inside = pod.as_ref().map(Netns::netlink).transpose();
    let mut inside = inside.map_err(|e| failed(e.into()))?;
    if let Some(inside) = &mut inside
        && let Some(link) = in_pod(call, inside, key, name)?
    {
        mover.bring_home(inside, &link, name).map_err(failed)?;
    } else {
        let mut host = mover.host().netlink().map_err(|e| failed(e.into()))?;
        let selector = match key.parse() {
            Ok(bdf) => Selector::Pci(bdf),
            Err(_) => Selector::Name(name.clone()),
        };
        let found = look_up(&selector, &mut host, mover.devices()).map_err(failed)?;
        let Some(found) = found else {
            return Ok(false);
        };
        // Home under its own name, and its pod is gone: the node has started anew, or somebody was here before. What it has
        // now is what the node gave it.
        if found.link.name == *name && pod.is_none() {
            return Ok(true);
        }
        mover.rename(&mut host, &found.link, name).map_err(failed)?;
    }
    put_back(mover, entry)?;
    Ok(true)
}

/// The NIC in the pod: under the pod's name, or under the host's, as plugins before 1.2.0 left it.
fn in_pod(
    call: &Call,
    inside: &mut Netlink,
    key: &str,
    name: &str,
) -> Result<Option<Link>, CniError> {
    for name in [call.ifname(), name] {
        let link = inside
            .link(name)
            .map_err(|e| CniError::internal(format!("cannot look for {name}")).because(&e))?;
        // What says that it is another device is left where it is.
        if let Some(link) = link
            && link
                .device
                .as_deref()
                .is_none_or(|bus| bus == key || !bus.contains(':'))
        {
            return Ok(Some(link));
        }
    }
    Ok(None)
}

fn put_back(mover: &Mover, entry: &Entry) -> Result<(), CniError> {
    let name = &entry.host_interface_name;
    let fail =
        |e: &dyn std::error::Error| CniError::internal(format!("cannot restore {name}")).because(e);
    let mut host = mover.host().netlink().map_err(|e| failed(e.into()))?;
    let link = host.link(name).map_err(|e| fail(&e))?;
    let link = link.ok_or_else(|| CniError::internal(format!("{name} is not on the host")))?;
    let index = link.index;
    let mut changes = Vec::new();
    for text in &entry.host_interface_ips {
        let address: HostCidr = match text.parse() {
            Ok(address) => address,
            Err(error) => return Err(fail(&error)),
        };
        changes.push(Change::SetAddr(Addr::new(index, address)));
    }
    let change = LinkChange {
        alias: Some(String::new()),
        up: entry.state.eq_ignore_ascii_case("up").then_some(true),
        ..LinkChange::default()
    };
    changes.push(Change::SetLink { index, change });
    host.apply(&changes).map_err(|e| fail(&e))
}
