//! Reads a directory as a fleet: clusters are its directories, packages theirs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use mooring_api::ObjectRef;
use mooring_krm::File;
use mooring_verify::{CniFile, Fleet, Input, Origin, Report, Reservation, verify_fleet};
use serde_json::Value;

/// What was read, kept for the inputs that borrow it.
#[derive(Default)]
pub(crate) struct Files {
    objects: Vec<(Origin, Value)>,
    cni: Vec<(String, String, String)>,
    reservations: Vec<Reservation>,
}

impl Files {
    /// Everything below a directory with one directory per cluster.
    pub(crate) fn read(root: &Path) -> Self {
        let mut out = Self::default();
        for (path, bytes) in tree(root) {
            let parts: Vec<&str> = path.split('/').collect();
            let text = || String::from_utf8(bytes.clone()).unwrap();
            match parts.as_slice() {
                ["reservations"] => out.reserve(&text()),
                [cluster, "net.d", name] => {
                    out.conf(cluster, name, &text());
                }
                [cluster, file] => out.add(cluster, "", file, &bytes),
                [cluster, package, .., file] => out.add(cluster, package, file, &bytes),
                _ => panic!("{path} is in no cluster"),
            }
        }
        out
    }

    /// Every manifest below a directory, as one package of one cluster.
    pub(crate) fn package(cluster: &str, root: &Path) -> Self {
        let mut out = Self::default();
        out.also(cluster, root);
        out
    }

    /// The manifests directly in a directory: what goes in together, and what is expected to come out, which stands in files
    /// that begin with `_`.
    pub(crate) fn alone(cluster: &str, dir: &Path) -> Vec<Self> {
        let (mut given, mut all) = (Self::default(), Vec::new());
        for entry in fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()) {
            let name = entry.file_name().unwrap().to_str().unwrap().to_owned();
            if entry.is_dir() {
                continue;
            }
            let bytes = fs::read(&entry).unwrap();
            if name.starts_with('_') {
                let mut expected = Self::default();
                expected.add(cluster, "", &name, &bytes);
                all.push(expected);
            } else {
                given.add(cluster, "", &name, &bytes);
            }
        }
        all.push(given);
        all
    }

    /// Those below another directory too.
    pub(crate) fn also(&mut self, cluster: &str, root: &Path) {
        for (path, bytes) in tree(root) {
            let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
            self.add(cluster, directory, &path, &bytes);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }

    fn reserve(&mut self, text: &str) {
        for line in text.lines() {
            let (range, holder) = line.split_once(' ').unwrap();
            self.reservations.push(Reservation {
                scope: None,
                range: range.parse().unwrap(),
                subnet: None,
                holder: holder.to_owned(),
            });
        }
    }

    fn add(&mut self, cluster: &str, package: &str, file: &str, bytes: &[u8]) {
        let ending = file.rsplit_once('.').map(|(_, ending)| ending);
        let is_manifest = matches!(ending, Some("yaml" | "yml"));
        // Broken files are what some cases of other rooms are about.
        let Ok(parsed) = File::parse(bytes) else {
            return;
        };
        for document in parsed.documents().iter().filter(|_| is_manifest) {
            let value = document.value();
            match value.get("items").and_then(Value::as_array) {
                Some(items) => {
                    let items = items.iter().cloned();
                    items.for_each(|item| self.object(cluster, package, file, item));
                }
                None => self.object(cluster, package, file, value.clone()),
            }
        }
    }

    /// One object; what has no kind is none.
    pub(crate) fn object(&mut self, cluster: &str, package: &str, file: &str, value: Value) {
        let text = |path: &str| {
            let text = value.pointer(path).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        if text("/kind").is_empty() {
            return;
        }
        let object = ObjectRef::new(text("/apiVersion"), text("/kind"), text("/metadata/name"))
            .within(text("/metadata/namespace"));
        let origin = Origin {
            cluster: cluster.into(),
            package: package.into(),
            file: file.into(),
            object,
        };
        self.objects.push((origin, value));
    }

    /// A CNI configuration file of a cluster's nodes.
    pub(crate) fn conf(&mut self, cluster: &str, name: &str, text: &str) {
        self.cni.push((cluster.into(), name.into(), text.into()));
    }

    /// The report, with the objects in the order they were read or in the opposite one.
    pub(crate) fn verify(&self, reversed: bool) -> Report {
        let mut kept = self.objects.clone();
        let mut cni = self.cni.clone();
        let mut reservations = self.reservations.clone();
        if reversed {
            kept.reverse();
            cni.reverse();
            reservations.reverse();
        }
        let fleet = Fleet {
            objects: kept
                .iter()
                .map(|(origin, value)| Input {
                    origin: origin.clone(),
                    scope: None,
                    value,
                })
                .collect(),
            files: cni
                .iter()
                .map(|(cluster, name, text)| CniFile {
                    cluster: cluster.clone(),
                    node: String::new(),
                    name: name.clone(),
                    text,
                })
                .collect(),
            reservations,
        };
        verify_fleet(&fleet)
    }
}

/// Path below the root, and bytes.
fn tree(root: &Path) -> BTreeMap<String, Vec<u8>> {
    fn walk(dir: &Path, below: &str, into: &mut BTreeMap<String, Vec<u8>>) {
        for entry in fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{below}{}", entry.file_name().to_str().unwrap());
            if entry.path().is_dir() {
                walk(&entry.path(), &format!("{name}/"), into);
            } else {
                into.insert(name, fs::read(entry.path()).unwrap());
            }
        }
    }
    let mut out = BTreeMap::new();
    walk(root, "", &mut out);
    out
}
