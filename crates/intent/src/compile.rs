//! From inputs and answers to everything that follows from them.
//!
//! ```text
//!  each object ─► Draft: a Contribution, or what is wrong with it      one file per kind below
//!  settle        conflicts and budgets: losers go, or go back to their last good form, until nobody loses
//!  assemble      the form, the revision, every node, platform objects, statuses
//! ```
//!
//! Easy to get wrong: a draft never looks at another draft, only at other objects' specs. So the order of objects
//! cannot matter before `settle`, where age decides and nothing else.

mod bgp_neighbor;
mod collector;
mod context;
mod draft;
mod keep;
mod layer2_attachment;
mod low_level;
mod pod_network;
mod settle;
mod traffic_mirror;
mod vrf_attachment;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use mooring_api::kinds::mooring::CompiledRevision;
use mooring_api::kinds::schiff::NetworkConfigRevision;
use mooring_api::{Cidr, Code, Family, Finding, ObjectRef};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::answers::{Answers, Want};
use crate::form::Item;
use crate::node::{self, NodeConfig};
use crate::platform::AllowedNad;
use crate::{Form, Inputs, Scope, revision, status};
pub(crate) use collector::loopback_key;
pub(crate) use context::{Context, Nodes};
pub(crate) use draft::Draft;
pub(crate) use settle::over_budget;

/// One item of an object, with the field and the rule that put it there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Placed {
    /// On which nodes.
    pub scope: Scope,
    /// What.
    pub item: Item,
    /// The field that asked for it.
    pub field: String,
    /// The rule that made it.
    pub rule: String,
}

/// Everything that one object puts into the network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Contribution {
    /// The object.
    pub object: ObjectRef,
    /// What it puts into the form.
    pub items: Vec<Placed>,
    /// Subnets that are its own in a VRF, or without one in the platform's pools; who says the same third part shares.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subnets: Vec<(String, Cidr, String)>,
    /// Objects of the platform.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub platform: Vec<Value>,
    /// NetworkAttachmentDefinitions that it allows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nads: Vec<AllowedNad>,
    /// What its status says beside conditions.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub status: Value,
}

/// What ran before: the last good form of every object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<Contribution>", into = "Vec<Contribution>")]
pub struct Prior(BTreeMap<ObjectRef, Arc<Contribution>>);

impl Prior {
    /// Of contributions.
    pub fn new(contributions: Vec<Arc<Contribution>>) -> Self {
        let all = contributions.into_iter();
        Self(all.map(|c| (c.object.clone(), c)).collect())
    }

    /// All of them, by object.
    pub fn iter(&self) -> impl Iterator<Item = &Contribution> {
        self.0.values().map(AsRef::as_ref)
    }

    /// That of an object.
    pub fn of(&self, object: &ObjectRef) -> Option<&Contribution> {
        self.shared(object).map(AsRef::as_ref)
    }

    pub(crate) fn shared(&self, object: &ObjectRef) -> Option<&Arc<Contribution>> {
        self.0.get(object)
    }
}

impl From<Vec<Contribution>> for Prior {
    fn from(contributions: Vec<Contribution>) -> Self {
        Self::new(contributions.into_iter().map(Arc::new).collect())
    }
}

impl From<Prior> for Vec<Contribution> {
    fn from(prior: Prior) -> Self {
        let all = prior.0.into_values();
        all.map(Arc::unwrap_or_clone).collect()
    }
}

/// What a compilation gives.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The form.
    pub form: Form,
    /// Its digest; the name of the revision is its beginning.
    pub digest: String,
    /// Who put what there: the next compilation's [`Prior`].
    pub contributions: Vec<Arc<Contribution>>,
    /// Every node by name.
    pub nodes: BTreeMap<String, NodeConfig>,
    /// MetalLB, Coil, Calico, SR-IOV and Cluster API IPAM objects.
    pub platform: Vec<Value>,
    /// NetworkAttachmentDefinitions that are allowed.
    pub nads: Vec<AllowedNad>,
    /// The status of every object that was compiled or set aside.
    pub statuses: BTreeMap<ObjectRef, Value>,
    /// Objects that run in their last good form: nothing that they hold may be released.
    pub frozen: BTreeSet<ObjectRef>,
    /// What people should know, by object.
    pub findings: Vec<Finding>,
    /// What nodes were told by: the next compilation looks at what differs.
    pub(crate) given: Answers,
    /// What it takes over where nothing differs.
    pub(crate) kept: keep::Kept,
}

impl Compiled {
    /// The published revision.
    pub fn revision(&self) -> NetworkConfigRevision {
        revision::revision(&self.form, &self.digest)
    }

    /// Ours, in as many parts as it needs.
    pub fn compiled_revisions(&self) -> Vec<CompiledRevision> {
        revision::compiled(&self.contributions, &self.nodes, &self.digest)
    }

    /// Who put each part of the form there: path, and `Kind/name field: rule (scope)` of each origin.
    pub fn provenance(&self) -> BTreeMap<String, BTreeSet<String>> {
        revision::provenance(&self.contributions)
    }

    /// The low-level objects that say what the published lists say. Local VRFs by prefix, transfer networks and
    /// loopbacks are not among it.
    pub fn low_level(&self) -> Vec<Value> {
        revision::low_level(&self.revision().spec)
    }
}

/// Compiles.
pub fn compile(inputs: &Inputs, answers: &Answers, prior: &Prior) -> Compiled {
    run(inputs, answers, prior, None)
}

/// Compiles again. The result is that of [`compile()`], byte for byte; `before` only saves work on attachments
/// and nodes about which nothing differs.
pub fn recompile(before: &Compiled, inputs: &Inputs, answers: &Answers, prior: &Prior) -> Compiled {
    run(inputs, answers, prior, Some(before))
}

/// The form alone, for those who only compare.
pub(crate) fn form(inputs: &Inputs) -> Form {
    let (answers, prior) = (inputs.claimed.clone(), Prior::default());
    let context = Context::new(inputs, &answers, &prior);
    let drafts = settle::settle(&context, drafts(&context, None).0);
    let placed = drafts.iter().flat_map(|d| &d.contribution.items);
    Form::new(placed.map(|p| (&p.scope, &p.item)))
}

fn run(inputs: &Inputs, answers: &Answers, prior: &Prior, before: Option<&Compiled>) -> Compiled {
    let answers = answers.and(&inputs.claimed);
    let context = Context::new(inputs, &answers, prior);
    let (drafts, kept) = drafts(&context, before);
    let settled = settle::settle(&context, drafts);
    assemble(&context, settled, kept, before)
}

/// Every object by itself, those that are wrong alone aside: what the conflict engine compares.
pub(crate) fn compared(context: &Context<'_>) -> Vec<Draft> {
    let mut drafts = drafts(context, None).0;
    settle::aside(context, &mut drafts);
    drafts
}

/// The first host of a subnet; both addresses of a /31 or /127 are hosts.
pub(crate) fn gateway(subnet: Cidr) -> Option<IpAddr> {
    (subnet.prefix_len() < subnet.family().bits()).then(|| subnet.hosts().first())
}

/// Whole seconds, as agents and statuses write them.
pub(crate) fn seconds(span: Option<mooring_api::Span>) -> Option<String> {
    span.map(|s| format!("{}s", s.0))
}

/// The AS of workloads: written, or the platform's.
pub(crate) fn workload_as(
    context: &Context<'_>,
    written: &str,
    draft: &mut Draft,
    field: &str,
) -> Option<u32> {
    if !written.is_empty() {
        if let Ok(number) = written.parse() {
            return Some(number);
        }
        let message = format!("{field} is {written}, which is more than an AS number can be");
        draft.error(Code::InvalidField, field, message, "write 1 to 4294967295");
        return None;
    }
    let default = context.inputs.config.default_workload_as;
    if default.is_none() {
        draft.error(
            Code::AsNumberMissing,
            field,
            "no AS for the workloads is known".to_owned(),
            "write it here, or defaultWorkloadAS in the OperatorConfig",
        );
    }
    default
}

/// Timers that would flap, or that BGP refuses.
pub(crate) fn timers(
    draft: &mut Draft,
    field: &str,
    hold: Option<mooring_api::Span>,
    keepalive: Option<mooring_api::Span>,
) {
    if let Some(hold) = hold.filter(|h| h.0 == 1 || h.0 == 2 || h.0 > 65535) {
        let at = format!("{field}.holdTime");
        let message = format!("{at} is {}s; BGP takes 0 or 3 to 65535", hold.0);
        draft.error(Code::InvalidField, &at, message, "write 3s or more");
    }
    if let (Some(hold), Some(keepalive)) = (hold, keepalive)
        && keepalive.0 * 3 > hold.0
        && hold.0 > 0
    {
        let at = format!("{field}.keepaliveTime");
        let message = format!("{at} is more than a third of holdTime");
        draft.warn(
            Code::InvalidField,
            &at,
            message,
            "a lost packet would end the session; write a third or less",
        );
    }
}

/// The key of a node's answer.
pub(crate) fn node_key(key: &str, node: &str) -> String {
    format!("{key}/node/{node}")
}

/// The node whose answer a key is.
pub(crate) fn node_of(key: &str) -> Option<&str> {
    key.rsplit_once("/node/").map(|(_, node)| node)
}

/// `Kind/name`, lower case: the beginning of keys.
pub(crate) fn key_of(id: &ObjectRef) -> String {
    format!("{}/{}", id.kind.to_lowercase(), id.name)
}

/// The key of a subnet's answers within another key.
pub(crate) fn family_key(key: &str, family: Family) -> String {
    format!("{key}/{family}")
}

/// Every object by itself, and what the next compilation may take over.
fn drafts(context: &Context<'_>, before: Option<&Compiled>) -> (Vec<Draft>, keep::Kept) {
    let inputs = context.inputs;
    let mut drafts = Vec::new();
    for object in &inputs.destinations {
        let mut draft = Draft::new(object);
        if let Some(found) = context.fabric.findings.get(&object.id) {
            draft.findings.extend(found.iter().cloned());
        } else if context.fabric.identity(object.spec.vrf.as_str()).is_none() {
            let message = format!("VRF {} has no VNI and route target", object.spec.vrf);
            draft.error(
                Code::VNIUnresolved,
                "spec.vni",
                message,
                "write vni and routeTarget, or add the VRF to the OperatorConfig",
            );
        }
        collector::loopbacks_of(&mut draft, object, context);
        drafts.push(draft);
    }
    drafts.extend(low_level::contribute(context));
    let (attachments, kept) = keep::attachments(context, before);
    drafts.extend(attachments);
    let neighbors = inputs.bgp_neighbors.iter();
    drafts.extend(neighbors.map(|o| bgp_neighbor::contribute(o, context)));
    let collectors = inputs.collectors.iter();
    drafts.extend(collectors.map(|o| collector::contribute(o, context)));
    let mirrors = inputs.traffic_mirrors.iter();
    drafts.extend(mirrors.map(|o| traffic_mirror::contribute(o, context)));
    for (id, findings) in &inputs.bad {
        let mut draft = Draft::of(id.clone(), None);
        draft.findings.clone_from(findings);
        drafts.push(draft);
    }
    (drafts, kept)
}

/// What the inputs need, by kind.
pub(crate) fn wants(context: &Context<'_>) -> Vec<Want> {
    let inputs = context.inputs;
    let mut wants = wants_of_connections(context);
    for object in &inputs.layer2_attachments {
        layer2_attachment::wants(object, context, &mut wants);
    }
    for object in &inputs.bgp_neighbors {
        bgp_neighbor::wants(object, context, &mut wants);
    }
    collector::wants(context, &mut wants);
    wants
}

/// What connections need. Their objects of the platform have names that others may have too.
pub(crate) fn wants_of_connections(context: &Context<'_>) -> Vec<Want> {
    let mut wants = Vec::new();
    for object in &context.inputs.vrf_attachments {
        vrf_attachment::wants(object, context, &mut wants);
    }
    wants
}

fn assemble(
    context: &Context<'_>,
    drafts: Vec<Draft>,
    kept: keep::Kept,
    before: Option<&Compiled>,
) -> Compiled {
    let statuses = status::statuses(context, &drafts);
    let mut findings: Vec<Finding> = Vec::new();
    let mut contributions: Vec<Arc<Contribution>> = Vec::new();
    for draft in drafts {
        findings.extend(draft.findings);
        let nothing = draft.contribution.items.is_empty()
            && draft.contribution.platform.is_empty()
            && draft.contribution.nads.is_empty();
        if !nothing {
            contributions.push(draft.contribution.into());
        }
    }
    findings.sort_by(|a, b| {
        let key = |f: &Finding| (f.severity, f.object.clone(), f.field.clone());
        (key(a), &a.message).cmp(&(key(b), &b.message))
    });
    let frozen = findings.iter().filter(|f| f.code == Code::Frozen);
    let frozen = frozen.filter_map(|f| f.object.clone()).collect();
    contributions.sort_by(|a, b| a.object.cmp(&b.object));
    let placed = contributions.iter().flat_map(|c| &c.items);
    let form = Form::new(placed.map(|p| (&p.scope, &p.item)));
    let digest = form.digest();
    let nodes = node::nodes(context, &form, before);
    let platform = contributions.iter().flat_map(|c| c.platform.clone());
    let platform = crate::platform::merged(platform.collect());
    let mut nads: Vec<_> = contributions.iter().flat_map(|c| c.nads.clone()).collect();
    nads.sort();
    nads.dedup();
    Compiled {
        form,
        digest,
        contributions,
        nodes,
        platform,
        nads,
        statuses,
        frozen,
        findings,
        given: context.answers.clone(),
        kept,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gateway_is_the_first_host() {
        let rows = [
            ("10.0.1.0/24", Some("10.0.1.1")),
            ("198.51.100.224/27", Some("198.51.100.225")),
            ("2001:db8::/64", Some("2001:db8::1")),
            ("10.0.0.0/31", Some("10.0.0.0")),
            ("2001:db8::/127", Some("2001:db8::")),
            ("10.0.0.7/32", None),
            ("2001:db8::7/128", None),
        ];
        for (subnet, wanted) in rows {
            let found = gateway(subnet.parse().unwrap()).map(|a| a.to_string());
            assert_eq!(found.as_deref(), wanted, "{subnet}");
        }
    }
}
