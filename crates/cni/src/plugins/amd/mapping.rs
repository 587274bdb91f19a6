//! The file of AMD's own amd-host-device: what it knows about NICs that are in pods. Read for attachments that it made; kept up to
//! date for ours, so that a node can be switched back.
//!
//! ```text
//!  /var/lib/cni/amd-host-device/ip-interface-mappings.json
//!  { "<deviceID>": { "hostInterfaceName": "rail0", "hostInterfaceIPs": ["10.0.0.0/31"], "state": "UP" } }
//! ```
//!
//! Its form is [`mooring_host::foreign::amd`]'s. Our record is the truth, this file is for the other plugin: a torn one is left alone and
//! fails nothing, and an entry of ours is never restored from. Easy to get wrong: it is keyed by device and names no owner, so an entry of
//! AMD's is used only for a NIC that is in the pod of the call, or fell back from it. And once the NIC is home, only the mark that a DEL
//! wrote before tells one whose addresses are still to come from one that the node has configured.

use std::error::Error as _;

use mooring_api::HostCidr;
use mooring_api::net::{Addr, Link, LinkChange, Scope};
use mooring_attach::cni::CniError;
use mooring_host::device::{Mover, Selector, look_up};
use mooring_host::foreign::amd::{Entry, File, Mapping, MappingError};
use mooring_host::record::Record;
use mooring_host::{Change, Netlink, Netns, fault};

use crate::call::Call;
use crate::plugins::host_device::attach::failed;

fn refused(error: MappingError) -> CniError {
    let made = match &error {
        MappingError::Lock(_) => CniError::try_again(error.to_string()),
        _ => CniError::internal(error.to_string()),
    };
    match error.source() {
        Some(source) => made.because(source),
        None => made,
    }
}

/// What is in the file; none where there is none, or what is there is no mapping.
fn load(call: &Call, file: &File) -> Result<Option<Mapping>, CniError> {
    match file.read() {
        Err(error @ MappingError::Unreadable { .. }) => {
            call.log(refused(error));
            Ok(None)
        }
        read => read.map_err(refused),
    }
}

/// The key of the device: what a device plugin calls it.
fn key(call: &Call) -> Option<String> {
    let config = call.config();
    let key = config.raw.text("deviceID");
    let key = key.or_else(|| config.runtime.text("deviceID"));
    key.or_else(|| config.raw.text("pciBusID"))
        .map(str::to_owned)
}

/// Writes what AMD's plugin would have written about an attachment of ours.
pub(super) fn note(call: &Call, mover: &Mover, record: &Record) -> Result<(), CniError> {
    let Some(key) = key(call) else {
        return Ok(());
    };
    let file = File::new(call.paths);
    let _lock = file.lock().map_err(refused)?;
    let mut map = match file.read() {
        Ok(map) => map.unwrap_or_default(),
        Err(error) => return Err(refused(error)),
    };
    let own = record.device.key();
    // A DEL that was faster than this has struck what was not there yet.
    if !mover.records().has(&own) {
        return Ok(());
    }
    let before = &record.before;
    let entry = Entry {
        host_interface_name: record.device.name.clone(),
        host_interface_ips: before
            .addrs
            .iter()
            .filter(|addr| addr.scope != Scope::LINK)
            .map(|addr| addr.address.to_string())
            .collect(),
        state: if before.link.up { "UP" } else { "DOWN" }.to_owned(),
        record: Some(own),
        restoring: None,
    };
    map.set(&key, &entry);
    file.write(&map).map_err(refused)?;
    fault::point("mapping-written");
    Ok(())
}

/// Strikes the entries of ours whose NICs are home: their records are gone. One that a kill left is struck by the next DEL or GC
/// of whatever device. What AMD's plugin wrote stays.
pub(super) fn strike(call: &Call, mover: &Mover) -> Result<(), CniError> {
    match File::new(call.paths).sweep(mover.records()) {
        Ok(struck) => {
            if !struck.is_empty() {
                fault::point("mapping-struck");
            }
            Ok(())
        }
        Err(error @ MappingError::Unreadable { .. }) => {
            call.log(refused(error));
            Ok(())
        }
        Err(error) => Err(refused(error)),
    }
}

/// Whether somebody has a record of ours for the device.
fn is_recorded(mover: &Mover, key: &str) -> Result<bool, CniError> {
    let records = mover.records().all().map_err(|e| failed(e.into()))?;
    let is_it = |record: &Record| {
        let device = &record.device;
        let pci = device.pci.as_ref().map(ToString::to_string);
        [pci.as_ref(), device.bus.as_ref()]
            .into_iter()
            .flatten()
            .any(|known| known.eq_ignore_ascii_case(key))
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
    let pod = call
        .request
        .netns
        .as_ref()
        .and_then(|p| Netns::open(p).ok());
    let pod = pod.filter(|pod| pod.id() != mover.host().id());
    serve(call, mover, &key, pod.as_ref())
}

/// Before an ADD: what a dead pod of AMD's plugin left on the host, or a DEL that was cut short, gets its name and addresses back first.
/// Otherwise they would not be known as the NIC's, and this ADD would be the last to see them.
pub(super) fn settle(call: &Call, mover: &Mover) -> Result<(), CniError> {
    match key(call) {
        Some(key) if !is_recorded(mover, &key)? => serve(call, mover, &key, None).map(drop),
        _ => Ok(()),
    }
}

/// Does what an entry of AMD's says, for a NIC that is in this pod or on the host. Says whether there was one.
fn serve(call: &Call, mover: &Mover, key: &str, pod: Option<&Netns>) -> Result<bool, CniError> {
    // An entry of ours without a record has served, and what it says may long be untrue.
    strike(call, mover)?;
    let file = File::new(call.paths);
    let _lock = file.lock().map_err(refused)?;
    let Some(mut map) = load(call, &file)? else {
        return Ok(false);
    };
    let entry = match map.entry(key) {
        None => return Ok(false),
        Some(Ok(entry)) => entry,
        Some(Err(error)) => {
            call.log(format_args!(
                "AMD's mapping of {key} is unreadable: {error}"
            ));
            return Ok(false);
        }
    };
    let mut mark = || {
        map.mark(key, &mover.boot().id);
        file.write(&map).map_err(refused)?;
        fault::point("mapping-marked");
        Ok(())
    };
    if bring_home(call, mover, (key, &entry), pod, &mut mark)? {
        map.strike(key);
        file.write(&map).map_err(refused)?;
        fault::point("mapping-struck");
    }
    Ok(true)
}

/// Whether the entry has served: the NIC is home. Otherwise another pod has the NIC, and the entry is that pod's. `mark` notes in the
/// entry that this began, before the first change.
fn bring_home(
    call: &Call,
    mover: &Mover,
    (key, entry): (&str, &Entry),
    pod: Option<&Netns>,
    mark: &mut dyn FnMut() -> Result<(), CniError>,
) -> Result<bool, CniError> {
    let name = &entry.host_interface_name;
    let inside = pod.map(Netns::netlink).transpose();
    let mut inside = inside.map_err(|e| failed(e.into()))?;
    if let Some(inside) = &mut inside
        && let Some(link) = in_pod(call, inside, key, name)?
    {
        mark()?;
        mover.bring_home(inside, &link, name).map_err(failed)?;
        fault::point("device-home");
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
        // A DEL that was cut short brought it here, and may not have come to its addresses. The mark of another boot says nothing:
        // the node has configured its NIC since.
        let is_begun = entry.restoring.as_ref() == Some(&mover.boot().id);
        // Home under its own name, and its pod is gone, or it has an address that is not of then: the node has started anew, or
        // somebody was here before. What it has now is what the node gave it.
        let is_own = found.link.name == *name;
        if is_own && !is_begun && (pod.is_none() || is_renumbered(&mut host, &found.link, entry)?) {
            return Ok(true);
        }
        // What fell back has the pod's name, or its own as alias. Under a third name, without that, the node calls it otherwise by now.
        let fell_back = found.link.name == call.ifname() || found.link.alias.as_ref() == Some(name);
        if !is_own && !is_begun && !fell_back {
            return Ok(false);
        }
        mark()?;
        mover.rename(&mut host, &found.link, name).map_err(failed)?;
    }
    put_back(call, mover, entry)?;
    fault::point("state-restored");
    Ok(true)
}

/// Whether a NIC of the host has an address that its entry does not know.
fn is_renumbered(host: &mut Netlink, link: &Link, entry: &Entry) -> Result<bool, CniError> {
    let name = &link.name;
    let addrs = host.addrs(Some(link.index)).map_err(|e| {
        CniError::internal(format!("cannot read the addresses of {name}")).because(&e)
    })?;
    let known = |addr: &Addr| {
        let text = addr.address.to_string();
        addr.scope == Scope::LINK || entry.host_interface_ips.contains(&text)
    };
    Ok(!addrs.iter().all(known))
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
        let Some(link) = link else { continue };
        let is_it = match link.device.as_deref() {
            // What says that it is another device is left where it is.
            Some(bus) => bus == key || !bus.contains(':'),
            // Under the host's name a link that says nothing may be the pod's own; what was moved there has that name as alias.
            None => name == call.ifname() || link.alias.as_deref() == Some(name),
        };
        if is_it {
            return Ok(Some(link));
        }
    }
    Ok(None)
}

fn put_back(call: &Call, mover: &Mover, entry: &Entry) -> Result<(), CniError> {
    let name = &entry.host_interface_name;
    let fail =
        |e: &dyn std::error::Error| CniError::internal(format!("cannot restore {name}")).because(e);
    let mut host = mover.host().netlink().map_err(|e| failed(e.into()))?;
    let link = host.link(name).map_err(|e| fail(&e))?;
    let link = link.ok_or_else(|| CniError::internal(format!("{name} is not on the host")))?;
    let index = link.index;
    let mut changes = Vec::new();
    for text in &entry.host_interface_ips {
        match text.parse::<HostCidr>() {
            Ok(address) => changes.push(Change::SetAddr(Addr::new(index, address))),
            // No later DEL would read it either, and the others are good.
            Err(error) => call.log(format_args!(
                "AMD's mapping has {text:?} as an address of {name}, which is not put back: {error}"
            )),
        }
    }
    let change = LinkChange {
        alias: Some(String::new()),
        up: entry.state.eq_ignore_ascii_case("up").then_some(true),
        ..LinkChange::default()
    };
    changes.push(Change::SetLink { index, change });
    host.apply(&changes).map_err(|e| fail(&e))
}
