//! CHECK of the bridge plugin: what ADD made is still there, and as the configuration wants it.
//!
//! Easy to get wrong: plugins that come later in the list may change MTU, MAC and promiscuity, so only what
//! `prevResult` says and what nobody else changes is compared.

use mooring_api::net::{BridgePort, BridgeVlan, Link, LinkKind};
use mooring_attach::cni::{CniError, CniResult, Interface};
use mooring_host::Netlink;

use super::config::Wanted;
use super::mark::Mark;
use super::{ensure, masquerade, node, pod, spoof};
use crate::call::Call;
use crate::configure;

pub(super) fn run(call: &Call, wanted: &Wanted, mark: &Mark) -> Result<(), CniError> {
    let prev = call.prev()?;
    let sandbox = call.request.sandbox();
    let (netns, mut inside) = pod(call)?;
    let mut node = node()?;
    let bridge = bridge(&mut node, wanted, prev)?;
    let own = in_result(prev, call.ifname(), |i| {
        i.sandbox.as_deref() == Some(&*sandbox)
    })?;
    let end = look(&mut inside, &own.name)?;
    if end.kind != LinkKind::Veth {
        return Err(wrong(format!(
            "{} in the pod is no end of a pair",
            own.name
        )));
    }
    same_mac(own, &end)?;
    let port = port(&mut node, &bridge, &end, prev)?;
    settings(&port, wanted)?;
    vlans(&mut node, &port, wanted)?;
    if wanted.spoof_check && !spoof::is_set(mark, &port.name)? {
        return Err(wrong(format!(
            "nftables has no MAC check for {}",
            port.name
        )));
    }
    if wanted.masquerade && call.config().ipam.is_some() {
        let (has, needs) = (masquerade::count(mark)?, prev.ips.len());
        if has < needs {
            let msg = format!("nftables masquerades {has} of {needs} addresses");
            return Err(wrong(msg));
        }
    }
    if wanted.down {
        return Ok(());
    }
    configure::check_configured(&netns, call.ifname(), prev).map(drop)
}

fn bridge(node: &mut Netlink, wanted: &Wanted, prev: &CniResult) -> Result<Link, CniError> {
    let name = wanted.bridge.as_str();
    let listed = in_result(prev, name, |i| i.sandbox.is_none())?;
    let link = look(node, name)?;
    let LinkKind::Bridge(seen) = &link.kind else {
        return Err(wrong(format!("{name} is not a bridge")));
    };
    if wanted.filters() && seen.vlan_filtering != Some(true) {
        return Err(wrong(format!("{name} does not filter VLANs")));
    }
    if wanted.promiscuous && !link.promiscuous {
        return Err(wrong(format!("{name} is not promiscuous")));
    }
    same_mac(listed, &link)?;
    Ok(link)
}

/// The node's end: of those in the result, the one that is the pod's peer.
fn port(node: &mut Netlink, bridge: &Link, end: &Link, prev: &CniResult) -> Result<Link, CniError> {
    for listed in prev.interfaces.iter().filter(|i| i.sandbox.is_none()) {
        if listed.name == bridge.name {
            continue;
        }
        let Ok(link) = look(node, &listed.name) else {
            continue;
        };
        let peers = link.kind == LinkKind::Veth
            && end.parent == Some(link.index)
            && link.parent == Some(end.index);
        if peers {
            if link.master != Some(bridge.index) {
                let msg = format!("{} is not a port of {}", link.name, bridge.name);
                return Err(wrong(msg));
            }
            return Ok(link);
        }
    }
    Err(wrong(format!(
        "the other end of {} is not on {}",
        end.name, bridge.name
    )))
}

fn settings(port: &Link, wanted: &Wanted) -> Result<(), CniError> {
    let seen = port.port.clone().unwrap_or_default();
    let BridgePort {
        hairpin, isolated, ..
    } = seen;
    if hairpin.is_some_and(|on| on != wanted.hairpin) {
        return Err(wrong(format!(
            "hairpin mode of {} is not {}",
            port.name, wanted.hairpin
        )));
    }
    if isolated.is_some_and(|on| on != wanted.isolated) {
        return Err(wrong(format!(
            "isolation of {} is not {}",
            port.name, wanted.isolated
        )));
    }
    Ok(())
}

/// The VLANs that were asked for; what else the port carries is somebody's wish.
fn vlans(node: &mut Netlink, port: &Link, wanted: &Wanted) -> Result<(), CniError> {
    if !wanted.filters() {
        return Ok(());
    }
    let seen = node.bridge_vlans(Some(port.index));
    let seen = seen.map_err(|e| CniError::internal("cannot read the port's VLANs").because(&e))?;
    let trunk = wanted.trunk.as_deref().unwrap_or_default();
    for range in ensure::vlans(port.index, wanted.vlan, trunk) {
        let carries = |id: u16| {
            let like = |v: &BridgeVlan| v.pvid == range.pvid && v.untagged == range.untagged;
            seen.iter()
                .any(|v| (v.first..=v.last).contains(&id) && like(v))
        };
        if let Some(id) = (range.first..=range.last).find(|id| !carries(*id)) {
            return Err(wrong(format!(
                "{} is not in VLAN {id} as it was",
                port.name
            )));
        }
    }
    Ok(())
}

fn in_result<'a>(
    prev: &'a CniResult,
    name: &str,
    fits: impl Fn(&Interface) -> bool,
) -> Result<&'a Interface, CniError> {
    let found = prev.interfaces.iter().find(|i| i.name == name && fits(i));
    found.ok_or_else(|| wrong(format!("prevResult has no interface {name} in its place")))
}

fn look(netlink: &mut Netlink, name: &str) -> Result<Link, CniError> {
    let found = netlink.link(name);
    let found =
        found.map_err(|e| CniError::internal(format!("cannot look for {name}")).because(&e))?;
    found.ok_or_else(|| wrong(format!("{name} is gone")))
}

fn same_mac(listed: &Interface, link: &Link) -> Result<(), CniError> {
    let seen = link.mac.map(|mac| mac.to_string());
    match (&listed.mac, seen) {
        (Some(wanted), Some(seen)) if !wanted.eq_ignore_ascii_case(&seen) => {
            let msg = format!("the MAC of {} is {seen}, not {wanted}", link.name);
            Err(wrong(msg))
        }
        _ => Ok(()),
    }
}

fn wrong(msg: String) -> CniError {
    CniError::internal(msg)
}
