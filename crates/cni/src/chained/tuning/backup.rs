//! What an interface had before: `/run/cni/tuning/<container>_<ifname>.json`, as the reference plugin writes it.
//!
//! Written by ADD, read by DEL and swept by GC. We add who it is for, which the reference skips over; its own files say
//! nothing of the kind and are therefore never swept. Easy to get wrong: only what is changed is written down, so an
//! absent key is left alone and not reset.

use std::io;
use std::path::Path;

use mooring_api::net::Link;
use mooring_attach::cni::{Attachment, CniError};
use mooring_host::foreign::tuning::{At, Backup};
use mooring_host::{Netns, file};

use super::config::Wanted;
use crate::call::Call;

/// What is about to be changed, as it is now.
pub(super) fn of(link: &Link, wanted: &Wanted, call: &Call, netns: &Netns) -> Backup {
    Backup {
        network: call.config().name.clone(),
        container: call.container().to_owned(),
        ifname: call.ifname().to_owned(),
        netns: Some(At {
            path: netns.path().to_owned(),
            id: netns.id(),
        }),
        ..values(link, wanted)
    }
}

fn values(link: &Link, wanted: &Wanted) -> Backup {
    let mac = link.mac.filter(|_| wanted.mac.is_some());
    Backup {
        mac: mac.map(|mac| mac.to_string()).unwrap_or_default(),
        promisc: wanted.promiscuous.then_some(link.promiscuous),
        mtu: wanted.mtu.map_or(0, |_| link.mtu),
        allmulti: wanted.all_multicast.map(|_| link.all_multicast),
        tx_q_len: wanted.txqlen.map(|_| link.txqlen),
        ..Backup::default()
    }
}

/// Writes it down; what an earlier try wrote stays in force.
pub(super) fn keep(mut backup: Backup, path: &Path) -> Result<(), CniError> {
    if let Some(first) = read(path)? {
        backup.overruled_by(first);
    }
    file::write_atomic(path, &backup.to_bytes())
        .map_err(|e| CniError::io(format!("writing {}", path.display()), e))
}

/// `None` where there is none, and where what is there says nothing: a file that was half written.
pub(super) fn read(path: &Path) -> Result<Option<Backup>, CniError> {
    let bytes = file::read(path);
    let bytes = bytes.map_err(|e| CniError::io(format!("reading {}", path.display()), e))?;
    Ok(bytes.and_then(|bytes| Backup::parse(&bytes)))
}

/// Removes the file; absent is success.
pub(super) fn forget(path: &Path) -> Result<(), CniError> {
    let removed = file::remove(path).map(drop);
    let removed = match removed {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    };
    removed.map_err(|e| CniError::io(format!("removing {}", path.display()), e))
}

/// Ends the files of a network's attachments that are not valid.
pub(super) fn sweep(
    dir: &Path,
    network: &str,
    is_valid: impl Fn(&Attachment) -> bool,
    end: impl Fn(&Path, &Backup) -> Result<(), CniError>,
) -> Result<(), CniError> {
    let failed = |e: io::Error| CniError::io(format!("reading {}", dir.display()), e);
    let entries = match std::fs::read_dir(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(failed)?,
    };
    let mut errors = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_none_or(|e| e != "json") {
            continue;
        }
        let outcome = read(&path).and_then(|found| {
            let Some(backup) = found.filter(|b| b.network == network) else {
                return Ok(());
            };
            let own = Attachment {
                container: backup.container.clone(),
                ifname: backup.ifname.clone(),
            };
            if is_valid(&own) {
                Ok(())
            } else {
                end(&path, &backup)
            }
        });
        errors.extend(outcome.err());
    }
    CniError::all(errors).map_or(Ok(()), Err)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test makes its own files")]
mod tests {
    use mooring_api::Mac;

    use super::*;

    fn wanted() -> Wanted {
        Wanted {
            mac: Some(Mac::from([2, 0, 0, 0, 0, 9])),
            mtu: Some(1400),
            promiscuous: true,
            ..Wanted::default()
        }
    }

    fn link(last: u8, mtu: u32) -> Link {
        Link {
            mac: Some(Mac::from([2, 0, 0, 0, 0, last])),
            mtu,
            ..Link::default()
        }
    }

    #[test]
    fn only_what_changes_is_written_down_and_under_the_reference_plugins_keys() {
        let text = serde_json::to_string(&values(&link(1, 1500), &wanted())).unwrap();
        assert_eq!(
            text,
            r#"{"mac":"02:00:00:00:00:01","promisc":false,"mtu":1500}"#
        );
        let theirs =
            r#"{"mac":"02:00:00:00:00:01","mtu":1500,"allmulti":false,"txQLen":1000,"later":1}"#;
        let read: Backup = serde_json::from_str(theirs).unwrap();
        assert_eq!(read.changes().len(), 4);
        assert_eq!(read.tx_q_len, Some(1000));
    }

    #[test]
    fn the_first_tries_values_survive_a_second_try() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c1_net1.json");
        keep(values(&link(1, 1500), &wanted()), &path).unwrap();
        keep(values(&link(9, 1400), &wanted()), &path).unwrap();
        let kept = read(&path).unwrap().unwrap();
        assert_eq!(kept, values(&link(1, 1500), &wanted()));
        forget(&path).unwrap();
        forget(&path).unwrap();
        assert_eq!(read(&path).unwrap(), None);
    }

    #[test]
    fn a_half_written_file_restores_nothing_and_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c1_net1.json");
        std::fs::write(&path, "{\"mac\":").unwrap();
        assert_eq!(read(&path).unwrap(), None);
        keep(values(&link(1, 1500), &wanted()), &path).unwrap();
        assert!(read(&path).unwrap().is_some());
    }

    #[test]
    fn a_sweep_takes_files_of_its_network_that_are_not_valid() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        write(
            "a_net1.json",
            r#"{"mtu":1,"network":"n4","container":"a","ifname":"net1"}"#,
        );
        write(
            "b_net1.json",
            r#"{"mtu":1,"network":"n4","container":"b","ifname":"net1"}"#,
        );
        write(
            "c_net1.json",
            r#"{"mtu":1,"network":"n6","container":"c","ifname":"net1"}"#,
        );
        write("d_net1.json", r#"{"mtu":1}"#);
        write("e_net1.json", "");
        let forgotten = |path: &Path, _: &Backup| forget(path);
        sweep(dir.path(), "n4", |own| own.container == "a", forgotten).unwrap();
        let mut left: Vec<String> = std::fs::read_dir(dir.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(
            left,
            ["a_net1.json", "c_net1.json", "d_net1.json", "e_net1.json"]
        );
        sweep(&dir.path().join("absent"), "n4", |_| false, forgotten).unwrap();
    }
}
