//! Compiling again after a change: the same bytes as compiling everything, and no node touched that is told the same.

use std::cell::Cell;
use std::sync::Arc;

use mooring_api::kinds::schiff::DestinationSpec;
use mooring_intent::{
    Answers, Compiled, Contribution, Inputs, Object, Prior, allocate, compile, recompile, wants,
};
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
    Touch(Touch),
    Nothing,
}

/// A change to a Destination or a node that objects have no other way to say here.
#[derive(Clone, Copy, Debug)]
enum Touch {
    /// A prefix more; Destinations of other VRFs may have it too.
    Prefix(usize, u8),
    /// Another zone: other attachments select it.
    Zone(usize, u8),
    /// Another identity of its VRF.
    Vni(usize, u8),
    /// The Destination is gone.
    Gone(usize),
    /// A node has an address that an attachment may have.
    Address(usize, u8, u8),
}

impl Touch {
    fn apply(self, inputs: &mut Inputs) {
        let destination = |z: usize| format!("d{}", z % 3);
        let mut each = |z: usize, change: &dyn Fn(&mut Object<DestinationSpec>)| {
            let name = destination(z);
            let mut all = inputs.destinations.iter_mut();
            all.by_ref().filter(|d| d.id.name == name).for_each(change);
        };
        match self {
            Self::Prefix(z, n) => each(z, &|d| {
                let prefix = format!("10.{}.0.0/16", 100 + n).parse().unwrap();
                d.spec.prefixes.push(prefix);
            }),
            Self::Zone(z, to) => each(z, &|d| {
                d.labels.insert("zone".to_owned(), format!("z{to}"));
            }),
            Self::Vni(z, n) => each(z, &|d| d.spec.vni = Some(800 + u32::from(n))),
            Self::Gone(z) => inputs.destinations.retain(|d| d.id.name != destination(z)),
            Self::Address(at, attachment, host) => {
                let at = at % inputs.nodes.len();
                let addr = format!("198.51.{attachment}.{host}").parse().unwrap();
                inputs.nodes[at].addresses.push(addr);
            }
        }
    }
}

fn touches() -> impl Strategy<Value = Touch> {
    prop_oneof![
        (0..3_usize, 0..3_u8).prop_map(|(z, n)| Touch::Prefix(z, n)),
        (0..3_usize, 0..3_u8).prop_map(|(z, to)| Touch::Zone(z, to)),
        (0..3_usize, 0..3_u8).prop_map(|(z, n)| Touch::Vni(z, n)),
        (0..3_usize).prop_map(Touch::Gone),
        (any::<usize>(), 0..4_u8, 1..4_u8).prop_map(|(at, a, n)| Touch::Address(at, a, n)),
    ]
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let segment = (1..12_u16, 0..3_u8, 0..4_u8, any::<bool>());
    let edit = prop_oneof![
        1 => (any::<usize>(), segment).prop_map(|(at, to)| Edit::Segment(at, to)),
        1 => (any::<usize>(), (0..4_u8, 0..3_u8, 1..4_u8)).prop_map(|(at, to)| Edit::Attachment(at, to)),
        1 => (any::<usize>(), 0..3_u8).prop_map(|(at, group)| Edit::Move(at, group)),
        1 => (0..3_u8).prop_map(Edit::Join),
        1 => Just(Edit::Leave),
        1 => any::<bool>().prop_map(Edit::Trunk),
        1 => any::<usize>().prop_map(Edit::Lose),
        4 => touches().prop_map(Edit::Touch),
        1 => Just(Edit::Nothing),
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
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: PodNetwork, metadata: {name: p},
 spec: {network: {ipv4: {subnet: 198.53.0.0/24}}, workerGroups: [g1], destinations: {matchLabels: {zone: z1}}}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: BGPNeighbor, metadata: {name: n},
 spec: {allowedConnections: [{vrfAttachment: {name: own}, connectionNames: [in]}]}}
";

struct World {
    network: Network,
    trunk: bool,
    touched: Vec<Touch>,
    answers: Answers,
}

impl World {
    fn of(network: Network) -> Self {
        Self {
            network,
            trunk: true,
            touched: Vec::new(),
            answers: Answers::default(),
        }
    }

    fn inputs(&self) -> Inputs {
        let trunk = if self.trunk { "hbn" } else { "trunk0" };
        let config = format!(
            "---\n{{apiVersion: mooring.dev/v1alpha1, kind: OperatorConfig, metadata: {{name: cluster}}, spec: {{localAS: 64497, \
             defaultWorkloadAS: 65169, node: {{trunk: {trunk}}}, transferRanges: [{{name: t, ipv4: 198.18.0.0/24}}]}}}}\n"
        );
        let mut inputs = Inputs::read(&documents(&(write(&self.network) + OWN + &config)));
        for touch in &self.touched {
            touch.apply(&mut inputs);
        }
        inputs
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
            Edit::Touch(touch) => self.touched.push(*touch),
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

/// Attachments that were drafted anew.
fn drafted(before: &Compiled, after: &Compiled) -> Vec<String> {
    let kinds = ["Layer2Attachment", "VRFAttachment", "PodNetwork"];
    let all = after.contributions.iter();
    let all = all.filter(|c| kinds.contains(&c.object.kind.as_str()));
    let kept = |c: &&Arc<Contribution>| before.contributions.iter().any(|b| Arc::ptr_eq(b, c));
    let new = all.filter(|c| !kept(c));
    new.map(|c| c.object.name.clone()).collect()
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
    let (kept, anew) = (Cell::new(0), Cell::new(0));
    runner(96)
        .run(&(networks(), edits()), |(network, edits)| {
            let mut world = World::of(network);
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
                let new = drafted(&before, &again).len();
                anew.set(anew.get() + new);
                kept.set(kept.get() + again.contributions.len() - new);
                before = again;
            }
            Ok(())
        })
        .unwrap();
    let (taken, made, frozen) = (taken.get(), made.get(), frozen.get());
    let (kept, anew) = (kept.get(), anew.get());
    println!("{taken} nodes taken over, {made} made again, {frozen} objects frozen");
    println!("{kept} objects kept, {anew} attachments drafted anew");
    assert!(taken > 100 && made > 100 && frozen > 3);
    assert!(kept > 500 && anew > 100, "{kept} {anew}");
}

#[test]
fn only_attachments_about_which_something_differs_are_drafted_anew() {
    let network = Network {
        segments: vec![(1, 0, 0, false), (2, 1, 1, false), (3, 1, 0, true)],
        attachments: vec![(0, 0, 1), (1, 1, 2)],
        nodes: vec![0, 0, 1, 1],
    };
    let edit = |edit: Edit| {
        let mut world = World::of(network.clone());
        let inputs = world.inputs();
        world.answer(&inputs, &Edit::Nothing);
        let before = compile(&inputs, &world.answers, &Prior::default());
        world.edit(&edit);
        let inputs = world.inputs();
        world.answer(&inputs, &edit);
        let prior = Prior::new(before.contributions.clone());
        let again = recompile(&before, &inputs, &world.answers, &prior);
        let whole = compile(&inputs, &world.answers, &prior);
        assert_eq!(bytes(&again), bytes(&whole), "{edit:?}");
        (drafted(&before, &again), again)
    };
    let at = |key: &str| {
        let mut world = World::of(network.clone());
        let inputs = world.inputs();
        world.answer(&inputs, &Edit::Nothing);
        world.answers.iter().position(|(k, _)| k == key).unwrap()
    };
    let rows: [(Edit, &[&str]); 12] = [
        (Edit::Nothing, &[]),
        (Edit::Segment(0, (9, 0, 0, false)), &["s0"]),
        // Those that select its Destination, or did, or will.
        (Edit::Touch(Touch::Prefix(1, 0)), &["s1", "p", "a1"]),
        (Edit::Touch(Touch::Zone(2, 1)), &["s1", "p", "a1"]),
        (Edit::Touch(Touch::Vni(0, 0)), &["s0", "s2", "a0", "own"]),
        // Who is on a node that came, went or moved.
        (Edit::Join(1), &["s1", "s2", "p", "a1", "own"]),
        (Edit::Move(0, 2), &["s0", "a0"]),
        (Edit::Leave, &["s1", "s2", "p", "a1", "own"]),
        // Who may meet its address, and who has it in scope.
        (Edit::Touch(Touch::Address(0, 1, 250)), &["s0", "a0", "a1"]),
        // Whose address it is.
        (Edit::Lose(at("vrfattachment/a0/in/ipv4/0")), &["a0"]),
        (Edit::Lose(at("layer2attachment/s1/ipv4/node/n2")), &[]),
        // What everybody looks at.
        (
            Edit::Trunk(false),
            &["s0", "s1", "s2", "p", "a0", "a1", "own"],
        ),
    ];
    for (change, wanted) in rows {
        assert_eq!(edit(change.clone()).0, wanted, "{change:?}");
    }
    // Two that meet: the one that came in between loses and stays as it was; who is kept can lose, too.
    let (new, after) = edit(Edit::Segment(0, (2, 1, 0, false)));
    assert_eq!(new, [""; 0], "s0 stays in its last good form");
    assert!(
        after.frozen.iter().any(|id| id.name == "s0"),
        "{:?}",
        after.frozen
    );
}

#[test]
fn an_attachment_that_is_kept_loses_what_somebody_older_comes_for() {
    let segment = |name: &str, created: &str, vlan: u16| {
        format!(
            "---\n{{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Layer2Attachment, \
             metadata: {{name: {name}, creationTimestamp: '{created}'}}, spec: {{network: {{vlanID: {vlan}, vni: {}}}, interfaceName: {name}}}}}\n",
            1000 + vlan
        )
    };
    let node = "{apiVersion: v1, kind: Node, metadata: {name: a}}\n";
    let young = segment("young", "2026-02-01T00:00:00Z", 7);
    let old = |vlan| segment("old", "2026-01-01T00:00:00Z", vlan);
    let inputs = |vlan| Inputs::read(&documents(&format!("{node}{young}{}", old(vlan))));
    // Nothing ran: age alone decides.
    let (answers, nothing) = (Answers::default(), Prior::default());
    let before = compile(&inputs(8), &answers, &nothing);
    let met = recompile(&before, &inputs(7), &answers, &nothing);
    assert_eq!(bytes(&met), bytes(&compile(&inputs(7), &answers, &nothing)));
    let there: Vec<&str> = met
        .contributions
        .iter()
        .map(|c| c.object.name.as_str())
        .collect();
    assert_eq!(there, ["old"]);
    // And it is there again when the other one goes elsewhere.
    let apart = recompile(&met, &inputs(8), &answers, &nothing);
    assert_eq!(bytes(&apart), bytes(&before));
    assert!(drafted(&before, &apart).contains(&"old".to_owned()));
    assert!(!drafted(&before, &apart).contains(&"young".to_owned()));
}

#[test]
fn one_change_touches_the_nodes_of_its_group_alone() {
    let mut world = World::of(Network {
        segments: vec![(1, 0, 0, false), (2, 1, 1, false)],
        attachments: Vec::new(),
        nodes: vec![0, 0, 1, 1],
    });
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
