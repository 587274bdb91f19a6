//! Devices that the reference host-device moved: it leaves no record, only the host's name in the alias of the link.
//!
//! Called by DEL where there is no record of ours. The link comes home under that name and stays down, as the reference leaves it: what it
//! was before, nobody knows. Easy to get wrong: the netns may have ended; then the NIC is on the host under the pod's name.

use mooring_api::net::{Link, LinkChange, LinkKind};
use mooring_attach::cni::CniError;
use mooring_host::device::{Mover, Selector, look_up};
use mooring_host::{Change, Netlink, Netns};

use super::attach::failed;
use super::keys;
use crate::call::Call;

/// Brings the device home, where there is one.
pub(crate) fn give_back(call: &Call, mover: &Mover) -> Result<(), CniError> {
    // A DEL with a configuration that names no device finds it by its alias alone.
    let selector = keys::wanted(call.config(), mover.devices())
        .ok()
        .map(|wanted| wanted.selector);
    if let Some(selector) = &selector {
        let mut host = open(mover.host())?;
        let found = look_up(selector, &mut host, mover.devices()).map_err(failed)?;
        if let Some(found) = found {
            // At home. Whatever has its name in the pod is something else.
            return match selector {
                Selector::Name(_) => Ok(()),
                _ => fell_back(call, mover, &mut host, &found.link),
            };
        }
        if let Selector::Name(name) = selector
            && let Some(link) = look(&mut host, call.ifname())?
            && link.alias.as_deref() == Some(name.as_str())
        {
            return fell_back(call, mover, &mut host, &link);
        }
    }
    if let Some(path) = &call.request.netns
        && let Ok(pod) = Netns::open(path)
        && pod.id() != mover.host().id()
    {
        let mut inside = open(&pod)?;
        if let Some((link, name)) = in_pod(call, mover, &mut inside, selector.as_ref())? {
            let home = mover.bring_home(&mut inside, &link, &name);
            home.map_err(failed)?;
            return clear_alias(mover, &name);
        }
    }
    Ok(())
}

/// The link in the pod, and its name on the host. Without an alias it is not one that the reference moved, but for an ADD that
/// died between its move and its rename. Then only hardware tells itself from what the pod has under that name anyway, such as
/// its own `eth0`, and only while nobody has it by a record.
fn in_pod(
    call: &Call,
    mover: &Mover,
    inside: &mut Netlink,
    selector: Option<&Selector>,
) -> Result<Option<(Link, String)>, CniError> {
    if let Some(link) = look(inside, call.ifname())?
        && let Some(alias) = link.alias.clone().filter(|alias| is_name(alias))
    {
        return Ok(Some((link, alias)));
    }
    if let Some(Selector::Name(name)) = selector
        && let Some(link) = look(inside, name)?
        && link.name != call.ifname()
        && link.kind == LinkKind::Device
        && link.device.is_some()
        && !is_recorded(mover, &link)?
    {
        return Ok(Some((link, name.clone())));
    }
    Ok(None)
}

/// Whether somebody has it by a record of ours.
fn is_recorded(mover: &Mover, link: &Link) -> Result<bool, CniError> {
    let records = mover.records().all().map_err(|e| failed(e.into()))?;
    Ok(records.iter().any(|(_, record)| record.device.is(link)))
}

/// A NIC that fell back to the host under the pod's name, with its own name as alias, gets its own name again. It is down
/// then: one that is up is in use under this name, and its alias is its administrator's.
fn fell_back(call: &Call, mover: &Mover, host: &mut Netlink, link: &Link) -> Result<(), CniError> {
    let Some(alias) = link.alias.clone().filter(|alias| is_name(alias)) else {
        return Ok(());
    };
    // With somebody's record it is on its way to another pod.
    if link.up || link.name != call.ifname() || is_recorded(mover, link)? {
        return Ok(());
    }
    mover.rename(host, link, &alias).map_err(failed)?;
    clear_alias(mover, &alias)
}

fn clear_alias(mover: &Mover, name: &str) -> Result<(), CniError> {
    let mut host = open(mover.host())?;
    let Some(link) = look(&mut host, name)? else {
        return Ok(());
    };
    let change = LinkChange {
        alias: Some(String::new()),
        ..LinkChange::default()
    };
    let index = link.index;
    host.apply(&[Change::SetLink { index, change }])
        .map_err(|e| CniError::internal(format!("cannot clear the alias of {name}")).because(&e))
}

fn open(netns: &Netns) -> Result<Netlink, CniError> {
    netns
        .netlink()
        .map_err(|e| CniError::netns(netns.path().display(), "cannot work in it").because(&e))
}

fn look(netlink: &mut Netlink, name: &str) -> Result<Option<Link>, CniError> {
    netlink
        .link(name)
        .map_err(|e| CniError::internal(format!("cannot look for {name}")).because(&e))
}

/// Whether a text can be the name of an interface.
fn is_name(text: &str) -> bool {
    text.parse::<mooring_api::IfName>().is_ok()
}
