//! What is read and what is written: the source, an earlier output, and the difference between the two.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use mooring_api::{Code, Finding, Severity, annotation};
use mooring_blueprint::Object;
use mooring_book::Store;
use mooring_krm::{Document, File, kptfile, layout};
use serde_json::Value;

use crate::Error;
use crate::decide::dialect;
use crate::disk::{Disk, MAX_FILE, RealDisk, Tree, read_tree};
use crate::documents::Documents;
use crate::git::PLACE;
use crate::journal::{self, Change};
use crate::report::{Changed, Dialect, FileChange, Report, Request};
use crate::unit::Unit;

/// The absolute place of a package: what the book remembers, and what tells a move from a copy.
///
/// One in Git is `git:URL#DIRECTORY`, which is as absolute as it can be.
pub(crate) fn place(root: &Path, dir: &str) -> PathBuf {
    let path = if dir.is_empty() {
        root.to_owned()
    } else {
        root.join(dir)
    };
    if is_in_git(&path) {
        return path;
    }
    std::path::absolute(&path).unwrap_or(path)
}

/// Whether a place is one in Git.
pub(crate) fn is_in_git(place: &Path) -> bool {
    place.to_str().is_some_and(|text| text.starts_with(PLACE))
}

/// The source, and what was written before.
pub(crate) struct Trees {
    source: Tree,
    /// Where a run with `--out` wrote before.
    out: Option<Tree>,
    /// Where a file of the source really stands, where that is not below the root: a fleet's clones.
    elsewhere: BTreeMap<String, PathBuf>,
    /// Ids of packages whose output was lost, as the book knows them.
    ids: BTreeMap<String, String>,
}

/// What stands in a directory after an interrupted run was finished or undone; a check only says that there is one.
pub(crate) fn settled(
    store: &dyn Store,
    request: &Request,
    dir: &Path,
    findings: &mut Vec<Finding>,
) -> Result<Tree, Vec<Finding>> {
    if request.check {
        return match journal::pending(&RealDisk, dir) {
            Ok(Some(root)) => Err(vec![interrupted(&root)]),
            _ => read_tree(&RealDisk, dir),
        };
    }
    let commit = |txn| store.commit(txn, request.now);
    let (tree, recovered) = journal::read_settled(&RealDisk, dir, commit)?;
    findings.extend(recovered.iter().filter_map(journal::Recovered::finding));
    Ok(tree)
}

impl Trees {
    pub(crate) fn gather(
        store: &dyn Store,
        request: &Request,
        target: &Path,
        findings: &mut Vec<Finding>,
    ) -> Result<Self, Vec<Finding>> {
        let Some(out) = &request.out else {
            let source = settled(store, request, target, findings)?;
            return Ok(Self::new(source, None));
        };
        if let Ok(Some(root)) = journal::pending(&RealDisk, &request.source) {
            return Err(vec![interrupted(&root)]);
        }
        let source = read_tree(&RealDisk, &request.source)?;
        let there = RealDisk.meta(&out.join(".")).is_ok();
        let out = if there {
            settled(store, request, out, findings)?
        } else {
            Tree::default()
        };
        Ok(Self::new(source, Some(out)))
    }

    fn new(source: Tree, out: Option<Tree>) -> Self {
        Self {
            source,
            out,
            elsewhere: BTreeMap::new(),
            ids: BTreeMap::new(),
        }
    }

    /// A source that is only in memory; `ids` of packages that say none themselves.
    pub(crate) fn in_memory(source: Tree, ids: BTreeMap<String, String>) -> Self {
        Self {
            ids,
            ..Self::new(source, None)
        }
    }

    /// A source that stands nowhere as it is: clones of files that stand elsewhere.
    pub(crate) fn cloned(
        source: Tree,
        out: Tree,
        elsewhere: BTreeMap<String, PathBuf>,
        ids: BTreeMap<String, String>,
    ) -> Self {
        Self {
            source,
            out: Some(out),
            elsewhere,
            ids,
        }
    }

    /// What an earlier run wrote.
    pub(crate) fn before(&self, path: &str) -> Option<&[u8]> {
        let before = self.out.as_ref().unwrap_or(&self.source);
        before.files.get(path).map(Vec::as_slice)
    }

    /// Where a file of the source really stands.
    fn stands(&self, request: &Request, path: &str) -> PathBuf {
        let known = self.elsewhere.get(path).cloned();
        known.unwrap_or_else(|| request.source.join(path))
    }

    /// The packages, parsed and checked. With `--out`, what an earlier run generated there belongs to
    /// the package too: its comments, and the addresses it says, are kept.
    pub(crate) fn units(&self, request: &Request, findings: &mut Vec<Finding>) -> Vec<Unit> {
        let packages = layout(&self.source.files).packages;
        if packages.is_empty() {
            findings.push(
                Finding::error(
                    Code::PackageMissing,
                    format!("{} holds no Kptfile", request.source.display()),
                )
                .help("Name a package directory, or make one: a Kptfile with apiVersion kpt.dev/v1, kind and metadata.name."),
            );
            return Vec::new();
        }
        let work: Vec<_> = packages
            .into_iter()
            .map(|p| (p.directory, p.files))
            .collect();
        let parsed = crate::parallel::map(work, |(dir, mut paths)| {
            let mut findings = Vec::new();
            let files = paths
                .iter()
                .filter_map(|path| Some((path.as_str(), self.source.files.get(path)?.as_slice())));
            let shown = |root: &Path, path: &str| root.join(path).display().to_string();
            let real = |path: &str| self.stands(request, path).display().to_string();
            let mut documents = Documents::parse(files, real, &mut findings);
            let out = request.out.as_deref().unwrap_or(&request.source);
            for (path, file) in self.generated(&dir, &paths) {
                documents.add(path.clone(), shown(out, &path), file);
                paths.push(path);
            }
            let mut wrong = Vec::new();
            documents.check(&mut wrong);
            let unit = Unit::new(dir, paths, documents);
            // The published functions read what they need, and nothing else has to be in order.
            if unit
                .as_ref()
                .is_some_and(|u| dialect(request, u) == Dialect::Nephio)
            {
                wrong
                    .iter_mut()
                    .filter(|f| is_of_a_schema(f))
                    .for_each(lower);
            }
            findings.extend(wrong);
            (unit, findings)
        });
        let mut units = Vec::new();
        for (unit, found) in parsed {
            findings.extend(found);
            units.extend(unit);
        }
        units
    }

    /// Files of an earlier run in OUT that hold nothing but generated objects.
    fn generated(&self, dir: &str, source: &[String]) -> Vec<(String, File)> {
        let Some(out) = &self.out else {
            return Vec::new();
        };
        let start = if dir.is_empty() {
            String::new()
        } else {
            format!("{dir}/")
        };
        let below = out.files.range(start.clone()..).map(|(path, _)| path);
        let inside = below
            .take_while(|path| path.starts_with(&start))
            .filter(|path| {
                !path[start.len()..].contains('/')
                    && !source.contains(path)
                    && !path.ends_with("Kptfile")
            });
        let ours = |path: &String| {
            let file = File::parse(&out.files[path]).ok()?;
            let mut objects = file
                .documents()
                .iter()
                .map(Document::value)
                .filter(|v| v.is_object());
            let owned = |v: &Value| is_made(v);
            let all = objects.clone().next().is_some() && objects.all(owned);
            all.then(|| (path.clone(), file))
        };
        inside.filter_map(ours).collect()
    }

    /// The id that an earlier run minted into OUT.
    pub(crate) fn previous_id(&self, dir: &str) -> Option<String> {
        self.written_id(dir).or_else(|| self.ids.get(dir).cloned())
    }

    fn written_id(&self, dir: &str) -> Option<String> {
        let path = if dir.is_empty() {
            "Kptfile".to_owned()
        } else {
            format!("{dir}/Kptfile")
        };
        let file = File::parse(self.out.as_ref()?.files.get(&path)?).ok()?;
        let value = file.documents().first()?.value().clone();
        Object {
            value,
            source: None,
        }
        .annotation(annotation::PACKAGE_ID)
        .map(ToOwned::to_owned)
    }

    /// With `--out`, every file of the source goes along.
    pub(crate) fn copies(
        &self,
        request: &Request,
    ) -> Result<BTreeMap<String, Option<Vec<u8>>>, Error> {
        if self.out.is_none() {
            return Ok(BTreeMap::new());
        }
        let mut files: BTreeMap<String, Option<Vec<u8>>> = self
            .source
            .files
            .iter()
            .map(|(p, b)| (p.clone(), Some(b.clone())))
            .collect();
        for path in &self.source.others {
            let full = self.stands(request, path);
            let bytes = RealDisk
                .read(&full, MAX_FILE)
                .map_err(|source| Error::Disk {
                    act: "read",
                    path: full,
                    source,
                })?;
            files.insert(path.clone(), Some(bytes));
        }
        Ok(files)
    }

    /// What really changes on disk.
    pub(crate) fn changes(
        &self,
        files: BTreeMap<String, Option<Vec<u8>>>,
        target: &Path,
        report: &mut Report,
    ) -> Vec<Change> {
        let before = self.out.as_ref().unwrap_or(&self.source);
        let mut changes = Vec::new();
        for (path, bytes) in files {
            let old = before.files.get(&path).cloned().or_else(|| {
                before
                    .others
                    .contains(&path)
                    .then(|| RealDisk.read(&target.join(&path), MAX_FILE).ok())?
            });
            let what = match (&old, &bytes) {
                (None, None) => continue,
                (Some(old), Some(new)) if old == new => continue,
                (None, Some(_)) => Changed::Created,
                (Some(_), Some(_)) => Changed::Updated,
                (Some(_), None) => Changed::Removed,
            };
            report.changes.push(FileChange {
                path: target.join(&path),
                what,
            });
            changes.push(match bytes {
                Some(bytes) => Change::Write { path, bytes },
                None => Change::Remove { path },
            });
        }
        changes
    }
}

fn interrupted(root: &Path) -> Finding {
    Finding::error(
        Code::RenderInterrupted,
        format!("an interrupted run left {} half-written", root.display()),
    )
    .help("Render that directory once more: the run is then finished or undone.")
}

/// Whether we made it: our own mark, or that of the nephio dialect on a kind that only functions make.
pub(crate) fn is_made(value: &Value) -> bool {
    const KINDS: [&str; 4] = [
        "IPClaim",
        "VLANClaim",
        "NetworkAttachmentDefinition",
        "Config",
    ];
    let kind = value["kind"].as_str().unwrap_or_default();
    let made_for = kptfile::annotation(value, "specializer.nephio.org/owner").is_some();
    kptfile::annotation(value, annotation::OWNED_BY).is_some()
        || (made_for && KINDS.contains(&kind))
}

fn is_of_a_schema(finding: &Finding) -> bool {
    matches!(finding.code, Code::InvalidField | Code::UnknownField)
}

fn lower(finding: &mut Finding) {
    finding.severity = finding.severity.max(Severity::Warning);
}
