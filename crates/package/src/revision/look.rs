//! Everything there is of one package, from one fetch: what a controller decides from.

use mooring_api::Time;

use super::list::parts;
use super::publish::WORKSPACE;
use super::{
    Content, Error, Lifecycle, PackageName, Packages, Which, Workspace, is_same, newest, read,
};
use crate::git::{Files, Oid};

/// Everything there is of one package.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Drafts and proposals, by workspace.
    pub open: Vec<Open>,
    /// What the deployment branch has.
    pub deployed: Option<Content>,
    /// The highest version.
    pub newest: Option<Newest>,
    /// The commit of the deployment branch.
    pub branch: Option<Oid>,
}

/// A draft or a proposal.
#[derive(Clone, Debug)]
pub struct Open {
    /// Draft or Proposed.
    pub lifecycle: Lifecycle,
    /// Its workspace.
    pub workspace: Workspace,
    /// Its commit.
    pub commit: Oid,
    /// When that was made.
    pub at: Time,
    /// The package changed on the deployment branch since it began.
    pub outdated: bool,
    /// Its files.
    pub files: Files,
}

/// The highest version of a package.
#[derive(Clone, Debug)]
pub struct Newest {
    /// Its number.
    pub version: u32,
    /// Its commit.
    pub commit: Oid,
    /// The workspace it was made in; None where it is not known, as for a rollback.
    pub workspace: Option<Workspace>,
}

impl Packages {
    /// Everything there is of one package, from one fetch.
    pub fn look(&self, package: &PackageName) -> Result<Seen, Error> {
        let mirror = self.open()?;
        let main = mirror
            .branch(&self.repository.branch)
            .map(|m| m.commit.clone());
        let mut open = Vec::new();
        for (name, at) in mirror.refs() {
            let Some((lifecycle, of, workspace)) = parts(name) else {
                continue;
            };
            if of != *package {
                continue;
            }
            let base = match &main {
                Some(main) => mirror.base(&at.commit, main)?,
                None => None,
            };
            let here = Which::Ref(at.commit.to_string());
            open.push(Open {
                lifecycle,
                workspace,
                commit: at.commit.clone(),
                at: at.at,
                outdated: !is_same(&mirror, package, base.as_ref(), main.as_ref())?,
                files: read(&mirror, package, &here)?
                    .map(|c| c.files)
                    .unwrap_or_default(),
            });
        }
        let newest = newest(&mirror, package).map(|(version, at)| Newest {
            version,
            commit: at.commit.clone(),
            workspace: at.trailers.get(WORKSPACE).and_then(|w| w.parse().ok()),
        });
        Ok(Seen {
            open,
            deployed: read(&mirror, package, &Which::Deployed)?,
            newest,
            branch: main,
        })
    }

    /// A file of the deployment branch, by its path from the root; None where there is none.
    pub fn file(&self, path: &str) -> Result<Option<Vec<u8>>, Error> {
        let mirror = self.open()?;
        let Some(main) = mirror.branch(&self.repository.branch) else {
            return Ok(None);
        };
        let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
        let files = mirror.read(&main.commit, dir)?;
        Ok(files.and_then(|mut files| files.remove(name)))
    }

    /// The packages that have drafts or proposals, and a digest of all refs: it differs when anybody pushed anything.
    pub fn glance(&self) -> Result<(Vec<(Lifecycle, PackageName, Workspace)>, String), Error> {
        use sha2::{Digest as _, Sha256};
        let mirror = self.open()?;
        let mut digest = Sha256::new();
        for (name, at) in mirror.refs() {
            digest.update(name);
            digest.update([0]);
            digest.update(at.object.as_str());
            digest.update([0]);
        }
        let open = mirror.refs().keys().filter_map(|name| parts(name));
        let hex = |byte: &u8| format!("{byte:02x}");
        let digest = digest.finalize()[..16].iter().map(hex).collect();
        Ok((open.collect(), digest))
    }
}
