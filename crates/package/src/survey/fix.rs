//! `--fix`: the changes that `verify` calls safe, made in the files where the objects stand, in one act of the journal.
//!
//! ```text
//!  lock ─► recover ─► read ─► fixes ─► edit the texts in memory, until nothing is left to fix ─► journal
//! ```
//!
//! Called by `moor verify --fix`. Easy to get wrong: one change may show what another one hid (an annotation that can be read
//! again has addresses), so it goes on until there is none. Only files below the named paths are written: no stream, no
//! revision of Git, no management directory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use mooring_api::{Code, Finding};
use mooring_krm::{Change as Edited, Edit, FieldPath};
use mooring_verify::Fix;
use serde::Serialize;

use super::{Entry, From, Source, Survey, position};
use crate::disk::{Disk as _, LOCK_WAIT, RealDisk, TreeLock};
use crate::documents::Documents;
use crate::journal::{self, Change, CommitError, Plan};

/// More rounds than there are kinds of fixes.
const ROUNDS: usize = 8;

/// What was, or would be, fixed.
#[derive(Debug, Default)]
pub struct Fixing {
    /// Everything, as it is after the fixes.
    pub survey: Survey,
    /// The fixes, by file and line.
    pub fixed: Vec<Fixed>,
    /// The files that change, with their text before and after.
    pub files: Vec<FixedFile>,
    /// What is to be told besides: an interrupted run that was finished, a file that could not be written. With an error
    /// among them nothing was written.
    pub findings: Vec<Finding>,
}

/// One fix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Fixed {
    /// The file, as a person would type it.
    pub file: String,
    /// The line it was at.
    pub line: u32,
    /// Which finding it was for.
    pub code: &'static str,
    /// `Kind/name`.
    pub object: String,
    /// What was done.
    pub what: String,
    /// Why nobody needs to be asked.
    pub why: &'static str,
}

/// A file that changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedFile {
    /// As a person would type it.
    pub shown: String,
    /// Its text before.
    pub before: String,
    /// Its text after.
    pub after: String,
    real: PathBuf,
}

/// Reads as [`Survey::read`] does, and makes every safe fix; with `check` only in memory.
pub fn fix(sources: &[Source], mgmt: Option<&Path>, check: bool) -> Fixing {
    if check {
        let mut fixing = Fixing {
            survey: Survey::read(sources, mgmt),
            ..Fixing::default()
        };
        fixing.decide();
        return fixing;
    }
    match locked(sources, mgmt) {
        Ok(fixing) => fixing,
        Err(findings) => Fixing {
            findings,
            ..Fixing::default()
        },
    }
}

fn locked(sources: &[Source], mgmt: Option<&Path>) -> Result<Fixing, Vec<Finding>> {
    let roots = roots(sources);
    let root = common(&roots).ok_or_else(|| vec![nothing_in_common()])?;
    let lock = TreeLock::take(&root, LOCK_WAIT).map_err(|finding| vec![*finding])?;
    let mut fixing = Fixing::default();
    // A render that was interrupted goes with a book, which is not here: the next render commits it.
    let no_book = |_| {
        Err(mooring_book::Error::Unusable {
            path: "of that render".to_owned(),
            remedy: "run `moor render` there again, with its book",
            source: "it was not given".into(),
        })
    };
    for root in std::iter::once(&root).chain(&roots) {
        let recovered = journal::recover(&RealDisk, root, no_book)?;
        fixing.findings.extend(recovered.finding());
    }
    fixing.survey = Survey::read(sources, mgmt);
    fixing.decide();
    let changes: Vec<Change> = fixing
        .files
        .iter()
        .filter_map(|file| {
            let below = file.real.strip_prefix(&root).ok()?;
            Some(Change::Write {
                path: below.to_str()?.to_owned(),
                bytes: file.after.clone().into_bytes(),
            })
        })
        .collect();
    let plan = Plan {
        root,
        changes,
        txn: None,
    };
    let written = journal::commit_files(&RealDisk, &plan, |_| Ok(()));
    drop(lock);
    match written {
        Ok(_) => Ok(fixing),
        Err(CommitError::Refused(findings)) => Err(findings),
        Err(CommitError::Interrupted(finding)) => Err(vec![*finding]),
        Err(CommitError::Book(error)) => {
            let message = format!("the files are written, but the book is not: {error}");
            Err(vec![Finding::error(Code::BookUnreadable, message)])
        }
    }
}

/// The directories that the sources are or lie in, without links.
fn roots(sources: &[Source]) -> Vec<PathBuf> {
    let mut out = BTreeSet::new();
    for source in sources {
        let From::Path(path) = &source.from else {
            continue;
        };
        let Ok(real) = RealDisk.resolve(path) else {
            continue;
        };
        let dir = if real.is_dir() {
            Some(real.as_path())
        } else {
            real.parent()
        };
        out.extend(dir.map(Path::to_owned));
    }
    out.into_iter().collect()
}

/// The directory around all of them; the journal lies there, so it must not be the root of everything.
fn common(roots: &[PathBuf]) -> Option<PathBuf> {
    let (first, rest) = roots.split_first()?;
    let mut around = first.ancestors();
    let common = around.find(|dir| rest.iter().all(|other| other.starts_with(dir)))?;
    let is_named = roots.iter().any(|root| root == common);
    (is_named || common.parent().is_some()).then(|| common.to_owned())
}

fn nothing_in_common() -> Finding {
    let message = "the paths have no directory in common that all changes could be made in";
    Finding::error(Code::FileUnwritable, message)
        .help("fix them one by one: moor verify PATH --fix")
}

impl Fixing {
    /// Edits the texts, round by round.
    fn decide(&mut self) {
        let mut before: BTreeMap<usize, String> = BTreeMap::new();
        for _ in 0..ROUNDS {
            let done = self.survey.round(&mut before);
            if done.is_empty() {
                break;
            }
            self.fixed.extend(done);
        }
        self.fixed.sort();
        for (sheet, before) in before {
            let sheet = &self.survey.sheets[sheet];
            let parsed = &sheet.documents.files[0];
            if let Some(real) = sheet.disk.clone() {
                self.files.push(FixedFile {
                    shown: parsed.shown.clone(),
                    after: parsed.file.text().to_owned(),
                    before,
                    real,
                });
            }
        }
        self.files.sort_by(|a, b| a.shown.cmp(&b.shown));
    }
}

impl Survey {
    /// One round of fixes; the text of a sheet before its first change is kept.
    fn round(&mut self, before: &mut BTreeMap<usize, String>) -> Vec<Fixed> {
        let places = self.places();
        let mut sheets: BTreeMap<usize, Vec<(Entry, Fix)>> = BTreeMap::new();
        for fix in mooring_verify::fixes(&self.fleet()) {
            if let Some(entry) = places.get(&fix.origin) {
                let list = sheets.entry(entry.sheet).or_default();
                list.push((*entry, fix));
            }
        }
        let mut done = Vec::new();
        for (at, fixes) in sheets {
            let (sheet, mut findings) = (&self.sheets[at], Vec::new());
            if sheet.disk.is_none() {
                continue;
            }
            let Some((text, fixed)) = sheet.edited(&fixes) else {
                continue;
            };
            let old = &sheet.documents.files[0];
            let one = [(old.path.as_str(), text.as_bytes())];
            let documents = Documents::parse(one, |_| old.shown.clone(), &mut findings);
            // What cannot be read back is not written.
            if findings.is_empty() && documents.places.len() == sheet.documents.places.len() {
                before
                    .entry(at)
                    .or_insert_with(|| old.file.text().to_owned());
                self.sheets[at].documents = documents;
                done.extend(fixed);
            }
        }
        done
    }
}

impl super::Sheet {
    /// The text with these fixes; an edit that the text cannot take is left out, and its finding stays.
    fn edited(&self, fixes: &[(Entry, Fix)]) -> Option<(String, Vec<Fixed>)> {
        let parsed = &self.documents.files[0];
        let field = |entry: &Entry, fix: &Fix| {
            let item = entry.item.map(|item| format!("items[{item}]."));
            format!("{}{}", item.unwrap_or_default(), fix.field)
        };
        let mut changes: Vec<(Edited, Fixed)> = Vec::new();
        for (entry, fix) in fixes {
            let (_, document) = self.documents.places[entry.place];
            let field = field(entry, fix);
            let Ok(path) = field.parse::<FieldPath>() else {
                continue;
            };
            let at = position(&parsed.file, document, &field);
            let at = at.or_else(|| position(&parsed.file, document, "metadata.name"));
            let fixed = Fixed {
                file: parsed.shown.clone(),
                line: at.map_or(1, |(line, _)| line),
                code: fix.code.as_str(),
                object: fix.origin.object.to_string(),
                what: fix.what.clone(),
                why: fix.why,
            };
            let edit = (document, Edit::set(path, fix.to.clone()));
            changes.push((edit.into(), fixed));
        }
        let (mut edits, mut done): (Vec<Edited>, Vec<Fixed>) = changes.iter().cloned().unzip();
        let mut text = parsed.file.apply(&edits).ok();
        if text.is_none() {
            // One of them cannot be made: then all that can.
            (edits, done) = (Vec::new(), Vec::new());
            for (edit, fixed) in changes {
                edits.push(edit);
                if let Ok(edited) = parsed.file.apply(&edits) {
                    text = Some(edited);
                    done.push(fixed);
                } else {
                    edits.pop();
                }
            }
        }
        Some((text?, done))
    }
}
