//! What a compilation keeps for the next one: attachments that need no second look.
//!
//! ```text
//!  its object, the Destinations that it selects, the nodes in its scope, its answers:  as then ─► its draft of then
//! ```
//!
//! Of attachments only, because those are many; all other kinds are drafted every time. Easy to get wrong: whatever a
//! draft of these kinds looks at must be among what is compared here. The `again` tests change all of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mooring_api::kinds::mooring::OperatorConfigSpec;
use mooring_api::kinds::schiff::{
    DestinationSpec, Layer2AttachmentSpec, PodNetworkSpec, VRFAttachmentSpec,
};
use mooring_api::{ObjectRef, Selector};

use super::{Context, Draft, key_of, layer2_attachment, pod_network, vrf_attachment};
use crate::form::VrfItem;
use crate::input::Object;
use crate::{Compiled, Node, Scope};

/// What the next compilation compares with, and takes over where nothing differs.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    config: Arc<OperatorConfigSpec>,
    nodes: Arc<[Node]>,
    destinations: Arc<BTreeMap<ObjectRef, Leading>>,
    ambiguous: Arc<BTreeSet<ObjectRef>>,
    layer2: Drafted<Layer2AttachmentSpec>,
    vrf: Drafted<VRFAttachmentSpec>,
    pods: Drafted<PodNetworkSpec>,
}

/// A Destination as attachments see it.
#[derive(Clone, Debug, PartialEq)]
struct Leading {
    object: Object<DestinationSpec>,
    /// Whether it can be selected at all.
    sound: bool,
    vrf: Option<VrfItem>,
}

/// Attachments of a kind by name, as they were and as they were drafted.
type Drafted<S> = Arc<BTreeMap<String, Arc<(Object<S>, Draft)>>>;

/// Drafts of all attachments, in the order of their kinds, and what the next compilation may take over.
pub(super) fn attachments(context: &Context<'_>, before: Option<&Compiled>) -> (Vec<Draft>, Kept) {
    let inputs = context.inputs;
    let (config, nodes, destinations) = seen(context, before.map(|b| &b.kept));
    let ambiguous = context.ambiguous.clone();
    let changes = before.and_then(|before| Changes::since(context, before, &destinations));
    let mut drafts = Vec::new();
    let layer2 = all(
        &inputs.layer2_attachments,
        changes.as_ref().map(|c| &c.kept.layer2),
        |object| changes.as_ref().is_some_and(|c| c.layer2(object)),
        |object| layer2_attachment::contribute(object, context),
        &mut drafts,
    );
    let vrf = all(
        &inputs.vrf_attachments,
        changes.as_ref().map(|c| &c.kept.vrf),
        |object| changes.as_ref().is_some_and(|c| c.vrf(object)),
        |object| vrf_attachment::contribute(object, context),
        &mut drafts,
    );
    let pods = all(
        &inputs.pod_networks,
        changes.as_ref().map(|c| &c.kept.pods),
        |object| changes.as_ref().is_some_and(|c| c.pods(object)),
        |object| pod_network::contribute(object, context),
        &mut drafts,
    );
    let kept = Kept {
        config,
        nodes,
        destinations,
        ambiguous: Arc::new(ambiguous),
        layer2,
        vrf,
        pods,
    };
    (drafts, kept)
}

type Surroundings = (
    Arc<OperatorConfigSpec>,
    Arc<[Node]>,
    Arc<BTreeMap<ObjectRef, Leading>>,
);

/// What attachments look at, shared with the last time where it is the same.
fn seen(context: &Context<'_>, before: Option<&Kept>) -> Surroundings {
    let inputs = context.inputs;
    let config = before.map(|b| &b.config);
    let config = config.filter(|known| ***known == inputs.config);
    let nodes = before.map(|b| &b.nodes);
    let nodes = nodes.filter(|known| known[..] == inputs.nodes[..]);
    let sound: BTreeSet<&ObjectRef> = context.fabric.destinations.iter().map(|d| &d.id).collect();
    let leading = |object: &Object<DestinationSpec>| Leading {
        sound: sound.contains(&object.id),
        vrf: context.fabric.identity(object.spec.vrf.as_str()).cloned(),
        object: object.clone(),
    };
    let all = inputs.destinations.iter();
    (
        config.map_or_else(|| Arc::new(inputs.config.clone()), Arc::clone),
        nodes.map_or_else(|| inputs.nodes.clone().into(), Arc::clone),
        Arc::new(all.map(|o| (o.id.clone(), leading(o))).collect()),
    )
}

fn all<S: Clone + PartialEq>(
    objects: &[Object<S>],
    known: Option<&Drafted<S>>,
    touched: impl Fn(&Object<S>) -> bool,
    draft: impl Fn(&Object<S>) -> Draft,
    drafts: &mut Vec<Draft>,
) -> Drafted<S> {
    let mut kept = BTreeMap::new();
    for object in objects {
        let last = known.and_then(|known| known.get(&object.id.name));
        let same = last.filter(|last| {
            let (was, drafted) = last.as_ref();
            // What is said of a bad one may be about others.
            was == object && !drafted.is_bad() && !touched(object)
        });
        let new = || Arc::new((object.clone(), draft(object)));
        let one = same.map_or_else(new, Arc::clone);
        drafts.push(one.1.clone());
        kept.insert(object.id.name.clone(), one);
    }
    Arc::new(kept)
}

/// What differs from the last compilation, as far as attachments look at it.
struct Changes<'a> {
    kept: &'a Kept,
    /// Labels of Destinations that came, went or differ, as they were and as they are.
    destinations: Vec<&'a BTreeMap<String, String>>,
    /// Nodes that came, went or differ, as they were and as they are.
    nodes: Vec<&'a Node>,
    /// Consumers that are routed by source now and were not, or the other way round.
    ambiguous: BTreeSet<&'a ObjectRef>,
    answers: BTreeSet<&'a str>,
    label: &'a str,
}

impl<'a> Changes<'a> {
    /// Nothing where everything may differ.
    fn since(
        context: &'a Context<'_>,
        before: &'a Compiled,
        destinations: &'a BTreeMap<ObjectRef, Leading>,
    ) -> Option<Self> {
        let (inputs, kept) = (context.inputs, &before.kept);
        let nobody = kept.nodes.is_empty() != inputs.nodes.is_empty();
        if *kept.config != inputs.config || nobody {
            return None;
        }
        let differ = |ours: &BTreeMap<ObjectRef, Leading>, (id, one): (&ObjectRef, &Leading)| {
            ours.get(id) != Some(one)
        };
        let gone = kept.destinations.iter();
        let gone = gone.filter(|pair| differ(destinations, *pair));
        let come = destinations.iter();
        let come = come.filter(|pair| differ(&kept.destinations, *pair));
        let selected = gone.chain(come).map(|(_, d)| &d.object.labels);
        Some(Self {
            kept,
            destinations: selected.collect(),
            nodes: differing(&kept.nodes, &inputs.nodes),
            ambiguous: kept
                .ambiguous
                .symmetric_difference(&context.ambiguous)
                .collect(),
            answers: before.given.differing(context.answers),
            label: &inputs.config.worker_group_label,
        })
    }

    fn leads(&self, selector: &Selector) -> bool {
        self.destinations
            .iter()
            .any(|labels| selector.matches(labels))
    }

    fn reaches(&self, groups: &[String], selector: Option<&Selector>) -> bool {
        if self.nodes.is_empty() {
            return false;
        }
        let scope = Scope::of_groups(self.label, groups).and(&Scope::of(selector));
        self.nodes.iter().any(|node| scope.matches(&node.labels))
    }

    fn layer2(&self, object: &Object<Layer2AttachmentSpec>) -> bool {
        let spec = &object.spec;
        spec.destinations.as_ref().is_some_and(|s| self.leads(s))
            || self.reaches(&spec.worker_groups, spec.node_selector.as_ref())
    }

    fn vrf(&self, object: &Object<VRFAttachmentSpec>) -> bool {
        let spec = &object.spec;
        let mut addresses = self.nodes.iter().flat_map(|node| &node.addresses);
        let own = format!("{}/", key_of(&object.id));
        let mut answers = self.answers.range(own.as_str()..);
        self.leads(&spec.destinations)
            || self.reaches(&spec.worker_groups, spec.node_selector.as_ref())
            || self.ambiguous.contains(&object.id)
            || answers.next().is_some_and(|key| key.starts_with(&own))
            || addresses.any(|addr| spec.network.subnets().any(|s| s.contains(*addr)))
    }

    fn pods(&self, object: &Object<PodNetworkSpec>) -> bool {
        let spec = &object.spec;
        self.leads(&spec.destinations)
            || self.reaches(&spec.worker_groups, spec.node_selector.as_ref())
            || self.ambiguous.contains(&object.id)
    }
}

/// Nodes of two lists, each sorted by name, that the other one does not have as they are.
fn differing<'a>(was: &'a [Node], is: &'a [Node]) -> Vec<&'a Node> {
    let (mut was, mut is) = (was.iter().peekable(), is.iter().peekable());
    let mut found = Vec::new();
    loop {
        match (was.peek(), is.peek()) {
            (None, None) => return found,
            (Some(one), Some(other)) if one == other => {
                was.next();
                is.next();
            }
            (one, other) => {
                let (one, other) = (one.map(|n| &n.name), other.map(|n| &n.name));
                let old = other.is_none() || one.is_some_and(|one| Some(one) <= other);
                let new = one.is_none() || other.is_some_and(|other| Some(other) <= one);
                found.extend(was.next_if(|_| old));
                found.extend(is.next_if(|_| new));
            }
        }
    }
}
