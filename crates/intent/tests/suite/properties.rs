//! Properties over random networks: order does not matter, nodes do not disturb each other, the same again is the same.

use std::cell::Cell;
use std::fmt::Write as _;

use mooring_intent::trace::trace;
use mooring_intent::{Answers, Compiled, Item, Prior};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value;

use crate::{documents, run};

const PACKETS: [(&str, &str); 6] = [
    ("192.0.0.9", "10.0.1.1"),
    ("192.0.1.9", "10.1.1.1"),
    ("192.0.2.9", "192.0.0.9"),
    ("198.51.0.1", "10.2.1.1"),
    ("198.51.1.2", "10.0.1.1"),
    ("2001:db8:0::9", "2001:db8:1::9"),
];

#[derive(Clone, Debug)]
pub(crate) struct Network {
    pub(crate) segments: Vec<(u16, u8, u8, bool)>,
    pub(crate) attachments: Vec<(u8, u8, u8)>,
    pub(crate) nodes: Vec<u8>,
}

pub(crate) fn networks() -> impl Strategy<Value = Network> {
    let segments = prop::collection::vec((1..12_u16, 0..3_u8, 0..4_u8, any::<bool>()), 1..6);
    let attachments = prop::collection::vec((0..4_u8, 0..3_u8, 1..4_u8), 0..4);
    let nodes = prop::collection::vec(0..3_u8, 1..6);
    (segments, attachments, nodes).prop_map(|(segments, attachments, nodes)| Network {
        segments,
        attachments,
        nodes,
    })
}

/// A selector over the three Destinations: one of them, or all.
fn selector(zone: u8) -> String {
    match zone {
        0..=2 => format!("destinations: {{matchLabels: {{zone: z{zone}}}}}"),
        _ => "destinations: {matchLabels: {any: x}}".to_owned(),
    }
}

fn node(at: usize, group: u8) -> String {
    format!(
        "---\n{{apiVersion: v1, kind: Node, metadata: {{name: n{at}, labels: {{network.t-caas.telekom.com/worker-group: g{group}}}}}}}\n"
    )
}

pub(crate) fn write(network: &Network) -> String {
    let group = "apiVersion: network.t-caas.telekom.com/v1alpha1";
    let mut text = String::new();
    for z in 0..3 {
        write!(
            text,
            "---\n{{{group}, kind: Destination, metadata: {{name: d{z}, labels: {{zone: z{z}, any: x}}}}, \
             spec: {{vrf: v{z}, vni: {}, routeTarget: '64500:{z}', prefixes: [10.{z}.0.0/16]}}}}\n",
            900 + z
        )
        .unwrap();
    }
    for (at, (vlan, groups, zone, v6)) in network.segments.iter().enumerate() {
        let subnet = if *v6 {
            format!("subnet: '2001:db8:{at}::/64'")
        } else {
            format!("ipv4: {{subnet: 192.0.{at}.0/24}}")
        };
        write!(
            text,
            "---\n{{{group}, kind: Layer2Attachment, metadata: {{name: s{at}}}, spec: {{network: {{vlanID: {vlan}, vni: {}, {subnet}}}, \
             interfaceName: i{at}, workerGroups: [g{groups}], nodeIPs: {{enabled: true}}, {}}}}}\n",
            1000 + vlan,
            selector(*zone)
        )
        .unwrap();
    }
    for (at, (zone, groups, count)) in network.attachments.iter().enumerate() {
        write!(
            text,
            "---\n{{{group}, kind: VRFAttachment, metadata: {{name: a{at}}}, spec: {{network: {{ipv4: {{subnet: 198.51.{at}.0/24}}}}, \
             workerGroups: [g{groups}], connections: [{{name: in, direction: inbound, count: {count}}}, {{name: out, direction: outbound}}], {}}}}}\n",
            selector(*zone)
        )
        .unwrap();
    }
    for (at, group) in network.nodes.iter().enumerate() {
        text += &node(at, *group);
    }
    text
}

/// The same networks every time.
pub(crate) fn runner(cases: u32) -> TestRunner {
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = proptest::test_runner::TestRng::deterministic_rng(
        proptest::test_runner::RngAlgorithm::ChaCha,
    );
    TestRunner::new_with_rng(config, rng)
}

pub(crate) fn bytes(compiled: &Compiled) -> String {
    let nodes: Vec<[Value; 2]> = compiled
        .nodes
        .iter()
        .map(|(n, c)| c.objects(n, &compiled.digest))
        .collect();
    let statuses: Vec<(String, &Value)> = compiled
        .statuses
        .iter()
        .map(|(id, status)| (id.to_string(), status))
        .collect();
    let revisions = compiled.compiled_revisions();
    let parts: Vec<_> = revisions.iter().map(|r| &r.spec).collect();
    serde_json::to_string(&(
        &nodes,
        &compiled.revision().spec,
        &compiled.platform,
        &statuses,
        &parts,
        &compiled.findings,
    ))
    .unwrap()
}

#[test]
fn order_does_not_matter_and_nodes_do_not_disturb_each_other() {
    let (conflicts, several, steered) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let said_again = Cell::new(0);
    let mut runner = runner(96);
    let shuffled = networks().prop_flat_map(|network| {
        let objects = documents(&write(&network));
        (
            Just(network),
            Just(objects.clone()),
            Just(objects).prop_shuffle(),
        )
    });
    runner
        .run(&shuffled, |(network, objects, shuffled)| {
            let (first, answers) = run(&objects, &Answers::default(), &Prior::default());
            let (second, other) = run(&shuffled, &Answers::default(), &Prior::default());
            prop_assert_eq!(bytes(&first), bytes(&second));
            prop_assert_eq!(&answers, &other);

            // The same again, knowing what ran and what was given.
            let prior = Prior::new(first.contributions.clone());
            let (again, kept) = run(&objects, &answers, &prior);
            prop_assert_eq!(&first.digest, &again.digest);
            prop_assert_eq!(&first.nodes, &again.nodes);
            prop_assert_eq!(&answers, &kept);

            // A node more, of any group.
            let mut more = objects.clone();
            more.extend(documents(&node(99, network.nodes[0])));
            let (grown, _) = run(&more, &answers, &prior);
            prop_assert_eq!(&first.digest, &grown.digest);
            for (name, config) in &first.nodes {
                prop_assert_eq!(config, &grown.nodes[name]);
            }
            // Said again in low-level words, where these suffice: the same form, and packets go the same way.
            let items = first.form.scopes().flat_map(|(_, items)| items);
            let by_prefix = |item: &Item| matches!(item, Item::Local(l) if !l.routes.is_empty());
            if !items.into_iter().any(by_prefix) {
                let mut low = first.low_level();
                low.extend(objects.iter().filter(|o| o["kind"] == "Node").cloned());
                let (low, _) = run(&low, &Answers::default(), &Prior::default());
                prop_assert_eq!(&first.digest, &low.digest);
                for (name, config) in &first.nodes {
                    for (source, target) in PACKETS {
                        let (source, target) = (source.parse().unwrap(), target.parse().unwrap());
                        let other = &low.nodes[name].network;
                        prop_assert_eq!(
                            trace(&config.network, source, target),
                            trace(other, source, target)
                        );
                    }
                }
                said_again.set(said_again.get() + 1);
            }
            let lost = first
                .findings
                .iter()
                .filter(|f| f.code.as_str() == "Conflict");
            conflicts.set(conflicts.get() + lost.count());
            let local = first
                .nodes
                .values()
                .filter(|n| !n.network.local_vrfs.is_empty());
            several.set(several.get() + local.count());
            let rules = first
                .nodes
                .values()
                .filter_map(|n| n.network.cluster_vrf.as_ref());
            steered.set(steered.get() + rules.map(|c| c.policy_routes.len()).sum::<usize>());
            Ok(())
        })
        .unwrap();
    let (conflicts, several, steered) = (conflicts.get(), several.get(), steered.get());
    let said_again = said_again.get();
    println!(
        "{conflicts} conflicts, {several} nodes with local VRFs, {steered} policy routes, {said_again} said again"
    );
    assert!(conflicts > 10 && several > 10 && steered > 10 && said_again > 10);
}
