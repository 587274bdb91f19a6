//! Drafts: written, proposed, rejected, removed.

use super::list::parts;
use super::{
    DRAFTS, Error, Lifecycle, PROPOSED, PackageName, Packages, Which, Workspace, branch, is_same,
    nested, read,
};
use crate::git::{Commit, Files, Mirror, Oid, Put, Ref, Update};

/// What a change was made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Base {
    /// From nothing: there must be no such draft yet.
    New,
    /// From this commit: of the draft, or of what is published.
    At(Oid),
    /// From this commit of the draft, which must still be there: one that somebody removed stays removed.
    Tip(Oid),
    /// Whatever there is may be replaced. For who makes all of the content, as a controller does.
    Any,
}

/// A draft to write.
#[derive(Clone, Debug)]
pub struct Draft {
    /// Which package.
    pub package: PackageName,
    /// Which draft of it.
    pub workspace: Workspace,
    /// All of its files.
    pub files: Files,
    /// What they were made from.
    pub base: Base,
    /// What was published since the draft began is taken into account in these files.
    pub onto_published: bool,
    /// What the commit says; a sentence of ours where None.
    pub message: Option<String>,
}

/// What became of a draft.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pushed {
    /// Where it is now.
    pub commit: Oid,
    /// It was so already.
    pub unchanged: bool,
}

impl Packages {
    /// Writes a draft: one commit, on what it was made from.
    pub fn write(&self, draft: &Draft) -> Result<Pushed, Error> {
        check_files(&draft.files)?;
        self.attempt(|mirror| self.write_on(mirror, draft))
    }

    fn write_on(&self, mirror: &Mirror, draft: &Draft) -> Result<(Vec<Update>, Pushed), Error> {
        let Draft {
            package, workspace, ..
        } = draft;
        if mirror
            .branch(&branch(PROPOSED, package, workspace))
            .is_some()
        {
            return Err(wrong(package, workspace, Lifecycle::Proposed));
        }
        let name = branch(DRAFTS, package, workspace);
        let main = mirror.branch(&self.repository.branch);
        let Some(tip) = mirror.branch(&name) else {
            if matches!(draft.base, Base::Tip(_)) {
                return Err(self.absent(package, Which::Draft(workspace.clone())));
            }
            if let Base::At(from) = &draft.base {
                let main = main.map(|main| &main.commit);
                // Where it was made from a draft, what counts is what that draft began from.
                let base = match main {
                    Some(main) => mirror.base(from, main)?,
                    None => None,
                };
                if !is_same(mirror, package, base.as_ref().or(Some(from)), main)? {
                    return Err(self.outdated(package, workspace));
                }
            }
            in_the_way(mirror, &name)?;
            let parents = main.iter().map(|main| main.commit.clone()).collect();
            let commit = mirror.commit(&self.commit(mirror, draft, parents))?;
            let (name, to) = (format!("refs/heads/{name}"), commit.clone());
            let unchanged = false;
            return Ok((
                vec![Update::Create { name, to }],
                Pushed { commit, unchanged },
            ));
        };
        let here = Which::Ref(tip.commit.to_string());
        let content = read(mirror, package, &here)?.map(|content| content.files);
        let same = content.as_ref() == Some(&draft.files);
        let mut parents = vec![tip.commit.clone()];
        if let Some(main) = main.filter(|_| draft.onto_published)
            && mirror.base(&tip.commit, &main.commit)?.as_ref() != Some(&main.commit)
        {
            parents.push(main.commit.clone());
        }
        if same && parents.len() == 1 {
            return Ok((Vec::new(), unchanged(&tip.commit)));
        }
        match &draft.base {
            Base::Any => {}
            Base::At(from) | Base::Tip(from) if *from == tip.commit => {}
            Base::At(from) | Base::Tip(from) => return Err(moved(draft, tip, from.short())),
            Base::New => return Err(moved(draft, tip, "nothing")),
        }
        let commit = mirror.commit(&self.commit(mirror, draft, parents))?;
        let (name, to) = (format!("refs/heads/{name}"), commit.clone());
        let (seen, unchanged) = (tip.commit.clone(), false);
        Ok((
            vec![Update::Follow { name, seen, to }],
            Pushed { commit, unchanged },
        ))
    }

    fn commit(&self, mirror: &Mirror, draft: &Draft, parents: Vec<Oid>) -> Commit {
        let Draft {
            package, workspace, ..
        } = draft;
        let said = draft.message.clone();
        let said = said.unwrap_or_else(|| format!("Draft {workspace} of {package}"));
        Commit {
            parents,
            puts: vec![Put::Directory {
                path: self.repository.path(package.as_str()),
                files: draft.files.clone(),
                keep: nested(mirror, package),
            }],
            message: format!("{}\n", said.trim_end()),
        }
    }

    /// Makes a proposal of a draft. `seen` is the draft's commit that was looked at, `files` what its content becomes.
    pub fn propose(
        &self,
        package: &PackageName,
        workspace: &Workspace,
        seen: Option<&Oid>,
        files: Option<&Files>,
    ) -> Result<Pushed, Error> {
        self.attempt(|mirror| {
            let draft = mirror.branch(&branch(DRAFTS, package, workspace));
            let proposed = mirror.branch(&branch(PROPOSED, package, workspace));
            let draft = match (draft, proposed) {
                (None, Some(proposed)) => return Ok((Vec::new(), unchanged(&proposed.commit))),
                (None, None) => return Err(self.absent(package, Which::Draft(workspace.clone()))),
                (Some(_), Some(_)) => {
                    let what = format!("a proposal {workspace} beside the draft");
                    let package = package.clone();
                    return Err(Error::Exists { package, what });
                }
                (Some(draft), None) => draft,
            };
            check_seen(package, workspace, draft, seen)?;
            let commit = self.with_files(mirror, package, workspace, draft, files)?;
            let name = branch(PROPOSED, package, workspace);
            in_the_way(mirror, &name)?;
            let updates = vec![
                create(&name, &commit),
                remove(&branch(DRAFTS, package, workspace), draft),
            ];
            let unchanged = false;
            Ok((updates, Pushed { commit, unchanged }))
        })
    }

    /// Makes a draft of a proposal again.
    pub fn reject(&self, package: &PackageName, workspace: &Workspace) -> Result<Pushed, Error> {
        self.attempt(|mirror| {
            let draft = mirror.branch(&branch(DRAFTS, package, workspace));
            let proposed = mirror.branch(&branch(PROPOSED, package, workspace));
            match (draft, proposed) {
                (None, None) => Err(self.absent(package, Which::Proposed(workspace.clone()))),
                (Some(draft), None) => Ok((Vec::new(), unchanged(&draft.commit))),
                (Some(_), Some(_)) => {
                    let what = format!("a draft {workspace} beside the proposal");
                    let package = package.clone();
                    Err(Error::Exists { package, what })
                }
                (None, Some(proposed)) => {
                    let name = branch(DRAFTS, package, workspace);
                    in_the_way(mirror, &name)?;
                    let commit = proposed.commit.clone();
                    let updates = vec![
                        remove(&branch(PROPOSED, package, workspace), proposed),
                        create(&name, &commit),
                    ];
                    let unchanged = false;
                    Ok((updates, Pushed { commit, unchanged }))
                }
            }
        })
    }

    /// Removes a draft or a proposal. Whether there was one.
    pub fn discard(&self, package: &PackageName, workspace: &Workspace) -> Result<bool, Error> {
        self.attempt(|mirror| {
            let updates: Vec<Update> = [PROPOSED, DRAFTS]
                .iter()
                .filter_map(|kind| {
                    let name = branch(kind, package, workspace);
                    mirror.branch(&name).map(|at| remove(&name, at))
                })
                .collect();
            let any = !updates.is_empty();
            Ok((updates, any))
        })
    }

    /// Removes a package from the deployment branch, with its drafts and proposals. Its tags stay. Whether anything was there.
    pub fn delete(&self, package: &PackageName) -> Result<bool, Error> {
        self.attempt(|mirror| {
            let mut updates = Vec::new();
            for (name, at) in mirror.refs() {
                if parts(name).is_some_and(|(_, of, _)| of == *package) {
                    let (name, seen) = (name.clone(), at.object.clone());
                    updates.push(Update::Delete { name, seen });
                }
            }
            if let Some(main) = mirror.branch(&self.repository.branch)
                && read(mirror, package, &Which::Deployed)?.is_some()
            {
                let commit = mirror.commit(&Commit {
                    parents: vec![main.commit.clone()],
                    puts: vec![Put::Remove {
                        path: self.repository.path(package.as_str()),
                        keep: nested(mirror, package),
                    }],
                    message: format!("Delete {package}\n"),
                })?;
                let name = format!("refs/heads/{}", self.repository.branch);
                updates.push(Update::Advance { name, to: commit });
            }
            let any = !updates.is_empty();
            Ok((updates, any))
        })
    }

    /// The drafts and proposals of a package.
    pub fn open_revisions(
        &self,
        package: &PackageName,
    ) -> Result<Vec<(Lifecycle, Workspace, Oid)>, Error> {
        let mirror = self.open()?;
        let all = mirror.refs().iter().filter_map(|(name, at)| {
            let (lifecycle, of, workspace) = parts(name)?;
            (of == *package).then(|| (lifecycle, workspace, at.commit.clone()))
        });
        Ok(all.collect())
    }

    /// The commit whose content is `files`: the branch's own where it has them.
    fn with_files(
        &self,
        mirror: &Mirror,
        package: &PackageName,
        workspace: &Workspace,
        at: &Ref,
        files: Option<&Files>,
    ) -> Result<Oid, Error> {
        let Some(files) = files else {
            return Ok(at.commit.clone());
        };
        let here = read(mirror, package, &Which::Ref(at.commit.to_string()))?;
        if here.is_some_and(|content| content.files == *files) {
            return Ok(at.commit.clone());
        }
        check_files(files)?;
        let draft = Draft {
            package: package.clone(),
            workspace: workspace.clone(),
            files: files.clone(),
            base: Base::At(at.commit.clone()),
            onto_published: false,
            message: Some(format!("Specialise draft {workspace} of {package}")),
        };
        Ok(mirror.commit(&self.commit(mirror, &draft, vec![at.commit.clone()]))?)
    }

    pub(super) fn absent(&self, package: &PackageName, which: Which) -> Error {
        Error::Absent {
            what: super::describe(package, &which),
            repository: self.repository.to_string(),
        }
    }

    pub(super) fn outdated(&self, package: &PackageName, workspace: &Workspace) -> Error {
        Error::Outdated {
            package: package.clone(),
            workspace: workspace.clone(),
            branch: self.repository.branch.clone(),
        }
    }
}

fn unchanged(commit: &Oid) -> Pushed {
    Pushed {
        commit: commit.clone(),
        unchanged: true,
    }
}

pub(super) fn create(name: &str, to: &Oid) -> Update {
    Update::Create {
        name: format!("refs/heads/{name}"),
        to: to.clone(),
    }
}

pub(super) fn remove(name: &str, seen: &Ref) -> Update {
    Update::Delete {
        name: format!("refs/heads/{name}"),
        seen: seen.object.clone(),
    }
}

pub(super) fn wrong(package: &PackageName, workspace: &Workspace, is: Lifecycle) -> Error {
    Error::Wrong {
        package: package.clone(),
        workspace: workspace.clone(),
        is,
    }
}

fn moved(draft: &Draft, tip: &Ref, from: &str) -> Error {
    Error::DraftMoved {
        package: draft.package.clone(),
        workspace: draft.workspace.clone(),
        now: tip.commit.short().to_owned(),
        from: from.to_owned(),
    }
}

/// Whether the branch still is what was looked at.
pub(super) fn check_seen(
    package: &PackageName,
    workspace: &Workspace,
    at: &Ref,
    seen: Option<&Oid>,
) -> Result<(), Error> {
    match seen.filter(|seen| **seen != at.commit) {
        None => Ok(()),
        Some(seen) => Err(Error::DraftMoved {
            package: package.clone(),
            workspace: workspace.clone(),
            now: at.commit.short().to_owned(),
            from: seen.short().to_owned(),
        }),
    }
}

/// Git keeps refs as files: `a/b` and `a/b/c` cannot both be there.
pub(super) fn in_the_way(mirror: &Mirror, name: &str) -> Result<(), Error> {
    let full = format!("refs/heads/{name}");
    let around = |other: &&String| {
        full.strip_prefix(other.as_str())
            .is_some_and(|rest| rest.starts_with('/'))
            || other
                .strip_prefix(full.as_str())
                .is_some_and(|rest| rest.starts_with('/'))
    };
    match mirror.refs().keys().find(around) {
        None => Ok(()),
        Some(other) => Err(Error::InTheWay {
            name: name.to_owned(),
            other: other.trim_start_matches("refs/heads/").to_owned(),
        }),
    }
}

/// What is written must be a package, and lie in its directory.
fn check_files(files: &Files) -> Result<(), Error> {
    let no_package = |what: String| Err(Error::NoPackage { what });
    if !files.contains_key(mooring_krm::KPTFILE) {
        return no_package("there is no Kptfile".to_owned());
    }
    let part = |part: &str| !part.is_empty() && part != "." && part != "..";
    let git = |part: &str| part.eq_ignore_ascii_case(".git");
    for path in files.keys() {
        if !path.split('/').all(part) || path.split('/').any(git) || path.contains('\0') {
            return no_package(format!("{path:?} cannot be a file of a package"));
        }
    }
    Ok(())
}
