//! What comes after ADD: DEL, CHECK, STATUS, GC.
//!
//! Easy to get wrong: none of DEL may depend on the master. It may be gone, and the configuration may name another one today.

use mooring_api::Mac;
use mooring_api::net::Link;
use mooring_attach::cni::{CniError, Interface};
use mooring_host::{Change, Netns, fault};

use super::{
    Keys, default_master, failed, let_go, master_inside, open_netlink, open_node, temporary_name,
    vlans,
};
use crate::call::Call;
use crate::configure::check_configured;

/// Removes the child and lets go of the master; collects what fails and goes on. Never looks at the master.
pub(crate) fn del(call: &Call, word: &str, others: &mut Vec<CniError>) {
    // A foreign plugin may say goodbye through the interface, as dhcp does. With our own nobody is given the address while the
    // interface still answers for it.
    let first = (!call.has_own_ipam()).then(|| call.ipam_del());
    fault::point("child-released-first");
    let removed = remove(call, word);
    fault::point("child-removed");
    let released = first.unwrap_or_else(|| call.ipam_del());
    fault::point("child-released");
    others.extend(removed.err());
    others.extend(released.err());
    let gone = open_node().and_then(|mut node| let_go(call, &mut node));
    if let Err(error) = gone {
        others.push(error);
    }
}

fn remove(call: &Call, word: &str) -> Result<(), CniError> {
    let Some(path) = call.request.netns.as_deref() else {
        return Ok(());
    };
    let pod = match Netns::open(path) {
        Err(error) if error.is_gone() => return Ok(()),
        pod => pod.map_err(|e| CniError::netns(path.display(), &e))?,
    };
    let mut inside = open_netlink(&pod)?;
    for name in [call.ifname(), &temporary_name(call)] {
        let seen = inside
            .link(name)
            .map_err(|e| failed("cannot look into the pod", &e))?;
        let Some(link) = seen.filter(|l| l.kind.word() == word && l.name == name) else {
            continue;
        };
        match inside.apply(&[Change::DelLink(link.index)]) {
            Err(error) if !error.is_absent() => {
                return Err(failed(format_args!("cannot remove {name}"), &error));
            }
            // The other name is only there when this one is not.
            _ => return Ok(()),
        }
    }
    Ok(())
}

/// Whether the attachment is what `prevResult` says; `is_right` judges the link, which is returned.
pub(crate) fn check(
    call: &Call,
    keys: &Keys,
    is_right: &dyn Fn(&Link) -> Result<(), CniError>,
) -> Result<(), CniError> {
    let prev = call.prev()?;
    let name = call.ifname();
    let pod = call.open_netns()?;
    let here = |i: &&Interface| i.name == name && i.sandbox.is_some();
    let Some(listed) = prev.interfaces.iter().find(here) else {
        let why = format!("it lists no interface {name} in the container");
        return Err(CniError::config("prevResult", why));
    };
    if listed.sandbox.as_deref() != Some(call.request.sandbox().as_str()) {
        let why = format!("its {name} is in another namespace");
        return Err(CniError::config("prevResult", why));
    }
    let mut inside = open_netlink(&pod)?;
    let seen = inside
        .link(name)
        .map_err(|e| failed("cannot look into the pod", &e))?;
    let Some(link) = seen else {
        return Err(CniError::internal(format!(
            "{name} is not in the container"
        )));
    };
    is_right(&link)?;
    if let Some(mac) = listed.mac.as_deref().and_then(|m| m.parse::<Mac>().ok())
        && link.mac != Some(mac)
    {
        let now = link
            .mac
            .map_or_else(|| "none".to_owned(), |m| m.to_string());
        return Err(CniError::internal(format!(
            "{name} had MAC {mac} and has {now}"
        )));
    }
    // Where the configuration names none, the default route or the earlier plugin that did may say something else today, and the
    // attachment is none the worse for it.
    if !keys.master.is_empty() {
        if keys.link_in_container {
            master_inside(call, &mut inside, &keys.master)?;
        } else {
            check_master(keys, &link)?;
        }
    }
    check_configured(&pod, name, prev)?;
    call.ipam_check()
}

/// Whether the child is still that of the master.
fn check_master(keys: &Keys, child: &Link) -> Result<(), CniError> {
    let mut node = open_node()?;
    let found = node
        .link(&keys.master)
        .map_err(|e| failed("cannot look for the master", &e))?;
    let why = match found {
        None => "is no longer there for",
        Some(master) if child.parent.is_some_and(|index| index != master.index) => {
            "is another link than the one below"
        }
        Some(_) => return Ok(()),
    };
    Err(CniError::internal(format!(
        "master {} {why} {}",
        keys.master, child.name
    )))
}

/// Whether an ADD could find its master now, one that `fits`, and addresses.
pub(crate) fn status(
    call: &Call,
    keys: &Keys,
    fits: impl FnOnce(&Link) -> Result<(), CniError>,
) -> Result<(), CniError> {
    if !keys.link_in_container {
        fits(&master_to_be(call, keys)?)?;
    }
    call.ipam_status()
}

/// The master, or the NIC on which it would be made.
fn master_to_be(call: &Call, keys: &Keys) -> Result<Link, CniError> {
    let network = &call.config().name;
    let mut node = open_node()?;
    let mut find = |name: &str| {
        let link = node.link(name);
        link.map_err(|e| failed("cannot look for the master", &e))
    };
    let (found, word) = match keys.master.as_str() {
        "" => (default_master(&mut node)?, "interface of a default route"),
        name => match (find(name)?, mooring_host::vlan_of(name)) {
            (None, Some((nic, _))) => {
                let nic = find(nic)?;
                if let Some(nic) = nic.as_ref().filter(|nic| !nic.up) {
                    let msg = format!(
                        "{} is down, on which the network {network:?} makes {name}",
                        nic.name
                    );
                    return Err(CniError::unavailable(msg));
                }
                (nic, name)
            }
            (found, _) => (found, name),
        },
    };
    found.ok_or_else(|| {
        CniError::unavailable(format!(
            "this node has no {word}, which the network {network:?} takes as its master"
        ))
    })
}

/// What no valid attachment holds goes, here and at the IPAM plugin.
pub(crate) fn gc(call: &Call, others: &mut Vec<CniError>) {
    if let Err(error) = call.ipam_gc() {
        others.push(error);
    }
    let valid = is_valid(call);
    let collected = open_node().and_then(|mut node| {
        vlans(call)
            .collect(&mut node, &call.config().name, &valid)
            .map_err(|e| failed("cannot let go of masters", &e))
    });
    if let Err(error) = collected {
        others.push(error);
    }
}

/// Whether a GC must leave an attachment alone.
pub(crate) fn is_valid<'a>(call: &Call<'a>) -> impl Fn(&str, &str) -> bool + use<'a> {
    let valid = &call.config().valid;
    move |container, ifname| {
        valid
            .iter()
            .any(|a| a.container == container && a.ifname == ifname)
    }
}
