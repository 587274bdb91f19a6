//! What statuses say: the fields of the seed, and the two conditions that compiling decides.
//!
//! Whether something was rolled out or the platform is ready is not known here; the controller adds that.

use std::collections::BTreeMap;

use mooring_api::kinds::StatusCondition;
use mooring_api::kinds::schiff::{DestinationSpec, DestinationStatus};
use mooring_api::{Code, Finding, ObjectRef, Selector, Status};
use serde::Serialize;
use serde_json::{Value, json};

use crate::compile::{Context, Draft};
use crate::input::Object;

/// Kinds of the group that have a status to write.
const KINDS: [&str; 9] = [
    "Destination",
    "Layer2Attachment",
    "VRFAttachment",
    "BGPNeighbor",
    "PodNetwork",
    "Collector",
    "TrafficMirror",
    "MirrorTarget",
    "MirrorSelector",
];

/// Findings that say that something named or selected is not there.
const UNRESOLVED: [Code; 6] = [
    Code::NoDestinationMatched,
    Code::ReferenceNotFound,
    Code::VNIUnresolved,
    Code::NoLoopback,
    Code::ConnectionNotAllowed,
    Code::TransferRangeMissing,
];

/// A status as a value.
pub(crate) fn value<T: Serialize>(status: &T) -> Value {
    serde_json::to_value(status).expect("keys are text")
}

/// The status of every object that has one.
pub(crate) fn statuses(context: &Context<'_>, drafts: &[Draft]) -> BTreeMap<ObjectRef, Value> {
    let mut statuses = BTreeMap::new();
    // Most have nothing to say.
    let good = value(&conditions(&[]));
    for draft in drafts {
        let id = draft.id();
        if !KINDS.contains(&id.kind.as_str()) {
            continue;
        }
        let destinations = context.inputs.destinations.iter();
        let mut own = destinations.filter(|d| id.kind == "Destination" && d.id == *id);
        let mut status = match own.next() {
            Some(destination) => value(&of_destination(context, destination)),
            _ => match &draft.contribution.status {
                Value::Null => json!({}),
                said => said.clone(),
            },
        };
        status["conditions"] = if draft.is_bad() {
            value(&conditions(&draft.findings))
        } else {
            good.clone()
        };
        statuses.insert(id.clone(), status);
    }
    statuses
}

fn of_destination(context: &Context<'_>, object: &Object<DestinationSpec>) -> DestinationStatus {
    let identity = context.fabric.identity(object.spec.vrf.as_str());
    DestinationStatus {
        reference_count: references(context, object),
        vni: identity.map(|i| i.vni),
        route_target: identity.map(|i| i.route_target.clone()),
        conditions: Vec::new(),
    }
}

/// Attachments and connections that select it, and Collectors that name it.
fn references(context: &Context<'_>, object: &Object<DestinationSpec>) -> u32 {
    let inputs = context.inputs;
    let selects = |s: &Selector| s.matches(&object.labels);
    let mut count = 0;
    let layer2 = inputs.layer2_attachments.iter();
    count += layer2
        .filter(|a| a.spec.destinations.as_ref().is_some_and(selects))
        .count();
    for attachment in inputs
        .vrf_attachments
        .iter()
        .filter(|a| selects(&a.spec.destinations))
    {
        let connections = attachment.spec.connections.iter();
        let narrowed = connections.filter(|c| c.destinations.as_ref().is_some_and(selects));
        count += 1 + narrowed.count();
    }
    let pods = inputs.pod_networks.iter();
    count += pods.filter(|p| selects(&p.spec.destinations)).count();
    let collectors = inputs.collectors.iter();
    count += collectors
        .filter(|c| c.spec.mirror_destination.name == object.id.name)
        .count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn conditions(findings: &[Finding]) -> Vec<StatusCondition> {
    let wrong = |f: &&Finding| f.is_error();
    let unresolved = |f: &&Finding| f.is_error() && UNRESOLVED.contains(&f.code);
    vec![
        condition("Resolved", findings.iter().find(unresolved), "AllResolved"),
        condition("Compiled", findings.iter().find(wrong), "Compiled"),
    ]
}

fn condition(kind: &str, wrong: Option<&Finding>, good: &str) -> StatusCondition {
    let (status, reason, message) = match wrong {
        Some(finding) => (
            Status::False,
            finding.code.as_str(),
            finding.message.as_str(),
        ),
        None => (Status::True, good, ""),
    };
    StatusCondition {
        kind: kind.to_owned(),
        status,
        reason: reason.to_owned(),
        message: message.to_owned(),
        last_transition_time: None,
        observed_generation: None,
    }
}
