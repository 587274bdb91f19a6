//! A plan as text: the IPPrefix (and the NetworkInstance that lists it) in its file, changed where it changes.
//!
//! The parts of a split are new documents behind the others of the same file; the first part keeps the document, with
//! its name and comments. Easy to get wrong: a gateway that is not the first host stands in the host bits of
//! `spec.prefix`, and only counts with the label `nephio.org/gateway`.
//!
//! The new text is read as any other, and must say exactly what was planned.

use std::collections::BTreeMap;
use std::path::Path;

use mooring_api::{AddrRange, Code, Finding, HostCidr, ObjectRef, annotation, label};
use mooring_blueprint::Object;
use mooring_ipam::{Plan, Prefix};
use mooring_krm::FieldPath;
use serde_json::{Value, json};

use crate::disk::Tree;
use crate::journal::Change;
use crate::site::Site;

/// What becomes of the files.
pub(super) fn changes(
    mgmt: &Path,
    tree: &Tree,
    site: &Site,
    plan: &Plan,
) -> Result<Vec<Change>, Vec<Finding>> {
    let mut edited: BTreeMap<usize, Value> = BTreeMap::new();
    let mut appended: BTreeMap<usize, Vec<Value>> = BTreeMap::new();
    let missing = || vec![unfaithful(plan, "its document was not found")];
    let place = place(site, &plan.before.origin).ok_or_else(missing)?;
    let object = site.documents.value(place);
    for (nth, after) in plan.after.iter().enumerate() {
        let new = redrawn(object, &plan.before, after);
        if nth == 0 {
            edited.insert(place, new);
        } else {
            let (file, _) = site.documents.places[place];
            appended.entry(file).or_default().push(new);
        }
    }
    if let Some((field, to)) = &plan.aggregate {
        let instance = &site.pools.instances[&plan.instance];
        let place = self::place(site, &instance.origin).ok_or_else(missing)?;
        let mut value = site.documents.value(place).clone();
        let path: Option<FieldPath> = field.parse().ok();
        let at = path.and_then(|path| path.get_mut(&mut value).map(|at| *at = json!(to)));
        at.ok_or_else(missing)?;
        edited.insert(place, value);
    }
    let mut changes = Vec::new();
    for (number, parsed) in site.documents.files.iter().enumerate() {
        let documents = parsed.file.documents().iter();
        let mut values: Vec<Option<&Value>> = documents.map(|d| Some(d.value())).collect();
        for (place, value) in &edited {
            let (file, document) = site.documents.places[*place];
            if file == number {
                values[document] = Some(value);
            }
        }
        let more = appended.get(&number).map(Vec::as_slice).unwrap_or_default();
        let text = parsed.file.rewrite(&values, more).map_err(|error| {
            let finding = unfaithful(plan, &error.to_string());
            vec![finding.located(parsed.shown.clone(), 1, 1)]
        })?;
        if text != parsed.file.text() {
            let (path, bytes) = (parsed.path.clone(), text.into_bytes());
            changes.push(Change::Write { path, bytes });
        }
    }
    read_back(mgmt, tree, plan, &changes)?;
    Ok(changes)
}

fn unfaithful(plan: &Plan, why: &str) -> Finding {
    let message = format!("the change cannot be written in place: {why}");
    Finding::error(Code::PoolChangeRefused, message)
        .on(&plan.before.origin)
        .help("write the object out without the alias or tag that stands in the way; nothing was changed")
}

/// What stands in the files then is what was planned.
fn read_back(
    mgmt: &Path,
    tree: &Tree,
    plan: &Plan,
    changes: &[Change],
) -> Result<(), Vec<Finding>> {
    let mut files = tree.files.clone();
    for change in changes {
        if let Change::Write { path, bytes } = change {
            files.insert(path.clone(), bytes.clone());
        }
    }
    let site = Site::from_files(mgmt, &files);
    let errors: Vec<Finding> = site
        .findings
        .iter()
        .filter(|f| f.is_error())
        .cloned()
        .collect();
    if !errors.is_empty() {
        return Err(errors);
    }
    // Labels aside: a gateway may have needed its own.
    let key = |p: &Prefix| Prefix {
        labels: BTreeMap::new(),
        ..p.clone()
    };
    for after in &plan.after {
        if !site.pools.prefixes.iter().any(|p| key(p) == key(after)) {
            let why = format!("{} does not read back as it was planned", after.cidr);
            return Err(vec![unfaithful(plan, &why)]);
        }
    }
    Ok(())
}

fn place(site: &Site, origin: &ObjectRef) -> Option<usize> {
    let is_it = |place: &usize| {
        let value = site.documents.value(*place).clone();
        let object = Object {
            value,
            source: None,
        };
        object.reference() == *origin
    };
    (0..site.documents.places.len()).find(is_it)
}

/// The object with what `after` says differently.
fn redrawn(object: &Value, before: &Prefix, after: &Prefix) -> Value {
    let mut object = Object {
        value: object.clone(),
        source: None,
    };
    let key = |key: &str| FieldPath::keys([key]);
    if after.origin.name != before.origin.name {
        if let Some(name) = object.value.pointer_mut("/metadata/name") {
            *name = json!(after.origin.name);
        }
        let _ = mooring_krm::Edit::remove(key("status")).apply_to(&mut object.value);
    }
    if after.cidr != before.cidr || after.gateway != before.gateway {
        write_prefix(&mut object, after);
    }
    rewrite(
        &mut object,
        ("ranges", annotation::RANGES),
        &before.ranges,
        &after.ranges,
    );
    rewrite(
        &mut object,
        ("exclude", annotation::EXCLUDE),
        &before.exclude,
        &after.exclude,
    );
    match (before.drain, after.drain) {
        (false, true) => object.set_annotation(annotation::DRAIN, "true"),
        (true, false) => object.remove_annotation(annotation::DRAIN),
        _ => {}
    }
    if after.kept != before.kept {
        let all = object
            .value
            .pointer_mut("/spec/allocations")
            .and_then(Value::as_array_mut);
        if let Some(all) = all {
            // One for one, in order (`blueprint::pools`).
            let mut kept = before.kept.iter().map(|k| after.kept.contains(k));
            all.retain(|_| kept.next().unwrap_or(true));
        }
    }
    object.value
}

/// The network, with the gateway in its host bits where that is not the first host.
fn write_prefix(object: &mut Object, after: &Prefix) {
    let written: Option<HostCidr> = object
        .value
        .pointer("/spec/prefix")
        .and_then(Value::as_str)
        .and_then(|text| text.parse().ok());
    let usual = after.cidr.hosts().first();
    let gateway = after.gateway.filter(|g| *g != usual);
    // An address that stood there stays there, if it still can.
    let stood = written.filter(HostCidr::is_host).map(|w| w.addr());
    let stood = stood.filter(|a| after.cidr.contains(*a) && after.gateway.is_none_or(|g| g == *a));
    let text = match gateway.or(stood) {
        Some(addr) => after.cidr.host(addr).to_string(),
        None => after.cidr.to_string(),
    };
    if let Some(prefix) = object.value.pointer_mut("/spec/prefix") {
        *prefix = json!(text);
    }
    if gateway.is_some() && after.labels.get(label::GATEWAY).is_none_or(|v| v != "true") {
        let path = FieldPath::keys(["metadata", "labels", label::GATEWAY]);
        let _ = mooring_krm::Edit::set(path, "true").apply_to(&mut object.value);
        // Labels of the spec win over those of the object.
        if let Some(labels) = object
            .value
            .pointer_mut("/spec/labels")
            .and_then(Value::as_object_mut)
            && labels.contains_key(label::GATEWAY)
        {
            labels.insert(label::GATEWAY.to_owned(), json!("true"));
        }
    }
}

/// A list of ranges where it stands: in the field of the spec, in its annotation twin, or in both. A new one becomes the
/// annotation, which every installed definition lets through.
fn rewrite(object: &mut Object, (field, twin): (&str, &str), was: &[AddrRange], is: &[AddrRange]) {
    if was == is {
        return;
    }
    let texts: Vec<String> = is.iter().map(ToString::to_string).collect();
    let spec = object.value.get_mut("spec").and_then(Value::as_object_mut);
    let written = spec.filter(|spec| spec.contains_key(field));
    let in_spec = written.is_some();
    match written {
        Some(spec) if is.is_empty() => drop(spec.shift_remove(field)),
        Some(spec) => drop(spec.insert(field.to_owned(), json!(texts))),
        None => {}
    }
    if is.is_empty() {
        object.remove_annotation(twin);
    } else if !in_spec || object.annotation(twin).is_some() {
        object.set_annotation(twin, &texts.join(","));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(value: Value, is: &[&str]) -> Value {
        let mut object = Object {
            value,
            source: None,
        };
        let ranges: Vec<AddrRange> = is.iter().map(|r| r.parse().unwrap()).collect();
        let was = ["10.1.2.20-10.1.2.29".parse().unwrap()];
        rewrite(&mut object, ("ranges", annotation::RANGES), &was, &ranges);
        object.value
    }

    #[test]
    fn ranges_are_written_where_they_stand_and_both_places_agree() {
        let field = json!({ "spec": { "ranges": ["10.1.2.20-10.1.2.29"] } });
        let twin = json!({ "metadata": { "annotations": { "mooring.dev/ranges": "10.1.2.20-10.1.2.29" } } });
        let new = ["10.1.2.20-10.1.2.39"];
        assert_eq!(
            rewritten(field.clone(), &new),
            json!({ "spec": { "ranges": new } })
        );
        let said = rewritten(twin.clone(), &new);
        assert_eq!(
            said["metadata"]["annotations"]["mooring.dev/ranges"],
            new[0]
        );
        let mut both = field;
        both["metadata"] = twin["metadata"].clone();
        let both = rewritten(both, &new);
        assert_eq!(both["spec"]["ranges"], json!(new));
        assert_eq!(
            both["metadata"]["annotations"]["mooring.dev/ranges"],
            new[0]
        );
    }

    #[test]
    fn ranges_that_go_leave_nothing_behind() {
        let field = json!({ "spec": { "ranges": ["10.1.2.20-10.1.2.29"] } });
        assert_eq!(rewritten(field, &[]), json!({ "spec": {} }));
    }
}
