//! The low-level kinds, which say the form almost as it is. They compile together with the intents.
//!
//! Lines of a VRF keep their order only where it can matter, that is where one of its objects denies something. All
//! others are a set, and so an intent that says the same lines is the same form.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use mooring_api::kinds::mooring::LowLevel;
use mooring_api::kinds::schiff::{
    BGPPeeringSpec, GreProtocol, ItemAction, Layer2NetworkConfigurationSpec, MirrorSelectorSpec,
    PrefixItem, VRFRouteConfigurationSpec,
};
use mooring_api::{Code, HostCidr};

use super::collector::{gre_name, subnet_key};
use super::{Context, Draft, node_key, traffic_mirror};
use crate::answers::{Source, Want};
use crate::form::{
    Aggregate, CLUSTER, HostDevice, Item, Leak, Loopback, Mirror, MirrorOn, Peer, PrefixRule,
    Segment, Side, Steer, Tunnel, Who,
};
use crate::input::Object;
use crate::reach::local_of;
use crate::{Inputs, Scope};

/// VRFs whose lines have an order that matters.
pub(super) fn ordered(inputs: &Inputs) -> BTreeSet<String> {
    let denies = |items: &[PrefixItem]| items.iter().any(|i| i.action == ItemAction::Deny);
    let with = inputs
        .vrfs
        .iter()
        .filter(|o| denies(&o.spec.import) || denies(&o.spec.export));
    with.map(|o| o.spec.vrf.clone()).collect()
}

pub(super) fn contribute(context: &Context<'_>) -> Vec<Draft> {
    let inputs = context.inputs;
    let mut drafts = Vec::new();
    drafts.extend(inputs.layer2s.iter().map(|o| layer2(o, context)));
    drafts.extend(inputs.vrfs.iter().map(|o| vrf(o, context)));
    drafts.extend(inputs.peerings.iter().map(|o| peering(o, context)));
    drafts.extend(inputs.mirror_targets.iter().map(Draft::new));
    drafts.extend(inputs.mirror_selectors.iter().map(|o| mirror(o, context)));
    for draft in &mut drafts {
        by_hand(context, draft);
    }
    drafts
}

fn by_hand(context: &Context<'_>, draft: &mut Draft) {
    let message = "it is a low-level object, and intents are wanted".to_owned();
    let help = "moor adopt writes the intents that say the same";
    match context.inputs.config.low_level {
        LowLevel::Allow => {}
        LowLevel::Warn => draft.warn(Code::LowLevelObject, "kind", message, help),
        LowLevel::Deny => draft.error(Code::LowLevelObject, "kind", message, help),
    }
}

fn layer2(object: &Object<Layer2NetworkConfigurationSpec>, context: &Context<'_>) -> Draft {
    let spec = &object.spec;
    let mut draft = Draft::new(object);
    let scope = Scope::of(spec.node_selector.as_ref());
    if !(1..=4094).contains(&spec.id) {
        let message = format!("spec.id is {}, which is no VLAN", spec.id);
        draft.error(Code::InvalidField, "spec.id", message, "write 1 to 4094");
    }
    if spec
        .neigh_suppression
        .is_some_and(|s| s == spec.anycast_gateways.is_empty())
    {
        draft.warn(
            Code::NotCarried,
            "spec.neighSuppression",
            "nodes answer for neighbours wherever there is a gateway, and nowhere else".to_owned(),
            "remove the field, or live with it",
        );
    }
    let mut vrf = spec.vrf.clone().unwrap_or_default();
    let gateways: BTreeSet<HostCidr> = spec.anycast_gateways.iter().copied().collect();
    if vrf.is_empty() && !gateways.is_empty() {
        CLUSTER.clone_into(&mut vrf);
    }
    let mac = spec.anycast_mac.as_ref().and_then(|m| m.parse().ok());
    if !gateways.is_empty() && mac.is_none() {
        let message = "there are gateways and no MAC for them".to_owned();
        draft.error(
            Code::InvalidGateway,
            "spec.anycastMac",
            message,
            "write anycastMac",
        );
    }
    if !vrf.is_empty() && vrf != CLUSTER {
        match context.fabric.identity(&vrf) {
            Some(identity) => draft.put(
                &scope,
                Item::Vrf(identity.clone()),
                "spec.vrf",
                "the VRF of the gateways",
            ),
            None => unresolved(&mut draft, &vrf),
        }
        for gateway in &gateways {
            let vni = format!("vni {}", spec.vni);
            draft
                .contribution
                .subnets
                .push((vrf.clone(), gateway.subnet(), vni));
        }
    }
    let segment = Segment {
        vlan: spec.id,
        vni: spec.vni,
        mtu: spec.mtu,
        vrf,
        mac: (!gateways.is_empty()).then_some(mac).flatten(),
        suppress: spec.neigh_suppression.unwrap_or(!gateways.is_empty()),
        gateways,
        disable_segmentation: spec.disable_segmentation.unwrap_or_default(),
    };
    let device = HostDevice {
        vlan: spec.id,
        name: None,
        mtu: spec.mtu,
        link: None,
        disable_segmentation: segment.disable_segmentation,
        addresses: BTreeMap::new(),
        routes: BTreeMap::new(),
    };
    draft.put(&scope, Item::Segment(segment), "spec", "the segment");
    draft.put(
        &scope,
        Item::Host(device),
        "spec.id",
        "its VLAN on the host",
    );
    draft
}

fn unresolved(draft: &mut Draft, vrf: &str) {
    let message = format!("VRF {vrf} has no VNI and route target");
    let help = "write both on a VRFRouteConfiguration or Destination, or in the OperatorConfig";
    draft.error(Code::VNIUnresolved, "spec.vrf", message, help);
}

fn vrf(object: &Object<VRFRouteConfigurationSpec>, context: &Context<'_>) -> Draft {
    let spec = &object.spec;
    let mut draft = Draft::new(object);
    let scope = Scope::of(spec.node_selector.as_ref());
    if let Some(found) = context.fabric.findings.get(&object.id) {
        draft.findings.extend(found.iter().cloned());
    }
    match context.fabric.identity(&spec.vrf) {
        Some(identity) => draft.put(&scope, Item::Vrf(identity.clone()), "spec.vrf", "the VRF"),
        None => unresolved(&mut draft, &spec.vrf),
    }
    let mut communities: BTreeSet<String> = spec.communities.iter().cloned().collect();
    communities.extend(spec.community.clone());
    let ordered = context.ordered.contains(&spec.vrf);
    for (side, field, items) in [
        (Side::Import, "spec.import", &spec.import),
        (Side::Export, "spec.export", &spec.export),
    ] {
        check(&mut draft, field, items);
        for (at, item) in items.iter().enumerate() {
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            let leak = Leak {
                vrf: spec.vrf.clone(),
                side,
                inner: CLUSTER.to_owned(),
                rule: rule(item),
                communities: match side {
                    Side::Export => communities.clone(),
                    Side::Import => BTreeSet::new(),
                },
                order: ordered.then(|| (spec.seq, item.seq.unwrap_or_default(), at)),
            };
            draft.put(&scope, Item::Leak(leak), field, "a line of the list");
        }
    }
    for prefix in spec.aggregate.iter().map(HostCidr::subnet) {
        let vrf = spec.vrf.clone();
        let item = Item::Aggregate(Aggregate { vrf, prefix });
        draft.put(&scope, item, "spec.aggregate", "announced as a whole");
    }
    if !spec.sbr_prefixes.is_empty() {
        let local = local_of(&spec.vrf);
        for prefix in &spec.sbr_prefixes {
            let (source, into) = (prefix.subnet(), local.name.clone());
            let steer = Item::Steer(Steer { source, into });
            draft.put(&scope, steer, "spec.sbrPrefixes", "looked up by source");
        }
        draft.put(
            &scope,
            Item::Local(local),
            "spec.sbrPrefixes",
            "looked up by source",
        );
    }
    for loopback in &spec.loopbacks {
        let item = Loopback {
            vrf: spec.vrf.clone(),
            name: loopback.name.clone(),
            key: subnet_key(&spec.vrf, &loopback.name),
        };
        draft.put(
            &scope,
            Item::Loopback(item),
            "spec.loopbacks",
            "an address per node",
        );
    }
    draft
}

fn rule(item: &PrefixItem) -> PrefixRule {
    PrefixRule {
        prefix: item.cidr,
        ge: item.ge,
        le: item.le,
        permit: item.action == ItemAction::Permit,
    }
}

/// What the webhook of the published kind refuses.
fn check(draft: &mut Draft, field: &str, items: &[PrefixItem]) {
    let mut seen = BTreeSet::new();
    let mut places = BTreeSet::new();
    for (at, item) in items.iter().enumerate() {
        let at = format!("{field}[{at}]");
        let bits = item.cidr.family().bits();
        if !seen.insert((item.cidr, item.action, item.ge, item.le)) {
            let message = format!("{at} repeats a line about {}", item.cidr);
            draft.error(Code::InvalidField, &at, message, "remove one of the two");
        }
        if item.seq.is_some_and(|seq| !places.insert(seq)) {
            let message = format!("{at}.seq is used by another line");
            draft.error(Code::InvalidField, &at, message, "give every line its own");
        }
        let low = item.ge.unwrap_or(item.cidr.prefix_len());
        let high = item.le.unwrap_or(bits);
        if low > high || high > bits || low < item.cidr.prefix_len() {
            let message = format!("{at} has ge and le that no route inside {} has", item.cidr);
            draft.error(
                Code::InvalidField,
                &at,
                message,
                "ge to le lies within the prefix",
            );
        }
    }
}

fn peering(object: &Object<BGPPeeringSpec>, context: &Context<'_>) -> Draft {
    let spec = &object.spec;
    let mut draft = Draft::new(object);
    let scope = Scope::of(spec.node_selector.as_ref());
    check(&mut draft, "spec.import", &spec.import);
    check(&mut draft, "spec.export", &spec.export);
    if spec.enable_bfd {
        draft.warn(
            Code::NotCarried,
            "spec.enableBFD",
            "nodes are told no BFD profile by this object".to_owned(),
            "set enableBFD: false to say what happens",
        );
    }
    let peer = |vrf: &str, who: Who, family| Peer {
        vrf: vrf.to_owned(),
        who,
        remote_as: spec.remote_asn,
        import: of_family(&spec.import, family),
        export: of_family(&spec.export, family),
        hold_time: spec.hold_time.clone(),
        keepalive_time: spec.keepalive_time.clone(),
        maximum_prefixes: spec.maximum_prefixes,
    };
    match (&spec.peering_vlan, &spec.loopback_peer) {
        (Some(vlan), None) => {
            let Some(found) = segment_named(context, &vlan.name) else {
                let message = format!("there is no Layer2NetworkConfiguration {}", vlan.name);
                let help = "correct the name, or apply the object";
                draft.error(Code::ReferenceNotFound, "spec.peeringVlan", message, help);
                return draft;
            };
            let vrf = found.spec.vrf.clone().filter(|v| !v.is_empty());
            let vrf = vrf.unwrap_or_else(|| CLUSTER.to_owned());
            // On the nodes that have the segment, and no others.
            let scope = scope.and(&Scope::of(found.spec.node_selector.as_ref()));
            for gateway in &found.spec.anycast_gateways {
                let who = Who::Range(gateway.subnet());
                let item = Item::Peer(peer(&vrf, who, Some(gateway.family())));
                draft.put(
                    &scope,
                    item,
                    "spec.peeringVlan",
                    "whoever calls from the subnet",
                );
            }
        }
        (None, Some(loopback)) => {
            for (at, text) in loopback.ips.iter().enumerate() {
                let Ok(addr) = text.parse::<IpAddr>() else {
                    let field = format!("spec.loopbackPeer.ips[{at}]");
                    let message = format!("{text:?} is no address");
                    draft.error(Code::InvalidField, &field, message, "write an address");
                    continue;
                };
                let item = Item::Peer(peer(CLUSTER, Who::Host(addr), None));
                draft.put(&scope, item, "spec.loopbackPeer", "an address of the host");
            }
        }
        _ => {
            let message = "one of peeringVlan and loopbackPeer is needed".to_owned();
            draft.error(
                Code::InvalidField,
                "spec",
                message,
                "write exactly one of them",
            );
        }
    }
    draft
}

fn of_family(items: &[PrefixItem], family: Option<mooring_api::Family>) -> Vec<PrefixRule> {
    let mut sorted: Vec<&PrefixItem> = items.iter().collect();
    sorted.sort_by_key(|i| i.seq.unwrap_or_default());
    let here = sorted
        .into_iter()
        .filter(|i| family.is_none_or(|f| i.cidr.family() == f));
    here.map(rule).collect()
}

fn segment_named<'a>(
    context: &Context<'a>,
    name: &str,
) -> Option<&'a Object<Layer2NetworkConfigurationSpec>> {
    context.inputs.layer2s.iter().find(|o| o.id.name == name)
}

fn mirror(object: &Object<MirrorSelectorSpec>, context: &Context<'_>) -> Draft {
    let spec = &object.spec;
    let inputs = context.inputs;
    let mut draft = Draft::new(object);
    let mut missing = |what: &str, name: &str| {
        let field = format!("spec.{what}");
        let message = format!("there is no {name}");
        let help = "correct the name, or apply the object";
        draft.error(Code::ReferenceNotFound, &field, message, help);
    };
    let named = &spec.mirror_target.name;
    let Some(target) = inputs.mirror_targets.iter().find(|t| t.id.name == *named) else {
        missing("mirrorTarget", &format!("MirrorTarget {named}"));
        return draft;
    };
    let (kind, name) = (&spec.mirror_source.kind, &spec.mirror_source.name);
    let source = if kind == "VRFRouteConfiguration" {
        let found = inputs.vrfs.iter().find(|v| v.id.name == *name);
        found.map(|v| (MirrorOn::Vrf(v.spec.vrf.clone()), &v.spec.node_selector))
    } else {
        let found = segment_named(context, name);
        found.map(|s| (MirrorOn::Segment(s.spec.id), &s.spec.node_selector))
    };
    let Some((on, selector)) = source else {
        missing("mirrorSource", &format!("{kind} {name}"));
        return draft;
    };
    let vrf = &target.spec.destination_vrf;
    if matches!(&on, MirrorOn::Vrf(own) if own == vrf) {
        let message = format!("{kind} {name} is the mirror VRF {vrf}");
        draft.error(
            Code::MirrorLoop,
            "spec.mirrorSource",
            message,
            "mirror another source",
        );
    }
    let scope = Scope::of(selector.as_ref());
    let traffic = traffic_mirror::check(&mut draft, spec.traffic_match.as_ref());
    let tunnel = tunnel(&mut draft, context, target, &scope);
    if let Some(tunnel) = tunnel {
        let mirror = Mirror {
            on,
            tunnel,
            tunnel_vrf: vrf.clone(),
            direction: spec.direction,
            traffic,
        };
        let item = Item::Mirror(mirror);
        draft.put(
            &scope,
            item,
            "spec.mirrorSource",
            "mirrored where its source is",
        );
    }
    draft
}

/// The tunnel of a MirrorTarget on the nodes of a source.
fn tunnel(
    draft: &mut Draft,
    context: &Context<'_>,
    target: &Object<mooring_api::kinds::schiff::MirrorTargetSpec>,
    scope: &Scope,
) -> Option<String> {
    let spec = &target.spec;
    let field = "spec.mirrorTarget";
    let Ok(address) = spec.destination_ip.parse::<IpAddr>() else {
        let message = format!("{} has no address: {:?}", target.id, spec.destination_ip);
        draft.error(Code::InvalidField, field, message, "correct destinationIP");
        return None;
    };
    let loopbacks = context
        .inputs
        .vrfs
        .iter()
        .filter(|v| v.spec.vrf == spec.destination_vrf);
    let mut loopbacks = loopbacks.flat_map(|v| &v.spec.loopbacks);
    if !loopbacks.any(|l| l.name == spec.source_loopback) {
        let message = format!(
            "VRF {} has no loopback {}",
            spec.destination_vrf, spec.source_loopback
        );
        draft.error(
            Code::NoLoopback,
            field,
            message,
            "add it to the VRFRouteConfiguration",
        );
        return None;
    }
    if spec.key.is_some_and(|key| i32::try_from(key).is_err()) {
        let message = "nodes can be told keys up to 2147483647".to_owned();
        draft.error(Code::NotCarried, field, message, "use a smaller key");
    }
    let Some(identity) = context.fabric.identity(&spec.destination_vrf) else {
        unresolved(draft, &spec.destination_vrf);
        return None;
    };
    let name = gre_name(context, &target.id.name, spec.protocol);
    let loopback = Loopback {
        vrf: spec.destination_vrf.clone(),
        name: spec.source_loopback.clone(),
        key: subnet_key(&spec.destination_vrf, &spec.source_loopback),
    };
    let tunnel = Tunnel {
        name: name.clone(),
        vrf: spec.destination_vrf.clone(),
        loopback: loopback.name.clone(),
        address,
        frames: spec.protocol == GreProtocol::L2gre,
        key: spec.key,
    };
    draft.put(scope, Item::Vrf(identity.clone()), field, "the mirror VRF");
    draft.put(
        scope,
        Item::Loopback(loopback),
        field,
        "the tunnel's source",
    );
    draft.put(scope, Item::Tunnel(tunnel), field, "the tunnel");
    Some(name)
}

/// One address per node and loopback, where no Destination wants it already.
pub(super) fn wants(context: &Context<'_>, wants: &mut Vec<Want>) {
    let mut seen: BTreeSet<String> = wants.iter().map(|w| w.key.clone()).collect();
    for object in &context.inputs.vrfs {
        let spec = &object.spec;
        let scope = Scope::of(spec.node_selector.as_ref());
        for loopback in &spec.loopbacks {
            let key = subnet_key(&spec.vrf, &loopback.name);
            for node in context.names_in(&scope) {
                let key = node_key(&key, node);
                if !seen.insert(key.clone()) {
                    continue;
                }
                wants.push(Want {
                    key,
                    owner: object.id.clone(),
                    field: "spec.loopbacks".to_owned(),
                    instance: spec.vrf.clone(),
                    source: Source::Address {
                        subnet: loopback.subnet.subnet(),
                        fixed: None,
                        avoid: Vec::new(),
                    },
                });
            }
        }
    }
}
