//! Finds the files, and says which of them belong together.
//!
//! ```text
//!  PATH/nads.yaml               plain, of PATH itself
//!  PATH/edge01/pods/upf.yaml    plain, of edge01: the first directory below PATH
//!  PATH/edge01/gnb/Kptfile      a package, and everything below it
//!  PATH/edge01/n1/etc/cni/net.d/00-multus.conf     a CNI file of node n1 of edge01
//! ```
//!
//! Easy to get wrong: only a file directly inside a directory named `net.d` or `cni` is one of the
//! runtime's; the same ending elsewhere is somebody's data.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use mooring_api::{Code, Finding};
use mooring_krm::layout;

use super::git::{self, Object};
use super::{Conf, From, Source};
use crate::disk::{Disk as _, Kind, MAX_FILE, RealDisk, Tree, read_tree};

/// Directories that a runtime reads its configuration from.
const CNI_DIRS: [&str; 2] = ["net.d", "cni"];

/// Files that belong together, before their cluster is known.
#[derive(Debug, Default)]
pub(super) struct Place {
    /// What the user said.
    pub(super) fixed: Option<String>,
    /// The package's directory, as a person would type it.
    pub(super) package: Option<String>,
    /// The package around this one, else the plain files directly in PATH.
    pub(super) above: Option<usize>,
    /// What the directories say.
    pub(super) fallback: String,
    /// A management directory: of no cluster.
    pub(super) management: bool,
}

/// A file to parse.
pub(super) struct Text {
    pub(super) group: usize,
    pub(super) path: String,
    pub(super) shown: String,
    pub(super) bytes: Vec<u8>,
    /// Where it can be written, by what no link can change any more; a stream and a revision of Git cannot be.
    pub(super) disk: Option<PathBuf>,
}

/// A directory that was read, from the disk or from Git.
struct Shelf {
    tree: Tree,
    /// As a person would type it.
    shown: String,
    /// What makes its files the same as those of another directory.
    root: PathBuf,
    /// The directory's own name.
    own: String,
    /// What Git has beside documents; nothing for the disk, which is read when needed.
    others: Option<BTreeMap<String, Vec<u8>>>,
}

#[derive(Default)]
pub(super) struct Gathered {
    pub(super) places: Vec<Place>,
    pub(super) files: Vec<Text>,
    pub(super) confs: Vec<Conf>,
    pub(super) findings: Vec<Finding>,
    seen: BTreeSet<PathBuf>,
}

pub(super) fn gather(sources: &[Source], mgmt: Option<&Path>) -> Gathered {
    let mut out = Gathered::default();
    if let Some(dir) = mgmt {
        out.management(dir);
    }
    let names = names_of_files(sources);
    for (source, name) in sources.iter().zip(names) {
        let fixed = source.cluster.clone();
        match &source.from {
            From::Text { shown, bytes } => {
                let place = Place {
                    fixed,
                    fallback: shown.clone(),
                    ..Place::default()
                };
                let group = out.place(place);
                out.text(group, shown.clone(), shown.clone(), bytes.clone(), None);
            }
            From::Git(name) => out.git(name, fixed, source_name(name)),
            From::Path(path) if path.is_dir() => {
                if let Some(shelf) = out.shelf(path) {
                    out.directory(&shelf, fixed.as_deref());
                }
            }
            From::Path(path) => out.file(path, fixed, name),
        }
    }
    out
}

impl Gathered {
    fn place(&mut self, place: Place) -> usize {
        self.places.push(place);
        self.places.len() - 1
    }

    fn text(
        &mut self,
        group: usize,
        path: String,
        shown: String,
        bytes: Vec<u8>,
        disk: Option<PathBuf>,
    ) {
        self.files.push(Text {
            group,
            path,
            shown,
            bytes,
            disk,
        });
    }

    fn management(&mut self, dir: &Path) {
        let Some(shelf) = self.shelf(dir) else {
            return;
        };
        let group = self.place(Place {
            management: true,
            ..Place::default()
        });
        let before = self.files.len();
        for path in krm_files(&shelf.tree) {
            self.document(&shelf, path, group);
        }
        // It is there to be asked, and is nobody's to change.
        for file in &mut self.files[before..] {
            file.disk = None;
        }
    }

    /// A directory or a file of a revision.
    fn git(&mut self, name: &str, fixed: Option<String>, own: String) {
        let wanted = |path: &str| is_cni(path, &own);
        match git::read(name, wanted) {
            Err(finding) => self.findings.push(finding),
            Ok(Object::File(bytes)) => {
                let fallback = own.rsplit_once('.').map_or(own.as_str(), |(stem, _)| stem);
                let group = self.place(Place {
                    fixed,
                    fallback: fallback.to_owned(),
                    ..Place::default()
                });
                self.text(group, name.to_owned(), name.to_owned(), bytes, None);
            }
            Ok(Object::Tree { tree, others, id }) => {
                let shelf = Shelf {
                    tree,
                    shown: name.trim_end_matches('/').to_owned(),
                    // No path of a disk begins so: they are absolute here.
                    root: PathBuf::from(format!("git:{id}")),
                    own,
                    others: Some(others),
                };
                self.directory(&shelf, fixed.as_deref());
            }
        }
    }

    fn directory(&mut self, shelf: &Shelf, fixed: Option<&str>) {
        let Shelf {
            tree, root, own, ..
        } = shelf;
        let before = (self.files.len(), self.confs.len());
        let own = own.clone();
        let mut plain = Plain {
            fixed: fixed.map(str::to_owned),
            own,
            groups: BTreeMap::new(),
        };
        let layout = layout(&tree.files);
        for path in &layout.outside {
            let group = plain.group(self, first(path));
            self.document(shelf, path, group);
        }
        let base = plain.groups.get("").copied();
        let mut packages = Vec::new();
        for package in &layout.packages {
            // A package directly below PATH says nothing of a cluster; its parent directory does.
            let above = package.parent.map(|p| packages[p]).or(base);
            let group = self.place(Place {
                fixed: plain.fixed.clone(),
                package: Some(join(&shelf.shown, &package.directory)),
                above,
                fallback: first(&package.directory).unwrap_or(&plain.own).to_owned(),
                management: false,
            });
            packages.push(group);
            for path in &package.files {
                self.document(shelf, path, group);
            }
        }
        let own = plain.own.clone();
        for path in tree.others.iter().filter(|path| is_cni(path, &own)) {
            let (group, below) = match (layout.package_of(path), first(path)) {
                (Some(package), _) => {
                    let skip = layout.packages[package].directory.len();
                    (packages[package], &path[skip..])
                }
                (None, Some(name)) if !is_etc(name) => {
                    (plain.group(self, Some(name)), &path[name.len()..])
                }
                (None, _) => (plain.group(self, None), path.as_str()),
            };
            let real = root.join(path);
            if !self.seen.insert(real.clone()) {
                continue;
            }
            let shown = join(&shelf.shown, path);
            let bytes = match &shelf.others {
                Some(others) => others.get(path).cloned(),
                None => self.read(Path::new(&shown), &real),
            };
            self.conf(shown, bytes, group, node(below));
        }
        if before == (self.files.len(), self.confs.len())
            && self.seen.iter().all(|f| !f.starts_with(root))
        {
            let message = format!("{} holds no package and no manifest", shelf.shown);
            let finding = Finding::error(Code::PackageMissing, message);
            self.findings
                .push(finding.help("name a directory with Kptfiles or with *.yaml files"));
        }
    }

    fn file(&mut self, path: &Path, fixed: Option<String>, fallback: String) {
        let Ok(real) = RealDisk.resolve(path) else {
            let message = format!("cannot read {}: it does not exist", path.display());
            let finding = Finding::error(Code::PackageMissing, message);
            self.findings
                .push(finding.help("name a directory, a file, or - for stdin"));
            return;
        };
        let place = Place {
            fixed,
            fallback,
            ..Place::default()
        };
        let shown = path.display().to_string();
        let dir = real.parent().and_then(Path::file_name);
        let dir = dir.unwrap_or_default().to_string_lossy().into_owned();
        if is_cni(
            &real.file_name().unwrap_or_default().to_string_lossy(),
            &dir,
        ) {
            if !self.seen.insert(real.clone()) {
                return;
            }
            let group = self.place(place);
            let bytes = self.read(path, &real);
            return self.conf(shown, bytes, group, String::new());
        }
        if self.seen.insert(real.clone())
            && let Some(bytes) = self.read(path, &real)
        {
            let group = self.place(place);
            self.text(group, shown.clone(), shown, bytes, Some(real));
        }
    }

    fn shelf(&mut self, dir: &Path) -> Option<Shelf> {
        let tree = match read_tree(&RealDisk, dir) {
            Ok(tree) => tree,
            Err(findings) => {
                self.findings.extend(findings);
                return None;
            }
        };
        let root = RealDisk.resolve(dir).unwrap_or_else(|_| dir.to_owned());
        let own = root.file_name().unwrap_or_default();
        Some(Shelf {
            tree,
            shown: dir.display().to_string(),
            own: own.to_string_lossy().into_owned(),
            root,
            others: None,
        })
    }

    fn document(&mut self, shelf: &Shelf, path: &str, group: usize) {
        let Some(bytes) = shelf.tree.files.get(path) else {
            return;
        };
        let real = shelf.root.join(path);
        if self.seen.insert(real.clone()) {
            let shown = join(&shelf.shown, path);
            let disk = shelf.others.is_none().then_some(real);
            self.text(group, path.to_owned(), shown, bytes.clone(), disk);
        }
    }

    fn conf(&mut self, shown: String, bytes: Option<Vec<u8>>, group: usize, node: String) {
        let Some(bytes) = bytes else {
            return;
        };
        let name = shown.rsplit(['/', ':']).next().unwrap_or(&shown);
        self.confs.push(Conf {
            group,
            node,
            name: name.to_owned(),
            // The runtime passes over what it cannot read, and so do the rules.
            text: String::from_utf8(bytes).unwrap_or_default(),
            shown,
        });
    }

    /// The bytes of a file that was named; where it leads is what the user means.
    fn read(&mut self, path: &Path, real: &Path) -> Option<Vec<u8>> {
        let is_file = RealDisk.meta(real).is_ok_and(|m| m.kind == Kind::File);
        let bytes = if is_file {
            RealDisk.read(real, MAX_FILE)
        } else {
            Err(io::ErrorKind::InvalidInput.into())
        };
        let finding = match bytes {
            Ok(bytes) => return Some(bytes),
            Err(e) if e.kind() == io::ErrorKind::FileTooLarge => Finding::error(
                Code::FileTooLarge,
                format!("{} has more than 8 MiB", path.display()),
            )
            .help("split the file"),
            Err(_) if !is_file => Finding::error(
                Code::FileUnreadable,
                format!("{} is neither a file nor a directory", path.display()),
            )
            .help("send it through stdin: moor verify - < FILE"),
            Err(e) => Finding::error(
                Code::FileUnreadable,
                format!("cannot read {}: {e}", path.display()),
            )
            .help("check its permissions (`ls -l`)"),
        };
        self.findings.push(finding);
        None
    }
}

/// The plain files of one PATH, by their first directory; those directly in PATH under the empty name.
struct Plain {
    fixed: Option<String>,
    own: String,
    groups: BTreeMap<String, usize>,
}

impl Plain {
    fn group(&mut self, out: &mut Gathered, name: Option<&str>) -> usize {
        let key = name.unwrap_or_default();
        if let Some(group) = self.groups.get(key) {
            return *group;
        }
        // Made first, so that a WorkloadCluster directly in PATH speaks for everything below.
        let above = name.map(|_| self.group(out, None));
        let group = out.place(Place {
            fixed: self.fixed.clone(),
            package: None,
            above,
            fallback: name.unwrap_or(&self.own).to_owned(),
            management: false,
        });
        self.groups.insert(key.to_owned(), group);
        group
    }
}

/// Names for files that were named one by one: without the ending, else (where that names two) after their
/// directories.
fn names_of_files(sources: &[Source]) -> Vec<String> {
    let part =
        |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    let stem = |source: &Source| match &source.from {
        From::Path(path) => part(path.file_stem()),
        From::Git(name) => source_name(name),
        From::Text { .. } => String::new(),
    };
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    for source in sources {
        *count.entry(stem(source)).or_default() += 1;
    }
    let name = |source: &Source| match &source.from {
        From::Path(path) if count[&stem(source)] > 1 => {
            let dir = part(path.parent().and_then(Path::file_name));
            if dir.is_empty() { stem(source) } else { dir }
        }
        _ => stem(source),
    };
    sources.iter().map(name).collect()
}

/// A path below a directory, or below a revision: `main:` has no slash.
pub(super) fn join(dir: &str, path: &str) -> String {
    if dir.ends_with(['/', ':']) || path.is_empty() {
        format!("{dir}{path}")
    } else {
        format!("{dir}/{path}")
    }
}

/// The last part of `REV:a/b`; the revision where it means everything.
fn source_name(name: &str) -> String {
    let name = name.trim_end_matches(['/', ':']);
    let last = name.rsplit(['/', ':']).next();
    last.unwrap_or(name).to_owned()
}

fn krm_files(tree: &Tree) -> Vec<&String> {
    tree.files
        .keys()
        .filter(|path| mooring_krm::is_krm(path))
        .collect()
}

/// The first directory of a path.
fn first(path: &str) -> Option<&str> {
    path.split_once('/').map(|(name, _)| name)
}

/// Directories that are a node's own, and name neither cluster nor node.
fn is_etc(name: &str) -> bool {
    name == "etc" || CNI_DIRS.contains(&name)
}

/// The node whose file this is: what stands before `etc/cni/net.d`.
fn node(path: &str) -> String {
    let (dir, _) = path.rsplit_once('/').unwrap_or_default();
    let parts = dir.split('/').take_while(|part| !is_etc(part));
    let parts: Vec<&str> = parts.filter(|p| !p.is_empty() && *p != "nodes").collect();
    parts.join("/")
}

/// Whether a runtime would read this file; hidden directories are nobody's. `own` is the name of the directory that the path begins in.
fn is_cni(path: &str, own: &str) -> bool {
    let (dir, name) = path.rsplit_once('/').unwrap_or((own, path));
    let dir = dir.rsplit('/').next().unwrap_or(dir);
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    let hidden = path.split('/').any(|part| part.starts_with('.'));
    !hidden && CNI_DIRS.contains(&dir) && matches!(ending, Some("conf" | "conflist" | "json"))
}
