//! A place with packages, a management directory and a file book, for tests that act more than once.

use std::fs;
use std::path::{Path, PathBuf};

use mooring_api::Time;
use mooring_book::{FileStore, Filter, Options, Store};
use mooring_ipam::Thing;
use mooring_package::{Report, Request, render};
use serde_json::Value;

/// A temporary directory with `mgmt/` and `book.redb`.
pub(crate) struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    /// With the site of the folder cases as management directory.
    pub(crate) fn new() -> Self {
        let place = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        copy(&tests().join("site"), &place.path("mgmt"));
        place
    }

    /// A path below the place.
    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.dir.path().join(below)
    }

    /// Writes a file, with the directories it needs.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The input of a folder case as a package.
    pub(crate) fn copy_case(&self, case: &str, to: &str) {
        copy(
            &tests().join("cases").join(case).join("input"),
            &self.path(to),
        );
    }

    /// A package with these Interfaces on network `vpc-control`.
    pub(crate) fn package(&self, dir: &str, interfaces: &[&str]) {
        let name = dir.rsplit('/').next().unwrap();
        let kptfile = self.path(dir).join("Kptfile");
        if !kptfile.exists() {
            self.write(
                &format!("{dir}/Kptfile"),
                &format!("apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: {name}\n"),
            );
        }
        let documents: Vec<String> = interfaces
            .iter()
            .map(|i| {
                format!(
                    "apiVersion: req.nephio.org/v1alpha1\nkind: Interface\nmetadata:\n  name: {i}\nspec:\n  \
                     networkInstance:\n    name: vpc-control\n  cniType: macvlan\n"
                )
            })
            .collect();
        self.write(&format!("{dir}/interfaces.yaml"), &documents.join("---\n"));
    }

    /// The book, opened as a new process would.
    pub(crate) fn book(&self) -> FileStore {
        FileStore::open(&self.path("book.redb"), &Options::default()).unwrap()
    }

    /// A request for a package of this place.
    pub(crate) fn request(&self, source: &str) -> Request {
        Request {
            source: self.path(source),
            out: None,
            mgmt: Some(self.path("mgmt")),
            cluster: Some("edge-cluster-1".into()),
            dialect: None,
            check: false,
            new_id: false,
            draft: None,
            pinned: false,
            published: Vec::new(),
            deploy_records: false,
            now: Time(1_800_000_000),
            entropy: entropy(source),
        }
    }

    /// Renders and returns the report, whatever it says.
    pub(crate) fn try_render(&self, source: &str, adjust: impl FnOnce(&mut Request)) -> Report {
        let mut request = self.request(source);
        adjust(&mut request);
        render(&self.book(), &request, &|_, _| {}).unwrap()
    }

    /// Renders; errors fail the test.
    pub(crate) fn render(&self, source: &str, adjust: impl FnOnce(&mut Request)) -> Report {
        let report = self.try_render(source, adjust);
        assert!(!report.has_errors(), "{:?}", report.findings);
        report
    }

    /// Every address in the book, in order.
    pub(crate) fn held(&self) -> Vec<String> {
        let leases = self.book().leases(&Filter::default()).unwrap();
        leases
            .iter()
            .filter(|l| matches!(l.thing, Thing::Addr(_)))
            .map(|l| l.thing.to_string())
            .collect()
    }

    /// Interface → address of a rendered package.
    pub(crate) fn addresses(&self, package: &str) -> Vec<(String, String)> {
        let mut all: Vec<(String, String)> = documents(&self.path(package))
            .iter()
            .filter(|d| d["kind"] == "IPClaim")
            .map(|d| {
                let text = |v: &Value| v.as_str().unwrap_or("-").to_owned();
                (text(&d["metadata"]["name"]), text(&d["status"]["prefix"]))
            })
            .collect();
        all.sort();
        all
    }
}

fn entropy(source: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    for (i, b) in source.bytes().enumerate() {
        bytes[i % 16] ^= b
            .wrapping_mul(31)
            .wrapping_add(u8::try_from(i % 251).unwrap());
    }
    bytes
}

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// Copies a directory.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Every document below a directory.
pub(crate) fn documents(dir: &Path) -> Vec<Value> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            all.extend(documents(&path));
        } else if name == "Kptfile" || path.extension().is_some_and(|e| e == "yaml") {
            let file = mooring_krm::File::parse(&fs::read(&path).unwrap()).unwrap();
            all.extend(file.documents().iter().map(|d| d.value().clone()));
        }
    }
    all
}

/// The one object of that kind and name.
pub(crate) fn object(dir: &Path, kind: &str, name: &str) -> Value {
    let mut found = documents(dir);
    found.retain(|d| d["kind"] == kind && d["metadata"]["name"] == name);
    assert_eq!(
        found.len(),
        1,
        "{kind}/{name} in {}: {found:?}",
        dir.display()
    );
    found.remove(0)
}
