//! A variant fills the injection points of its package with objects of the management side.
//!
//! ```text
//!  point (kpt.dev/config-injection) ─ injectors, in order ─► the first whose group, version and kind fit the point
//!                                                             and whose name is that of an object of the same kind
//! ```
//!
//! What fits nothing is a condition that is False, and a gate where the point is required: the package is made,
//! and is not ready. Only without a cluster nothing can be made. Easy to get wrong: candidates are of exactly the
//! point's apiVersion and of the variant's namespace; the point keeps its own name.

use std::collections::BTreeSet;

use mooring_api::kinds::porch::Injector;
use mooring_api::{Code, Condition, Finding, Status, annotation};

use super::{Offers, Variant, few};
use crate::bundle::{Bundle, Marks, Object, group, map_below};
use crate::cluster::name_of;

const CLUSTER: &str = "WorkloadCluster";
const FIELD: &str = "metadata.annotations[kpt.dev/config-injection]";

/// Fills every point, and brings in the cluster where the package has no place for one.
pub(super) fn inject(variant: &Variant, bundle: &mut Bundle, offers: &Offers<'_>) -> Vec<Finding> {
    let mut findings = check(bundle);
    if !findings.is_empty() {
        return findings;
    }
    let Bundle { objects, marks } = &mut *bundle;
    for point in objects.iter_mut() {
        let Some(how) = point.annotation(annotation::CONFIG_INJECTION) else {
            continue; // checked above: it is text, or absent
        };
        let required = how == "required";
        let condition = condition(point);
        match choose(point, offers, variant) {
            Ok((chosen, field)) => {
                let content = chosen.value.get(field).cloned().unwrap_or_default();
                if point.value.get(field) != Some(&content) {
                    map_below(&mut point.value, &[]).insert(field.to_owned(), content);
                }
                point.set_annotation(annotation::INJECTED_RESOURCE, chosen.name());
                let what = if chosen.kind() == CLUSTER {
                    format!("cluster {}", name_of(chosen))
                } else {
                    format!("{} {}", chosen.kind(), chosen.name())
                };
                mark(
                    marks,
                    condition,
                    Status::True,
                    "ConfigInjected",
                    what,
                    required,
                );
            }
            Err(why) => {
                findings.extend(missing(point, &why, required, variant));
                mark(
                    marks,
                    condition,
                    Status::False,
                    "NoResourceSelected",
                    why,
                    required,
                );
            }
        }
    }
    if bundle.all(group::INFRA, CLUSTER).next().is_none()
        && let Some(cluster) = cluster(variant, offers)
    {
        crate::inject::bring_in(bundle, None, cluster);
    }
    findings
}

/// The condition that reports a point.
fn condition(point: &Object) -> String {
    format!("config.injection.{}.{}", point.kind(), point.name())
}

/// Points that say something else than required or optional, or that one condition cannot tell apart.
fn check(bundle: &Bundle) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut seen = BTreeSet::new();
    for point in &bundle.objects {
        let annotations = point.value.pointer("/metadata/annotations");
        let Some(how) = annotations.and_then(|a| a.get(annotation::CONFIG_INJECTION)) else {
            continue;
        };
        if how != "required" && how != "optional" {
            findings.push(
                Finding::error(
                    Code::InvalidAnnotation,
                    format!(
                        "{} is {how}; it must be required or optional",
                        annotation::CONFIG_INJECTION
                    ),
                )
                .on(&point.reference())
                .at(FIELD)
                .help("Write required where the package is not ready without it, else optional."),
            );
        }
        let condition = condition(point);
        if seen.contains(&condition) {
            findings.push(
                Finding::error(
                    Code::DuplicateInjectionPoint,
                    format!("another injection point is a {} called {} too: {condition} cannot speak for both", point.kind(), point.name()),
                )
                .on(&point.reference())
                .at("metadata.name")
                .help("Rename one of the two."),
            );
        }
        seen.insert(condition);
    }
    findings
}

/// What fills a point, and which of its fields; or why nothing does.
fn choose<'a>(
    point: &Object,
    offers: &Offers<'a>,
    variant: &Variant,
) -> Result<(&'a Object, &'static str), String> {
    let injectors = &variant.spec.injectors;
    if injectors.is_empty() {
        return Err(format!("variant {} has no injectors", variant.name));
    }
    let kind = (point.api_version(), point.kind());
    let candidates = offers.all(&variant.namespace, kind.0, kind.1);
    if candidates.is_empty() {
        return Err(format!(
            "there is no {} {} in namespace {}",
            kind.0, kind.1, variant.namespace
        ));
    }
    let by_name = |injector: &Injector| offers.named(&variant.namespace, kind, &injector.name);
    let mut fitting = injectors.iter().filter(|i| applies(i, point));
    let Some(chosen) = fitting.find_map(by_name) else {
        let names: Vec<String> = candidates.iter().map(|o| o.name().to_owned()).collect();
        return Err(format!(
            "no injector of variant {} names {}",
            variant.name,
            few(&names)
        ));
    };
    let core_map = point.group().is_empty() && point.kind() == "ConfigMap";
    let field = if core_map { "data" } else { "spec" };
    if chosen.value.get(field).is_none() {
        return Err(format!(
            "{} {} has no {field}",
            chosen.kind(),
            chosen.name()
        ));
    }
    Ok((chosen, field))
}

/// Whether an injector is for points like this.
fn applies(injector: &Injector, point: &Object) -> bool {
    let version = point.api_version().rsplit('/').next().unwrap_or_default();
    let fits = |wanted: &Option<String>, has: &str| wanted.as_deref().is_none_or(|w| w == has);
    fits(&injector.group, point.group())
        && fits(&injector.version, version)
        && fits(&injector.kind, point.kind())
}

/// A condition, and its gate where the point is required.
fn mark(
    marks: &mut Marks,
    kind: String,
    status: Status,
    reason: &str,
    message: String,
    required: bool,
) {
    if required && !marks.gates.has(&kind) {
        marks.gates.push(kind.clone());
    }
    let wanted = Condition {
        kind,
        status,
        reason: reason.to_owned(),
        message,
    };
    match marks.conditions.places(&wanted.kind).first().copied() {
        Some(place) => marks.conditions[place] = wanted,
        None => marks.conditions.push(wanted),
    }
}

fn missing(point: &Object, why: &str, required: bool, variant: &Variant) -> Option<Finding> {
    let finding = if point.is(group::INFRA, CLUSTER) {
        Finding::error(
            Code::InjectionMissing,
            format!("no cluster is injected: {why}"),
        )
    } else if required {
        let message = format!("nothing is injected, and the package is not ready: {why}");
        Finding::warning(Code::InjectionMissing, message)
    } else {
        return None;
    };
    Some(finding.on(&point.reference()).at(FIELD).help(format!(
        "Name the object in spec.injectors of variant {}, and have it in the fleet.",
        variant.name
    )))
}

/// The cluster of a package that has no place for one: an injector names it, else the repository does.
fn cluster<'a>(variant: &Variant, offers: &Offers<'a>) -> Option<&'a Object> {
    const KIND: (&str, &str) = ("infra.nephio.org/v1alpha1", CLUSTER);
    let named = |name: &str| offers.named(&variant.namespace, KIND, name);
    let injected = variant.spec.injectors.iter().find_map(|injector| {
        let found = named(&injector.name)?;
        applies(injector, found).then_some(found)
    });
    let repo = &variant.spec.downstream.repo;
    let clusters = offers
        .all(&variant.namespace, KIND.0, KIND.1)
        .iter()
        .copied();
    injected
        .or_else(|| named(repo))
        .or_else(|| clusters.into_iter().find(|o| name_of(o) == *repo))
}
