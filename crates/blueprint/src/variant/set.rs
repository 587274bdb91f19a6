//! A set becomes variants: its targets are looked up, each gets the template.

use std::fmt::Write as _;

use mooring_api::kinds::porch::{
    Downstream, PackageVariantSetSpec, PackageVariantSpec, Target, Upstream,
};
use mooring_api::{Code, Finding, ObjectRef, Selector};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::template::{Evaluator, Inputs};
use super::{Blueprint, Offers, REPOSITORY, Variant, few, namespace};
use crate::bundle::Object;

/// Names of variants are names of objects.
const LONGEST: usize = 63;

/// A target that was looked up: what the variant is called by default, and what expressions may know of it.
struct Found<'a> {
    repo: &'a str,
    package: &'a str,
    target: Value,
}

/// The variants of a set.
pub(super) fn unroll(
    set: &Object,
    offers: &Offers<'_>,
    blueprint: Blueprint<'_>,
    findings: &mut Vec<Finding>,
) -> Vec<Variant> {
    let spec: PackageVariantSetSpec = match set.spec() {
        Ok(spec) => spec,
        Err(finding) => {
            findings.push(finding);
            return Vec::new();
        }
    };
    let origin = set.reference();
    let here = namespace(set);
    let upstream = upstream_value(&spec.upstream, here, blueprint);
    let mut evaluator = Evaluator::new(&origin);
    let mut variants = Vec::new();
    for (nth, target) in spec.targets.iter().enumerate() {
        let at = format!("spec.targets[{nth}]");
        let candidates = match &target.object_selector {
            Some(selector) => offers.all(here, &selector.api_version, &selector.kind),
            None => offers.all(here, REPOSITORY.0, REPOSITORY.1),
        };
        let found = find(target, &spec.upstream, candidates);
        if found.is_empty() {
            findings.push(nothing(target, candidates, &origin, &at));
        }
        for found in found {
            let mut wanted = PackageVariantSpec {
                upstream: spec.upstream.clone(),
                downstream: Downstream {
                    repo: found.repo.to_owned(),
                    package: found.package.to_owned(),
                },
                ..PackageVariantSpec::default()
            };
            let mut place = at.clone();
            if let Some(template) = &target.template {
                let inputs = Inputs {
                    repo: found.repo,
                    package: found.package,
                    upstream: &upstream,
                    target: &found.target,
                    offers,
                    namespace: here,
                    at: format!("{at}.template"),
                };
                if template.downstream.is_some() {
                    place = format!("{at}.template.downstream");
                }
                if !evaluator.fill(&mut wanted, template, &inputs) {
                    continue;
                }
            }
            variants.push(Variant {
                name: name(set.name(), &wanted.downstream),
                namespace: here.to_owned(),
                spec: wanted,
                origin: origin.clone(),
                place,
            });
        }
    }
    findings.extend(evaluator.findings);
    variants
}

fn find<'a>(
    target: &'a Target,
    upstream: &'a Upstream,
    candidates: &[&'a Object],
) -> Vec<Found<'a>> {
    if let Some(repositories) = &target.repositories {
        let mut found = Vec::new();
        for repository in repositories {
            let names = match repository.package_names.as_slice() {
                [] => std::slice::from_ref(&upstream.package),
                names => names,
            };
            found.extend(names.iter().map(|package| Found {
                repo: &repository.name,
                package,
                target: json!({ "repo": repository.name, "package": package }),
            }));
        }
        return found;
    }
    let selected = candidates.iter().filter(|object| selects(target, object));
    selected
        .map(|object| Found {
            repo: object.name(),
            package: &upstream.package,
            target: about(object),
        })
        .collect()
}

/// Whether a target's selector means this object, which is of its kind.
fn selects(target: &Target, object: &Object) -> bool {
    if let Some(selector) = &target.repository_selector {
        return selector.matches(&object.labels());
    }
    let Some(wanted) = &target.object_selector else {
        return false;
    };
    let labels = Selector {
        match_labels: wanted.match_labels.clone(),
        match_expressions: wanted.match_expressions.clone(),
    };
    let named = wanted
        .name
        .as_deref()
        .is_none_or(|name| name == object.name());
    named && labels.matches(&object.labels())
}

/// What an expression may know of an object.
pub(super) fn about(object: &Object) -> Value {
    let map = |key: &str| {
        let map = object.value.pointer(&format!("/metadata/{key}"));
        map.filter(|m| m.is_object())
            .cloned()
            .unwrap_or_else(|| json!({}))
    };
    json!({
        "name": object.name(),
        "namespace": namespace(object),
        "labels": map("labels"),
        "annotations": map("annotations"),
    })
}

/// What an expression may know of the blueprint: it is called as Porch calls the revision, and has the labels
/// and annotations of its Kptfile.
fn upstream_value(upstream: &Upstream, namespace: &str, blueprint: Blueprint<'_>) -> Value {
    let kptfile = Object {
        value: blueprint(upstream).unwrap_or_default(),
        source: None,
    };
    let mut value = about(&kptfile);
    let revision = upstream
        .revision
        .filter(|r| *r > 0)
        .map(|r| format!("v{r}"));
    let version = upstream.workspace_name.clone().or(revision);
    let package = upstream.package.replace('/', ".");
    value["name"] = json!(format!(
        "{}.{package}.{}",
        upstream.repo,
        version.as_deref().unwrap_or("main")
    ));
    value["namespace"] = json!(namespace);
    value
}

fn name(set: &str, downstream: &Downstream) -> String {
    let package = downstream.package.replace('/', "-");
    let name = format!("{set}-{}-{package}", downstream.repo);
    if name.len() <= LONGEST {
        return name;
    }
    let mut end = String::new();
    for byte in &Sha256::digest(&name)[..4] {
        let _ = write!(end, "{byte:02x}");
    }
    let mut keep = LONGEST - end.len() - 1;
    while !name.is_char_boundary(keep) {
        keep -= 1;
    }
    format!("{}-{end}", &name[..keep])
}

fn nothing(target: &Target, candidates: &[&Object], origin: &ObjectRef, at: &str) -> Finding {
    let (kind, field) = match &target.object_selector {
        Some(selector) => (selector.kind.as_str(), "objectSelector"),
        None => ("Repository", "repositorySelector"),
    };
    let known: Vec<String> = candidates.iter().map(|o| o.name().to_owned()).collect();
    Finding::warning(
        Code::NothingSelected,
        format!(
            "this selects nothing; of kind {kind} there are {}",
            few(&known)
        ),
    )
    .on(origin)
    .at(format!("{at}.{field}"))
    .help("Compare the labels and the namespace; no package comes from this target.")
}
