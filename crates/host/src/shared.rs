//! Objects of the node that several pods share, and who uses them: VLAN sub-interfaces, shims.
//!
//! Called by `vlan` and `shim`. One directory per object, one file per user; the object goes with its last user.
//!
//! ```text
//!  <root>/eth1.100.lock              flock: who changes the object or its users holds it
//!  <root>/eth1.100/<container>:net1  a user: network, namespace, boot, addresses
//! ```
//!
//! The order makes a kill at any instant harmless: a user is noted before the object is made, and taken away after the
//! object is removed. What is left over is then a user without an object, which the next DEL takes away.
//!
//! Easy to get wrong: a user may vanish without a DEL (power cut, runtime lost). Its namespace is then gone or another one,
//! and it no longer counts. The files belong on a file system that a reboot empties (`/run`), as a reboot ends the objects;
//! where it does not, the boot id tells.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mooring_api::Mac;
use mooring_api::net::{Link, LinkChange, NewLink};
use serde::{Deserialize, Serialize};

use crate::Life;
use crate::file::{self, Lock, LockError};
use crate::{Change, Netlink, NetlinkError, Netns, NetnsId};

/// How long an object's lock is waited for. It is held for one change of the kernel: some milliseconds, and some tens where a
/// link is removed.
const BOUND: Duration = Duration::from_secs(20);

/// A user of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct User {
    /// The network it was attached by: a GC speaks for one network only.
    pub network: String,
    /// Whose interface.
    pub container: String,
    /// Which interface.
    pub ifname: String,
    /// Where the runtime put the namespace.
    pub netns: PathBuf,
    /// Which namespace it was.
    pub netns_id: NetnsId,
    /// The boot in which it began.
    pub boot: String,
    /// The interface's addresses, where the object must know them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<IpAddr>,
    /// The interface's MAC, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<Mac>,
}

/// The notes of an object's users could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SharedError {
    /// The lock.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A file or directory.
    #[error("cannot {doing} {path}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl User {
    /// A user that begins now, in the namespace that the runtime named.
    pub fn new(network: &str, container: &str, ifname: &str, netns: &Netns) -> Self {
        Self {
            network: network.to_owned(),
            container: container.to_owned(),
            ifname: ifname.to_owned(),
            netns: netns.path().to_owned(),
            netns_id: netns.id(),
            boot: boot(),
            addresses: Vec::new(),
            mac: None,
        }
    }

    /// Any bytes; none where they are no note.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    /// As it is noted.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a user has string keys and plain values")
    }

    /// Whether it ended without saying so: another boot, or its namespace is gone or another one.
    fn is_gone(&self, boot: &str) -> bool {
        let life = Life::of(
            Path::new("/"),
            &self.netns,
            Some(self.netns_id),
            Some(&self.boot),
            boot,
        );
        matches!(life, Life::Gone { .. })
    }
}

/// The kernel's id of this boot; empty where it does not say.
fn boot() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

/// An attachment's name among an object's users. Neither a container's id nor an interface's name has a colon.
fn key(container: &str, ifname: &str) -> String {
    format!("{container}:{ifname}")
}

/// All objects of one kind.
#[derive(Clone, Debug)]
pub(crate) struct Objects {
    root: PathBuf,
}

/// One object, with its lock held.
pub(crate) struct Object {
    dir: PathBuf,
    lock: PathBuf,
    _held: Lock,
}

impl Objects {
    pub(crate) fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Locks an object, known or not.
    pub(crate) fn lock(&self, name: &str) -> Result<Object, SharedError> {
        let lock = self.root.join(format!("{name}.lock"));
        let held = Lock::exclusive(&lock, BOUND)?;
        Ok(Object {
            dir: self.root.join(name),
            lock,
            _held: held,
        })
    }

    /// The names of all objects that have users, in order.
    pub(crate) fn names(&self) -> Result<Vec<String>, SharedError> {
        let is_dir = |name: &String| self.root.join(name).is_dir();
        Ok(list(&self.root)?.into_iter().filter(is_dir).collect())
    }

    /// The users of an object with their files, without its lock: to show them. `None` for a note that cannot be read.
    pub(crate) fn peek(&self, name: &str) -> Result<Vec<(PathBuf, Option<User>)>, SharedError> {
        let dir = self.root.join(name);
        let files = list(&dir)?.into_iter().map(|user| dir.join(user));
        Ok(files.map(|path| (path.clone(), read(&path))).collect())
    }

    /// The objects that this attachment is noted at. More than one when its network was edited between two ADDs.
    pub(crate) fn used_by(
        &self,
        container: &str,
        ifname: &str,
    ) -> Result<Vec<String>, SharedError> {
        let key = key(container, ifname);
        let mut names = self.names()?;
        names.retain(|name| self.root.join(name).join(&key).exists());
        Ok(names)
    }

    /// Has an attachment leave everything that it is noted at. All of it is tried; the first error is told.
    pub(crate) fn release<E: From<SharedError>>(
        &self,
        container: &str,
        ifname: &str,
        mut leave: impl FnMut(&Object, &str, (&str, &str)) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut first = Ok(());
        for name in self.used_by(container, ifname)? {
            let left = self.lock(&name).map_err(E::from);
            let left = left.and_then(|object| leave(&object, &name, (container, ifname)));
            first = first.and(left);
        }
        first
    }

    /// Has those leave who are gone, and those of `network` that are not `valid`. One object does not stop the others.
    pub(crate) fn collect<E: From<SharedError>>(
        &self,
        network: &str,
        valid: &dyn Fn(&str, &str) -> bool,
        mut leave: impl FnMut(&Object, &str, (&str, &str)) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut first = Ok(());
        for name in self.names()? {
            let mut one = || {
                let object = self.lock(&name)?;
                for (container, ifname) in object.garbage(network, valid)? {
                    leave(&object, &name, (&container, &ifname))?;
                }
                Ok(())
            };
            first = first.and(one());
        }
        first
    }
}

impl Object {
    /// Notes a user; a second note replaces the first.
    pub(crate) fn add(&self, user: &User) -> Result<(), SharedError> {
        let bytes = user.to_bytes();
        let path = self.dir.join(key(&user.container, &user.ifname));
        file::write_atomic(&path, &bytes).map_err(|source| SharedError::Io {
            doing: "write",
            path,
            source,
        })
    }

    /// The note of one user; `None` when there is none, or it cannot be read.
    pub(crate) fn user(&self, container: &str, ifname: &str) -> Option<User> {
        read(&self.dir.join(key(container, ifname)))
    }

    /// Takes a user away; absent is success. Directory and lock go with the last one.
    pub(crate) fn remove(&self, container: &str, ifname: &str) -> Result<(), SharedError> {
        let path = self.dir.join(key(container, ifname));
        if let Err(source) = file::remove(&path) {
            return Err(SharedError::Io {
                doing: "remove",
                path,
                source,
            });
        }
        if self.everybody()?.is_empty() {
            // Also what a killed writer left beside its place. Whoever waits for the lock notices that it went.
            let _ = fs::remove_dir_all(&self.dir);
            let _ = fs::remove_file(&self.lock);
        }
        Ok(())
    }

    /// Whether anybody but this attachment still uses it.
    pub(crate) fn has_others(&self, container: &str, ifname: &str) -> Result<bool, SharedError> {
        Ok(!self.others(container, ifname)?.is_empty())
    }

    /// Everybody but this attachment, without those that are gone; `None` for a note that cannot be read. It counts: nothing
    /// says that its owner is gone, and its own DEL finds it by name.
    pub(crate) fn others(
        &self,
        container: &str,
        ifname: &str,
    ) -> Result<Vec<Option<User>>, SharedError> {
        let boot = boot();
        let mut others = Vec::new();
        for (other, name) in self.everybody()? {
            if (other.as_str(), name.as_str()) == (container, ifname) {
                continue;
            }
            let user = self.user(&other, &name);
            if !user.as_ref().is_some_and(|user| user.is_gone(&boot)) {
                others.push(user);
            }
        }
        Ok(others)
    }

    /// Everybody that is noted, gone or not, by container and interface.
    pub(crate) fn everybody(&self) -> Result<Vec<(String, String)>, SharedError> {
        let split = |name: String| {
            let (container, ifname) = name.split_once(':')?;
            Some((container.to_owned(), ifname.to_owned()))
        };
        Ok(list(&self.dir)?.into_iter().filter_map(split).collect())
    }

    /// The users that a GC of `network` takes away: those that are gone, and its own that are not valid.
    pub(crate) fn garbage(
        &self,
        network: &str,
        valid: &dyn Fn(&str, &str) -> bool,
    ) -> Result<Vec<(String, String)>, SharedError> {
        let boot = boot();
        let mut all = self.everybody()?;
        all.retain(|(container, ifname)| {
            self.user(container, ifname).is_some_and(|user| {
                user.is_gone(&boot) || (user.network == network && !valid(container, ifname))
            })
        });
        Ok(all)
    }
}

/// The names in a directory, in order; hidden ones are not users. An absent directory is an empty one.
fn list(dir: &Path) -> Result<Vec<String>, SharedError> {
    let fail = |source| SharedError::Io {
        doing: "list",
        path: dir.to_owned(),
        source,
    };
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(fail)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        if let Ok(name) = entry.map_err(fail)?.file_name().into_string()
            && !name.starts_with('.')
        {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

fn read(path: &Path) -> Option<User> {
    User::parse(&fs::read(path).ok()?)
}

/// Makes a link of the node and marks it as ours in one send, which a kill cannot cut in two: the kernel serves the whole
/// buffer before the process sees a signal. An alias in the message that makes a link is ignored, hence the second one.
///
/// It names the link by an index of our choice. By name it could hit a link that somebody else made in between, by the
/// kernel's next index too; out here nobody but us chooses.
pub(crate) fn make_marked(
    node: &mut Netlink,
    mut link: NewLink,
    change: LinkChange,
) -> Result<Option<Link>, NetlinkError> {
    let index = chosen_index(&link.name);
    link.index = Some(index);
    node.apply(&[Change::NewLink(link), Change::SetLink { index, change }])?;
    node.link_at(index)
}

/// An index far above those that the kernel counts, another one for every try.
fn chosen_index(name: &str) -> u32 {
    use std::hash::{BuildHasher as _, RandomState};

    const FIRST: u32 = 0x4000_0000;
    let hash = RandomState::new().hash_one(name);
    FIRST | u32::try_from(hash & 0x1fff_ffff).expect("29 bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(container: &str, netns: &Netns) -> User {
        User::new("net", container, "net1", netns)
    }

    #[test]
    fn a_user_counts_until_it_leaves_or_its_namespace_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let objects = Objects::new(dir.path().join("vlan"));
        let here = Netns::open("/proc/self/ns/net").unwrap();
        let object = objects.lock("eth1.100").unwrap();
        object.add(&user("a", &here)).unwrap();
        assert!(!object.has_others("a", "net1").unwrap());
        assert!(object.has_others("b", "net1").unwrap());
        let mut gone = user("b", &here);
        gone.netns = dir.path().join("no-such-namespace");
        object.add(&gone).unwrap();
        let mut earlier = user("c", &here);
        earlier.boot = "another".to_owned();
        object.add(&earlier).unwrap();
        let mut recycled = user("d", &here);
        recycled.netns_id.inode += 1;
        object.add(&recycled).unwrap();
        assert!(!object.has_others("a", "net1").unwrap());
        assert_eq!(objects.used_by("c", "net1").unwrap(), ["eth1.100"]);
        let names: Vec<_> = object.garbage("other", &|_, _| false).unwrap();
        let names: Vec<&str> = names.iter().map(|(c, _)| c.as_str()).collect();
        assert_eq!(names, ["b", "c", "d"]);
        let all = objects.peek("eth1.100").unwrap();
        let all: Vec<User> = all.into_iter().filter_map(|(_, user)| user).collect();
        let gone = all.iter().filter(|user| user.is_gone(&boot())).count();
        assert_eq!((all.len(), gone), (4, 3));
        assert_eq!(object.garbage("net", &|c, _| c == "a").unwrap().len(), 3);
        assert_eq!(object.garbage("net", &|_, _| false).unwrap().len(), 4);
    }

    #[test]
    fn a_note_that_cannot_be_read_counts_and_goes_by_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let objects = Objects::new(dir.path());
        let object = objects.lock("eth1.100").unwrap();
        fs::create_dir(dir.path().join("eth1.100")).unwrap();
        file::write_atomic(dir.path().join("eth1.100/x:net1"), b"").unwrap();
        assert!(object.has_others("a", "net1").unwrap());
        assert!(object.garbage("net", &|_, _| false).unwrap().is_empty());
        object.remove("x", "net1").unwrap();
        assert!(!object.has_others("a", "net1").unwrap());
    }

    #[test]
    fn nothing_stays_behind_the_last_user() {
        let dir = tempfile::tempdir().unwrap();
        let objects = Objects::new(dir.path());
        let here = Netns::open("/proc/self/ns/net").unwrap();
        let object = objects.lock("eth1.100").unwrap();
        for container in ["a", "b"] {
            object.add(&user(container, &here)).unwrap();
        }
        object.remove("a", "net1").unwrap();
        assert_eq!(objects.names().unwrap(), ["eth1.100"]);
        object.remove("b", "net1").unwrap();
        object.remove("b", "net1").unwrap();
        drop(object);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
