//! What a variant changes in its clone of the blueprint: name, labels, context, pipeline, injection.
//!
//! Easy to get wrong: a clone is made anew from the blueprint on every run, yet a blueprint may itself be
//! somebody's variant; so every change replaces what an earlier run of the same variant made.

use mooring_api::kinds::porch::{Function, Repository};
use mooring_api::{Finding, annotation};
use serde_json::{Map, Value, json};

use super::{Offers, REPOSITORY, Variant, inject};
use crate::bundle::{Bundle, Object, map_below};

/// The ConfigMap that holds what a package knows about itself.
const CONTEXT: &str = "kptfile.kpt.dev";
/// Its keys that follow from where the package stands.
pub(super) const KEPT: [&str; 2] = ["name", "package-path"];
/// How the names of a variant's functions begin.
const PREFIX: &str = "PackageVariant";

/// Makes a clone of the blueprint the variant. Conditions and gates go into the bundle's marks, everything
/// else of the Kptfile into `kptfile`.
pub fn apply(
    variant: &Variant,
    kptfile: &mut Value,
    bundle: &mut Bundle,
    offers: &Offers<'_>,
) -> Vec<Finding> {
    name(variant, kptfile, bundle);
    origin(variant, kptfile, offers);
    for (key, map) in [
        ("labels", &variant.spec.labels),
        ("annotations", &variant.spec.annotations),
    ] {
        if !map.is_empty() {
            let written = map_below(kptfile, &["metadata", key]);
            written.extend(map.iter().map(|(k, v)| (k.clone(), json!(v))));
        }
    }
    context(variant, bundle);
    pipeline(variant, kptfile);
    inject::inject(variant, bundle, offers)
}

/// The same for a package inside of the blueprint: only its injection points are the variant's.
pub fn apply_below(variant: &Variant, bundle: &mut Bundle, offers: &Offers<'_>) -> Vec<Finding> {
    inject::inject(variant, bundle, offers)
}

fn name(variant: &Variant, kptfile: &mut Value, bundle: &mut Bundle) {
    let (_, name) = split(&variant.spec.downstream.package);
    map_below(kptfile, &["metadata"]).insert("name".into(), json!(name));
    name.clone_into(&mut bundle.marks.name);
    // A blueprint that was rendered once carries an identity, and its variants must not share it.
    let metadata = map_below(kptfile, &["metadata"]);
    if let Some(Value::Object(annotations)) = metadata.get_mut("annotations")
        && annotations.shift_remove(annotation::PACKAGE_ID).is_some()
        && annotations.is_empty()
    {
        metadata.shift_remove("annotations");
    }
    bundle.marks.annotations.remove(annotation::PACKAGE_ID);
}

/// Where the clone comes from, so that kpt can bring it up to date.
fn origin(variant: &Variant, kptfile: &mut Value, offers: &Offers<'_>) {
    let upstream = &variant.spec.upstream;
    let repository = offers.named(&variant.namespace, REPOSITORY, &upstream.repo);
    let repository = repository.and_then(|o| mooring_api::kinds::read::<Repository>(&o.value).ok());
    let Some(git) = repository.and_then(|r| r.spec.git) else {
        return;
    };
    let above = git
        .directory
        .as_deref()
        .unwrap_or_default()
        .trim_matches('/');
    let directory = format!("{above}/{}", upstream.package);
    let revision = upstream.revision.filter(|r| *r > 0);
    let reference = revision.map(|r| format!("{}/v{r}", upstream.package));
    let reference = reference
        .or_else(|| upstream.workspace_name.clone())
        .or(git.branch);
    let map = map_below(kptfile, &["upstream"]);
    map.insert("type".into(), json!("git"));
    let from = json!({
        "repo": git.repo,
        "directory": directory.trim_start_matches('/'),
        "ref": reference.unwrap_or_else(|| "main".to_owned()),
    });
    map.insert("git".into(), from);
}

/// The directories above a package, and its name.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

fn context(variant: &Variant, bundle: &mut Bundle) {
    let wanted = variant.spec.package_context.clone().unwrap_or_default();
    let place = bundle.objects.places(CONTEXT).first().copied();
    let place = match place {
        Some(place) => place,
        None if wanted.data.is_empty() => return,
        None => {
            bundle.objects.push(Object {
                value: json!({
                    "apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": { "name": CONTEXT, "annotations": { annotation::LOCAL_CONFIG: "true" } },
                    "data": {},
                }),
                source: None,
            });
            bundle.objects.len() - 1
        }
    };
    let data = map_below(&mut bundle.objects[place].value, &["data"]);
    let (above, name) = split(&variant.spec.downstream.package);
    data.insert("name".into(), json!(name));
    if !above.is_empty() || data.contains_key("package-path") {
        data.insert("package-path".into(), json!(above));
    }
    for (key, value) in wanted
        .data
        .iter()
        .filter(|(k, _)| !KEPT.contains(&k.as_str()))
    {
        data.insert(key.clone(), json!(value));
    }
    for key in wanted
        .remove_keys
        .iter()
        .filter(|k| !KEPT.contains(&k.as_str()))
    {
        data.shift_remove(key);
    }
}

fn pipeline(variant: &Variant, kptfile: &mut Value) {
    let wanted = variant.spec.pipeline.clone().unwrap_or_default();
    for (list, functions) in [
        ("mutators", &wanted.mutators),
        ("validators", &wanted.validators),
    ] {
        let known = kptfile.pointer(&format!("/pipeline/{list}"));
        let known = known.and_then(Value::as_array).cloned().unwrap_or_default();
        let others = known.iter().filter(|f| !is_ours(f, &variant.name)).cloned();
        let ours = functions.iter().enumerate();
        let mut all: Vec<Value> = ours
            .map(|(nth, f)| function(f, &variant.name, nth))
            .collect();
        all.extend(others);
        if all == known {
            continue;
        }
        let map = map_below(kptfile, &["pipeline"]);
        if all.is_empty() {
            map.shift_remove(list);
        } else {
            map.insert(list.into(), Value::Array(all));
        }
    }
    if kptfile
        .get("pipeline")
        .and_then(Value::as_object)
        .is_some_and(Map::is_empty)
        && let Some(map) = kptfile.as_object_mut()
    {
        map.shift_remove("pipeline");
    }
}

fn function(function: &Function, variant: &str, nth: usize) -> Value {
    let name = function.name.as_deref().unwrap_or_default();
    let named = Function {
        name: Some(format!("{PREFIX}.{variant}.{name}.{nth}")),
        ..function.clone()
    };
    serde_json::to_value(named).expect("a function has string keys only")
}

/// Whether an earlier run of this variant put the function there. The variant's name may have dots.
fn is_ours(function: &Value, variant: &str) -> bool {
    let name = function
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let rest = name
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.strip_prefix('.'));
    let rest = rest.and_then(|rest| rest.strip_prefix(variant)?.strip_prefix('.'));
    rest.and_then(|rest| rest.rsplit_once('.'))
        .is_some_and(|(name, nth)| {
            !name.contains('.') && !nth.is_empty() && nth.bytes().all(|b| b.is_ascii_digit())
        })
}
