//! Blueprints on disk: found by repository, package and revision, read and parsed once, however many variants.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use mooring_api::kinds::porch::Upstream;
use mooring_api::{Code, Finding, annotation};
use mooring_blueprint::variant::Variant;
use mooring_krm::{File, KPTFILE, layout};
use serde_json::Value;

use crate::disk::{Disk, Kind, MAX_FILE, RealDisk, Tree, read_tree};
use crate::documents::Documents;

/// The blueprints of a fleet.
pub(super) struct Blueprints {
    root: PathBuf,
    by_upstream: BTreeMap<Upstream, Blueprint>,
}

/// A blueprint.
pub(crate) struct Blueprint {
    pub(super) dir: PathBuf,
    pub(super) tree: Tree,
    /// Its packages, the root first.
    pub(super) parts: Vec<Part>,
}

/// A package of a blueprint: the blueprint itself, or one inside of it.
pub(super) struct Part {
    /// Directory below the blueprint; empty for the blueprint itself.
    pub(super) dir: String,
    pub(super) documents: Documents,
    /// Place of the Kptfile.
    pub(super) kptfile: usize,
}

impl Blueprint {
    /// Parses the files of a blueprint, or says everything that keeps it from being read.
    pub(crate) fn parse(dir: PathBuf, tree: Tree) -> Result<Self, Vec<Finding>> {
        let mut findings = Vec::new();
        let mut parts = Vec::new();
        for package in layout(&tree.files).packages {
            let files = package.files.iter();
            let files = files.filter_map(|p| Some((p.as_str(), tree.files.get(p)?.as_slice())));
            let shown = |path: &str| dir.join(path).display().to_string();
            let documents = Documents::parse(files, shown, &mut findings);
            let start = if package.directory.is_empty() {
                String::new()
            } else {
                format!("{}/", package.directory)
            };
            match documents.kptfile(&format!("{start}{KPTFILE}")) {
                Some(kptfile) => parts.push(Part {
                    dir: package.directory,
                    documents,
                    kptfile,
                }),
                // A finding of the documents says why.
                None => documents.check(&mut findings),
            }
        }
        if findings.is_empty() {
            Ok(Self { dir, tree, parts })
        } else {
            Err(findings)
        }
    }

    /// Whether there is a package at its root.
    pub(crate) fn has_root(&self) -> bool {
        self.parts.iter().any(|part| part.dir.is_empty())
    }

    /// Its documents.
    pub(crate) fn into_files(self) -> BTreeMap<String, Vec<u8>> {
        self.tree.files
    }
}

/// Where a blueprint stands, or every place where it could.
fn find(root: &Path, upstream: &Upstream) -> Result<PathBuf, Vec<PathBuf>> {
    let package = root.join(&upstream.repo).join(&upstream.package);
    let mut tried = Vec::new();
    if let Some(revision) = upstream.revision.filter(|r| *r > 0) {
        tried.push(package.join(format!("v{revision}")));
    }
    if let Some(workspace) = &upstream.workspace_name {
        tried.push(package.join(workspace));
    }
    // A checkout without directories per revision holds the one that was checked out.
    if tried.is_empty() || !has_revisions(&package) {
        tried.push(package);
    }
    let is_package = |dir: &&PathBuf| RealDisk.meta(&dir.join(KPTFILE)).is_ok();
    match tried.iter().find(is_package) {
        Some(dir) => Ok(dir.clone()),
        None => Err(tried),
    }
}

fn has_revisions(package: &Path) -> bool {
    let entries = RealDisk.list(package).unwrap_or_default();
    entries.iter().any(|entry| {
        let number = entry.name.to_str().and_then(|name| name.strip_prefix('v'));
        let is_revision = number.is_some_and(|n| n.parse::<u32>().is_ok());
        is_revision
            && entry.kind == Kind::Dir
            && RealDisk
                .meta(&package.join(&entry.name).join(KPTFILE))
                .is_ok()
    })
}

/// The Kptfile of a blueprint, where it is there and can be read.
pub(super) fn kptfile(root: &Path, upstream: &Upstream) -> Option<Value> {
    let dir = find(root, upstream).ok()?;
    let bytes = RealDisk.read(&dir.join(KPTFILE), MAX_FILE).ok()?;
    let file = File::parse(&bytes).ok()?;
    Some(file.documents().first()?.value().clone())
}

/// The id of the package whose Kptfile stands at this path of a tree.
pub(super) fn id(tree: &Tree, path: &str) -> Option<String> {
    if path != KPTFILE && !path.ends_with("/Kptfile") {
        return None;
    }
    let file = File::parse(tree.files.get(path)?).ok()?;
    let value = file.documents().first()?.value();
    let id = mooring_krm::kptfile::annotation(value, annotation::PACKAGE_ID);
    id.map(ToOwned::to_owned)
}

impl Blueprints {
    pub(super) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            by_upstream: BTreeMap::new(),
        }
    }

    /// The blueprint of a variant that was read.
    pub(super) fn of(&self, variant: &Variant) -> Option<&Blueprint> {
        self.by_upstream.get(&variant.spec.upstream)
    }

    /// Where it stands, as a person would type it.
    pub(super) fn shown(&self, variant: &Variant) -> String {
        let dir = self.of(variant).map(|b| b.dir.display().to_string());
        dir.unwrap_or_default()
    }

    /// Reads the blueprint of a variant, unless it was read already.
    pub(super) fn read(&mut self, variant: &Variant) -> Vec<Finding> {
        let upstream = &variant.spec.upstream;
        if self.by_upstream.contains_key(upstream) {
            return Vec::new();
        }
        let dir = match find(&self.root, upstream) {
            Ok(dir) => dir,
            Err(tried) => {
                let tried: Vec<String> = tried.iter().map(|d| d.display().to_string()).collect();
                return vec![
                    Finding::error(
                        Code::BlueprintMissing,
                        format!("there is no blueprint; looked for a Kptfile in {}", tried.join(", ")),
                    )
                    .on(&variant.origin)
                    .at("spec.upstream.package")
                    .help("Correct the name, put the blueprint there, or say where blueprints are with --blueprints."),
                ];
            }
        };
        let tree = match read_tree(&RealDisk, &dir) {
            Ok(tree) => tree,
            Err(findings) => return findings,
        };
        match Blueprint::parse(dir, tree) {
            Ok(blueprint) => {
                self.by_upstream.insert(upstream.clone(), blueprint);
                Vec::new()
            }
            Err(findings) => findings,
        }
    }

    /// A clone's lines differ from the blueprint's where the variant changed something above them; what a person
    /// opens is the blueprint.
    pub(super) fn relocate(&self, finding: &mut Finding) {
        let Some(location) = &finding.location else {
            return;
        };
        let parts = self.by_upstream.values().flat_map(|b| &b.parts);
        let holds = |part: &&Part| {
            part.documents
                .files
                .iter()
                .any(|f| f.shown == location.file)
        };
        let Some(part) = parts.into_iter().find(holds) else {
            return;
        };
        let mut asked = Finding {
            location: None,
            ..finding.clone()
        };
        if let Some(object) = asked.object.as_mut().filter(|o| o.kind == "Kptfile") {
            // The clone has another name.
            let kptfile = part.documents.value(part.kptfile);
            let name = mooring_krm::kptfile::package_name(kptfile);
            name.unwrap_or_default().clone_into(&mut object.name);
        }
        if let Some(there) = part.documents.locate(asked).location {
            finding.location = Some(there);
        }
    }
}
