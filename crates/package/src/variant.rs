//! A variant's clone of its blueprint, on bytes in memory; and what a package in memory says about itself.
//!
//! ```text
//!  files of the blueprint ─ clone_variant ─► files of the package, ready to be specialised ─► Kpt: gates, conditions
//! ```
//!
//! The controller calls it between reading a blueprint from Git and specialising the clone, so that what is pushed was
//! never half-mutated. A fleet on disk makes its clones with the same functions. Easy to get wrong: the clone carries two
//! marks, whose it is and what it was made from; they are how a later pass tells its own package from a person's.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

use mooring_api::{Code, Condition, Finding, Status, annotation};
use mooring_blueprint::Object;
use mooring_blueprint::variant::{Offers, Variant};
use mooring_krm::{Document, File, KPTFILE, kptfile};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::disk::{Tree, is_document};
use crate::documents::Documents;
use crate::fleet::blueprint::Blueprint;
use crate::fleet::clone::changed;

/// A package in memory: path below it → bytes.
pub type Files = BTreeMap<String, Vec<u8>>;

/// A clone that is not specialised yet.
#[derive(Clone, Debug, Default)]
pub struct VariantClone {
    /// Its files.
    pub files: Files,
    /// Says what it was made from: the blueprint, the variant and what was injected. The same digest, the same clone.
    pub digest: String,
    /// What is wrong. With an error there are no files.
    pub findings: Vec<Finding>,
}

/// Makes a variant's clone of a blueprint. `site` are the objects that it may be filled from; `origin` is where the
/// blueprint stands, for people.
pub fn clone_variant(
    variant: &Variant,
    blueprint: &Files,
    site: &[Object],
    origin: &str,
) -> VariantClone {
    let (tree, others) = split(blueprint);
    let blueprint = match Blueprint::parse(PathBuf::from(origin), tree) {
        Ok(blueprint) if blueprint.has_root() => blueprint,
        Ok(_) => return refused(vec![no_kptfile(origin)]),
        Err(findings) => return refused(findings),
    };
    let (changed, findings) = changed(variant, &blueprint, &Offers::new(site));
    if findings.iter().any(Finding::is_error) {
        return refused(findings);
    }
    let mut files = blueprint.into_files();
    files.extend(others);
    let changed = changed.into_iter();
    files.extend(changed.map(|(path, text)| (path, text.into_bytes())));
    let digest = digest(&files);
    let marks = [
        (
            annotation::VARIANT,
            format!("{}/{}", variant.namespace, variant.name),
        ),
        (annotation::MADE_FROM, digest.clone()),
    ];
    match annotate(&files, &marks) {
        Ok(text) => drop(files.insert(KPTFILE.to_owned(), text)),
        Err(finding) => return refused(vec![*finding]),
    }
    VariantClone {
        files,
        digest,
        findings,
    }
}

fn no_kptfile(origin: &str) -> Finding {
    Finding::error(Code::PackageMissing, format!("{origin} holds no Kptfile"))
        .help("Name a package: a directory with a Kptfile.")
}

fn not_editable(error: &str) -> Finding {
    Finding::error(
        Code::YamlInvalid,
        format!("the file cannot be edited: {error}"),
    )
    .located(KPTFILE, 1, 1)
    .help("Write the object out without the alias or tag that stands in the way.")
}

fn refused(findings: Vec<Finding>) -> VariantClone {
    VariantClone {
        findings,
        ..VariantClone::default()
    }
}

/// Documents, and everything else.
fn split(files: &Files) -> (Tree, Files) {
    let mut tree = Tree::default();
    let mut others = Files::new();
    for (path, bytes) in files {
        let name = path.rsplit('/').next().unwrap_or(path);
        if is_document(name) {
            tree.files.insert(path.clone(), bytes.clone());
        } else {
            others.insert(path.clone(), bytes.clone());
        }
    }
    (tree, others)
}

fn digest(files: &Files) -> String {
    let mut all = Sha256::new();
    for (path, bytes) in files {
        all.update(path.len().to_be_bytes());
        all.update(path);
        all.update(bytes.len().to_be_bytes());
        all.update(bytes);
    }
    let mut text = String::new();
    for byte in &all.finalize()[..16] {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The Kptfile with annotations that are set.
fn annotate(files: &Files, marks: &[(&str, String)]) -> Result<Vec<u8>, Box<Finding>> {
    edit(files, |kptfile| {
        for (key, value) in marks {
            kptfile::set_annotation(kptfile, key, value);
        }
    })
}

/// The Kptfile of a package with one condition set. What did not change keeps its bytes.
pub fn with_condition(files: &Files, condition: &Condition) -> Result<Vec<u8>, Box<Finding>> {
    edit(files, |kptfile| kptfile::set_condition(kptfile, condition))
}

/// The Kptfile of a package without the condition of this type.
pub fn without_condition(files: &Files, kind: &str) -> Result<Vec<u8>, Box<Finding>> {
    edit(files, |kptfile| {
        kptfile::remove_condition(kptfile, kind);
    })
}

fn edit(files: &Files, change: impl FnOnce(&mut Value)) -> Result<Vec<u8>, Box<Finding>> {
    let bytes = files.get(KPTFILE).map(Vec::as_slice).unwrap_or_default();
    let mut findings = Vec::new();
    let documents = Documents::parse([(KPTFILE, bytes)], str::to_owned, &mut findings);
    let missing = || Box::new(no_kptfile("the package"));
    let place = match findings.into_iter().next() {
        Some(finding) => return Err(Box::new(finding)),
        None => documents.kptfile(KPTFILE).ok_or_else(missing)?,
    };
    let mut value = documents.value(place).clone();
    change(&mut value);
    if value == *documents.value(place) {
        return Ok(bytes.to_vec());
    }
    let (_, document) = documents.places[place];
    let file = &documents.files[0].file;
    let values = file.documents().iter().enumerate();
    let values: Vec<Option<&Value>> = values
        .map(|(nth, d)| Some(if nth == document { &value } else { d.value() }))
        .collect();
    let text = file
        .rewrite(&values, &[])
        .map_err(|error| Box::new(not_editable(&error.to_string())))?;
    Ok(text.into_bytes())
}

/// What a package in memory says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kpt {
    /// Its name.
    pub name: String,
    /// Its minted id; empty for a package that was never specialised.
    pub id: String,
    /// `namespace/name` of the variant that made it; empty where a person did.
    pub variant: String,
    /// What its variant made it from.
    pub made_from: String,
    /// All annotations.
    pub annotations: BTreeMap<String, String>,
    /// Condition types that must be True before it is published.
    pub gates: Vec<String>,
    /// What holds.
    pub conditions: Vec<Condition>,
    /// The clusters that it names: WorkloadClusters in it, by their own name.
    pub clusters: Vec<String>,
}

impl Kpt {
    /// Reads a package; None where it has no Kptfile that can be read.
    pub fn read(files: &Files) -> Option<Self> {
        let file = File::parse(files.get(KPTFILE)?).ok()?;
        let value = file
            .documents()
            .iter()
            .map(Document::value)
            .find(|v| kptfile::is_kptfile(v))?;
        let marks = crate::unit::marks(value);
        let text = |key: &str| marks.annotations.get(key).cloned().unwrap_or_default();
        Some(Self {
            name: marks.name.clone(),
            id: text(annotation::PACKAGE_ID),
            variant: text(annotation::VARIANT),
            made_from: text(annotation::MADE_FROM),
            gates: marks.gates.iter().cloned().collect(),
            conditions: marks.conditions.iter().cloned().collect(),
            annotations: marks.annotations,
            clusters: clusters(files),
        })
    }

    /// The gates whose condition is not True.
    pub fn unmet(&self) -> Vec<&str> {
        let holds = |gate: &&String| {
            let of = |c: &&Condition| c.kind == ***gate;
            let found = self.conditions.iter().find(of);
            found.is_none_or(|c| c.status != Status::True)
        };
        self.gates
            .iter()
            .filter(holds)
            .map(String::as_str)
            .collect()
    }
}

fn clusters(files: &Files) -> Vec<String> {
    let objects = objects(files);
    let clusters = objects
        .iter()
        .filter(|o| o.is("infra.nephio.org", "WorkloadCluster"));
    let names: BTreeSet<String> = clusters.map(mooring_blueprint::cluster::name_of).collect();
    names.into_iter().collect()
}

/// Every object of a package that can be read.
fn objects(files: &Files) -> Vec<Object> {
    let (tree, _) = split(files);
    let parsed = tree
        .files
        .values()
        .filter_map(|bytes| File::parse(bytes).ok());
    let mut objects = Vec::new();
    for file in parsed {
        let values = file.documents().iter().map(Document::value);
        objects.extend(values.filter(|v| v.is_object()).map(|value| Object {
            value: value.clone(),
            source: None,
        }));
    }
    objects
}

/// `apiVersion` and kind of everything that a package wants injected.
pub fn injection_points(files: &Files) -> BTreeSet<(String, String)> {
    let points = objects(files).into_iter();
    let points = points.filter(|o| o.annotation(annotation::CONFIG_INJECTION).is_some());
    points
        .map(|o| (o.api_version().to_owned(), o.kind().to_owned()))
        .collect()
}

/// The Kptfile of a package, as a value.
pub fn kptfile_of(files: &Files) -> Option<Value> {
    document(files.get(KPTFILE)?)
}

/// The first document of a file; None where it is no YAML.
pub fn document(bytes: &[u8]) -> Option<Value> {
    let file = File::parse(bytes).ok()?;
    Some(file.documents().first()?.value().clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mooring_api::ObjectRef;
    use mooring_api::kinds::porch::{Downstream, Injector, PackageVariantSpec, Upstream};
    use serde_json::json;

    fn blueprint() -> Files {
        let kptfile = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: upf # kept\n";
        let point = "apiVersion: infra.nephio.org/v1alpha1\nkind: WorkloadCluster\nmetadata:\n  name: here\n  annotations:\n    kpt.dev/config-injection: required\nspec:\n  clusterName: example\n";
        Files::from([
            ("Kptfile".to_owned(), kptfile.into()),
            ("cluster.yaml".to_owned(), point.into()),
            ("README.md".to_owned(), b"\xff not text".to_vec()),
        ])
    }

    fn variant() -> Variant {
        Variant {
            name: "upf-edge".into(),
            namespace: "default".into(),
            spec: PackageVariantSpec {
                upstream: Upstream {
                    repo: "blueprints".into(),
                    package: "upf".into(),
                    ..Upstream::default()
                },
                downstream: Downstream {
                    repo: "edge".into(),
                    package: "core/upf-a".into(),
                },
                injectors: vec![Injector {
                    name: "edge01".into(),
                    ..Injector::default()
                }],
                ..PackageVariantSpec::default()
            },
            origin: ObjectRef::new(
                "config.porch.kpt.dev/v1alpha1",
                "PackageVariant",
                "upf-edge",
            ),
            place: "spec.downstream".into(),
        }
    }

    fn cluster(nic: &str) -> Object {
        Object {
            value: json!({
                "apiVersion": "infra.nephio.org/v1alpha1", "kind": "WorkloadCluster",
                "metadata": { "name": "edge01", "namespace": "default" },
                "spec": { "clusterName": "edge01", "cnis": ["macvlan"], "masterInterface": nic },
            }),
            source: None,
        }
    }

    #[test]
    fn a_clone_is_whole_and_says_whose_it_is() {
        let clone = clone_variant(
            &variant(),
            &blueprint(),
            &[cluster("eth1")],
            "blueprints/upf",
        );
        assert_eq!(clone.findings, []);
        let kpt = Kpt::read(&clone.files).expect("the clone has a Kptfile");
        assert_eq!(kpt.name, "upf-a");
        assert_eq!(kpt.variant, "default/upf-edge");
        assert_eq!(kpt.made_from, clone.digest);
        assert_eq!(kpt.clusters, ["edge01"]);
        assert_eq!(kpt.gates, ["config.injection.WorkloadCluster.here"]);
        assert_eq!(kpt.unmet(), Vec::<&str>::new());
        assert_eq!(clone.files["README.md"], b"\xff not text");
        let text = String::from_utf8_lossy(&clone.files["Kptfile"]);
        assert!(text.contains("# kept"), "{text}");
    }

    #[test]
    fn the_digest_follows_what_was_injected_and_nothing_else() {
        let digest = |nic| clone_variant(&variant(), &blueprint(), &[cluster(nic)], "x").digest;
        assert_eq!(digest("eth1"), digest("eth1"));
        assert_ne!(digest("eth1"), digest("eth2"));
    }

    #[test]
    fn a_blueprint_without_a_kptfile_is_refused() {
        let mut files = blueprint();
        files.remove("Kptfile");
        let clone = clone_variant(&variant(), &files, &[cluster("eth1")], "blueprints/upf");
        assert!(clone.files.is_empty());
        assert_eq!(clone.findings[0].code, Code::PackageMissing);
    }

    #[test]
    fn points_are_found_by_their_kind() {
        let kind = (
            "infra.nephio.org/v1alpha1".to_owned(),
            "WorkloadCluster".to_owned(),
        );
        assert_eq!(injection_points(&blueprint()), BTreeSet::from([kind]));
    }

    #[test]
    fn a_condition_is_set_once_and_taken_away_again() {
        let condition = Condition {
            kind: "mooring.dev.Specialised".into(),
            status: Status::False,
            reason: "MissingCluster".into(),
            message: "no cluster".into(),
        };
        let mut files = blueprint();
        let before = files["Kptfile"].clone();
        let with = with_condition(&files, &condition).expect("the Kptfile can be edited");
        files.insert("Kptfile".into(), with.clone());
        assert_eq!(with_condition(&files, &condition).expect("again"), with);
        let kpt = Kpt::read(&files).expect("there is a Kptfile");
        assert_eq!(kpt.conditions, [condition]);
        let without = without_condition(&files, "mooring.dev.Specialised").expect("taken away");
        files.insert("Kptfile".into(), without);
        assert_eq!(Kpt::read(&files).expect("still there").conditions, []);
        assert_ne!(with, before);
    }
}
