//! Files become claims and tables, each with its way back to file and line.
//!
//! Easy to get wrong: `kubectl get … -o yaml` writes one List of everything, so an object may stand inside of another.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mooring_api::{Code, Finding, Location, Time, annotation};
use mooring_blueprint::backend::{
    Claimed, Index, Known, Listed, Table, of_object, of_share, of_table, of_wish,
};
use mooring_blueprint::claim::Wish;
use mooring_blueprint::nephio::{self, Function};
use mooring_blueprint::{Context, Object, inject, networks};
use mooring_book::PackageRecord;
use mooring_ipam::Pools;
use mooring_krm::{File, layout};
use serde_json::Value;

use crate::decide::record;
use crate::disk::{Disk as _, MAX_FILE, RealDisk, read_tree};
use crate::documents::{Documents, check_kind, position};
use crate::report::Dialect;
use crate::site::Site;
use crate::unit::Unit;

/// The kinds that an import reads.
const READ: &[&str] = &["IPClaim", "VLANClaim", "IPPrefix", "NetworkInstance"];

/// The kinds that say where addresses come from.
const POOLS: &[&str] = &["IPPrefix", "NetworkInstance", "Network"];

/// Everything that was read so far.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) claimed: Vec<Claimed>,
    pub(super) listed: Vec<Listed>,
    pub(super) known: BTreeSet<Known>,
    pub(super) packages: Vec<PackageRecord>,
    pub(super) pools: usize,
    /// How many objects and packages were read.
    pub(super) read: usize,
    pub(super) findings: Vec<Finding>,
    /// Packages that wait for all sources to be read.
    units: Vec<(Unit, PathBuf)>,
    /// Pools, and Networks that subnets are cut from.
    site: Vec<Object>,
    shared: Option<Arc<Pools>>,
    documents: Vec<Documents>,
    /// Where each object stands: documents, place in them, and the path of a list's item.
    places: Vec<(usize, usize, String)>,
}

impl Gathered {
    /// Reads a directory or a file.
    pub(super) fn add(&mut self, source: &Path) {
        if !source.is_dir() {
            match read_file(source) {
                Ok(bytes) => {
                    let name = source.display().to_string();
                    self.loose([(name.as_str(), bytes.as_slice())], str::to_owned);
                }
                Err(error) => self.findings.push(unreadable(source, &error)),
            }
            return;
        }
        let tree = match read_tree(&RealDisk, source) {
            Ok(tree) => tree,
            Err(found) => return self.findings.extend(found),
        };
        let layout = layout(&tree.files);
        let shown = |path: &str| source.join(path).display().to_string();
        let bytes = |path: &String| tree.files[path].clone();
        for package in layout.packages {
            let files: Vec<_> = package
                .files
                .iter()
                .map(|p| (p.as_str(), bytes(p)))
                .collect();
            let files = files.iter().map(|(p, b)| (*p, b.as_slice()));
            let documents = Documents::parse(files, shown, &mut self.findings);
            if let Some(unit) = Unit::new(package.directory, package.files, documents) {
                self.units.push((unit, source.to_owned()));
            }
        }
        let loose: Vec<_> = layout
            .outside
            .iter()
            .map(|p| (p.as_str(), bytes(p)))
            .collect();
        self.loose(loose.iter().map(|(p, b)| (*p, b.as_slice())), shown);
    }

    /// What the management directory says about pools. What is wrong with it is for a render to say.
    pub(super) fn add_mgmt(&mut self, dir: &Path) {
        self.site.extend(Site::read(dir).objects);
    }

    /// Reads the packages, now that all pools are known.
    pub(super) fn finish(&mut self, now: Time) {
        for (unit, root) in std::mem::take(&mut self.units) {
            self.package(unit, &root, now);
        }
    }

    /// A finding about an object, with its line.
    pub(super) fn locate(&self, place: usize, mut finding: Finding) -> Finding {
        let (documents, place, below) = &self.places[place];
        let documents = &self.documents[*documents];
        let (file, document) = documents.places[*place];
        let parsed = &documents.files[file];
        let field = finding.field.as_deref().unwrap_or("metadata.name");
        let fields = [
            format!("{below}{field}"),
            format!("{below}metadata.name"),
            String::new(),
        ];
        let mut lines = fields
            .iter()
            .filter_map(|f| position(&parsed.file, document, f));
        let (line, column) = lines.next().unwrap_or((1, 1));
        finding.location = Some(Location {
            file: parsed.shown.clone(),
            line,
            column,
        });
        finding
    }

    fn place(&mut self, place: usize, below: String) -> usize {
        self.places.push((self.documents.len() - 1, place, below));
        self.places.len() - 1
    }

    /// Objects that no package has.
    fn loose<'a>(
        &mut self,
        files: impl IntoIterator<Item = (&'a str, &'a [u8])>,
        shown: impl Fn(&str) -> String,
    ) {
        let documents = Documents::parse(files, shown, &mut self.findings);
        let objects = documents.objects();
        self.documents.push(documents);
        for object in objects {
            let at = object.source.unwrap_or_default();
            let items = object.value["items"].as_array().cloned();
            match items.filter(|_| object.kind().ends_with("List")) {
                None => self.object(&object, at, String::new()),
                Some(items) => {
                    for (nth, value) in items.into_iter().enumerate() {
                        let item = Object {
                            value,
                            source: None,
                        };
                        self.object(&item, at, format!("items[{nth}]."));
                    }
                }
            }
        }
    }

    fn object(&mut self, object: &Object, at: usize, below: String) {
        if POOLS.contains(&object.kind()) {
            self.site.push(object.clone());
        }
        let table = Index::of(object);
        if table.is_none() && !READ.contains(&object.kind()) {
            return;
        }
        self.read += 1;
        let place = self.place(at, below);
        let wrong = check_kind(&object.value)
            .into_iter()
            .filter(Finding::is_error);
        let wrong: Vec<Finding> = wrong.map(|f| self.locate(place, f)).collect();
        if !wrong.is_empty() {
            self.findings.extend(wrong);
            return;
        }
        let read = match &table {
            Some(index) => inner(object).map(|text| of_table(index, &text, place)),
            None => of_object(object, place),
        };
        match read {
            Ok(table) => self.table(table, place, object),
            Err(finding) => {
                let finding = self.locate(place, finding.on(&object.reference()));
                self.findings.push(finding);
            }
        }
    }

    fn table(&mut self, table: Table, place: usize, object: &Object) {
        for finding in table.findings {
            let finding = self.locate(place, finding.on(&object.reference()));
            self.findings.push(finding);
        }
        self.listed.extend(table.listed);
        self.known.extend(table.known);
        self.pools += table.pools;
    }

    /// The pools of a package: those of all sources, and what it alone brings along.
    fn pools_of(&mut self, unit: &Unit) -> Arc<Pools> {
        let known = |o: &Object| {
            let mut site = self.site.iter();
            site.any(|s| s.kind() == o.kind() && s.name() == o.name())
        };
        let own = unit.bundle.objects.iter();
        let own = own.filter(|o| POOLS.contains(&o.kind()) && !known(o));
        let own: Vec<Object> = own.cloned().collect();
        if let (true, Some(shared)) = (own.is_empty(), &self.shared) {
            return Arc::clone(shared);
        }
        let alone = !own.is_empty();
        let site: Vec<Object> = self.site.iter().cloned().chain(own).collect();
        let pools = Arc::new(networks::read(&site).0);
        for prefix in &pools.prefixes {
            self.known.insert(Known {
                instance: prefix.instance.clone(),
                cidr: prefix.cidr,
            });
        }
        if !alone {
            self.shared = Some(Arc::clone(&pools));
        }
        pools
    }

    /// A rendered package: its claims, under the identities that a render uses.
    fn package(&mut self, mut unit: Unit, root: &Path, now: Time) {
        self.read += 1;
        let marks = &unit.bundle.marks;
        let minted = marks.annotations.get(annotation::PACKAGE_ID);
        let id = minted.unwrap_or(&marks.name).clone();
        let read = READ.iter().take(2);
        let mut wrong = Vec::new();
        for object in &unit.bundle.objects {
            if read.clone().any(|kind| *kind == object.kind()) {
                let found = check_kind(&object.value).into_iter();
                wrong.extend(found.filter(Finding::is_error).map(|f| unit.locate(f)));
            }
        }
        if !wrong.is_empty() {
            self.findings.extend(wrong);
            return;
        }
        if unit.dialect() == Dialect::Native {
            self.findings.extend(left_out(&unit));
            return;
        }
        let cluster = inject::find(&unit.bundle, &mut Vec::new()).map(|c| c.name);
        let pools = &self.pools_of(&unit);
        let wishes = wishes(&mut unit, &id, pools);
        if let Some(cluster) = &cluster {
            let mut record = record(&id, cluster, &unit, root, &[], now);
            for wish in wishes.iter().filter(|w| w.kind == "VLANClaim") {
                let network = wish.claim.holder.workload.strip_prefix("network/");
                record.vlans.extend(network.map(key));
            }
            self.packages.push(record);
        }
        let objects: Vec<Object> = unit.bundle.objects.iter().cloned().collect();
        self.documents.push(unit.documents);
        for wish in wishes {
            let is_it = |o: &&Object| o.kind() == wish.kind && o.name() == wish.name;
            let Some(object) = objects.iter().find(is_it) else {
                continue;
            };
            let place = self.place(object.source.unwrap_or_default(), String::new());
            self.claimed.push(of_wish(&wish, object, place));
            let share = networks::subnet(pools, &wish.claim);
            let share = share.filter(|block| block.before.is_some());
            self.claimed
                .extend(share.map(|block| of_share(&block, place)));
        }
    }
}

/// What a package asks the book for.
fn wishes(unit: &mut Unit, id: &str, pools: &Pools) -> Vec<Wish> {
    let ctx = Context {
        pools,
        site: &[],
        cluster: None,
        package: id,
    };
    // What is wrong with a claim beyond its schema is for a render to say.
    let mut ignored = Vec::new();
    let functions = [Function::Ipam, Function::Vlan].into_iter();
    functions
        .flat_map(|f| nephio::wants(f, &mut unit.bundle, &ctx, &mut ignored))
        .collect()
}

/// A network as holders name it.
fn key(text: &str) -> mooring_ipam::InstanceKey {
    let (namespace, name) = text.split_once('/').unwrap_or(("", text));
    mooring_ipam::InstanceKey::new(namespace, name)
}

/// A package without a mark of Nephio's functions is rendered in the other dialect, under other identities.
fn left_out(unit: &Unit) -> Option<Finding> {
    let claims = unit.bundle.objects.iter().filter(|o| o.kind() == "IPClaim");
    let claim = claims.into_iter().next()?;
    let text = "the package carries no mark of Nephio's functions, so its claims are left out";
    let help = "If moor rendered it, `moor book rebuild` puts its addresses into the book.";
    let finding = Finding::warning(Code::ImportInvalid, text).on(&claim.reference());
    Some(unit.locate(finding.help(help)))
}

/// The YAML that stands as text in a table's ConfigMap.
fn inner(object: &Object) -> Result<Value, Finding> {
    let field = "data.data";
    let refuse = |text: String| {
        Finding::error(Code::ImportInvalid, text).at(field).help(
            "Take the ConfigMap again as the backend wrote it: kubectl get configmap NAME -o yaml.",
        )
    };
    let text = match object.value.pointer("/data/data") {
        Some(Value::String(text)) => text,
        Some(_) => return Err(refuse("the table is not a text".into())),
        // Nothing was claimed yet.
        None if object.value.get("data").is_none_or(Value::is_null) => return Ok(Value::Null),
        None => return Err(refuse("the ConfigMap has no key `data`".into())),
    };
    let file = File::parse(text.as_bytes())
        .map_err(|e| refuse(format!("line {} of the table: {}", e.line, e.message)))?;
    let document = file.documents().first();
    Ok(document.map(|d| d.value().clone()).unwrap_or_default())
}

/// A file that the person named, who means what a link leads to. A pipe would never end.
fn read_file(path: &Path) -> std::io::Result<Vec<u8>> {
    let path = path.canonicalize()?;
    if !path.is_file() {
        return Err(std::io::Error::other(
            "it is neither a file nor a directory",
        ));
    }
    RealDisk.read(&path, MAX_FILE)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Finding {
    let shown = path.display().to_string();
    let (code, text) = match error.kind() {
        std::io::ErrorKind::NotFound => (Code::FileUnreadable, "it is not there".to_owned()),
        std::io::ErrorKind::FileTooLarge => (Code::FileTooLarge, error.to_string()),
        _ => (Code::FileUnreadable, error.to_string()),
    };
    Finding::error(code, format!("{shown} cannot be read: {text}"))
        .help("Name files and directories that can be read.")
}
