//! What low-level words are in the words of intents, where there are any. Whether they mean the same is proved elsewhere.

use mooring_api::kinds::schiff::{
    AttachmentBgp, BGPPeeringSpec, CollectorSpec, DestinationLoopback, Ipv4Config, ItemAction,
    Layer2AttachmentSpec, Layer2NetworkConfigurationSpec, NetworkSpec, Route, RouteDirection,
    TrafficMirrorSpec, VRFRouteConfigurationSpec, label,
};
use mooring_api::{Cidr, Family, ObjectRef, Selector, Span, VlanId};

use crate::Inputs;
use crate::compile::gateway;
use crate::input::Object;

/// What a mirror becomes.
pub(super) struct NewMirror {
    pub(super) destination: ObjectRef,
    pub(super) loopback: DestinationLoopback,
    pub(super) collector: Object<CollectorSpec>,
    pub(super) mirror: Object<TrafficMirrorSpec>,
}

impl NewMirror {
    pub(super) fn put(self, inputs: &mut Inputs) {
        add(inputs, &self.destination, self.loopback);
        if !inputs.collectors.iter().any(|c| c.id == self.collector.id) {
            inputs.collectors.push(self.collector);
        }
        inputs.traffic_mirrors.push(self.mirror);
    }
}

/// Gives a Destination a loopback, once.
pub(super) fn add(inputs: &mut Inputs, destination: &ObjectRef, loopback: DestinationLoopback) {
    let mut all = inputs.destinations.iter_mut();
    if let Some(found) = all.find(|d| d.id == *destination) {
        let loopbacks = &mut found.spec.loopbacks;
        if !loopbacks.contains(&loopback) {
            loopbacks.push(loopback);
        }
    }
}

/// The attachment that says a segment, if one can.
pub(super) fn attachment(spec: &Layer2NetworkConfigurationSpec) -> Option<Layer2AttachmentSpec> {
    if spec.disable_segmentation == Some(true) {
        return None;
    }
    let mut network = NetworkSpec {
        vlan_id: Some(VlanId::try_from(spec.id).ok()?),
        vni: Some(spec.vni),
        ..NetworkSpec::default()
    };
    for written in &spec.anycast_gateways {
        let subnet = written.subnet();
        if gateway(subnet) != Some(written.addr()) || network.subnet_of(subnet.family()).is_some() {
            return None;
        }
        match subnet.family() {
            Family::V4 => {
                network.ipv4 = Some(Ipv4Config {
                    subnet: Some(subnet),
                    size: None,
                });
            }
            Family::V6 => network.subnet = Some(subnet),
        }
    }
    let vrf = spec.vrf.as_deref().filter(|v| !v.is_empty());
    let routed = !spec.anycast_gateways.is_empty();
    if routed != vrf.is_some() {
        return None;
    }
    let selector = |vrf: &str| Selector {
        match_labels: [(label::VRF.to_owned(), vrf.to_owned())].into(),
        match_expressions: Vec::new(),
    };
    let mac = spec.anycast_mac.as_ref().and_then(|m| m.parse().ok());
    Some(Layer2AttachmentSpec {
        network,
        destinations: vrf.map(selector),
        interface_name: Some(format!("vlan{}", spec.id)),
        mtu: spec.mtu,
        disable_anycast: false,
        disable_neighbor_suppression: routed && spec.neigh_suppression == Some(false),
        anycast_mac: mac.filter(|_| routed),
        bgp: None,
        sriov: None,
        worker_groups: Vec::new(),
        node_selector: spec.node_selector.clone(),
        node_ips: None,
        routes: Vec::new(),
        communities: Vec::new(),
    })
}

/// The same attachment with the peers of a peering: its own subnets announced or not, whichever is true.
pub(super) fn with_peers(
    spec: &Layer2AttachmentSpec,
    peering: &BGPPeeringSpec,
) -> Vec<Layer2AttachmentSpec> {
    let span = |text: &Option<String>| text.as_ref().map(|t| t.parse::<Span>()).transpose();
    let (Ok(hold_time), Ok(keepalive_time)) =
        (span(&peering.hold_time), span(&peering.keepalive_time))
    else {
        return Vec::new();
    };
    let permits = peering.import.iter();
    let announced = permits
        .filter(|i| i.action == ItemAction::Permit)
        .map(|i| i.cidr);
    let own: Vec<Cidr> = spec.network.subnets().collect();
    let prefixes: Vec<Cidr> = announced.filter(|p| !own.contains(p)).collect();
    let routes = (!prefixes.is_empty()).then_some(Route {
        prefixes,
        direction: Some(RouteDirection::Export),
    });
    // Nodes are told nothing of BFD, but who asked for it should not find that nobody does any more.
    let sayable = !peering.enable_bfd;
    let both = [true, false].into_iter().filter(|_| sayable);
    both.map(|advertise_transfer_network| Layer2AttachmentSpec {
        bgp: Some(AttachmentBgp {
            enabled: true,
            advertise_transfer_network,
            hold_time,
            keepalive_time,
            maximum_prefixes: peering.maximum_prefixes,
            workload_as: peering.remote_asn.to_string(),
        }),
        routes: routes.clone().into_iter().collect(),
        ..spec.clone()
    })
    .collect()
}

/// Why a peering stays.
pub(super) fn no_peers(spec: &BGPPeeringSpec) -> &'static str {
    if spec.loopback_peer.is_some() {
        "no intent has a peer at a fixed address of the host"
    } else if spec.enable_bfd {
        "no intent asks for BFD"
    } else {
        "bgp of an attachment takes the subnet and exported routes and tells what its Destinations have, and nothing else"
    }
}

/// Why what is left of a VRF stays.
pub(super) fn left(spec: &VRFRouteConfigurationSpec) -> String {
    let counts = [
        (spec.import.len(), "import"),
        (spec.export.len(), "export"),
        (spec.aggregate.len(), "aggregate"),
        (spec.sbr_prefixes.len(), "sbrPrefixes"),
        (spec.loopbacks.len(), "loopbacks"),
    ];
    let lines = counts.iter().filter(|(count, _)| *count > 0);
    let lines: Vec<String> = lines
        .map(|(count, what)| format!("{count} of {what}"))
        .collect();
    if lines.is_empty() {
        return "no intent has its VRF on all of its nodes".to_owned();
    }
    format!("no intent says {}", lines.join(", "))
}

/// What somebody can do about what is left of a VRF.
pub(super) fn instead(spec: &VRFRouteConfigurationSpec) -> &'static str {
    if spec.sbr_prefixes.is_empty() {
        return "it goes on working beside intents";
    }
    // Whose addresses they are decides which objects the platform gets, and that is not written here.
    "it goes on working beside intents; a VRFAttachment whose connections have these addresses, or a PodNetwork, looks them up by source too"
}
