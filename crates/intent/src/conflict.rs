//! The conflict engine: keys that exist once, who has them, and who is told to step back.
//!
//! Webhook, compiler and CLI ask the same function. A key is exclusive among the nodes that two objects share, or
//! everywhere. Who says exactly the same as the holder shares the key; routes of a VRF, aggregates and mirrors are
//! additive and never ask.
//!
//! ```text
//!  VLAN, VNI, interface, source, local VRF, listen range, loopback, tunnel    per node
//!  VNI with its subnets, VRF with VNI and route target, route target,         everywhere
//!  subnet of a VRF
//! ```
//!
//! Easy to get wrong: the older *claim* wins, not the older object. Who had a key when it last ran keeps it against an
//! older object that asks for it today.

use std::collections::{BTreeMap, BTreeSet};

use mooring_api::{Cidr, Code, Finding, ObjectRef};

use crate::Scope;
use crate::compile::{Context, Contribution, Draft};
use crate::form::{Item, Who};

/// Something that exists once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Vlan(u16),
    Vni(u32),
    Interface(String),
    HostVlan(u16),
    Source(Cidr),
    Local(String),
    Listen(String, String),
    Loopback(String, String),
    Tunnel(String),
    FabricVni(u32),
    Vrf(String),
    RouteTarget(String),
}

impl Key {
    fn is_global(&self) -> bool {
        matches!(
            self,
            Self::FabricVni(_) | Self::Vrf(_) | Self::RouteTarget(_)
        )
    }

    fn said(&self) -> String {
        match self {
            Self::Vlan(vlan) | Self::HostVlan(vlan) => format!("VLAN {vlan}"),
            Self::Vni(vni) | Self::FabricVni(vni) => format!("VNI {vni}"),
            Self::Interface(name) => format!("interface {name}"),
            Self::Source(source) => format!("traffic from {source}"),
            Self::Local(name) => format!("local VRF {name}"),
            Self::Listen(vrf, who) => format!("BGP peers {who} in VRF {vrf}"),
            Self::Loopback(vrf, name) => format!("loopback {name} in VRF {vrf}"),
            Self::Tunnel(name) => format!("tunnel {name}"),
            Self::Vrf(name) => format!("VRF {name}"),
            Self::RouteTarget(rt) => format!("route target {rt}"),
        }
    }

    fn field(&self) -> &'static str {
        match self {
            Self::Vlan(_) | Self::HostVlan(_) => "spec.network.vlanID",
            Self::Vni(_) | Self::FabricVni(_) => "spec.network.vni",
            Self::Interface(_) => "spec.interfaceName",
            Self::Vrf(_) | Self::RouteTarget(_) => "spec.vrf",
            _ => "spec",
        }
    }
}

/// Older first; without a time of creation by kind and name.
pub(crate) fn rank(draft: &Draft) -> (String, String, String) {
    let id = draft.id();
    let created = draft.created.clone().unwrap_or_else(|| "~".to_owned());
    (created, id.kind.clone(), id.name.clone())
}

struct Holding<'a> {
    draft: usize,
    scope: &'a Scope,
    content: String,
    ran: bool,
}

/// Who has to step back, and why.
pub(crate) fn losers(context: &Context<'_>, drafts: &[Draft]) -> BTreeMap<ObjectRef, Vec<Finding>> {
    let mut order: Vec<usize> = (0..drafts.len()).collect();
    order.sort_by_cached_key(|at| rank(&drafts[*at]));
    let before = running(context);
    let mut table: BTreeMap<Key, Vec<Holding<'_>>> = BTreeMap::new();
    for at in order {
        for placed in &drafts[at].contribution.items {
            for (key, content) in keys(context, &placed.item) {
                let ran = before
                    .get(drafts[at].id())
                    .is_some_and(|had| had.contains(&(key.clone(), content.clone())));
                let holdings = table.entry(key).or_default();
                holdings.push(Holding {
                    draft: at,
                    scope: &placed.scope,
                    content,
                    ran,
                });
            }
        }
    }
    let nodes = Nodes::new(context, drafts);
    let mut lost = BTreeMap::new();
    for (key, mut holdings) in table {
        holdings.sort_by_key(|h| !h.ran);
        let mut winners: Vec<&Holding<'_>> = Vec::new();
        for holding in &holdings {
            let clash = winners.iter().find(|w| {
                w.draft != holding.draft
                    && w.content != holding.content
                    && (key.is_global() || nodes.share(w.scope, holding.scope))
            });
            match clash {
                None => winners.push(holding),
                Some(winner) => {
                    let (loser, winner) = (&drafts[holding.draft], &drafts[winner.draft]);
                    tell(context, &mut lost, loser, winner, &key.said(), key.field());
                }
            }
        }
    }
    subnets(context, drafts, &mut lost);
    lost
}

/// Overlapping subnets of one VRF.
fn subnets(context: &Context<'_>, drafts: &[Draft], lost: &mut BTreeMap<ObjectRef, Vec<Finding>>) {
    let mut order: Vec<&Draft> = drafts.iter().collect();
    order.sort_by_cached_key(|draft| {
        let had = context.prior.of(draft.id());
        let ran = had.is_some_and(|c| c.subnets == draft.contribution.subnets);
        (!ran, rank(draft))
    });
    let mut held: BTreeMap<&str, Vec<(Cidr, &str, &Draft)>> = BTreeMap::new();
    for draft in order {
        for (vrf, subnet, content) in &draft.contribution.subnets {
            let there = held.entry(vrf).or_default();
            let clash = there.iter().find(|(other, theirs, who)| {
                other.overlaps(subnet) && theirs != content && who.id() != draft.id()
            });
            if let Some((other, _, winner)) = clash {
                let what = format!("subnet {other} of VRF {vrf}");
                tell(context, lost, draft, winner, &what, "spec.network");
            } else {
                there.push((*subnet, content, draft));
            }
        }
    }
}

fn tell(
    context: &Context<'_>,
    lost: &mut BTreeMap<ObjectRef, Vec<Finding>>,
    loser: &Draft,
    winner: &Draft,
    what: &str,
    field: &str,
) {
    let mut message = format!("{what} belongs to {}", winner.id());
    if !context.inputs.has_times() {
        message.push_str("; a live cluster knows which is older and may decide otherwise");
    }
    let found = Finding::error(Code::Conflict, message)
        .on(loser.id())
        .at(field)
        .help("change one of the two, or let both say exactly the same");
    let findings: &mut Vec<Finding> = lost.entry(loser.id().clone()).or_default();
    if !findings.contains(&found) {
        findings.push(found);
    }
}

/// What ran, by object.
fn running(context: &Context<'_>) -> BTreeMap<ObjectRef, BTreeSet<(Key, String)>> {
    let of = |c: &Contribution| -> BTreeSet<(Key, String)> {
        c.items
            .iter()
            .flat_map(|placed| keys(context, &placed.item))
            .collect()
    };
    let all = context.prior.iter();
    all.map(|c| (c.object.clone(), of(c))).collect()
}

/// The keys of an item, each with what must be equal to share it.
fn keys(context: &Context<'_>, item: &Item) -> Vec<(Key, String)> {
    let content = || serde_json::to_string(item).expect("keys are text");
    match item {
        Item::Segment(segment) => {
            let subnets: Vec<String> = segment
                .gateways
                .iter()
                .map(|g| g.subnet().to_string())
                .collect();
            let mut keys = vec![
                (Key::Vlan(segment.vlan), content()),
                (Key::Vni(segment.vni), content()),
                (
                    Key::FabricVni(segment.vni),
                    format!("{} {}", segment.mtu, subnets.join(" ")),
                ),
            ];
            if let Some(local) = context.inputs.config.local_as {
                let derived = format!("{local}:{}", segment.vni);
                keys.push((Key::RouteTarget(derived), "a segment".to_owned()));
            }
            keys
        }
        Item::Host(device) => {
            let Some(name) = &device.name else {
                return Vec::new();
            };
            vec![
                (Key::Interface(name.clone()), content()),
                (Key::HostVlan(device.vlan), content()),
            ]
        }
        Item::Vrf(vrf) => vec![
            (Key::Vrf(vrf.name.clone()), content()),
            (Key::Vni(vrf.vni), content()),
            (
                Key::RouteTarget(vrf.route_target.clone()),
                // VRFs may share one; a segment must not, or its neighbours appear in the VRF without a router.
                "a VRF".to_owned(),
            ),
        ],
        Item::Steer(steer) => vec![(Key::Source(steer.source), content())],
        Item::Local(local) => vec![(Key::Local(local.name.clone()), content())],
        Item::Peer(peer) => {
            let who = match &peer.who {
                Who::Range(range) => range.to_string(),
                Who::Host(addr) => addr.to_string(),
                Who::Transfer { key, family } => format!("{key} {family}"),
            };
            vec![(Key::Listen(peer.vrf.clone(), who), content())]
        }
        Item::Loopback(lo) => vec![(Key::Loopback(lo.vrf.clone(), lo.name.clone()), content())],
        Item::Tunnel(tunnel) => vec![(Key::Tunnel(tunnel.name.clone()), content())],
        Item::Leak(_) | Item::Aggregate(_) | Item::Mirror(_) => Vec::new(),
    }
}

/// Which scopes share a node.
struct Nodes<'a>(BTreeMap<&'a Scope, BTreeSet<usize>>);

impl<'a> Nodes<'a> {
    fn new(context: &Context<'_>, drafts: &'a [Draft]) -> Self {
        let mut all: BTreeMap<&Scope, BTreeSet<usize>> = BTreeMap::new();
        for placed in drafts.iter().flat_map(|d| &d.contribution.items) {
            all.entry(&placed.scope).or_insert_with(|| {
                let nodes = context.inputs.nodes.iter().enumerate();
                nodes
                    .filter(|(_, n)| placed.scope.matches(&n.labels))
                    .map(|(at, _)| at)
                    .collect()
            });
        }
        Self(all)
    }

    /// Equal scopes share even where no node is in them yet.
    fn share(&self, a: &Scope, b: &Scope) -> bool {
        a == b || a.is_all() || b.is_all() || !self.0[a].is_disjoint(&self.0[b])
    }
}
