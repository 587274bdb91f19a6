//! The management side: pools and clusters, from `--mgmt` or from an API server.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

use mooring_api::{Code, Finding};
use mooring_blueprint::{Object, cluster, networks, pools};
use mooring_ipam::Pools;
use mooring_krm::{File, emit};
use serde_json::Value;

use crate::disk::{LOCK_WAIT, RealDisk, TreeLock, read_tree};
use crate::documents::Documents;
use crate::journal;

/// What the management directory says.
#[derive(Debug, Default)]
pub struct Site {
    /// Instances and prefixes.
    pub(crate) pools: Pools,
    /// Every object, for injection.
    pub(crate) objects: Vec<Object>,
    /// Where they stand.
    pub(crate) documents: Documents,
    /// What is wrong.
    pub(crate) findings: Vec<Finding>,
    /// The pools as the nephio dialect reads them, once somebody asks.
    nephio: OnceLock<(Pools, Vec<Finding>)>,
}

impl Site {
    /// The pools of the nephio dialect, and what is wrong with them there.
    pub(crate) fn nephio(&self) -> &(Pools, Vec<Finding>) {
        self.nephio.get_or_init(|| networks::read(&self.objects))
    }

    /// The same from objects, as an API server has them. Findings name them `namespace/name`.
    ///
    /// What the server keeps for itself (`managedFields`) is left out, and so is an object that cannot be written as YAML.
    pub fn from_objects<'v>(objects: impl IntoIterator<Item = &'v Value>) -> Self {
        let mut documents = Documents::default();
        for object in objects {
            let text = |at: &str| {
                object
                    .pointer(at)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
            };
            let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
            let shown = match namespace {
                "" => name.to_owned(),
                _ => format!("{namespace}/{name}"),
            };
            let mut object = object.clone();
            if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.remove("managedFields");
            }
            if let Ok(file) = File::parse(emit(&object).as_bytes()) {
                documents.add(shown.clone(), shown, file);
            }
        }
        Self::from_documents(documents, Vec::new())
    }

    /// Lets a pool that an error is about hand out nothing new, instead of refusing everybody. For an API server, whose
    /// pools are many people's, and where the error is told on the object itself.
    #[must_use]
    pub fn set_aside(mut self) -> Self {
        pools::set_aside(&mut self.pools, &self.findings);
        let pools: Vec<_> = self.pools.prefixes.iter().map(|p| &p.origin).collect();
        self.findings
            .retain(|f| !f.is_error() || !f.object.as_ref().is_some_and(|o| pools.contains(&o)));
        self
    }

    /// What is wrong with it. Nothing is rendered with an error among them.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Reads a management directory.
    pub fn read(dir: &Path) -> Self {
        // Half of a change of the pools is neither what was nor what will be. One that is under way ends soon, and
        // has the directory until then.
        if let Ok(Some(_)) = journal::pending(&RealDisk, dir) {
            drop(TreeLock::take(dir, LOCK_WAIT));
        }
        if let Ok(Some(root)) = journal::pending(&RealDisk, dir) {
            return Self {
                findings: vec![interrupted(&root)],
                ..Self::default()
            };
        }
        let tree = match read_tree(&RealDisk, dir) {
            Ok(tree) => tree,
            Err(findings) => {
                return Self {
                    findings,
                    ..Self::default()
                };
            }
        };
        Self::from_files(dir, &tree.files)
    }

    /// The same from files that were read already, as those of `dir`.
    pub(crate) fn from_files(dir: &Path, files: &BTreeMap<String, Vec<u8>>) -> Self {
        let mut findings = Vec::new();
        let files = files
            .iter()
            .map(|(path, bytes)| (path.as_str(), bytes.as_slice()));
        let shown = |path: &str| dir.join(path).display().to_string();
        let documents = Documents::parse(files, shown, &mut findings);
        Self::from_documents(documents, findings)
    }

    /// The same from documents that were read already.
    pub(crate) fn from_documents(documents: Documents, mut findings: Vec<Finding>) -> Self {
        documents.check(&mut findings);
        let objects = documents.objects();
        let mut pools = Pools::default();
        // A pool that does not fit its schema would only repeat the finding in other words.
        if !findings.iter().any(Finding::is_error) {
            let (read, more) = pools::read(&objects);
            pools = read;
            findings.extend(more.into_iter().map(|f| documents.locate(f)));
        }
        Self {
            pools,
            objects,
            documents,
            findings,
            nephio: OnceLock::new(),
        }
    }

    /// Names of the WorkloadClusters.
    pub fn clusters(&self) -> Vec<String> {
        let is_cluster = |o: &&Object| o.is("infra.nephio.org", "WorkloadCluster");
        self.objects
            .iter()
            .filter(is_cluster)
            .map(cluster::name_of)
            .collect()
    }
}

/// What is said where a change of the pools was cut off.
pub(crate) fn interrupted(root: &Path) -> Finding {
    Finding::error(
        Code::RenderInterrupted,
        format!("an interrupted run left {} half-written", root.display()),
    )
    .help("Make the same change once more (moor pool …): it is then finished or undone.")
}
