//! Files by path, and the layer they become: a tar whose bytes depend on nothing but paths, modes and contents.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use tar::{Builder, EntryType, Header};

/// A root filesystem, or a part of one.
#[derive(Debug, Default)]
pub(super) struct Tree(BTreeMap<String, Entry>);

#[derive(Debug)]
enum Entry {
    Directory { mode: u32 },
    File { from: Source, mode: u32 },
    Link { to: String },
}

#[derive(Debug)]
enum Source {
    Path(PathBuf),
    Bytes(Vec<u8>),
}

impl Tree {
    /// A directory that is not only there because something stands in it.
    pub(super) fn directory(&mut self, path: &str, mode: u32) {
        self.put(path, Entry::Directory { mode });
    }

    /// A file that is written here.
    pub(super) fn file(&mut self, path: &str, text: impl Into<Vec<u8>>) {
        let from = Source::Bytes(text.into());
        self.put(path, Entry::File { from, mode: 0o644 });
    }

    /// A file that stands elsewhere.
    pub(super) fn copy(&mut self, path: &str, from: &Path, mode: u32) {
        let from = Source::Path(from.to_owned());
        self.put(path, Entry::File { from, mode });
    }

    /// A symbolic link.
    pub(super) fn link(&mut self, path: &str, to: &str) {
        let to = to.to_owned();
        self.put(path, Entry::Link { to });
    }

    /// Whether something is there.
    pub(super) fn has(&self, path: &str) -> bool {
        self.0.contains_key(path)
    }

    /// Everything below a directory whose new path is given by `place`; None leaves it out. Who may change the user
    /// no longer may, and who could be run still can.
    pub(super) fn add(
        &mut self,
        from: &Path,
        place: &impl Fn(&str) -> Option<String>,
    ) -> Result<()> {
        self.walk(from, from, place)
    }

    fn walk(
        &mut self,
        top: &Path,
        dir: &Path,
        place: &impl Fn(&str) -> Option<String>,
    ) -> Result<()> {
        let entries =
            fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
        for entry in entries {
            let path = entry?.path();
            let below = path
                .strip_prefix(top)
                .context("an entry is below its top")?;
            let Some(name) = below.to_str() else {
                bail!("{} is not text", path.display());
            };
            let meta = fs::symlink_metadata(&path)?;
            if meta.is_dir() {
                self.walk(top, &path, place)?;
                continue;
            }
            let Some(target) = place(name) else {
                continue;
            };
            if meta.is_symlink() {
                let to = fs::read_link(&path)?;
                let to = to
                    .to_str()
                    .with_context(|| format!("{} is not text", path.display()))?;
                self.link(&target, to);
            } else {
                let runs = meta.permissions().mode() & 0o111 != 0;
                self.copy(&target, &path, if runs { 0o755 } else { 0o644 });
            }
        }
        Ok(())
    }

    fn put(&mut self, path: &str, entry: Entry) {
        for (at, _) in path.match_indices('/') {
            let parent = path[..at].to_owned();
            self.0
                .entry(parent)
                .or_insert(Entry::Directory { mode: 0o755 });
        }
        self.0.insert(path.to_owned(), entry);
    }

    /// Writes the tar: sorted, of 1970, of root.
    pub(super) fn write(&self, out: impl Write) -> Result<()> {
        let mut tar = Builder::new(out);
        for (path, entry) in &self.0 {
            let mut header = Header::new_gnu();
            header.set_mtime(0);
            header.set_uid(0);
            header.set_gid(0);
            header.set_size(0);
            match entry {
                Entry::Directory { mode } => {
                    header.set_entry_type(EntryType::Directory);
                    header.set_mode(*mode);
                    tar.append_data(&mut header, format!("{path}/"), std::io::empty())?;
                }
                Entry::Link { to } => {
                    header.set_entry_type(EntryType::Symlink);
                    header.set_mode(0o777);
                    tar.append_link(&mut header, path, to)?;
                }
                Entry::File { from, mode } => {
                    let bytes = from.bytes()?;
                    header.set_entry_type(EntryType::Regular);
                    header.set_mode(*mode);
                    header.set_size(bytes.len() as u64);
                    tar.append_data(&mut header, path, bytes.as_slice())?;
                }
            }
        }
        tar.finish().context("cannot finish the layer")
    }
}

impl Source {
    fn bytes(&self) -> Result<Vec<u8>> {
        match self {
            Self::Bytes(bytes) => Ok(bytes.clone()),
            Self::Path(path) => {
                let mut bytes = Vec::new();
                let read = fs::File::open(path).and_then(|mut f| f.read_to_end(&mut bytes));
                read.with_context(|| format!("cannot read {}", path.display()))?;
                Ok(bytes)
            }
        }
    }
}
