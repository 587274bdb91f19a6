//! Kernel network state as plain values: what is wanted, and what was seen.
//!
//! `mooring-host` reads and writes these; records keep them on disk; tests and the deciding rooms compare them. Nothing
//! here talks to a kernel, and nothing here depends on how netlink spells a message.
//!
//! Easy to get wrong: a link's index is its identity only inside one namespace and one boot. [`Snapshot::moved_to`]
//! rewrites every index of a snapshot after a link came back under another one.

mod addr;
mod bridge;
mod link;
mod neighbour;
mod route;
mod rule;
mod snapshot;
mod vf;

pub use addr::{Addr, AddrFlags};
pub use bridge::{Bridge, BridgePort, BridgeVlan};
pub use link::{
    AddrGenMode, IpvlanFlag, IpvlanMode, Link, LinkChange, LinkKind, MacvlanMode, NewLink,
    OperState, Peer, VlanProtocol,
};
pub use neighbour::{Neighbour, NeighbourState};
pub use route::{
    Attribute, NextHop, Route, RouteKind, RouteProtocol, Scope, TABLE_LOCAL, TABLE_MAIN,
};
pub use rule::{Rule, RuleAction};
pub use snapshot::{Conf, Snapshot};
pub use vf::{Vf, VfChange, VfLinkState, VfRate, VfVlan};
