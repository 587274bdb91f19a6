//! A change of the kernel's network state, as a value.
//!
//! Made by [`crate::diff`] and by the plugins, carried out by [`crate::Netlink::apply`]. Its text names the operation and
//! the object, which is what an error shows. Easy to get wrong: an index belongs to the namespace of the socket that the
//! change is sent by.

use std::fmt;

use mooring_api::net::{
    Addr, BridgePort, BridgeVlan, LinkChange, Neighbour, NewLink, Route, Rule, VfChange,
};

use crate::Netns;

/// One change. `Add…` refuses what is there already (see [`crate::NetlinkError::is_present`]), `Set…` replaces it,
/// `Del…` refuses what is absent (see [`crate::NetlinkError::is_absent`]).
#[derive(Clone, Debug)]
pub enum Change<'a> {
    /// Makes a link in the socket's namespace.
    NewLink(NewLink),
    /// Makes a link elsewhere.
    NewLinkIn {
        /// The link; its `parent` is an index of the *socket's* namespace.
        link: NewLink,
        /// Where it goes; `None` for the socket's namespace.
        netns: Option<&'a Netns>,
        /// Where a veth's other end goes; `None` for the namespace of the link.
        peer: Option<&'a Netns>,
    },
    /// Changes a link.
    SetLink {
        /// The link.
        index: u32,
        /// What changes.
        change: LinkChange,
    },
    /// Gives the link of that name an alias: for one that is made in the same send, whose index nobody knows yet.
    Label {
        /// The link's name.
        name: String,
        /// The alias.
        alias: String,
    },
    /// Ends a link.
    DelLink(u32),
    /// Moves a link to another namespace, and renames it there. It arrives down, without addresses and routes. When the
    /// new name is taken the kernel still moves the link, and answers EEXIST.
    Move {
        /// The link.
        index: u32,
        /// Where it goes.
        netns: &'a Netns,
        /// Its name there; `None` keeps it.
        name: Option<String>,
    },
    /// Adds a further name.
    AddAltName {
        /// The link.
        index: u32,
        /// The name, up to 127 bytes.
        name: String,
    },
    /// Takes a further name away.
    DelAltName {
        /// The link.
        index: u32,
        /// The name.
        name: String,
    },
    /// Adds an address.
    AddAddr(Addr),
    /// Adds an address, or changes its flags and lifetimes.
    SetAddr(Addr),
    /// Takes an address away.
    DelAddr(Addr),
    /// Adds a route; another one of the same destination, table and metric refuses it.
    AddRoute(Route),
    /// Adds a route behind others of the same destination, table and metric; only the same one with the same way refuses it.
    AppendRoute(Route),
    /// Adds a route before others of the same destination, table and metric, so that it is the one that is taken. IPv6 knows
    /// no order there: a further router is a further next hop, as with [`Change::AppendRoute`].
    PrependRoute(Route),
    /// Adds a route, or replaces the one of the same destination, table and metric.
    SetRoute(Route),
    /// Takes a route away.
    DelRoute(Route),
    /// Adds a rule.
    AddRule(Rule),
    /// Takes a rule away.
    DelRule(Rule),
    /// Adds or replaces a neighbour.
    AddNeighbour(Neighbour),
    /// Takes a neighbour away.
    DelNeighbour(Neighbour),
    /// Changes a VF through its PF.
    SetVf {
        /// The PF.
        pf: u32,
        /// The VF's number.
        vf: u32,
        /// What changes.
        change: VfChange,
    },
    /// Changes a port of a bridge.
    BridgePort {
        /// The port.
        index: u32,
        /// What changes.
        port: BridgePort,
    },
    /// Adds VLANs to a port, or changes their flags.
    AddBridgeVlan(BridgeVlan),
    /// Takes VLANs from a port.
    DelBridgeVlan(BridgeVlan),
}

impl fmt::Display for Change<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NewLink(link) => new_link(f, link),
            Self::NewLinkIn { link, netns, peer } => {
                new_link(f, link)?;
                if let Some(netns) = netns {
                    write!(f, " in {}", netns.path().display())?;
                }
                if let Some(peer) = peer {
                    write!(f, " with its peer in {}", peer.path().display())?;
                }
                Ok(())
            }
            Self::SetLink { index, change } => {
                write!(f, "change link {index}:")?;
                set_link(f, change)
            }
            Self::Label { name, alias } => write!(f, "label link {name}: alias {alias}"),
            Self::DelLink(index) => write!(f, "delete link {index}"),
            Self::Move { index, netns, name } => {
                write!(f, "move link {index} to {}", netns.path().display())?;
                match name {
                    Some(name) => write!(f, " as {name}"),
                    None => Ok(()),
                }
            }
            Self::AddAltName { index, name } => write!(f, "add the name {name} to link {index}"),
            Self::DelAltName { index, name } => write!(f, "delete the name {name} of link {index}"),
            Self::AddAddr(a) => write!(f, "add address {} to link {}", a.address, a.index),
            Self::SetAddr(a) => write!(f, "set address {} of link {}", a.address, a.index),
            Self::DelAddr(a) => write!(f, "delete address {} of link {}", a.address, a.index),
            Self::AddRoute(r) => route(f, "add", r),
            Self::AppendRoute(r) => route(f, "append", r),
            Self::PrependRoute(r) => route(f, "prepend", r),
            Self::SetRoute(r) => route(f, "set", r),
            Self::DelRoute(r) => route(f, "delete", r),
            Self::AddRule(r) => rule(f, "add", r),
            Self::DelRule(r) => rule(f, "delete", r),
            Self::AddNeighbour(n) => write!(f, "add neighbour {} to link {}", n.address, n.index),
            Self::DelNeighbour(n) => {
                write!(f, "delete neighbour {} of link {}", n.address, n.index)
            }
            Self::SetVf { pf, vf, .. } => write!(f, "change VF {vf} of link {pf}"),
            Self::BridgePort { index, .. } => write!(f, "change bridge port {index}"),
            Self::AddBridgeVlan(v) => write!(f, "add VLAN {} to bridge port {}", Range(v), v.index),
            Self::DelBridgeVlan(v) => {
                write!(f, "delete VLAN {} of bridge port {}", Range(v), v.index)
            }
        }
    }
}

struct Range<'a>(&'a BridgeVlan);

impl fmt::Display for Range<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.first == self.0.last {
            write!(f, "{}", self.0.first)
        } else {
            write!(f, "{}-{}", self.0.first, self.0.last)
        }
    }
}

fn new_link(f: &mut fmt::Formatter<'_>, link: &NewLink) -> fmt::Result {
    write!(f, "make {} {}", link.kind.word(), link.name)?;
    match link.parent {
        Some(parent) => write!(f, " on link {parent}"),
        None => Ok(()),
    }
}

fn set_link(f: &mut fmt::Formatter<'_>, change: &LinkChange) -> fmt::Result {
    let mut comma = "";
    let mut say = |text: fmt::Arguments<'_>| {
        let written = write!(f, "{comma} {text}");
        comma = ",";
        written
    };
    if let Some(name) = &change.name {
        say(format_args!("name {name}"))?;
    }
    if let Some(mac) = &change.mac {
        say(format_args!("MAC {mac}"))?;
    }
    if let Some(mtu) = change.mtu {
        say(format_args!("MTU {mtu}"))?;
    }
    if let Some(master) = change.master {
        say(format_args!("master {master}"))?;
    }
    match change.up {
        Some(true) => say(format_args!("up"))?,
        Some(false) => say(format_args!("down"))?,
        None => {}
    }
    if let Some(on) = change.promiscuous {
        say(format_args!("promiscuous {on}"))?;
    }
    if let Some(on) = change.all_multicast {
        say(format_args!("all-multicast {on}"))?;
    }
    if let Some(on) = change.arp {
        say(format_args!("ARP {on}"))?;
    }
    if let Some(on) = change.multicast {
        say(format_args!("multicast {on}"))?;
    }
    if let Some(length) = change.txqlen {
        say(format_args!("transmit queue {length}"))?;
    }
    if let Some(alias) = &change.alias {
        say(format_args!("alias {alias:?}"))?;
    }
    if let Some(group) = change.group {
        say(format_args!("group {group}"))?;
    }
    if let Some(mode) = change.addr_gen {
        say(format_args!("address generation {mode:?}"))?;
    }
    if let Some(kind) = &change.kind {
        say(format_args!("{} options", kind.word()))?;
    }
    Ok(())
}

fn route(f: &mut fmt::Formatter<'_>, verb: &str, route: &Route) -> fmt::Result {
    write!(f, "{verb} route to {}", route.dst)?;
    if let Some(gateway) = route.gateway {
        write!(f, " via {gateway}")?;
    }
    if let Some(index) = route.oif {
        write!(f, " by link {index}")?;
    }
    write!(f, " in table {}", route.table)
}

fn rule(f: &mut fmt::Formatter<'_>, verb: &str, rule: &Rule) -> fmt::Result {
    write!(f, "{verb} {} rule", rule.family)?;
    if let Some(priority) = rule.priority {
        write!(f, " {priority}")?;
    }
    if let Some(src) = rule.src {
        write!(f, " from {src}")?;
    }
    if let Some(dst) = rule.dst {
        write!(f, " to {dst}")?;
    }
    if let Some(iif) = &rule.iif {
        write!(f, " iif {iif}")?;
    }
    if let Some(oif) = &rule.oif {
        write!(f, " oif {oif}")?;
    }
    write!(f, " to table {}", rule.table)
}
