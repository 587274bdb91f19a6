//! The revision: the published lists of low-level lines, and beside it our own, which loses nothing.
//!
//! Both come from the merged form and not from objects, so that an intent and the low-level object that it replaces
//! give the same revision. Easy to get wrong: what the lists cannot say (local VRFs, transfer networks, hosts) stands
//! only in the CompiledRevision; the lists are for people and for the Go operator's tools, the nodes have their own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mooring_api::HostCidr;
use mooring_api::kinds::mooring::{CompiledRevision, CompiledRevisionSpec, ProvenanceEntry};
use mooring_api::kinds::schiff::{
    API_VERSION, BGPPeeringSpec, BgpRevision, GreProtocol, ItemAction,
    Layer2NetworkConfigurationSpec, Layer2Revision, LoopbackPeer, MirrorObject,
    MirrorSelectorRevision, MirrorSelectorSpec, MirrorTargetRevision, MirrorTargetSpec,
    NetworkConfigRevision, NetworkConfigRevisionSpec, PeeringVlan, PrefixItem,
    VRFRouteConfigurationSpec, VrfRevision,
};
use serde_json::{Value, json};

use crate::compile::Contribution;
use crate::form::{Item, Leak, MirrorOn, Peer, PrefixRule, Side, Who, short_hash};
use crate::node::NodeConfig;
use crate::{Form, Scope, status};

/// How many bytes of form or bodies stand in one object, well below what etcd takes.
pub const PART: usize = 500_000;

/// Where lines without an order of their own stand: after all that have one.
const LAST: u16 = 65_000;

/// The published revision.
pub(crate) fn revision(form: &Form, digest: &str) -> NetworkConfigRevision {
    let mut spec = NetworkConfigRevisionSpec {
        revision: digest.to_owned(),
        ..NetworkConfigRevisionSpec::default()
    };
    let mut vrfs: BTreeMap<(String, u16, &Scope), VRFRouteConfigurationSpec> = BTreeMap::new();
    for (scope, items) in form.scopes() {
        let identities: BTreeMap<&str, (u32, &str)> = items
            .iter()
            .filter_map(|item| match item {
                Item::Vrf(v) => Some((v.name.as_str(), (v.vni, v.route_target.as_str()))),
                _ => None,
            })
            .collect();
        let mut of = |vrf: &str, seq: u16, fill: &mut dyn FnMut(&mut VRFRouteConfigurationSpec)| {
            let entry = vrfs.entry((vrf.to_owned(), seq, scope)).or_insert_with(|| {
                let identity = identities.get(vrf);
                VRFRouteConfigurationSpec {
                    vrf: vrf.to_owned(),
                    vni: identity.map(|i| i.0),
                    route_target: identity.map(|i| i.1.to_owned()),
                    seq,
                    node_selector: scope.selector(),
                    ..VRFRouteConfigurationSpec::default()
                }
            });
            fill(entry);
        };
        for item in items {
            match item {
                Item::Segment(_) => spec.layer2.extend(layer2(item, scope)),
                Item::Vrf(vrf) => of(&vrf.name, LAST, &mut |_| {}),
                Item::Leak(leak) => {
                    let seq = leak.order.map_or(LAST, |(seq, ..)| seq);
                    of(&leak.vrf, seq, &mut |entry| line(entry, leak));
                }
                Item::Aggregate(a) => of(&a.vrf, LAST, &mut |entry| {
                    entry.aggregate.push(HostCidr::from(a.prefix));
                }),
                Item::Steer(steer) => {
                    if let Some(vrf) = steer
                        .into
                        .strip_prefix("s-")
                        .filter(|v| identities.contains_key(v))
                    {
                        of(vrf, LAST, &mut |entry| {
                            entry.sbr_prefixes.push(HostCidr::from(steer.source));
                        });
                    }
                }
                Item::Peer(peer) => spec.bgp.extend(bgp(peer, items, scope)),
                Item::Tunnel(_) => spec.mirror_targets.extend(target(item)),
                Item::Mirror(_) => spec.mirror_selectors.extend(selector(item, scope)),
                Item::Local(_) | Item::Loopback(_) | Item::Host(_) => {}
            }
        }
    }
    spec.vrf = vrfs
        .into_iter()
        .map(|((vrf, seq, scope), spec)| {
            let name = named(&vrf, scope);
            let name = if seq == LAST {
                name
            } else {
                format!("{name}-{seq}")
            };
            VrfRevision { name, spec }
        })
        .collect();
    spec.vrf
        .sort_by_key(|v| (v.spec.vrf.clone(), v.spec.seq, v.name.clone()));
    spec.layer2.sort_by_key(|l| (l.spec.id, l.name.clone()));
    spec.bgp.sort_by_key(|b| b.name.clone());
    spec.mirror_targets.sort_by_key(|t| t.name.clone());
    spec.mirror_targets.dedup();
    spec.mirror_selectors.sort_by_key(|s| s.name.clone());
    NetworkConfigRevision::new(&digest[..10], spec)
}

/// The low-level objects that say the lists of a revision, for people and for the Go operator.
pub(crate) fn low_level(spec: &NetworkConfigRevisionSpec) -> Vec<Value> {
    let object = |kind: &str, name: &str, spec: Value| {
        // A VRF may have an underscore, an object may not.
        let name = name.to_lowercase().replace('_', "-");
        json!({
            "apiVersion": API_VERSION, "kind": kind,
            "metadata": { "name": name }, "spec": spec,
        })
    };
    let mut objects = Vec::new();
    for l in &spec.layer2 {
        objects.push(object(
            "Layer2NetworkConfiguration",
            &l.name,
            status::value(&l.spec),
        ));
    }
    for v in &spec.vrf {
        objects.push(object(
            "VRFRouteConfiguration",
            &v.name,
            status::value(&v.spec),
        ));
    }
    for b in &spec.bgp {
        objects.push(object("BGPPeering", &b.name, status::value(&b.spec)));
    }
    for t in &spec.mirror_targets {
        objects.push(object("MirrorTarget", &t.name, status::value(&t.spec)));
    }
    for m in &spec.mirror_selectors {
        objects.push(object("MirrorSelector", &m.name, status::value(&m.spec)));
    }
    objects
}

/// A name for what several objects may say together.
fn named(lead: &str, scope: &Scope) -> String {
    if scope.is_all() {
        return lead.to_owned();
    }
    format!("{lead}-{}", short_hash(&scope.to_string(), 8))
}

fn layer2(item: &Item, scope: &Scope) -> Option<Layer2Revision> {
    let Item::Segment(segment) = item else {
        return None;
    };
    let spec = Layer2NetworkConfigurationSpec {
        id: segment.vlan,
        mtu: segment.mtu,
        vni: segment.vni,
        anycast_mac: segment.mac.map(|m| m.to_string()),
        anycast_gateways: segment.gateways.iter().copied().collect(),
        neigh_suppression: Some(segment.suppress),
        disable_segmentation: segment.disable_segmentation.then_some(true),
        vrf: (!segment.vrf.is_empty()).then(|| segment.vrf.clone()),
        node_selector: scope.selector(),
        ..Layer2NetworkConfigurationSpec::default()
    };
    let name = named(&format!("vlan-{}", segment.vlan), scope);
    Some(Layer2Revision { name, spec })
}

fn prefix_item(rule: &PrefixRule, seq: Option<u32>) -> PrefixItem {
    PrefixItem {
        cidr: rule.prefix,
        seq: seq.filter(|s| *s > 0),
        ge: rule.ge,
        le: rule.le,
        action: if rule.permit {
            ItemAction::Permit
        } else {
            ItemAction::Deny
        },
    }
}

fn line(entry: &mut VRFRouteConfigurationSpec, leak: &Leak) {
    let item = prefix_item(&leak.rule, leak.order.map(|(_, seq, _)| seq));
    let list = match leak.side {
        Side::Import => &mut entry.import,
        Side::Export => &mut entry.export,
    };
    if !list.contains(&item) {
        list.push(item);
    }
    let all: BTreeSet<String> = entry
        .communities
        .drain(..)
        .chain(leak.communities.iter().cloned())
        .collect();
    entry.communities = all.into_iter().collect();
}

fn bgp(peer: &Peer, items: &BTreeSet<Item>, scope: &Scope) -> Option<BgpRevision> {
    let rules = |rules: &[PrefixRule]| rules.iter().map(|r| prefix_item(r, None)).collect();
    let mut spec = BGPPeeringSpec {
        enable_bfd: false,
        export: rules(&peer.export),
        import: rules(&peer.import),
        hold_time: peer.hold_time.clone(),
        keepalive_time: peer.keepalive_time.clone(),
        maximum_prefixes: peer.maximum_prefixes,
        node_selector: scope.selector(),
        remote_asn: peer.remote_as,
        ..BGPPeeringSpec::default()
    };
    let name = match &peer.who {
        Who::Range(range) => {
            let vlan = items.iter().find_map(|item| match item {
                Item::Segment(s) if s.gateways.iter().any(|g| g.subnet() == *range) => Some(s.vlan),
                _ => None,
            })?;
            let name = named(&format!("vlan-{vlan}"), scope);
            spec.peering_vlan = Some(PeeringVlan { name: name.clone() });
            format!("{name}-{}", range.family())
        }
        Who::Host(addr) => {
            let ips = vec![addr.to_string()];
            spec.loopback_peer = Some(LoopbackPeer { ips });
            named(&format!("peer-{addr}").replace(':', "-"), scope)
        }
        Who::Transfer { .. } => return None,
    };
    Some(BgpRevision { name, spec })
}

fn target(item: &Item) -> Option<MirrorTargetRevision> {
    let Item::Tunnel(tunnel) = item else {
        return None;
    };
    let spec = MirrorTargetSpec {
        protocol: if tunnel.frames {
            GreProtocol::L2gre
        } else {
            GreProtocol::L3gre
        },
        destination_ip: tunnel.address.to_string(),
        key: tunnel.key,
        destination_vrf: tunnel.vrf.clone(),
        source_loopback: tunnel.loopback.clone(),
    };
    let name = tunnel.name.clone();
    Some(MirrorTargetRevision { name, spec })
}

fn selector(item: &Item, scope: &Scope) -> Option<MirrorSelectorRevision> {
    let Item::Mirror(mirror) = item else {
        return None;
    };
    let object = |kind: &str, name: String| MirrorObject {
        kind: kind.to_owned(),
        name,
        ..MirrorObject::default()
    };
    let source = match &mirror.on {
        MirrorOn::Segment(vlan) => {
            let name = named(&format!("vlan-{vlan}"), scope);
            object("Layer2NetworkConfiguration", name)
        }
        MirrorOn::Vrf(vrf) => object("VRFRouteConfiguration", named(vrf, scope)),
    };
    let spec = MirrorSelectorSpec {
        traffic_match: Some(mirror.traffic.clone()),
        mirror_target: object("MirrorTarget", mirror.tunnel.clone()),
        mirror_source: source,
        direction: mirror.direction,
    };
    let hash = short_hash(&status::value(&(scope, mirror)).to_string(), 8);
    let name = format!("{}-{hash}", mirror.tunnel);
    Some(MirrorSelectorRevision { name, spec })
}

/// Ours: contributions as text, bodies of nodes, and why every part is there.
pub(crate) fn compiled(
    contributions: &[Arc<Contribution>],
    nodes: &BTreeMap<String, NodeConfig>,
    digest: &str,
) -> Vec<CompiledRevision> {
    let mut parts = vec![CompiledRevisionSpec::default()];
    let mut room = PART;
    let mut next = |parts: &mut Vec<CompiledRevisionSpec>, size: usize| {
        if size > room && room < PART {
            parts.push(CompiledRevisionSpec::default());
            room = PART;
        }
        room = room.saturating_sub(size);
    };
    let form: Vec<&Contribution> = contributions.iter().map(AsRef::as_ref).collect();
    let form = serde_json::to_string(&form).expect("keys are text");
    let mut rest = form.as_str();
    while !rest.is_empty() {
        let mut at = rest.len().min(PART);
        while !rest.is_char_boundary(at) {
            at -= 1;
        }
        let (piece, after) = rest.split_at(at);
        next(&mut parts, piece.len());
        last(&mut parts).form.push_str(piece);
        rest = after;
    }
    let mut bodies = BTreeSet::new();
    for (name, config) in nodes {
        // Most nodes are equal, and text costs less than a value.
        let network = config.network.as_ref();
        let text = serde_json::to_string(network).expect("keys are text");
        let hash = short_hash(&text, 16);
        if bodies.insert(hash.clone()) {
            next(&mut parts, text.len());
            let body = status::value(network);
            last(&mut parts).bodies.insert(hash.clone(), body);
        }
        next(&mut parts, name.len() + hash.len());
        last(&mut parts).nodes.insert(name.clone(), hash);
    }
    for (path, origins) in provenance(contributions) {
        let size = path.len() + origins.iter().map(String::len).sum::<usize>();
        next(&mut parts, size);
        let origins = origins.into_iter().collect();
        last(&mut parts)
            .provenance
            .push(ProvenanceEntry { path, origins });
    }
    let count = u16::try_from(parts.len()).unwrap_or(u16::MAX);
    let numbered = parts.into_iter().enumerate().map(|(at, mut spec)| {
        let at = u16::try_from(at).unwrap_or(u16::MAX);
        digest.clone_into(&mut spec.revision);
        (spec.part, spec.parts) = (at, count);
        let name = match at {
            0 => digest[..10].to_owned(),
            _ => format!("{}-{at}", &digest[..10]),
        };
        CompiledRevision::new(&name, spec)
    });
    numbered.collect()
}

fn last(parts: &mut [CompiledRevisionSpec]) -> &mut CompiledRevisionSpec {
    parts.last_mut().expect("there is always one part")
}

/// Who put each part of the form there, and by which rule.
pub(crate) fn provenance(
    contributions: &[Arc<Contribution>],
) -> BTreeMap<String, BTreeSet<String>> {
    let mut index: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for contribution in contributions {
        for placed in &contribution.items {
            let origin = format!(
                "{} {}: {} ({})",
                contribution.object, placed.field, placed.rule, placed.scope
            );
            index.entry(placed.item.path()).or_default().insert(origin);
        }
    }
    index
}
