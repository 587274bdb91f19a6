//! What there is to know about a network before its IPAM is chosen.
//!
//! Easy to get wrong: before a render there are no NADs. Then the workloads of the package, or the one that the Interface
//! names, are its users, and the instance stands for the subnet.

use std::collections::{BTreeMap, BTreeSet};

use mooring_api::{Cidr, annotation};
use mooring_attach::nad::Use;
use mooring_attach::rollout;
use serde_json::Value;

use crate::carried;
use crate::input::{Fleet, Input};
use crate::placing;
use crate::upf;
use crate::world::{Nad, World, annotation_of, is_local_config, word};

/// IPAM plugins that decide by what stands in the cluster or in the configuration.
const OURS: [&str; 5] = ["static", "host-local", "whereabouts", "moor", "dhcp"];

/// What is known of one network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The network instance, else the subnet, else the NAD.
    pub network: String,
    /// The clusters that have an interface on it.
    pub clusters: BTreeSet<String>,
    /// A subnet that more than one cluster has, or does not say otherwise.
    pub shared_subnet: Option<String>,
    /// How many workloads use it.
    pub workloads: usize,
    /// A UPF among them.
    pub upf: Option<String>,
    /// A workload that runs several pods at once.
    pub many: Option<String>,
    /// Whether a pod of it may run on more than one node.
    pub moves: bool,
    /// The external system that hands out its addresses.
    pub external: Option<String>,
    /// The IPAM types that its NADs have now.
    pub now: BTreeSet<String>,
}

impl Facts {
    /// Whether all of its NADs ask an external system.
    pub(super) fn is_external(&self) -> bool {
        self.external.is_some() && self.now.iter().all(|ipam| !OURS.contains(&ipam.as_str()))
    }
}

/// A network while it is gathered.
#[derive(Default)]
struct Found<'a> {
    facts: Facts,
    subnets: BTreeMap<Cidr, BTreeSet<&'a str>>,
    workloads: BTreeSet<(&'a str, &'a str, String)>,
}

/// The facts of every network, by name.
pub fn facts(fleet: &Fleet<'_>) -> Vec<Facts> {
    let world = World::read(&fleet.objects);
    let kept = carried::origins(&[]);
    let carried = carried::gather(&world, &kept);
    let mut names: BTreeMap<usize, String> = BTreeMap::new();
    let mut found: BTreeMap<String, Found<'_>> = BTreeMap::new();
    for one in &carried {
        let Some(nad) = one.nad else { continue };
        let (addr, subnet) = match one.what {
            Use::Address(host) => (host.addr(), host.subnet()),
            Use::Range { range, subnet } => (range.first(), subnet),
        };
        let instance = world.instances.of(one.scope, addr);
        let name = instance.map_or_else(|| subnet.to_string(), short);
        let network = found.entry(name.clone()).or_default();
        let clusters = network.subnets.entry(subnet).or_default();
        clusters.insert(&one.origin.cluster);
        names.entry(nad).or_insert(name);
    }
    for (at, nad) in world.nads.iter().enumerate() {
        let name = names.entry(at).or_insert_with(|| fallback(&world, nad));
        let network = found.entry(name.clone()).or_default();
        network.nad(nad);
        for (pod, _) in &nad.users {
            let pod = &world.pods[*pod];
            network.workload(
                pod.object,
                pod.origin,
                upf::is_upf(pod),
                is_pinned(&world, pod),
            );
        }
    }
    let mut packages: BTreeMap<(&str, &str), Vec<&Input<'_>>> = BTreeMap::new();
    for input in world.inputs.iter().filter(|i| !is_local_config(i.value)) {
        let place = (input.origin.cluster.as_str(), input.origin.package.as_str());
        packages.entry(place).or_default().push(input);
    }
    for input in world.inputs.iter().filter(|i| asks(i)) {
        let place = (input.origin.cluster.as_str(), input.origin.package.as_str());
        let beside = packages.get(&place).map_or(&[][..], Vec::as_slice);
        ask(&world, input, beside, &mut found);
    }
    found
        .into_iter()
        .map(|(name, network)| network.finish(name))
        .collect()
}

/// A NAD without an address: an external plugin's network, the instance of its Interface, else its own name.
fn fallback(world: &World<'_>, nad: &Nad<'_>) -> String {
    let ipam = nad.ipams().into_iter().next();
    let said = ipam.and_then(|ipam| {
        let keys = ["network", "subnet", "range"];
        keys.into_iter().find_map(|key| word(ipam, key))
    });
    let value = world.inputs[nad.input].value;
    let owner = annotation_of(value, annotation::OWNED_BY);
    let instance = owner.and_then(|owner| world.instances.asked_by(nad.origin, owner));
    let own = || nad.origin.object.name.clone();
    instance
        .map(short)
        .or_else(|| said.map(str::to_owned))
        .unwrap_or_else(own)
}

/// An Interface or an IPClaim of a network, outside of what a render generated.
fn asks(input: &Input<'_>) -> bool {
    let object = &input.origin.object;
    let kind = object.kind.as_str();
    let is_network = kind == "Interface"
        || (kind == "IPClaim" && input.value.pointer("/spec/kind") == Some(&"network".into()));
    is_network && annotation_of(input.value, annotation::OWNED_BY).is_none()
}

fn ask<'a>(
    world: &World<'a>,
    input: &'a Input<'a>,
    beside: &[&'a Input<'a>],
    found: &mut BTreeMap<String, Found<'a>>,
) {
    let origin = &input.origin;
    let me = format!("{}/{}", origin.object.kind, origin.object.name);
    let Some(instance) = world.instances.asked_by(origin, &me) else {
        return;
    };
    let network = found.entry(short(instance)).or_default();
    if !origin.cluster.is_empty() {
        network.facts.clusters.insert(origin.cluster.clone());
    }
    if annotation_of(input.value, annotation::IPAM_FLAVOUR) == Some("external") {
        network.facts.external = Some("an external system".to_owned());
    }
    let wanted = annotation_of(input.value, annotation::WORKLOAD);
    for other in beside {
        let here = &other.origin;
        let function = upf::is_upf_deployment(&here.object.kind, other.value);
        let template = other.value.pointer("/spec/template");
        let name = format!("{}/{}", here.object.kind, here.object.name);
        if function || (template.is_some() && wanted.is_none_or(|w| w == name)) {
            let pinned = template
                .and_then(|t| t.get("spec"))
                .is_some_and(|spec| placing::node_of(spec).is_some());
            let is_upf = function || upf::is_upf_object(other.value);
            let pinned = pinned || is_single(world, &here.cluster);
            network.workload(other.value, here, is_upf, pinned);
        }
    }
}

fn is_pinned(world: &World<'_>, pod: &crate::world::Pod<'_>) -> bool {
    placing::node_of(pod.spec()).is_some() || is_single(world, &pod.origin.cluster)
}

fn is_single(world: &World<'_>, cluster: &str) -> bool {
    let cluster = world.clusters.get(cluster);
    cluster.is_some_and(|cluster| cluster.nodes.len() == 1)
}

impl<'a> Found<'a> {
    fn nad(&mut self, nad: &Nad<'a>) {
        if !nad.origin.cluster.is_empty() {
            self.facts.clusters.insert(nad.origin.cluster.clone());
        }
        let ipam = nad.ipam();
        if ipam.is_empty() {
            return;
        }
        self.facts.now.insert(ipam.to_owned());
        if !OURS.contains(&ipam) {
            self.facts.external = Some(ipam.to_owned());
        }
    }

    fn workload(
        &mut self,
        object: &Value,
        origin: &'a crate::input::Origin,
        is_upf: bool,
        pinned: bool,
    ) {
        let name = format!("{}/{}", origin.object.kind, origin.object.name);
        let facts = &mut self.facts;
        if is_upf {
            facts.upf.get_or_insert_with(|| name.clone());
        }
        if rollout::pods(object).most > 1 {
            facts.many.get_or_insert_with(|| name.clone());
        }
        facts.moves |= !pinned;
        self.workloads
            .insert((&origin.cluster, &origin.object.namespace, name));
    }

    fn finish(self, name: String) -> Facts {
        let shared = self.subnets.iter().find(|(_, clusters)| clusters.len() > 1);
        let shared = shared.map(|(subnet, _)| subnet.to_string());
        // Before a render nothing says that the clusters have subnets of their own.
        let unsaid = self.subnets.is_empty().then(|| name.clone());
        Facts {
            network: name,
            shared_subnet: shared.or(unsaid),
            workloads: self.workloads.len(),
            ..self.facts
        }
    }
}

/// Without the namespace that everybody means.
fn short(instance: &str) -> String {
    let name = instance.strip_prefix("default/").unwrap_or(instance);
    name.to_owned()
}
