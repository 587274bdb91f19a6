//! Packages in Git together with their addresses: a draft reserves, publishing commits, rejecting and deleting give back.
//!
//! ```text
//!  push, propose   specialise, reserve ─► push ─► abort what the package reserved before
//!  approve         specialise, reserve ─► push ─► commit (specialise what was published once more)
//!  rollback        the same, with the addresses that the old version says, or not at all
//!  reject          give back ─► push
//!  delete          give back drafts ─► push ─► release what is held
//! ```
//!
//! **A kill at any instant** is repaired by running the same command again, because the order is always the one whose half is harmless:
//!
//! - Reserved and not pushed: nobody uses the addresses. The next run takes the same ones for the same holders, and then aborts every
//!   other transaction of the package; without a next run they lapse.
//! - Published and not committed: the addresses are reserved, so nobody else gets them. The next `approve` finds the version there, and
//!   commits. The reservation lasts as long as a draft's.
//! - Given back and not rejected: the draft is there without its addresses; the next `reject` removes it, and a next `propose` or
//!   `approve` takes addresses again, and shows them.
//! - Deleted and not released: the addresses are held by a package that is gone, never given away too early. The next `delete` finds the
//!   package in the book by its place, and releases them.
//!
//! Without a book none of this happens and only Git moves; a controller then does the same with its own, and finds by
//! [`keep`](Addressed::keep) what was published meanwhile.
//!
//! **Dependencies** of a package are looked for among what the repository's deployment branch has, or among what the caller names. Who
//! pushes, proposes or approves gets what is published then; a rollback keeps what the old version had.
//!
//! Easy to get wrong: two drafts of one package share its identity, so they share its addresses. Giving back those of one must not take
//! them from the other: it reserves anew first.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use mooring_api::{Code, Finding, Span, Time};
use mooring_book::Store;
use mooring_ipam::TxnId;
use sha2::{Digest as _, Sha256};

use super::{
    Base, Content, Draft, Error, Lifecycle, PackageName, Packages, Published, Pushed, Which,
    Workspace,
};
use crate::git::{Files, Oid};
use crate::neighbour::{Neighbour, needed_packages};
use crate::report::{Dialect, Report};
use crate::site::Site;
use crate::specialise::{
    Specialise, Specialised, discard, holders, identities, retire, specialise,
};
use crate::trees::is_in_git;

/// How many packages may have had the same place before this one.
const MINTED: u8 = 16;
/// What to do about a package that waits for another one.
const HELP: &str = "Publish that package in this repository, then propose this one.";

/// A book that is opened for each use, so that nobody waits for it while we push. Any [`Store`] is one that stays open.
pub trait Desk {
    /// Uses the book.
    fn with<T>(
        &self,
        act: &mut dyn FnMut(&dyn Store) -> Result<T, crate::Error>,
    ) -> Result<T, crate::Error>;
}

impl<S: Store> Desk for &S {
    fn with<T>(
        &self,
        act: &mut dyn FnMut(&dyn Store) -> Result<T, crate::Error>,
    ) -> Result<T, crate::Error> {
        act(*self)
    }
}

/// Packages in Git, with their addresses.
pub struct Addressed<'a, D> {
    /// The packages.
    pub packages: &'a Packages,
    /// The book.
    pub desk: D,
    /// Pools and clusters.
    pub site: &'a Site,
    /// The WorkloadCluster; the one that the package has, or the only one, where None.
    pub cluster: Option<String>,
    /// Chosen dialect; by the package's marks where None.
    pub dialect: Option<Dialect>,
    /// How long drafts keep their addresses.
    pub hold: Span,
    /// Ship IPClaim and IPAllocation to the cluster as inert records.
    pub deploy_records: bool,
    /// Packages that Dependencies may mean; those that this repository's deployment branch has where None.
    pub neighbours: Option<&'a [Neighbour]>,
    /// Now.
    pub now: Time,
    /// Ids are minted from the package's place and these bytes. They must be the same in every run: one that was cut off before its push
    /// then mints the same id again, and finds what it had reserved.
    pub entropy: [u8; 16],
}

/// What an act came to.
#[derive(Clone, Debug)]
pub struct Outcome<T> {
    /// What was done in Git; None where findings kept it from being done.
    pub done: Option<T>,
    /// What the package got, and what is to be told.
    pub report: Report,
}

/// How a package is specialised, beside the usual.
#[derive(Default)]
pub(super) struct Way<'f> {
    pub(super) previous: Option<&'f Files>,
    pub(super) source: Option<PathBuf>,
    /// Looks for what its Dependencies need. What is only reserved anew, or made final, or was published before, stays as it is.
    pub(super) links: bool,
    /// Commit, and do not only reserve.
    pub(super) commit: bool,
    pub(super) renew: bool,
    pub(super) pinned: bool,
}

impl Way<'_> {
    fn linked() -> Self {
        Self {
            links: true,
            ..Self::default()
        }
    }
}

impl<D: Desk> Addressed<'_, D> {
    /// Specialises files and writes them as a draft. `source` is the directory they come from.
    pub fn push(&self, draft: &Draft, source: Option<&Path>) -> Result<Outcome<Pushed>, Error> {
        let (package, workspace) = (&draft.package, &draft.workspace);
        let before = self.before(package, workspace)?;
        let way = Way {
            previous: before.as_ref(),
            source: source.map(Path::to_owned),
            links: true,
            ..Way::default()
        };
        let made = self.specialise(package, &draft.files, way)?;
        if made.report.has_errors() {
            return Ok(refused(made.report));
        }
        let draft = Draft {
            files: made.files,
            ..draft.clone()
        };
        let pushed = self.packages.write(&draft);
        let pushed = self.or_give_back(&made.report, pushed)?;
        self.tidy(package, Some(workspace), &draft.files, made.report.reserved)?;
        Ok(done(pushed, made.report))
    }

    /// Specialises a draft once more, and makes a proposal of it.
    pub fn propose(
        &self,
        package: &PackageName,
        workspace: &Workspace,
    ) -> Result<Outcome<Pushed>, Error> {
        let which = Which::Workspace(workspace.clone());
        let content = self.packages.need(package, &which)?;
        let made = self.specialise(package, &content.files, Way::linked())?;
        if made.report.has_errors() {
            return Ok(refused(made.report));
        }
        let (seen, files) = (&content.commit, &made.files);
        let seen = Some(seen).filter(|_| content.lifecycle == Lifecycle::Draft);
        let pushed = self.packages.propose(package, workspace, seen, Some(files));
        let pushed = self.or_give_back(&made.report, pushed)?;
        self.tidy(package, Some(workspace), files, made.report.reserved)?;
        Ok(done(pushed, made.report))
    }

    /// Specialises a proposal once more, publishes it, and makes its addresses final.
    pub fn approve(
        &self,
        package: &PackageName,
        workspace: &Workspace,
    ) -> Result<Outcome<Published>, Error> {
        let which = Which::Proposed(workspace.clone());
        let Some(content) = self.packages.read(package, &which)? else {
            // Gone: by an approval that was cut off before its addresses were final, or it never was.
            let published = self.packages.approve(package, workspace, None, None)?;
            return self.finish(package, Some(workspace), published, false);
        };
        let made = self.specialise(package, &content.files, Way::linked())?;
        if made.report.has_errors() {
            return Ok(refused(made.report));
        }
        let (seen, files) = (Some(&content.commit), Some(&made.files));
        let published = self.packages.approve(package, workspace, seen, files);
        let published = self.or_give_back(&made.report, published)?;
        self.finish(package, Some(workspace), published, false)
    }

    /// Publishes an older version again, with the addresses it had, or not at all.
    pub fn rollback(&self, package: &PackageName, to: u32) -> Result<Outcome<Published>, Error> {
        let content = self.packages.need(package, &Which::Version(to))?;
        let way = Way {
            pinned: true,
            ..Way::default()
        };
        let made = self.specialise(package, &content.files, way)?;
        if made.report.has_errors() {
            return Ok(refused(made.report));
        }
        let published = self.packages.rollback(package, to, Some(&made.files));
        let published = self.or_give_back(&made.report, published)?;
        self.finish(package, None, published, true)
    }

    /// Gives back what a proposal has reserved, and makes a draft of it again.
    pub fn reject(&self, package: &PackageName, workspace: &Workspace) -> Result<Pushed, Error> {
        self.give_up(package, workspace)?;
        self.packages.reject(package, workspace)
    }

    /// Gives back what a draft or a proposal has reserved, and removes it. Whether there was one.
    pub fn discard(&self, package: &PackageName, workspace: &Workspace) -> Result<bool, Error> {
        self.give_up(package, workspace)?;
        self.packages.discard(package, workspace)
    }

    /// Gives back what this one alone has reserved.
    fn give_up(&self, package: &PackageName, workspace: &Workspace) -> Result<(), Error> {
        let open = self.contents(package)?;
        let own = open.iter().filter(|(of, _)| of == workspace);
        let own: BTreeSet<_> = own
            .flat_map(|(_, content)| holders(&content.files))
            .collect();
        let keep = self.renew(package, &open, Some(workspace), &own)?;
        self.give_back(&own, &keep)
    }

    /// Removes a package with its drafts, and releases everything it has. Whether there was anything.
    pub fn delete(&self, package: &PackageName) -> Result<bool, Error> {
        let open = self.contents(package)?;
        let drafted: BTreeSet<_> = open.iter().flat_map(|(_, c)| holders(&c.files)).collect();
        self.give_back(&drafted, &BTreeSet::new())?;
        let deployed = self.packages.read(package, &Which::Deployed)?;
        let mut all = drafted;
        all.extend(deployed.iter().flat_map(|content| holders(&content.files)));
        let there = self.packages.delete(package)?;
        let place = self.packages.repository.place(package.as_str());
        let others: Vec<PathBuf> = self.packages.nested_places(package)?;
        let mut any = there;
        self.desk.with(&mut |store| {
            let known = store.packages()?.into_iter().filter(|record| {
                let path = Path::new(&record.path);
                path.starts_with(&place) && !others.iter().any(|other| path.starts_with(other))
            });
            all.extend(known.map(|record| (record.cluster, record.id)));
            for (cluster, id) in &all {
                any |= retire(store, self.site, cluster, id, self.now)?;
            }
            Ok(())
        })?;
        Ok(any)
    }

    /// Makes the addresses of what was published final.
    fn finish(
        &self,
        package: &PackageName,
        workspace: Option<&Workspace>,
        published: Published,
        pinned: bool,
    ) -> Result<Outcome<Published>, Error> {
        let which = Which::Version(published.version);
        let content = self.packages.need(package, &which)?;
        let way = Way {
            commit: true,
            pinned,
            ..Way::default()
        };
        let made = self.specialise(package, &content.files, way)?;
        if !made.report.has_errors() {
            self.tidy_after(package, workspace, &content.files)?;
        }
        Ok(done(published, made.report))
    }

    pub(super) fn specialise(
        &self,
        package: &PackageName,
        files: &Files,
        way: Way<'_>,
    ) -> Result<Specialised, Error> {
        let carries = |known: &Path, id: &str| self.carries(package, known, id);
        let place = self.packages.repository.place(package.as_str());
        let own = match self.neighbours {
            None if way.links => self.packages.neighbours(&needed_packages(files))?,
            _ => Vec::new(),
        };
        let neighbours = self.neighbours.filter(|_| way.links).unwrap_or(&own);
        let how = Specialise {
            source: way.source,
            neighbours,
            previous: way.previous,
            cluster: self.cluster.clone(),
            dialect: self.dialect,
            draft: (!way.commit).then_some(self.hold),
            renew: way.renew,
            pinned: way.pinned,
            deploy_records: self.deploy_records,
            carries: Some(&carries),
            ..Specialise::new(self.site, place.clone(), self.now, self.minted(&place, 0))
        };
        let known = identities(files).contains_key("")
            || way.previous.is_some_and(|p| identities(p).contains_key(""));
        let mut made = self
            .desk
            .with(&mut |store| specialise(store, files, &how))?;
        // A package that was here and moved away took its identity along.
        for nth in 1..MINTED {
            let copied = |f: &Finding| f.code == Code::CopiedPackage;
            if known || !made.report.findings.iter().any(copied) {
                break;
            }
            let how = Specialise {
                entropy: self.minted(&place, nth),
                ..how.clone()
            };
            made = self
                .desk
                .with(&mut |store| specialise(store, files, &how))?;
        }
        for finding in &mut made.report.findings {
            if finding.code == Code::WaitingForPackage {
                HELP.clone_into(&mut finding.help);
            }
        }
        Ok(made)
    }

    /// What a new package's identity is made from.
    fn minted(&self, place: &Path, nth: u8) -> [u8; 16] {
        let mut hash = Sha256::new();
        hash.update(self.entropy);
        hash.update([nth]);
        hash.update(place.as_os_str().as_encoded_bytes());
        let mut out = [0; 16];
        out.copy_from_slice(&hash.finalize()[..16]);
        out
    }

    /// What the draft was before, or what is published: there is the package's identity.
    fn before(&self, package: &PackageName, workspace: &Workspace) -> Result<Option<Files>, Error> {
        let seen = self.packages.look(package)?;
        let mut open = seen.open.into_iter();
        let own = open
            .find(|open| open.workspace == *workspace)
            .map(|open| open.files);
        Ok(own.or(seen.deployed.map(|content| content.files)))
    }

    /// Drafts and proposals of a package.
    fn contents(&self, package: &PackageName) -> Result<Vec<(Workspace, Content)>, Error> {
        let open = self.packages.look(package)?.open.into_iter();
        let content = open.map(|open| {
            let content = Content {
                files: open.files,
                commit: open.commit,
                lifecycle: open.lifecycle,
            };
            (open.workspace, content)
        });
        Ok(content.collect())
    }

    /// A push that failed leaves nothing reserved that was not so before.
    fn or_give_back<T>(&self, report: &Report, outcome: Result<T, Error>) -> Result<T, Error> {
        if let (Err(error), Some(txn)) = (&outcome, report.reserved) {
            use crate::git::Error as Git;
            // Where the answer was lost, the push may have arrived: then it must stay, and lapses if not.
            let lost = matches!(
                error,
                Error::Git(Git::Timeout { .. } | Git::Unreachable { .. } | Git::Failed { .. })
            );
            if !lost {
                self.desk
                    .with(&mut |store| Ok(store.abort(txn, self.now)?))?;
            }
        }
        outcome
    }

    /// After a draft was written under a new transaction: the older ones go, other drafts' are renewed.
    fn tidy(
        &self,
        package: &PackageName,
        workspace: Option<&Workspace>,
        files: &Files,
        reserved: Option<TxnId>,
    ) -> Result<(), Error> {
        let Some(txn) = reserved else {
            return Ok(());
        };
        let own = holders(files);
        let open = self.contents(package)?;
        let mut keep = self.renew(package, &open, workspace, &own)?;
        keep.insert(txn);
        self.give_back(&own, &keep)
    }

    /// After addresses became final: reservations go, except those of other drafts.
    pub(super) fn tidy_after(
        &self,
        package: &PackageName,
        workspace: Option<&Workspace>,
        files: &Files,
    ) -> Result<(), Error> {
        let own = holders(files);
        let open = self.contents(package)?;
        let keep = self.renew(package, &open, workspace, &own)?;
        self.give_back(&own, &keep)
    }

    /// Reserves anew for the other drafts of these holders.
    fn renew(
        &self,
        package: &PackageName,
        open: &[(Workspace, Content)],
        without: Option<&Workspace>,
        holders: &BTreeSet<(String, String)>,
    ) -> Result<BTreeSet<TxnId>, Error> {
        let mut keep = BTreeSet::new();
        for (workspace, content) in open {
            let shared = !self::holders(&content.files).is_disjoint(holders);
            if Some(workspace) == without || !shared {
                continue;
            }
            let way = Way {
                renew: true,
                ..Way::default()
            };
            // What is wrong with that draft is for whoever pushes it next.
            keep.extend(
                self.specialise(package, &content.files, way)?
                    .report
                    .reserved,
            );
        }
        Ok(keep)
    }

    pub(super) fn give_back(
        &self,
        holders: &BTreeSet<(String, String)>,
        keep: &BTreeSet<TxnId>,
    ) -> Result<(), Error> {
        if holders.is_empty() {
            return Ok(());
        }
        self.desk.with(&mut |store| {
            for (cluster, id) in holders {
                discard(store, cluster, id, keep, self.now)?;
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Whether the package that the book knows at another place is still there.
    fn carries(&self, package: &PackageName, known: &Path, id: &str) -> bool {
        if !is_in_git(known) {
            return !self.packages.is_copy_of(known, package) && crate::decide::carries(known, id);
        }
        self.packages.carries(known, id).unwrap_or(true)
    }
}

impl Packages {
    /// Whether the package at a place of this repository has that id: on the deployment branch, or in a draft.
    pub(super) fn carries(&self, known: &Path, id: &str) -> Result<bool, Error> {
        let root = self.repository.place("");
        let root = root.to_str().unwrap_or_default().trim_end_matches('/');
        let inside = known.to_str().and_then(|known| known.strip_prefix(root));
        let inside = inside.map(|inside| inside.trim_start_matches('/'));
        let Some(Ok(package)) = inside.map(str::parse::<PackageName>) else {
            return Ok(false);
        };
        let seen = self.look(&package)?;
        let open = seen.open.iter().map(|open| &open.files);
        let mut all = open.chain(seen.deployed.iter().map(|content| &content.files));
        Ok(all.any(|files| identities(files).get("").map(String::as_str) == Some(id)))
    }

    /// The places of packages with versions of their own inside of this one.
    fn nested_places(&self, package: &PackageName) -> Result<Vec<PathBuf>, Error> {
        let mirror = self.open()?;
        let place = self.repository.place(package.as_str());
        let nested = super::nested(&mirror, package);
        Ok(nested.iter().map(|inside| place.join(inside)).collect())
    }

    /// Makes a draft from nothing, or from another repository: what `files` has.
    pub fn start(
        &self,
        package: &PackageName,
        workspace: &Workspace,
        files: Files,
        message: String,
    ) -> Result<Pushed, Error> {
        if self.read(package, &Which::Deployed)?.is_some() {
            let what = format!("it is published on {}", self.repository.branch);
            let package = package.clone();
            return Err(Error::Exists { package, what });
        }
        self.write(&Draft {
            package: package.clone(),
            workspace: workspace.clone(),
            files,
            base: Base::New,
            onto_published: false,
            message: Some(message),
        })
        .map_err(|error| match error {
            Error::DraftMoved {
                package, workspace, ..
            } => {
                let what = format!("draft {workspace}");
                Error::Exists { package, what }
            }
            error => error,
        })
    }

    /// The commit that a name stands for.
    pub fn resolve(&self, name: &str) -> Result<Option<Oid>, Error> {
        let mirror = self.open()?;
        let found = mirror.refs().get(name);
        let found = found
            .or_else(|| mirror.branch(name))
            .or_else(|| mirror.tag(name));
        let known = found.map(|at| at.commit.clone());
        Ok(known.or_else(|| Oid::parse(name)))
    }
}

fn refused<T>(report: Report) -> Outcome<T> {
    Outcome { done: None, report }
}

fn done<T>(what: T, report: Report) -> Outcome<T> {
    Outcome {
        done: Some(what),
        report,
    }
}
