//! Does what a journal says, again and again with the same result.
//!
//! A file is written beside its target and renamed over it, so that an editor or Git never sees half
//! of it. Nothing is synced on the way: until the journal is gone, a lost write is written again.
//! Then everything is synced at once.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use super::format::Step;
use super::{Failed, TEMP};
use crate::disk::{Access, Disk, absent_is_none, is_absent};

/// Up to here files are synced one by one. Syncing the file system is one call for any number of
/// files, but it also waits for what every other program has written.
pub(super) const FEW: usize = 16;

/// Writes and removes, then makes all of it durable.
pub(super) fn apply(disk: &dyn Disk, root: &Path, steps: &[Step<'_>]) -> Result<(), Failed> {
    let mut touched = Touched::default();
    // A file may become a directory of the same name only in a second act, so the order is free.
    for (number, step) in steps.iter().enumerate() {
        let path = root.join(&*step.path);
        let parent = path.parent().expect("a path below the root has a parent");
        if let Some(bytes) = step.after {
            touched.make(disk, root, parent)?;
            write_one(disk, &path, &parent.join(format!("{TEMP}{number}")), bytes)
                .map_err(|e| Failed::new("write", &path, e))?;
            touched.files.push(path.clone());
        } else {
            absent_is_none(disk.remove_file(&path)).map_err(|e| Failed::new("remove", &path, e))?;
        }
        touched.dirs.insert(parent.to_owned());
    }
    for step in steps.iter().filter(|step| step.after.is_none()) {
        touched.prune(disk, root, &root.join(&*step.path))?;
    }
    touched.sync(disk, root)
}

/// Makes a directory and those above it, durably: a journal in a directory that is lost is lost too.
/// Whether it had to be made.
pub(crate) fn ensure_dir(disk: &dyn Disk, dir: &Path) -> io::Result<bool> {
    if dir.as_os_str().is_empty() || absent_is_none(disk.meta(&dir.join(".")))?.is_some() {
        return Ok(false);
    }
    let above = match dir.parent() {
        Some(above) if !above.as_os_str().is_empty() => above,
        _ => Path::new("."),
    };
    ensure_dir(disk, above)?;
    match disk.create_dir(dir) {
        // Another run beside us needs it too.
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
        made => made?,
    }
    disk.sync_dir(above)?;
    Ok(true)
}

/// Writes a file of ours, over one that an interrupted run left.
pub(super) fn write_fresh(
    disk: &dyn Disk,
    path: &Path,
    bytes: &[u8],
    access: Access,
) -> io::Result<()> {
    match disk.write_new(path, bytes, access) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
            disk.remove_file(path)?;
            disk.write_new(path, bytes, access)
        }
        result => result,
    }
}

fn write_one(disk: &dyn Disk, path: &Path, temp: &Path, bytes: &[u8]) -> io::Result<()> {
    let access = absent_is_none(disk.meta(path))?.map_or(Access::Usual, Access::Like);
    write_fresh(disk, temp, bytes, access)?;
    disk.rename(temp, path)
}

/// What must become durable.
#[derive(Default)]
struct Touched {
    files: Vec<PathBuf>,
    dirs: BTreeSet<PathBuf>,
    /// Directories that are known to exist.
    made: BTreeSet<PathBuf>,
}

impl Touched {
    fn make(&mut self, disk: &dyn Disk, root: &Path, dir: &Path) -> Result<(), Failed> {
        if dir == root || self.made.contains(dir) {
            return Ok(());
        }
        let above = dir
            .parent()
            .expect("a directory below the root has a parent");
        self.make(disk, root, above)?;
        match disk.create_dir(dir) {
            Ok(()) => {
                self.dirs.insert(above.to_owned());
            }
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(Failed::new("create", dir, e)),
        }
        self.made.insert(dir.to_owned());
        Ok(())
    }

    /// Removes the directories that a removal left empty, from the inside out.
    fn prune(&mut self, disk: &dyn Disk, root: &Path, removed: &Path) -> Result<(), Failed> {
        for dir in removed.ancestors().skip(1) {
            if dir == root {
                break;
            }
            match disk.remove_dir(dir) {
                Ok(()) => {
                    self.dirs.remove(dir);
                    let above = dir.parent().expect("the root is above");
                    self.dirs.insert(above.to_owned());
                }
                Err(e) if is_absent(&e) => {
                    self.dirs.remove(dir);
                }
                Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty => break,
                Err(e) => return Err(Failed::new("remove", dir, e)),
            }
        }
        Ok(())
    }

    fn sync(mut self, disk: &dyn Disk, root: &Path) -> Result<(), Failed> {
        self.dirs.insert(root.to_owned());
        if self.files.len() > FEW && self.sync_whole(disk)? {
            return Ok(());
        }
        for file in &self.files {
            disk.sync_file(file)
                .map_err(|e| Failed::new("sync", file, e))?;
        }
        for dir in &self.dirs {
            disk.sync_dir(dir)
                .map_err(|e| Failed::new("sync", dir, e))?;
        }
        Ok(())
    }

    /// Every file system once: a package may reach over a mount point. `false` where there is no such
    /// call.
    fn sync_whole(&self, disk: &dyn Disk) -> Result<bool, Failed> {
        let mut devices = BTreeMap::new();
        for dir in &self.dirs {
            let meta = disk
                .meta(&dir.join("."))
                .map_err(|e| Failed::new("sync", dir, e))?;
            devices.entry(meta.device).or_insert(dir);
        }
        for dir in devices.values() {
            match disk.sync_filesystem(dir) {
                Ok(()) => {}
                Err(e) if e.kind() == io::ErrorKind::Unsupported => return Ok(false),
                Err(e) => return Err(Failed::new("sync", dir, e)),
            }
        }
        Ok(true)
    }
}
