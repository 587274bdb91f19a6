//! A place with published blueprints, Networks as pools, clusters and a file book.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use mooring_api::{Code, Time};
use mooring_book::{FileStore, Filter, Options, Store};
use mooring_ipam::Thing;
use mooring_package::{Report, Request, render};
use serde_json::Value;

pub(crate) struct Place {
    dir: tempfile::TempDir,
    oracles: PathBuf,
}

impl Place {
    /// None where the oracles are absent, which was counted. The cluster edge01 is known.
    pub(crate) fn new(what: &str) -> Option<Self> {
        let oracles = mooring_testkit::oracles(what)?.join("nephio");
        let place = Self {
            dir: tempfile::tempdir().unwrap(),
            oracles,
        };
        for entry in fs::read_dir(place.oracles.join("networks")).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if name.starts_with("vpc-") {
                place.write(&format!("mgmt/{name}"), &fs::read_to_string(path).unwrap());
            }
        }
        place.cluster("edge01");
        Some(place)
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.dir.path().join(below)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn edit(&self, path: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.path(path)).unwrap();
        assert!(text.contains(from), "{path} has no {from}");
        self.write(path, &text.replace(from, to));
    }

    /// A WorkloadCluster on the management side.
    pub(crate) fn cluster(&self, name: &str) {
        let text = format!(
            "apiVersion: infra.nephio.org/v1alpha1\nkind: WorkloadCluster\nmetadata:\n  name: {name}\nspec:\n  \
             clusterName: {name}\n  cnis: [macvlan, ipvlan, sriov]\n  masterInterface: eth1\n"
        );
        self.write(&format!("mgmt/cluster-{name}.yaml"), &text);
    }

    /// A fresh copy of a published blueprint: upf, smf or du.
    pub(crate) fn blueprint(&self, which: &str, to: &str) {
        let from = self
            .oracles
            .join(format!("blueprints/pkg-example-{which}-bp"));
        let to = self.path(to);
        if to.exists() {
            fs::remove_dir_all(&to).unwrap();
        }
        fs::create_dir_all(&to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let path = entry.unwrap().path();
            fs::write(to.join(path.file_name().unwrap()), fs::read(&path).unwrap()).unwrap();
        }
    }

    pub(crate) fn book(&self) -> FileStore {
        FileStore::open(&self.path("book.redb"), &Options::default()).unwrap()
    }

    pub(crate) fn try_render(&self, source: &str, adjust: impl FnOnce(&mut Request)) -> Report {
        let mut entropy = [0; 16];
        for (place, byte) in entropy.iter_mut().zip(source.bytes()) {
            *place = byte;
        }
        let mut request = Request {
            source: self.path(source),
            out: None,
            mgmt: Some(self.path("mgmt")),
            published: Vec::new(),
            cluster: Some("edge01".into()),
            dialect: None,
            check: false,
            new_id: false,
            draft: None,
            pinned: false,
            deploy_records: false,
            now: Time(1_800_000_000),
            entropy,
        };
        adjust(&mut request);
        render(&self.book(), &request, &|_, _| {}).unwrap()
    }

    /// Renders; errors fail the test.
    pub(crate) fn render(&self, source: &str, adjust: impl FnOnce(&mut Request)) -> Report {
        let report = self.try_render(source, adjust);
        assert!(!report.has_errors(), "{:?}", report.findings);
        report
    }

    /// The first object of a file.
    pub(crate) fn object(&self, path: &str) -> Value {
        documents(&self.path(path)).remove(0)
    }

    /// Names of the files of a package that begin so.
    pub(crate) fn files(&self, dir: &str, start: &str) -> Vec<String> {
        let files = fs::read_dir(self.path(dir)).unwrap();
        let names = files.map(|f| f.unwrap().file_name().to_str().unwrap().to_owned());
        let mut names: Vec<String> = names.filter(|n| n.starts_with(start)).collect();
        names.sort();
        names
    }

    /// Which clusters have how many addresses.
    pub(crate) fn clusters_with_addresses(&self) -> Vec<(String, usize)> {
        let mut found: BTreeMap<String, usize> = BTreeMap::new();
        for lease in self.book().leases(&Filter::default()).unwrap() {
            if matches!(lease.thing, Thing::Addr(_)) {
                *found.entry(lease.holder.cluster).or_default() += 1;
            }
        }
        found.into_iter().collect()
    }
}

pub(crate) fn documents(path: &Path) -> Vec<Value> {
    let bytes = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let file = mooring_krm::File::parse(&bytes).unwrap();
    file.documents().iter().map(|d| d.value().clone()).collect()
}

/// Condition type → whether it is True.
pub(crate) fn conditions(package: &Path) -> BTreeMap<String, bool> {
    let kptfile = documents(&package.join("Kptfile")).remove(0);
    let all = mooring_krm::kptfile::conditions(&kptfile);
    all.into_iter()
        .map(|c| (c.kind, c.status == mooring_api::Status::True))
        .collect()
}

/// Everything in a package but what says how it came about: pipeline, texts and order of conditions.
pub(crate) fn meaning(package: &Path) -> (BTreeMap<String, Value>, BTreeMap<String, bool>) {
    let mut objects = BTreeMap::new();
    for entry in fs::read_dir(package).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name != "Kptfile" {
            objects.insert(name, Value::Array(documents(&path)));
        }
    }
    (objects, conditions(package))
}

/// What the packages of a run wait for.
pub(crate) fn waits_for(report: &Report) -> Vec<&str> {
    let findings = report.findings.iter();
    let waiting = findings.filter(|f| f.code == Code::WaitingForPackage);
    waiting.map(|f| f.message.as_str()).collect()
}
