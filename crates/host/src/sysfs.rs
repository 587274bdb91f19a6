//! Reading `/sys`, under any root.
//!
//! Device look-ups go through [`Sysfs`], so that a test can hand them a directory. Easy to get wrong: `/sys/class/net`
//! shows the namespace that sysfs was *mounted* in, whichever namespace the reader is in. A NIC in a pod is found by its
//! PCI address (`/sys/bus/pci`), not by its name.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// A view of sysfs.
#[derive(Clone, Debug)]
pub struct Sysfs {
    root: PathBuf,
}

impl Default for Sysfs {
    fn default() -> Self {
        Self::new("/sys")
    }
}

impl Sysfs {
    /// The one mounted at `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Where something is.
    pub fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.root.join(relative)
    }

    /// The text of an attribute without white space around it; `None` when it is absent, or the driver has no answer.
    pub fn read(&self, relative: impl AsRef<Path>) -> io::Result<Option<String>> {
        match std::fs::read_to_string(self.path(relative)) {
            Ok(text) => Ok(Some(text.trim().to_owned())),
            Err(e) if is_nothing(&e) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Writes an attribute.
    pub fn write(&self, relative: impl AsRef<Path>, value: &str) -> io::Result<()> {
        let path = self.path(relative);
        let mut file = std::fs::OpenOptions::new().write(true).open(path)?;
        file.write_all(value.as_bytes())
    }

    /// The names in a directory, sorted; none when it is absent.
    pub fn list(&self, relative: impl AsRef<Path>) -> io::Result<Vec<String>> {
        let entries = match std::fs::read_dir(self.path(relative)) {
            Ok(entries) => entries,
            Err(e) if is_nothing(&e) => return Ok(Vec::new()),
            Err(e) => return Err(e),
        };
        let mut names = Vec::new();
        for entry in entries {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }

    /// The last part of where a link leads, such as the address of a device or the name of a driver.
    pub fn link_name(&self, relative: impl AsRef<Path>) -> io::Result<Option<String>> {
        match std::fs::read_link(self.path(relative)) {
            Ok(target) => Ok(target
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())),
            Err(e) if is_nothing(&e) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Whether something is there.
    pub fn exists(&self, relative: impl AsRef<Path>) -> bool {
        self.path(relative).exists()
    }
}

/// Absent, or an attribute that its driver does not fill: `phys_port_name` and `speed` answer so.
fn is_nothing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || matches!(
            error.raw_os_error(),
            Some(nix::libc::EOPNOTSUPP | nix::libc::EINVAL | nix::libc::ENODEV)
        )
}
