//! Which addresses the objects carry, and for whom.
//!
//! A NAD carries addresses for its Interface (or for itself); a pod's annotation carries those in
//! `ips` for the workload's interface. An address that stands in both is one use, not two: whether that
//! works is `nad::check_selection`'s to say.

use std::collections::BTreeMap;

use mooring_api::{Code, Finding, HostCidr, annotation};
use mooring_attach::nad::{self, Use, Used};
use mooring_attach::networks;
use serde_json::Value;

use crate::input::Input;
use crate::report::Found;

/// One address or range that somebody gets.
#[derive(Clone, Debug)]
pub(crate) struct Carried<'a> {
    /// Which input.
    pub(crate) input: usize,
    /// Address or range.
    pub(crate) what: Use,
    /// Routing domain.
    pub(crate) scope: Option<&'a str>,
    /// Inside its cluster, package and namespace: who gets it.
    pub(crate) user: String,
    /// Field path of the object.
    pub(crate) field: String,
}

/// A NAD by cluster, namespace and name; several packages may bring one.
type Nads<'a> = BTreeMap<(&'a str, &'a str, &'a str), Vec<(usize, &'a str)>>;

/// Everything carried, and what is wrong with the objects themselves.
pub(crate) fn gather<'a>(inputs: &'a [Input<'_>]) -> (Vec<Carried<'a>>, Vec<Found>) {
    let mut out = (Vec::new(), Vec::new());
    let mut nads = Nads::new();
    let deployed = || {
        inputs
            .iter()
            .enumerate()
            .filter(|(_, i)| !local_config(i.value))
    };
    for (index, input) in deployed() {
        if let Some(config) = nad_config(input) {
            let object = &input.origin.object;
            let key = (
                input.origin.cluster.as_str(),
                object.namespace.as_str(),
                object.name.as_str(),
            );
            nads.entry(key).or_default().push((index, config));
            from_nad(index, input, config, &mut out);
        }
    }
    for (index, input) in deployed() {
        for (field, text) in pod_annotations(input) {
            from_pod(inputs, index, &field, text, &nads, &mut out);
        }
    }
    out
}

fn from_nad<'a>(
    index: usize,
    input: &'a Input<'_>,
    config: &str,
    (carried, found): &mut (Vec<Carried<'a>>, Vec<Found>),
) {
    let object = &input.origin.object;
    found.extend(nad::check(config).into_iter().map(|finding| Found {
        finding: finding.on(object),
        origin: input.origin.clone(),
    }));
    let owner = annotation_of(input.value, annotation::OWNED_BY);
    for Used { what, path: _ } in nad::addresses(config) {
        carried.push(Carried {
            input: index,
            what,
            scope: input.scope.as_deref(),
            user: owner.map_or_else(|| format!("nad/{}", object.name), str::to_owned),
            field: "spec.config".into(),
        });
    }
}

fn from_pod<'a>(
    inputs: &'a [Input<'_>],
    index: usize,
    field: &str,
    text: &str,
    nads: &Nads<'_>,
    (carried, found): &mut (Vec<Carried<'a>>, Vec<Found>),
) {
    let input = &inputs[index];
    let origin = &input.origin;
    let networks = match networks::parse(text) {
        Ok(networks) => networks,
        Err(error) => {
            let message = format!(
                "the networks annotation cannot be read, so the pod gets none of its interfaces: {error}"
            );
            let finding = Finding::error(Code::InvalidNetworksAnnotation, message)
                .on(&origin.object)
                .at(field)
                .help("write `namespace/name@interface, …` or a JSON list");
            let origin = origin.clone();
            return found.push(Found { finding, origin });
        }
    };
    for (place, entry) in networks.entries.iter().enumerate() {
        let namespace = entry.namespace().unwrap_or(&origin.object.namespace);
        let known = nads.get(&(origin.cluster.as_str(), namespace, entry.name()));
        let nad = known.and_then(|list| {
            let same = |(i, _): &&(usize, &str)| inputs[*i].origin.package == origin.package;
            list.iter().find(same).or(list.first())
        });
        let mut stands = Vec::new();
        if let Some((_, config)) = nad {
            stands = nad::addresses(config);
            let findings = nad::check_selection(config, entry);
            found.extend(findings.into_iter().map(|finding| Found {
                finding: finding.on(&origin.object).at(field),
                origin: origin.clone(),
            }));
        }
        let object = &origin.object;
        let user = match entry.interface() {
            Some(interface) => format!("{}/{}@{interface}", object.kind, object.name),
            None => format!("{}/{}#{place}", object.kind, object.name),
        };
        for ip in entry.ips() {
            let host = ip.parse::<HostCidr>().ok();
            let Some(host) = host.or_else(|| ip.parse().ok().map(HostCidr::single)) else {
                continue;
            };
            let same =
                |used: &Used| matches!(used.what, Use::Address(h) if h.addr() == host.addr());
            if stands.iter().any(same) {
                continue;
            }
            carried.push(Carried {
                input: index,
                what: Use::Address(host),
                scope: nad.map_or(input, |(i, _)| &inputs[*i]).scope.as_deref(),
                user: user.clone(),
                field: field.to_owned(),
            });
        }
    }
}

fn nad_config<'a>(input: &'a Input<'_>) -> Option<&'a str> {
    let object = &input.origin.object;
    let is_nad =
        object.kind == "NetworkAttachmentDefinition" && object.group() == "k8s.cni.cncf.io";
    is_nad.then(|| {
        let config = input.value.pointer("/spec/config").and_then(Value::as_str);
        config.unwrap_or_default()
    })
}

/// The networks annotations of an object, with their field paths: its own if it is a pod, else those
/// of its pod template.
fn pod_annotations<'a>(input: &'a Input<'_>) -> Vec<(String, &'a str)> {
    let places: &[&str] = match input.origin.object.kind.as_str() {
        "Pod" => &[""],
        _ => &["spec.template.", "spec.jobTemplate.spec.template."],
    };
    let mut out = Vec::new();
    for place in places {
        let mut keys = place.split_terminator('.');
        let template = keys.try_fold(input.value, |value, key| value.get(key));
        if let Some(text) = template.and_then(|t| annotation_of(t, annotation::NETWORKS)) {
            let key = annotation::NETWORKS;
            out.push((format!("{place}metadata.annotations[{key}]"), text));
        }
    }
    out
}

fn annotation_of<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value
        .get("metadata")?
        .get("annotations")?
        .get(key)?
        .as_str()
}

fn local_config(value: &Value) -> bool {
    annotation_of(value, annotation::LOCAL_CONFIG) == Some("true")
}
