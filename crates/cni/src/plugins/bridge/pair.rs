//! The pair of interfaces between node and pod: made by bridge and ovs in one kernel message.
//!
//! The node's end has a name that follows from container and interface, so a DEL without a namespace finds it, and so
//! does an ADD that is tried again. Easy to get wrong: the kernel answers EEXIST for either end; only the node's end is
//! ours to remove.

use mooring_api::Mac;
use mooring_api::net::{Link, LinkChange, LinkKind, NewLink};
use mooring_attach::cni::CniError;
use mooring_host::{Change, Netlink, Netns, fault};

use super::mark::Mark;
use crate::call::Call;

/// What both ends are made with.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ends {
    /// Of the pod's end.
    pub(crate) mac: Option<Mac>,
    /// Of both.
    pub(crate) mtu: Option<u32>,
    /// The bridge that the node's end joins at once.
    pub(crate) master: Option<u32>,
}

/// Makes the pair, the pod's end still down; gives the node's end. What an ADD that was killed left is made anew.
pub(crate) fn make(
    node: &mut Netlink,
    pod: &Netns,
    mark: &Mark,
    ends: Ends,
) -> Result<Link, CniError> {
    let name = mark.host_end();
    let failed = |e: &dyn std::error::Error| {
        let msg = format!("cannot make the interface {}", mark.ifname());
        CniError::internal(msg).because(e)
    };
    // In one send, so that no kill leaves a pair that GC does not know. The label goes by the name because nobody knows the
    // index yet: where the name is taken it lands on what has the name, which is ours to remove, or fails.
    let mut changes = vec![new(&name, pod, mark, ends)];
    changes.extend(mark.alias().map(|alias| Change::Label {
        name: name.clone(),
        alias,
    }));
    let mut made = node.apply_and_show(&changes, &name);
    if let Err(error) = &made
        && error.is_present()
    {
        if !remove_end(node, &name).map_err(|e| failed(&e))? {
            return Err(taken(mark));
        }
        made = node.apply_and_show(&changes, &name);
    }
    fault::point("pair-made");
    made.map_err(|e| {
        if e.is_present() {
            taken(mark)
        } else {
            failed(&e)
        }
    })
}

fn new<'a>(name: &str, pod: &'a Netns, mark: &Mark, ends: Ends) -> Change<'a> {
    let mut link = NewLink::veth(name, mark.ifname());
    link.set = LinkChange {
        mtu: ends.mtu,
        master: ends.master,
        up: Some(true),
        ..LinkChange::default()
    };
    if let Some(peer) = &mut link.peer {
        peer.set = LinkChange {
            mac: ends.mac,
            mtu: ends.mtu,
            ..LinkChange::default()
        };
    }
    Change::NewLinkIn {
        link,
        netns: None,
        peer: Some(pod),
    }
}

fn taken(mark: &Mark) -> CniError {
    let msg = format!(
        "the container already has an interface called {}",
        mark.ifname()
    );
    CniError::internal(msg).with_details("another attachment made it; DEL that one first")
}

/// Removes the pair by its end on the node, else by the one in the namespace, where the reference plugin may have made
/// it. Absent is success.
pub(crate) fn remove(
    node: &mut Netlink,
    mark: &Mark,
    netns: Option<&std::path::Path>,
) -> Result<(), CniError> {
    let failed = |e: &dyn std::error::Error| {
        let msg = format!("cannot remove the interface {}", mark.ifname());
        CniError::internal(msg).because(e)
    };
    if remove_end(node, &mark.host_end()).map_err(|e| failed(&e))? {
        return Ok(());
    }
    let Some(path) = netns else { return Ok(()) };
    let mut pod = match Netns::open(path).and_then(|netns| netns.netlink()) {
        Ok(pod) => pod,
        Err(e) if e.is_gone() => return Ok(()),
        Err(e) => return Err(failed(&e)),
    };
    let link = pod.link(mark.ifname()).map_err(|e| failed(&e))?;
    // Whatever else has this name is not an interface of ours.
    let Some(link) = link.filter(|link| link.kind == LinkKind::Veth) else {
        return Ok(());
    };
    // The path of a namespace may lead to another pod's by now.
    if let Some(other) = link.parent
        && let Some(end) = node.link_at(other).map_err(|e| failed(&e))?
        && let Some(owner) = end.alias.as_deref().and_then(Mark::from_alias)
        && owner != *mark
    {
        return Ok(());
    }
    gone(pod.apply(&[Change::DelLink(link.index)]))
        .map(drop)
        .map_err(|e| failed(&e))
}

/// Removes one end, and the other with it; says whether there was one.
pub(crate) fn remove_end(
    node: &mut Netlink,
    name: &str,
) -> Result<bool, mooring_host::NetlinkError> {
    match node.link(name)? {
        Some(link) if link.kind == LinkKind::Veth => {
            gone(node.apply(&[Change::DelLink(link.index)]))
        }
        _ => Ok(false),
    }
}

/// Whether something was removed; absent is success.
pub(crate) fn gone(
    outcome: Result<(), mooring_host::NetlinkError>,
) -> Result<bool, mooring_host::NetlinkError> {
    match outcome {
        Ok(()) => Ok(true),
        Err(e) if e.is_absent() => Ok(false),
        Err(e) => Err(e),
    }
}

/// Removes the ends that attachments of `network` left which are not valid.
pub(crate) fn sweep(node: &mut Netlink, network: &str, valid: &[Mark]) -> Result<(), CniError> {
    let failed = |e: &dyn std::error::Error| {
        CniError::internal("cannot remove interfaces that nobody owns").because(e)
    };
    for link in node.links().map_err(|e| failed(&e))? {
        let mark = link.alias.as_deref().and_then(Mark::from_alias);
        let dead = mark.is_some_and(|mark| {
            mark.network() == network && mark.host_end() == link.name && !valid.contains(&mark)
        });
        if dead && link.kind == LinkKind::Veth {
            gone(node.apply(&[Change::DelLink(link.index)])).map_err(|e| failed(&e))?;
        }
    }
    Ok(())
}

/// A socket in the node's own namespace: the one this process runs in.
pub(crate) fn node() -> Result<Netlink, CniError> {
    Netlink::open().map_err(|e| CniError::internal("cannot reach the kernel").because(&e))
}

/// The pod's namespace and a socket in it.
pub(crate) fn pod(call: &Call) -> Result<(Netns, Netlink), CniError> {
    let netns = call.open_netns()?;
    let netlink = netns.netlink();
    let path = netns.path().display().to_string();
    let netlink = netlink.map_err(|e| CniError::netns(path, "cannot be entered").because(&e))?;
    Ok((netns, netlink))
}
