//! What is one node's own in the agent's half: its addresses, and all that hangs on them.

use std::collections::BTreeSet;

use mooring_api::kinds::mooring::NodeNames;
use mooring_api::kinds::schiff::{Gre, GreLayer, Loopback, MirrorAcl, NodeNetworkConfigSpec};
use mooring_api::{Cidr, Family};

use super::{filter, peer};
use crate::Answers;
use crate::compile::loopback_key;
use crate::form::{self, CLUSTER, Item, MirrorOn, PrefixRule};

/// A node's half, begun as all of its class, and what its host needs for sessions.
pub(super) fn own(
    items: &BTreeSet<Item>,
    shared: NodeNetworkConfigSpec,
    names: &NodeNames,
    answers: &Answers,
    node: &str,
) -> (NodeNetworkConfigSpec, Vec<peer::Dummy>) {
    let mut build = Build {
        answers,
        names,
        node,
        spec: shared,
    };
    for item in items {
        if let Item::Loopback(loopback) = item {
            build.loopback(loopback);
        }
    }
    build.mirrors(items);
    let dummies = build.peers(items);
    (build.spec, dummies)
}

struct Build<'a> {
    answers: &'a Answers,
    names: &'a NodeNames,
    node: &'a str,
    spec: NodeNetworkConfigSpec,
}

impl Build<'_> {
    /// With its address, which the fabric is told as a host.
    fn loopback(&mut self, loopback: &form::Loopback) {
        let key = loopback_key(loopback, self.node);
        let Some(addr) = self.answers.address(&key) else {
            return;
        };
        let Some(fabric) = self.spec.fabric_vrfs.get_mut(&loopback.vrf) else {
            return;
        };
        let host = Cidr::containing(addr, Family::of(addr).bits());
        let own = Loopback {
            ip_addresses: vec![host.to_string()],
        };
        fabric.vrf.loopbacks.insert(loopback.name.clone(), own);
        let line = filter::item(&PrefixRule::exact(host), &BTreeSet::new());
        let there = &mut fabric.evpn_export_filter.items;
        if !there.contains(&line) {
            there.push(line);
        }
    }

    fn mirrors(&mut self, items: &BTreeSet<Item>) {
        for item in items {
            let Item::Tunnel(tunnel) = item else { continue };
            let Some(fabric) = self.spec.fabric_vrfs.get_mut(&tunnel.vrf) else {
                continue;
            };
            let source = fabric.vrf.loopbacks.get(&tunnel.loopback);
            let source = source.and_then(|l| l.ip_addresses.first());
            let source = source.and_then(|a| a.split('/').next()).map(str::to_owned);
            let Some(source_address) = source else {
                continue;
            };
            if source_address.contains(':') != tunnel.address.is_ipv6() {
                continue;
            }
            let gre = Gre {
                destination_address: tunnel.address.to_string(),
                source_address,
                source_interface: Some(tunnel.loopback.clone()),
                layer: if tunnel.frames {
                    GreLayer::Layer2
                } else {
                    GreLayer::Layer3
                },
                encapsulation_key: tunnel.key,
            };
            fabric.vrf.gres.insert(tunnel.name.clone(), gre);
        }
        for item in items {
            let Item::Mirror(mirror) = item else { continue };
            let there = self.spec.fabric_vrfs.get(&mirror.tunnel_vrf);
            if !there.is_some_and(|f| f.vrf.gres.contains_key(&mirror.tunnel)) {
                continue;
            }
            let acl = MirrorAcl {
                traffic_match: mirror.traffic.clone(),
                mirror_destination: mirror.tunnel.clone(),
                direction: mirror.direction,
            };
            match &mirror.on {
                MirrorOn::Segment(vlan) => {
                    if let Some(layer2) = self.spec.layer2s.get_mut(&vlan.to_string()) {
                        layer2.mirror_acls.push(acl);
                    }
                }
                MirrorOn::Vrf(vrf) => {
                    if let Some(fabric) = self.spec.fabric_vrfs.get_mut(vrf) {
                        fabric.vrf.mirror_acls.push(acl);
                    }
                }
            }
        }
    }

    /// Sessions; what the host needs for them is given back.
    fn peers(&mut self, items: &BTreeSet<Item>) -> Vec<peer::Dummy> {
        let mut dummies = Vec::new();
        for item in items {
            let Item::Peer(wanted) = item else { continue };
            let Some(made) = peer::peer(self.answers, self.names, self.node, wanted) else {
                continue;
            };
            let vrf = if wanted.vrf == CLUSTER {
                self.spec.cluster_vrf.get_or_insert_default()
            } else if let Some(fabric) = self.spec.fabric_vrfs.get_mut(&wanted.vrf) {
                &mut fabric.vrf
            } else if let Some(local) = self.spec.local_vrfs.get_mut(&wanted.vrf) {
                local
            } else {
                continue;
            };
            vrf.bgp_peers.push(made.peer);
            vrf.static_routes.extend(made.route);
            vrf.loopbacks.extend(made.loopback);
            dummies.extend(made.dummy);
        }
        dummies
    }
}
