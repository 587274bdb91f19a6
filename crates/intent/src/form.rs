//! The typed form: what the network shall be, as a set of items for each scope of nodes.
//!
//! A set, so that two objects that say the same thing put one item there; ordered, so that the same network has the
//! same bytes. Nothing in it names an object or a node: who put an item there is provenance, and an address that a node
//! was given is an answer that the item names by key. So a new node changes no form.
//!
//! Easy to get wrong: the digest leaves [`Item::Host`] out. The host's half has no place in a published revision, and an
//! adopted segment that only gets a name on the host is the same revision.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use mooring_api::kinds::schiff::{Mirroring, TrafficMatch};
use mooring_api::{Cidr, Family, HostCidr, Mac};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::Scope;
use crate::compile::Nodes;

/// The VRF of the cluster.
pub(crate) const CLUSTER: &str = "cluster";

/// What the network shall be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Form(Vec<(Scope, BTreeSet<Item>)>);

impl Form {
    /// Of scoped items.
    pub(crate) fn new<'a>(items: impl Iterator<Item = (&'a Scope, &'a Item)>) -> Self {
        let mut all: BTreeMap<&Scope, BTreeSet<Item>> = BTreeMap::new();
        for (scope, item) in items {
            let there = all.entry(scope).or_default();
            if !there.contains(item) {
                there.insert(item.clone());
            }
        }
        for items in all.values_mut() {
            plain(items);
        }
        Self(all.into_iter().map(|(s, i)| (s.clone(), i)).collect())
    }

    /// The scopes and what is in them.
    pub fn scopes(&self) -> impl Iterator<Item = (&Scope, &BTreeSet<Item>)> {
        self.0.iter().map(|(scope, items)| (scope, items))
    }

    /// Which scopes each node is in, by their place.
    pub(crate) fn places(&self, nodes: &Nodes<'_>) -> Vec<Vec<usize>> {
        let mut places = vec![Vec::new(); nodes.len()];
        for (place, (scope, _)) in self.0.iter().enumerate() {
            for at in nodes.within(scope).iter() {
                places[*at].push(place);
            }
        }
        places
    }

    /// What nodes of these scopes have.
    pub(crate) fn of(&self, places: &[usize]) -> BTreeSet<&Item> {
        places.iter().flat_map(|at| &self.0[*at].1).collect()
    }

    /// The digest of the form, without the host's half: 64 hexadecimal digits.
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        for (scope, items) in &self.0 {
            let told: Vec<&Item> = items
                .iter()
                .filter(|i| !matches!(i, Item::Host(_)))
                .collect();
            if told.is_empty() {
                continue;
            }
            let bytes = serde_json::to_vec(&(scope, told)).expect("keys are text");
            hash.update(bytes);
            hash.update(b"\n");
        }
        hex(&hash.finalize())
    }
}

/// Drops lines that another line of the same list says too: they change nothing, and who wrote both wrote one.
fn plain(items: &mut BTreeSet<Item>) {
    let mut wide: BTreeMap<(&str, Side, &str), Vec<&Leak>> = BTreeMap::new();
    for item in items.iter() {
        if let Item::Leak(leak) = item
            && leak.order.is_none()
            && leak.rule.permit
            && (leak.rule.ge.is_some() || leak.rule.le.is_some())
        {
            let list = (leak.vrf.as_str(), leak.side, leak.inner.as_str());
            wide.entry(list).or_default().push(leak);
        }
    }
    if wide.is_empty() {
        return;
    }
    let said = |leak: &Leak| {
        let list = (leak.vrf.as_str(), leak.side, leak.inner.as_str());
        let others = wide.get(&list).into_iter().flatten();
        leak.order.is_none()
            && leak.rule.permit
            && others.into_iter().any(|other| {
                other.rule != leak.rule
                    && other.communities == leak.communities
                    && other.rule.includes(&leak.rule)
            })
    };
    let spare: Vec<Item> = items
        .iter()
        .filter(|item| matches!(item, Item::Leak(leak) if said(leak)))
        .cloned()
        .collect();
    for item in spare {
        items.remove(&item);
    }
}

/// Hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The first `digits` hexadecimal digits of a text's hash.
pub(crate) fn short_hash(text: &str, digits: usize) -> String {
    let mut hash = hex(&Sha256::digest(text.as_bytes()));
    hash.truncate(digits);
    hash
}

/// One thing that nodes of a scope have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Item {
    /// A layer 2 segment.
    Segment(Segment),
    /// A device on the host.
    Host(HostDevice),
    /// A VRF of the fabric.
    Vrf(VrfItem),
    /// A route that passes between a VRF and an inner one.
    Leak(Leak),
    /// A prefix that a VRF announces as a whole.
    Aggregate(Aggregate),
    /// Traffic that is looked up elsewhere.
    Steer(Steer),
    /// A VRF of the node alone.
    Local(LocalVrf),
    /// A BGP session.
    Peer(Peer),
    /// A loopback with an address per node.
    Loopback(Loopback),
    /// A GRE tunnel.
    Tunnel(Tunnel),
    /// Mirrored traffic.
    Mirror(Mirror),
}

/// A layer 2 segment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Segment {
    /// VLAN.
    pub vlan: u16,
    /// VNI.
    pub vni: u32,
    /// MTU.
    pub mtu: u16,
    /// VRF of the gateways; empty without any.
    pub vrf: String,
    /// Gateways.
    pub gateways: BTreeSet<HostCidr>,
    /// Their MAC.
    pub mac: Option<Mac>,
    /// Whether nodes answer for neighbours.
    pub suppress: bool,
    /// Segmentation offload is off.
    pub disable_segmentation: bool,
}

/// A VLAN device on the host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostDevice {
    /// VLAN.
    pub vlan: u16,
    /// Its name; without one `vlan.<id>`, which yields to a named device of the same VLAN.
    pub name: Option<String>,
    /// MTU.
    pub mtu: u16,
    /// What it is on: the trunk unless said.
    pub link: Option<String>,
    /// Segmentation offload is off.
    pub disable_segmentation: bool,
    /// Subnets it has an address of, each with the key of the answer.
    pub addresses: BTreeMap<Cidr, String>,
    /// Routes over gateways of its subnets.
    pub routes: BTreeMap<Cidr, IpAddr>,
}

/// A VRF of the fabric.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VrfItem {
    /// Name.
    pub name: String,
    /// VNI.
    pub vni: u32,
    /// Route target.
    pub route_target: String,
}

/// Which way a route passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Side {
    /// From the VRF to the inner one.
    Import,
    /// From the inner one to the VRF, and on to the fabric.
    Export,
}

/// A route that passes between a VRF and an inner one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Leak {
    /// The VRF of the fabric.
    pub vrf: String,
    /// Which way.
    pub side: Side,
    /// The inner VRF: the cluster's, or a local one.
    pub inner: String,
    /// Which routes.
    pub rule: PrefixRule,
    /// Communities that exported routes get.
    pub communities: BTreeSet<String>,
    /// Where the order was written, its place: sequence of the object, of the line, and which line. Comes before what has none.
    pub order: Option<(u16, u32, u32)>,
}

/// Routes by prefix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PrefixRule {
    /// The prefix.
    pub prefix: Cidr,
    /// The shortest route inside it that is meant.
    pub ge: Option<u8>,
    /// The longest.
    pub le: Option<u8>,
    /// Whether it passes.
    pub permit: bool,
}

impl std::fmt::Display for PrefixRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.prefix)?;
        if let Some(ge) = self.ge {
            write!(f, " ge {ge}")?;
        }
        self.le.map_or(Ok(()), |le| write!(f, " le {le}"))
    }
}

impl PrefixRule {
    /// The prefix itself.
    pub(crate) fn exact(prefix: Cidr) -> Self {
        Self {
            prefix,
            ge: None,
            le: None,
            permit: true,
        }
    }

    /// The prefix and everything inside it.
    pub(crate) fn inside(prefix: Cidr) -> Self {
        let le = Some(prefix.family().bits());
        Self {
            le,
            ..Self::exact(prefix)
        }
    }

    /// The lengths of routes that are meant, shortest and longest.
    fn lengths(&self) -> (u8, u8) {
        let own = self.prefix.prefix_len();
        match (self.ge, self.le) {
            (None, None) => (own, own),
            (ge, le) => (
                ge.unwrap_or(own),
                le.unwrap_or_else(|| self.prefix.family().bits()),
            ),
        }
    }

    /// Whether a route is meant.
    pub(crate) fn matches(&self, route: Cidr) -> bool {
        let (low, high) = self.lengths();
        self.prefix.covers(&route) && (low..=high).contains(&route.prefix_len())
    }

    /// Whether every route of another rule is meant.
    pub(crate) fn includes(&self, other: &Self) -> bool {
        let ((low, high), (from, to)) = (self.lengths(), other.lengths());
        self.prefix.covers(&other.prefix) && low <= from && to <= high
    }
}

/// A prefix that a VRF announces as a whole.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Aggregate {
    /// VRF.
    pub vrf: String,
    /// Prefix.
    pub prefix: Cidr,
}

/// Traffic of the cluster's VRF that is looked up elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Steer {
    /// By source.
    pub source: Cidr,
    /// Where.
    pub into: String,
}

/// A VRF of the node alone: it joins others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LocalVrf {
    /// Name.
    pub name: String,
    /// VRFs whose routes it takes, all of them.
    pub imports: BTreeSet<String>,
    /// Prefixes, and the VRF that each leads to.
    pub routes: BTreeMap<Cidr, String>,
}

/// A BGP session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Peer {
    /// In which VRF.
    pub vrf: String,
    /// With whom.
    pub who: Who,
    /// The peer's AS.
    pub remote_as: u32,
    /// What it may announce.
    pub import: Vec<PrefixRule>,
    /// What it is told.
    pub export: Vec<PrefixRule>,
    /// How long it is waited for.
    pub hold_time: Option<String>,
    /// How often it calls.
    pub keepalive_time: Option<String>,
    /// How much it may announce, per family.
    pub maximum_prefixes: Option<u32>,
}

/// With whom.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Who {
    /// Whoever calls from a subnet.
    Range(Cidr),
    /// An address of the node's host, behind it.
    Host(IpAddr),
    /// The far end of the node's transfer network.
    Transfer {
        /// Key of the answer, without the node.
        key: String,
        /// Family.
        family: Family,
    },
}

/// A loopback with an address per node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Loopback {
    /// VRF.
    pub vrf: String,
    /// Interface.
    pub name: String,
    /// Key of the answers, without the node.
    pub key: String,
}

/// A GRE tunnel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tunnel {
    /// Interface.
    pub name: String,
    /// VRF.
    pub vrf: String,
    /// The loopback it comes from.
    pub loopback: String,
    /// Where to.
    pub address: IpAddr,
    /// Frames, not packets.
    pub frames: bool,
    /// Key.
    pub key: Option<u32>,
}

/// Mirrored traffic.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mirror {
    /// Whose.
    pub on: MirrorOn,
    /// Into which tunnel.
    pub tunnel: String,
    /// Of which VRF.
    pub tunnel_vrf: String,
    /// Which way.
    pub direction: Mirroring,
    /// Which traffic.
    pub traffic: TrafficMatch,
}

/// Whose traffic.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MirrorOn {
    /// A segment's, by VLAN.
    Segment(u16),
    /// A VRF's.
    Vrf(String),
}

impl Item {
    /// What a person calls it: the path that `explain` and the provenance index use.
    pub fn path(&self) -> String {
        match self {
            Self::Segment(s) => format!("vlan/{}", s.vlan),
            Self::Host(h) => format!("host/{}", h.device()),
            Self::Vrf(v) => format!("vrf/{}", v.name),
            Self::Leak(l) => {
                let side = match l.side {
                    Side::Import => "import",
                    Side::Export => "export",
                };
                format!("vrf/{}/{side}/{}", l.vrf, l.rule.prefix)
            }
            Self::Aggregate(a) => format!("vrf/{}/aggregate/{}", a.vrf, a.prefix),
            Self::Steer(s) => format!("steer/{}", s.source),
            Self::Local(l) => format!("local/{}", l.name),
            Self::Peer(p) => match &p.who {
                Who::Range(range) => format!("vrf/{}/peer/{range}", p.vrf),
                Who::Host(addr) => format!("vrf/{}/peer/{addr}", p.vrf),
                Who::Transfer { key, family } => format!("vrf/{}/peer/{key}/{family}", p.vrf),
            },
            Self::Loopback(l) => format!("vrf/{}/loopback/{}", l.vrf, l.name),
            Self::Tunnel(t) => format!("vrf/{}/tunnel/{}", t.vrf, t.name),
            Self::Mirror(m) => match &m.on {
                MirrorOn::Segment(vlan) => format!("vlan/{vlan}/mirror/{}", m.tunnel),
                MirrorOn::Vrf(vrf) => format!("vrf/{vrf}/mirror/{}", m.tunnel),
            },
        }
    }
}

impl HostDevice {
    /// Its name on the host.
    pub fn device(&self) -> String {
        self.name
            .clone()
            .unwrap_or_else(|| format!("vlan.{}", self.vlan))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cidr(s: &str) -> Cidr {
        s.parse().unwrap()
    }

    #[test]
    fn a_rule_without_bounds_is_exact_and_with_one_bound_open_at_the_other() {
        let rule = |ge, le| PrefixRule {
            prefix: cidr("10.0.0.0/8"),
            ge,
            le,
            permit: true,
        };
        assert!(rule(None, None).matches(cidr("10.0.0.0/8")));
        assert!(!rule(None, None).matches(cidr("10.1.0.0/16")));
        assert!(rule(None, Some(16)).matches(cidr("10.1.0.0/16")));
        assert!(!rule(None, Some(16)).matches(cidr("10.1.1.0/24")));
        assert!(rule(Some(24), None).matches(cidr("10.1.1.1/32")));
        assert!(!rule(Some(24), None).matches(cidr("10.0.0.0/8")));
        assert!(!rule(None, Some(32)).matches(cidr("11.0.0.0/8")));
    }
}
