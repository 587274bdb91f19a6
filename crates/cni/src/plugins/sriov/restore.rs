//! Brings a VF home: by our record, else by the files that sriov-cni left.
//!
//! Called by DEL and GC. Easy to get wrong: a DEL whose VF went to another pod meanwhile. The allocation file names the namespace that has
//! it; where that is alive and not the one of the call, only the old cached configuration goes.

use std::collections::BTreeMap;
use std::path::Path;

use mooring_api::net::{Link, LinkChange, Vf, VfChange, VfLinkState, VfRate, VfVlan, VlanProtocol};
use mooring_attach::cni::CniError;
use mooring_host::device::{Mover, Selector, look_up};
use mooring_host::pci::Bdf;
use mooring_host::record::Record;
use mooring_host::{Change, Netns, vf};

use super::state::{Cached, State, cache_name, cached, dir};
use crate::call::Call;
use crate::plugins::host_device::attach::{failed, mover};

/// DEL.
pub(super) fn give_back(call: &Call) -> Result<(), CniError> {
    let mover = mover(call)?;
    let name = cache_name(call.container(), call.ifname());
    let path = dir(call).join(&name);
    let cached = cached(call, &path)?;
    let device = cached.as_ref().map(|cached| &cached.device);
    let record = recorded(&mover, call, device)?;
    let device = device
        .or_else(|| record.as_ref()?.device.pci.as_ref())
        .cloned();
    let Some(device) = device else {
        // Nothing of this attachment is left, or it never began.
        return Ok(());
    };
    let state = State::named(call, &name, &device);
    let _lock = state.lock()?;
    let pod = call.request.netns.as_deref();
    if let Some(record) = &record
        && is_given_away(call, &mover, record, pod)
    {
        return state.remove_cache();
    }
    let returned = mover
        .give_back(call.container(), call.ifname())
        .map_err(failed)?;
    if !returned.is_nothing() {
        // The path and the id of an owner of another boot may be anybody's now.
        let record = record.filter(|record| record.boot == mover.boot().id);
        return state.remove_of(pod, record.map(|record| record.owner).as_ref());
    }
    match cached {
        Some(cached) => by_cache(&mover, &[call.ifname()], pod, &cached, &state),
        None => Ok(()),
    }
}

/// This attachment's record, of that VF where one is known.
fn recorded(mover: &Mover, call: &Call, device: Option<&Bdf>) -> Result<Option<Record>, CniError> {
    let records = mover.records().all().map_err(|e| failed(e.into()))?;
    let mut records = records.into_iter().map(|(_, record)| record);
    Ok(records.find(|record| {
        record.owner.holder == call.container()
            && record.owner.ifname == call.ifname()
            && (device.is_none() || record.device.pci.as_ref() == device)
    }))
}

/// Whether the allocation names a namespace that lives and is neither the record's nor the call's, and the VF is not with its owner:
/// sriov-cni, to which the node was switched for a while, gave it to another pod. The record is kept, for who gets the VF after
/// that one.
pub(super) fn is_given_away(
    call: &Call,
    mover: &Mover,
    record: &Record,
    pod: Option<&Path>,
) -> bool {
    if record.has_link() && mover.is_with_owner(record).unwrap_or(false) {
        return false;
    }
    let Some(device) = &record.device.pci else {
        return false;
    };
    let name = cache_name(&record.owner.holder, &record.owner.ifname);
    let allocated = State::named(call, &name, device).allocated_to();
    let Some(path) = allocated.ok().flatten() else {
        return false;
    };
    let namespace = |path: &Path| Netns::open(path).ok().map(|netns| netns.id());
    let owner = &record.owner;
    // By path and id: the number of a namespace that ended is given to the next one.
    namespace(&path).is_some_and(|id| {
        let is_owners = path == owner.netns && id == owner.netns_id;
        !is_owners && pod.and_then(namespace) != Some(id)
    })
}

/// GC: cached configurations of this network that belong to no valid attachment. Those with a record were given back before. Where two name
/// one VF, the allocation says nothing of the one that is not valid, and only that one's cache goes.
pub(super) fn gc(call: &Call) -> Result<(), CniError> {
    let mover = mover(call)?;
    let valid: Vec<String> = call
        .config()
        .valid
        .iter()
        .map(|a| cache_name(&a.container, &a.ifname))
        .collect();
    let mut errors = Vec::new();
    let mut all = BTreeMap::new();
    let entries = std::fs::read_dir(dir(call)).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.path().is_file()) {
        // Half-written files of ours begin with a dot.
        let name = entry.file_name().into_string().ok();
        let Some(name) = name.filter(|name| !name.starts_with('.')) else {
            continue;
        };
        match cached(call, &entry.path()) {
            Ok(Some(cached)) => drop(all.insert(name, cached)),
            Ok(None) => {}
            Err(error) => errors.push(error),
        }
    }
    let is_swept =
        |name: &String, cached: &Cached| !valid.contains(name) && cached.name == call.config().name;
    let swept = all.iter().filter(|(name, cached)| is_swept(name, cached));
    let swept: Vec<String> = swept.map(|(name, _)| name.clone()).collect();
    for name in swept {
        let Some(cached) = all.remove(&name) else {
            continue;
        };
        let is_shared = all.values().any(|other| other.device == cached.device);
        errors.extend(sweep(call, &mover, &name, &cached, is_shared).err());
    }
    CniError::all(errors).map_or(Ok(()), Err)
}

fn sweep(
    call: &Call,
    mover: &Mover,
    name: &str,
    cached: &Cached,
    is_shared: bool,
) -> Result<(), CniError> {
    let state = State::named(call, name, &cached.device);
    let _lock = state.lock()?;
    if is_shared {
        return state.remove_cache();
    }
    let pod = state.allocated_to()?;
    by_cache(mover, &ifnames(name), pod.as_deref(), cached, &state)
}

/// The names that an interface may have had, by that of its cache. Container ids and interfaces both may have dashes, and the file
/// says no more than its name; the longest comes first, since most ids are numbers.
fn ifnames(cache: &str) -> Vec<&str> {
    let rests = cache.match_indices('-').map(|(at, _)| &cache[at + 1..]);
    rests
        .filter(|rest| rest.parse::<mooring_api::IfName>().is_ok())
        .collect()
}

/// Restores what sriov-cni noted, where the VF is still that attachment's.
fn by_cache(
    mover: &Mover,
    ifnames: &[&str],
    pod: Option<&Path>,
    cached: &Cached,
    state: &State,
) -> Result<(), CniError> {
    let records = mover.records().all().map_err(|e| failed(e.into()))?;
    let record = records
        .into_iter()
        .map(|(_, record)| record)
        .find(|record| record.device.pci.as_ref() == Some(&cached.device));
    if let Some(record) = record {
        // This attachment's own record could not be restored yet, or another pod has the VF.
        let own = state.is_of(&record.owner.holder, &record.owner.ifname);
        return if own { Ok(()) } else { state.remove_cache() };
    }
    if cached.recorded {
        return state.remove_of(pod, cached.owner.as_ref());
    }
    let allocated = state.allocated_to()?;
    let anothers = allocated.is_some_and(|path| {
        let netns = Netns::open(&path);
        netns.is_ok_and(|netns| {
            let own = pod.and_then(|pod| Netns::open(pod).ok());
            own.is_none_or(|own| own.id() != netns.id())
        })
    });
    if anothers {
        return state.remove_cache();
    }
    settings(mover, cached)?;
    home(mover, ifnames, pod, cached)?;
    state.remove_of(pod, None)
}

/// The settings that the configuration had asked for, and the MAC, as sriov-cni restores them.
fn settings(mover: &Mover, cached: &Cached) -> Result<(), CniError> {
    let mut host = mover.host().netlink().map_err(|e| failed(e.into()))?;
    let mut names = vec![cached.master.clone()];
    if let Ok(Some(of)) = mover.devices().vf_of(&cached.device) {
        names.splice(0..0, of.names);
    }
    for name in names {
        if let Some((pf, seen)) = vf::look(&mut host, &name, cached.vf).map_err(failed)? {
            let before = before(cached, &seen);
            let change = VfChange::between(&before, &seen);
            return vf::set(&mut host, pf, cached.vf, &change).map_err(failed);
        }
    }
    Ok(())
}

fn before(cached: &Cached, seen: &Vf) -> Vf {
    let original = &cached.original;
    let mut before = seen.clone();
    if let Ok(mac) = original.admin_mac.parse::<mooring_api::Mac>() {
        before.mac = Some(mac);
    }
    if cached.vlan.is_some() {
        before.vlan = VfVlan {
            id: original.vlan,
            qos: original.vlan_qos,
            protocol: VlanProtocol::of(original.vlan_proto).unwrap_or_default(),
        };
    }
    if cached.min_tx_rate.is_some() || cached.max_tx_rate.is_some() {
        before.rate = VfRate {
            min: original.min_tx_rate,
            max: original.max_tx_rate,
        };
    }
    if !cached.spoofchk.is_empty() {
        before.spoof_check = Some(original.spoofchk);
    }
    if !cached.trust.is_empty() {
        before.trust = Some(original.trust);
    }
    if !cached.link_state.is_empty() {
        before.link_state = Some(match original.link_state {
            1 => VfLinkState::Enable,
            2 => VfLinkState::Disable,
            _ => VfLinkState::Auto,
        });
    }
    before
}

/// The interface, from the pod or from where it fell back to.
fn home(
    mover: &Mover,
    ifnames: &[&str],
    pod: Option<&Path>,
    cached: &Cached,
) -> Result<(), CniError> {
    let name = &cached.original.host_ifname;
    if name.parse::<mooring_api::IfName>().is_err() {
        // A VF without an interface.
        return Ok(());
    }
    let look = |e| CniError::internal(format!("cannot look for VF {}", cached.device)).because(&e);
    let pod = pod.and_then(|path| Netns::open(path).ok());
    let pod = pod.filter(|pod| pod.id() != mover.host().id());
    let mut host = mover.host().netlink().map_err(|e| failed(e.into()))?;
    let inside = pod.as_ref().map(Netns::netlink).transpose();
    let mut inside = inside.map_err(|e| failed(e.into()))?;
    // What says that it is another device is left where it is.
    let is_it = |link: &Link| {
        let bus = link.device.as_deref();
        bus.is_none_or(|bus| bus == cached.device.as_str())
    };
    let mut there = None;
    for ifname in ifnames {
        if let (Some(inside), None) = (&mut inside, &there) {
            there = inside.link(ifname).map_err(look)?.filter(is_it);
        }
    }
    if let (Some(inside), Some(link)) = (&mut inside, there) {
        mover.bring_home(inside, &link, name).map_err(failed)?;
    } else {
        let selector = Selector::Pci(cached.device.clone());
        let found = look_up(&selector, &mut host, mover.devices()).map_err(failed)?;
        let Some(found) = found else {
            return Ok(());
        };
        mover.rename(&mut host, &found.link, name).map_err(failed)?;
    }
    let Some(link) = host.link(name).map_err(look)? else {
        return Ok(());
    };
    let change = LinkChange {
        mac: cached.original.effective_mac.parse().ok(),
        mtu: (cached.original.mtu != 0).then_some(cached.original.mtu),
        alias: Some(String::new()),
        ..LinkChange::default()
    };
    let index = link.index;
    vf::patiently(|| {
        let change = change.clone();
        host.apply(&[Change::SetLink { index, change }])
    })
    .map_err(|e| CniError::internal(format!("cannot restore {name}")).because(&e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_what_may_stand_behind_a_dash() {
        assert_eq!(ifnames("4f1c-net1"), ["net1"]);
        assert_eq!(ifnames("4f1c-net-1"), ["net-1", "1"]);
        assert_eq!(ifnames("pod-7-net1"), ["7-net1", "net1"]);
        assert_eq!(
            ifnames("a-name-that-is-longer-net1"),
            ["is-longer-net1", "longer-net1", "net1"]
        );
        assert_eq!(ifnames("4f1c-"), [""; 0]);
    }
}
