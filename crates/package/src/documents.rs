//! Files as documents: parsed once, checked at the door, found again when a finding needs its line.

use std::collections::BTreeMap;

use mooring_api::{Code, Finding, Location, annotation, kinds};
use mooring_blueprint::Object;
use mooring_krm::{FieldPath, File, ParseErrorKind};
use serde_json::Value;

/// The documents of a tree or of one package.
#[derive(Debug, Default)]
pub(crate) struct Documents {
    /// The files that could be parsed.
    pub(crate) files: Vec<Parsed>,
    /// (file, document) of every object, in order.
    pub(crate) places: Vec<(usize, usize)>,
}

/// A file that could be parsed.
#[derive(Debug)]
pub(crate) struct Parsed {
    /// Relative to the root of the run.
    pub(crate) path: String,
    /// As a person would type it.
    pub(crate) shown: String,
    /// Its documents.
    pub(crate) file: File,
}

impl Documents {
    /// Parses files. What cannot be parsed is a finding with its line; the rest is read all the same,
    /// so that a person sees everything at once.
    pub(crate) fn parse<'a>(
        files: impl IntoIterator<Item = (&'a str, &'a [u8])>,
        shown: impl Fn(&str) -> String,
        findings: &mut Vec<Finding>,
    ) -> Self {
        let mut documents = Self::default();
        for (path, bytes) in files {
            match File::parse(bytes) {
                Ok(file) => documents.add(path.to_owned(), shown(path), file),
                Err(error) => {
                    let (code, help) = match error.kind {
                        ParseErrorKind::TooLarge => (
                            Code::FileTooLarge,
                            "Split the file, or keep what is not a Kubernetes object out of the package.",
                        ),
                        ParseErrorKind::AliasBomb => (
                            Code::AliasBomb,
                            "Write the values out instead of nesting aliases.",
                        ),
                        _ => (Code::YamlInvalid, "Correct the line; nothing was written."),
                    };
                    let finding = Finding::error(code, error.message);
                    findings.push(
                        finding
                            .located(shown(path), error.line, error.column)
                            .help(help),
                    );
                }
            }
        }
        documents
    }

    /// Adds a file that was parsed already.
    pub(crate) fn add(&mut self, path: String, shown: String, file: File) {
        let number = self.files.len();
        let objects = file.documents().iter().enumerate();
        let objects = objects.filter(|(_, d)| is_object(d.value()));
        self.places.extend(objects.map(|(i, _)| (number, i)));
        self.files.push(Parsed { path, shown, file });
    }

    /// The value of an object.
    pub(crate) fn value(&self, place: usize) -> &Value {
        let (file, document) = self.places[place];
        self.files[file].file.documents()[document].value()
    }

    /// The place of the Kptfile in the file of this path.
    pub(crate) fn kptfile(&self, path: &str) -> Option<usize> {
        let is_kptfile = |place: &usize| {
            let (file, _) = self.places[*place];
            self.files[file].path == path && self.value(*place)["kind"] == "Kptfile"
        };
        (0..self.places.len()).find(is_kptfile)
    }

    /// All objects, numbered by place.
    pub(crate) fn objects(&self) -> Vec<Object> {
        (0..self.places.len())
            .map(|i| Object {
                value: self.value(i).clone(),
                source: Some(i),
            })
            .collect()
    }

    /// Checks every object against its kind, and that none is there twice.
    pub(crate) fn check(&self, findings: &mut Vec<Finding>) {
        self.check_kptfiles(findings);
        let mut seen: BTreeMap<(&str, &str, &str, &str), usize> = BTreeMap::new();
        for place in 0..self.places.len() {
            let value = self.value(place);
            for finding in check_kind(value) {
                findings.push(self.locate_at(place, finding));
            }
            let text = |p: &str| value.pointer(p).and_then(Value::as_str).unwrap_or_default();
            let key = (
                text("/apiVersion"),
                text("/kind"),
                text("/metadata/namespace"),
                text("/metadata/name"),
            );
            if key.1 == "Interface" || key.3.is_empty() {
                continue; // Interfaces have a finding of their own.
            }
            if let Some(first) = seen.insert(key, place) {
                let object = Object {
                    value: value.clone(),
                    source: None,
                }
                .reference();
                let (file, document) = self.places[first];
                let other = position(&self.files[file].file, document, "metadata.name");
                let message = match other {
                    Some((line, _)) => {
                        format!(
                            "the same object stands at {}:{line} too",
                            self.files[file].shown
                        )
                    }
                    None => "the same object stands here twice".to_owned(),
                };
                let finding = Finding::error(Code::DuplicateObject, message)
                    .on(&object)
                    .at("metadata.name")
                    .help("Remove one of them, or give it another name.");
                findings.push(self.locate_at(place, finding));
            }
        }
    }

    /// A file named Kptfile makes a directory a package, so it must be one, and have a name.
    fn check_kptfiles(&self, findings: &mut Vec<Finding>) {
        for (number, file) in self.files.iter().enumerate() {
            let shown = &file.shown;
            if shown != "Kptfile" && !shown.ends_with("/Kptfile") {
                continue;
            }
            let mut places = (0..self.places.len()).filter(|p| self.places[*p].0 == number);
            let Some(place) = places.find(|p| self.value(*p)["kind"] == "Kptfile") else {
                let finding = Finding::error(Code::InvalidField, "this Kptfile is none")
                    .located(shown.clone(), 1, 1)
                    .help("Write apiVersion: kpt.dev/v1, kind: Kptfile and metadata.name.");
                findings.push(finding);
                continue;
            };
            let name = self.value(place).pointer("/metadata/name");
            if name.and_then(Value::as_str).is_none_or(str::is_empty) {
                let finding = Finding::error(Code::InvalidField, "the package has no name")
                    .at("metadata.name")
                    .help("Write metadata.name; namespaces and claims are named after it.");
                findings.push(self.locate_at(place, finding));
            }
        }
    }

    /// Fills in file and line from the finding's object and field.
    pub(crate) fn locate(&self, finding: Finding) -> Finding {
        if finding.location.is_some() {
            return finding;
        }
        let Some(object) = &finding.object else {
            return finding;
        };
        let is_it = |place: &usize| {
            let value = self.value(*place);
            let text = |p: &str| value.pointer(p).and_then(Value::as_str).unwrap_or_default();
            text("/kind") == object.kind
                && text("/metadata/name") == object.name
                && (object.api_version.is_empty() || text("/apiVersion") == object.api_version)
        };
        // The last one: of two with one name, the second is the one that is reported.
        match (0..self.places.len()).rev().find(is_it) {
            Some(place) => self.locate_at(place, finding),
            None => finding,
        }
    }

    fn locate_at(&self, place: usize, mut finding: Finding) -> Finding {
        if finding.location.is_none() {
            let (file, document) = self.places[place];
            let parsed = &self.files[file];
            let field = finding.field.as_deref().unwrap_or("metadata.name");
            if let Some((line, column)) = position(&parsed.file, document, field) {
                finding.location = Some(Location {
                    file: parsed.shown.clone(),
                    line,
                    column,
                });
            }
        }
        finding
    }
}

/// What is wrong with an object of a kind that we know, in a file or in a list.
pub(crate) fn check_kind(value: &Value) -> Vec<Finding> {
    let mut findings = kinds::check(value);
    // An injection point may be empty: what fills it comes from the management side.
    if value.get("spec").is_none() && is_injection_point(value) {
        findings.retain(|f| f.field.as_deref() != Some("spec"));
    }
    findings
}

fn is_injection_point(value: &Value) -> bool {
    let annotations = value.pointer("/metadata/annotations");
    annotations.is_some_and(|a| a.get(annotation::CONFIG_INJECTION).is_some())
}

pub(crate) fn position(file: &File, document: usize, field: &str) -> Option<(u32, u32)> {
    let path: FieldPath = field.parse().ok()?;
    let at = file.documents().get(document)?.locate(&path)?;
    Some((at.line, at.column))
}

/// Whether a document is a Kubernetes object. Others (values files, notes) are left alone.
fn is_object(value: &Value) -> bool {
    let text = |key: &str| value.get(key).is_some_and(Value::is_string);
    text("apiVersion") && text("kind")
}
