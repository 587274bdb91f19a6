//! `tuning`: sysctls, MAC, MTU, queue length and modes of an interface that a plugin before made.
//!
//! What the interface had is written down before it changes, under the reference plugin's file name and in its format,
//! so that either restores what the other changed. Easy to get wrong: an ADD that is tried again finds the changed values
//! on the interface; the file of the first try has the true ones and is kept.

mod allow;
mod backup;
mod config;

use std::path::{Path, PathBuf};
use std::time::Duration;

use mooring_api::net::{Link, LinkChange, LinkKind};
use mooring_attach::cni::{Attachment, CniError, CniResult};
use mooring_host::file::Lock;
use mooring_host::foreign::tuning::Backup;
use mooring_host::{Change, Netlink, Netns, fault, sysctl};

use crate::call::Call;
use crate::plugin::Plugin;
use crate::plugins::bridge::pod;
use config::Wanted;

/// How long others may take.
const BOUND: Duration = Duration::from_secs(10);

pub(crate) struct Tuning;

impl Plugin for Tuning {
    fn about(&self) -> &'static str {
        "changes sysctls and attributes of an interface"
    }

    fn add(&self, call: &Call) -> Result<CniResult, CniError> {
        let wanted = Wanted::of(call.request)?;
        allowed(call, &wanted)?;
        let mut result = call.prev()?.clone();
        let (netns, mut pod) = pod(call)?;
        set_sysctls(&netns, &wanted)?;
        if wanted.changes_link() {
            let _alone = alone(call)?;
            let link = look(&mut pod, call.ifname())?;
            let file = file(call);
            backup::keep(backup::of(&link, &wanted, call, &netns), &file)?;
            fault::point("tuning-backup");
            change(&mut pod, &link, &wanted).inspect_err(|_| {
                // DEL would do the same; a runtime that forgets it leaves a clean interface.
                let _ = restore(&mut pod, &file, call.ifname());
            })?;
            fault::point("tuning-changed");
            note(&mut result, call.ifname(), &wanted);
        }
        Ok(result)
    }

    fn del(&self, call: &Call) -> Result<(), CniError> {
        let file = file(call);
        let _alone = alone(call)?;
        let Some(path) = call.request.netns.as_deref() else {
            return backup::forget(&file);
        };
        match Netns::open(path).and_then(|netns| netns.netlink()) {
            Ok(mut pod) => restore(&mut pod, &file, call.ifname()),
            Err(e) if e.is_gone() => backup::forget(&file),
            Err(e) => Err(CniError::netns(path.display(), "cannot be used").because(&e)),
        }
    }

    fn check(&self, call: &Call) -> Result<(), CniError> {
        let wanted = Wanted::of(call.request)?;
        call.prev()?;
        let (netns, mut pod) = pod(call)?;
        for wanted in &wanted.sysctls {
            let seen = sysctl::read(&netns, &wanted.path);
            let seen = seen.map_err(|e| CniError::internal("cannot read a sysctl").because(&e))?;
            // The kernel writes tabs where a person writes blanks.
            if !seen.split_whitespace().eq(wanted.value.split_whitespace()) {
                let msg = format!("{} is {seen:?}, not {:?}", wanted.key, wanted.value);
                return Err(CniError::internal(msg));
            }
        }
        compare(&look(&mut pod, call.ifname())?, &wanted)
    }

    /// What an ADD works on is there when an earlier plugin has made it; here only the keys can be wrong, and the node's
    /// list can refuse a sysctl.
    fn status(&self, call: &Call) -> Result<(), CniError> {
        allowed(call, &Wanted::of(call.request)?)
    }

    fn gc(&self, call: &Call) -> Result<(), CniError> {
        let config = call.config();
        let is_valid = |own: &Attachment| config.valid.contains(own);
        let _alone = alone(call)?;
        backup::sweep(&dir(call), &config.name, is_valid, give_back)
    }
}

/// Whether the node's list has every sysctl.
fn allowed(call: &Call, wanted: &Wanted) -> Result<(), CniError> {
    let list = call.paths.etc.join("tuning/allowlist.conf");
    allow::check(&list, wanted.sysctls.iter().map(|s| s.key.as_str()))
}

/// A DEL that comes while its ADD is under way must not put back what is changed a moment later: then nobody knows any more
/// what the interface had. One lock for the node, held for as long as two netlink messages take.
fn alone(call: &Call) -> Result<Lock, CniError> {
    Lock::exclusive(call.paths.own.join("tuning.lock"), BOUND)
        .map_err(|e| CniError::try_again("tuning: another call does not end").because(&e))
}

fn dir(call: &Call) -> PathBuf {
    config::data(call.request).unwrap_or_else(|| call.paths.run.join("tuning"))
}

/// Container and interface were checked at the door: neither can lead to another directory.
fn file(call: &Call) -> PathBuf {
    dir(call).join(format!("{}_{}.json", call.container(), call.ifname()))
}

fn set_sysctls(netns: &Netns, wanted: &Wanted) -> Result<(), CniError> {
    if wanted.sysctls.is_empty() {
        return Ok(());
    }
    let pairs: Vec<(&str, &str)> = wanted
        .sysctls
        .iter()
        .map(|s| (&*s.path, &*s.value))
        .collect();
    sysctl::write_all(netns, &pairs)
        .map_err(|e| CniError::config("sysctl", "the kernel refused").because(&e))
}

fn change(pod: &mut Netlink, link: &Link, wanted: &Wanted) -> Result<(), CniError> {
    let change = LinkChange {
        mac: wanted.mac,
        mtu: wanted.mtu,
        promiscuous: wanted.promiscuous.then_some(true),
        all_multicast: wanted.all_multicast,
        txqlen: wanted.txqlen,
        ..LinkChange::default()
    };
    let index = link.index;
    pod.apply(&[Change::SetLink { index, change }])
        .map_err(|e| CniError::internal(format!("cannot change {}", link.name)).because(&e))
}

/// Puts back what the file says, and forgets it. An interface that ends with its pod is not worth a pod that cannot end:
/// only for a device that goes back to the node is a failure an error.
fn restore(pod: &mut Netlink, file: &Path, ifname: &str) -> Result<(), CniError> {
    let found = pod.link(ifname);
    let found =
        found.map_err(|e| CniError::internal(format!("cannot look for {ifname}")).because(&e))?;
    if let (Some(link), Some(before)) = (found, backup::read(file)?) {
        let errors: Vec<CniError> = before
            .changes()
            .into_iter()
            .filter_map(|change| {
                let index = link.index;
                let outcome = pod.apply(&[Change::SetLink { index, change }]);
                let error = outcome.err().filter(|e| !e.is_absent())?;
                Some(CniError::internal(format!("cannot restore {ifname}")).because(&error))
            })
            .collect();
        if link.kind == LinkKind::Device
            && let Some(error) = CniError::all(errors)
        {
            return Err(error);
        }
        fault::point("tuning-restored");
    }
    backup::forget(file)
}

/// Ends what an attachment had that nobody wants any more; an interface that is still there gets back what it had.
fn give_back(file: &Path, before: &Backup) -> Result<(), CniError> {
    let netns = before.netns.as_ref().and_then(|at| {
        let now = Netns::open(&at.path).ok()?;
        (now.id() == at.id).then_some(now)
    });
    let Some(netns) = netns else {
        return backup::forget(file);
    };
    let pod = netns.netlink();
    let mut pod =
        pod.map_err(|e| CniError::netns(netns.path().display(), "cannot be used").because(&e))?;
    restore(&mut pod, file, &before.ifname)
}

/// The result says what the interface has now.
fn note(result: &mut CniResult, ifname: &str, wanted: &Wanted) {
    for interface in result.interfaces.iter_mut().filter(|i| i.name == ifname) {
        if let Some(mac) = wanted.mac {
            interface.mac = Some(mac.to_string());
        }
        if let (Some(mtu), Some(_)) = (wanted.mtu, interface.mtu) {
            interface.mtu = Some(mtu);
        }
    }
}

fn compare(link: &Link, wanted: &Wanted) -> Result<(), CniError> {
    let differs = |what: &str, wanted: &dyn std::fmt::Display, seen: &dyn std::fmt::Display| {
        let msg = format!("{what} of {} is {seen}, not {wanted}", link.name);
        Err(CniError::internal(msg))
    };
    if let (Some(wanted), Some(seen)) = (wanted.mac, link.mac)
        && wanted != seen
    {
        return differs("the MAC", &wanted, &seen);
    }
    if let Some(mtu) = wanted.mtu.filter(|mtu| *mtu != link.mtu) {
        return differs("the MTU", &mtu, &link.mtu);
    }
    if wanted.promiscuous && !link.promiscuous {
        return differs("promiscuous mode", &true, &false);
    }
    if let Some(on) = wanted.all_multicast.filter(|on| *on != link.all_multicast) {
        return differs("all-multicast mode", &on, &link.all_multicast);
    }
    if let Some(length) = wanted.txqlen.filter(|length| *length != link.txqlen) {
        return differs("the transmit queue length", &length, &link.txqlen);
    }
    Ok(())
}

fn look(pod: &mut Netlink, ifname: &str) -> Result<Link, CniError> {
    let found = pod.link(ifname);
    let found =
        found.map_err(|e| CniError::internal(format!("cannot look for {ifname}")).because(&e))?;
    found.ok_or_else(|| CniError::internal(format!("the container has no interface {ifname}")))
}
