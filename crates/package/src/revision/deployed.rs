//! Whether a cluster has what is published: its own word, from `.status/sync-status.yaml` on the deployment branch.
//!
//! ```text
//!  package ran/upf of directory sites ─► sites/ran/upf/.status, sites/ran/.status, sites/.status, .status: the first that is there
//! ```
//!
//! The controller makes a condition of it, `moor package list` a column. Nobody talks to a workload cluster for it. Easy to get wrong: the commit
//! that a cluster names is the whole branch's, a package has arrived when it is the same there as now; and the files that a cluster
//! names lie below the directory that it follows, which is the one its status stands in.

use std::collections::BTreeMap;

use mooring_api::kinds::configsync::{ObjectState, SYNC_STATUS_FILE, SyncReport, SyncStatus};
use serde::Serialize;

use super::{Error, PackageName, Packages, is_same};
use crate::git::{Mirror, Oid};

/// What a cluster says about a published package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Deployment {
    /// Whether it has it.
    pub deployed: bool,
    /// A short word for a condition.
    pub reason: &'static str,
    /// The cluster, as it calls itself; empty where none speaks, or it does not say.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cluster: String,
    /// What is to be told.
    pub message: String,
}

impl Deployment {
    fn new(deployed: bool, reason: &'static str, cluster: &str, message: String) -> Self {
        Self {
            deployed,
            reason,
            cluster: cluster.to_owned(),
            message,
        }
    }

    /// Whether no cluster has said anything.
    pub fn is_silent(&self) -> bool {
        self.reason == NOT_REPORTED
    }
}

const NOT_REPORTED: &str = "NotReported";

/// What stands in a directory.
enum Word {
    Nothing,
    Unreadable,
    Status(Box<SyncStatus>),
}

impl Packages {
    /// What clusters say about these packages as they are published now, from one fetch.
    pub fn deployments(
        &self,
        packages: &[PackageName],
    ) -> Result<BTreeMap<PackageName, Deployment>, Error> {
        let mirror = self.open()?;
        let Some(main) = mirror.branch(&self.repository.branch) else {
            return Ok(BTreeMap::new());
        };
        let main = main.commit.clone();
        let mut words: BTreeMap<String, Word> = BTreeMap::new();
        let mut all = BTreeMap::new();
        for package in packages {
            let path = self.repository.path(package.as_str());
            let mut said = Deployment::new(
                false,
                NOT_REPORTED,
                "",
                "no cluster has reported on this branch yet".to_owned(),
            );
            for directory in upwards(&path) {
                if !words.contains_key(directory) {
                    words.insert(directory.to_owned(), word(&mirror, &main, directory)?);
                }
                said = match &words[directory] {
                    Word::Nothing => continue,
                    Word::Unreadable => {
                        let place = joined(directory, SYNC_STATUS_FILE);
                        let message = format!("{place} cannot be read");
                        Deployment::new(false, "Unreadable", "", message)
                    }
                    Word::Status(status) => {
                        let there = Oid::parse(&status.status.sync.commit);
                        let arrived = there.is_some()
                            && is_same(&mirror, package, there.as_ref(), Some(&main))?;
                        let inside = inside(&path, directory);
                        judge(&status.status, status.is_synced(), inside, arrived)
                    }
                };
                break;
            }
            all.insert(package.clone(), said);
        }
        Ok(all)
    }
}

/// The directory itself, those above it, and the root.
fn upwards(path: &str) -> impl Iterator<Item = &str> {
    let above = path.rmatch_indices('/').map(|(at, _)| &path[..at]);
    let root = (!path.is_empty()).then_some("");
    [path].into_iter().chain(above).chain(root)
}

/// A path as it is called in a directory above it.
fn inside<'p>(path: &'p str, directory: &str) -> &'p str {
    let rest = path.strip_prefix(directory).unwrap_or(path);
    rest.trim_start_matches('/')
}

fn joined(directory: &str, name: &str) -> String {
    if directory.is_empty() {
        name.to_owned()
    } else {
        format!("{directory}/{name}")
    }
}

fn word(mirror: &Mirror, main: &Oid, directory: &str) -> Result<Word, Error> {
    let place = joined(directory, SYNC_STATUS_FILE);
    let (dir, name) = place.rsplit_once('/').unwrap_or(("", &place));
    let bytes = mirror
        .read(main, dir)?
        .and_then(|mut files| files.remove(name));
    let Some(bytes) = bytes else {
        return Ok(Word::Nothing);
    };
    let value = crate::document(&bytes);
    let status = value.as_ref().and_then(SyncStatus::read);
    Ok(status.map_or(Word::Unreadable, |status| Word::Status(Box::new(status))))
}

/// What the cluster's word means for one package, by its directory below the one that the cluster follows.
fn judge(report: &SyncReport, synced: bool, package: &str, arrived: bool) -> Deployment {
    let cluster = report.cluster.as_str();
    let who = if cluster.is_empty() {
        "the cluster"
    } else {
        cluster
    };
    let commit: String = report.sync.commit.chars().take(10).collect();
    let ours = |file: &str| {
        // Of what left nobody says where it was.
        let rest = file.strip_prefix(package);
        !file.is_empty() && (package.is_empty() || rest.is_some_and(|rest| rest.starts_with('/')))
    };
    let own = || report.objects.iter().filter(|o| ours(&o.file));
    let said = |deployed, reason, message| Deployment::new(deployed, reason, cluster, message);
    if let Some(failed) = own().find(|o| o.state == ObjectState::Failed) {
        let named = format!("{}: ", failed.object);
        let why = report.errors.iter().find(|error| {
            // `file:line: ` may stand before it.
            error.starts_with(&named) || error.contains(&format!(": {named}"))
        });
        let message = match why {
            Some(why) => format!("{who} could not apply it: {why}"),
            None => format!(
                "{who} could not apply {}; why is not among the errors that it lists",
                failed.object
            ),
        };
        return said(false, "ApplyFailed", message);
    }
    if !arrived {
        let message = format!("{who} is at {commit}, which has not this version");
        return said(false, "Syncing", message);
    }
    if !synced && own().next().is_none() {
        let why = report.errors.iter().find(|error| ours(error));
        let message = match why {
            Some(why) => format!("{who} is not in sync: {why}"),
            None => format!("{who} is not in sync, and says nothing of this package"),
        };
        return said(false, "NotSynced", message);
    }
    said(true, "Synced", format!("{who} has it, at {commit}"))
}

#[cfg(test)]
mod tests {
    use mooring_api::ObjectRef;
    use mooring_api::kinds::configsync::ObjectReport;

    use super::*;

    fn report(objects: &[(&str, ObjectState, &str)], errors: &[&str]) -> SyncReport {
        let object = |(name, state, file): &(&str, ObjectState, &str)| ObjectReport {
            object: ObjectRef::new("v1", "ConfigMap", *name),
            state: *state,
            file: (*file).to_owned(),
        };
        SyncReport {
            cluster: "edge01".into(),
            objects: objects.iter().map(object).collect(),
            errors: errors.iter().map(|error| (*error).to_owned()).collect(),
            ..SyncReport::default()
        }
    }

    #[test]
    fn a_package_is_deployed_when_its_version_has_arrived_and_none_of_its_objects_failed() {
        let reason =
            |report: &SyncReport, synced, arrived| judge(report, synced, "upf", arrived).reason;
        let good = report(&[("a", ObjectState::Applied, "upf/a.yaml")], &[]);
        assert_eq!(reason(&good, true, true), "Synced");
        assert_eq!(reason(&good, true, false), "Syncing");
        let own = report(&[("a", ObjectState::Failed, "upf/a.yaml")], &[]);
        assert_eq!(reason(&own, false, true), "ApplyFailed");
        let other = report(&[("a", ObjectState::Failed, "upf-b/a.yaml")], &[]);
        let unknown = "nothing of it is known to be there";
        assert_eq!(reason(&other, false, true), "NotSynced", "{unknown}");
    }

    #[test]
    fn the_error_that_is_told_is_the_packages_own() {
        let objects = [
            ("a", ObjectState::Failed, "amf/a.yaml"),
            ("b", ObjectState::Failed, "upf/b.yaml"),
            ("c", ObjectState::Failed, "smf/c.yaml"),
        ];
        let errors = ["ConfigMap/a: no room", "upf/b.yaml:3: ConfigMap/b: refused"];
        let told = |package| judge(&report(&objects, &errors), false, package, true).message;
        assert!(
            told("upf").ends_with("ConfigMap/b: refused"),
            "{}",
            told("upf")
        );
        assert!(
            told("amf").ends_with("ConfigMap/a: no room"),
            "{}",
            told("amf")
        );
        let none = told("smf");
        assert!(none.contains("ConfigMap/c; why is not among"), "{none}");
        assert!(!none.contains("no room"), "{none}");
        // A file that cannot be read has no object.
        let unread = report(&[], &["amf/x.yaml:1: not YAML", "upf/y.yaml:7: not YAML"]);
        let said = judge(&unread, false, "upf", true);
        assert_eq!((said.reason, said.deployed), ("NotSynced", false));
        assert!(
            said.message.ends_with("upf/y.yaml:7: not YAML"),
            "{}",
            said.message
        );
    }

    #[test]
    fn a_status_is_looked_for_from_the_package_up_to_the_root() {
        let all: Vec<&str> = upwards("sites/ran/upf").collect();
        assert_eq!(all, ["sites/ran/upf", "sites/ran", "sites", ""]);
        assert_eq!(inside("sites/ran/upf", "sites"), "ran/upf");
        assert_eq!(inside("upf", ""), "upf");
        assert_eq!(
            inside("upf", "upf"),
            "",
            "the cluster follows the package itself"
        );
        let own = report(&[("a", ObjectState::Failed, "a.yaml")], &[]);
        assert_eq!(judge(&own, false, "", true).reason, "ApplyFailed");
    }
}
