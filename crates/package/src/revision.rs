//! The life of a package revision, decided from refs: draft, proposed, published, rolled back, gone.
//!
//! ```text
//!  drafts/<package>/<workspace> ── propose ──► proposed/<package>/<workspace> ── approve ──► main: <directory>/<package>/
//!      ▲        ▲    └ delete                     │ reject                                    tag <package>/v<n>
//!  init, clone, push                              └──► back to drafts/…, or gone (discard)      └ rollback: the next version
//! ```
//!
//! `moor package` and the controller call it. There is no state beside the refs: a draft that a person pushed with git is a draft like any
//! other. A draft branch holds the whole repository with one package changed; approving takes that package's directory and nothing else,
//! puts it on the deployment branch as that is now, and tags it, so that concurrent commits to other packages are kept.
//!
//! **One push.** Every act is one atomic push ([`git`](crate::git)). When somebody was faster, the act is decided again on what they
//! left, a bounded number of times. An act whose push arrived but whose answer was lost finds that out when it is run again: a draft that
//! already has the content, a proposal that is already made, a version that this workspace has already published are success.
//!
//! Easy to get wrong: a package may lie inside another one's directory. What has versions of its own is not part of the package around it:
//! it is neither read, nor replaced, nor removed with that.

mod act;
pub mod addressed;
mod deployed;
mod error;
mod keep;
mod list;
mod look;
mod name;
mod neighbours;
mod publish;
mod skeleton;
mod working;

use std::fmt;

use mooring_api::Time;
use serde::Serialize;

pub use act::{Base, Draft, Pushed};
pub use deployed::Deployment;
pub use error::Error;
pub use look::{Newest, Open, Seen, Standing};
pub use name::{PackageName, Workspace};
pub use publish::Published;
pub use skeleton::{Upstream, cloned, skeleton};
pub use working::{Origin, Pulled, read_directory};

use crate::git::{Files, Git, Mirror, Oid, Ref, Repository, Update};

/// How draft branches begin.
pub(crate) const DRAFTS: &str = "drafts";
/// How branches of proposed drafts begin.
pub(crate) const PROPOSED: &str = "proposed";

/// Where a revision is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Lifecycle {
    /// It is being made.
    Draft,
    /// It waits for approval.
    Proposed,
    /// It is on the deployment branch, or was.
    Published,
}

impl fmt::Display for Lifecycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Draft => "Draft",
            Self::Proposed => "Proposed",
            Self::Published => "Published",
        })
    }
}

/// One revision of a package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Revision {
    /// Which package.
    pub package: PackageName,
    /// The workspace it was made in; None where that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Workspace>,
    /// Where it is in its life.
    pub lifecycle: Lifecycle,
    /// The number of a published one. None for a package that somebody committed without a tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// Its commit.
    pub commit: Oid,
    /// When that was made.
    pub at: Time,
    /// Of published ones: this is what the deployment branch has.
    pub deployed: bool,
    /// The package changed on the deployment branch: since this draft began, or since this version was published.
    pub outdated: bool,
}

/// Which content of a package is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// The draft of this workspace.
    Draft(Workspace),
    /// The proposal of this workspace.
    Proposed(Workspace),
    /// The draft or the proposal of this workspace, whichever there is.
    Workspace(Workspace),
    /// What the deployment branch has.
    Deployed,
    /// A published version.
    Version(u32),
    /// Any branch, tag or commit.
    Ref(String),
}

/// A package's content, and where it was read.
#[derive(Clone, Debug)]
pub struct Content {
    /// Its files, by path below the package.
    pub files: Files,
    /// The commit it was read from.
    pub commit: Oid,
    /// Draft, proposed or published.
    pub lifecycle: Lifecycle,
}

/// The packages of a repository.
#[derive(Clone, Debug)]
pub struct Packages {
    /// How git is called.
    pub git: Git,
    /// Where they are.
    pub repository: Repository,
}

impl Packages {
    /// The packages of this repository.
    pub fn new(git: Git, repository: Repository) -> Self {
        Self { git, repository }
    }

    /// Every revision, ordered by package, lifecycle, version and workspace.
    pub fn list(&self) -> Result<Vec<Revision>, Error> {
        list::list(&self.open()?)
    }

    /// A package's content; None where there is none.
    pub fn read(&self, package: &PackageName, which: &Which) -> Result<Option<Content>, Error> {
        read(&self.open()?, package, which)
    }

    /// The same, where its absence is an error.
    pub fn need(&self, package: &PackageName, which: &Which) -> Result<Content, Error> {
        self.read(package, which)?.ok_or_else(|| Error::Absent {
            what: describe(package, which),
            repository: self.repository.to_string(),
        })
    }

    /// Every directory on the deployment branch that holds a package.
    pub fn deployed(&self) -> Result<Vec<PackageName>, Error> {
        let mirror = self.open()?;
        match mirror.branch(&self.repository.branch) {
            Some(main) => list::deployed(&mirror, &main.commit),
            None => Ok(Vec::new()),
        }
    }

    fn open(&self) -> Result<Mirror, Error> {
        Ok(self.git.open(&self.repository)?)
    }

    /// Decides and pushes; once more on what they left where somebody was faster.
    fn attempt<T>(
        &self,
        mut decide: impl FnMut(&Mirror) -> Result<(Vec<Update>, T), Error>,
    ) -> Result<T, Error> {
        let mut mirror = self.open()?;
        let mut nth = 0;
        loop {
            let (updates, value) = decide(&mirror)?;
            if updates.is_empty() {
                return Ok(value);
            }
            if let Some(hook) = &self.git.before_push {
                hook(nth);
            }
            match mirror.push(&updates) {
                Ok(()) => return Ok(value),
                Err(crate::git::Error::Moved { .. }) if nth + 1 < self.git.tries => {
                    std::thread::sleep((self.git.pause)(nth));
                    mirror.fetch()?;
                    nth += 1;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Reads a package of a mirror.
fn read(mirror: &Mirror, package: &PackageName, which: &Which) -> Result<Option<Content>, Error> {
    let Some((commit, lifecycle)) = find(mirror, package, which) else {
        return Ok(None);
    };
    let path = mirror.repository().path(package.as_str());
    let Some(mut files) = mirror.read(&commit, &path)? else {
        return Ok(None);
    };
    let own = nested(mirror, package);
    files.retain(|file, _| !is_in(file, &own));
    Ok((!files.is_empty()).then_some(Content {
        files,
        commit,
        lifecycle,
    }))
}

fn find(mirror: &Mirror, package: &PackageName, which: &Which) -> Option<(Oid, Lifecycle)> {
    use Lifecycle::{Draft, Proposed, Published};
    let at = |found: Option<&Ref>, lifecycle| found.map(|r| (r.commit.clone(), lifecycle));
    let draft = |w: &Workspace| at(mirror.branch(&branch(DRAFTS, package, w)), Draft);
    let proposed = |w: &Workspace| at(mirror.branch(&branch(PROPOSED, package, w)), Proposed);
    match which {
        Which::Draft(workspace) => draft(workspace),
        Which::Proposed(workspace) => proposed(workspace),
        Which::Workspace(workspace) => draft(workspace).or_else(|| proposed(workspace)),
        Which::Deployed => at(mirror.branch(&mirror.repository().branch), Published),
        Which::Version(number) => at(mirror.tag(&tag(package, *number)), Published),
        Which::Ref(name) => {
            let named = at(mirror.refs().get(name), Published)
                .or_else(|| at(mirror.branch(name), Published))
                .or_else(|| at(mirror.tag(name), Published));
            named.or_else(|| Oid::parse(name).map(|oid| (oid, Published)))
        }
    }
}

/// The name of a package's branch.
pub(crate) fn branch(kind: &str, package: &PackageName, workspace: &Workspace) -> String {
    format!("{kind}/{package}/{workspace}")
}

/// The name of a version's tag.
pub(crate) fn tag(package: &PackageName, version: u32) -> String {
    format!("{package}/v{version}")
}

/// Packages with versions of their own inside of this one's directory, relative to it.
fn nested(mirror: &Mirror, package: &PackageName) -> Vec<String> {
    let start = format!("{package}/");
    let versions = mirror.refs().keys().filter_map(|name| {
        let (inside, version) = name.strip_prefix("refs/tags/")?.rsplit_once('/')?;
        name::version(version)?;
        let inside = inside.strip_prefix(&start)?;
        Some(inside.to_owned())
    });
    let mut own: Vec<String> = versions.collect();
    own.dedup();
    own
}

/// Whether a file lies in one of these directories.
fn is_in(file: &str, directories: &[String]) -> bool {
    let inside = |dir: &String| {
        let rest = file.strip_prefix(dir.as_str());
        rest.is_some_and(|rest| rest.starts_with('/'))
    };
    directories.iter().any(inside)
}

/// The highest version of a package.
fn newest<'m>(mirror: &'m Mirror, package: &PackageName) -> Option<(u32, &'m Ref)> {
    let start = format!("refs/tags/{package}/");
    let below = mirror.refs().range(start.clone()..);
    let below = below.take_while(|(name, _)| name.starts_with(&start));
    let versions = below.filter_map(|(name, at)| Some((name::version(&name[start.len()..])?, at)));
    versions.max_by_key(|(version, _)| *version)
}

fn describe(package: &PackageName, which: &Which) -> String {
    match which {
        Which::Draft(w) => format!("draft {w} of {package}"),
        Which::Proposed(w) => format!("proposal {w} of {package}"),
        Which::Workspace(w) => format!("draft or proposal {w} of {package}"),
        Which::Deployed => format!("published {package}"),
        Which::Version(number) => format!("version {number} of {package}"),
        Which::Ref(name) => format!("{package} at {name}"),
    }
}

/// Whether a package is the same in two commits, what lies inside with versions of its own aside.
fn is_same(
    mirror: &Mirror,
    package: &PackageName,
    one: Option<&Oid>,
    other: Option<&Oid>,
) -> Result<bool, Error> {
    let path = mirror.repository().path(package.as_str());
    let id = |at: Option<&Oid>| match at {
        Some(commit) => mirror.id_at(commit, &path),
        None => Ok(None),
    };
    if id(one)? == id(other)? {
        return Ok(true);
    }
    if nested(mirror, package).is_empty() {
        return Ok(false);
    }
    let own = |at: Option<&Oid>| -> Result<Option<Files>, Error> {
        let Some(commit) = at else { return Ok(None) };
        let which = Which::Ref(commit.to_string());
        Ok(read(mirror, package, &which)?.map(|content| content.files))
    };
    Ok(own(one)? == own(other)?)
}
