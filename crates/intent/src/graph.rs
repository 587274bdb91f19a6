//! The picture: who selects which Destination, which VRF that is, who names whom, and which routes pass between VRFs.
//!
//! `moor graph` writes it as JSON, DOT or SVG, for a merge request or a wall. Four columns: what people attach,
//! Destinations and Collectors, VRFs of the fabric, and VRFs of the node: the cluster's and local ones.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use mooring_api::{ObjectRef, Selector};
use serde::{Deserialize, Serialize};

use crate::form::{CLUSTER, Item, Side};
use crate::{Compiled, Inputs};

/// Things and how they hang together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Graph {
    /// Things.
    pub nodes: BTreeSet<Dot>,
    /// From, to, and what that means.
    pub edges: BTreeSet<(String, String, String)>,
}

/// A thing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Dot {
    /// Which column.
    pub column: u8,
    /// `Kind/name`, or `VRF/name`.
    pub id: String,
    /// It is not in force: set aside, or in its last good form.
    pub aside: bool,
}

/// The picture of what was compiled.
pub fn graph(inputs: &Inputs, compiled: &Compiled) -> Graph {
    let mut graph = Graph::default();
    let wrong: BTreeSet<&ObjectRef> = compiled
        .findings
        .iter()
        .filter(|f| f.is_error())
        .filter_map(|f| f.object.as_ref())
        .collect();
    let mut add = |column: u8, id: &ObjectRef| {
        graph.nodes.insert(Dot {
            column,
            id: id.to_string(),
            aside: wrong.contains(id),
        });
    };
    inputs.destinations.iter().for_each(|o| add(1, &o.id));
    inputs.collectors.iter().for_each(|o| add(1, &o.id));
    inputs.layer2_attachments.iter().for_each(|o| add(0, &o.id));
    inputs.vrf_attachments.iter().for_each(|o| add(0, &o.id));
    inputs.pod_networks.iter().for_each(|o| add(0, &o.id));
    inputs.bgp_neighbors.iter().for_each(|o| add(0, &o.id));
    inputs.traffic_mirrors.iter().for_each(|o| add(0, &o.id));
    inputs.layer2s.iter().for_each(|o| add(0, &o.id));
    inputs.vrfs.iter().for_each(|o| add(0, &o.id));

    let mut selects = |id: &ObjectRef, selector: &Selector| {
        for destination in inputs
            .destinations
            .iter()
            .filter(|d| selector.matches(&d.labels))
        {
            graph
                .edges
                .insert(edge(id.to_string(), destination.id.to_string(), "selects"));
        }
    };
    for o in &inputs.layer2_attachments {
        o.spec.destinations.iter().for_each(|s| selects(&o.id, s));
    }
    inputs
        .vrf_attachments
        .iter()
        .for_each(|o| selects(&o.id, &o.spec.destinations));
    inputs
        .pod_networks
        .iter()
        .for_each(|o| selects(&o.id, &o.spec.destinations));
    for o in &inputs.destinations {
        let vrf = vrf(&mut graph, o.spec.vrf.as_str());
        graph.edges.insert(edge(o.id.to_string(), vrf, "is"));
    }
    for o in &inputs.bgp_neighbors {
        for allowed in &o.spec.allowed_connections {
            let to = format!("VRFAttachment/{}", allowed.vrf_attachment.name);
            graph.edges.insert(edge(o.id.to_string(), to, "announces"));
        }
    }
    for o in &inputs.collectors {
        let to = format!("Destination/{}", o.spec.mirror_destination.name);
        graph.edges.insert(edge(o.id.to_string(), to, "sends from"));
    }
    for o in &inputs.traffic_mirrors {
        let source = &o.spec.source;
        let from = format!("{}/{}", source.kind.as_str(), source.name);
        graph.edges.insert(edge(o.id.to_string(), from, "mirrors"));
        let to = format!("Collector/{}", o.spec.collector);
        graph.edges.insert(edge(o.id.to_string(), to, "into"));
    }
    // Low-level objects name their VRF themselves.
    let low = |id: &ObjectRef| {
        matches!(
            id.kind.as_str(),
            "VRFRouteConfiguration" | "Layer2NetworkConfiguration"
        )
    };
    for contribution in compiled.contributions.iter().filter(|c| low(&c.object)) {
        for placed in &contribution.items {
            if let Item::Vrf(item) = &placed.item {
                let vrf = vrf(&mut graph, &item.name);
                graph
                    .edges
                    .insert(edge(contribution.object.to_string(), vrf, "uses"));
            }
        }
    }
    leaks(&mut graph, compiled);
    graph
}

/// Which routes pass between VRFs, and whose traffic is looked up in another one: one edge each, with all prefixes.
fn leaks(graph: &mut Graph, compiled: &Compiled) {
    let mut said: BTreeMap<(String, String, &str), BTreeSet<String>> = BTreeMap::new();
    let mut pass = |from: &str, to: &str, what: &'static str, prefix: String| {
        let edge = (from.to_owned(), to.to_owned(), what);
        said.entry(edge).or_default().insert(prefix);
    };
    for item in compiled.form.scopes().flat_map(|(_, items)| items) {
        match item {
            Item::Leak(leak) if leak.rule.permit => {
                let prefix = leak.rule.to_string();
                match leak.side {
                    Side::Import => pass(&leak.vrf, &leak.inner, "leaks", prefix),
                    Side::Export => pass(&leak.inner, &leak.vrf, "leaks", prefix),
                }
            }
            Item::Local(local) => {
                for from in &local.imports {
                    pass(from, &local.name, "leaks", "everything".to_owned());
                }
                for (prefix, vrf) in &local.routes {
                    pass(vrf, &local.name, "leaks", prefix.to_string());
                }
            }
            Item::Steer(steer) => {
                let source = steer.source.to_string();
                pass(CLUSTER, &steer.into, "looks up traffic from", source);
            }
            _ => {}
        }
    }
    for ((from, to, what), prefixes) in said {
        let (from, to) = (vrf(graph, &from), vrf(graph, &to));
        let prefixes: Vec<String> = prefixes.into_iter().collect();
        let what = format!("{what} {}", prefixes.join(", "));
        graph.edges.insert(edge(from, to, &what));
    }
}

fn vrf(graph: &mut Graph, name: &str) -> String {
    let id = format!("VRF/{name}");
    let inner = name == CLUSTER || name.starts_with("s-");
    graph.nodes.insert(Dot {
        column: if inner { 3 } else { 2 },
        id: id.clone(),
        aside: false,
    });
    id
}

fn edge(from: String, to: String, what: &str) -> (String, String, String) {
    (from, to, what.to_owned())
}

impl Graph {
    /// As Graphviz reads it.
    pub fn dot(&self) -> String {
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
        let mut text = String::from("digraph intents {\n  rankdir=LR;\n  node [shape=box];\n");
        for node in &self.nodes {
            let style = if node.aside { " [style=dashed]" } else { "" };
            let _ = writeln!(text, "  \"{}\"{style};", quoted(&node.id));
        }
        for (from, to, what) in &self.edges {
            let (from, to) = (quoted(from), quoted(to));
            let what = quoted(what);
            let _ = writeln!(text, "  \"{from}\" -> \"{to}\" [label=\"{what}\"];");
        }
        text + "}\n"
    }

    /// As a browser shows it: four columns, dashed where something is not in force.
    pub fn svg(&self) -> String {
        const WIDE: usize = 260;
        const HIGH: usize = 28;
        const GAP: usize = 160;
        let mut places: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        let mut rows = [0_usize; 4];
        for node in &self.nodes {
            let column = usize::from(node.column.min(3));
            let x = 20 + column * (WIDE + GAP);
            places.insert(&node.id, (x, 20 + rows[column] * (HIGH + 16)));
            rows[column] += 1;
        }
        let height = 40 + rows.iter().max().unwrap_or(&0) * (HIGH + 16);
        let width = 40 + 4 * WIDE + 3 * GAP;
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n"
        );
        for (from, to, what) in &self.edges {
            let (Some(a), Some(b)) = (places.get(from.as_str()), places.get(to.as_str())) else {
                continue;
            };
            let start = if b.0 >= a.0 { a.0 + WIDE } else { a.0 };
            let end = if b.0 > a.0 { b.0 } else { b.0 + WIDE };
            let _ = writeln!(
                text,
                "<line x1=\"{start}\" y1=\"{}\" x2=\"{end}\" y2=\"{}\" stroke=\"#888\"><title>{}</title></line>",
                a.1 + HIGH / 2,
                b.1 + HIGH / 2,
                escaped(what)
            );
        }
        for node in &self.nodes {
            let (x, y) = places[node.id.as_str()];
            let dash = if node.aside {
                " stroke-dasharray=\"4\""
            } else {
                ""
            };
            let _ = writeln!(
                text,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{WIDE}\" height=\"{HIGH}\" fill=\"#fff\" stroke=\"#333\"{dash}/>\n\
                 <text x=\"{}\" y=\"{}\">{}</text>",
                x + 8,
                y + 18,
                escaped(&node.id)
            );
        }
        text + "</svg>\n"
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
