//! From the form to one node: what its agent and its host are told.
//!
//! ```text
//!  items of the node's scopes ─► Class: what its nodes share ─► own: addresses and what hangs on them ─► NodeConfig
//! ```
//!
//! Everything here is a function of the items that reach the node and of the answers that bear its name, so a node that
//! joins changes no other, and one whose items and answers are those of the last time is taken over as it was. Easy to get
//! wrong: a filter is first match, so lines with a written order come first, and the rest stands longest prefix first.

mod filter;
mod netplan;
mod own;
mod peer;
mod shared;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mooring_api::kinds::mooring::NodeNames;
use mooring_api::kinds::schiff::{NodeNetplanConfigSpec, NodeNetworkConfigSpec};
use serde_json::{Value, json};

use self::peer::Dummy;
use crate::compile::{Context, loopback_key, node_key, node_of};
use crate::form::{Item, Peer, Who};
use crate::input::is_claim;
use crate::{Answers, Compiled, Form, status};

/// What a node is told. Nodes that are told the same share it.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// The agent's half, without the revision: that is not the node's own, and changes where nothing else does.
    pub network: Arc<NodeNetworkConfigSpec>,
    /// The host's half.
    pub netplan: Arc<NodeNetplanConfigSpec>,
    class: Arc<Class>,
}

impl PartialEq for NodeConfig {
    fn eq(&self, other: &Self) -> bool {
        self.network == other.network && self.netplan == other.netplan
    }
}

impl NodeConfig {
    /// As the two objects that bear the node's name, of a revision by its digest.
    pub fn objects(&self, node: &str, revision: &str) -> [Value; 2] {
        let object = |kind: &str, spec: Value| {
            json!({
                "apiVersion": mooring_api::kinds::schiff::API_VERSION,
                "kind": kind,
                "metadata": { "name": node },
                "spec": spec,
            })
        };
        let mut network = status::value(self.network.as_ref());
        network["revision"] = json!(revision);
        [
            object("NodeNetworkConfig", network),
            object("NodeNetplanConfig", status::value(self.netplan.as_ref())),
        ]
    }
}

/// Every node. Nodes of the same scopes begin as one; a node of which nothing changed stays what it was.
pub(crate) fn nodes(
    context: &Context<'_>,
    form: &Form,
    before: Option<&Compiled>,
) -> BTreeMap<String, NodeConfig> {
    let differing = before.map(|before| before.given.differing(context.answers));
    // A key says whose it is, except that of a claim, whose name may be a hash.
    let (claims, others): (BTreeSet<&str>, BTreeSet<&str>) = differing
        .unwrap_or_default()
        .into_iter()
        .partition(|key| is_claim(key));
    let heard: BTreeSet<&str> = others.into_iter().filter_map(node_of).collect();
    let mut classes: BTreeMap<Vec<usize>, Arc<Class>> = BTreeMap::new();
    let mut nodes = BTreeMap::new();
    let places = form.places(&context.nodes).into_iter();
    for (node, places) in context.inputs.nodes.iter().zip(places) {
        let was = before.and_then(|before| before.nodes.get(&node.name));
        let class = classes.entry(places).or_insert_with_key(|places| {
            let items = form.of(places);
            let same = was.filter(|was| was.class.is_of(context, &items));
            let new = || Arc::new(Class::new(context, &items));
            same.map_or_else(new, |was| Arc::clone(&was.class))
        });
        let same = was.filter(|was| {
            let heard = heard.contains(node.name.as_str()) || class.asks_any(&node.name, &claims);
            Arc::ptr_eq(&was.class, class) && !heard
        });
        let config = match same {
            Some(was) => was.clone(),
            None => class.node(context.answers, &node.name),
        };
        nodes.insert(node.name.clone(), config);
    }
    nodes
}

/// What nodes of the same scopes have in common.
#[derive(Debug)]
struct Class {
    items: BTreeSet<Item>,
    names: NodeNames,
    shared: NodeNetworkConfigSpec,
    devices: Vec<netplan::Shared>,
    /// The agent's half, where no node asks anything for it, and what hosts need for its sessions.
    agents: Option<(Arc<NodeNetworkConfigSpec>, Vec<Dummy>)>,
    /// The host's half, where no node asks anything at all.
    hosts: Option<Arc<NodeNetplanConfigSpec>>,
}

impl Class {
    fn new(context: &Context<'_>, items: &BTreeSet<&Item>) -> Self {
        let items = items.iter().copied().cloned().collect();
        let names = context.inputs.config.node.clone();
        let mut class = Self {
            shared: shared::shared(&items),
            devices: netplan::shared(&items, &names),
            names,
            items,
            agents: None,
            hosts: None,
        };
        if class.agent_asks("").next().is_none() {
            let (network, dummies) = class.agent(context.answers, "");
            if class.host_asks("").next().is_none() {
                class.hosts = Some(Arc::new(class.host(context.answers, "", &dummies)));
            }
            class.agents = Some((Arc::new(network), dummies));
        }
        class
    }

    fn is_of(&self, context: &Context<'_>, items: &BTreeSet<&Item>) -> bool {
        self.names == context.inputs.config.node && self.items.iter().eq(items.iter().copied())
    }

    /// The keys that the agent's half of a node asks.
    fn agent_asks(&self, node: &str) -> impl Iterator<Item = String> {
        self.items.iter().filter_map(move |item| match item {
            Item::Loopback(loopback) => Some(loopback_key(loopback, node)),
            Item::Peer(Peer {
                who: Who::Transfer { key, .. },
                ..
            }) => Some(node_key(key, node)),
            _ => None,
        })
    }

    /// And those that its host asks beside these.
    fn host_asks(&self, node: &str) -> impl Iterator<Item = String> {
        let devices = self.items.iter().filter_map(|item| match item {
            Item::Host(device) => Some(device.addresses.values()),
            _ => None,
        });
        devices.flatten().map(move |key| node_key(key, node))
    }

    /// Whether one of these claims is asked; a host asks none.
    fn asks_any(&self, node: &str, keys: &BTreeSet<&str>) -> bool {
        let mut asked = self.agent_asks(node);
        !keys.is_empty() && asked.any(|key| keys.contains(key.as_str()))
    }

    fn agent(&self, answers: &Answers, node: &str) -> (NodeNetworkConfigSpec, Vec<Dummy>) {
        own::own(&self.items, self.shared.clone(), &self.names, answers, node)
    }

    fn host(&self, answers: &Answers, node: &str, dummies: &[Dummy]) -> NodeNetplanConfigSpec {
        netplan::netplan(&self.devices, answers, node, dummies)
    }

    fn node(self: &Arc<Self>, answers: &Answers, node: &str) -> NodeConfig {
        let alone;
        let (network, dummies) = if let Some((network, dummies)) = &self.agents {
            (Arc::clone(network), dummies)
        } else {
            let (network, dummies) = self.agent(answers, node);
            alone = dummies;
            (Arc::new(network), &alone)
        };
        let netplan = self.hosts.clone();
        NodeConfig {
            network,
            netplan: netplan.unwrap_or_else(|| Arc::new(self.host(answers, node, dummies))),
            class: Arc::clone(self),
        }
    }
}
