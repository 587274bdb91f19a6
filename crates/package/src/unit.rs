//! One package: its documents, the bundle that the steps work on, and the way back to text.

use std::collections::{BTreeMap, BTreeSet};

use mooring_api::{Code, Condition, Finding, ObjectRef, annotation};
use mooring_blueprint::{Bundle, Marks, Object};
use mooring_krm::{emit, kptfile};
use serde_json::Value;

use crate::documents::{Documents, Parsed};
use crate::report::Dialect;

/// A package that is being specialised.
#[derive(Debug)]
pub(crate) struct Unit {
    /// Directory below the root of the run; empty for the root itself.
    pub(crate) dir: String,
    /// Its documents. Paths are relative to the root of the run.
    pub(crate) documents: Documents,
    paths: Vec<String>,
    /// Place of the Kptfile.
    kptfile: usize,
    /// What the steps edit.
    pub(crate) bundle: Bundle,
}

impl Unit {
    /// Makes a unit of parsed documents; None where no Kptfile could be read (a finding says so).
    pub(crate) fn new(dir: String, paths: Vec<String>, documents: Documents) -> Option<Self> {
        let name = if dir.is_empty() {
            "Kptfile".to_owned()
        } else {
            format!("{dir}/Kptfile")
        };
        let kptfile = documents.kptfile(&name)?;
        let marks = marks(documents.value(kptfile));
        let objects = documents.objects();
        let objects = objects
            .into_iter()
            .filter(|o| o.source != Some(kptfile))
            .collect();
        Some(Self {
            dir,
            documents,
            paths,
            kptfile,
            bundle: Bundle { objects, marks },
        })
    }

    /// The Kptfile.
    pub(crate) fn kptfile(&self) -> &Value {
        self.documents.value(self.kptfile)
    }

    /// What findings about the Kptfile carry.
    pub(crate) fn kptfile_ref(&self) -> ObjectRef {
        Object {
            value: self.kptfile().clone(),
            source: None,
        }
        .reference()
    }

    /// Fills in where a finding is. One without object is about the Kptfile.
    pub(crate) fn locate(&self, mut finding: Finding) -> Finding {
        if finding.object.is_none() && finding.location.is_none() {
            finding.object = Some(self.kptfile_ref());
        }
        self.documents.locate(finding)
    }

    /// The first object of a file, by its path in the package.
    pub(crate) fn document(&self, path: &str) -> Option<usize> {
        let path = if self.dir.is_empty() {
            path.to_owned()
        } else {
            format!("{}/{path}", self.dir)
        };
        let is_it = |place: &usize| {
            let (file, _) = self.documents.places[*place];
            self.documents.files[file].path == path && *place != self.kptfile
        };
        (0..self.documents.places.len()).find(is_it)
    }

    /// The dialect that the package's marks ask for.
    pub(crate) fn dialect(&self) -> Dialect {
        if mooring_blueprint::nephio::is_marked(&self.bundle) {
            Dialect::Nephio
        } else {
            Dialect::Native
        }
    }

    /// The package's files as they should be: path → text, or None for one that goes. Files that stay
    /// as they are are not among them.
    pub(crate) fn files(&self, id: &str) -> Result<BTreeMap<String, Option<String>>, Vec<Finding>> {
        let kptfile = write_marks(self.kptfile(), &self.bundle.marks, Some(id));
        let Self {
            documents, bundle, ..
        } = self;
        let (mut out, mut findings) = texts(documents, (self.kptfile, &kptfile), bundle);
        self.new_files(&mut out, &mut findings);
        if findings.is_empty() {
            Ok(out)
        } else {
            Err(findings)
        }
    }

    /// A file of the package as a person would type it.
    fn shown(&self, path: &str) -> String {
        let number = self.paths.iter().position(|p| p == path);
        let file = number.and_then(|n| self.documents.files.get(n));
        file.map_or_else(|| path.to_owned(), |file| file.shown.clone())
    }

    /// Generated objects go to `<kind>_<name>.yaml`, one file each, never over a user's file.
    fn new_files(&self, out: &mut BTreeMap<String, Option<String>>, findings: &mut Vec<Finding>) {
        let known: BTreeSet<&str> = self.paths.iter().map(String::as_str).collect();
        for object in self.bundle.objects.iter().filter(|o| o.source.is_none()) {
            let name = file_name(object);
            let path = if self.dir.is_empty() {
                name
            } else {
                format!("{}/{name}", self.dir)
            };
            let there = known.contains(path.as_str()) && out.get(&path) != Some(&None);
            if there || matches!(out.get(&path), Some(Some(_))) {
                findings.push(
                    Finding::error(
                        Code::FileInTheWay,
                        format!(
                            "{} belongs into {path}, but a file of yours has that name",
                            object.reference()
                        ),
                    )
                    .located(self.shown(&path), 1, 1)
                    .help("Rename your file; Mooring never writes over it."),
                );
                continue;
            }
            out.insert(path, Some(emit(&object.value)));
        }
    }
}

/// The file that a generated object belongs into: the name that kpt would give it.
pub(crate) fn file_name(object: &Object) -> String {
    format!("{}_{}.yaml", object.kind().to_lowercase(), object.name())
}

/// Documents with the values of a bundle and a Kptfile in their places, as text; files that stay as they are are
/// not among them. Objects without a place are left out.
pub(crate) fn texts(
    documents: &Documents,
    (place, kptfile): (usize, &Value),
    bundle: &Bundle,
) -> (BTreeMap<String, Option<String>>, Vec<Finding>) {
    let mut out = BTreeMap::new();
    let mut findings = Vec::new();
    // Places are in the order of files, so each file's are together.
    let mut next = 0;
    let mut wanted: Vec<Option<&Value>> = vec![None; documents.places.len()];
    wanted[place] = Some(kptfile);
    for object in &bundle.objects {
        if let Some(place) = object.source {
            wanted[place] = Some(&object.value);
        }
    }
    for (number, Parsed { path, shown, file }) in documents.files.iter().enumerate() {
        let mut values: Vec<Option<&Value>> =
            file.documents().iter().map(|d| Some(d.value())).collect();
        let mut touched = false;
        while let Some((in_file, document)) = documents.places.get(next)
            && *in_file == number
        {
            touched |= wanted[next] != values[*document];
            values[*document] = wanted[next];
            next += 1;
        }
        if !touched {
            continue;
        }
        let path = path.clone();
        if values.iter().all(|v| v.is_none_or(Value::is_null)) {
            out.insert(path, None);
            continue;
        }
        match file.rewrite(&values, &[]) {
            Ok(text) => drop(out.insert(path, Some(text))),
            Err(error) => findings.push(
                Finding::error(
                    Code::YamlInvalid,
                    format!("the file cannot be edited: {error}"),
                )
                .located(shown.clone(), 1, 1)
                .help("Write the object out without the alias or tag that stands in the way."),
            ),
        }
    }
    (out, findings)
}

/// What the steps may know of a Kptfile.
pub(crate) fn marks(kptfile: &Value) -> Marks {
    let annotations = kptfile
        .pointer("/metadata/annotations")
        .and_then(Value::as_object);
    let pairs = annotations.into_iter().flatten();
    Marks {
        name: kptfile::package_name(kptfile)
            .unwrap_or_default()
            .to_owned(),
        annotations: pairs
            .filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned())))
            .collect(),
        conditions: kptfile::conditions(kptfile).into(),
        gates: kptfile::readiness_gates(kptfile)
            .into_iter()
            .map(ToOwned::to_owned)
            .collect(),
    }
}

/// The Kptfile with the id and the marks in it. What did not change keeps its value, so that its lines
/// are not touched.
pub(crate) fn write_marks(kptfile: &Value, marks: &Marks, id: Option<&str>) -> Value {
    let before = self::marks(kptfile);
    let mut new = kptfile.clone();
    if let Some(id) = id {
        kptfile::set_annotation(&mut new, annotation::PACKAGE_ID, id);
    }
    for gate in before.gates.iter().filter(|g| !marks.gates.has(g)) {
        kptfile::remove_readiness_gate(&mut new, gate);
    }
    let more = marks.gates.iter().filter(|g| !before.gates.has(g));
    kptfile::add_readiness_gates(&mut new, more.map(String::as_str));
    for gone in &before.conditions {
        if !marks.conditions.has(&gone.kind) {
            kptfile::remove_condition(&mut new, &gone.kind);
        }
    }
    let is_new = |c: &&Condition| !before.conditions.named(&c.kind).any(|b| b == *c);
    kptfile::set_conditions(&mut new, marks.conditions.iter().filter(is_new));
    order_conditions(&mut new, marks);
    new
}

/// A condition that was dropped and made again stands behind the others.
fn order_conditions(kptfile: &mut Value, marks: &Marks) {
    let list = kptfile.pointer_mut("/status/conditions");
    let Some(list) = list.and_then(Value::as_array_mut) else {
        return;
    };
    let place = |c: &Value| {
        let kind = c["type"].as_str().unwrap_or_default();
        marks.conditions.places(kind).first().copied()
    };
    // One that could not be read has no place, and stays in front.
    if !list.is_sorted_by_key(place) {
        list.sort_by_key(place);
    }
}
