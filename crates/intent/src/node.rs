//! From the form to one node: what its agent and its host are told.
//!
//! Everything here is a function of the items that reach the node and of the answers that bear its name, so a node that
//! joins changes no other. Easy to get wrong: a filter is first match, so lines with a written order come first, and
//! the rest stands longest prefix first.

mod filter;
mod netplan;
mod peer;

use std::collections::{BTreeMap, BTreeSet};

use mooring_api::Family;
use mooring_api::kinds::schiff::{
    FabricVrf, Filter, Gre, GreLayer, Irb, Layer2, Loopback, MirrorAcl, NextHop,
    NodeNetplanConfigSpec, NodeNetworkConfigSpec, PolicyRoute, Redistribute, StaticRoute,
    TrafficMatch, Vrf, VrfImport,
};
use serde_json::{Value, json};

use crate::compile::{Context, address_of};
use crate::form::{self, CLUSTER, Item, Leak, MirrorOn, PrefixRule, Side};
use crate::{Form, Node, status};

/// What a node is told.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeConfig {
    /// The agent's half.
    pub network: NodeNetworkConfigSpec,
    /// The host's half.
    pub netplan: NodeNetplanConfigSpec,
}

impl NodeConfig {
    /// As the two objects that bear the node's name.
    pub fn objects(&self, node: &str) -> [Value; 2] {
        let object = |kind: &str, spec: Value| {
            json!({
                "apiVersion": mooring_api::kinds::schiff::API_VERSION,
                "kind": kind,
                "metadata": { "name": node },
                "spec": spec,
            })
        };
        [
            object("NodeNetworkConfig", status::value(&self.network)),
            object("NodeNetplanConfig", status::value(&self.netplan)),
        ]
    }
}

/// Every node. Nodes of the same scopes begin as one.
pub(crate) fn nodes(
    context: &Context<'_>,
    form: &Form,
    digest: &str,
) -> BTreeMap<String, NodeConfig> {
    let mut classes: BTreeMap<Vec<usize>, Class<'_>> = BTreeMap::new();
    let mut nodes = BTreeMap::new();
    for node in &context.inputs.nodes {
        let places = form.places(&node.labels);
        let class = classes
            .entry(places)
            .or_insert_with_key(|places| Class::new(form.of(places), digest));
        nodes.insert(node.name.clone(), class.node(context, node));
    }
    nodes
}

/// What nodes of the same scopes have in common.
struct Class<'a> {
    items: BTreeSet<&'a Item>,
    spec: NodeNetworkConfigSpec,
    cluster: Vrf,
}

impl<'a> Class<'a> {
    fn new(items: BTreeSet<&'a Item>, digest: &str) -> Self {
        let mut class = Self {
            items,
            spec: NodeNetworkConfigSpec {
                revision: digest.to_owned(),
                ..NodeNetworkConfigSpec::default()
            },
            cluster: cluster(),
        };
        class.vrfs();
        class.leaks();
        class.rest();
        class
    }

    /// And what is one node's own: its addresses, and all that hangs on them.
    fn node(&self, context: &Context<'_>, node: &Node) -> NodeConfig {
        let mut build = Build {
            context,
            node: &node.name,
            spec: self.spec.clone(),
            cluster: self.cluster.clone(),
        };
        for item in &self.items {
            if let Item::Loopback(loopback) = item {
                build.loopback(loopback);
            }
        }
        build.mirrors(&self.items);
        let dummies = build.peers(&self.items);
        let netplan = netplan::netplan(context, &node.name, &self.items, dummies);
        build.spec.cluster_vrf = Some(build.cluster);
        NodeConfig {
            network: build.spec,
            netplan,
        }
    }
}

fn cluster() -> Vrf {
    Vrf {
        redistribute: Some(Redistribute {
            connected: Some(filter::all()),
            statics: Some(filter::all()),
        }),
        ..Vrf::default()
    }
}

impl Class<'_> {
    fn vrfs(&mut self) {
        for item in &self.items {
            match item {
                Item::Vrf(vrf) => {
                    let targets = vec![vrf.route_target.clone()];
                    let fabric = FabricVrf {
                        vrf: Vrf::default(),
                        vni: vrf.vni,
                        evpn_import_route_targets: targets.clone(),
                        evpn_export_route_targets: targets,
                        evpn_export_filter: Filter::default(),
                    };
                    self.spec.fabric_vrfs.insert(vrf.name.clone(), fabric);
                }
                Item::Local(local) => {
                    let imports = local.imports.iter().map(|from| VrfImport {
                        from_vrf: from.clone(),
                        filter: filter::all(),
                    });
                    let routes = local.routes.iter().map(|(prefix, vrf)| StaticRoute {
                        prefix: prefix.to_string(),
                        next_hop: Some(NextHop {
                            vrf: Some(vrf.clone()),
                            address: None,
                        }),
                        bfd_profile: None,
                    });
                    let vrf = Vrf {
                        vrf_imports: imports.collect(),
                        static_routes: routes.collect(),
                        ..Vrf::default()
                    };
                    self.spec.local_vrfs.insert(local.name.clone(), vrf);
                }
                _ => {}
            }
        }
    }

    fn leaks(&mut self) {
        let leaks: Vec<&Leak> = self
            .items
            .iter()
            .filter_map(|item| match item {
                Item::Leak(leak) => Some(leak),
                _ => None,
            })
            .collect();
        for (name, fabric) in &mut self.spec.fabric_vrfs {
            let own: Vec<&Leak> = leaks.iter().filter(|l| l.vrf == *name).copied().collect();
            let exports: Vec<&Leak> = own
                .iter()
                .filter(|l| l.side == Side::Export)
                .copied()
                .collect();
            fabric.evpn_export_filter = filter::of(&exports);
            let mut inner: BTreeSet<&str> = exports.iter().map(|l| l.inner.as_str()).collect();
            inner.insert(CLUSTER);
            fabric.vrf.vrf_imports = inner
                .into_iter()
                .map(|from| {
                    let from_here: Vec<&Leak> = exports
                        .iter()
                        .filter(|l| l.inner == from)
                        .copied()
                        .collect();
                    VrfImport {
                        from_vrf: from.to_owned(),
                        filter: filter::of(&from_here),
                    }
                })
                .collect();
            let imports: Vec<&Leak> = own
                .iter()
                .filter(|l| l.side == Side::Import)
                .copied()
                .collect();
            if !imports.is_empty() {
                self.cluster.vrf_imports.push(VrfImport {
                    from_vrf: name.clone(),
                    filter: filter::of(&imports),
                });
            }
        }
    }

    fn rest(&mut self) {
        for item in &self.items {
            match item {
                Item::Segment(segment) => {
                    let vlan = segment.vlan.to_string();
                    self.spec.layer2s.insert(vlan, layer2(segment));
                }
                Item::Aggregate(aggregate) => {
                    if let Some(fabric) = self.spec.fabric_vrfs.get_mut(&aggregate.vrf) {
                        fabric.vrf.static_routes.push(StaticRoute {
                            prefix: aggregate.prefix.to_string(),
                            ..StaticRoute::default()
                        });
                    }
                }
                Item::Steer(steer) => self.cluster.policy_routes.push(PolicyRoute {
                    traffic_match: TrafficMatch {
                        src_prefix: Some(steer.source.to_string()),
                        ..TrafficMatch::default()
                    },
                    next_hop: NextHop {
                        vrf: Some(steer.into.clone()),
                        address: None,
                    },
                }),
                _ => {}
            }
        }
    }
}

fn layer2(segment: &form::Segment) -> Layer2 {
    let irb = (!segment.gateways.is_empty()).then(|| Irb {
        vrf: segment.vrf.clone(),
        mac_address: segment.mac.map(|m| m.to_string()).unwrap_or_default(),
        ip_addresses: segment.gateways.iter().map(ToString::to_string).collect(),
    });
    Layer2 {
        vni: segment.vni,
        vlan: segment.vlan,
        route_target: String::new(),
        mtu: segment.mtu,
        irb,
        mirror_acls: Vec::new(),
        disable_segmentation: segment.disable_segmentation,
    }
}

struct Build<'a> {
    context: &'a Context<'a>,
    node: &'a str,
    spec: NodeNetworkConfigSpec,
    cluster: Vrf,
}

impl Build<'_> {
    /// With its address, which the fabric is told as a host.
    fn loopback(&mut self, loopback: &form::Loopback) {
        let Some(addr) = address_of(self.context, loopback, self.node) else {
            return;
        };
        let Some(fabric) = self.spec.fabric_vrfs.get_mut(&loopback.vrf) else {
            return;
        };
        let host = mooring_api::Cidr::containing(addr, Family::of(addr).bits());
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

    fn mirrors(&mut self, items: &BTreeSet<&Item>) {
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
    fn peers(&mut self, items: &BTreeSet<&Item>) -> Vec<peer::Dummy> {
        let mut dummies = Vec::new();
        for item in items {
            let Item::Peer(wanted) = item else { continue };
            let Some(made) = peer::peer(self.context, self.node, wanted) else {
                continue;
            };
            let vrf = if wanted.vrf == CLUSTER {
                &mut self.cluster
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
