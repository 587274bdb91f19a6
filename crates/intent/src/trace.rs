//! The route simulator: where a packet goes on a node, by its configuration alone.
//!
//! `moor trace` prints it, and tests ask it whether two configurations mean the same. It knows what the configuration
//! says and assumes of the fabric that every prefix which a filter lets in is really announced there.
//!
//! ```text
//!  source in a segment ─► the VRF of its gateway ─┐
//!  any other source ─► cluster ─ policy routes ───┴─► longest prefix ─► another VRF … ─► segment, host, fabric, nowhere
//! ```
//!
//! Easy to get wrong: a route that a VRF imports leads into the VRF it came from, and the longest prefix decides among
//! imports, statics and connected routes alike.

use std::net::IpAddr;

use mooring_api::kinds::schiff::{ActionType, Filter, NodeNetworkConfigSpec, PrefixMatcher, Vrf};
use mooring_api::{Cidr, HostCidr};
use serde::{Deserialize, Serialize};

use crate::form::{CLUSTER, PrefixRule};

/// What becomes of a packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Story {
    /// The VRFs that it is looked up in, and the route that is found in each.
    pub steps: Vec<Step>,
    /// How it ends.
    pub end: End,
}

/// One look-up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// In this VRF.
    pub vrf: String,
    /// Why there.
    pub why: String,
    /// The route, where there is one.
    pub route: Option<Cidr>,
}

/// How a packet ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum End {
    /// In a segment.
    Segment {
        /// By VLAN.
        vlan: u16,
    },
    /// At the node's host, or a workload on it.
    Host,
    /// Over the fabric.
    Fabric {
        /// In this VRF.
        vrf: String,
        /// Whether the fabric knows the way back: the source is exported there.
        known: bool,
        /// With these communities.
        communities: Vec<String>,
    },
    /// Swallowed by an aggregate.
    Swallowed {
        /// In this VRF.
        vrf: String,
    },
    /// There is no route.
    NoRoute {
        /// In this VRF.
        vrf: String,
    },
    /// VRFs lead into each other.
    Loop,
}

/// Where a packet from `source` to `target` goes on a node.
pub fn trace(node: &NodeNetworkConfigSpec, source: IpAddr, target: IpAddr) -> Story {
    let (mut vrf, mut why) = entry(node, source);
    let mut steps: Vec<Step> = Vec::new();
    loop {
        let looped = steps.iter().any(|s| s.vrf == vrf);
        let found = best(node, &vrf, target);
        steps.push(Step {
            vrf: vrf.clone(),
            why: why.clone(),
            route: found.as_ref().map(|f| f.prefix),
        });
        if looped {
            return Story {
                steps,
                end: End::Loop,
            };
        }
        let end = match found.map(|f| (f.prefix, f.to)) {
            Some((_, To::Segment(vlan))) => End::Segment { vlan },
            Some((_, To::Host)) => End::Host,
            Some((_, To::Swallow)) => End::Swallowed { vrf },
            Some((prefix, To::Vrf(next))) => {
                why = format!("{vrf} has {prefix} over it");
                vrf = next;
                continue;
            }
            None if node.fabric_vrfs.contains_key(&vrf) => fabric(node, &vrf, source),
            // Pods and nodes of the cluster are routes that the configuration does not name.
            None if vrf == CLUSTER => End::Host,
            None => End::NoRoute { vrf },
        };
        return Story { steps, end };
    }
}

/// Whether a prefix is told to the fabric in a VRF, and with which communities.
pub fn exported(node: &NodeNetworkConfigSpec, vrf: &str, prefix: Cidr) -> Option<Vec<String>> {
    let fabric = node.fabric_vrfs.get(vrf)?;
    passes(&fabric.evpn_export_filter, prefix)
}

fn fabric(node: &NodeNetworkConfigSpec, vrf: &str, source: IpAddr) -> End {
    let routes = known(node, vrf).into_iter().chain(hosts(node, vrf));
    let covering = routes.filter(|prefix| prefix.contains(source));
    let mut told: Vec<(u8, Vec<String>)> = covering
        .filter_map(|prefix| Some((prefix.prefix_len(), exported(node, vrf, prefix)?)))
        .collect();
    told.sort();
    let best = told.pop();
    End::Fabric {
        vrf: vrf.to_owned(),
        known: best.is_some(),
        communities: best.map(|(_, communities)| communities).unwrap_or_default(),
    }
}

/// Prefixes that a VRF has of itself.
fn known(node: &NodeNetworkConfigSpec, vrf: &str) -> Vec<Cidr> {
    routes(node, vrf, 0).into_iter().map(|r| r.prefix).collect()
}

/// What inner VRFs may have and the filter names: hosts of load balancers, blocks of pods.
fn hosts(node: &NodeNetworkConfigSpec, vrf: &str) -> Vec<Cidr> {
    let fabric = node.fabric_vrfs.get(vrf);
    let lines = fabric.into_iter().flat_map(|f| &f.evpn_export_filter.items);
    lines
        .filter_map(|line| line.matcher.prefix.as_ref()?.prefix.parse().ok())
        .collect()
}

fn entry(node: &NodeNetworkConfigSpec, source: IpAddr) -> (String, String) {
    for segment in node.layer2s.values() {
        let Some(irb) = &segment.irb else { continue };
        if subnets(&irb.ip_addresses).any(|s| s.contains(source)) {
            let why = format!("the gateway of VLAN {} is there", segment.vlan);
            return (irb.vrf.clone(), why);
        }
    }
    let policies = node.cluster_vrf.iter().flat_map(|c| &c.policy_routes);
    let mut steered: Vec<(u8, String, String)> = policies
        .filter_map(|policy| {
            let prefix: Cidr = policy.traffic_match.src_prefix.as_ref()?.parse().ok()?;
            let vrf = policy.next_hop.vrf.clone()?;
            let why = format!("traffic from {prefix} is looked up there");
            prefix
                .contains(source)
                .then_some((prefix.prefix_len(), vrf, why))
        })
        .collect();
    steered.sort();
    match steered.pop() {
        Some((_, vrf, why)) => (vrf, why),
        None => (CLUSTER.to_owned(), "it comes from the host".to_owned()),
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum To {
    Swallow,
    Vrf(String),
    Host,
    Segment(u16),
}

#[derive(Clone, Debug)]
struct Found {
    prefix: Cidr,
    /// Connected or static: such a route counts before one of the same length that another VRF gave.
    own: bool,
    to: To,
}

fn best(node: &NodeNetworkConfigSpec, vrf: &str, target: IpAddr) -> Option<Found> {
    let mut all = routes(node, vrf, 2);
    all.retain(|r| r.prefix.contains(target));
    all.sort_by(|a, b| {
        let key = |f: &Found| (f.prefix.prefix_len(), f.own);
        (key(a), &a.to).cmp(&(key(b), &b.to))
    });
    all.pop()
}

/// The routes of a VRF: connected, static, and to a depth what others give it.
fn routes(node: &NodeNetworkConfigSpec, vrf: &str, depth: u8) -> Vec<Found> {
    let mut found = Vec::new();
    for segment in node.layer2s.values() {
        let irb = segment.irb.iter().filter(|irb| irb.vrf == vrf);
        for subnet in irb.flat_map(|irb| subnets(&irb.ip_addresses)) {
            let to = To::Segment(segment.vlan);
            found.push(Found {
                prefix: subnet,
                own: true,
                to,
            });
        }
    }
    let Some(config) = config(node, vrf) else {
        return found;
    };
    for loopback in config.loopbacks.values() {
        for prefix in subnets(&loopback.ip_addresses) {
            let to = To::Host;
            found.push(Found {
                prefix,
                own: true,
                to,
            });
        }
    }
    for route in &config.static_routes {
        let Ok(prefix) = route.prefix.parse() else {
            continue;
        };
        let to = match &route.next_hop {
            None => To::Swallow,
            Some(hop) => hop.vrf.clone().map_or(To::Host, To::Vrf),
        };
        found.push(Found {
            prefix,
            own: true,
            to,
        });
    }
    if depth == 0 {
        return found;
    }
    for import in &config.vrf_imports {
        let from = &import.from_vrf;
        for route in routes(node, from, depth - 1) {
            if route.to != To::Swallow && passes(&import.filter, route.prefix).is_some() {
                let to = To::Vrf(from.clone());
                found.push(Found {
                    prefix: route.prefix,
                    own: false,
                    to,
                });
            }
        }
        // What the fabric, or pods of the cluster, are taken to announce: the prefixes that the filter names.
        for line in &import.filter.items {
            let prefix = line
                .matcher
                .prefix
                .as_ref()
                .and_then(|m| m.prefix.parse().ok());
            let Some(prefix) = prefix else { continue };
            if line.action.kind == ActionType::Accept {
                let to = To::Vrf(from.clone());
                found.push(Found {
                    prefix,
                    own: false,
                    to,
                });
            }
        }
        // An open filter takes everything, also what nobody names: the last resort.
        if import.filter.default_action.kind == ActionType::Accept && from != CLUSTER {
            for everything in ["0.0.0.0/0", "::/0"] {
                let prefix = everything.parse().expect("it is a network");
                let to = To::Vrf(from.clone());
                found.push(Found {
                    prefix,
                    own: false,
                    to,
                });
            }
        }
    }
    found
}

fn config<'a>(node: &'a NodeNetworkConfigSpec, vrf: &str) -> Option<&'a Vrf> {
    if vrf == CLUSTER {
        return node.cluster_vrf.as_ref();
    }
    let fabric = node.fabric_vrfs.get(vrf).map(|f| &f.vrf);
    fabric.or_else(|| node.local_vrfs.get(vrf))
}

fn subnets(addresses: &[String]) -> impl Iterator<Item = Cidr> + '_ {
    let read = addresses.iter().filter_map(|a| a.parse::<HostCidr>().ok());
    read.map(|a| a.subnet())
}

/// The communities of a route that a filter lets pass.
fn passes(filter: &Filter, route: Cidr) -> Option<Vec<String>> {
    let line = filter.items.iter().find(|line| {
        let prefix = line.matcher.prefix.as_ref();
        prefix.and_then(rule).is_some_and(|r| r.matches(route))
    });
    let action = line.map_or(&filter.default_action, |line| &line.action);
    let modified = action.modify_route.as_ref();
    (action.kind == ActionType::Accept).then(|| {
        modified
            .map(|m| m.add_communities.clone())
            .unwrap_or_default()
    })
}

fn rule(matcher: &PrefixMatcher) -> Option<PrefixRule> {
    Some(PrefixRule {
        prefix: matcher.prefix.parse().ok()?,
        ge: matcher.ge,
        le: matcher.le,
        permit: true,
    })
}
