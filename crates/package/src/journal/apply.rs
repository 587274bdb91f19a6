//! Does what a journal says, again and again with the same result.
//!
//! ```text
//!  directories ─► new files, and temporary files beside old ones ─► renames ─► removals ─► sync all
//! ```
//!
//! An old file is replaced by a rename, so that an editor or Git never sees half of it; a new one is
//! written where it belongs. Nothing is synced on the way: until the journal is gone, a lost write is
//! written again. Then everything is synced at once.
//!
//! Easy to get wrong: a rename frees an inode, and ext4 looks past every inode freed lately when it makes
//! a file. So all files are made before the first rename.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use super::format::Step;
use super::{Failed, TEMP};
use crate::disk::{Access, Disk, absent_is_none, is_absent};
use crate::parallel;

/// Up to here files are synced one by one. Syncing the file system is one call for any number of
/// files, but it also waits for what every other program has written.
pub(super) const FEW: usize = 16;

/// Writes and removes, then makes all of it durable. `known` are the permissions of
/// what stands at each target.
pub(super) fn apply(
    disk: &dyn Disk,
    root: &Path,
    steps: &[Step<'_>],
    known: &[Option<Access>],
) -> Result<(), Failed> {
    let mut touched = Touched::default();
    // A file may become a directory of the same name only in a second act, so the order is free.
    // By text: comparing paths part by part is slow.
    let mut writes: BTreeMap<OsString, Vec<Write<'_>>> = BTreeMap::new();
    let mut removals = Vec::new();
    for (number, (step, known)) in steps.iter().zip(known).enumerate() {
        let path = root.join(&*step.path);
        let parent = path.parent().expect("a path below the root has a parent");
        let Some(bytes) = step.after else {
            removals.push(path);
            continue;
        };
        let temp = format!("{TEMP}{number}");
        if !writes.contains_key(parent.as_os_str()) {
            touched.make(disk, root, parent)?;
            touched.dirs.insert(parent.to_owned());
        }
        let list = writes.entry(parent.as_os_str().to_owned()).or_default();
        list.push(Write {
            path,
            temp,
            bytes,
            known: *known,
        });
    }
    // By directory: two threads in one directory only wait for each other.
    let written = parallel::map(writes.into_values().collect(), |list| {
        let each = list.into_iter().map(|write| write.make(disk));
        each.collect::<Result<Vec<_>, Failed>>()
    });
    // By directory.
    let mut renames: Vec<Vec<(PathBuf, PathBuf)>> = Vec::new();
    for made in written {
        let mut of_dir = Vec::new();
        for (path, temp) in made? {
            if let Some(temp) = temp {
                of_dir.push((temp, path.clone()));
            }
            touched.files.push(path);
        }
        if !of_dir.is_empty() {
            renames.push(of_dir);
        }
    }
    if renames.iter().map(Vec::len).sum::<usize>() > FEW {
        // ext4 writes a file out when it is renamed over another, each alone.
        // On a disk that cannot do this at once, nothing is lost by not doing it.
        touched.sync_whole(disk)?;
    }
    // The old file's blocks are given back at once, and each waits for a disk that is mounted with `discard`.
    let renamed = parallel::wait(renames, |of_dir| {
        of_dir.into_iter().try_for_each(|(temp, path)| {
            disk.rename(&temp, &path)
                .map_err(|e| Failed::new("write", &path, e))
        })
    });
    renamed.into_iter().collect::<Result<(), Failed>>()?;
    for path in &removals {
        absent_is_none(disk.remove_file(path)).map_err(|e| Failed::new("remove", path, e))?;
        // Only now: a redo finds that some of these directories are gone.
        touched.dirs.extend(path.parent().map(Path::to_owned));
    }
    for path in &removals {
        touched.prune(disk, root, path)?;
    }
    touched.sync(disk, root)
}

/// One file to write.
struct Write<'a> {
    path: PathBuf,
    temp: String,
    bytes: &'a [u8],
    /// The permissions of the file that stands there.
    known: Option<Access>,
}

impl Write<'_> {
    /// Makes the file, and says which temporary one is still to be renamed to it.
    fn make(self, disk: &dyn Disk) -> Result<(PathBuf, Option<PathBuf>), Failed> {
        let Some(access) = self.known else {
            return match write_fresh(disk, &self.path, self.bytes, Access::Usual) {
                Ok(()) => Ok((self.path, None)),
                Err(e) => Err(Failed::new("write", &self.path, e)),
            };
        };
        let temp = self.path.with_file_name(&self.temp);
        match write_fresh(disk, &temp, self.bytes, access) {
            Ok(()) => Ok((self.path, Some(temp))),
            Err(e) => Err(Failed::new("write", &self.path, e)),
        }
    }
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
        disk.sync_files(&self.files)
            .map_err(|(file, e)| Failed::new("sync", file, e))?;
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
