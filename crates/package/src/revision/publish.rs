//! Publishing: a proposal, or an older version again, becomes the next version on the deployment branch.
//!
//! Easy to get wrong: what is published is the package's directory and nothing else of the draft branch, and it is put on the deployment
//! branch as that is now. Where the package itself changed there since the draft began, somebody's work would be lost: that is refused.

use mooring_api::Status;
use mooring_krm::{File, KPTFILE, kptfile};

use super::act::{check_seen, remove, wrong};
use super::{
    DRAFTS, Error, Lifecycle, PROPOSED, PackageName, Packages, Which, Workspace, branch, is_same,
    nested, newest, read, tag,
};
use crate::git::{Commit, Files, Mirror, Oid, Put, Update};

/// The trailer that says which workspace a version comes from.
pub(super) const WORKSPACE: &str = "Moor-Workspace";

/// A version that was published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// Its number.
    pub version: u32,
    /// Its commit on the deployment branch.
    pub commit: Oid,
    /// It was so already.
    pub unchanged: bool,
}

impl Packages {
    /// Publishes a proposal. `seen` is its commit that was looked at, `files` what its content becomes.
    ///
    /// A proposal that is gone, whose workspace made the newest version, was approved already: that is success.
    pub fn approve(
        &self,
        package: &PackageName,
        workspace: &Workspace,
        seen: Option<&Oid>,
        files: Option<&Files>,
    ) -> Result<Published, Error> {
        self.attempt(|mirror| {
            let name = branch(PROPOSED, package, workspace);
            let Some(proposed) = mirror.branch(&name) else {
                return self.approved(mirror, package, workspace);
            };
            check_seen(package, workspace, proposed, seen)?;
            let main = mirror.branch(&self.repository.branch).map(|m| &m.commit);
            let base = match main {
                Some(main) => mirror.base(&proposed.commit, main)?,
                None => None,
            };
            if !is_same(mirror, package, base.as_ref(), main)? {
                return Err(self.outdated(package, workspace));
            }
            let here = Which::Ref(proposed.commit.to_string());
            let content = read(mirror, package, &here)?;
            let Some(content) = content.map(|content| content.files) else {
                return Err(self.absent(package, Which::Proposed(workspace.clone())));
            };
            let files = files.filter(|files| **files != content);
            check_gates(package, files.unwrap_or(&content))?;
            let trailers = format!(
                "{WORKSPACE}: {workspace}\nMoor-Draft: {}\n",
                proposed.commit
            );
            let from = Source {
                commit: &proposed.commit,
                files,
            };
            let (mut updates, published) = self.publish(mirror, package, &from, &trailers)?;
            updates.push(remove(&name, proposed));
            Ok((updates, published))
        })
    }

    fn approved(
        &self,
        mirror: &Mirror,
        package: &PackageName,
        workspace: &Workspace,
    ) -> Result<(Vec<Update>, Published), Error> {
        if mirror.branch(&branch(DRAFTS, package, workspace)).is_some() {
            return Err(wrong(package, workspace, Lifecycle::Draft));
        }
        match newest(mirror, package) {
            Some((version, at))
                if at.trailers.get(WORKSPACE).map(String::as_str) == Some(workspace.as_str()) =>
            {
                let commit = at.commit.clone();
                let unchanged = true;
                Ok((
                    Vec::new(),
                    Published {
                        version,
                        commit,
                        unchanged,
                    },
                ))
            }
            _ => Err(self.absent(package, Which::Proposed(workspace.clone()))),
        }
    }

    /// Publishes an older version again, as the next one. `files` is what its content becomes.
    pub fn rollback(
        &self,
        package: &PackageName,
        to: u32,
        files: Option<&Files>,
    ) -> Result<Published, Error> {
        self.attempt(|mirror| {
            let which = Which::Version(to);
            let Some(old) = read(mirror, package, &which)? else {
                return Err(self.absent(package, which));
            };
            let files = files.filter(|files| **files != old.files);
            let now = read(mirror, package, &Which::Deployed)?;
            if let Some((version, at)) = newest(mirror, package)
                && now.is_some_and(|now| now.files == *files.unwrap_or(&old.files))
            {
                let commit = at.commit.clone();
                let unchanged = true;
                let published = Published {
                    version,
                    commit,
                    unchanged,
                };
                return Ok((Vec::new(), published));
            }
            let trailers = format!("Moor-Rollback: v{to}\n");
            let from = Source {
                commit: &old.commit,
                files,
            };
            self.publish(mirror, package, &from, &trailers)
        })
    }

    fn publish(
        &self,
        mirror: &Mirror,
        package: &PackageName,
        from: &Source<'_>,
        trailers: &str,
    ) -> Result<(Vec<Update>, Published), Error> {
        let version = newest(mirror, package).map_or(1, |(version, _)| version + 1);
        let main = mirror.branch(&self.repository.branch);
        let path = self.repository.path(package.as_str());
        let keep = nested(mirror, package);
        let put = match from.files {
            Some(files) => Put::Directory {
                path,
                files: files.clone(),
                keep,
            },
            None => Put::Copy {
                path,
                from: from.commit.clone(),
                keep,
            },
        };
        let commit = mirror.commit(&Commit {
            parents: main.iter().map(|main| main.commit.clone()).collect(),
            puts: vec![put],
            message: format!("Publish {package} v{version}\n\nMoor-Package: {package}\n{trailers}"),
        })?;
        let name = format!("refs/heads/{}", self.repository.branch);
        let to = commit.clone();
        let branch = match main {
            Some(_) => Update::Advance { name, to },
            None => Update::Create { name, to },
        };
        let tag = Update::Create {
            name: format!("refs/tags/{}", tag(package, version)),
            to: commit.clone(),
        };
        let unchanged = false;
        let published = Published {
            version,
            commit,
            unchanged,
        };
        Ok((vec![branch, tag], published))
    }
}

/// What is published.
struct Source<'a> {
    commit: &'a Oid,
    /// Instead of what the commit has.
    files: Option<&'a Files>,
}

/// Every readiness gate of every Kptfile is True.
fn check_gates(package: &PackageName, files: &Files) -> Result<(), Error> {
    let is_kptfile = |path: &&String| *path == KPTFILE || path.ends_with("/Kptfile");
    let mut gates = Vec::new();
    for path in files.keys().filter(is_kptfile) {
        let Ok(file) = File::parse(&files[path]) else {
            let what = format!("{path} is not valid YAML");
            return Err(Error::NoPackage { what });
        };
        for value in file.documents().iter().map(mooring_krm::Document::value) {
            let met = |gate: &str| {
                kptfile::condition(value, gate).is_some_and(|c| c.status == Status::True)
            };
            let unmet = kptfile::readiness_gates(value).into_iter();
            gates.extend(unmet.filter(|gate| !met(gate)).map(ToOwned::to_owned));
        }
    }
    if gates.is_empty() {
        return Ok(());
    }
    let package = package.clone();
    Err(Error::NotReady { package, gates })
}
