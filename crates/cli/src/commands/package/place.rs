//! Where an act happens: the repository, the book, pools and clusters.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use mooring_api::Span;
use mooring_book::Store;
use mooring_package::git::{Credentials, Git, Repository, Secret};
use mooring_package::revision::Packages;
use mooring_package::revision::addressed::{Addressed, Desk};
use mooring_package::{Error, Site};

use crate::args::{AddressesArg, BookArg, RepositoryArg};
use crate::world::{Access, Usage, World, entropy};

/// The packages of the repository that the arguments name.
pub(super) fn packages(arg: &RepositoryArg, world: &World) -> anyhow::Result<Packages> {
    let Some(url) = arg.repository.clone().or_else(|| world.repository()) else {
        return Err(Usage::new(
            "no repository is given",
            "add --repository URL, or set MOOR_REPOSITORY, to say where the packages are",
        )
        .into());
    };
    let credentials = match (&arg.token_file, &arg.ssh_key) {
        (Some(file), _) => Credentials::Token {
            username: arg.username.clone(),
            password: Secret::new(read(file)?),
        },
        (None, Some(key)) => {
            let exists = |file: &PathBuf| {
                let help = "--ssh-key and --known-hosts name files";
                let missing = || Usage::new(format!("there is no file {}", file.display()), help);
                if file.is_file() {
                    Ok(())
                } else {
                    Err(missing())
                }
            };
            exists(key)?;
            arg.known_hosts.as_ref().map_or(Ok(()), exists)?;
            Credentials::Ssh {
                key: absolute(key),
                known_hosts: arg.known_hosts.as_deref().map(absolute),
            }
        }
        (None, None) => Credentials::Ambient,
    };
    let repository = Repository {
        url: located(&url),
        branch: arg.branch.clone(),
        directory: arg.directory.trim_matches('/').to_owned(),
        credentials,
    };
    repository
        .check()
        .map_err(|error| Usage::new(error.to_string(), error.help()))?;
    Ok(Packages::new(git(arg, world)?, repository))
}

/// How git is called.
fn git(arg: &RepositoryArg, world: &World) -> anyhow::Result<Git> {
    let cache = arg.git_cache.clone().unwrap_or_else(|| world.git_cache());
    let mut git = Git::new(cache, world.now).as_user();
    if let Some(seconds) = arg.git_timeout {
        git.timeout = Duration::from_secs(seconds);
    }
    let random = entropy()?;
    git.pause = Arc::new(move |nth| {
        let spread = u64::from(random[nth as usize % random.len()]);
        Duration::from_millis((50 << nth.min(6)) + spread)
    });
    Ok(git)
}

/// The same way of calling git, for another repository: with the credentials, if it is on the same host.
pub(super) fn beside(packages: &Packages, url: &str) -> Packages {
    let host = |url: &str| {
        let (scheme, rest) = url.split_once("://")?;
        Some((scheme.to_owned(), rest.split('/').next()?.to_owned()))
    };
    let mut repository = Repository::new(located(url));
    if host(url).is_some() && host(url) == host(&packages.repository.url) {
        repository.credentials = packages.repository.credentials.clone();
    }
    Packages::new(packages.git.clone(), repository)
}

/// A path is meant from here, whatever directory git runs in.
fn located(url: &str) -> String {
    let is_path = !url.contains("://") && Path::new(url).exists();
    if is_path {
        absolute(Path::new(url)).display().to_string()
    } else {
        url.to_owned()
    }
}

fn absolute(path: &Path) -> PathBuf {
    let real = std::fs::canonicalize(path);
    real.or_else(|_| std::path::absolute(path))
        .unwrap_or_else(|_| path.to_owned())
}

fn read(file: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(file);
    let text = text.with_context(|| format!("cannot read the token in {}", file.display()))?;
    if text.trim().is_empty() {
        let message = format!("{} holds no token", file.display());
        return Err(Usage::new(message, "--token-file names a file with the token in it").into());
    }
    Ok(text)
}

/// The book, opened for each use: nobody waits for it while we talk to a server.
pub(super) struct Opener<'a> {
    world: &'a World,
    arg: &'a BookArg,
    mgmt: PathBuf,
}

impl Desk for Opener<'_> {
    fn with<T>(&self, act: &mut dyn FnMut(&dyn Store) -> Result<T, Error>) -> Result<T, Error> {
        let book = self.world.book(self.arg, Some(&self.mgmt), Access::Write);
        book.settle(|book| act(book))
    }
}

/// Pools, clusters and the book; None where no management directory is given, and only Git moves.
pub(super) struct Management<'a> {
    site: Site,
    hold: Span,
    mgmt: PathBuf,
    arg: &'a AddressesArg,
}

impl<'a> Management<'a> {
    pub(super) fn read(arg: &'a AddressesArg, world: &World) -> anyhow::Result<Option<Self>> {
        let hold = arg.hold.parse().map_err(|bad: mooring_api::BadValue| {
            Usage::new(bad.to_string(), "--hold SPAN, such as 30d or 12h")
        })?;
        let Some(mgmt) = world.mgmt(&arg.mgmt)? else {
            return Ok(None);
        };
        Ok(Some(Self {
            site: Site::read(&mgmt),
            hold,
            mgmt,
            arg,
        }))
    }

    pub(super) fn packages<'p>(
        &'p self,
        packages: &'p Packages,
        world: &'p World,
    ) -> Addressed<'p, Opener<'p>> {
        Addressed {
            packages,
            desk: Opener {
                world,
                arg: &self.arg.book,
                mgmt: self.mgmt.clone(),
            },
            site: &self.site,
            cluster: self.arg.cluster.clone(),
            dialect: self.arg.dialect.map(Into::into),
            hold: self.hold,
            deploy_records: self.arg.deploy_records,
            neighbours: None,
            now: world.now,
            // Nothing random: the same command mints the same identity again.
            entropy: [0; 16],
        }
    }
}
