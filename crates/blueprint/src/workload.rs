//! The workloads of a package: which one a port belongs to, and where its pod template is.

use mooring_api::{Code, Finding, ObjectRef, annotation};
use serde_json::Value;

use crate::bundle::{Bundle, Object};
use crate::cluster::said;

/// Kinds with a pod template, and the path of the template. A Pod is its own template.
const KINDS: [(&str, &str, &[&str]); 6] = [
    ("", "Pod", &[]),
    ("apps", "Deployment", &["spec", "template"]),
    ("apps", "StatefulSet", &["spec", "template"]),
    ("apps", "DaemonSet", &["spec", "template"]),
    ("batch", "Job", &["spec", "template"]),
    (
        "batch",
        "CronJob",
        &["spec", "jobTemplate", "spec", "template"],
    ),
];

/// Path of the pod template; None for a kind that has none.
pub fn template_path(object: &Object) -> Option<&'static [&'static str]> {
    let kind = object.kind();
    let (_, _, path) = KINDS
        .iter()
        .find(|(g, k, _)| kind == *k && object.group() == *g)?;
    Some(path)
}

/// The pod template of a workload.
pub fn template(object: &Object) -> Option<&Value> {
    template_path(object)?
        .iter()
        .try_fold(&object.value, |value, key| value.get(key))
}

/// All workloads, in document order.
pub fn all(bundle: &Bundle) -> impl Iterator<Item = &Object> {
    bundle.objects.iter().filter(|o| template_path(o).is_some())
}

/// The workload of that kind and name.
pub fn find<'a>(bundle: &'a Bundle, kind: &str, name: &str) -> Option<&'a Object> {
    let mut named = bundle.objects.named(name);
    named.find(|o| o.kind() == kind && template_path(o).is_some())
}

/// The workload of a port: the one that is named, else the only one, else none; several ask. `all` are the
/// package's workloads.
pub fn choose(
    all: &[&Object],
    named: Option<&(String, String)>,
    attachable: bool,
    port: &ObjectRef,
    findings: &mut Vec<Finding>,
) -> Option<(String, String)> {
    if !attachable {
        return None;
    }
    let names = || -> Vec<String> {
        let name = |o: &&Object| format!("{}/{}", o.kind(), o.name());
        all.iter().map(name).collect()
    };
    if let Some((kind, name)) = named {
        if !all.iter().any(|o| o.kind() == kind && o.name() == name) {
            findings.push(
                Finding::error(
                    Code::UnknownWorkload,
                    format!(
                        "there is no {kind}/{name} in the package; it has {}",
                        said(&names())
                    ),
                )
                .on(port)
                .at(format!("metadata.annotations[{}]", annotation::WORKLOAD))
                .help("Name one of these as Kind/name."),
            );
            return None;
        }
        return named.cloned();
    }
    let only = all.first()?;
    if all.len() > 1 {
        findings.push(
            Finding::error(
                Code::AmbiguousWorkload,
                format!(
                    "the package has {}; which one gets this interface?",
                    said(&names())
                ),
            )
            .on(port)
            .at("metadata.annotations")
            .help(format!(
                "Set annotation {}: {} here.",
                annotation::WORKLOAD,
                names()[0]
            )),
        );
        return None;
    }
    Some((only.kind().to_owned(), only.name().to_owned()))
}
