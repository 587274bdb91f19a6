//! Looks at every target before the first byte is written: inside the root, no link on the way,
//! writable, and not changed by a person since.
//!
//! Both a new act and a redo pass here; a journal is a file that somebody may have edited, so its
//! paths are believed no more than those of a plan.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;

use mooring_api::{Code, Finding};

use super::format::{Step, digest};
use super::unwritable;
use crate::disk::{Access, Disk, Kind, Meta, OURS, absent_is_none};

/// What stands at a target.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// Nothing.
    Absent,
    /// A file with these bytes.
    Bytes(Vec<u8>, Meta),
}

impl Seen {
    /// The permissions of the file that stands there.
    pub(super) fn access(&self) -> Option<Access> {
        match self {
            Self::Absent => None,
            Self::Bytes(_, meta) => Some(Access::Like(*meta)),
        }
    }
}

/// What stands at every target, in the order of the steps; or everything that forbids the act.
pub(super) fn check(
    disk: &dyn Disk,
    root: &Path,
    steps: &[Step<'_>],
) -> Result<Vec<Seen>, Vec<Finding>> {
    let mut check = Check {
        disk,
        root,
        dirs: BTreeMap::new(),
        findings: Vec::new(),
    };
    let mut paths = BTreeSet::new();
    let mut seen = Vec::with_capacity(steps.len());
    for step in steps {
        if !paths.insert(step.path.as_ref()) {
            check.refuse(&step.path, "it is changed twice in one act");
        }
        seen.push(check.target(&step.path));
    }
    if check.findings.is_empty() {
        Ok(seen)
    } else {
        Err(check.findings)
    }
}

/// The steps that change something, each with what it found.
pub(super) fn changed<'a>(
    steps: Vec<Step<'a>>,
    seen: &[Seen],
) -> (Vec<Step<'a>>, Vec<Option<Access>>) {
    let both = steps.into_iter().zip(seen);
    both.filter(|(step, seen)| !is_done(step, seen))
        .map(|(mut step, seen)| {
            step.before = match seen {
                Seen::Absent => None,
                Seen::Bytes(bytes, _) => Some(digest(bytes)),
            };
            (step, seen.access())
        })
        .unzip()
}

/// Whether the target is already as the step wants it.
pub(super) fn is_done(step: &Step<'_>, seen: &Seen) -> bool {
    match (step.after, seen) {
        (None, Seen::Absent) => true,
        (Some(after), Seen::Bytes(bytes, _)) => after == bytes,
        _ => false,
    }
}

/// Targets that a person changed after the interruption: neither what the act found, nor what it
/// writes, nor what a lost write leaves of it.
pub(super) fn edited(root: &Path, steps: &[Step<'_>], seen: &[Seen]) -> Vec<Finding> {
    let both = steps.iter().zip(seen);
    both.filter_map(|(step, seen)| {
        let Seen::Bytes(bytes, _) = seen else {
            return None;
        };
        if is_done(step, seen)
            || step.after.is_some_and(|after| is_torn(bytes, after))
            || step.before.as_ref() == Some(&digest(bytes))
        {
            return None;
        }
        let path = root.join(&*step.path);
        let journal = root.join(super::JOURNAL);
        Some(
            Finding::error(
                Code::FileInTheWay,
                format!(
                    "{} was edited after a run was interrupted; finishing that run would overwrite it",
                    path.display()
                ),
            )
            .help(format!(
                "to keep the edit, remove {} and run again; else put the file back",
                journal.display()
            ))
            .located(path.display().to_string(), 1, 1),
        )
    })
    .collect()
}

/// A crash leaves of an unsynced file a beginning, or holes that read as zero.
fn is_torn(found: &[u8], after: &[u8]) -> bool {
    let pairs = found.iter().zip(after);
    found.len() <= after.len() && pairs.into_iter().all(|(f, a)| f == a || *f == 0)
}

struct Check<'a> {
    disk: &'a dyn Disk,
    root: &'a Path,
    /// Directories looked at, and whether they may be used; 10 files share one look.
    /// By text: to compare paths part by part takes longer than to look.
    dirs: BTreeMap<OsString, bool>,
    findings: Vec<Finding>,
}

impl Check<'_> {
    fn target(&mut self, path: &str) -> Seen {
        if let Err(why) = is_plain(path) {
            self.refuse(path, why);
            return Seen::Absent;
        }
        let full = self.root.join(path);
        let parent = full.parent().expect("a path below the root has a parent");
        if !self.usable_dir(parent) {
            return Seen::Absent;
        }
        let meta = match absent_is_none(self.disk.meta(&full)) {
            Ok(None) => return Seen::Absent,
            Ok(Some(meta)) if meta.kind == Kind::File => meta,
            Ok(Some(meta)) => {
                self.in_the_way(&full, meta.kind);
                return Seen::Absent;
            }
            Err(e) => {
                self.findings.push(unwritable(&full, &e));
                return Seen::Absent;
            }
        };
        let bytes = self
            .disk
            .check_writable(&full)
            .and_then(|()| self.disk.read(&full, u64::MAX));
        match bytes {
            Ok(bytes) => Seen::Bytes(bytes, meta),
            Err(e) => {
                self.findings
                    .push(unwritable(&full, &e).located(full.display().to_string(), 1, 1));
                Seen::Absent
            }
        }
    }

    /// A real directory that we may write in, or one that can be made. The root may be reached by a
    /// link, since the person who named it means what it leads to; below it nothing may.
    fn usable_dir(&mut self, dir: &Path) -> bool {
        if let Some(known) = self.dirs.get(dir.as_os_str()) {
            return *known;
        }
        let is_root = dir == self.root;
        let usable = match absent_is_none(self.disk.meta(&if is_root {
            dir.join(".")
        } else {
            dir.to_owned()
        })) {
            Ok(None) => match dir.parent() {
                // Above the root only for a root that is still to be made.
                Some(above) if is_root || !dir.starts_with(self.root) => self.may_make_in(above),
                Some(above) => self.usable_dir(above),
                None => true,
            },
            Ok(Some(meta)) if meta.kind == Kind::Dir => {
                // A file system that is in the way further up is found here too.
                let above = is_root || dir.parent().is_none_or(|above| self.usable_dir(above));
                above && self.may_write(dir)
            }
            Ok(Some(meta)) => {
                self.in_the_way(dir, meta.kind);
                false
            }
            Err(e) => {
                self.findings.push(unwritable(dir, &e));
                false
            }
        };
        self.dirs.insert(dir.as_os_str().to_owned(), usable);
        usable
    }

    /// The nearest directory above a missing root takes new directories.
    fn may_make_in(&mut self, above: &Path) -> bool {
        let above = if above.as_os_str().is_empty() {
            Path::new(".")
        } else {
            above
        };
        match absent_is_none(self.disk.meta(&above.join("."))) {
            Ok(None) => above.parent().is_none_or(|next| self.may_make_in(next)),
            Ok(Some(_)) => self.may_write(above),
            Err(e) => {
                self.findings.push(unwritable(above, &e));
                false
            }
        }
    }

    fn may_write(&mut self, dir: &Path) -> bool {
        let result = self.disk.check_writable(dir);
        if let Err(e) = &result {
            self.findings.push(unwritable(dir, e));
        }
        result.is_ok()
    }

    fn in_the_way(&mut self, path: &Path, kind: Kind) {
        let (code, what) = match kind {
            Kind::Link => (
                Code::PathOutsidePackage,
                "it is a link, and links are not written through",
            ),
            Kind::Dir => (Code::FileInTheWay, "a directory is in the way"),
            Kind::File => (Code::FileInTheWay, "a file is where a directory is needed"),
            Kind::Special => (Code::FileInTheWay, "a socket, pipe or device is in the way"),
        };
        self.findings.push(
            Finding::error(code, format!("cannot write {}: {what}", path.display()))
                .help("move it away, or replace it by a plain file; nothing was written"),
        );
    }

    fn refuse(&mut self, path: &str, why: &str) {
        let path = self.root.join(path);
        self.findings.push(
            Finding::error(
                Code::PathOutsidePackage,
                format!("cannot write {}: {why}", path.display()),
            )
            .help("paths in a package are relative and stay inside it; nothing was written"),
        );
    }
}

/// Relative, with `/`, no steps up, no names of ours or of Git.
fn is_plain(path: &str) -> Result<(), &'static str> {
    if path.contains('\0') {
        return Err("its name has a zero byte");
    }
    for part in path.split('/') {
        match part {
            "" | "." => return Err("it is not a plain relative path"),
            ".." => return Err("it leads out of the package"),
            ".git" | ".moor" => return Err("that name belongs to Git or to moor"),
            _ if part.starts_with(OURS) => return Err("names with .moor- belong to moor"),
            _ => {}
        }
    }
    Ok(())
}
