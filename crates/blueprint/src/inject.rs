//! Step 1: the cluster comes into the package, and whatever else it left an injection point for.
//!
//! Which cluster: the one that was named, else the only one, else a finding. An object that carries
//! `kpt.dev/injected-resource` is ours to refresh; a WorkloadCluster without it is the package's own.

use mooring_api::{Code, Finding, ObjectRef, Status, annotation};
use serde_json::Value;

use crate::Context;
use crate::bundle::{Bundle, Marks, Object, group, map_below};
use crate::cluster::{Cluster, name_of, said};

const KIND: &str = "WorkloadCluster";
const GATE: &str = "config.injection.WorkloadCluster.";

/// Brings the cluster in and returns it. None means that a finding says why.
pub fn inject(
    bundle: &mut Bundle,
    ctx: &Context<'_>,
    findings: &mut Vec<Finding>,
) -> Option<Cluster> {
    inject_others(bundle, ctx, findings);
    let place = place(bundle, findings)?;
    match choose(bundle, place, ctx) {
        Ok(Choice::Own) => {}
        Ok(Choice::Injected(cluster)) => bring_in(bundle, place, cluster),
        Err(finding) => {
            findings.push(finding);
            return None;
        }
    }
    let object = bundle.all(group::INFRA, KIND).next()?.clone();
    let gate = format!("{GATE}{}", object.name());
    if object.annotation(annotation::INJECTED_RESOURCE).is_some()
        || bundle.marks.gates.contains(&gate)
    {
        let name = name_of(&object);
        bundle.marks.set(
            gate,
            Status::True,
            "ConfigInjected",
            &format!("cluster {name}"),
        );
    }
    Cluster::read(&object, findings)
}

enum Choice<'a> {
    /// The package's own.
    Own,
    /// From the management side.
    Injected(&'a Object),
}

/// Index of the package's WorkloadCluster. Two are one too many.
#[expect(clippy::option_option, reason = "no cluster is fine, two are an error")]
fn place(bundle: &Bundle, findings: &mut Vec<Finding>) -> Option<Option<usize>> {
    let is_cluster = |(_, o): &(usize, &Object)| o.is(group::INFRA, KIND);
    let mut own = bundle.objects.iter().enumerate().filter(is_cluster);
    let first = own.next();
    if let (Some((_, first)), Some((_, second))) = (first, own.next()) {
        findings.push(
            Finding::error(
                Code::AmbiguousCluster,
                format!(
                    "the package has two WorkloadClusters: {} and {}",
                    first.name(),
                    second.name()
                ),
            )
            .on(&second.reference())
            .at("metadata.name")
            .help("A package is specialised for one cluster. Keep one of them."),
        );
        return None;
    }
    Some(first.map(|(i, _)| i))
}

fn choose<'a>(
    bundle: &Bundle,
    place: Option<usize>,
    ctx: &Context<'a>,
) -> Result<Choice<'a>, Finding> {
    let offered = || ctx.site.iter().filter(|o| o.is(group::INFRA, KIND));
    let by_name = |name: &str| offered().find(|o| name_of(o) == name || o.name() == name);
    let names = || said(&offered().map(name_of).collect::<Vec<_>>());
    let own = place.map(|i| &bundle.objects[i]);
    let settled = own.filter(|o| {
        o.annotation(annotation::INJECTED_RESOURCE).is_none()
            && o.annotation(annotation::CONFIG_INJECTION).is_none()
    });
    let on = |finding: Finding| match own {
        Some(own) => finding.on(&own.reference()).at("spec.clusterName"),
        None => finding,
    };

    if let Some(wanted) = ctx.cluster {
        return match (settled, by_name(wanted)) {
            (Some(own), _) if name_of(own) == wanted => Ok(Choice::Own),
            (Some(own), _) => Err(on(Finding::error(
                Code::AmbiguousCluster,
                format!("the package is for cluster {}, but {wanted} was asked for", name_of(own)),
            )
            .help("Leave out --cluster, or remove this WorkloadCluster so that the other can be injected."))),
            (None, Some(cluster)) => Ok(Choice::Injected(cluster)),
            (None, None) => Err(on(Finding::error(
                Code::MissingCluster,
                format!("there is no WorkloadCluster {wanted}; known are {}", names()),
            )
            .help("Correct --cluster, or add the WorkloadCluster to the management directory (--mgmt)."))),
        };
    }
    if settled.is_some() {
        return Ok(Choice::Own);
    }
    let injected = own.and_then(|o| o.annotation(annotation::INJECTED_RESOURCE));
    if let Some(name) = injected {
        return Ok(by_name(name).map_or(Choice::Own, Choice::Injected));
    }
    let mut all = offered();
    match (all.next(), all.next()) {
        (Some(only), None) => Ok(Choice::Injected(only)),
        (None, _) => Err(on(Finding::error(
            Code::MissingCluster,
            "no WorkloadCluster is known",
        )
        .help(
            "Name a management directory with --mgmt, or put a WorkloadCluster into the package.",
        ))),
        (Some(_), Some(_)) => Err(on(Finding::error(
            Code::AmbiguousCluster,
            format!("which cluster is the package for? There are {}", names()),
        )
        .help("Name one with --cluster."))),
    }
}

/// Copies `spec` and our annotations of the chosen cluster into the package.
pub(crate) fn bring_in(bundle: &mut Bundle, place: Option<usize>, cluster: &Object) {
    let place = place.unwrap_or_else(|| {
        let gate = bundle.marks.gates.iter().find_map(|g| g.strip_prefix(GATE));
        let reference = ObjectRef::new(
            format!("{}/v1alpha1", group::INFRA),
            KIND,
            gate.unwrap_or("workload-cluster"),
        );
        let owner = ObjectRef::new("kpt.dev/v1", "Kptfile", bundle.marks.name.clone());
        bundle.objects.push(Object::generated(&reference, &owner));
        bundle.objects.len() - 1
    });
    let name = cluster.name().to_owned();
    fill(&mut bundle.objects[place], cluster, "spec");
    let object = &mut bundle.objects[place];
    object.set_annotation(annotation::INJECTED_RESOURCE, &name);
    let ours = cluster
        .value
        .pointer("/metadata/annotations")
        .and_then(Value::as_object);
    for (key, value) in ours.into_iter().flatten() {
        if let Some(value) = value.as_str().filter(|_| key.starts_with("mooring.dev/")) {
            object.set_annotation(key, value);
        }
    }
}

fn fill(point: &mut Object, from: &Object, field: &str) {
    if let Some(content) = from.value.get(field)
        && point.value.get(field) != Some(content)
    {
        map_below(&mut point.value, &[]).insert(field.to_owned(), content.clone());
    }
}

/// Injection points of other kinds: the object of the same kind with the point's cluster name, else the one
/// that was injected before, else the only one. A point for which a PackageVariant found nothing stays so.
fn inject_others(bundle: &mut Bundle, ctx: &Context<'_>, findings: &mut Vec<Finding>) {
    let Bundle { objects, marks } = bundle;
    for point in objects.iter_mut().filter(|o| o.kind() != KIND) {
        let Some(how) = point
            .annotation(annotation::CONFIG_INJECTION)
            .map(ToOwned::to_owned)
        else {
            continue;
        };
        let same = |o: &&Object| o.api_version() == point.api_version() && o.kind() == point.kind();
        let candidates: Vec<&Object> = ctx.site.iter().filter(same).collect();
        let named = candidates.iter().find(|o| Some(o.name()) == ctx.cluster);
        let before = point.annotation(annotation::INJECTED_RESOURCE);
        let before = candidates.iter().find(|o| Some(o.name()) == before);
        let only = candidates.first().filter(|_| candidates.len() == 1);
        let gate = format!("config.injection.{}.{}", point.kind(), point.name());
        let refused = |marks: &Marks| {
            let mut known = marks.conditions.named(&gate);
            ctx.cluster.is_none() && known.any(|c| c.reason == "NoResourceSelected")
        };
        if refused(marks) {
            continue;
        }
        if let Some(chosen) = named.or(before).or(only) {
            let field = if point.kind() == "ConfigMap" {
                "data"
            } else {
                "spec"
            };
            fill(point, chosen, field);
            point.set_annotation(annotation::INJECTED_RESOURCE, chosen.name());
            let message = format!("{} {}", chosen.kind(), chosen.name());
            // An optional point that a PackageVariant filled has no gate, and gets none.
            if !marks.conditions.named(&gate).any(|c| {
                c.status == Status::True && c.reason == "ConfigInjected" && c.message == message
            }) {
                marks.set(gate, Status::True, "ConfigInjected", &message);
            }
        } else if how == "required" {
            findings.push(
                Finding::error(
                    Code::InjectionMissing,
                    format!("nothing to inject: the management side has {} of this kind", candidates.len()),
                )
                .on(&point.reference())
                .at(format!("metadata.annotations[{}]", annotation::CONFIG_INJECTION))
                .help("Add one object of this kind to the management directory, named like the cluster."),
            );
        }
    }
}

/// The cluster that is in the package already: what a single function sees.
pub fn find(bundle: &Bundle, findings: &mut Vec<Finding>) -> Option<Cluster> {
    let place = place(bundle, findings)?;
    let Some(place) = place else {
        findings.push(
            Finding::error(Code::MissingCluster, "the package has no WorkloadCluster")
                .help("Run the inject function first, or put a WorkloadCluster into the package."),
        );
        return None;
    };
    Cluster::read(&bundle.objects[place], findings)
}
