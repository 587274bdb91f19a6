//! The disk of this machine.
//!
//! Permission bits do not stop root, yet a person who took every write bit away meant it; so
//! [`Disk::check_writable`] looks at the bits as well as asking the kernel.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::{Access, Disk, Entry, Kind, Meta};

/// The disk of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        fs::canonicalize(path)
    }

    fn meta(&self, path: &Path) -> io::Result<Meta> {
        let meta = fs::symlink_metadata(path)?;
        Ok(Meta {
            kind: kind(meta.file_type()),
            len: meta.len(),
            mode: meta.mode() & 0o7777,
            owner: meta.uid(),
            group: meta.gid(),
            device: meta.dev(),
        })
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        fs::read_dir(dir)?
            .map(|entry| {
                let entry = entry?;
                let kind = kind(entry.file_type()?);
                let name = entry.file_name();
                Ok(Entry { name, kind })
            })
            .collect()
    }

    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        fs::read_link(path)
    }

    fn read(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(NO_FOLLOW)
            .open(path)?;
        let len = file.metadata()?.len();
        if len > limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        // One byte more than the length: the read that fills the file also sees its end.
        let room = usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)? + 1;
        let mut bytes = Vec::with_capacity(room);
        file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(bytes)
    }

    fn check_writable(&self, path: &Path) -> io::Result<()> {
        if fs::symlink_metadata(path)?.mode() & 0o222 == 0 {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "it is read-only for everybody",
            ));
        }
        Ok(rustix::fs::access(path, rustix::fs::Access::WRITE_OK)?)
    }

    fn user(&self) -> u32 {
        rustix::process::geteuid().as_raw()
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn write_new(&self, path: &Path, bytes: &[u8], access: Access) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        if access != Access::Usual {
            // Narrow until the right owner and bits are set.
            options.mode(0o600);
        }
        let mut file = options.open(path)?;
        if let Access::Like(like) = access {
            keep_access(&file, like)?;
        }
        file.write_all(bytes)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    /// All are on their way to the disk before the first is waited for: a journalling file system then
    /// commits once for all of them.
    fn sync_files<'p>(&self, paths: &'p [PathBuf]) -> Result<(), (&'p Path, io::Error)> {
        let mut open = Vec::with_capacity(paths.len());
        for path in paths.iter().map(PathBuf::as_path) {
            let file = File::open(path).map_err(|e| (path, e))?;
            #[cfg(target_os = "linux")]
            // Only a hint; what counts is the sync below.
            let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
            open.push((path, file));
        }
        let mut open = open.into_iter();
        open.try_for_each(|(path, file)| file.sync_all().map_err(|e| (path, e)))
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn sync_filesystem(&self, dir: &Path) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        return Ok(rustix::fs::syncfs(File::open(dir)?)?);
        #[cfg(not(target_os = "linux"))]
        Err(io::ErrorKind::Unsupported.into())
    }
}

const NO_FOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();

fn kind(of: fs::FileType) -> Kind {
    if of.is_file() {
        Kind::File
    } else if of.is_dir() {
        Kind::Dir
    } else if of.is_symlink() {
        Kind::Link
    } else {
        debug_assert!(
            of.is_fifo() || of.is_socket() || of.is_block_device() || of.is_char_device()
        );
        Kind::Special
    }
}

/// Owner first: giving a file away clears its set-user-id bits. Only root may give files away, and a
/// user who may replace a colleague's file becomes its owner, as every editor does it.
fn keep_access(file: &File, like: Meta) -> io::Result<()> {
    let ours = file.metadata()?;
    if (ours.uid(), ours.gid()) != (like.owner, like.group) {
        match std::os::unix::fs::fchown(file, Some(like.owner), Some(like.group)) {
            Err(e) if e.kind() != io::ErrorKind::PermissionDenied => return Err(e),
            _ => {}
        }
    }
    file.set_permissions(fs::Permissions::from_mode(like.mode))
}
