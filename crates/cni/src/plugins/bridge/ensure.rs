//! The bridge itself, its ports and its gateway address: everything that several pods share, under a lock.
//!
//! Called by ADD. Every step may find its work done, by an earlier ADD, by the reference plugin or by the administrator.
//! Easy to get wrong: a bridge takes the lowest MAC of its ports unless somebody sets one, and then every pod's
//! neighbour entry for the gateway is wrong; so a bridge of ours is made with a MAC.

use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use mooring_api::net::{Addr, Bridge, BridgePort, BridgeVlan, Link, LinkChange, LinkKind, NewLink};
use mooring_api::{Family, HostCidr, Mac, VlanId};
use mooring_attach::cni::CniError;
use mooring_host::file::Lock;
use mooring_host::{Change, Netlink, NetlinkError, Netns, fault, sysctl};

use super::config::Wanted;
use super::gateway::in_the_way;
use super::mark;

/// Every holder does a few netlink calls.
const LOCK_BOUND: Duration = Duration::from_secs(10);
/// The VLAN of untagged frames on a trunk that names none.
const NATIVE: u16 = 1;

/// One process at a time changes a bridge; most find that nothing is to be changed and never come here. Bridges of two
/// namespaces may share a name.
fn lock(locks: &Path, bridge: &str) -> Result<Lock, CniError> {
    let netns =
        Netns::current().map_err(|e| CniError::internal("which namespace is this").because(&e))?;
    let file = locks.join(format!("bridge-{}-{bridge}.lock", netns.id().inode));
    Lock::exclusive(&file, LOCK_BOUND)
        .map_err(|e| CniError::try_again(format!("the bridge {bridge} is busy")).because(&e))
}

/// The bridge, made where it is absent, up, and as the configuration wants it.
pub(super) fn bridge(node: &mut Netlink, wanted: &Wanted, locks: &Path) -> Result<Link, CniError> {
    let name = wanted.bridge.as_str();
    let failed = failed(format!("cannot set up the bridge {name}"));
    if let Some(link) = node.link(name).map_err(&failed)?
        && change(&link, wanted)?.is_empty()
    {
        return Ok(link);
    }
    let _lock = lock(locks, name)?;
    let link = if let Some(link) = node.link(name).map_err(&failed)? {
        link
    } else {
        match node.apply(&[new(wanted)?]) {
            Ok(()) => fault::point("bridge-made"),
            Err(e) if e.is_present() => {}
            Err(e) => return Err(failed(e)),
        }
        let made = node.link(name).map_err(&failed)?;
        made.ok_or_else(|| CniError::try_again(format!("the bridge {name} vanished")))?
    };
    let change = change(&link, wanted)?;
    if !change.is_empty() {
        // The routes of this interface are ours; a kernel without IPv6 has nothing to say here.
        let _ = sysctl::write_here(&format!("net/ipv6/conf/{name}/accept_ra"), "0");
        let index = link.index;
        node.apply(&[Change::SetLink { index, change }])
            .map_err(&failed)?;
    }
    Ok(link)
}

/// What has to change of a bridge that is there.
fn change(link: &Link, wanted: &Wanted) -> Result<LinkChange, CniError> {
    let LinkKind::Bridge(seen) = &link.kind else {
        let why = format!("{} already exists but is not a bridge", link.name);
        return Err(CniError::config("bridge", why));
    };
    Ok(LinkChange {
        up: (!link.up).then_some(true),
        promiscuous: (wanted.promiscuous && !link.promiscuous).then_some(true),
        kind: (wanted.filters() && seen.vlan_filtering != Some(true)).then(filtering),
        ..LinkChange::default()
    })
}

fn new(wanted: &Wanted) -> Result<Change<'static>, CniError> {
    let kind = if wanted.filters() {
        filtering()
    } else {
        LinkKind::Bridge(Bridge::default())
    };
    let mut link = NewLink::new(wanted.bridge.as_str(), kind);
    link.set = LinkChange {
        mac: Some(random_mac()?),
        mtu: wanted.mtu,
        ..LinkChange::default()
    };
    Ok(Change::NewLink(link))
}

fn filtering() -> LinkKind {
    LinkKind::Bridge(Bridge {
        vlan_filtering: Some(true),
        ..Bridge::default()
    })
}

/// Locally administered, of one host.
fn random_mac() -> Result<Mac, CniError> {
    let mut octets = [0; 6];
    let mut source = std::fs::File::open("/dev/urandom");
    let read = source.as_mut().map_err(|e| e.to_string());
    let read = read.and_then(|file| file.read_exact(&mut octets).map_err(|e| e.to_string()));
    read.map_err(|e| CniError::io("cannot make a MAC for the bridge", e))?;
    octets[0] = (octets[0] & 0xfc) | 2;
    Ok(Mac::from(octets))
}

/// Hairpin, isolation and VLANs of a port that has just joined.
pub(super) fn port(
    node: &mut Netlink,
    bridge: &Link,
    port: u32,
    wanted: &Wanted,
) -> Result<(), CniError> {
    let mut changes = Vec::new();
    if wanted.hairpin || wanted.isolated {
        let settings = BridgePort {
            hairpin: Some(wanted.hairpin),
            isolated: Some(wanted.isolated),
            ..BridgePort::default()
        };
        changes.push(Change::BridgePort {
            index: port,
            port: settings,
        });
    }
    if wanted.filters() && !wanted.keep_default_vlan {
        changes.extend(default_vlan(bridge, port).map(Change::DelBridgeVlan));
    }
    let vlans = vlans(
        port,
        wanted.vlan,
        wanted.trunk.as_deref().unwrap_or_default(),
    );
    changes.extend(vlans.into_iter().map(Change::AddBridgeVlan));
    node.apply(&changes)
        .map_err(failed(format!("cannot set up the port on {}", bridge.name)))
}

/// The VLAN that the bridge gave a new port.
fn default_vlan(bridge: &Link, port: u32) -> Option<BridgeVlan> {
    let LinkKind::Bridge(seen) = &bridge.kind else {
        return None;
    };
    let id = seen.default_pvid.unwrap_or(NATIVE);
    (id != 0).then(|| BridgeVlan::tagged(port, id))
}

/// The VLANs of a port: the native one last, so that a trunk which contains it does not make it tagged.
pub(super) fn vlans(port: u32, vlan: Option<VlanId>, trunk: &[VlanId]) -> Vec<BridgeVlan> {
    let native = match vlan {
        Some(id) => Some(id.get()),
        None if trunk.is_empty() => None,
        None => Some(NATIVE),
    };
    let mut all: Vec<BridgeVlan> = Vec::new();
    for id in trunk
        .iter()
        .map(|id| id.get())
        .filter(|id| Some(*id) != native)
    {
        match all.last_mut() {
            Some(range) if range.last + 1 == id => range.last = id,
            _ => all.push(BridgeVlan::tagged(port, id)),
        }
    }
    all.extend(native.map(|id| BridgeVlan::access(port, id)));
    all
}

/// Puts the gateway's addresses where they belong and lets the node forward; gives the interface that has them.
///
/// The address comes last: where it is, everything before it is too, whoever was killed in between.
pub(super) fn gateway(
    node: &mut Netlink,
    bridge: &Link,
    addresses: &[HostCidr],
    wanted: &Wanted,
    locks: &Path,
) -> Result<Link, CniError> {
    let name = match wanted.vlan {
        Some(id) => wanted.vlan_gateway(id),
        None => bridge.name.clone(),
    };
    let failed = failed(format!("cannot give {name} the gateway's address"));
    if let Some(link) = node.link(&name).map_err(&failed)? {
        let seen = node.addrs(Some(link.index)).map_err(&failed)?;
        if addresses
            .iter()
            .all(|own| seen.iter().any(|a| a.address == *own))
        {
            forward(addresses)?;
            return Ok(link);
        }
    }
    let _lock = lock(locks, &bridge.name)?;
    let link = match wanted.vlan {
        Some(id) => vlan_link(node, bridge, id, wanted)?,
        None => bridge.clone(),
    };
    pin(node, &link).map_err(&failed)?;
    for address in addresses {
        let changes = replacement(node, &link, *address, addresses, wanted)?;
        match node.apply(&changes) {
            Err(e) if !e.is_present() => return Err(failed(e)),
            _ => fault::point("gateway-address"),
        }
    }
    forward(addresses)?;
    Ok(link)
}

/// What brings one address to a link; nothing where it is there.
fn replacement(
    node: &mut Netlink,
    link: &Link,
    address: HostCidr,
    together: &[HostCidr],
    wanted: &Wanted,
) -> Result<Vec<Change<'static>>, CniError> {
    let name = &link.name;
    let seen = node.addrs(Some(link.index));
    let seen = seen.map_err(failed(format!("cannot read the addresses of {name}")))?;
    if seen.iter().any(|a| a.address == address) {
        return Ok(Vec::new());
    }
    let present: Vec<HostCidr> = seen.iter().map(|a| a.address).collect();
    let mut others = in_the_way(address, &present);
    // A pod with two subnets has two gateways here, and neither is in the other's way.
    others.retain(|other| !together.contains(other));
    if !others.is_empty() && !wanted.force_address {
        let why = format!("{name:?} already has an IP address different from {address}");
        let details = "remove it, choose another bridge, or set forceAddress";
        return Err(CniError::config("isGateway", why).with_details(details));
    }
    let gone = seen.into_iter().filter(|a| others.contains(&a.address));
    let mut changes: Vec<Change> = gone.map(Change::DelAddr).collect();
    let own = Addr::new(link.index, address);
    // A gateway that waits for duplicate detection leaves its first pods without a router.
    let waits = wanted.dad || address.family() == Family::V4;
    changes.push(Change::AddAddr(if waits { own } else { own.nodad() }));
    Ok(changes)
}

/// The gateway's interface in a VLAN: one end of a pair whose other end is a port in that VLAN.
fn vlan_link(
    node: &mut Netlink,
    bridge: &Link,
    id: VlanId,
    wanted: &Wanted,
) -> Result<Link, CniError> {
    let name = wanted.vlan_gateway(id);
    let failed = failed(format!("cannot set up the gateway's interface {name}"));
    if node.link(&name).map_err(&failed)?.is_none() {
        let mut link = NewLink::veth(mark::veth(&format!("gateway/{name}")), &name);
        link.set.master = Some(bridge.index);
        link.set.up = Some(true);
        link.set.mtu = wanted.mtu;
        if let Some(peer) = &mut link.peer {
            peer.set.mtu = wanted.mtu;
        }
        node.apply(&[Change::NewLink(link)]).map_err(&failed)?;
        fault::point("gateway-link-made");
    }
    let found = node.link(&name).map_err(&failed)?;
    let link = found.ok_or_else(|| CniError::try_again(format!("{name} vanished")))?;
    // All of this also where it was there already: whoever made it may have been killed before.
    if !link.up {
        let (index, change) = (link.index, LinkChange::up());
        node.apply(&[Change::SetLink { index, change }])
            .map_err(&failed)?;
    }
    if let Some(port) = link.parent
        && link.kind == LinkKind::Veth
        && let Some(end) = node.link_at(port).map_err(&failed)?
        && end.master == Some(bridge.index)
    {
        node.apply(&[Change::AddBridgeVlan(BridgeVlan::access(port, id.get()))])
            .map_err(&failed)?;
        if !wanted.keep_default_vlan
            && let Some(default) = default_vlan(bridge, port).filter(|d| d.first != id.get())
        {
            node.apply(&[Change::DelBridgeVlan(default)])
                .or_else(|e| if e.is_absent() { Ok(()) } else { Err(e) })
                .map_err(&failed)?;
        }
    }
    Ok(link)
}

/// Sets the MAC to what it is: from then on it does not follow the ports.
fn pin(node: &mut Netlink, link: &Link) -> Result<(), NetlinkError> {
    let Some(mac) = link.mac else { return Ok(()) };
    let change = LinkChange {
        mac: Some(mac),
        ..LinkChange::default()
    };
    let index = link.index;
    node.apply(&[Change::SetLink { index, change }])
}

fn forward(addresses: &[HostCidr]) -> Result<(), CniError> {
    for (family, key) in [
        (Family::V4, "net/ipv4/ip_forward"),
        (Family::V6, "net/ipv6/conf/all/forwarding"),
    ] {
        let needed = addresses.iter().any(|a| a.family() == family);
        // Writing it resets settings of interfaces, so only where it is not set.
        if needed && !sysctl::read_here(key).is_ok_and(|value| value == "1") {
            sysctl::write_here(key, "1")
                .map_err(|e| CniError::internal("the gateway cannot forward").because(&e))?;
        }
    }
    Ok(())
}

fn failed(doing: String) -> impl Fn(NetlinkError) -> CniError {
    move |e| CniError::internal(doing.clone()).because(&e)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(list: &[u16]) -> Vec<VlanId> {
        list.iter()
            .map(|id| VlanId::try_from(*id).unwrap())
            .collect()
    }

    fn shown(vlan: Option<u16>, trunk: &[u16]) -> Vec<(u16, u16, bool)> {
        let vlan = vlan.map(|id| VlanId::try_from(id).unwrap());
        let all = vlans(7, vlan, &ids(trunk));
        all.iter()
            .map(|v| (v.first, v.last, v.pvid && v.untagged))
            .collect()
    }

    #[test]
    fn a_port_has_its_native_vlan_untagged_and_its_trunk_in_ranges() {
        assert_eq!(shown(None, &[]), []);
        assert_eq!(shown(Some(100), &[]), [(100, 100, true)]);
        assert_eq!(
            shown(Some(100), &[5, 6, 7, 9]),
            [(5, 7, false), (9, 9, false), (100, 100, true)]
        );
    }

    #[test]
    fn a_trunk_without_a_vlan_has_vlan_1_untagged_and_a_trunk_with_it_does_not_tag_it() {
        assert_eq!(shown(None, &[5]), [(5, 5, false), (1, 1, true)]);
        assert_eq!(shown(None, &[1, 2]), [(2, 2, false), (1, 1, true)]);
        assert_eq!(
            shown(Some(6), &[5, 6, 7]),
            [(5, 5, false), (7, 7, false), (6, 6, true)]
        );
    }

    #[test]
    fn a_new_bridge_has_a_mac_of_its_own() {
        let (a, b) = (random_mac().unwrap(), random_mac().unwrap());
        assert_ne!(a, b);
        assert_eq!(a.octets()[0] & 3, 2, "locally administered, not multicast");
    }
}
