//! A Repository object as a repository that can be opened: its address, and what opens it, from a Secret.
//!
//! Easy to get wrong: a Secret is read for one pass and dropped with it. It is in no cache, no status and no log; an ssh
//! key is a file that only we can read, in a directory that goes when the pass ends.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use mooring_api::kinds::porch;
use mooring_api::{Code, Finding};
use mooring_blueprint::Object;
use mooring_package::git::{self, Credentials, Git};
use mooring_package::revision::Packages;
use tempfile::TempDir;
use tokio::sync::OwnedMutexGuard;

use super::Role;
use crate::error::Error;

/// A repository that can be opened, for one pass.
pub(super) struct Remote {
    pub(super) packages: Packages,
    /// The Repository object's name.
    pub(super) name: String,
    /// Holds the ssh key.
    _dir: Option<TempDir>,
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

impl Role {
    /// Makes a repository ready to be opened. What is wrong with the object is a finding.
    pub(super) async fn remote(&self, object: &Object) -> Result<Result<Remote, Finding>, Error> {
        let wrong = |finding: Finding| Ok(Err(finding.on(&object.reference())));
        let spec: porch::RepositorySpec = match object.spec() {
            Ok(spec) => spec,
            Err(finding) => return wrong(finding),
        };
        let Some(wanted) = spec.git else {
            return wrong(
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
        let mut dir = None;
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
            match credentials(&found) {
                Ok((credentials, made)) => (repository.credentials, dir) = (credentials, made),
                Err(why) => {
                    return wrong(
                        Finding::error(Code::InvalidField, format!("Secret {name} {why}"))
                            .at("spec.git.secretRef.name")
                            .help("Write username and password, or token, or ssh-privatekey."),
                    );
                }
            }
        }
        if let Err(error) = repository.check() {
            let text = format!("{error}");
            let finding = Finding::error(Code::InvalidField, text).at("spec.git.repo");
            return wrong(finding.help(error.help()));
        }
        let mut git = Git::new(self.world.args.git_cache(), self.world.now());
        if let (Some(author), Some(email)) = (wanted.author, wanted.email) {
            git.author = (author, email);
        }
        Ok(Ok(Remote {
            packages: Packages::new(git, repository),
            name: object.name().to_owned(),
            _dir: dir,
        }))
    }
}

/// What a Secret opens a repository with, or what is wrong with it. Its values are in no text.
fn credentials(secret: &Secret) -> Result<(Credentials, Option<TempDir>), &'static str> {
    let empty = BTreeMap::new();
    let data = secret.data.as_ref().unwrap_or(&empty);
    let text = |key: &str| -> Result<Option<String>, &'static str> {
        let Some(bytes) = data.get(key) else {
            return Ok(None);
        };
        let text =
            String::from_utf8(bytes.0.clone()).map_err(|_| "has a value that is not text")?;
        Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty()))
    };
    let key = match text("ssh-privatekey")? {
        Some(key) => Some(key),
        None => text("ssh")?,
    };
    if let Some(key) = key {
        let dir = tempfile::tempdir().map_err(|_| "cannot be kept: no directory can be made")?;
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            let file = std::fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path);
            file.and_then(|mut file| writeln!(file, "{text}"))
                .map_err(|_| "cannot be kept: no file can be made")?;
            Ok::<_, &'static str>(path)
        };
        let key = write("key", &key)?;
        let known_hosts = match text("known_hosts")? {
            Some(known) => Some(write("known_hosts", &known)?),
            None => None,
        };
        return Ok((Credentials::Ssh { key, known_hosts }, Some(dir)));
    }
    let username = text("username")?;
    for name in ["password", "token", "bearerToken"] {
        if let Some(password) = text(name)? {
            let username = username.unwrap_or_else(|| "git".to_owned());
            let password = git::Secret::new(password);
            return Ok((Credentials::Token { username, password }, None));
        }
    }
    Err("has neither password, token nor ssh-privatekey")
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::ByteString;

    fn secret(pairs: &[(&str, &str)]) -> Secret {
        let data = pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), ByteString(v.as_bytes().to_vec())));
        Secret {
            data: Some(data.collect()),
            ..Secret::default()
        }
    }

    #[test]
    fn a_token_alone_is_enough_and_is_never_shown() {
        let (found, dir) = credentials(&secret(&[("token", "s3cret\n")])).expect("it opens");
        assert!(dir.is_none());
        assert!(matches!(&found, Credentials::Token { username, .. } if username == "git"));
        assert!(!format!("{found:?}").contains("s3cret"));
    }

    #[test]
    fn a_key_is_a_file_that_only_we_read() {
        use std::os::unix::fs::PermissionsExt as _;
        let (found, dir) = credentials(&secret(&[("ssh-privatekey", "KEY")])).expect("it opens");
        let Credentials::Ssh {
            key,
            known_hosts: None,
        } = found
        else {
            panic!("not ssh: {found:?}");
        };
        let mode = std::fs::metadata(&key)
            .expect("it is there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        drop(dir);
        assert!(!key.exists(), "it goes with the pass");
    }

    #[test]
    fn a_secret_without_anything_of_use_is_refused() {
        assert!(credentials(&secret(&[("username", "me")])).is_err());
        assert!(credentials(&secret(&[("password", "")])).is_err());
    }
}
