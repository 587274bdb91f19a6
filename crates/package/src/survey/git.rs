//! Reads a directory or file of a Git revision, `REV:PATH` as Git itself writes it, with the `git` program and without a
//! work tree.
//!
//! ```text
//!  REV:PATH ─► cat-file --batch-check (on stdin) ─► object id ─► ls-tree ─► cat-file --batch ─► Tree
//! ```
//!
//! Easy to get wrong: a revision is never an argument. It goes to `git` on stdin, and what comes back is an object id, so no
//! name can be taken for an option. Nothing is fetched, no hook or filter runs, and time and size are bounded.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write as _};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use mooring_api::{Code, Finding};

use crate::disk::{MAX_FILE, Tree};

/// How long `git` may take for one question.
const WAIT: Duration = Duration::from_mins(1);
/// All files together.
const MAX_TOTAL: u64 = 512 * 1024 * 1024;
/// Names in one tree.
const MAX_NAMES: usize = 500_000;

/// What a revision has at a path.
pub(super) enum Object {
    /// A directory: its documents, and the bytes of the other files that were asked for.
    Tree {
        tree: Tree,
        others: BTreeMap<String, Vec<u8>>,
        /// The object's id, which two names may share.
        id: String,
    },
    /// A file.
    File(Vec<u8>),
}

/// A blob in a listing.
struct Blob<'a> {
    id: &'a str,
    size: u64,
    path: &'a str,
}

/// Reads `REV:PATH`; `wanted` says which files are needed beside the documents.
pub(super) fn read(name: &str, wanted: impl Fn(&str) -> bool) -> Result<Object, Finding> {
    if name.contains(['\n', '\0']) {
        return Err(missing(name, "it has a line break"));
    }
    let asked = name.trim_end_matches('/');
    let answer = git(
        &["cat-file", "--batch-check=%(objectname) %(objecttype)"],
        format!("{asked}\n").into_bytes(),
        4096,
    )
    .map_err(|e| failed(name, &e))?;
    let answer = String::from_utf8_lossy(&answer);
    let (id, kind) = answer.trim_end().rsplit_once(' ').unwrap_or_default();
    let is_id = id.len() >= 40 && id.bytes().all(|b| b.is_ascii_hexdigit());
    match kind {
        "tree" if is_id => tree(name, id, wanted),
        "blob" if is_id => {
            let mut bytes = blobs(name, &[id])?;
            bytes
                .remove(id)
                .map(Object::File)
                .ok_or_else(|| missing(name, "git has no such file"))
        }
        _ if is_id => Err(missing(name, "it is neither a file nor a directory")),
        "ambiguous" => Err(missing(name, "more than one object has this name")),
        _ => Err(missing(name, "git knows no such revision or path")),
    }
}

fn tree(name: &str, id: &str, wanted: impl Fn(&str) -> bool) -> Result<Object, Finding> {
    let arguments = ["ls-tree", "-r", "-z", "-l", "--full-tree", id];
    let listing = git(&arguments, Vec::new(), 256 << 20).map_err(|e| failed(name, &e))?;
    let listing = String::from_utf8_lossy(&listing);
    let (mut tree, mut others) = (Tree::default(), BTreeMap::new());
    let mut needed: Vec<Blob<'_>> = Vec::new();
    let mut total = 0_u64;
    for (number, line) in listing.split_terminator('\0').enumerate() {
        if number >= MAX_NAMES {
            return Err(too_large(name, &format!("more than {MAX_NAMES} files")));
        }
        // Links and submodules are not followed.
        let Some(blob) = blob(line).filter(|blob| !is_skipped(blob.path)) else {
            continue;
        };
        let is_document = is_document(blob.path);
        if !is_document {
            tree.others.insert(blob.path.to_owned());
        }
        if !is_document && !wanted(blob.path) {
            continue;
        }
        if blob.size > MAX_FILE {
            let path = super::gather::join(name, blob.path);
            return Err(too_large(&path, "more than 8 MiB"));
        }
        total += blob.size;
        if total > MAX_TOTAL {
            return Err(too_large(name, "more than 512 MiB of documents"));
        }
        needed.push(blob);
    }
    let ids: BTreeSet<&str> = needed.iter().map(|blob| blob.id).collect();
    let ids: Vec<&str> = ids.into_iter().collect();
    let bytes = blobs(name, &ids)?;
    for blob in needed {
        let Some(bytes) = bytes.get(blob.id) else {
            return Err(missing(
                name,
                "git lacks one of its files (a partial clone?)",
            ));
        };
        let into = if is_document(blob.path) {
            &mut tree.files
        } else {
            &mut others
        };
        into.insert(blob.path.to_owned(), bytes.clone());
    }
    let id = id.to_owned();
    Ok(Object::Tree { tree, others, id })
}

/// `100644 blob <id> <size>\t<path>`.
fn blob(line: &str) -> Option<Blob<'_>> {
    let (head, path) = line.split_once('\t')?;
    let [mode, "blob", id, size] = head.split_ascii_whitespace().collect::<Vec<_>>()[..] else {
        return None;
    };
    let size = size.parse().ok()?;
    mode.starts_with("100").then_some(Blob { id, size, path })
}

fn is_document(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    mooring_krm::is_krm(path) || name == mooring_krm::KRMIGNORE
}

/// As for a directory: what is ours or Git's own is nobody's document.
fn is_skipped(path: &str) -> bool {
    path.split('/')
        .any(|part| part == ".git" || part == ".moor" || part.starts_with(crate::disk::OURS))
}

/// The bytes of blobs by id.
fn blobs(name: &str, ids: &[&str]) -> Result<BTreeMap<String, Vec<u8>>, Finding> {
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let input = ids.join("\n") + "\n";
    let limit = MAX_TOTAL + 128 * ids.len() as u64;
    let answer =
        git(&["cat-file", "--batch"], input.into_bytes(), limit).map_err(|e| failed(name, &e))?;
    let mut out = BTreeMap::new();
    let mut rest = answer.as_slice();
    while let Some(end) = rest.iter().position(|b| *b == b'\n') {
        let head = String::from_utf8_lossy(&rest[..end]).into_owned();
        rest = &rest[end + 1..];
        let [id, "blob", size] = head.split(' ').collect::<Vec<_>>()[..] else {
            return Err(missing(
                name,
                "git lacks one of its files (a partial clone?)",
            ));
        };
        let size: usize = size.parse().unwrap_or(usize::MAX);
        let Some((bytes, after)) = rest.split_at_checked(size) else {
            return Err(missing(name, "git ended early"));
        };
        out.insert(id.to_owned(), bytes.to_vec());
        rest = after.get(1..).unwrap_or_default();
    }
    Ok(out)
}

/// Asks `git` in the current directory. The answer may have at most `limit` bytes.
fn git(arguments: &[&str], input: Vec<u8>, limit: u64) -> io::Result<Vec<u8>> {
    let mut child = Command::new("git")
        .args(["--no-pager", "-c", "protocol.allow=never"])
        .args(["--no-replace-objects", "--literal-pathspecs"])
        .args(arguments)
        .env("LC_ALL", "C")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_NO_LAZY_FETCH", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(mut stdin), Some(stdout), Some(stderr)) = pipes else {
        return Err(io::Error::other("git has no pipes"));
    };
    // A child that ends early closes its end; its status then says why.
    let writer = thread::spawn(move || drop(stdin.write_all(&input)));
    let complaint = thread::spawn(move || limited(stderr, 4096));
    let (send, receive) = mpsc::channel();
    thread::spawn(move || drop(send.send(limited(stdout, limit))));
    let answer = receive.recv_timeout(WAIT);
    if !matches!(&answer, Ok(Ok(Some(_)))) {
        // It is ours, and it has not ended.
        let _ = child.kill();
    }
    let status = child.wait()?;
    drop(writer.join());
    match answer {
        Err(_) => Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "git did not answer within a minute",
        )),
        Ok(Err(e)) => Err(e),
        Ok(Ok(None)) => Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "git's answer is too large",
        )),
        Ok(Ok(Some(bytes))) if status.success() => Ok(bytes),
        Ok(Ok(Some(_))) => {
            let said = complaint.join().ok().and_then(Result::ok).flatten();
            let said = String::from_utf8_lossy(&said.unwrap_or_default()).into_owned();
            let line = said.lines().next().unwrap_or("git failed");
            Err(io::Error::other(
                line.trim_start_matches("fatal: ").to_owned(),
            ))
        }
    }
}

/// Everything, unless it is more than that.
fn limited(from: impl Read, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    from.take(limit + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= limit).then_some(bytes))
}

fn missing(name: &str, why: &str) -> Finding {
    let message = format!("cannot read {name:?} from Git: {why}");
    Finding::error(Code::PackageMissing, message).help(
        "write REVISION:DIRECTORY, such as main:packages or HEAD~1:, inside the repository; `git ls-tree REVISION` shows what is there",
    )
}

fn failed(name: &str, error: &io::Error) -> Finding {
    let message = format!("cannot read {name:?} from Git: {error}");
    let help = match error.kind() {
        io::ErrorKind::NotFound => "install git, or check the revision out and name its directory",
        _ => "run it inside the repository, or check the revision out and name its directory",
    };
    Finding::error(Code::FileUnreadable, message).help(help)
}

fn too_large(name: &str, what: &str) -> Finding {
    Finding::error(Code::FileTooLarge, format!("{name} has {what}")).help("name a directory of it")
}
