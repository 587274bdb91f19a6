//! Clones of blueprints, changed as their variants want: what the engine renders.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use mooring_api::{Code, Finding};
use mooring_blueprint::variant::{self, Offers, Variant};
use mooring_blueprint::{Bundle, Object};
use mooring_krm::emit;

use super::blueprint::{Blueprint, Blueprints, Part};
use crate::disk::Tree;
use crate::unit::{marks, texts, write_marks};

/// Every clone of a fleet, as one tree.
#[derive(Default)]
pub(super) struct Cloned {
    pub(super) source: Tree,
    /// Where each file comes from.
    pub(super) elsewhere: BTreeMap<String, PathBuf>,
    /// The files of each package, below it.
    pub(super) files: BTreeMap<String, BTreeSet<String>>,
    pub(super) findings: Vec<Finding>,
}

impl Cloned {
    /// Clones the blueprint of every variant.
    pub(super) fn make(variants: &[Variant], blueprints: &Blueprints, site: &[Object]) -> Self {
        let mut all = Self::default();
        let offers = Offers::new(site);
        let work: Vec<_> = variants
            .iter()
            .filter_map(|v| Some((v, blueprints.of(v)?)))
            .collect();
        let made = crate::parallel::map(work, |(variant, blueprint)| {
            let (changed, findings) = changed(variant, blueprint, &offers);
            (variant, blueprint, changed, findings)
        });
        for (variant, blueprint, mut changed, findings) in made {
            all.findings.extend(findings);
            let path = variant.path();
            let mut files = BTreeSet::new();
            for (file, bytes) in &blueprint.tree.files {
                let bytes = match changed.remove(file) {
                    Some(text) => text.into_bytes(),
                    None => bytes.clone(),
                };
                all.add(&path, file, blueprint, bytes, &mut files);
            }
            for (file, text) in changed {
                all.add(&path, &file, blueprint, text.into_bytes(), &mut files);
            }
            for file in &blueprint.tree.others {
                let full = format!("{path}/{file}");
                all.elsewhere.insert(full.clone(), blueprint.dir.join(file));
                all.source.others.insert(full);
                files.insert(file.clone());
            }
            all.files.insert(path, files);
        }
        all
    }

    fn add(
        &mut self,
        path: &str,
        file: &str,
        blueprint: &Blueprint,
        bytes: Vec<u8>,
        files: &mut BTreeSet<String>,
    ) {
        let full = format!("{path}/{file}");
        self.elsewhere
            .insert(full.clone(), blueprint.dir.join(file));
        self.source.files.insert(full, bytes);
        files.insert(file.to_owned());
    }
}

/// The files of a blueprint that a variant changes or adds.
pub(crate) fn changed(
    variant: &Variant,
    blueprint: &Blueprint,
    offers: &Offers<'_>,
) -> (BTreeMap<String, String>, Vec<Finding>) {
    let mut out = BTreeMap::new();
    let mut findings = Vec::new();
    for part in &blueprint.parts {
        let (files, said) = changed_part(variant, part, blueprint, offers);
        out.extend(files);
        findings.extend(said);
    }
    (out, findings)
}

fn changed_part(
    variant: &Variant,
    part: &Part,
    blueprint: &Blueprint,
    offers: &Offers<'_>,
) -> (BTreeMap<String, String>, Vec<Finding>) {
    let Part {
        dir,
        documents,
        kptfile,
    } = part;
    let objects = documents.objects().into_iter();
    let mut bundle = Bundle {
        objects: objects.filter(|o| o.source != Some(*kptfile)).collect(),
        marks: marks(documents.value(*kptfile)),
    };
    let mut value = documents.value(*kptfile).clone();
    let said = if dir.is_empty() {
        variant::apply(variant, &mut value, &mut bundle, offers)
    } else {
        variant::apply_below(variant, &mut bundle, offers)
    };
    let mut findings: Vec<Finding> = said.into_iter().map(|f| documents.locate(f)).collect();
    let value = write_marks(&value, &bundle.marks, None);
    let (files, said) = texts(documents, (*kptfile, &value), &bundle);
    findings.extend(said);
    let files = files
        .into_iter()
        .filter_map(|(path, text)| Some((path, text?)));
    let mut files: BTreeMap<String, String> = files.collect();
    for object in bundle.objects.iter().filter(|o| o.source.is_none()) {
        let name = if object.kind() == "ConfigMap" {
            "package-context.yaml".to_owned()
        } else {
            format!("{}_{}.yaml", object.kind().to_lowercase(), object.name())
        };
        let path = if dir.is_empty() {
            name
        } else {
            format!("{dir}/{name}")
        };
        if blueprint.tree.files.contains_key(&path) {
            let shown = blueprint.dir.join(&path).display().to_string();
            let message = format!(
                "{} belongs into {path}, but the blueprint has a file of that name",
                object.reference()
            );
            let finding = Finding::error(Code::FileInTheWay, message).located(shown, 1, 1);
            findings.push(finding.help("Rename the file of the blueprint."));
            continue;
        }
        files.insert(path, emit(&object.value));
    }
    (files, findings)
}
