//! A Repository object as a repository that can be opened: its address, and what opens it, from a Secret.
//!
//! Easy to get wrong: a Secret is read for one pass and dropped with it. It is in no cache, no status and no log.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use mooring_api::kinds::porch;
use mooring_api::{Code, Finding};
use mooring_blueprint::Object;
use mooring_package::git::{self, Credentials, Git};
use mooring_package::revision::Packages;
use tokio::sync::OwnedMutexGuard;

use super::Role;
use crate::credentials::Opened;
use crate::error::Error;

/// A repository that can be opened, for one pass.
pub(super) struct Remote {
    pub(super) packages: Packages,
    /// The Repository object's name.
    pub(super) name: String,
    /// Holds the ssh key.
    _opened: Opened,
}

/// One act at a time per repository: two that push to one place only make each other wait in Git.
#[derive(Clone, Default)]
pub(super) struct Turns(Arc<Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<()>>>>>);

impl Turns {
    /// Waits for this repository's turn.
    pub(super) async fn take(&self, url: &str) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            turns.entry(url.to_owned()).or_default().clone()
        };
        turn.lock_owned().await
    }
}

/// Finds a Repository by name among the objects of a namespace.
pub(super) fn find<'a>(
    repositories: &'a [Object],
    namespace: &str,
    name: &str,
) -> Option<&'a Object> {
    let is_it = |o: &&Object| o.name() == name && o.namespace() == namespace;
    repositories.iter().find(is_it)
}

/// What a person is told where there is no such Repository.
pub(super) fn missing(name: &str, namespace: &str, field: &str) -> Finding {
    Finding::error(
        Code::UnknownRepository,
        format!("there is no Repository {name} in namespace {namespace}"),
    )
    .at(field)
    .help("Apply the Repository, or correct the name.")
}

/// Where a repository is, without what opens it; and its spec. What is wrong with the object is a finding.
pub(super) fn place(object: &Object) -> Result<(git::Repository, porch::Git), Finding> {
    let spec: porch::RepositorySpec = object.spec()?;
    let Some(wanted) = spec.git else {
        return Err(
            Finding::error(Code::InvalidField, "this is no Git repository")
                .at("spec.git")
                .help("Write spec.git.repo; packages are kept in Git."),
        );
    };
    let mut repository = git::Repository::new(wanted.repo.clone());
    if let Some(branch) = wanted.branch.clone().filter(|b| !b.is_empty()) {
        repository.branch = branch;
    }
    let directory = wanted.directory.clone().unwrap_or_default();
    directory
        .trim_matches('/')
        .clone_into(&mut repository.directory);
    repository.credentials = Credentials::None;
    Ok((repository, wanted))
}

impl Role {
    /// How git is called now.
    pub(super) fn git(&self) -> Git {
        Git::new(self.world.args.git_cache(), self.world.now())
    }

    /// Makes a repository ready to be opened. What is wrong with the object is a finding.
    pub(super) async fn remote(&self, object: &Object) -> Result<Result<Remote, Finding>, Error> {
        let wrong = |finding: Finding| Ok(Err(finding.on(&object.reference())));
        let (mut repository, wanted) = match place(object) {
            Ok(found) => found,
            Err(finding) => return wrong(finding),
        };
        let mut opened = Opened::none();
        let secret = wanted.secret_ref.as_ref().map(|s| s.name.as_str());
        if let Some(name) = secret.filter(|name| !name.is_empty()) {
            let api: Api<Secret> = Api::namespaced(self.world.client.clone(), object.namespace());
            let found = api
                .get_opt(name)
                .await
                .map_err(Error::api("read the Secret of a repository"))?;
            let Some(found) = found else {
                return wrong(
                    Finding::error(Code::InvalidField, format!("there is no Secret {name}"))
                        .at("spec.git.secretRef.name")
                        .help("Make it in the namespace of the Repository."),
                );
            };
            opened = match Opened::any(&found) {
                Ok(opened) => opened,
                Err(why) => {
                    let message = format!("Secret {name} cannot be used: {why}");
                    return wrong(
                        Finding::error(Code::InvalidField, message)
                            .at("spec.git.secretRef.name")
                            .help("Write username and password, or token, or ssh-privatekey."),
                    );
                }
            };
            repository.credentials = opened.credentials.clone();
        }
        if let Err(error) = repository.check() {
            let text = format!("{error}");
            let finding = Finding::error(Code::InvalidField, text).at("spec.git.repo");
            return wrong(finding.help(error.help()));
        }
        let mut git = self.git();
        if let (Some(author), Some(email)) = (wanted.author, wanted.email) {
            git.author = (author, email);
        }
        Ok(Ok(Remote {
            packages: Packages::new(git, repository),
            name: object.name().to_owned(),
            _opened: opened,
        }))
    }
}
