//! What a new package holds: from nothing, or from another repository.

use mooring_api::annotation;
use mooring_krm::{File, KPTFILE, emit};
use serde_json::{Map, Value, json};

use super::{Error, PackageName};
use crate::git::{Files, Oid};

const CONTEXT: &str = "package-context.yaml";

/// Where a clone comes from.
#[derive(Clone, Debug)]
pub struct Upstream {
    /// The repository, as it was named.
    pub repository: String,
    /// The directory of the package in it.
    pub directory: String,
    /// The branch or tag.
    pub reference: String,
    /// The commit that it was at.
    pub commit: Oid,
}

/// A package of its own, with nothing in it yet.
pub fn skeleton(package: &PackageName, description: Option<&str>) -> Files {
    let name = package.last();
    let mut kptfile = json!({
        "apiVersion": "kpt.dev/v1",
        "kind": "Kptfile",
        "metadata": { "name": name, "annotations": { annotation::LOCAL_CONFIG: "true" } },
    });
    if let Some(text) = description {
        kptfile["info"] = json!({ "description": text });
    }
    Files::from([
        (KPTFILE.to_owned(), emit(&kptfile).into_bytes()),
        (CONTEXT.to_owned(), context(name).into_bytes()),
    ])
}

fn context(name: &str) -> String {
    emit(&json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": "kptfile.kpt.dev", "annotations": { annotation::LOCAL_CONFIG: "true" } },
        "data": { "name": name },
    }))
}

/// The files of another package as those of this one: its name, where it comes from, and no identity yet.
pub fn cloned(files: &Files, package: &PackageName, from: &Upstream) -> Result<Files, Error> {
    let mut out = files.clone();
    let git = |reference: &str| {
        json!({
            "repo": from.repository,
            "directory": format!("/{}", from.directory),
            "ref": reference,
        })
    };
    edit(&mut out, KPTFILE, |kptfile| {
        below(kptfile, "metadata").insert("name".into(), json!(package.last()));
        let origin = json!({ "type": "git", "git": git(&from.reference), "updateStrategy": "resource-merge" });
        let mut lock = json!({ "type": "git", "git": git(&from.reference) });
        lock["git"]["commit"] = json!(from.commit.as_str());
        if let Some(top) = kptfile.as_object_mut() {
            top.insert("upstream".into(), origin);
            top.insert("upstreamLock".into(), lock);
        }
    })?;
    let kptfiles: Vec<String> = out
        .keys()
        .filter(|path| *path == KPTFILE || path.ends_with("/Kptfile"))
        .cloned()
        .collect();
    // A package that was rendered once carries an identity, and its clones must not share it.
    for path in kptfiles {
        edit(&mut out, &path, |kptfile| {
            let metadata = below(kptfile, "metadata");
            if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
                annotations.shift_remove(annotation::PACKAGE_ID);
            }
        })?;
    }
    if out.contains_key(CONTEXT) {
        edit(&mut out, CONTEXT, |context| {
            below(context, "data").insert("name".into(), json!(package.last()));
        })?;
    } else {
        out.insert(CONTEXT.to_owned(), context(package.last()).into_bytes());
    }
    Ok(out)
}

/// Edits the first document of a file; its other lines stay as they are.
fn edit(files: &mut Files, path: &str, change: impl FnOnce(&mut Value)) -> Result<(), Error> {
    let unusable = |why: String| Error::NoPackage {
        what: format!("{path} cannot be edited: {why}"),
    };
    let bytes = files
        .get(path)
        .ok_or_else(|| unusable("it is not there".to_owned()))?;
    let file = File::parse(bytes).map_err(|e| unusable(e.message))?;
    let mut values: Vec<Value> = file.documents().iter().map(|d| d.value().clone()).collect();
    let Some(first) = values.iter_mut().find(|v| v.is_object()) else {
        return Err(unusable("it is empty".to_owned()));
    };
    change(first);
    let values: Vec<Option<&Value>> = values.iter().map(Some).collect();
    let text = file
        .rewrite(&values, &[])
        .map_err(|e| unusable(e.to_string()))?;
    files.insert(path.to_owned(), text.into_bytes());
    Ok(())
}

fn below<'v>(value: &'v mut Value, key: &str) -> &'v mut Map<String, Value> {
    if !value[key].is_object() {
        value[key] = json!({});
    }
    value[key].as_object_mut().expect("it was made one above")
}
