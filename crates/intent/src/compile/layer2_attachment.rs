//! Layer2Attachment: a segment, its gateway and VRF, the device on the host, BGP with workloads; or SR-IOV networks.
//!
//! One VRF: the gateway lives in it. Several: the gateway lives in a local VRF that knows which prefix lies where, and
//! every VRF takes the subnet from there. With SR-IOV the leaf switch carries the segment, so the node has no segment.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use mooring_api::kinds::mooring::{Profile, SriovPlatform};
use mooring_api::kinds::schiff::{
    Anycast, AttachmentBgp, Layer2AttachmentSpec, Layer2AttachmentStatus,
};
use mooring_api::{AddrRange, Cidr, Code, Family, HostCidr, Mac};

use super::{Context, Draft, family_key, gateway, key_of, node_key, seconds, timers, workload_as};
use crate::Scope;
use crate::answers::{Source, Want};
use crate::form::{CLUSTER, HostDevice, Item, Peer, PrefixRule, Segment, Side, Who};
use crate::input::Object;
use crate::platform::{AllowedNad, sriov_network};
use crate::reach::Reach;

pub(super) fn contribute(object: &Object<Layer2AttachmentSpec>, context: &Context<'_>) -> Draft {
    let spec = &object.spec;
    let mut draft = Draft::new(object);
    draft.network(context, &spec.network);
    let scope = draft.scope(context, &spec.worker_groups, spec.node_selector.as_ref());
    let mut reach = match &spec.destinations {
        Some(selector) => draft.reach(context, "spec.destinations", selector, None),
        None => Reach::default(),
    };
    reach.add(&spec.routes);
    reach.speak(&spec.communities);
    let subnets: Vec<Cidr> = spec.network.subnets().collect();
    draft.apart(&subnets, &reach.prefixes(), "spec.network");

    let mut status = Layer2AttachmentStatus::default();
    (status.destinations, status.vrfs) = reach.names();
    let gateways = gateways(&mut draft, spec, &subnets, !reach.vrfs.is_empty());
    let mac = mac(context, spec);
    status.anycast = anycast(&gateways, mac);

    if spec.sriov.is_some_and(|s| s.enabled) {
        sriov(
            &mut draft,
            object,
            context,
            &scope,
            &reach,
            &gateways,
            &mut status,
        );
    } else {
        segment(
            &mut draft,
            object,
            context,
            &scope,
            &reach,
            &gateways,
            mac,
            &mut status,
        );
    }
    draft.contribution.status = crate::status::value(&status);
    draft
}

fn gateways(
    draft: &mut Draft,
    spec: &Layer2AttachmentSpec,
    subnets: &[Cidr],
    routed: bool,
) -> BTreeSet<HostCidr> {
    let mut gateways = BTreeSet::new();
    if spec.disable_anycast || !routed {
        return gateways;
    }
    for subnet in subnets {
        if let Some(addr) = gateway(*subnet) {
            gateways.insert(subnet.host(addr));
        } else {
            let message = format!("{subnet} is one address and has none for a gateway");
            let help = "write a larger subnet, or switch the gateway off";
            draft.error(Code::InvalidGateway, "spec.network", message, help);
        }
    }
    gateways
}

/// The platform's half and the VNI: two clusters with one VNI have one MAC.
fn mac(context: &Context<'_>, spec: &Layer2AttachmentSpec) -> Option<Mac> {
    if spec.anycast_mac.is_some() {
        return spec.anycast_mac;
    }
    let vni = spec.network.vni.unwrap_or_default().to_be_bytes();
    let prefix = &context.inputs.config.anycast_mac_prefix;
    let text = format!("{prefix}:{:02x}:{:02x}:{:02x}", vni[1], vni[2], vni[3]);
    text.parse().ok()
}

fn anycast(gateways: &BTreeSet<HostCidr>, mac: Option<Mac>) -> Option<Anycast> {
    let of = |family| {
        let found = gateways.iter().find(|g| g.family() == family);
        found.map(ToString::to_string)
    };
    (!gateways.is_empty()).then(|| Anycast {
        mac: mac.map(|m| m.to_string()),
        gateway: of(Family::V6),
        gateway_v4: of(Family::V4),
    })
}

#[expect(
    clippy::too_many_arguments,
    reason = "what one attachment was resolved to"
)]
fn segment(
    draft: &mut Draft,
    object: &Object<Layer2AttachmentSpec>,
    context: &Context<'_>,
    scope: &Scope,
    reach: &Reach<'_>,
    gateways: &BTreeSet<HostCidr>,
    mac: Option<Mac>,
    status: &mut Layer2AttachmentStatus,
) {
    let spec = &object.spec;
    let (Some(vlan), Some(vni)) = (spec.network.vlan_id, spec.network.vni) else {
        return;
    };
    if context.inputs.config.reserved_vnis.contains(&vni) {
        let message = format!("VNI {vni} belongs to the platform");
        draft.error(
            Code::Conflict,
            "spec.network.vni",
            message,
            "use another VNI",
        );
    }
    let inner = if reach.vrfs.len() > 1 || (reach.forced && !reach.vrfs.is_empty()) {
        match reach.joined(&[]) {
            Ok(local) => {
                let name = local.name.clone();
                let rule = "several VRFs: the gateway joins them in a local one";
                draft.put(scope, Item::Local(local), "spec.destinations", rule);
                name
            }
            Err(twice) => return ambiguous(draft, &twice),
        }
    } else {
        CLUSTER.to_owned()
    };
    let vrf = match reach.vrfs.keys().next() {
        None => String::new(),
        Some(_) if inner != CLUSTER => inner.clone(),
        Some(only) => only.clone(),
    };
    let suppress = !gateways.is_empty() && !spec.disable_neighbor_suppression;
    if !gateways.is_empty() && spec.disable_neighbor_suppression {
        draft.warn(
            Code::NotCarried,
            "spec.disableNeighborSuppression",
            "nodes answer for neighbours wherever there is a gateway".to_owned(),
            "switch the gateway off too, or live with it",
        );
    }
    let segment = Segment {
        vlan: vlan.get(),
        vni,
        mtu: spec.mtu,
        vrf: vrf.clone(),
        gateways: gateways.clone(),
        mac: (!gateways.is_empty()).then_some(mac).flatten(),
        suppress,
        disable_segmentation: false,
    };
    draft.put(
        scope,
        Item::Segment(segment),
        "spec.network",
        "the segment on its nodes",
    );
    let bgp = spec.bgp.as_ref().filter(|bgp| bgp.enabled);
    for (name, via) in &reach.vrfs {
        draft.lead(scope, via, inner == CLUSTER);
        for subnet in gateways.iter().map(HostCidr::subnet) {
            draft
                .contribution
                .subnets
                .push((name.clone(), subnet, format!("vni {vni}")));
        }
        if bgp.is_none_or(|bgp| bgp.advertise_transfer_network) {
            for subnet in spec.network.subnets() {
                let item = via.leak(Side::Export, &inner, PrefixRule::exact(subnet));
                draft.put(scope, item, "spec.network", "the own subnet is exported");
            }
        }
        for rule in &via.exports {
            let rule = match bgp {
                Some(_) => PrefixRule::inside(rule.prefix),
                None => rule.clone(),
            };
            let item = via.leak(Side::Export, &inner, rule);
            draft.put(scope, item, "spec.routes", "a route with direction export");
        }
    }
    host(draft, object, context, scope, reach, gateways, None);
    if let Some(bgp) = bgp {
        peers(draft, context, bgp, scope, &vrf, reach, gateways, status);
    }
}

pub(super) fn ambiguous(draft: &mut Draft, (prefix, one, other): &(Cidr, String, String)) {
    let message = format!("{prefix} is reached through VRF {one} and through VRF {other}");
    draft.error(
        Code::OverlappingPrefixes,
        "spec.destinations",
        message,
        "narrow the selector, or let one Destination have the prefix",
    );
}

/// One listen range per gateway subnet, in the VRF of the segment.
#[expect(
    clippy::too_many_arguments,
    reason = "what one attachment was resolved to"
)]
fn peers(
    draft: &mut Draft,
    context: &Context<'_>,
    bgp: &AttachmentBgp,
    scope: &Scope,
    vrf: &str,
    reach: &Reach<'_>,
    gateways: &BTreeSet<HostCidr>,
    status: &mut Layer2AttachmentStatus,
) {
    let field = "spec.bgp";
    timers(draft, field, bgp.hold_time, bgp.keepalive_time);
    let remote = workload_as(context, &bgp.workload_as, draft, "spec.bgp.workloadAS");
    if gateways.is_empty() {
        draft.warn(
            Code::NotProcessed,
            field,
            "there is no gateway that workloads could peer with".to_owned(),
            "write destinations and a subnet, and do not disable the gateway",
        );
        return;
    }
    let Some(remote_as) = remote else {
        return;
    };
    status.workload_as_number = Some(remote_as);
    status.as_number = context.inputs.config.local_as.map(|a| a.to_string());
    let own = |family: Family| {
        let exports = reach.vrfs.values().flat_map(|via| &via.exports);
        let announced = exports.map(|rule| rule.prefix);
        let subnets = gateways.iter().map(HostCidr::subnet);
        let all: BTreeSet<Cidr> = announced
            .chain(subnets)
            .filter(|p| p.family() == family)
            .collect();
        all.into_iter().map(PrefixRule::inside).collect::<Vec<_>>()
    };
    for gateway in gateways {
        let told: BTreeSet<PrefixRule> = reach
            .vrfs
            .values()
            .flat_map(|via| &via.imports)
            .filter(|rule| rule.prefix.family() == gateway.family())
            .cloned()
            .collect();
        let peer = Peer {
            vrf: vrf.to_owned(),
            who: Who::Range(gateway.subnet()),
            remote_as,
            import: own(gateway.family()),
            export: told.into_iter().collect(),
            hold_time: seconds(bgp.hold_time),
            keepalive_time: seconds(bgp.keepalive_time),
            maximum_prefixes: bgp.maximum_prefixes,
        };
        status.neighbor_ips.push(gateway.addr().to_string());
        draft.put(
            scope,
            Item::Peer(peer),
            field,
            "workloads call from the gateway's subnet",
        );
    }
}

/// The device on the host, with its addresses and routes.
fn host(
    draft: &mut Draft,
    object: &Object<Layer2AttachmentSpec>,
    context: &Context<'_>,
    scope: &Scope,
    reach: &Reach<'_>,
    gateways: &BTreeSet<HostCidr>,
    link: Option<String>,
) {
    let spec = &object.spec;
    let (Some(suffix), Some(vlan)) = (&spec.interface_name, spec.network.vlan_id) else {
        return;
    };
    let mut addresses = BTreeMap::new();
    let mut routes: BTreeMap<Cidr, IpAddr> = BTreeMap::new();
    if spec.node_ips.is_some_and(|n| n.enabled) {
        let key = key_of(&object.id);
        for subnet in spec.network.subnets() {
            addresses.insert(subnet, family_key(&key, subnet.family()));
        }
        room(draft, object, context, scope);
        for prefix in reach.prefixes() {
            let via = gateways.iter().find(|g| g.family() == prefix.family());
            let Some(via) = via else { continue };
            if prefix.is_default() {
                draft.warn(
                    Code::NotProcessed,
                    "spec.nodeIPs",
                    format!("the node keeps its own default route, not {prefix} over the segment"),
                    "name the prefixes that nodes shall reach, if they shall",
                );
            } else {
                routes.insert(prefix, via.addr());
            }
        }
    }
    let device = HostDevice {
        vlan: vlan.get(),
        name: Some(format!("l2.{suffix}")),
        mtu: spec.mtu,
        link,
        disable_segmentation: false,
        addresses,
        routes,
    };
    draft.put(
        scope,
        Item::Host(device),
        "spec.interfaceName",
        "the device on the host",
    );
}

/// Enough addresses for the gateway, the nodes and as many pods as were promised.
fn room(
    draft: &mut Draft,
    object: &Object<Layer2AttachmentSpec>,
    context: &Context<'_>,
    scope: &Scope,
) {
    let nodes = context.names_in(scope).count() as u128;
    let pods = u128::from(object.spec.node_ips.map_or(0, |n| n.reserved_for_pods));
    for subnet in object.spec.network.subnets() {
        let gateway = u128::from(!object.spec.disable_anycast);
        let usable = subnet.hosts().count();
        if gateway + nodes + pods > usable {
            let message = format!(
                "{subnet} has {usable} addresses; {nodes} nodes, {pods} pods and a gateway need {}",
                gateway + nodes + pods
            );
            let help = "make another attachment with a larger subnet, or narrow the nodes";
            draft.error(Code::PoolExhausted, "spec.nodeIPs", message, help);
        }
    }
}

fn sriov(
    draft: &mut Draft,
    object: &Object<Layer2AttachmentSpec>,
    context: &Context<'_>,
    scope: &Scope,
    reach: &Reach<'_>,
    gateways: &BTreeSet<HostCidr>,
    status: &mut Layer2AttachmentStatus,
) {
    let (spec, config) = (&object.spec, &context.inputs.config);
    let Some(vlan) = spec.network.vlan_id else {
        return;
    };
    status.sriov_vlan_id = Some(vlan.get());
    if spec.bgp.as_ref().is_some_and(|bgp| bgp.enabled) {
        draft.warn(
            Code::NotProcessed,
            "spec.bgp",
            "BGP is not for attachments with SR-IOV, whose gateway is on the leaf".to_owned(),
            "remove bgp, or make an attachment without SR-IOV for it",
        );
    }
    if config.profile == Profile::Bm4x && spec.interface_name.is_some() && reach.vrfs.len() > 1 {
        let names: Vec<&str> = reach.vrfs.keys().map(String::as_str).collect();
        let message = format!(
            "on BM4X one VRF is allowed, and these are {}",
            names.join(", ")
        );
        let help = "narrow the selector to one VRF";
        draft.error(Code::MultipleVRFs, "spec.destinations", message, help);
    }
    let groups: Vec<String> = if spec.worker_groups.is_empty() {
        config.sriov.keys().cloned().collect()
    } else {
        spec.worker_groups.clone()
    };
    if groups.is_empty() {
        missing(draft, "any worker group");
    }
    for group in &groups {
        let Some(resource) = config.sriov.get(group) else {
            missing(draft, &format!("worker group {group}"));
            continue;
        };
        let name = if groups.len() == 1 {
            object.id.name.clone()
        } else {
            format!("{}-{group}", object.id.name)
        };
        if config.platform.sriov == SriovPlatform::Operator {
            let network = sriov_network(config, &object.id, &name, &resource.resource_name, vlan);
            draft.contribution.platform.push(network);
        }
        draft.contribution.nads.push(AllowedNad {
            namespace: config.namespaces.networks.clone(),
            resource: resource.resource_name.clone(),
            vlan: vlan.get(),
            object: object.id.to_string(),
        });
        if spec.interface_name.is_some() {
            let here = scope.and(&Scope::of_groups(
                &config.worker_group_label,
                std::slice::from_ref(group),
            ));
            if let Some(bridge) = &resource.bridge {
                let link = Some(bridge.to_string());
                host(draft, object, context, &here, reach, gateways, link);
            } else {
                missing(draft, &format!("a bridge of worker group {group}"));
            }
        }
    }
}

fn missing(draft: &mut Draft, what: &str) {
    let message = format!("the OperatorConfig has no SR-IOV resource for {what}");
    let help = "add it to spec.sriov of the OperatorConfig";
    draft.warn(Code::SriovResourceMissing, "spec.sriov", message, help);
}

pub(super) fn wants(
    object: &Object<Layer2AttachmentSpec>,
    context: &Context<'_>,
    wants: &mut Vec<Want>,
) {
    let spec = &object.spec;
    if !spec.node_ips.is_some_and(|n| n.enabled) || spec.interface_name.is_none() {
        return;
    }
    let scope = context.nodes_of(&spec.worker_groups, spec.node_selector.as_ref());
    for subnet in spec.network.subnets() {
        let key = family_key(&key_of(&object.id), subnet.family());
        let avoid: Vec<AddrRange> = (!spec.disable_anycast)
            .then(|| gateway(subnet))
            .flatten()
            .map(AddrRange::single)
            .into_iter()
            .collect();
        for node in context.names_in(&scope) {
            wants.push(Want {
                key: node_key(&key, node),
                owner: object.id.clone(),
                field: "spec.nodeIPs".to_owned(),
                instance: subnet.to_string(),
                source: Source::Address {
                    subnet,
                    fixed: None,
                    avoid: avoid.clone(),
                },
            });
        }
    }
}
