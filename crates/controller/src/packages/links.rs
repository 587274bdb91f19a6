//! Packages that need other packages: what is published in the deployment repositories of a namespace, and who is woken when that changes.
//!
//! ```text
//!  variant ─ needed_packages ─► noted here ─► neighbours of every deployment Repository ─► specialise: linked, or WaitingForPackage
//!  Repository: somebody pushed ─► every variant of the namespace that was noted is looked at again
//! ```
//!
//! Easy to get wrong: a variant is noted *before* the repositories are read, so that a push in between wakes it. And a repository that
//! cannot be read ends the pass: without it, what its packages had given would be taken away as if they were gone.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use mooring_blueprint::Object;
use mooring_package::revision::{Packages, Seen};
use mooring_package::{Neighbour, needed_packages};

use super::conditions::sentence;
use super::repository::is_deployment;
use super::{Role, blocking, key, remote, wake};
use crate::error::Error;

/// What a person is told beside what is waited for.
pub(super) const HELP: &str = "It goes on by itself when that package is published in a Repository of this namespace with deployment: true.";

/// The variants whose packages need others, by namespace and name.
#[derive(Default)]
pub(super) struct Links(Mutex<BTreeSet<(String, String)>>);

impl Links {
    /// Notes whether a variant needs others.
    pub(super) fn note(&self, variant: &Object, needs: bool) {
        let name = (variant.namespace().to_owned(), variant.name().to_owned());
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if needs {
            all.insert(name);
        } else {
            all.remove(&name);
        }
    }

    fn of(&self, namespace: &str) -> Vec<String> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let here = all.iter().filter(|(of, _)| of == namespace);
        here.map(|(_, name)| name.clone()).collect()
    }
}

/// The packages that a variant's package needs: its clone, and what Git has of it.
pub(super) fn needed(clone: &mooring_package::Files, seen: &Seen) -> BTreeSet<String> {
    let open = seen.open.iter().map(|open| &open.files);
    let all = open.chain(seen.deployed.iter().map(|content| &content.files));
    all.chain([clone]).flat_map(needed_packages).collect()
}

impl Role {
    /// The packages of these names in every deployment repository of a namespace.
    pub(super) async fn neighbours(
        &self,
        namespace: &str,
        names: &BTreeSet<String>,
    ) -> Result<Vec<Neighbour>, Error> {
        let mut all = Vec::new();
        if names.is_empty() {
            return Ok(all);
        }
        let repositories = self.repositories().await?;
        let here = |o: &&Object| o.namespace() == namespace && is_deployment(o);
        for repository in repositories.iter().filter(here) {
            let mut found = self.published(repository, names).await?;
            for neighbour in &mut found {
                neighbour.shown = format!("{}/{}", repository.name(), neighbour.shown);
            }
            all.append(&mut found);
        }
        Ok(all)
    }

    /// Those of one repository: as it was looked at last, since the next look wakes whoever used it; else as it is.
    async fn published(
        &self,
        repository: &Object,
        names: &BTreeSet<String>,
    ) -> Result<Vec<Neighbour>, Error> {
        if self.memory.has(&key(repository))
            && let Ok((place, _)) = remote::place(repository)
        {
            let packages = Packages::new(self.git(), place);
            let names = names.clone();
            let known = blocking(move || Ok(packages.known_neighbours(&names)?)).await;
            if let Ok(known) = known {
                return Ok(known);
            }
        }
        let remote = self.remote(repository).await?.map_err(|finding| {
            let said = sentence(&finding);
            Error::Other(format!(
                "a package may be in a repository that cannot be read: {said}"
            ))
        })?;
        let names = names.clone();
        blocking(move || Ok(remote.packages.neighbours(&names)?)).await
    }

    /// Wakes the variants of a namespace that need other packages.
    pub(super) fn wake_linked(&self, namespace: &str) {
        for name in self.links.of(namespace) {
            // A closed queue is the end of the program.
            let _ = self.wake.send(wake::named(namespace, &name));
        }
    }

    /// Differs when a repository that a draft of this one may need was pushed to; empty where no draft needs any.
    pub(super) async fn beside(
        &self,
        repository: &Object,
        standing: &mooring_package::revision::Standing,
    ) -> Result<String, Error> {
        let mut open = standing.open.iter();
        if !open.any(|(_, open)| !needed_packages(&open.files).is_empty()) {
            return Ok(String::new());
        }
        let repositories = self.repositories().await?;
        let others = repositories.iter().filter(|o| {
            o.namespace() == repository.namespace()
                && o.name() != repository.name()
                && is_deployment(o)
        });
        let refs = others.map(|o| self.memory.refs(&key(o)).unwrap_or_default());
        Ok(refs.collect::<Vec<String>>().join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn variant(namespace: &str, name: &str) -> Object {
        Object {
            value: json!({ "metadata": { "name": name, "namespace": namespace } }),
            source: None,
        }
    }

    #[test]
    fn variants_that_need_others_are_known_by_namespace_until_they_need_them_no_more() {
        let links = Links::default();
        links.note(&variant("core", "smf"), true);
        links.note(&variant("core", "amf"), true);
        links.note(&variant("edge", "du"), true);
        links.note(&variant("core", "upf"), false);
        assert_eq!(links.of("core"), ["amf", "smf"]);
        links.note(&variant("core", "amf"), false);
        assert_eq!(links.of("core"), ["smf"]);
        assert!(links.of("elsewhere").is_empty());
    }

    #[test]
    fn what_is_published_counts_though_the_blueprint_needs_nobody_any_more() {
        let text = "apiVersion: req.nephio.org/v1alpha1\nkind: Dependency\nmetadata: {name: upf}\nspec: {packageName: core-upf}\n";
        let files = mooring_package::Files::from([("d.yaml".to_owned(), text.into())]);
        let content = mooring_package::revision::Content {
            files,
            commit: mooring_package::git::Oid::parse(&"a".repeat(40)).expect("forty hex digits"),
            lifecycle: mooring_package::revision::Lifecycle::Published,
        };
        let seen = Seen {
            deployed: Some(content),
            ..Seen::default()
        };
        let nothing = mooring_package::Files::new();
        assert_eq!(needed(&nothing, &seen), BTreeSet::from(["core-upf".into()]));
        assert!(needed(&nothing, &Seen::default()).is_empty());
    }
}
