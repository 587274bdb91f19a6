//! The rows of the intents and of the low-level kinds, and of what the platform says about them.

use super::{Row, change, row};

const DESTINATION: &str = "network.t-caas.telekom.com/Destination";
const LAYER2: &str = "network.t-caas.telekom.com/Layer2Attachment";
const VRF: &str = "network.t-caas.telekom.com/VRFAttachment";
const PODS: &str = "network.t-caas.telekom.com/PodNetwork";
const COLLECTOR: &str = "network.t-caas.telekom.com/Collector";
const ROUTES: &str = "network.t-caas.telekom.com/VRFRouteConfiguration";
const MIRROR: &str = "network.t-caas.telekom.com/MirrorSelector";
const COMPILED: &str = "mooring.dev/CompiledRevision";

pub(crate) const ROWS: &[Row] = &[
    // The network that three kinds share.
    row(
        LAYER2,
        "is the IPv6 subnet, and this is IPv4",
        "{network: {vlanID: 234, vni: 10234, subnet: '2001:db8:100::0/64'}, interfaceName: xyz}",
        "{network: {vlanID: 234, vni: 10234, subnet: 198.51.100.128/25}, interfaceName: xyz}",
    ),
    row(
        VRF,
        "has an IPv6 subnet; write it as subnet",
        "{network: {ipv4: {subnet: 198.51.100.128/25}}, destinations: {matchLabels: {zone: a}}, connections: [{name: x, direction: inbound}]}",
        "{network: {ipv4: {subnet: '2001:db8::/64'}}, destinations: {matchLabels: {zone: a}}, connections: [{name: x, direction: inbound}]}",
    ),
    row(
        PODS,
        "switches IPv6 off, but there is an IPv6 subnet",
        "{network: {ipv4: {subnet: 198.51.100.128/25}, disablev6: true}, destinations: {matchLabels: {zone: a}}}",
        "{network: {subnet: '2001:db8::/64', disablev6: true}, destinations: {matchLabels: {zone: a}}}",
    ),
    row(
        PODS,
        "is empty and would select every Destination",
        "{network: {subnet: '2001:db8::/64'}, destinations: {matchExpressions: [{key: zone, operator: Exists}]}}",
        "{network: {subnet: '2001:db8::/64'}, destinations: {}}",
    ),
    row(
        LAYER2,
        "is empty and would select every Destination",
        "{network: {vlanID: 1, vni: 1}, interfaceName: x, destinations: {matchLabels: {zone: secure}}}",
        "{network: {vlanID: 1, vni: 1}, interfaceName: x, destinations: {matchLabels: {}}}",
    ),
    // Destination.
    change(
        DESTINATION,
        "of a Destination cannot change",
        "{vrf: m2m_enc}",
        "{vrf: m2m_enc, prefixes: [192.0.2.0/24]}",
        "{vrf: internet}",
    ),
    row(
        DESTINATION,
        "and routeTarget belong together",
        "{vrf: m2m_enc, vni: 10100, routeTarget: '64500:10100', community: '64500:999', sbr: {enabled: false}}",
        "{vrf: m2m_enc, vni: 10100}",
    ),
    row(
        DESTINATION,
        "and routeTarget belong together",
        "{vrf: m2m_enc}",
        "{vrf: m2m_enc, routeTarget: '64500:10100'}",
    ),
    row(
        DESTINATION,
        "lists a name twice; give every loopback its own",
        "{vrf: mirror, loopbacks: [{name: lo.mir, subnet: 10.99.0.0/24}, {name: lo.six, subnet: 'fd00::/64'}]}",
        "{vrf: mirror, loopbacks: [{name: lo.mir, subnet: 10.99.0.0/24}, {name: lo.mir, subnet: 'fd00::/64'}]}",
    ),
    row(
        DESTINATION,
        "and subnet exclude each other",
        "{vrf: mirror, loopbacks: [{name: lo.mir, poolRef: {apiGroup: ipam.cluster.x-k8s.io, kind: InClusterIPPool, name: mirror-source-ips}}]}",
        "{vrf: mirror, loopbacks: [{name: lo.mir}]}",
    ),
    row(
        DESTINATION,
        "and subnet exclude each other",
        "{vrf: mirror, loopbacks: [{name: lo.mir, subnet: 10.99.0.0/24}]}",
        "{vrf: mirror, loopbacks: [{name: lo.mir, subnet: 10.99.0.0/24, poolRef: {kind: InClusterIPPool, name: p}}]}",
    ),
    // Layer2Attachment.
    row(
        LAYER2,
        "is needed without SR-IOV",
        "{network: {vlanID: 234}, sriov: {enabled: true}}",
        "{network: {vlanID: 234, vni: 10234}, sriov: {enabled: false}}",
    ),
    row(
        LAYER2,
        "need an interface on the node, and SR-IOV alone makes none",
        "{network: {vlanID: 234}, sriov: {enabled: true}, nodeIPs: {enabled: false}}",
        "{network: {vlanID: 234}, sriov: {enabled: true}, nodeIPs: {enabled: true}}",
    ),
    row(
        LAYER2,
        "must be true where disableAnycast is",
        "{network: {vlanID: 234, vni: 10234}, interfaceName: xyz, disableAnycast: true, disableNeighborSuppression: true}",
        "{network: {vlanID: 234, vni: 10234}, interfaceName: xyz, disableAnycast: true}",
    ),
    row(
        LAYER2,
        "has no VLAN",
        "{network: {vlanID: 234, vni: 10234}, interfaceName: xyz}",
        "{network: {vni: 10234}, interfaceName: xyz}",
    ),
    row(
        LAYER2,
        "has no VNI",
        "{network: {vlanID: 234}, sriov: {enabled: true}}",
        "{network: {vlanID: 234}, sriov: {enabled: true}, interfaceName: xyz}",
    ),
    change(
        LAYER2,
        "cannot change under those who use it",
        "{network: {vlanID: 234, vni: 10234}, interfaceName: xyz}",
        "{network: {vlanID: 234, vni: 10234}, interfaceName: xyz, mtu: 9000}",
        "{network: {vlanID: 235, vni: 10234}, interfaceName: xyz}",
    ),
    change(
        LAYER2,
        "cannot change under those who use it",
        "{network: {vlanID: 234, vni: 10234}, sriov: {enabled: true}}",
        "{network: {vlanID: 234, vni: 10234}, sriov: {enabled: true}, workerGroups: [wg1]}",
        "{network: {vlanID: 234, vni: 10234}, sriov: {enabled: true}, interfaceName: xyz}",
    ),
    change(
        LAYER2,
        "cannot be switched on or off",
        "{network: {vlanID: 234, vni: 10234}, interfaceName: xyz}",
        "{network: {vlanID: 234, vni: 10234}, interfaceName: xyz, sriov: {enabled: false}}",
        "{network: {vlanID: 234, vni: 10234}, interfaceName: xyz, sriov: {enabled: true}}",
    ),
    // VRFAttachment.
    row(
        VRF,
        "has no subnet",
        "{network: {subnet: '2001:db8::/64'}, destinations: {matchLabels: {zone: a}}, connections: [{name: x, direction: inbound}]}",
        "{network: {}, destinations: {matchLabels: {zone: a}}, connections: [{name: x, direction: inbound}]}",
    ),
    change(
        VRF,
        "cannot change under its addresses",
        "{network: {subnet: '2001:db8::/64'}, destinations: {matchLabels: {zone: a}}, connections: [{name: x, direction: inbound}]}",
        "{network: {subnet: '2001:db8::/64'}, destinations: {matchLabels: {zone: a}}, connections: [{name: x, direction: inbound, count: 2}]}",
        "{network: {subnet: '2001:db8:1::/64'}, destinations: {matchLabels: {zone: a}}, connections: [{name: x, direction: inbound}]}",
    ),
    change(
        VRF,
        "cannot turn a connection round",
        "{network: {subnet: '2001:db8::/64'}, destinations: {matchLabels: {zone: a}}, connections: [{name: x, direction: inbound}]}",
        "{network: {subnet: '2001:db8::/64'}, destinations: {matchLabels: {zone: a}}, connections: [{name: 'y', direction: outbound}]}",
        "{network: {subnet: '2001:db8::/64'}, destinations: {matchLabels: {zone: a}}, connections: [{name: x, direction: outbound}]}",
    ),
    row(
        VRF,
        "lists a name twice; give every connection its own",
        "{network: {subnet: '2001:db8::/64'}, destinations: {matchLabels: {zone: a}}, connections: [{name: x, direction: inbound}, {name: 'y', direction: outbound}]}",
        "{network: {subnet: '2001:db8::/64'}, destinations: {matchLabels: {zone: a}}, connections: [{name: x, direction: inbound}, {name: x, direction: outbound}]}",
    ),
    row(
        VRF,
        "cannot be bidirectional yet",
        "{network: {subnet: '2001:db8::/64'}, destinations: {matchLabels: {zone: a}}, connections: [{name: x, direction: outbound, disableLoadBalancer: false, count: 1, routes: []}]}",
        "{network: {subnet: '2001:db8::/64'}, destinations: {matchLabels: {zone: a}}, connections: [{name: x, direction: bidirectional}]}",
    ),
    row(
        VRF,
        "must be an address, such as 192.0.2.100",
        "{network: {subnet: '2001:db8::/64'}, destinations: {matchLabels: {zone: a}}, connections: [{name: x, direction: inbound, addresses: ['2001:db8::5']}]}",
        "{network: {subnet: '2001:db8::/64'}, destinations: {matchLabels: {zone: a}}, connections: [{name: x, direction: inbound, addresses: ['2001:db8::5/128']}]}",
    ),
    // PodNetwork.
    row(
        PODS,
        "has no subnet",
        "{network: {ipv4: {subnet: 198.51.100.128/25}}, destinations: {matchLabels: {zone: a}}}",
        "{network: {ipv4: {size: 8}}, destinations: {matchLabels: {zone: a}}}",
    ),
    change(
        PODS,
        "cannot change under the pods that use it",
        "{network: {subnet: '2001:db8::/64'}, destinations: {matchLabels: {zone: a}}}",
        "{network: {subnet: '2001:db8::/64'}, destinations: {matchLabels: {zone: b}}}",
        "{network: {subnet: '2001:db8:1::/64'}, destinations: {matchLabels: {zone: a}}}",
    ),
    // Collector.
    row(
        COLLECTOR,
        "must be an address, such as 192.0.2.100",
        "{address: 192.0.2.100, protocol: l3gre, key: 1001, mirrorDestination: {name: mirror-vrf}}",
        "{address: collector.example, protocol: l3gre, mirrorDestination: {name: mirror-vrf}}",
    ),
    change(
        COLLECTOR,
        "cannot change, since the tunnel is named after it",
        "{address: 192.0.2.100, protocol: l3gre, mirrorDestination: {name: mirror-vrf}}",
        "{address: 192.0.2.101, protocol: l3gre, mirrorDestination: {name: mirror-vrf}}",
        "{address: 192.0.2.100, protocol: l2gre, mirrorDestination: {name: mirror-vrf}}",
    ),
    // Low-level kinds.
    row(
        ROUTES,
        "and communities exclude each other",
        "{vrf: m2m, seq: 10, import: [], export: [{cidr: 10.0.0.0/8, action: permit, ge: 9, le: 32, seq: 1}], communities: ['64500:1']}",
        "{vrf: m2m, seq: 10, import: [], export: [], community: '64500:1', communities: ['64500:1']}",
    ),
    row(
        MIRROR,
        "must name a MirrorTarget",
        "{direction: ingress, mirrorTarget: {kind: MirrorTarget, name: t}, mirrorSource: {kind: VRFRouteConfiguration, name: s}}",
        "{direction: ingress, mirrorTarget: {kind: Collector, name: t}, mirrorSource: {kind: VRFRouteConfiguration, name: s}}",
    ),
    row(
        MIRROR,
        "must name a Layer2NetworkConfiguration or a VRFRouteConfiguration",
        "{direction: egress, mirrorTarget: {kind: MirrorTarget, name: t}, mirrorSource: {apiGroup: network.t-caas.telekom.com, kind: Layer2NetworkConfiguration, name: s}}",
        "{direction: egress, mirrorTarget: {kind: MirrorTarget, name: t}, mirrorSource: {kind: Layer2Attachment, name: s}}",
    ),
    // Ours.
    change(
        COMPILED,
        "never changes; a new form is a new revision",
        "{revision: abc, parts: 1}",
        "{revision: abc, parts: 1}",
        "{revision: abd, parts: 1}",
    ),
];
