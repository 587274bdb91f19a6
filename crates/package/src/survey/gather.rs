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
                out.text(group, shown.clone(), shown.clone(), bytes.clone());
            }
            From::Path(path) if path.is_dir() => out.directory(path, fixed.as_deref()),
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

    fn text(&mut self, group: usize, path: String, shown: String, bytes: Vec<u8>) {
        self.files.push(Text {
            group,
            path,
            shown,
            bytes,
        });
    }

    fn management(&mut self, dir: &Path) {
        let Some((tree, root)) = self.tree(dir) else {
            return;
        };
        let group = self.place(Place {
            management: true,
            ..Place::default()
        });
        for path in krm_files(&tree) {
            self.document(&tree, dir, &root, path, group);
        }
    }

    fn directory(&mut self, dir: &Path, fixed: Option<&str>) {
        let Some((tree, root)) = self.tree(dir) else {
            return;
        };
        let before = (self.files.len(), self.confs.len());
        let own = root.file_name().unwrap_or_default().to_string_lossy();
        let own = own.into_owned();
        let mut plain = Plain {
            fixed: fixed.map(str::to_owned),
            own,
            groups: BTreeMap::new(),
        };
        let layout = layout(&tree.files);
        for path in &layout.outside {
            let group = plain.group(self, first(path));
            self.document(&tree, dir, &root, path, group);
        }
        let base = plain.groups.get("").copied();
        let mut packages = Vec::new();
        for package in &layout.packages {
            // A package directly below PATH says nothing of a cluster; its parent directory does.
            let above = package.parent.map(|p| packages[p]).or(base);
            let group = self.place(Place {
                fixed: plain.fixed.clone(),
                package: Some(dir.join(&package.directory).display().to_string()),
                above,
                fallback: first(&package.directory).unwrap_or(&plain.own).to_owned(),
                management: false,
            });
            packages.push(group);
            for path in &package.files {
                self.document(&tree, dir, &root, path, group);
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
            self.conf(&dir.join(path), &root.join(path), group, node(below));
        }
        if before == (self.files.len(), self.confs.len())
            && self.seen.iter().all(|f| !f.starts_with(&root))
        {
            let message = format!("{} holds no package and no manifest", dir.display());
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
            let group = self.place(place);
            return self.conf(path, &real, group, String::new());
        }
        if self.seen.insert(real.clone())
            && let Some(bytes) = self.read(path, &real)
        {
            let group = self.place(place);
            self.text(group, shown.clone(), shown, bytes);
        }
    }

    fn tree(&mut self, dir: &Path) -> Option<(Tree, PathBuf)> {
        match read_tree(&RealDisk, dir) {
            Ok(tree) => Some((
                tree,
                RealDisk.resolve(dir).unwrap_or_else(|_| dir.to_owned()),
            )),
            Err(findings) => {
                self.findings.extend(findings);
                None
            }
        }
    }

    fn document(&mut self, tree: &Tree, dir: &Path, root: &Path, path: &str, group: usize) {
        let Some(bytes) = tree.files.get(path) else {
            return;
        };
        if self.seen.insert(root.join(path)) {
            let shown = dir.join(path).display().to_string();
            self.text(group, path.to_owned(), shown, bytes.clone());
        }
    }

    fn conf(&mut self, path: &Path, real: &Path, group: usize, node: String) {
        if !self.seen.insert(real.to_owned()) {
            return;
        }
        let Some(bytes) = self.read(path, real) else {
            return;
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        self.confs.push(Conf {
            group,
            node,
            name: name.into_owned(),
            shown: path.display().to_string(),
            // The runtime passes over what it cannot read, and so do the rules.
            text: String::from_utf8(bytes).unwrap_or_default(),
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
