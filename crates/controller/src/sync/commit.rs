//! Commits `.status/sync-status.yaml` back to the branch, when it says something new. Blocks: git is another program.
//!
//! Never a force: where somebody pushed meanwhile, the branch is fetched, the commit made again on its new end, and pushed
//! again. Credentials that may only read are an answer, not an error.

use std::thread;

use mooring_api::kinds::configsync::{SYNC_STATUS_FILE, SyncStatus};
use mooring_package::git::{self, Commit, Files, Git, Mirror, Put, Update};
use mooring_package::{located, yaml};

use super::gather::Snapshot;
use super::report::Committed;
use super::settings::Settings;

/// Commits, where it differs from what the branch says.
pub(crate) fn commit(
    git: &Git,
    snapshot: &Snapshot,
    settings: &Settings,
    status: &SyncStatus,
) -> Result<Committed, git::Error> {
    if settings.revision.is_some() {
        return Ok(no(
            "a revision is followed, and only a branch can be committed to",
        ));
    }
    let (dir, name) = SYNC_STATUS_FILE
        .split_once('/')
        .unwrap_or(("", SYNC_STATUS_FILE));
    let place = match settings.repository.directory.as_str() {
        "" => dir.to_owned(),
        above => format!("{above}/{dir}"),
    };
    let mut mirror = snapshot.mirror.clone();
    let mut nth = 0;
    loop {
        match try_once(&mirror, settings, status, &place, name) {
            Ok(committed) => return Ok(committed),
            Err(git::Error::Moved { .. }) if nth < git.tries => {
                thread::sleep((git.pause)(nth));
                nth += 1;
                mirror.fetch()?;
            }
            Err(error @ (git::Error::Denied { .. } | git::Error::Refused { .. })) => {
                return Ok(no(&format!("{error}; {}", error.help())));
            }
            Err(error) => return Err(error),
        }
    }
}

fn no(why: &str) -> Committed {
    Committed::No {
        reason: "StatusNotCommitted",
        message: format!("{why}. Syncing goes on; only the management side does not learn of it."),
    }
}

fn try_once(
    mirror: &Mirror,
    settings: &Settings,
    status: &SyncStatus,
    place: &str,
    name: &str,
) -> Result<Committed, git::Error> {
    let branch = &settings.repository.branch;
    let Some(end) = mirror.branch(branch).map(|end| end.commit.clone()) else {
        return Ok(no(&format!("the branch {branch} is gone")));
    };
    let mut files = mirror.read(&end, place)?.unwrap_or_default();
    if let Some(before) = files.get(name).and_then(|bytes| parse(bytes)) {
        let other = &before.status.cluster;
        if !other.is_empty() && *other != status.status.cluster {
            return Ok(no(&format!("the file there is of the cluster {other}")));
        }
        if status.says_the_same_as(&before) {
            return Ok(Committed::Yes);
        }
    }
    files.insert(name.to_owned(), text(status).into_bytes());
    let commit = mirror.commit(&Commit {
        parents: vec![end],
        puts: vec![Put::Directory {
            path: place.to_owned(),
            files,
            keep: Vec::new(),
        }],
        message: message(status),
    })?;
    mirror.push(&[Update::Advance {
        name: format!("refs/heads/{branch}"),
        to: commit,
    }])?;
    Ok(Committed::Yes)
}

/// As every file of ours.
fn text(status: &SyncStatus) -> String {
    let value = serde_json::to_value(status).expect("its keys are strings");
    yaml(&value)
}

fn parse(bytes: &[u8]) -> Option<SyncStatus> {
    // Under a name that is not hidden, so that it is read.
    let files = Files::from([("status.yaml".to_owned(), bytes.to_vec())]);
    let (objects, _) = located(&files);
    objects
        .iter()
        .find_map(|object| SyncStatus::read(&object.value))
}

fn message(status: &SyncStatus) -> String {
    let report = &status.status;
    let commit = report.sync.commit.get(..12).unwrap_or("nothing");
    let how = if status.is_synced() {
        "has"
    } else {
        "does not have all of"
    };
    format!("status: {} {how} {commit}\n", report.cluster)
}

#[cfg(test)]
mod tests {
    use mooring_api::ObjectRef;
    use mooring_api::kinds::configsync::{ObjectReport, ObjectState, SyncReport};

    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let status = SyncStatus::new(SyncReport {
            format: SyncStatus::FORMAT,
            cluster: "edge01".to_owned(),
            objects: vec![ObjectReport {
                object: ObjectRef::new("v1", "ConfigMap", "a").within("upf"),
                state: ObjectState::Applied,
                file: "a.yaml".to_owned(),
            }],
            errors: vec!["a: \"quoted\" # and more\nlines".to_owned()],
            ..SyncReport::default()
        });
        assert_eq!(parse(text(&status).as_bytes()), Some(status));
        assert_eq!(parse(b"a: ["), None);
    }
}
