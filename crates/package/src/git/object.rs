//! Reading trees and making commits in a mirror, without an index and without a work tree.
//!
//! Easy to get wrong: a map of path to bytes knows neither links nor executable bits. Where a commit replaces a directory, files that
//! were executable stay so, and links and submodules stay where they are.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::run::Call;
use super::{Error, Mirror};
use crate::disk::MAX_FILE;

/// All files of one read together.
const MAX_TOTAL: u64 = 512 << 20;

/// Path → bytes. Paths are relative, with `/`.
pub type Files = BTreeMap<String, Vec<u8>>;

/// The id of an object.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Oid(String);

impl Oid {
    /// An id as git writes it, in full.
    pub fn parse(text: &str) -> Option<Self> {
        let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        let full = text.len() == 40 || text.len() == 64;
        (full && text.bytes().all(hex)).then(|| Self(text.to_owned()))
    }

    /// As git writes it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first twelve digits, for people.
    pub fn short(&self) -> &str {
        &self.0[..12]
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.short())
    }
}

impl serde::Serialize for Oid {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.0)
    }
}

/// A commit to make.
#[derive(Clone, Debug, Default)]
pub struct Commit {
    /// What it stands on; the first one's tree is what `puts` change. Empty in an empty repository.
    pub parents: Vec<Oid>,
    /// What changes.
    pub puts: Vec<Put>,
    /// What it says.
    pub message: String,
}

/// One change of a commit.
#[derive(Clone, Debug)]
pub enum Put {
    /// The directory holds these files and nothing else, except what lies below `keep`, links and submodules.
    Directory {
        /// Where.
        path: String,
        /// What, relative to it.
        files: Files,
        /// Directories below it that stay as they are, relative to it.
        keep: Vec<String>,
    },
    /// The directory is as in that commit, except what lies below `keep`.
    Copy {
        /// Where, in both.
        path: String,
        /// From which commit.
        from: Oid,
        /// Directories below it that stay as they are here, relative to it.
        keep: Vec<String>,
    },
    /// The directory goes, except what lies below `keep`.
    Remove {
        /// Where.
        path: String,
        /// Directories below it that stay as they are, relative to it.
        keep: Vec<String>,
    },
}

/// An entry of a tree.
struct Entry {
    mode: String,
    id: String,
    size: u64,
}

impl Mirror {
    /// The files of a directory of a commit; None where there is no such directory. Links and submodules are left out.
    pub fn read(&self, commit: &Oid, path: &str) -> Result<Option<Files>, Error> {
        let Some(entries) = self.entries(commit, path)? else {
            return Ok(None);
        };
        let mut total = 0;
        let blobs = entries.iter().filter(|(_, e)| e.mode.starts_with("100"));
        let mut wanted = Vec::new();
        for (name, entry) in blobs {
            total += entry.size;
            if entry.size > MAX_FILE || total > MAX_TOTAL {
                let what = format!("{path}/{name}");
                let url = self.repository.to_string();
                return Err(Error::TooLarge { url, what });
            }
            wanted.push((name, entry));
        }
        let ids: BTreeSet<&str> = wanted.iter().map(|(_, e)| e.id.as_str()).collect();
        let bytes = self.blobs(&ids, total)?;
        let file = |(name, entry): (&String, &Entry)| {
            let bytes = bytes.get(entry.id.as_str()).cloned();
            bytes.map(|bytes| (name.clone(), bytes))
        };
        let files: Option<Files> = wanted.into_iter().map(file).collect();
        files.map(Some).ok_or_else(|| self.broken("cat-file"))
    }

    /// The id of what stands at a path; None where nothing does.
    pub fn id_at(&self, commit: &Oid, path: &str) -> Result<Option<Oid>, Error> {
        Ok(self.ids_at(&[(commit, path)])?.pop().flatten())
    }

    /// The same for many at once.
    pub fn ids_at(&self, wanted: &[(&Oid, &str)]) -> Result<Vec<Option<Oid>>, Error> {
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        // On stdin, so that no name is taken for an option.
        let lines = wanted
            .iter()
            .map(|(commit, path)| format!("{commit}:{path}\n"));
        let input: String = lines.collect();
        let call = self.call("cat-file").args(["--batch-check=%(objectname)"]);
        let answer = call.input(input.into_bytes()).run()?;
        let answer = String::from_utf8_lossy(&answer);
        let ids: Vec<Option<Oid>> = answer.lines().map(Oid::parse).collect();
        if ids.len() == wanted.len() {
            Ok(ids)
        } else {
            Err(self.broken("cat-file"))
        }
    }

    /// The newest commit that both stand on.
    pub fn base(&self, one: &Oid, other: &Oid) -> Result<Option<Oid>, Error> {
        let said = self
            .call("merge-base")
            .args([one.as_str(), other.as_str()])
            .ask()?;
        Ok(Oid::parse(String::from_utf8_lossy(&said.out).trim()))
    }

    /// Every directory of a commit that holds a Kptfile, below a path.
    pub fn kptfiles(&self, commit: &Oid, path: &str) -> Result<Vec<String>, Error> {
        let names = self.entries(commit, path)?.unwrap_or_default();
        let dir = |name: String| match name.as_str() {
            "Kptfile" => Some(String::new()),
            other => other.strip_suffix("/Kptfile").map(ToOwned::to_owned),
        };
        Ok(names.into_keys().filter_map(dir).collect())
    }

    /// The same with the Kptfiles' texts.
    pub fn kptfile_texts(&self, commit: &Oid, path: &str) -> Result<Vec<(String, Vec<u8>)>, Error> {
        let entries = self.entries(commit, path)?.unwrap_or_default();
        let is_one = |name: &str| name == "Kptfile" || name.ends_with("/Kptfile");
        let kptfiles: Vec<(&String, &Entry)> = entries
            .iter()
            .filter(|(name, e)| is_one(name) && e.mode.starts_with("100") && e.size <= MAX_FILE)
            .collect();
        let ids: BTreeSet<&str> = kptfiles.iter().map(|(_, e)| e.id.as_str()).collect();
        let texts = self.blobs(&ids, kptfiles.iter().map(|(_, e)| e.size).sum())?;
        let text = |(name, entry): (&String, &Entry)| {
            let dir = name.trim_end_matches("Kptfile").trim_end_matches('/');
            Some((dir.to_owned(), texts.get(&entry.id)?.clone()))
        };
        Ok(kptfiles.into_iter().filter_map(text).collect())
    }

    /// Makes a commit. Nothing points at it until it is pushed.
    pub fn commit(&self, commit: &Commit) -> Result<Oid, Error> {
        // fast-import wants a name; it is gone again before the stream ends, so no ref is ever written.
        const NAME: &str = "refs/moor/commit";
        let mut input = Vec::new();
        let (name, mail) = &self.git.author;
        let plain = |text: &str| text.replace(['<', '>', '\n'], " ");
        let who = format!("{} <{}> {} +0000", plain(name), plain(mail), self.git.now.0);
        let head = format!("commit {NAME}\nmark :1\nauthor {who}\ncommitter {who}\n");
        input.extend_from_slice(head.as_bytes());
        data(&mut input, commit.message.as_bytes());
        for (nth, parent) in commit.parents.iter().enumerate() {
            let word = if nth == 0 { "from" } else { "merge" };
            input.extend_from_slice(format!("{word} {parent}\n").as_bytes());
        }
        for put in &commit.puts {
            self.put(&mut input, commit.parents.first(), put)?;
        }
        let none = "0".repeat(40);
        let tail = format!("get-mark :1\nreset {NAME}\nfrom {none}\n\ndone\n");
        input.extend_from_slice(tail.as_bytes());
        let call: Call<'_> = self.call("fast-import").args(["--quiet", "--done"]);
        let answer = call.input(input).run()?;
        let answer = String::from_utf8_lossy(&answer);
        Oid::parse(answer.trim()).ok_or_else(|| self.broken("fast-import"))
    }

    fn put(&self, input: &mut Vec<u8>, parent: Option<&Oid>, put: &Put) -> Result<(), Error> {
        let (path, keep) = match put {
            Put::Directory { path, keep, .. }
            | Put::Copy { path, keep, .. }
            | Put::Remove { path, keep } => (path, keep),
        };
        let before = match parent {
            Some(parent) => self.entries(parent, path)?.unwrap_or_default(),
            None => BTreeMap::new(),
        };
        if !before.is_empty() {
            line(input, "D", path);
        }
        match put {
            Put::Directory { files, .. } => {
                for (name, bytes) in files {
                    let mode = match before.get(name) {
                        Some(entry) if entry.mode == "100755" => "100755",
                        _ => "100644",
                    };
                    line(
                        input,
                        &format!("M {mode} inline"),
                        &format!("{path}/{name}"),
                    );
                    data(input, bytes);
                }
                let stays = |(name, entry): &(&String, &Entry)| {
                    !entry.mode.starts_with("100") && !files.contains_key(*name)
                };
                for (name, entry) in before.iter().filter(stays) {
                    link(input, path, name, entry);
                }
            }
            Put::Copy { from, .. } => {
                for (name, entry) in self.entries(from, path)?.unwrap_or_default() {
                    if !is_below(&name, keep) {
                        link(input, path, &name, &entry);
                    }
                }
            }
            Put::Remove { .. } => {}
        }
        for (name, entry) in before.iter().filter(|(name, _)| is_below(name, keep)) {
            link(input, path, name, entry);
        }
        Ok(())
    }

    /// Everything below a directory of a commit.
    fn entries(&self, commit: &Oid, path: &str) -> Result<Option<BTreeMap<String, Entry>>, Error> {
        let Some(tree) = self.id_at(commit, path)? else {
            return Ok(None);
        };
        let call = self
            .call("ls-tree")
            .args(["-r", "-z", "-l", "--full-tree", tree.as_str()]);
        let said = call.limit(256 << 20).ask()?;
        if !said.ok {
            // A file, where a directory was asked for.
            return Ok(None);
        }
        let listing = String::from_utf8_lossy(&said.out);
        let entry = |line: &str| {
            let (head, name) = line.split_once('\t')?;
            let [mode, _, id, size] = head.split_ascii_whitespace().collect::<Vec<_>>()[..] else {
                return None;
            };
            let (mode, id) = (mode.to_owned(), id.to_owned());
            let size = size.parse().unwrap_or_default();
            Some((name.to_owned(), Entry { mode, id, size }))
        };
        Ok(Some(
            listing.split_terminator('\0').filter_map(entry).collect(),
        ))
    }

    fn blobs(&self, ids: &BTreeSet<&str>, total: u64) -> Result<BTreeMap<String, Vec<u8>>, Error> {
        let mut out = BTreeMap::new();
        if ids.is_empty() {
            return Ok(out);
        }
        let lines: Vec<&str> = ids.iter().copied().collect();
        let input = lines.join("\n") + "\n";
        let limit = total + 128 * ids.len() as u64;
        let call = self.call("cat-file").args(["--batch"]).limit(limit);
        let answer = call.input(input.into_bytes()).run()?;
        let mut rest = answer.as_slice();
        while let Some(end) = rest.iter().position(|b| *b == b'\n') {
            let head = String::from_utf8_lossy(&rest[..end]).into_owned();
            let [id, "blob", size] = head.split(' ').collect::<Vec<_>>()[..] else {
                return Err(self.broken("cat-file"));
            };
            let size: usize = size.parse().unwrap_or(usize::MAX);
            let Some((bytes, after)) = rest[end + 1..].split_at_checked(size) else {
                return Err(self.broken("cat-file"));
            };
            out.insert(id.to_owned(), bytes.to_vec());
            rest = after.get(1..).unwrap_or_default();
        }
        Ok(out)
    }

    pub(super) fn broken(&self, act: &'static str) -> Error {
        Error::Failed {
            act,
            url: self.repository.to_string(),
            said: "its answer cannot be read".to_owned(),
        }
    }
}

fn is_below(name: &str, keep: &[String]) -> bool {
    keep.iter().any(|dir| {
        let rest = name.strip_prefix(dir.as_str());
        rest.is_some_and(|rest| rest.starts_with('/'))
    })
}

fn data(input: &mut Vec<u8>, bytes: &[u8]) {
    input.extend_from_slice(format!("data {}\n", bytes.len()).as_bytes());
    input.extend_from_slice(bytes);
    input.push(b'\n');
}

fn link(input: &mut Vec<u8>, path: &str, name: &str, entry: &Entry) {
    let start = format!("M {} {}", entry.mode, entry.id);
    line(input, &start, &format!("{path}/{name}"));
}

/// A command of fast-import whose last word is a path.
fn line(input: &mut Vec<u8>, start: &str, path: &str) {
    let mut quoted = String::with_capacity(path.len() + 2);
    quoted.push('"');
    for c in path.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            _ => quoted.push(c),
        }
    }
    quoted.push('"');
    input.extend_from_slice(format!("{start} {quoted}\n").as_bytes());
}
