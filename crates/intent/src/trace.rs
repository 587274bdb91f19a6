//! The route simulator: where a packet goes on a node, by its configuration alone.
//!
//! `moor trace` prints it, and tests ask it whether two configurations mean the same. It knows what the configuration
//! says and assumes of the fabric that every prefix which a filter lets in is really announced there.
//!
//! ```text
//!  source in a segment ─► the VRF of its gateway ─┐
//!  any other source ─► cluster ─ policy routes ───┼─► longest prefix ─► another VRF … ─► segment, host, fabric, nowhere
//!  out of the fabric ─► the VRF it came in ───────┘
//! ```
//!
//! Easy to get wrong: what VRFs give each other is next hops, not tables. A static route, or a connected one of another VRF,
//! is looked up again over there; a route that the other VRF has from the fabric or from the cluster leaves at once, by that next hop.
//! And a VRF gives only what it has of its own, never what it was given. The `uml` tests compare all of it with FRR and a kernel.

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
    let (vrf, why) = entry(node, source);
    follow(node, vrf, why, source, target)
}

/// Where a packet goes that the fabric hands to a node in a VRF: the other direction.
pub fn arriving(node: &NodeNetworkConfigSpec, vrf: &str, source: IpAddr, target: IpAddr) -> Story {
    let why = "it comes from the fabric".to_owned();
    follow(node, vrf.to_owned(), why, source, target)
}

fn follow(
    node: &NodeNetworkConfigSpec,
    mut vrf: String,
    mut why: String,
    source: IpAddr,
    target: IpAddr,
) -> Story {
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
            Some((prefix, To::Out(next))) => {
                if let Some(own) = handed_back(node, &next, target) {
                    why = format!("{vrf} has {prefix} over it, and its fabric has {own} from here");
                    vrf = next;
                    continue;
                }
                let why = format!("{vrf} has {prefix} from it, with its next hop");
                steps.push(Step {
                    vrf: next.clone(),
                    why,
                    route: None,
                });
                leaves(node, next, source)
            }
            None => leaves(node, vrf, source),
        };
        return Story { steps, end };
    }
}

/// How a packet ends that a VRF has no route of its own for.
fn leaves(node: &NodeNetworkConfigSpec, vrf: String, source: IpAddr) -> End {
    if node.fabric_vrfs.contains_key(&vrf) {
        fabric(node, &vrf, source)
    } else if vrf == CLUSTER {
        // Pods and nodes of the cluster are routes that the configuration does not name.
        End::Host
    } else {
        End::NoRoute { vrf }
    }
}

/// What the fabric knows from this node and would send back to it.
fn handed_back(node: &NodeNetworkConfigSpec, vrf: &str, target: IpAddr) -> Option<Cidr> {
    let own = best(node, vrf, target)?.prefix;
    exported(node, vrf, own).map(|_| own)
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
    own(node, vrf).into_iter().map(|r| r.prefix).collect()
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
    /// It is looked up there.
    Vrf(String),
    /// It leaves from there, by the next hop that came with the route.
    Out(String),
    Host,
    Segment(u16),
}

/// Which of two routes of one length counts, the last one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Pods and nodes, where all of the cluster is taken and a VRF of the fabric does not know better.
    Cluster,
    /// What nobody names, where all of a VRF is taken.
    Rest,
    /// What the other side of a filter is taken to have.
    Named,
    /// What another VRF has of its own.
    Given,
    /// A prefix that is announced as a whole.
    Aggregate,
    /// Something inside what a filter names with all that is inside: longer than the prefix that stands for it.
    Inside,
    /// Connected or static.
    Own,
}

#[derive(Clone, Debug)]
struct Found {
    prefix: Cidr,
    rank: Rank,
    to: To,
}

fn best(node: &NodeNetworkConfigSpec, vrf: &str, target: IpAddr) -> Option<Found> {
    let mut all = own(node, vrf);
    all.extend(given(node, vrf));
    all.retain(|r| r.prefix.contains(target));
    all.sort_by(|a, b| {
        let key = |f: &Found| (f.prefix.prefix_len(), f.rank);
        (key(a), &a.to).cmp(&(key(b), &b.to))
    });
    all.pop()
}

/// What a VRF has of its own: connected and static routes.
fn own(node: &NodeNetworkConfigSpec, vrf: &str) -> Vec<Found> {
    let mut found = Vec::new();
    let mut put = |prefix, to| {
        let rank = match to {
            To::Swallow => Rank::Aggregate,
            _ => Rank::Own,
        };
        found.push(Found { prefix, rank, to });
    };
    for segment in node.layer2s.values() {
        let irb = segment.irb.iter().filter(|irb| irb.vrf == vrf);
        for subnet in irb.flat_map(|irb| subnets(&irb.ip_addresses)) {
            put(subnet, To::Segment(segment.vlan));
        }
    }
    let Some(config) = config(node, vrf) else {
        return found;
    };
    for loopback in config.loopbacks.values() {
        for prefix in subnets(&loopback.ip_addresses) {
            put(prefix, To::Host);
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
        put(prefix, to);
    }
    found
}

/// What other VRFs give a VRF.
fn given(node: &NodeNetworkConfigSpec, vrf: &str) -> Vec<Found> {
    let mut found = Vec::new();
    let imports = config(node, vrf).into_iter().flat_map(|c| &c.vrf_imports);
    for import in imports {
        let from = &import.from_vrf;
        let mut put = |prefix, rank, to| found.push(Found { prefix, rank, to });
        for route in own(node, from) {
            if route.to != To::Swallow && passes(&import.filter, route.prefix).is_some() {
                put(route.prefix, Rank::Given, To::Vrf(from.clone()));
            }
        }
        // A local VRF has nothing but what it is told.
        let out = if node.local_vrfs.contains_key(from) {
            To::Vrf(from.clone())
        } else {
            To::Out(from.clone())
        };
        // What the fabric, or pods of the cluster, are taken to announce: the prefixes that the filter names.
        for line in &import.filter.items {
            let rule = line.matcher.prefix.as_ref().and_then(rule);
            let Some(rule) = rule else { continue };
            if line.action.kind == ActionType::Accept {
                let inside = rule.le.is_some() || rule.ge.is_some();
                let rank = if inside { Rank::Inside } else { Rank::Named };
                put(rule.prefix, rank, out.clone());
            }
        }
        // An open filter takes everything, also what nobody names: the last resort.
        if import.filter.default_action.kind == ActionType::Accept {
            let rank = if from == CLUSTER {
                Rank::Cluster
            } else {
                Rank::Rest
            };
            for everything in ["0.0.0.0/0", "::/0"] {
                let prefix = everything.parse().expect("it is a network");
                put(prefix, rank, out.clone());
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
