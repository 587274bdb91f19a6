//! What each interface got, for the report: read from the objects, so that it says what was written.

use std::collections::BTreeMap;

use mooring_api::annotation;
use mooring_blueprint::claim;
use mooring_blueprint::{Bundle, Object};
use serde_json::Value;

use crate::report::InterfaceReport;
use crate::steps::Outcome;

/// One row per port.
pub(crate) fn interfaces(bundle: &Bundle, outcome: &Outcome) -> Vec<InterfaceReport> {
    let Some(cluster) = &outcome.cluster else {
        return Vec::new();
    };
    if outcome.ports.is_empty() && mooring_blueprint::nephio::is_marked(bundle) {
        return crate::nephio::summary::interfaces(bundle);
    }
    let nads = bundle.objects.iter().rev();
    let nads = nads.filter(|o| o.kind() == "NetworkAttachmentDefinition");
    let nads: BTreeMap<&str, &Object> = nads.filter_map(|o| Some((o.owner()?, o))).collect();
    let row = |port: &mooring_blueprint::port::Port| {
        let answers = claim::answers(bundle, port, cluster);
        let owner = format!("{}/{}", port.object.kind, port.object.name);
        let nad = nads.get(owner.as_str()).copied();
        let (cni, on) = nad.map(plugin).unwrap_or_default();
        InterfaceReport {
            name: port.name.clone(),
            network: port
                .instance
                .as_ref()
                .map_or_else(|| "default".to_owned(), ToString::to_string),
            cni,
            on,
            addresses: answers
                .iter()
                .filter(|a| a.range.is_none())
                .map(|a| a.prefix)
                .collect(),
            ranges: answers
                .iter()
                .filter_map(|a| a.range)
                .map(|r| r.to_string())
                .collect(),
            gateways: answers.iter().filter_map(|a| a.gateway).collect(),
            vlan: claim::vlan(bundle, port),
            workload: port
                .workload
                .as_ref()
                .map(|(kind, name)| format!("{kind}/{name}")),
        }
    };
    outcome.ports.iter().map(row).collect()
}

/// The plugin of a NAD, and what the interface is on.
pub(crate) fn plugin(nad: &Object) -> (String, String) {
    let text = nad
        .value
        .pointer("/spec/config")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let config: Value = serde_json::from_str(text).unwrap_or_default();
    let first = config.pointer("/plugins/0").unwrap_or(&config);
    let said = |key: &str| {
        first
            .get(key)
            .and_then(Value::as_str)
            .map(ToOwned::to_owned)
    };
    let on = nad
        .annotation(annotation::RESOURCE_NAME)
        .map(ToOwned::to_owned)
        .or_else(|| ["master", "bridge", "device"].into_iter().find_map(said));
    (said("type").unwrap_or_default(), on.unwrap_or_default())
}
