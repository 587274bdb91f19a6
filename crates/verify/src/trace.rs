//! The packet story: how one pod reaches another over their secondary interfaces, or why it does not.
//!
//! ```text
//!  two names ─► pod (interfaces, addresses, routes) ─► route: there, and back ─► tell: numbered steps
//! ```
//!
//! Called by `moor trace` and the dashboard. A pod's own routing table decides: the kernel looks for the longest
//! prefix, so a subnet of its own means ARP and no gateway, and what nothing matches leaves by the primary
//! interface. Easy to get wrong: a packet that arrives proves nothing; the answer needs a route of its own.

mod pod;
mod route;
mod tell;
#[cfg(test)]
mod tests;

use std::net::IpAddr;

use serde::Serialize;

use crate::input::Fleet;
use crate::world::World;
use pod::{End, Interface};
use route::{Hop, Table};

/// What happens to a packet from one pod to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Story {
    /// Who sends.
    pub from: Place,
    /// Who is meant.
    pub to: Place,
    /// The interfaces that share a network, whichever of them is used.
    pub shared: Vec<Shared>,
    /// What happens, in order, up to where it ends.
    pub steps: Vec<Step>,
    /// How it ends.
    pub verdict: Verdict,
}

/// A pod and, where one is used, its interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Cluster.
    pub cluster: String,
    /// Namespace; empty where none is written.
    pub namespace: String,
    /// `Kind/name`.
    pub workload: String,
    /// The interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// Its address, or the range that it gets one from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

/// An interface of each pod on one network.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Shared {
    /// The network instance, else the subnet.
    pub network: String,
    /// The sender's interface.
    pub from: String,
    /// The other's.
    pub to: String,
}

/// One thing that happens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// In a word: `send`, `route`, `neighbour`, `out`, `switch`, `router`, `in`, `back`.
    pub what: &'static str,
    /// In a sentence.
    pub text: String,
}

/// How a story ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Packet and answer both arrive.
    pub reached: bool,
    /// How, or why not.
    pub reason: Reason,
    /// The same as a sentence.
    pub text: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub help: String,
}

/// How, or why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Reason {
    /// On one subnet, without a gateway.
    Direct,
    /// Through a gateway.
    Routed,
    /// The answer has no way back.
    NoReturnRoute,
    /// Nothing leads there but the primary interface.
    NoRoute,
    /// A route names a gateway that its interface cannot reach.
    GatewayOutsideSubnet,
    /// One subnet, but frames carry different VLANs.
    OtherVlan,
    /// They are on different networks, and nothing leads from one to the other.
    NoCommonNetwork,
    /// Both have the same address.
    SameAddress,
    /// A pod has no secondary interface with an address.
    NoAddress,
}

/// A name that does not lead to one pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unclear {
    /// What is wrong with it.
    pub message: String,
    /// What to write instead.
    pub help: String,
}

/// Follows a packet. Each name is `[cluster/][namespace/][Kind/]name`.
pub fn trace(fleet: &Fleet<'_>, from: &str, to: &str) -> Result<Story, Unclear> {
    let world = World::read(&fleet.objects);
    let (from, to) = (pod::find(&world, from)?, pod::find(&world, to)?);
    if from.pod == to.pod {
        return Err(Unclear {
            message: format!("{} is both ends", from.place()),
            help: "name two pods".to_owned(),
        });
    }
    let best = ways(&from, &to).into_iter().min_by_key(|way| way.reason);
    let mut story = tell::tell(&from, &to, best.as_ref());
    story.shared = shared(&from, &to);
    Ok(story)
}

/// Which interfaces are on one network: of one instance, or of one subnet where no instance is known.
fn shared(from: &End, to: &End) -> Vec<Shared> {
    let mut out = Vec::new();
    for (here, own) in from.addresses() {
        for (there, other) in to
            .addresses()
            .filter(|(there, _)| there.scope == here.scope)
        {
            let subnet = own.host.subnet();
            let network = match (&own.instance, &other.instance) {
                (Some(own), Some(other)) => (own == other).then(|| tell::name(own)),
                _ => subnet.contains(other.addr()).then(|| subnet.to_string()),
            };
            out.extend(network.map(|network| Shared {
                network,
                from: here.name.clone(),
                to: there.name.clone(),
            }));
        }
    }
    out.sort();
    out.dedup();
    out
}

/// One address of the other pod, how to get there, and how the answer gets back.
struct Way<'a> {
    /// Where it is sent to.
    there: (&'a Interface, &'a pod::Address),
    out: Hop<'a>,
    /// The sender's interface and address, unless it is the primary one.
    here: Option<(&'a Interface, &'a pod::Address)>,
    back: Option<Hop<'a>>,
    reason: Reason,
}

/// Every address of the other pod is a way to try.
fn ways<'a>(from: &'a End, to: &'a End) -> Vec<Way<'a>> {
    let (table, answers) = (Table::of(from), Table::of(to));
    let mut ways = Vec::new();
    for there in to.addresses() {
        let out = table.look_up(there.1.addr());
        let here = out.interface().and_then(|interface| {
            let same = |a: &&pod::Address| a.addr().is_ipv4() == there.1.addr().is_ipv4();
            let near = |a: &&pod::Address| a.host.subnet().contains(there.1.addr());
            let own = interface.addresses.iter();
            let source = own.clone().find(near).or_else(|| own.clone().find(same));
            source.map(|address| (interface, address))
        });
        let back = here.map(|(_, address)| answers.look_up(address.addr()));
        let reason = judge(there, &out, here, back.as_ref(), from);
        ways.push(Way {
            there,
            out,
            here,
            back,
            reason,
        });
    }
    ways
}

fn judge(
    there: (&Interface, &pod::Address),
    out: &Hop<'_>,
    here: Option<(&Interface, &pod::Address)>,
    back: Option<&Hop<'_>>,
    from: &End,
) -> Reason {
    let (target, address) = there;
    let shares_network = from.interfaces.iter().any(|i| i.scope == target.scope);
    let is_own =
        |(_, own): (&Interface, &pod::Address)| own.is_fixed && own.addr() == address.addr();
    if address.is_fixed && from.addresses().any(is_own) {
        return Reason::SameAddress;
    }
    if !shares_network {
        return Reason::NoCommonNetwork;
    }
    let Some((source, _)) = here else {
        let (own, wanted) = (from.networks(), address.instance.as_deref());
        let apart = own
            .zip(wanted)
            .is_some_and(|(own, wanted)| !own.contains(wanted));
        return if apart {
            Reason::NoCommonNetwork
        } else {
            Reason::NoRoute
        };
    };
    if source.scope != target.scope {
        return Reason::NoCommonNetwork;
    }
    if !out.is_usable() {
        return Reason::GatewayOutsideSubnet;
    }
    if out.gateway().is_none() && source.vlan != target.vlan {
        return Reason::OtherVlan;
    }
    match back {
        Some(back) if back.interface().is_some_and(|i| i.scope == target.scope) => {
            if !back.is_usable() {
                Reason::NoReturnRoute
            } else if out.gateway().or(back.gateway()).is_some() {
                Reason::Routed
            } else {
                Reason::Direct
            }
        }
        _ => Reason::NoReturnRoute,
    }
}

/// `10.1.2.0/24 via 10.1.2.1 dev n2`, without the prefix.
fn via(gateway: Option<IpAddr>, interface: &str) -> String {
    match gateway {
        Some(gateway) => format!("via {gateway} dev {interface}"),
        None => format!("dev {interface} scope link"),
    }
}
