//! Compiling again after a change: the same bytes as compiling everything, and no node touched that is told the same.

use std::cell::Cell;
use std::sync::Arc;

use mooring_intent::{Answers, Compiled, Inputs, Prior, allocate, compile, recompile, wants};
use proptest::prelude::*;

use crate::documents;
use crate::properties::{Network, bytes, networks, runner, write};

/// Something that people or machines do between two compilations.
#[derive(Clone, Debug)]
enum Edit {
    Segment(usize, (u16, u8, u8, bool)),
    Attachment(usize, (u8, u8, u8)),
    Move(usize, u8),
    Join(u8),
    Leave,
    Trunk(bool),
    Lose(usize),
    Nothing,
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let segment = (1..12_u16, 0..3_u8, 0..4_u8, any::<bool>());
    let edit = prop_oneof![
        (any::<usize>(), segment).prop_map(|(at, to)| Edit::Segment(at, to)),
        (any::<usize>(), (0..4_u8, 0..3_u8, 1..4_u8)).prop_map(|(at, to)| Edit::Attachment(at, to)),
        (any::<usize>(), 0..3_u8).prop_map(|(at, group)| Edit::Move(at, group)),
        (0..3_u8).prop_map(Edit::Join),
        Just(Edit::Leave),
        any::<bool>().prop_map(Edit::Trunk),
        any::<usize>().prop_map(Edit::Lose),
        Just(Edit::Nothing),
    ];
    prop::collection::vec(edit, 1..6)
}

/// A mirror with loopbacks and a neighbour with transfer networks: what nodes have of their own.
const OWN: &str = "
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Destination, metadata: {name: mirror, labels: {zone: m}},
 spec: {vrf: mirror, vni: 990, routeTarget: '64500:990', loopbacks: [{name: lo.mir, subnet: 203.0.113.0/28}]}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Collector, metadata: {name: c},
 spec: {address: 10.99.0.1, protocol: l3gre, mirrorDestination: {name: mirror}}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: TrafficMirror, metadata: {name: t},
 spec: {source: {kind: Layer2Attachment, name: s0}, collector: c, direction: ingress}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: VRFAttachment, metadata: {name: own},
 spec: {network: {ipv4: {subnet: 198.52.0.0/24}}, workerGroups: [g1], destinations: {matchLabels: {zone: z0}},
        connections: [{name: in, direction: inbound, disableLoadBalancer: true}]}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: BGPNeighbor, metadata: {name: n},
 spec: {allowedConnections: [{vrfAttachment: {name: own}, connectionNames: [in]}]}}
";

struct World {
    network: Network,
    trunk: bool,
    answers: Answers,
}

impl World {
    fn inputs(&self) -> Inputs {
        let trunk = if self.trunk { "hbn" } else { "trunk0" };
        let config = format!(
            "---\n{{apiVersion: mooring.dev/v1alpha1, kind: OperatorConfig, metadata: {{name: cluster}}, spec: {{localAS: 64497, \
             defaultWorkloadAS: 65169, node: {{trunk: {trunk}}}, transferRanges: [{{name: t, ipv4: 198.18.0.0/24}}]}}}}\n"
        );
        Inputs::read(&documents(&(write(&self.network) + OWN + &config)))
    }

    fn edit(&mut self, edit: &Edit) {
        let network = &mut self.network;
        match edit {
            Edit::Segment(at, to) => {
                let at = at % network.segments.len();
                network.segments[at] = *to;
            }
            Edit::Attachment(at, to) => {
                let at = at % (network.attachments.len() + 1);
                network.attachments.truncate(at);
                network.attachments.push(*to);
            }
            Edit::Move(at, group) => {
                let at = at % network.nodes.len();
                network.nodes[at] = *group;
            }
            Edit::Join(group) => network.nodes.push(*group),
            Edit::Leave if network.nodes.len() > 1 => {
                network.nodes.pop();
            }
            Edit::Trunk(to) => self.trunk = *to,
            Edit::Leave | Edit::Lose(_) | Edit::Nothing => {}
        }
    }

    fn answer(&mut self, inputs: &Inputs, edit: &Edit) {
        self.answers = allocate(&wants(inputs), &self.answers).0;
        if let Edit::Lose(at) = edit {
            let lost = at % self.answers.iter().count().max(1);
            let mut left = Answers::default();
            for (at, (key, what)) in self.answers.iter().enumerate() {
                if at != lost {
                    left.give(key, what);
                }
            }
            self.answers = left;
        }
    }
}

fn shared(before: &Compiled, after: &Compiled) -> usize {
    let same = |(name, now): &(&String, &mooring_intent::NodeConfig)| {
        let was = before.nodes.get(*name);
        was.is_some_and(|was| Arc::ptr_eq(&was.netplan, &now.netplan))
    };
    after.nodes.iter().filter(same).count()
}

#[test]
fn compiling_again_gives_the_same_bytes_as_compiling_everything() {
    let (taken, made, frozen) = (Cell::new(0), Cell::new(0), Cell::new(0));
    runner(96)
        .run(&(networks(), edits()), |(network, edits)| {
            let mut world = World {
                network,
                trunk: true,
                answers: Answers::default(),
            };
            let inputs = world.inputs();
            world.answer(&inputs, &Edit::Nothing);
            let mut before = compile(&inputs, &world.answers, &Prior::default());
            for edit in &edits {
                world.edit(edit);
                let inputs = world.inputs();
                world.answer(&inputs, edit);
                let prior = Prior::new(before.contributions.clone());
                let again = recompile(&before, &inputs, &world.answers, &prior);
                let whole = compile(&inputs, &world.answers, &prior);
                prop_assert_eq!(bytes(&again), bytes(&whole), "{:?}", edit);
                let same = shared(&before, &again);
                taken.set(taken.get() + same);
                made.set(made.get() + again.nodes.len() - same);
                frozen.set(frozen.get() + again.frozen.len());
                before = again;
            }
            Ok(())
        })
        .unwrap();
    let (taken, made, frozen) = (taken.get(), made.get(), frozen.get());
    println!("{taken} nodes taken over, {made} made again, {frozen} objects frozen");
    assert!(taken > 100 && made > 100 && frozen > 3);
}

#[test]
fn one_change_touches_the_nodes_of_its_group_alone() {
    let mut world = World {
        network: Network {
            segments: vec![(1, 0, 0, false), (2, 1, 1, false)],
            attachments: Vec::new(),
            nodes: vec![0, 0, 1, 1],
        },
        trunk: true,
        answers: Answers::default(),
    };
    let inputs = world.inputs();
    world.answer(&inputs, &Edit::Nothing);
    let before = compile(&inputs, &world.answers, &Prior::default());
    let mut inputs = inputs;
    inputs.layer2_attachments[1].spec.mtu = 9000;
    let after = recompile(&before, &inputs, &world.answers, &Prior::default());
    assert_ne!(before.digest, after.digest);
    for (name, told) in &after.nodes {
        let same = Arc::ptr_eq(&told.network, &before.nodes[name].network);
        assert_eq!(same, name == "n0" || name == "n1", "{name}");
    }
}

#[test]
fn an_address_that_somebody_else_gave_reaches_the_node_that_claimed_it() {
    let all = "
{apiVersion: v1, kind: Node, metadata: {name: a}}
---
{apiVersion: v1, kind: Node, metadata: {name: b}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Destination, metadata: {name: red, labels: {zone: red}},
 spec: {vrf: red, vni: 100, routeTarget: '64500:100',
        loopbacks: [{name: lo.x, poolRef: {apiGroup: ipam.cluster.x-k8s.io, kind: InClusterIPPool, name: p}}]}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Layer2Attachment, metadata: {name: s},
 spec: {network: {vlanID: 1, vni: 1, ipv4: {subnet: 192.0.2.0/24}}, interfaceName: s, destinations: {matchLabels: {zone: red}}}}
";
    let came = "---
{apiVersion: ipam.cluster.x-k8s.io/v1beta1, kind: IPAddress, metadata: {name: red-lo.x-b, namespace: default},
 spec: {claimRef: {name: red-lo.x-b}, poolRef: {kind: InClusterIPPool, name: p}, address: 10.99.0.7, prefix: 24}}
";
    let (answers, prior) = (Answers::default(), Prior::default());
    let before = compile(&Inputs::read(&documents(all)), &answers, &prior);
    let inputs = Inputs::read(&documents(&format!("{all}{came}")));
    let again = recompile(&before, &inputs, &answers, &prior);
    assert_eq!(bytes(&again), bytes(&compile(&inputs, &answers, &prior)));
    let loopbacks = |node: &str| {
        again.nodes[node].network.fabric_vrfs["red"]
            .vrf
            .loopbacks
            .len()
    };
    assert_eq!((loopbacks("a"), loopbacks("b")), (0, 1));
}
