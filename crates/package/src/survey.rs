//! Everything that is, or will be, deployed: rendered packages and plain manifests of many clusters, read to
//! be judged together.
//!
//! ```text
//!  directories, files, stdin, Git ─► gather (which file belongs to which cluster) ─► parse, on all cores
//!        management directory ─┘                                                  └─► Fleet ─► verify, trace
//! ```
//!
//! Called by `moor verify`, `moor trace` and `moor demo`. Easy to get wrong: two files of one cluster that
//! are taken for two clusters give false alarms, two clusters that are taken for one hide real ones. So a
//! WorkloadCluster decides before any directory's name does, and the user's own word before that.

mod fix;
mod gather;
mod git;
mod inside;
mod kubeadm;
mod named;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use mooring_api::{Code, Finding, ObjectRef, Time, annotation};
use mooring_ipam::{Lease, State};
use mooring_krm::{FieldPath, kptfile};
use mooring_verify::{CniFile, Fleet, Found, Input, Origin, Reservation};
use serde::Serialize;
use serde_json::Value;

use crate::documents::{Documents, position};

pub use fix::{Fixed, FixedFile, Fixing, fix};

/// Something to read.
#[derive(Clone, Debug)]
pub struct Source {
    /// The cluster that all of it belongs to, where the user said so.
    pub cluster: Option<String>,
    /// Where it is.
    pub from: From,
}

/// Where to read from.
#[derive(Clone, Debug)]
pub enum From {
    /// A directory or a file.
    Path(PathBuf),
    /// `REVISION:PATH` of the repository around the current directory.
    Git(String),
    /// A stream that was read already.
    Text {
        /// What to call it.
        shown: String,
        /// What came out of it.
        bytes: Vec<u8>,
    },
}

impl Source {
    /// A path whose cluster is found out.
    pub fn path(path: impl Into<PathBuf>) -> Self {
        Self {
            cluster: None,
            from: From::Path(path.into()),
        }
    }
}

/// What was read, with the way back to file and line.
#[derive(Debug, Default)]
pub struct Survey {
    groups: Vec<Group>,
    sheets: Vec<Sheet>,
    confs: Vec<Conf>,
    reservations: Vec<Reservation>,
    findings: Vec<Finding>,
    /// Objects that stand as text inside others, with where those stand.
    inner: Vec<(Origin, Value)>,
}

/// Files that share their cluster and package.
#[derive(Debug, Default)]
struct Group {
    cluster: String,
    /// Empty for plain manifests.
    package: String,
    is_package: bool,
    /// Where the package is, as a person would type it.
    dir: String,
}

/// One file that could be parsed.
#[derive(Debug)]
struct Sheet {
    group: usize,
    documents: Documents,
    /// Where it can be written.
    disk: Option<PathBuf>,
}

/// A CNI configuration file of a node.
#[derive(Debug)]
struct Conf {
    group: usize,
    node: String,
    name: String,
    shown: String,
    text: String,
}

/// One object: the file, the document in it, and which item where the document is a list.
#[derive(Clone, Copy, Debug)]
struct Entry {
    sheet: usize,
    place: usize,
    item: Option<usize>,
}

/// What [`Survey::verify`] saw.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Verified {
    /// How many different addresses pods get.
    pub addresses: usize,
    /// How many ranges plugins hand out from.
    pub ranges: usize,
    /// How many objects there are.
    pub objects: usize,
    /// In how many clusters.
    pub clusters: usize,
    /// In how many packages.
    pub packages: usize,
    /// The clusters, by name.
    #[serde(rename = "perCluster")]
    pub per_cluster: Vec<ClusterSeen>,
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// What could not be judged, and what to supply so that it can be.
    pub unjudged: Vec<Finding>,
}

/// What was seen of one cluster.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ClusterSeen {
    /// Its name.
    pub name: String,
    /// Packages.
    pub packages: usize,
    /// Objects.
    pub objects: usize,
    /// Findings of severity error.
    pub errors: usize,
    /// Findings of severity warning.
    pub warnings: usize,
}

impl Survey {
    /// Reads sources, and the management directory where there is one. A file that two of them lead to is
    /// read once, and the management directory has the first right to it.
    pub fn read(sources: &[Source], mgmt: Option<&Path>) -> Self {
        let mut gathered = gather::gather(sources, mgmt);
        let work = std::mem::take(&mut gathered.files);
        let parsed = crate::parallel::map(work, |file| {
            let mut findings = Vec::new();
            let shown = |_: &str| file.shown.clone();
            let one = [(file.path.as_str(), file.bytes.as_slice())];
            let documents = Documents::parse(one, shown, &mut findings);
            (file.group, documents, file.disk.clone(), findings)
        });
        let mut survey = Self {
            findings: gathered.findings,
            confs: gathered.confs,
            ..Self::default()
        };
        for (group, documents, disk, findings) in parsed {
            survey.findings.extend(findings);
            survey.sheets.push(Sheet {
                group,
                documents,
                disk,
            });
        }
        survey.groups = named::name(&gathered.places, &survey.sheets);
        for entry in survey.entries() {
            if let Some(inner) = kubeadm::configuration(survey.value(entry)) {
                let object = reference(&inner);
                let origin = Origin {
                    object,
                    ..survey.origin(entry)
                };
                survey.inner.push((origin, inner));
            }
        }
        survey
    }

    /// Adds the addresses that a book keeps for holders outside of packages. What packages hold stands in
    /// the packages.
    pub fn reserve(&mut self, leases: &[Lease], now: Time) {
        let isolated = self.isolated();
        for lease in leases {
            let taken = lease.state.is_live(now) && !matches!(lease.state, State::Cooling { .. });
            let Some(range) = lease.thing.range() else {
                continue;
            };
            if !taken || !lease.holder.package.is_empty() {
                continue;
            }
            let instance = &lease.instance;
            let instance = format!("{}/{}", instance.namespace(), instance.name());
            self.reservations.push(Reservation {
                scope: isolated.contains(&instance).then_some(instance),
                range,
                subnet: lease.subnet,
                holder: lease.holder.workload.clone(),
            });
        }
    }

    /// Everything, for the rules and the packet story. [`Self::verify`] puts file and line to what they find.
    pub fn fleet(&self) -> Fleet<'_> {
        let input = |entry| Input {
            origin: self.origin(entry),
            scope: None,
            value: self.value(entry),
        };
        let files = self.confs.iter().map(|conf| CniFile {
            cluster: self.groups[conf.group].cluster.clone(),
            node: conf.node.clone(),
            name: conf.name.clone(),
            text: &conf.text,
        });
        let inner = self.inner.iter().map(|(origin, value)| Input {
            origin: origin.clone(),
            scope: None,
            value,
        });
        let objects = self.entries().into_iter().map(input);
        Fleet {
            objects: objects.chain(inner).collect(),
            files: files.collect(),
            reservations: self.reservations.clone(),
        }
    }

    /// Judges everything that was read.
    pub fn verify(&self) -> Verified {
        let fleet = self.fleet();
        let report = mooring_verify::verify_fleet(&fleet);
        // Looking every object up is for findings, which a good fleet has none of.
        let is_quiet = report.found.is_empty() && report.unjudged.is_empty();
        let places = if is_quiet {
            BTreeMap::new()
        } else {
            self.places()
        };
        let mut clusters = self.clusters();
        let mut findings = self.findings.clone();
        for found in report.found {
            if let Some(seen) = clusters.get_mut(found.origin.cluster.as_str()) {
                match found.finding.severity {
                    mooring_api::Severity::Error => seen.errors += 1,
                    mooring_api::Severity::Warning => seen.warnings += 1,
                    mooring_api::Severity::Info => {}
                }
            }
            findings.push(self.locate(&places, found));
        }
        findings.extend(self.twice());
        let unjudged = report.unjudged.into_iter();
        Verified {
            addresses: report.summary.addresses,
            ranges: report.summary.ranges,
            objects: report.summary.objects - self.inner.len(),
            clusters: clusters.len(),
            packages: self.groups.iter().filter(|g| g.is_package).count(),
            per_cluster: clusters.into_values().collect(),
            findings,
            unjudged: unjudged.map(|f| self.locate(&places, f)).collect(),
        }
    }

    /// What kept something from being read.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Findings of a room that sees objects and no files, with file and line. Namespaces are not compared, nor clusters: it
    /// is for kinds of one cluster that have none.
    pub fn located(&self, findings: Vec<Finding>) -> Vec<Finding> {
        if findings.is_empty() {
            return findings;
        }
        let key = |object: &ObjectRef| {
            let ObjectRef {
                api_version,
                kind,
                name,
                ..
            } = object;
            (api_version.clone(), kind.clone(), name.clone())
        };
        let mut places = BTreeMap::new();
        for entry in self.entries() {
            let object = reference(self.value(entry));
            places.entry(key(&object)).or_insert(entry);
        }
        let placed = |finding: Finding| {
            let object = finding.object.as_ref();
            match object.and_then(|object| places.get(&key(object))) {
                Some(entry) if finding.location.is_none() => self.locate_at(*entry, finding),
                _ => finding,
            }
        };
        findings.into_iter().map(placed).collect()
    }

    fn clusters(&self) -> BTreeMap<&str, ClusterSeen> {
        let mut seen: BTreeMap<&str, ClusterSeen> = BTreeMap::new();
        let packages = self.groups.iter().filter(|g| g.is_package);
        let objects = self
            .entries()
            .into_iter()
            .map(|entry| self.sheets[entry.sheet].group);
        let confs = self.confs.iter().map(|conf| conf.group);
        let things = packages.map(|group| (group, 1, 0));
        let things = things.chain(objects.map(|at| (&self.groups[at], 0, 1)));
        let things = things.chain(confs.map(|at| (&self.groups[at], 0, 0)));
        for (group, packages, objects) in things.filter(|(g, _, _)| !g.cluster.is_empty()) {
            let one = seen.entry(&group.cluster).or_default();
            one.name.clone_from(&group.cluster);
            one.packages += packages;
            one.objects += objects;
        }
        seen
    }

    /// Every object but the Kptfiles, which describe packages and reach no cluster.
    fn entries(&self) -> Vec<Entry> {
        let mut out = Vec::new();
        for (sheet, one) in self.sheets.iter().enumerate() {
            for place in 0..one.documents.places.len() {
                let value = one.documents.value(place);
                if kptfile::is_kptfile(value) {
                    continue;
                }
                let items = items(value).map_or(0, Vec::len);
                let single = items == 0;
                out.extend(single.then_some(Entry {
                    sheet,
                    place,
                    item: None,
                }));
                out.extend((0..items).map(|item| Entry {
                    sheet,
                    place,
                    item: Some(item),
                }));
            }
        }
        out
    }

    fn value(&self, entry: Entry) -> &Value {
        let value = self.sheets[entry.sheet].documents.value(entry.place);
        let item = entry.item.zip(items(value)).map(|(at, items)| &items[at]);
        item.unwrap_or(value)
    }

    fn origin(&self, entry: Entry) -> Origin {
        let sheet = &self.sheets[entry.sheet];
        let group = &self.groups[sheet.group];
        Origin {
            cluster: group.cluster.clone(),
            package: group.package.clone(),
            file: sheet.documents.files[0].shown.clone(),
            object: reference(self.value(entry)),
        }
    }

    fn places(&self) -> BTreeMap<Origin, Entry> {
        let entries = self.entries().into_iter();
        entries.map(|entry| (self.origin(entry), entry)).collect()
    }

    /// The finding with file and line.
    fn locate(&self, places: &BTreeMap<Origin, Entry>, found: Found) -> Finding {
        let Found { finding, origin } = found;
        if let Some(entry) = places.get(&origin) {
            return self.locate_at(*entry, finding);
        }
        let is_it = |conf: &&Conf| {
            let cluster = &self.groups[conf.group].cluster;
            (cluster, &conf.name, &conf.node)
                == (&origin.cluster, &origin.file, &origin.object.namespace)
        };
        match self.confs.iter().find(is_it) {
            Some(conf) => finding.located(conf.shown.clone(), 1, 1),
            None => finding,
        }
    }

    fn locate_at(&self, entry: Entry, finding: Finding) -> Finding {
        let documents = &self.sheets[entry.sheet].documents;
        let (file, document) = documents.places[entry.place];
        let parsed = &documents.files[file];
        let field = finding.field.as_deref().unwrap_or("metadata.name");
        let full = entry.item.map(|item| format!("items[{item}].{field}"));
        let full = full.as_deref().unwrap_or(field);
        let Some((line, column)) = position(&parsed.file, document, full) else {
            return finding;
        };
        let path: Option<FieldPath> = field.parse().ok();
        let value = path.and_then(|path| path.get(self.value(entry)));
        let inside = value
            .and_then(|value| inside::inside(parsed.file.text(), line, value, &finding.message));
        let (line, column) = inside.unwrap_or((line, column));
        finding.located(parsed.shown.clone(), line, column)
    }

    /// Plain manifests of one cluster that hold an object twice: perhaps they are two clusters, and then
    /// nothing between them was compared.
    fn twice(&self) -> Vec<Finding> {
        let mut seen: BTreeMap<(&str, ObjectRef), Entry> = BTreeMap::new();
        let mut out = Vec::new();
        for entry in self.entries() {
            let group = &self.groups[self.sheets[entry.sheet].group];
            if group.is_package || group.cluster.is_empty() {
                continue;
            }
            let object = reference(self.value(entry));
            if object.name.is_empty() {
                continue;
            }
            let Some(first) = seen.insert((&group.cluster, object.clone()), entry) else {
                continue;
            };
            let there = Finding::warning(Code::DuplicateObject, "").on(&object);
            let there = self.locate_at(first, there).location;
            let there = there.map_or_else(String::new, |l| format!(" at {}:{}", l.file, l.line));
            let message = format!(
                "the same object stands{there} too, and both are taken for cluster {}",
                group.cluster
            );
            let finding = Finding::warning(Code::DuplicateObject, message)
                .on(&object)
                .at("metadata.name")
                .help(
                    "name the clusters where these are two: CLUSTER=PATH; else remove one of them",
                );
            out.push(self.locate_at(entry, finding));
        }
        out
    }

    fn isolated(&self) -> BTreeSet<String> {
        let mut out = BTreeSet::new();
        for entry in self.entries() {
            let value = self.value(entry);
            let isolated = kptfile::annotation(value, annotation::ISOLATED) == Some("true");
            let object = reference(value);
            if isolated && object.kind == "NetworkInstance" {
                let namespace = Some(object.namespace.as_str()).filter(|n| !n.is_empty());
                out.insert(format!(
                    "{}/{}",
                    namespace.unwrap_or("default"),
                    object.name
                ));
            }
        }
        out
    }
}

/// The items of a list of objects, as `kubectl get -o yaml` and KRM functions write it.
fn items(value: &Value) -> Option<&Vec<Value>> {
    let kind = value.get("kind").and_then(Value::as_str)?;
    let items = value.get("items").and_then(Value::as_array)?;
    kind.ends_with("List").then_some(items)
}

fn reference(value: &Value) -> ObjectRef {
    let text = |path: &str| value.pointer(path).and_then(Value::as_str).unwrap_or("");
    ObjectRef::new(text("/apiVersion"), text("/kind"), text("/metadata/name"))
        .within(text("/metadata/namespace"))
}
#[cfg(test)]
mod tests;
