//! Says what a pass came to: the status of the RootSync, and the file that is committed back. Pure, but for the writing.
//!
//! Conditions, as users of Config Sync know them, and one of ours:
//!
//! | type | True means |
//! |---|---|
//! | Synced | everything of the commit is in the cluster (ours, and the seed's) |
//! | Syncing | something is tried again by itself |
//! | Stalled | nothing goes on until somebody edits something |
//! | Reconciling | objects that left are on their way out |
//! | StatusCommitted | the file in Git says all this; only where asked |
//!
//! Easy to get wrong: a pass that found nothing new must give the same status, times included, or every poll would write.

use std::collections::BTreeSet;

use mooring_api::kinds::StatusCondition;
use mooring_api::kinds::configsync::{
    GitStatus, ObjectCounts, ObjectReport, ObjectState, RootSyncStatus, SourceStatus, SyncError,
    SyncReport, SyncResource, SyncStatus, SyncedCommit, SyncedStatus,
};
use mooring_api::{Finding, ObjectRef, Status};

use super::decide::Failure;
use super::object::Key;

/// How many errors are listed; the message says how many there are.
const LISTED: usize = 20;

/// What a pass came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pass {
    /// What is wrong with the RootSync itself.
    pub(crate) refused: Vec<Finding>,
    /// What was read from Git; empty when it could not be.
    pub(crate) commit: String,
    /// Why that is not applied.
    pub(crate) unread: Option<Unread>,
    /// What is in the cluster; None while nothing was ever applied by this process.
    pub(crate) synced: Option<Synced>,
    /// What became of committing it back; None where that is not asked.
    pub(crate) committed: Option<Committed>,
}

/// Why a source is not applied.
#[derive(Clone, Debug)]
pub(crate) struct Unread {
    pub(crate) reason: String,
    pub(crate) findings: Vec<Finding>,
    pub(crate) transient: bool,
}

/// What is in the cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Synced {
    pub(crate) commit: String,
    /// The commit that this content came with.
    pub(crate) since: String,
    pub(crate) content: String,
    pub(crate) wanted: Vec<(Key, String, String)>,
    pub(crate) failures: Vec<Failure>,
    pub(crate) going: BTreeSet<Key>,
    /// What left Git and waits for the failures.
    pub(crate) leaving: Vec<(Key, String)>,
}

/// What became of committing back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Committed {
    /// The file says it.
    Yes,
    /// It cannot be; a finding's text.
    No {
        reason: &'static str,
        message: String,
    },
}

/// From where, for the status.
pub(crate) fn git_status(settings: &super::settings::Settings) -> GitStatus {
    GitStatus {
        repo: settings.repository.to_string(),
        branch: settings.repository.branch.clone(),
        revision: settings
            .revision
            .clone()
            .unwrap_or_else(|| "HEAD".to_owned()),
        dir: settings.repository.directory.clone(),
    }
}

/// The new status from the old one.
pub(crate) fn status(
    before: &RootSyncStatus,
    pass: &Pass,
    git: Option<GitStatus>,
    generation: Option<i64>,
    now: &str,
) -> RootSyncStatus {
    let mut after = before.clone();
    after.observed_generation = generation;
    if pass.refused.is_empty() {
        let mut source = before.source.clone().unwrap_or_default();
        source.git_status.clone_from(&git);
        if !pass.commit.is_empty() {
            source.commit.clone_from(&pass.commit);
        }
        let unread = pass.unread.iter().flat_map(|unread| &unread.findings);
        source.errors = errors(unread.map(|finding| (finding, "")));
        after.source = Some(dated_source(before.source.as_ref(), source, now));
    }
    if let Some(synced) = &pass.synced {
        let failed = u32::try_from(synced.failures.len()).unwrap_or(u32::MAX);
        let wanted = u32::try_from(synced.wanted.len()).unwrap_or(u32::MAX);
        let of_git = synced
            .failures
            .iter()
            .filter(|failure| !failure.file.is_empty());
        let sync = SyncedStatus {
            git_status: git,
            commit: synced.commit.clone(),
            last_update: before
                .sync
                .as_ref()
                .and_then(|sync| sync.last_update.clone()),
            errors: errors(
                synced
                    .failures
                    .iter()
                    .map(|f| (&f.finding, f.file.as_str())),
            ),
            objects: Some(ObjectCounts {
                wanted,
                applied: wanted.saturating_sub(u32::try_from(of_git.count()).unwrap_or(u32::MAX)),
                failed,
            }),
        };
        let same = before.sync.as_ref() == Some(&sync);
        after.sync = Some(SyncedStatus {
            last_update: if same {
                sync.last_update.clone()
            } else {
                Some(now.to_owned())
            },
            ..sync
        });
        if synced.failures.is_empty() {
            after.last_synced_commit.clone_from(&synced.commit);
        }
    }
    let wanted = conditions(pass);
    let kept = wanted.iter().any(|c| c.kind == "StatusCommitted") || pass.refused.is_empty();
    after
        .conditions
        .retain(|c| c.kind != "StatusCommitted" || !kept);
    for condition in wanted {
        let old = before.conditions.iter().find(|c| c.kind == condition.kind);
        let since = old.filter(|old| old.status == condition.status);
        let since = since.and_then(|old| old.last_transition_time.clone());
        let condition = StatusCondition {
            last_transition_time: since.or_else(|| Some(now.to_owned())),
            observed_generation: generation,
            ..condition
        };
        after.conditions.retain(|c| c.kind != condition.kind);
        after.conditions.push(condition);
    }
    after.conditions.sort_by(|a, b| a.kind.cmp(&b.kind));
    after
}

fn dated_source(before: Option<&SourceStatus>, after: SourceStatus, now: &str) -> SourceStatus {
    if before == Some(&after) {
        return after;
    }
    SourceStatus {
        last_update: Some(now.to_owned()),
        ..after
    }
}

/// What holds after a pass.
fn conditions(pass: &Pass) -> Vec<StatusCondition> {
    let mut all = Vec::new();
    let mut say = |kind: &str, holds: bool, reason: &str, message: String| {
        all.push(StatusCondition {
            kind: kind.to_owned(),
            status: if holds { Status::True } else { Status::False },
            reason: reason.to_owned(),
            message,
            last_transition_time: None,
            observed_generation: None,
        });
    };
    let quiet = || "Nothing to do.".to_owned();
    if let Some(first) = pass.refused.first() {
        let text = told(&pass.refused);
        say("Synced", false, first.code.as_str(), text.clone());
        say("Stalled", true, first.code.as_str(), text);
        say("Syncing", false, "Stalled", quiet());
        say("Reconciling", false, "Stalled", quiet());
        return all;
    }
    let going = pass.synced.as_ref().map_or(0, |synced| synced.going.len());
    if let Some(unread) = &pass.unread {
        let text = format!("{} The last good commit stays.", told(&unread.findings));
        say("Synced", false, &unread.reason, text.clone());
        if unread.transient {
            say("Stalled", false, "Retrying", quiet());
            say(
                "Syncing",
                true,
                &unread.reason,
                "Tried again at every period.".to_owned(),
            );
        } else {
            say("Stalled", true, &unread.reason, text);
            say("Syncing", false, "Stalled", quiet());
        }
    } else if let Some(synced) = &pass.synced {
        match synced.failures.first() {
            None => {
                let count = synced.wanted.len();
                let text = format!(
                    "{count} objects of {} are in the cluster.",
                    short(&synced.commit)
                );
                say("Synced", true, "Synced", text);
                say("Syncing", false, "Synced", quiet());
            }
            Some(first) => {
                let findings: Vec<Finding> =
                    synced.failures.iter().map(|f| f.finding.clone()).collect();
                let count = findings.len();
                let text = format!(
                    "{count} objects of {} failed; nothing that left Git is removed before they are applied. {}",
                    short(&synced.commit),
                    told(&findings)
                );
                say("Synced", false, first.finding.code.as_str(), text);
                say(
                    "Syncing",
                    true,
                    "Retrying",
                    "Tried again at every period.".to_owned(),
                );
            }
        }
        say("Stalled", false, "Synced", quiet());
    }
    if going > 0 {
        let text = format!("{going} objects were deleted and wait for their finalizers.");
        say("Reconciling", true, "Removing", text);
    } else {
        say("Reconciling", false, "Done", quiet());
    }
    match &pass.committed {
        None => {}
        Some(Committed::Yes) => {
            say(
                "StatusCommitted",
                true,
                "Committed",
                "The branch says what this status says.".to_owned(),
            );
        }
        Some(Committed::No { reason, message }) => {
            say("StatusCommitted", false, reason, message.clone());
        }
    }
    all
}

/// The first finding in full, and how many more there are.
fn told(findings: &[Finding]) -> String {
    let Some(first) = findings.first() else {
        return String::new();
    };
    let mut text = sentence(first);
    if findings.len() > 1 {
        text = format!("{text} ({} more.)", findings.len() - 1);
    }
    text
}

fn sentence(finding: &Finding) -> String {
    let mut text = String::new();
    if let Some(at) = &finding.location {
        text = format!("{}:{}: ", at.file, at.line);
    }
    if let Some(object) = finding.object.as_ref().filter(|o| !o.name.is_empty()) {
        text = format!("{text}{object}: ");
    }
    format!(
        "{text}{}. {}",
        finding.message.trim_end_matches('.'),
        finding.help
    )
    .trim()
    .to_owned()
}

fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

fn errors<'a>(findings: impl Iterator<Item = (&'a Finding, &'a str)>) -> Vec<SyncError> {
    let error = |(finding, file): (&Finding, &str)| {
        let at = finding.location.as_ref().map(|at| at.file.as_str());
        let path = at.unwrap_or(file);
        let resource = finding.object.as_ref().map(|object| resource(object, path));
        let only = || SyncResource {
            source_path: path.to_owned(),
            ..SyncResource::default()
        };
        let resource = resource.or_else(|| (!path.is_empty()).then(only));
        SyncError {
            code: finding.code.to_string(),
            error_message: sentence(finding),
            resources: resource.into_iter().collect(),
        }
    };
    findings.take(LISTED).map(error).collect()
}

fn resource(object: &ObjectRef, path: &str) -> SyncResource {
    let (group, version) = object
        .api_version
        .split_once('/')
        .unwrap_or(("", &object.api_version));
    SyncResource {
        source_path: path.to_owned(),
        group: group.to_owned(),
        version: version.to_owned(),
        kind: object.kind.clone(),
        namespace: object.namespace.clone(),
        name: object.name.clone(),
    }
}

/// What the cluster commits back; None while there is nothing to say.
pub(crate) fn file(pass: &Pass, cluster: &str, now: &str) -> Option<SyncStatus> {
    let synced = pass.synced.clone();
    if synced.is_none() && pass.unread.is_none() {
        return None;
    }
    let synced = synced.unwrap_or_default();
    let failed: BTreeSet<&Key> = synced.failures.iter().map(|failure| &failure.key).collect();
    let wanted = synced
        .wanted
        .iter()
        .map(|(key, version, file)| ObjectReport {
            object: key.reference(version),
            state: if failed.contains(key) {
                ObjectState::Failed
            } else {
                ObjectState::Applied
            },
            file: file.clone(),
        });
    let leaving = synced.leaving.iter().map(|(key, version)| ObjectReport {
        object: key.reference(version),
        state: ObjectState::Leaving,
        file: String::new(),
    });
    let unread = pass
        .unread
        .iter()
        .flat_map(|unread| &unread.findings)
        .map(sentence);
    let failures = synced
        .failures
        .iter()
        .map(|failure| sentence(&failure.finding));
    let conditions = conditions(pass)
        .into_iter()
        .filter(|c| c.kind == "Synced" || c.kind == "Stalled");
    Some(SyncStatus::new(SyncReport {
        format: SyncStatus::FORMAT,
        cluster: cluster.to_owned(),
        sync: SyncedCommit {
            commit: synced.since.clone(),
            content: synced.content.clone(),
            last_sync_time: now.to_owned(),
        },
        // A message may name a commit, and the one that this file is in has another name.
        conditions: conditions
            .map(|c| StatusCondition {
                message: String::new(),
                ..c
            })
            .collect(),
        objects: wanted.chain(leaving).collect(),
        errors: unread.chain(failures).take(LISTED).collect(),
    }))
}

#[cfg(test)]
mod tests {
    use mooring_api::Code;

    use super::*;

    const ONE: &str = "2026-01-24T10:30:00Z";
    const TWO: &str = "2026-01-24T10:31:00Z";

    fn key(name: &str) -> Key {
        Key {
            group: String::new(),
            kind: "ConfigMap".to_owned(),
            namespace: "upf".to_owned(),
            name: name.to_owned(),
        }
    }

    fn synced(commit: &str) -> Pass {
        Pass {
            commit: commit.to_owned(),
            synced: Some(Synced {
                commit: commit.to_owned(),
                since: commit.to_owned(),
                content: "sha256:1".to_owned(),
                wanted: vec![(key("a"), "v1".to_owned(), "a.yaml".to_owned())],
                ..Synced::default()
            }),
            ..Pass::default()
        }
    }

    fn holds(status: &RootSyncStatus, kind: &str) -> Option<(bool, String)> {
        let found = status.conditions.iter().find(|c| c.kind == kind)?;
        Some((found.status == Status::True, found.reason.clone()))
    }

    fn after(before: &RootSyncStatus, pass: &Pass, now: &str) -> RootSyncStatus {
        status(before, pass, Some(GitStatus::default()), Some(1), now)
    }

    #[test]
    fn a_pass_without_news_changes_no_byte_of_the_status() {
        let first = after(&RootSyncStatus::default(), &synced("aaaa"), ONE);
        assert_eq!(holds(&first, "Synced"), Some((true, "Synced".to_owned())));
        assert_eq!(holds(&first, "Stalled"), Some((false, "Synced".to_owned())));
        assert_eq!(first.last_synced_commit, "aaaa");
        assert_eq!(after(&first, &synced("aaaa"), TWO), first);
        let next = after(&first, &synced("bbbb"), TWO);
        let sync = next.sync.as_ref().expect("it synced");
        assert_eq!(
            (sync.commit.as_str(), sync.last_update.as_deref()),
            ("bbbb", Some(TWO))
        );
        let since = next.conditions.iter().find(|c| c.kind == "Synced");
        assert_eq!(
            since.and_then(|c| c.last_transition_time.as_deref()),
            Some(ONE)
        );
    }

    #[test]
    fn a_bad_commit_stalls_and_keeps_the_last_good_one() {
        let first = after(&RootSyncStatus::default(), &synced("aaaa"), ONE);
        let finding = Finding::error(Code::YamlInvalid, "expected a key").located("x.yaml", 7, 3);
        let bad = Pass {
            commit: "bbbb".to_owned(),
            unread: Some(Unread {
                reason: "YamlInvalid".to_owned(),
                findings: vec![finding],
                transient: false,
            }),
            ..synced("aaaa")
        };
        let next = after(&first, &bad, TWO);
        assert_eq!(
            holds(&next, "Stalled"),
            Some((true, "YamlInvalid".to_owned()))
        );
        let source = next.source.as_ref().expect("it was read");
        assert_eq!(source.commit, "bbbb");
        assert!(source.errors[0].error_message.contains("x.yaml:7"));
        assert_eq!(source.errors[0].resources[0].source_path, "x.yaml");
        assert_eq!(next.sync.as_ref().map(|s| s.commit.as_str()), Some("aaaa"));
        let file = file(&bad, "edge01", TWO).expect("it is told");
        assert!(!file.is_synced());
        assert_eq!(file.status.sync.commit, "aaaa");
    }

    #[test]
    fn git_away_is_retried_and_not_stalled() {
        let away = Pass {
            unread: Some(Unread {
                reason: "GitUnreachable".to_owned(),
                findings: vec![Finding::error(Code::SourceUnreadable, "no answer")],
                transient: true,
            }),
            ..Pass::default()
        };
        let next = after(
            &after(&RootSyncStatus::default(), &synced("aaaa"), ONE),
            &away,
            TWO,
        );
        assert_eq!(
            holds(&next, "Stalled"),
            Some((false, "Retrying".to_owned()))
        );
        assert_eq!(
            holds(&next, "Synced"),
            Some((false, "GitUnreachable".to_owned()))
        );
        assert_eq!(next.source.map(|s| s.commit), Some("aaaa".to_owned()));
        assert_eq!(next.last_synced_commit, "aaaa");
    }

    #[test]
    fn a_failed_object_is_counted_and_named_with_its_file() {
        let mut pass = synced("aaaa");
        let finding = Finding::error(Code::ApplyRefused, "no").on(&key("a").reference("v1"));
        if let Some(synced) = &mut pass.synced {
            synced.failures.push(Failure {
                key: key("a"),
                version: "v1".to_owned(),
                file: "a.yaml".to_owned(),
                finding,
            });
        }
        let next = after(&RootSyncStatus::default(), &pass, ONE);
        let sync = next.sync.as_ref().expect("it tried");
        let counts = sync.objects.expect("counted");
        assert_eq!((counts.wanted, counts.applied, counts.failed), (1, 0, 1));
        assert_eq!(sync.errors[0].resources[0].source_path, "a.yaml");
        assert_eq!(next.last_synced_commit, "");
        let file = file(&pass, "edge01", ONE).expect("it is told");
        assert_eq!(file.status.objects[0].state, ObjectState::Failed);
    }

    #[test]
    fn the_file_of_an_unchanged_pass_says_the_same() {
        let one = file(&synced("aaaa"), "edge01", ONE).expect("it is told");
        let two = file(&synced("bbbb"), "edge01", TWO).expect("it is told");
        assert!(one.is_synced());
        assert!(two.says_the_same_as(&one));
    }

    #[test]
    fn committing_back_is_a_condition_only_where_asked() {
        let mut pass = synced("aaaa");
        pass.committed = Some(Committed::No {
            reason: "StatusNotCommitted",
            message: "read-only".to_owned(),
        });
        let told = after(&RootSyncStatus::default(), &pass, ONE);
        assert_eq!(
            holds(&told, "StatusCommitted"),
            Some((false, "StatusNotCommitted".to_owned()))
        );
        assert_eq!(holds(&told, "Synced"), Some((true, "Synced".to_owned())));
        assert_eq!(
            holds(&after(&told, &synced("aaaa"), TWO), "StatusCommitted"),
            None
        );
    }
}
