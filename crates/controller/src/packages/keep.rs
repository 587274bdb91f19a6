//! Published packages that no variant made have their addresses in the book, however they were published: by an approval, a
//! rollback or a commit of a person who has no book at hand.
//!
//! ```text
//!  Repository: a package's directory is another than at the last look ─► Addressed::keep ─┬ committed
//!                                                                                          └ somebody else has one ─► told
//! ```
//!
//! A variant does the same for its own. Easy to get wrong: what is a variant's is decided from variants that were read *before*
//! Git: one that went in between has taken its package along, so what is still there is nobody's.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use mooring_api::{Condition, Finding};
use mooring_blueprint::Object;
use mooring_package::git::Oid;
use mooring_package::revision::{PackageName, Standing};
use mooring_package::{Files, Kpt, Site, injection_points};

use super::conditions::{condition, sentence};
use super::draft::Hands;
use super::remote::Remote;
use super::{Role, blocking, key, reference, site_of};
use crate::error::Error;

/// What the Repository says about it.
const KIND: &str = "AddressesKept";

/// What was kept, by repository and package.
#[derive(Default)]
pub(super) struct Kept(Mutex<BTreeMap<String, BTreeMap<PackageName, One>>>);

/// One published package.
#[derive(Clone, Debug)]
struct One {
    /// What its directory was.
    tree: Oid,
    /// It was never specialised, or is a variant's.
    other: bool,
    /// What is in the way; it is tried again at every look.
    errors: Vec<Finding>,
}

impl Kept {
    fn with<T>(
        &self,
        repository: &str,
        act: impl FnOnce(&mut BTreeMap<PackageName, One>) -> T,
    ) -> T {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        act(all.entry(repository.to_owned()).or_default())
    }

    /// Forgets what is not published any more, and says what is to be looked at.
    fn due(&self, repository: &str, published: &[(PackageName, Oid)]) -> Vec<(PackageName, Oid)> {
        self.with(repository, |known| {
            known.retain(|package, _| published.iter().any(|(name, _)| name == package));
            let settled = |(package, tree): &&(PackageName, Oid)| {
                let one = known.get(package);
                one.is_some_and(|one| one.tree == *tree && one.errors.is_empty())
            };
            let due = published.iter().filter(|one| !settled(one));
            due.cloned().collect()
        })
    }

    /// Notes a package. Its errors, where they are not those of before.
    fn note(&self, repository: &str, package: PackageName, one: One) -> Vec<Finding> {
        self.with(repository, |known| {
            let errors = one.errors.clone();
            let before = known.insert(package, one).map(|one| one.errors);
            let is_new = before.is_none_or(|before| before != errors);
            if is_new { errors } else { Vec::new() }
        })
    }

    /// What is said of a repository; None where no package is concerned.
    fn condition(&self, repository: &str) -> Option<Condition> {
        self.with(repository, |known| {
            let errors: Vec<&Finding> = known.values().flat_map(|one| &one.errors).collect();
            let Some(first) = errors.first() else {
                let any = known.values().any(|one| !one.other);
                let said = "every published package has the addresses that it says";
                return any.then(|| condition(KIND, true, "Kept", said));
            };
            let mut said = sentence(first);
            if errors.len() > 1 {
                said = format!("{said} And {} more like it.", errors.len() - 1);
            }
            Some(condition(KIND, false, first.code.as_str(), said))
        })
    }
}

impl Role {
    /// Makes the addresses of what is published final, where it changed since the last look.
    pub(super) async fn keep_published(
        &self,
        repository: &Object,
        remote: &Arc<Remote>,
        standing: &Standing,
        variants: &[Object],
        site: &[Object],
    ) -> Result<Option<Condition>, Error> {
        let name = key(repository);
        let due = self.kept.due(&name, &standing.published);
        let Some(commit) = standing.branch.clone().filter(|_| !due.is_empty()) else {
            return Ok(self.kept.condition(&name));
        };
        let marks: Vec<String> = variants
            .iter()
            .map(|v| format!("{}/{}", v.namespace(), v.name()))
            .collect();
        let open = standing.open.iter().map(|(package, _)| package.clone());
        let open: BTreeSet<PackageName> = open.collect();
        let hands = self.hands(repository, remote, site, Vec::new());
        let names: Vec<PackageName> = due.iter().map(|(name, _)| name.clone()).collect();
        let there = remote.clone();
        let read = blocking(move || Ok(there.packages.contents(&commit, &names)?));
        // Those that are ours: specialised once, and no variant's.
        let ours = read.await?.into_iter().filter_map(|(package, files)| {
            let kpt = Kpt::read(&files)?;
            let ours = !kpt.id.is_empty() && !marks.contains(&kpt.variant);
            ours.then_some((package, (files, kpt)))
        });
        let ours: BTreeMap<PackageName, (Files, Kpt)> = ours.collect();
        let mut site = site.to_vec();
        let points = ours
            .values()
            .flat_map(|(files, _)| injection_points(files))
            .collect();
        site.extend(self.injected(repository.namespace(), points).await?);
        let done = blocking(move || {
            let site = site_of(&site);
            let mut done = Vec::new();
            for (package, tree) in due {
                let drafts = open.contains(&package);
                let found = ours.get(&package);
                let errors = match found {
                    Some((files, kpt)) => hands.keep(&package, files, kpt, drafts, &site)?,
                    None => Vec::new(),
                };
                let one = One {
                    tree,
                    other: found.is_none(),
                    errors,
                };
                done.push((package, one));
            }
            Ok(done)
        })
        .await?;
        for (package, one) in done {
            let news = self.kept.note(&name, package, one);
            self.found(super::repository::KIND, &news);
            for finding in &news {
                let (on, code) = (reference(repository), finding.code.as_str());
                self.world.tell(&on, true, code, &sentence(finding)).await;
            }
        }
        Ok(self.kept.condition(&name))
    }
}

impl Hands {
    /// Makes the addresses of a published package final; `open` says whether it has drafts. What is in the way of that.
    pub(super) fn keep(
        &self,
        package: &PackageName,
        files: &Files,
        kpt: &Kpt,
        open: bool,
        site: &Site,
    ) -> Result<Vec<Finding>, Error> {
        self.world.fence()?;
        let report = self
            .addressed(package, kpt, site)
            .keep(package, files, open)?;
        let told = |finding: Finding| Finding {
            message: format!("{package} is published: {}", finding.message),
            ..finding
        };
        let errors = report.findings.into_iter().filter(Finding::is_error);
        Ok(errors.map(told).collect())
    }
}

#[cfg(test)]
mod tests {
    use mooring_api::Code;

    use super::*;

    fn tree(digit: &str) -> Oid {
        Oid::parse(&digit.repeat(40)).expect("forty hex digits")
    }

    fn one(digit: &str, other: bool, errors: &[&str]) -> One {
        let error = |said: &&str| Finding::error(Code::AddressHeld, (*said).to_owned());
        One {
            tree: tree(digit),
            other,
            errors: errors.iter().map(error).collect(),
        }
    }

    #[test]
    fn a_package_is_looked_at_when_it_changed_and_while_something_is_in_the_way() {
        let kept = Kept::default();
        let name = |text: &str| text.parse::<PackageName>().expect("a name");
        let published = |all: &[(&str, &str)]| -> Vec<(PackageName, Oid)> {
            all.iter().map(|(n, t)| (name(n), tree(t))).collect()
        };
        let both = published(&[("a", "1"), ("b", "2")]);
        assert_eq!(kept.due("r", &both), both);
        assert!(kept.condition("r").is_none());
        kept.note("r", name("a"), one("1", false, &[]));
        assert_eq!(kept.note("r", name("b"), one("2", false, &["x"])).len(), 1);
        assert_eq!(
            kept.note("r", name("b"), one("2", false, &["x"])),
            [],
            "it was told already"
        );
        assert_eq!(kept.due("r", &both), published(&[("b", "2")]));
        assert_eq!(kept.due("elsewhere", &both), both);
        let said = kept.condition("r").expect("something is kept");
        assert_eq!(said.reason, "AddressHeld");
        let moved = published(&[("a", "3"), ("b", "2")]);
        assert_eq!(kept.due("r", &moved), moved);
        // What is gone is in nobody's way.
        assert_eq!(kept.due("r", &both[..1]), []);
        let said = kept.condition("r").expect("something is kept");
        assert_eq!(said.reason, "Kept");
    }

    #[test]
    fn where_only_variants_publish_nothing_is_said() {
        let kept = Kept::default();
        kept.note("r", "a".parse().expect("a name"), one("1", true, &[]));
        assert!(kept.condition("r").is_none());
    }
}
