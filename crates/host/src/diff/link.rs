//! The link's own part of a diff: what is set before the addresses, and what after.

use mooring_api::net::{Bridge, BridgePort, Link, LinkChange, LinkKind};

use crate::Change;

/// Attributes and names. Says whether the link is taken down for them: drivers refuse a new MAC, and older kernels a new
/// name, while it is up.
pub(super) fn before(wanted: &Link, seen: &Link, changes: &mut Vec<Change<'static>>) -> bool {
    let index = seen.index;
    let mac = wanted.mac.filter(|_| wanted.mac != seen.mac);
    let renamed = wanted.name != seen.name;
    let bounced = seen.up && (renamed || mac.is_some());
    if bounced {
        let change = LinkChange::down();
        changes.push(Change::SetLink { index, change });
    }
    if renamed && seen.altnames.contains(&wanted.name) {
        let name = wanted.name.clone();
        changes.push(Change::DelAltName { index, name });
    }
    let change = LinkChange {
        name: renamed.then(|| wanted.name.clone()),
        mac,
        mtu: differs(wanted.mtu, seen.mtu),
        promiscuous: differs(wanted.promiscuous, seen.promiscuous),
        all_multicast: differs(wanted.all_multicast, seen.all_multicast),
        arp: differs(wanted.arp, seen.arp),
        multicast: differs(wanted.multicast, seen.multicast),
        txqlen: differs(wanted.txqlen, seen.txqlen),
        alias: differs(
            wanted.alias.clone().unwrap_or_default(),
            seen.alias.clone().unwrap_or_default(),
        ),
        master: differs(wanted.master.unwrap_or(0), seen.master.unwrap_or(0)),
        group: differs(wanted.group, seen.group),
        up: None,
        addr_gen: None,
        kind: kind(&wanted.kind, &seen.kind),
    };
    if !change.is_empty() {
        changes.push(Change::SetLink { index, change });
    }
    for name in &seen.altnames {
        // The one that became the name went before.
        if !wanted.altnames.contains(name) && *name != wanted.name {
            let name = name.clone();
            changes.push(Change::DelAltName { index, name });
        }
    }
    for name in &wanted.altnames {
        if !seen.altnames.contains(name) {
            let name = name.clone();
            changes.push(Change::AddAltName { index, name });
        }
    }
    bounced
}

/// Up or down, and what it is as a port.
pub(super) fn after(wanted: &Link, seen: &Link, bounced: bool, changes: &mut Vec<Change<'static>>) {
    let index = seen.index;
    let is_up = seen.up && !bounced;
    if wanted.up != is_up {
        let up = Some(wanted.up);
        let change = LinkChange {
            up,
            ..LinkChange::default()
        };
        changes.push(Change::SetLink { index, change });
    }
    if let Some(port) = &wanted.port {
        let there = seen.port.clone().unwrap_or_default();
        let port = port_options(port, &there);
        if port != BridgePort::default() {
            changes.push(Change::BridgePort { index, port });
        }
    }
}

fn differs<T: PartialEq>(wanted: T, seen: T) -> Option<T> {
    (wanted != seen).then_some(wanted)
}

fn option<T: PartialEq + Copy>(wanted: Option<T>, seen: Option<T>) -> Option<T> {
    wanted.filter(|_| wanted != seen)
}

/// Only options of a kind can change, never the kind.
fn kind(wanted: &LinkKind, seen: &LinkKind) -> Option<LinkKind> {
    if wanted.word() != seen.word() || wanted == seen {
        return None;
    }
    match (wanted, seen) {
        (LinkKind::Bridge(wanted), LinkKind::Bridge(seen)) => {
            let options = Bridge {
                vlan_filtering: option(wanted.vlan_filtering, seen.vlan_filtering),
                default_pvid: option(wanted.default_pvid, seen.default_pvid),
                vlan_protocol: option(wanted.vlan_protocol, seen.vlan_protocol),
                stp: option(wanted.stp, seen.stp),
                multicast_snooping: option(wanted.multicast_snooping, seen.multicast_snooping),
                ageing: option(wanted.ageing, seen.ageing),
                forward_delay: option(wanted.forward_delay, seen.forward_delay),
            };
            (options != Bridge::default()).then_some(LinkKind::Bridge(options))
        }
        // A VLAN's id and a VRF's table are fixed for its life.
        (LinkKind::Macvlan { .. } | LinkKind::Ipvlan { .. }, _) => Some(wanted.clone()),
        _ => None,
    }
}

fn port_options(wanted: &BridgePort, seen: &BridgePort) -> BridgePort {
    BridgePort {
        hairpin: option(wanted.hairpin, seen.hairpin),
        isolated: option(wanted.isolated, seen.isolated),
        guard: option(wanted.guard, seen.guard),
        root_block: option(wanted.root_block, seen.root_block),
        fast_leave: option(wanted.fast_leave, seen.fast_leave),
        learning: option(wanted.learning, seen.learning),
        flood: option(wanted.flood, seen.flood),
        multicast_flood: option(wanted.multicast_flood, seen.multicast_flood),
        broadcast_flood: option(wanted.broadcast_flood, seen.broadcast_flood),
        proxy_arp: option(wanted.proxy_arp, seen.proxy_arp),
        neighbour_suppress: option(wanted.neighbour_suppress, seen.neighbour_suppress),
        locked: option(wanted.locked, seen.locked),
        cost: option(wanted.cost, seen.cost),
        priority: option(wanted.priority, seen.priority),
    }
}
