//! Statuses and gauges of pools, and an Event where something new is wrong. Only where it differs.

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use mooring_api::ObjectRef;
use serde_json::{Map, Value, json};

use super::super::known::object;
use super::super::status::{is_same, ready_of, status};
use super::super::view::{Shelf, View, reference};
use super::decide::{Fill, Rows};
use crate::error::Error;
use crate::metrics::{Pass, PoolLabels};

/// The fields of a status that are ours beside the condition.
const KEYS: [&str; 4] = ["size", "used", "reserved", "free"];

pub(super) async fn report(view: &View, rows: &Rows) -> Result<(), Error> {
    gauges(view, rows);
    standing(view);
    for shelf in view.shelves.iter().filter(|s| s.what().is_pool()) {
        for object in shelf.store.state() {
            if object.metadata.deletion_timestamp.is_some() {
                continue;
            }
            if view.living.is_ours(&object.metadata) {
                one(view, shelf, &object, rows).await?;
                let (on, definition) =
                    (reference(&object, &shelf.served), shelf.served.definition());
                view.living
                    .tell_missing(&view.world, &definition, &on)
                    .await;
            } else {
                let on = reference(&object, &shelf.served);
                view.living.tell_ignored(&view.world, &on).await;
            }
        }
    }
    Ok(())
}

fn gauges(view: &View, rows: &Rows) {
    let metrics = &view.world.metrics;
    // Pools that are gone must not stay: there is no way to see which they are.
    metrics.leave_pools();
    for (instance, pool, fill) in &rows.gauges {
        let labels = PoolLabels {
            instance: instance.to_string(),
            pool: pool.clone(),
        };
        metrics.pool_fill.get_or_create(&labels).set(fill.ratio());
        #[expect(clippy::cast_precision_loss, reason = "a gauge is a rough number")]
        metrics
            .pool_free
            .get_or_create(&labels)
            .set(fill.free as f64);
    }
}

/// What stands on pools and claims, by their own words: whatever we said last, or a leader before us.
fn standing(view: &View) {
    let all: Vec<_> = view
        .shelves
        .iter()
        .flat_map(|shelf| {
            let kind = shelf.what().kind();
            shelf.store.state().into_iter().map(move |o| (kind, o))
        })
        .collect();
    let refused = all.iter().filter_map(|(kind, object)| {
        let ready = ready_of(object.data.get("status")?)?;
        let reason = ready["reason"].as_str()?;
        (ready["status"] == "False").then_some((*kind, reason))
    });
    view.world.metrics.stand(view.world.role.name(), refused);
}

async fn one(view: &View, shelf: &Shelf, of: &DynamicObject, rows: &Rows) -> Result<(), Error> {
    let kind = shelf.what().kind();
    let (namespace, name) = (of.namespace().unwrap_or_default(), of.name_any());
    let reference_of: ObjectRef = object(of).reference();
    let fill = rows.fills.get(&(kind, namespace.clone(), name.clone()));
    let mut says = fill.map(|fill| says(*fill)).unwrap_or_default();
    view.living
        .schemas
        .prune(&shelf.served.definition(), &mut says);
    let verdict = rows.verdict(&reference_of);
    let before = of.data.get("status");
    let now = view.world.now();
    let wanted = status(says, &verdict, of.metadata.generation, before, now);
    if is_same(before, &wanted, &KEYS) {
        return Ok(());
    }
    let said = before.and_then(ready_of).and_then(|c| c["reason"].as_str());
    let news = said != Some(verdict.reason) && verdict.reason != "Ready";
    let resource = &shelf.served.resource;
    let patch = json!({
        "apiVersion": resource.api_version, "kind": resource.kind,
        "metadata": { "name": name, "namespace": namespace },
        "status": wanted,
    });
    let api = view.api(&shelf.served, &namespace);
    let written = view
        .world
        .apply_status(&api, &name, &patch, "write a pool's status");
    let _: DynamicObject = written.await?;
    view.world.metrics.wrote(kind);
    if news {
        let pass = Pass {
            kind,
            outcome: verdict.reason,
        };
        view.world.metrics.findings.get_or_create(&pass).inc();
        let on = reference(of, &shelf.served);
        view.world
            .tell(&on, true, verdict.reason, &verdict.message)
            .await;
    }
    Ok(())
}

fn says(fill: Fill) -> Map<String, Value> {
    let numbers = [fill.size, fill.used, fill.reserved, fill.free];
    let numbers = numbers.map(|n| json!(n.to_string()));
    KEYS.map(str::to_owned).into_iter().zip(numbers).collect()
}
