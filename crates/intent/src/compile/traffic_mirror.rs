//! TrafficMirror: which traffic of an attachment goes into a Collector's tunnel.
//!
//! On a VRFAttachment the traffic is limited to the attachment's own subnets in each of its VRFs: others share the VRF.

use std::collections::BTreeSet;

use mooring_api::kinds::schiff::{
    MirrorSourceKind, Mirroring, TrafficMatch, TrafficMirrorSpec, TrafficMirrorStatus,
};
use mooring_api::{Cidr, Code, HostCidr};

use super::collector::{address_of, gre_name, item, source_scope};
use super::{Context, Draft};
use crate::Scope;
use crate::form::{Item, Mirror, MirrorOn};
use crate::input::Object;

pub(super) fn contribute(object: &Object<TrafficMirrorSpec>, context: &Context<'_>) -> Draft {
    let spec = &object.spec;
    let mut draft = Draft::new(object);
    let collector = context
        .inputs
        .collectors
        .iter()
        .find(|c| c.id.name == spec.collector);
    let Some(collector) = collector else {
        let message = format!("there is no Collector {}", spec.collector);
        let help = "correct the name, or apply the Collector";
        draft.error(Code::ReferenceNotFound, "spec.collector", message, help);
        return draft;
    };
    let Some(scope) = source_scope(context, spec) else {
        let message = format!(
            "there is no {} {}",
            spec.source.kind.as_str(),
            spec.source.name
        );
        let help = "correct the name, or apply the attachment";
        draft.error(Code::ReferenceNotFound, "spec.source", message, help);
        return draft;
    };
    let named = &collector.spec.mirror_destination.name;
    let destinations = &context.fabric.destinations;
    let Some(destination) = destinations.iter().find(|d| d.id.name == *named) else {
        let message = format!("{} has no mirror VRF", collector.id);
        let help = "look at the findings of the Collector";
        draft.error(Code::ReferenceNotFound, "spec.collector", message, help);
        return draft;
    };
    let tunnel_vrf = destination.spec.vrf.to_string();
    let traffic = check(&mut draft, spec.traffic_match.as_ref());
    let scope = scope.and(&Scope::of(collector.spec.node_selector.as_ref()));
    let tunnel = gre_name(context, &collector.id.name, collector.spec.protocol);
    let places = places(&mut draft, object, context, &tunnel_vrf, &traffic);
    for (on, traffic) in places {
        let mirror = Mirror {
            on,
            tunnel: tunnel.clone(),
            tunnel_vrf: tunnel_vrf.clone(),
            direction: spec.direction,
            traffic,
        };
        draft.put(
            &scope,
            Item::Mirror(mirror),
            "spec.source",
            "mirrored where its source is",
        );
    }
    let wanted = collector.spec.mirror_destination.loopback.as_ref();
    let loopbacks = destination.spec.loopbacks.iter();
    let mut sources = loopbacks.filter(|l| wanted.is_none_or(|w| *w == l.name));
    let source = sources.next().map(|l| item(context, destination, l));
    let nodes: BTreeSet<&str> = context.names_in(&scope).collect();
    let active = nodes.iter().filter(|node| {
        let source = source.as_ref();
        source.is_some_and(|s| address_of(context, s, node).is_some())
    });
    let status = TrafficMirrorStatus {
        active_nodes: u32::try_from(active.count()).unwrap_or(u32::MAX),
        conditions: Vec::new(),
    };
    draft.contribution.status = crate::status::value(&status);
    draft
}

/// Prefixes in network form, the protocol in lower case.
pub(super) fn check(draft: &mut Draft, written: Option<&TrafficMatch>) -> TrafficMatch {
    let mut traffic = written.cloned().unwrap_or_default();
    for (name, prefix) in [
        ("srcPrefix", &mut traffic.src_prefix),
        ("dstPrefix", &mut traffic.dst_prefix),
    ] {
        let Some(text) = prefix else { continue };
        let parsed = text
            .parse::<HostCidr>()
            .or_else(|_| text.parse().map(HostCidr::single));
        if let Ok(read) = parsed {
            *prefix = Some(read.subnet().to_string());
        } else {
            let field = format!("spec.trafficMatch.{name}");
            let message = format!("{field} is {text:?}, which is no network");
            draft.error(
                Code::InvalidField,
                &field,
                message,
                "write it like 203.0.113.0/24",
            );
        }
    }
    if let Some(protocol) = &mut traffic.protocol {
        *protocol = protocol.to_lowercase();
        if !["tcp", "udp", "sctp", "icmp"].contains(&protocol.as_str()) {
            let field = "spec.trafficMatch.protocol";
            let message = format!("{field} is {protocol:?}");
            draft.error(
                Code::InvalidField,
                field,
                message,
                "write tcp, udp, sctp or icmp",
            );
        }
    }
    traffic
}

fn places(
    draft: &mut Draft,
    object: &Object<TrafficMirrorSpec>,
    context: &Context<'_>,
    tunnel_vrf: &str,
    traffic: &TrafficMatch,
) -> Vec<(MirrorOn, TrafficMatch)> {
    let source = &object.spec.source;
    match source.kind {
        MirrorSourceKind::Layer2Attachment => {
            let all = context.inputs.layer2_attachments.iter();
            let vlan = all
                .filter(|a| a.id.name == source.name)
                .find_map(|a| a.spec.network.vlan_id);
            let place = vlan.map(|v| (MirrorOn::Segment(v.get()), traffic.clone()));
            place.into_iter().collect()
        }
        MirrorSourceKind::VRFAttachment => {
            let mut all = context.inputs.vrf_attachments.iter();
            let Some(attachment) = all.find(|a| a.id.name == source.name) else {
                return Vec::new();
            };
            let mut quiet = Draft::new(attachment);
            let selector = &attachment.spec.destinations;
            let reach = quiet.reach(context, "spec.destinations", selector, None);
            if reach.vrfs.contains_key(tunnel_vrf) {
                let message = format!("{} is in the mirror VRF {tunnel_vrf}", attachment.id);
                let help = "mirror another attachment, or into another VRF";
                draft.error(Code::MirrorLoop, "spec.source", message, help);
                return Vec::new();
            }
            let mut places = Vec::new();
            for vrf in reach.vrfs.keys() {
                for subnet in attachment.spec.network.subnets() {
                    let within = limited(traffic, object.spec.direction, subnet);
                    places.extend(within.map(|traffic| (MirrorOn::Vrf(vrf.clone()), traffic)));
                }
            }
            if places.is_empty() && !reach.vrfs.is_empty() {
                let message = "no traffic of the attachment can match".to_owned();
                let help = "compare the prefixes with the attachment's subnets";
                draft.warn(Code::NotProcessed, "spec.trafficMatch", message, help);
            }
            places
        }
    }
}

/// The match within a subnet of the attachment, seen from the workload.
fn limited(traffic: &TrafficMatch, direction: Mirroring, subnet: Cidr) -> Option<TrafficMatch> {
    let mut limited = traffic.clone();
    let (own, far) = match direction {
        Mirroring::Ingress => (&mut limited.dst_prefix, &limited.src_prefix),
        Mirroring::Egress => (&mut limited.src_prefix, &limited.dst_prefix),
    };
    let read = |text: &Option<String>| text.as_ref().and_then(|t| t.parse::<Cidr>().ok());
    if read(far).is_some_and(|far| far.family() != subnet.family()) {
        return None;
    }
    let narrowed = match read(own) {
        None => subnet,
        Some(wide) if wide.covers(&subnet) => subnet,
        Some(narrow) if subnet.covers(&narrow) => narrow,
        Some(_) => return None,
    };
    *own = Some(narrowed.to_string());
    Some(limited)
}
