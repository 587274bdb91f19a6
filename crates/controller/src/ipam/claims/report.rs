//! The status of a claim, and an Event where something new is wrong. From what was applied, and only where it differs.

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use mooring_api::Code;
use serde_json::{Value, json};

use super::super::status::{Verdict, is_same, ready_of, status};
use super::super::view::{View, reference};
use super::apply::Applied;
use super::gather::Gathered;
use crate::error::Error;
use crate::metrics::Pass;

/// The fields of a status that are ours beside the condition.
const KEYS: [&str; 3] = ["prefix", "gateway", "vlanID"];

pub(super) async fn report(
    view: &View,
    gathered: &Gathered,
    object: &DynamicObject,
    applied: &Applied,
) -> Result<(), Error> {
    let shelf = &view.shelves[gathered.nth];
    let kind = shelf.what().kind();
    let claim = &gathered.asked_by;
    view.waits(gathered.nth, &claim.namespace, &claim.name, applied.waits);
    if applied.again.is_some() {
        return Ok(());
    }
    let verdict = match (&applied.refused, &applied.lease) {
        (Some(finding), _) => Verdict {
            ready: false,
            reason: finding.code.as_str(),
            message: join(&finding.message, &finding.help),
        },
        (None, lease) => Verdict {
            ready: true,
            reason: "Ready",
            message: lease
                .as_ref()
                .map(|l| l.thing.to_string())
                .unwrap_or_default(),
        },
    };
    let before = object.data.get("status");
    let now = view.world.now();
    let generation = object.metadata.generation;
    let wanted = status(applied.says.clone(), &verdict, generation, before, now);
    let said = before.and_then(ready_of).and_then(|c| c["reason"].as_str());
    let news = said != Some(verdict.reason);
    if !is_same(before, &wanted, &KEYS) {
        let patch = patch(object, gathered, Value::Object(wanted));
        let api = view.api(&shelf.served, &claim.namespace);
        let name = object.name_any();
        let written = view
            .world
            .apply_status(&api, &name, &patch, "write a claim's status");
        let _: DynamicObject = written.await?;
        view.world.metrics.wrote(kind);
    }
    let on = reference(object, &shelf.served);
    if let (Some(finding), true) = (&applied.refused, news) {
        let pass = Pass {
            kind,
            outcome: finding.code.as_str(),
        };
        view.world.metrics.findings.get_or_create(&pass).inc();
        view.world
            .tell(&on, true, verdict.reason, &verdict.message)
            .await;
    }
    if let (Some(from), Some(lease)) = (&applied.moved_from, &applied.lease) {
        let note = format!("{from} cannot be kept; it is {} now", lease.thing);
        view.world
            .tell(&on, true, Code::AddressNotKept.as_str(), &note)
            .await;
    }
    Ok(())
}

/// A sentence, and what to do about it.
pub(in crate::ipam) fn join(message: &str, help: &str) -> String {
    if help.is_empty() {
        return message.to_owned();
    }
    let message = message.trim_end_matches('.');
    format!("{message}. {help}")
}

fn patch(object: &DynamicObject, gathered: &Gathered, status: Value) -> Value {
    json!({
        "apiVersion": gathered.asked_by.api_version,
        "kind": gathered.asked_by.kind,
        "metadata": { "name": object.name_any(), "namespace": gathered.asked_by.namespace },
        "status": status,
    })
}
