//! What nodes of the same scopes have in common: all of the agent's half that asks no answer.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use mooring_api::kinds::schiff::{
    FabricVrf, Filter, Irb, Layer2, NextHop, NodeNetworkConfigSpec, PolicyRoute, Redistribute,
    StaticRoute, TrafficMatch, Vrf, VrfImport,
};

use super::filter;
use crate::form::{self, CLUSTER, Item, Leak, Side};

/// Of the items that reach them.
pub(super) fn shared(items: &BTreeSet<Item>) -> NodeNetworkConfigSpec {
    let mut shared = Shared {
        items,
        spec: NodeNetworkConfigSpec::default(),
        cluster: cluster(),
    };
    shared.vrfs();
    shared.leaks();
    shared.rest();
    NodeNetworkConfigSpec {
        cluster_vrf: Some(shared.cluster),
        ..shared.spec
    }
}

struct Shared<'a> {
    items: &'a BTreeSet<Item>,
    spec: NodeNetworkConfigSpec,
    cluster: Vrf,
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

impl Shared<'_> {
    fn vrfs(&mut self) {
        for item in self.items {
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
        for item in self.items {
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
                _ => {}
            }
        }
        self.steers();
    }

    /// Longest source first: agents make rules of one priority, and the kernel takes the first that fits.
    fn steers(&mut self) {
        let steers = self.items.iter().filter_map(|item| match item {
            Item::Steer(steer) => Some(steer),
            _ => None,
        });
        let mut steers: Vec<_> = steers.collect();
        steers.sort_by_key(|s| (s.source.family(), Reverse(s.source.prefix_len())));
        let routes = steers.into_iter().map(|steer| PolicyRoute {
            traffic_match: TrafficMatch {
                src_prefix: Some(steer.source.to_string()),
                ..TrafficMatch::default()
            },
            next_hop: NextHop {
                vrf: Some(steer.into.clone()),
                address: None,
            },
        });
        self.cluster.policy_routes.extend(routes);
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
