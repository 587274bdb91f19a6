//! The directory of plugins: the program, its names, and what they replaced.
//!
//! Easy to get wrong: renaming one hard link of a file over another of the same file does nothing, and
//! leaves the first one lying around.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::fcntl::{Flock, FlockArg};

use super::{InstallError, PROGRAM, file};

/// In every copy of this program, and in no other file: how we know our own.
#[used]
static MARK: [u8; 33] = *b"moor-cni/mark/5f0c2e9ab7d14683\n\0\n";

/// The locked directory.
pub(super) struct Place {
    pub(super) dir: PathBuf,
    /// Our own files in it.
    pub(super) own: PathBuf,
    /// What our names replaced.
    pub(super) old: PathBuf,
    /// Two installers at once would take each other's files for the originals.
    _lock: Flock<File>,
}

impl Place {
    /// Opens and locks it; it is made where it is not there.
    pub(super) fn open(dir: &Path) -> Result<Self, InstallError> {
        fs::create_dir_all(dir).map_err(file("making", dir))?;
        let handle = File::open(dir).map_err(file("opening", dir))?;
        let lock = Flock::lock(handle, FlockArg::LockExclusive)
            .map_err(|(_, e)| file("locking", dir)(e.into()))?;
        let own = dir.join(".moor-cni");
        Ok(Self {
            old: own.join("old"),
            own,
            dir: dir.to_owned(),
            _lock: lock,
        })
    }

    /// Puts the running program there. The copy is started once before it takes its name.
    pub(super) fn program(&self, source: &Path) -> Result<(), InstallError> {
        let target = self.dir.join(PROGRAM);
        if same_file(source, &target) {
            return Ok(());
        }
        let bytes = fs::read(source).map_err(file("reading", source))?;
        let temporary = self.dir.join(format!(".{PROGRAM}.new"));
        write_new(&temporary, &bytes, 0o755)?;
        if let Err(why) = try_run(&temporary) {
            let path = temporary.clone();
            fs::remove_file(&temporary).map_err(file("removing", &temporary))?;
            return Err(InstallError::DoesNotRun { path, why });
        }
        fs::rename(&temporary, &target).map_err(file("placing", &target))?;
        sync(&self.dir)
    }

    /// Gives the program one more name; whether something else was there and is kept.
    pub(super) fn name(&self, name: &str) -> Result<bool, InstallError> {
        let (program, target) = (self.dir.join(PROGRAM), self.dir.join(name));
        let foreign = fs::symlink_metadata(&target).is_ok() && !is_ours(&target);
        if foreign {
            self.keep(name, &target)?;
        }
        let temporary = self.dir.join(format!(".{name}.new"));
        clear(&temporary)?;
        // A symbolic link where the file system has no hard ones; runtimes follow both.
        fs::hard_link(&program, &temporary)
            .or_else(|_| symlink(PROGRAM, &temporary))
            .map_err(file("linking", &temporary))?;
        fs::rename(&temporary, &target).map_err(file("placing", &target))?;
        clear(&temporary)?;
        sync(&self.dir)?;
        Ok(foreign)
    }

    /// A second name for what is about to be replaced; the first stays until the rename.
    fn keep(&self, name: &str, target: &Path) -> Result<(), InstallError> {
        fs::create_dir_all(&self.old).map_err(file("making", &self.old))?;
        let kept = self.old.join(name);
        clear(&kept)?;
        if fs::hard_link(target, &kept).is_err() {
            let bytes = fs::read(target).map_err(file("reading", target))?;
            write_new(&kept, &bytes, 0o755)?;
        }
        sync(&self.old)?;
        sync(&self.own)
    }

    /// Removes our own files where nothing is left to bring back.
    pub(super) fn close(&self) -> Result<(), InstallError> {
        for dir in [&self.old, &self.own] {
            match fs::remove_dir(dir) {
                Ok(()) => {}
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty => {}
                Err(e) => return Err(file("removing", dir)(e)),
            }
        }
        sync(&self.dir)
    }
}

/// Whether it is a copy of this program, of any version, or our own link to it. Another link is somebody's, even
/// when it leads to us by now: `ipvlan -> macvlan` did not before we took `macvlan`.
pub(super) fn is_ours(path: &Path) -> bool {
    if let Ok(target) = fs::read_link(path) {
        return target == Path::new(PROGRAM);
    }
    let Ok(bytes) = fs::read(path) else {
        return false;
    };
    bytes.windows(MARK.len()).any(|window| window == MARK)
}

fn same_file(a: &Path, b: &Path) -> bool {
    match (fs::metadata(a), fs::metadata(b)) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}

/// Removes a leftover of an interrupted run.
pub(super) fn clear(path: &Path) -> Result<(), InstallError> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(file("removing", path)(e)),
        _ => Ok(()),
    }
}

/// A new file with its bytes on the disk.
pub(super) fn write_new(path: &Path, bytes: &[u8], mode: u32) -> Result<(), InstallError> {
    clear(path)?;
    let mut options = OpenOptions::new();
    let opened = options.write(true).create_new(true).mode(mode).open(path);
    let mut target = opened.map_err(file("making", path))?;
    let written = target.write_all(bytes).and_then(|()| target.sync_all());
    written.map_err(file("writing", path))
}

/// What was renamed in a directory survives a crash from here on.
pub(super) fn sync(dir: &Path) -> Result<(), InstallError> {
    let synced = File::open(dir).and_then(|handle| handle.sync_all());
    synced.map_err(file("syncing", dir))
}

/// Asks the copy for its versions: a directory mounted `noexec`, a full disk or a foreign libc shows here.
fn try_run(program: &Path) -> Result<(), String> {
    let mut command = Command::new(program);
    command.env_clear().env("CNI_COMMAND", "VERSION");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().map_err(|e| e.to_string())?;
    let mut answer = String::new();
    if let Some(stdout) = &mut child.stdout {
        stdout
            .read_to_string(&mut answer)
            .map_err(|e| e.to_string())?;
    }
    let status = child.wait().map_err(|e| e.to_string())?;
    if status.success() && answer.contains("supportedVersions") {
        Ok(())
    } else {
        Err(format!("it ended with {status}"))
    }
}
