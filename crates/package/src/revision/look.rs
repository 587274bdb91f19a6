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

/// Everything that is open in a repository, and the names of what is published in it.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// Drafts and proposals. Whether they are outdated is not looked at.
    pub open: Vec<(PackageName, Open)>,
    /// What stands on the deployment branch; None where there is no such branch.
    pub deployed: Option<Vec<PackageName>>,
    /// The commit of the deployment branch.
    pub branch: Option<Oid>,
    /// The packages of the deployment branch that are not a part of another one, each with what its directory is: it differs when the
    /// package, or one inside of it, was published.
    pub published: Vec<(PackageName, Oid)>,
    /// Differs when anybody pushed anything.
    pub digest: String,
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

    /// Every draft and proposal of the repository, and a digest of all refs: it differs when anybody pushed anything.
    pub fn standing(&self) -> Result<Standing, Error> {
        use sha2::{Digest as _, Sha256};
        let mirror = self.open()?;
        let mut digest = Sha256::new();
        let mut open = Vec::new();
        for (name, at) in mirror.refs() {
            digest.update(name);
            digest.update([0]);
            digest.update(at.object.as_str());
            digest.update([0]);
            if let Some((lifecycle, package, workspace)) = parts(name) {
                let here = Which::Ref(at.commit.to_string());
                let files = read(&mirror, &package, &here)?.map(|c| c.files);
                let open_one = Open {
                    lifecycle,
                    workspace,
                    commit: at.commit.clone(),
                    at: at.at,
                    outdated: false,
                    files: files.unwrap_or_default(),
                };
                open.push((package, open_one));
            }
        }
        let hex = |byte: &u8| format!("{byte:02x}");
        let digest = digest.finalize()[..16].iter().map(hex).collect();
        let Some(main) = mirror.branch(&self.repository.branch) else {
            return Ok(Standing {
                open,
                digest,
                ..Standing::default()
            });
        };
        let deployed = super::list::deployed(&mirror, &main.commit)?;
        Ok(Standing {
            open,
            published: super::list::published(&mirror, &main.commit, &deployed)?,
            deployed: Some(deployed),
            branch: Some(main.commit.clone()),
            digest,
        })
    }

    /// These packages as they are in a commit that was fetched before, without asking the server.
    pub fn contents(
        &self,
        commit: &Oid,
        packages: &[PackageName],
    ) -> Result<Vec<(PackageName, Files)>, Error> {
        let mirror = self.git.known(&self.repository)?;
        let here = Which::Ref(commit.to_string());
        let mut all = Vec::new();
        for package in packages {
            let content = read(&mirror, package, &here)?;
            all.extend(content.map(|content| (package.clone(), content.files)));
        }
        Ok(all)
    }

    /// Every package of the deployment branch with its files.
    pub fn published(&self) -> Result<Vec<(PackageName, Files)>, Error> {
        let mirror = self.open()?;
        let Some(main) = mirror.branch(&self.repository.branch) else {
            return Ok(Vec::new());
        };
        let mut all = Vec::new();
        for package in super::list::deployed(&mirror, &main.commit)? {
            let content = read(&mirror, &package, &Which::Deployed)?;
            all.extend(content.map(|content| (package, content.files)));
        }
        Ok(all)
    }
}
