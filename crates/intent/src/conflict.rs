//! The conflict engine: keys that exist once, who has them, and who is told to step back.
//!
//! Webhook, compiler and CLI ask the same function. A key is exclusive among the nodes that two objects share, or
//! everywhere. Who says exactly the same as the holder shares the key; routes of a VRF, aggregates and mirrors are
//! additive and never ask.
//!
//! ```text
//!  VLAN, VNI, interface, source, local VRF, listen range, loopback, tunnel    per node
//!  VNI with its subnets, VRF with VNI and route target, route target,         everywhere
//!  subnet of a VRF or of the platform's pools, object of the platform
//! ```
//!
//! Easy to get wrong: the older *claim* wins, not the older object. Who had a key when it last ran keeps it against an
//! older object that asks for it today.

use std::borrow::Cow;
use std::collections::BTreeMap;

use mooring_api::{Cidr, Code, Finding, ObjectRef};
use serde_json::Value;

use crate::compile::{Context, Draft, Nodes};
use crate::form::{Item, Who};
use crate::{Scope, platform};

/// In place of a VRF: pools of the platform, which know none. One address in two of them would be given out twice.
pub(crate) const POOLS: &str = "";

/// Something that exists once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key<'a> {
    Vlan(u16),
    Vni(u32),
    Interface(&'a str),
    HostVlan(u16),
    Source(Cidr),
    Local(&'a str),
    Listen(&'a str, String),
    Loopback(&'a str, &'a str),
    Tunnel(&'a str),
    FabricVni(u32),
    Vrf(&'a str),
    RouteTarget(Cow<'a, str>),
    Object([String; 4]),
}

impl Key<'_> {
    fn is_global(&self) -> bool {
        matches!(
            self,
            Self::FabricVni(_) | Self::Vrf(_) | Self::RouteTarget(_) | Self::Object(_)
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
            Self::Object([_, kind, _, name]) => format!("{kind} {name}"),
        }
    }

    fn field(&self) -> &'static str {
        match self {
            Self::Vlan(_) | Self::HostVlan(_) => "spec.network.vlanID",
            Self::Vni(_) | Self::FabricVni(_) => "spec.network.vni",
            Self::Interface(_) => "spec.interfaceName",
            Self::Vrf(_) | Self::RouteTarget(_) => "spec.vrf",
            Self::Object(_) => "metadata.name",
            _ => "spec",
        }
    }
}

/// Older first; without a time of creation by kind and name.
pub(crate) fn rank(draft: &Draft) -> (&str, &str, &str) {
    let id = draft.id();
    let created = draft.created.as_deref().unwrap_or("~");
    (created, &id.kind, &id.name)
}

struct Holding<'a> {
    draft: usize,
    scope: &'a Scope,
    content: Content<'a>,
}

/// What must be equal to share a key.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Content<'a> {
    All(&'a Item),
    Object(&'a Value),
    Said(Cow<'static, str>),
}

/// Something that one object asks for and another has.
pub(crate) struct Clash<'a> {
    pub(crate) loser: &'a Draft,
    pub(crate) winner: &'a Draft,
    /// What both want.
    pub(crate) what: String,
    field: &'static str,
    /// Somebody else has it too, and was named already.
    again: bool,
}

impl Clash<'_> {
    /// What the loser is told.
    pub(crate) fn finding(&self, context: &Context<'_>) -> Finding {
        let mut message = format!("{} belongs to {}", self.what, self.winner.id());
        if !context.inputs.has_times() {
            message.push_str("; a live cluster knows which is older and may decide otherwise");
        }
        Finding::error(Code::Conflict, message)
            .on(self.loser.id())
            .at(self.field)
            .help("change one of the two, or let both say exactly the same")
    }
}

/// Who has to step back, and why.
pub(crate) fn losers(context: &Context<'_>, drafts: &[Draft]) -> BTreeMap<ObjectRef, Vec<Finding>> {
    let mut lost: BTreeMap<ObjectRef, Vec<Finding>> = BTreeMap::new();
    clashes(context, drafts, |clash| {
        let findings = lost.entry(clash.loser.id().clone()).or_default();
        let found = clash.finding(context);
        if !clash.again && !findings.contains(&found) {
            findings.push(found);
        }
    });
    lost
}

/// Everything that two objects cannot both have: the one engine of compiler, CLI and webhook.
pub(crate) fn clashes<'a>(
    context: &Context<'_>,
    drafts: &'a [Draft],
    mut tell: impl FnMut(Clash<'a>),
) {
    let mut order: Vec<usize> = (0..drafts.len()).collect();
    order.sort_by(|a, b| rank(&drafts[*a]).cmp(&rank(&drafts[*b])));
    let mut table: BTreeMap<Key<'_>, Vec<Holding<'_>>> = BTreeMap::new();
    let everywhere = Scope::all();
    for at in order {
        let contribution = &drafts[at].contribution;
        let mut hold = |scope, key, content| {
            let holding = Holding {
                draft: at,
                scope,
                content,
            };
            table.entry(key).or_default().push(holding);
        };
        for placed in &contribution.items {
            keys(context, &placed.item, |key, content| {
                hold(&placed.scope, key, content);
            });
        }
        for object in &contribution.platform {
            let key = Key::Object(platform::key(object));
            hold(&everywhere, key, Content::Object(object));
        }
    }
    for (key, mut holdings) in table {
        if holdings.iter().all(|h| h.content == holdings[0].content) {
            continue;
        }
        holdings.sort_by_cached_key(|h| !ran(context, drafts[h.draft].id(), &key, &h.content));
        let mut winners: Vec<&Holding<'_>> = Vec::new();
        for holding in &holdings {
            let has = winners.iter().filter(|w| {
                w.draft != holding.draft
                    && w.content != holding.content
                    && (key.is_global() || share(&context.nodes, w.scope, holding.scope))
            });
            let mut again = false;
            for winner in has {
                tell(Clash {
                    loser: &drafts[holding.draft],
                    winner: &drafts[winner.draft],
                    what: key.said(),
                    field: key.field(),
                    again,
                });
                again = true;
            }
            if !again {
                winners.push(holding);
            }
        }
    }
    subnets(context, drafts, tell);
}

/// Whether an object had a key, with this content, when it last ran.
fn ran(context: &Context<'_>, id: &ObjectRef, key: &Key<'_>, content: &Content<'_>) -> bool {
    let had = context.prior.of(id);
    let mut items = had.into_iter().flat_map(|c| &c.items);
    let mut objects = had.into_iter().flat_map(|c| &c.platform);
    let held = items.any(|placed| {
        let mut found = false;
        keys(context, &placed.item, |k, c| {
            found |= k == *key && c == *content;
        });
        found
    });
    held || objects.any(|object| Content::Object(object) == *content)
}

/// Overlapping subnets of one VRF.
fn subnets<'a>(context: &Context<'_>, drafts: &'a [Draft], mut tell: impl FnMut(Clash<'a>)) {
    let owners = drafts.iter().filter(|d| !d.contribution.subnets.is_empty());
    let mut order: Vec<&Draft> = owners.collect();
    order.sort_by_cached_key(|draft| {
        let had = context.prior.of(draft.id());
        let ran = had.is_some_and(|c| c.subnets == draft.contribution.subnets);
        (!ran, rank(draft))
    });
    let mut held: BTreeMap<&str, Vec<(Cidr, &str, &Draft)>> = BTreeMap::new();
    for draft in order {
        for (vrf, subnet, content) in &draft.contribution.subnets {
            let there = held.entry(vrf).or_default();
            let has = there.iter().filter(|(other, theirs, who)| {
                other.overlaps(subnet) && theirs != content && who.id() != draft.id()
            });
            let mut again = false;
            for (other, _, winner) in has {
                let what = match vrf.as_str() {
                    POOLS => format!("subnet {other} in pools of the platform"),
                    vrf => format!("subnet {other} of VRF {vrf}"),
                };
                tell(Clash {
                    loser: draft,
                    winner,
                    what,
                    field: "spec.network",
                    again,
                });
                again = true;
            }
            if !again {
                there.push((*subnet, content, draft));
            }
        }
    }
}

/// The keys of an item, each with what must be equal to share it.
fn keys<'a>(context: &Context<'_>, item: &'a Item, mut holds: impl FnMut(Key<'a>, Content<'a>)) {
    let all = Content::All(item);
    match item {
        Item::Segment(segment) => {
            holds(Key::Vlan(segment.vlan), all.clone());
            holds(Key::Vni(segment.vni), all);
            let subnets: Vec<String> = segment
                .gateways
                .iter()
                .map(|g| g.subnet().to_string())
                .collect();
            let said = format!("{} {}", segment.mtu, subnets.join(" "));
            holds(Key::FabricVni(segment.vni), Content::Said(said.into()));
            if let Some(local) = context.inputs.config.local_as {
                let derived = format!("{local}:{}", segment.vni).into();
                holds(Key::RouteTarget(derived), Content::Said("a segment".into()));
            }
        }
        Item::Host(device) => {
            if let Some(name) = &device.name {
                holds(Key::Interface(name), all.clone());
                holds(Key::HostVlan(device.vlan), all);
            }
        }
        Item::Vrf(vrf) => {
            holds(Key::Vrf(&vrf.name), all.clone());
            holds(Key::Vni(vrf.vni), all);
            // VRFs may share one; a segment must not, or its neighbours appear in the VRF without a router.
            let target = vrf.route_target.as_str().into();
            holds(Key::RouteTarget(target), Content::Said("a VRF".into()));
        }
        Item::Steer(steer) => holds(Key::Source(steer.source), all),
        Item::Local(local) => holds(Key::Local(&local.name), all),
        Item::Peer(peer) => {
            let who = match &peer.who {
                Who::Range(range) => range.to_string(),
                Who::Host(addr) => addr.to_string(),
                Who::Transfer { key, family } => format!("{key} {family}"),
            };
            holds(Key::Listen(&peer.vrf, who), all);
        }
        Item::Loopback(lo) => holds(Key::Loopback(&lo.vrf, &lo.name), all),
        Item::Tunnel(tunnel) => holds(Key::Tunnel(&tunnel.name), all),
        Item::Leak(_) | Item::Aggregate(_) | Item::Mirror(_) => {}
    }
}

/// Whether two scopes share a node. Equal ones do even where no node is in them yet.
fn share(nodes: &Nodes<'_>, a: &Scope, b: &Scope) -> bool {
    a == b || a.is_all() || b.is_all() || nodes.meet(a, b)
}
