//! A disk in memory that forgets: only what was synced is sure to survive a crash.
//!
//! Every change of a name and every write of bytes is an effect of its own, pending until the right
//! sync. A crash keeps any subset of the pending ones, and of kept bytes perhaps only a part. That is
//! harsher than a journalling file system, which keeps metadata in order.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use mooring_package::disk::{Access, Disk, Entry, Kind, Meta};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    Dir,
    File(usize),
}

/// What is on the disk: names, and bytes by inode.
#[derive(Clone, Debug, Default)]
pub(crate) struct Image {
    /// Text, not paths: comparing paths takes most of the time otherwise.
    names: BTreeMap<String, Node>,
    inodes: Vec<(Vec<u8>, u32)>,
}

/// Something that happened and is not durable yet.
#[derive(Clone, Debug)]
pub(crate) enum Effect {
    /// Names set or removed at once, all in one directory.
    Names {
        dir: String,
        sets: Vec<(String, Option<Node>)>,
    },
    /// Bytes written to an inode.
    Bytes { inode: usize, bytes: Vec<u8> },
}

/// What a crash makes of a pending effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Kept,
    Lost,
    /// Half of the bytes; a change of names is kept.
    Half,
    /// The length without the bytes; a change of names is lost.
    Zeros,
}

/// A sync that does nothing: the defect that the crash test must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lie {
    File,
    Dir,
    Filesystem,
}

#[derive(Debug)]
struct Inner {
    now: Image,
    durable: Image,
    pending: Vec<Effect>,
    log: Vec<String>,
    crash_at: Option<usize>,
    lie: Option<Lie>,
}

/// The recording disk.
#[derive(Debug)]
pub(crate) struct Recorder(Mutex<Inner>);

impl Image {
    /// Files with their bytes; directories come with them.
    pub(crate) fn of(files: &[(&str, &str)], dirs: &[&str]) -> Self {
        let mut image = Self::default();
        image.names.insert("/".into(), Node::Dir);
        for dir in dirs {
            image.dirs(Path::new(dir));
        }
        for (path, bytes) in files {
            let path = Path::new(path);
            image.dirs(path.parent().unwrap());
            let inode = image.inodes.len();
            image.inodes.push((bytes.as_bytes().to_vec(), 0o640));
            image.names.insert(text(path), Node::File(inode));
        }
        image
    }

    fn dirs(&mut self, dir: &Path) {
        for dir in dir.ancestors() {
            self.names.insert(text(dir), Node::Dir);
        }
    }

    /// Every path: bytes and permissions of files, `None` for directories.
    pub(crate) fn contents(&self) -> BTreeMap<String, Option<(Vec<u8>, u32)>> {
        let all = self.names.iter();
        all.map(|(path, node)| match node {
            Node::Dir => (path.clone(), None),
            Node::File(inode) => (path.clone(), Some(self.inodes[*inode].clone())),
        })
        .collect()
    }

    fn apply(&mut self, effect: &Effect, fate: Fate) {
        match (effect, fate) {
            (Effect::Names { sets, .. }, Fate::Kept | Fate::Half) => {
                for (path, node) in sets {
                    match node {
                        Some(node) => self.names.insert(path.clone(), *node),
                        None => self.names.remove(path),
                    };
                }
            }
            (Effect::Names { .. }, Fate::Lost | Fate::Zeros) | (_, Fate::Lost) => {}
            (Effect::Bytes { inode, bytes }, Fate::Kept) => self.inodes[*inode].0.clone_from(bytes),
            (Effect::Bytes { inode, bytes }, Fate::Half) => {
                self.inodes[*inode].0 = bytes[..bytes.len() / 2].to_vec();
            }
            (Effect::Bytes { inode, bytes }, Fate::Zeros) => {
                self.inodes[*inode].0 = vec![0; bytes.len()];
            }
        }
    }

    /// What hangs on a directory that is not there cannot be reached.
    fn drop_unreachable(&mut self) {
        // In order of names a directory comes before what is in it.
        let mut reached = BTreeMap::new();
        for (path, node) in std::mem::take(&mut self.names) {
            if path == "/" || reached.get(parent(&path)) == Some(&Node::Dir) {
                reached.insert(path, node);
            }
        }
        self.names = reached;
    }
}

impl Recorder {
    /// A disk with this on it, all of it durable. It dies before its `crash_at`-th change or sync.
    pub(crate) fn new(image: Image, crash_at: Option<usize>, lie: Option<Lie>) -> Self {
        Self(Mutex::new(Inner {
            durable: image.clone(),
            now: image,
            pending: Vec::new(),
            log: Vec::new(),
            crash_at,
            lie,
        }))
    }

    /// What every program sees.
    pub(crate) fn now(&self) -> Image {
        self.0.lock().unwrap().now.clone()
    }

    /// Changes and syncs so far, in words.
    pub(crate) fn log(&self) -> Vec<String> {
        self.0.lock().unwrap().log.clone()
    }

    /// What is not durable yet.
    pub(crate) fn pending(&self) -> Vec<Effect> {
        self.0.lock().unwrap().pending.clone()
    }

    /// What is left after the power went, with this fate for every pending effect.
    pub(crate) fn after_crash(&self, fates: &[Fate]) -> Image {
        let inner = self.0.lock().unwrap();
        let mut image = inner.durable.clone();
        for (effect, fate) in inner.pending.iter().zip(fates) {
            image.apply(effect, *fate);
        }
        image.drop_unreachable();
        image
    }

    /// A step of somebody else (the book) in the same order of events.
    pub(crate) fn step(&self, what: &str) -> io::Result<()> {
        self.0.lock().unwrap().count(what)
    }

    fn set(&self, dir: &Path, sets: Vec<(String, Option<Node>)>) {
        let dir = text(dir);
        self.0.lock().unwrap().happen(Effect::Names { dir, sets });
    }
}

impl Inner {
    fn count(&mut self, what: &str) -> io::Result<()> {
        if self.crash_at.is_some_and(|at| self.log.len() >= at) {
            return Err(io::Error::other("the power is out"));
        }
        self.log.push(what.to_owned());
        Ok(())
    }

    fn happen(&mut self, effect: Effect) {
        self.now.apply(&effect, Fate::Kept);
        self.pending.push(effect);
    }

    /// Makes the pending effects durable that the test picks.
    fn settle(&mut self, picked: impl Fn(&Effect) -> bool) {
        for effect in std::mem::take(&mut self.pending) {
            if picked(&effect) {
                self.durable.apply(&effect, Fate::Kept);
            } else {
                self.pending.push(effect);
            }
        }
    }

    fn node(&self, path: &Path) -> io::Result<Node> {
        let node = self.now.names.get(&text(path)).copied();
        node.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn file(&self, path: &Path) -> io::Result<usize> {
        match self.node(path)? {
            Node::File(inode) => Ok(inode),
            Node::Dir => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    fn is_empty(&self, dir: &Path) -> bool {
        let dir = text(dir);
        let mut names = self.now.names.keys();
        !names.any(|p| p != "/" && parent(p) == dir)
    }
}

/// `dir/.` is `dir`.
fn text(path: &Path) -> String {
    let text = path.to_str().unwrap();
    text.strip_suffix("/.").unwrap_or(text).to_owned()
}

fn parent(path: &str) -> &str {
    match path.rfind('/').unwrap() {
        0 => "/",
        at => &path[..at],
    }
}

fn above(path: &Path) -> &Path {
    path.parent().unwrap()
}

impl Disk for Recorder {
    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        self.0.lock().unwrap().node(path)?;
        Ok(path.to_owned())
    }

    fn meta(&self, path: &Path) -> io::Result<Meta> {
        let inner = self.0.lock().unwrap();
        let (kind, len, mode) = match inner.node(path)? {
            Node::Dir => (Kind::Dir, 0, 0o755),
            Node::File(inode) => {
                let (bytes, mode) = &inner.now.inodes[inode];
                (Kind::File, bytes.len() as u64, *mode)
            }
        };
        let (owner, group, device) = (1000, 1000, 1);
        Ok(Meta {
            kind,
            len,
            mode,
            owner,
            group,
            device,
        })
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        let inner = self.0.lock().unwrap();
        let names = inner.now.names.iter();
        let dir = text(dir);
        Ok(names
            .filter(|(path, _)| *path != "/" && parent(path) == dir)
            .map(|(path, node)| Entry {
                name: Path::new(path).file_name().unwrap().to_owned(),
                kind: match node {
                    Node::Dir => Kind::Dir,
                    Node::File(_) => Kind::File,
                },
            })
            .collect())
    }

    fn read_link(&self, _: &Path) -> io::Result<PathBuf> {
        Err(io::ErrorKind::InvalidInput.into())
    }

    fn read(&self, path: &Path, _: u64) -> io::Result<Vec<u8>> {
        let inner = self.0.lock().unwrap();
        let inode = inner.file(path)?;
        Ok(inner.now.inodes[inode].0.clone())
    }

    fn check_writable(&self, path: &Path) -> io::Result<()> {
        self.0.lock().unwrap().node(path).map(|_| ())
    }

    fn user(&self) -> u32 {
        1000
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        {
            let mut inner = self.0.lock().unwrap();
            if inner.node(path).is_ok() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            assert_eq!(inner.node(above(path))?, Node::Dir);
            inner.count(&format!("create directory {}", path.display()))?;
        }
        self.set(above(path), vec![(text(path), Some(Node::Dir))]);
        Ok(())
    }

    fn write_new(&self, path: &Path, bytes: &[u8], access: Access) -> io::Result<()> {
        let inode = {
            let mut inner = self.0.lock().unwrap();
            if inner.node(path).is_ok() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            assert_eq!(inner.node(above(path))?, Node::Dir);
            inner.count(&format!("write {}", path.display()))?;
            let mode = match access {
                Access::Usual => 0o644,
                Access::Private => 0o600,
                Access::Like(meta) => meta.mode,
            };
            // The inode's place is the same on both sides; it is empty until its bytes are kept.
            inner.now.inodes.push((Vec::new(), mode));
            inner.durable.inodes.push((Vec::new(), mode));
            inner.now.inodes.len() - 1
        };
        self.set(above(path), vec![(text(path), Some(Node::File(inode)))]);
        let bytes = bytes.to_vec();
        let mut inner = self.0.lock().unwrap();
        inner.happen(Effect::Bytes { inode, bytes });
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        assert_eq!(
            above(from),
            above(to),
            "the writer renames inside a directory only"
        );
        let inode = {
            let mut inner = self.0.lock().unwrap();
            let inode = inner.file(from)?;
            inner.count(&format!("rename {} to {}", from.display(), to.display()))?;
            inode
        };
        let sets = vec![(text(from), None), (text(to), Some(Node::File(inode)))];
        self.set(above(to), sets);
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        {
            let mut inner = self.0.lock().unwrap();
            inner.file(path)?;
            inner.count(&format!("remove {}", path.display()))?;
        }
        self.set(above(path), vec![(text(path), None)]);
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        {
            let mut inner = self.0.lock().unwrap();
            inner.node(path)?;
            if !inner.is_empty(path) {
                return Err(io::ErrorKind::DirectoryNotEmpty.into());
            }
            inner.count(&format!("remove directory {}", path.display()))?;
        }
        self.set(above(path), vec![(text(path), None)]);
        Ok(())
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.0.lock().unwrap();
        let wanted = inner.file(path)?;
        inner.count(&format!("sync {}", path.display()))?;
        if inner.lie != Some(Lie::File) {
            inner.settle(|e| matches!(e, Effect::Bytes { inode, .. } if *inode == wanted));
        }
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.0.lock().unwrap();
        inner.node(path)?;
        inner.count(&format!("sync directory {}", path.display()))?;
        if inner.lie != Some(Lie::Dir) {
            let path = text(path);
            inner.settle(|e| matches!(e, Effect::Names { dir, .. } if *dir == path));
        }
        Ok(())
    }

    fn sync_filesystem(&self, dir: &Path) -> io::Result<()> {
        let mut inner = self.0.lock().unwrap();
        inner.node(dir)?;
        inner.count("sync the file system")?;
        if inner.lie != Some(Lie::Filesystem) {
            inner.settle(|_| true);
        }
        Ok(())
    }
}
