//! The files of sriov-cni ([`mooring_host::foreign::sriov`]) for one call: written by ADD, removed by DEL.
//!
//! Ours are written ahead of the first change, the original's after the last one. Easy to get wrong: the allocation of a namespace that
//! lives is another pod's, and stays.

use std::path::{Path, PathBuf};

use mooring_attach::cni::CniError;
use mooring_host::Netns;
use mooring_host::file::{self, Lock};
use mooring_host::foreign::sriov::{self, Files, Original};
use mooring_host::pci::{Bdf, VfOf};
use mooring_host::record::{Owner, Record};
use serde_json::Value;

use super::keys::Wish;
use crate::call::Call;

pub(super) use mooring_host::foreign::sriov::{Cached, cache_name};

/// The files of one attachment.
pub(super) struct State(Files);

/// Where they all are.
pub(super) fn dir(call: &Call) -> PathBuf {
    sriov::dir(&call.paths.data)
}

/// A cached configuration; none where there is none, and none with a log line where it is no such thing.
pub(super) fn cached(call: &Call, path: &Path) -> Result<Option<Cached>, CniError> {
    let Some(text) = file::read(path).map_err(io("read", path))? else {
        return Ok(None);
    };
    match Cached::parse(&text) {
        Ok(cached) => Ok(Some(cached)),
        Err(error) => {
            call.log(format_args!("{} is left alone: {error}", path.display()));
            Ok(None)
        }
    }
}

impl State {
    /// The files of a call and a VF.
    pub(super) fn new(call: &Call, device: &Bdf) -> Self {
        Self::named(call, &cache_name(call.container(), call.ifname()), device)
    }

    /// The files of an attachment by the name of its cache.
    pub(super) fn named(call: &Call, name: &str, device: &Bdf) -> Self {
        Self(Files::new(&call.paths.data, name, device))
    }

    /// Whether the cached configuration is this attachment's.
    pub(super) fn is_of(&self, container: &str, ifname: &str) -> bool {
        let name = cache_name(container, ifname);
        self.0
            .cache
            .file_name()
            .is_some_and(|file| file == name.as_str())
    }

    /// Keeps others, ours and theirs, from the VF.
    pub(super) fn lock(&self) -> Result<Lock, CniError> {
        self.0
            .lock()
            .map_err(|e| CniError::try_again("another process sets up this VF").because(&e))
    }

    /// The namespace that has the VF, by the allocation file.
    pub(super) fn allocated_to(&self) -> Result<Option<PathBuf>, CniError> {
        let allocated = self.0.allocated_to();
        allocated.map_err(io("read", &self.0.allocation))
    }

    /// Refuses a VF that a living namespace has, other than this pod's.
    pub(super) fn check_free(&self, pod: &Netns) -> Result<(), CniError> {
        let Some(path) = self.allocated_to()? else {
            return Ok(());
        };
        match Netns::open(&path) {
            Ok(netns) if netns.id() != pod.id() => Err(CniError::try_again(format!(
                "the VF belongs to a pod that is running, with network namespace {}: wait until it has ended",
                path.display()
            ))),
            _ => Ok(()),
        }
    }

    /// Writes both files.
    pub(super) fn write(
        &self,
        call: &Call,
        wish: &Wish,
        of: &VfOf,
        record: &Record,
        pod: &Netns,
    ) -> Result<(), CniError> {
        let text = net_conf(call, wish, of, record).to_string();
        file::write_atomic(&self.0.cache, text.as_bytes()).map_err(io("write", &self.0.cache))?;
        let netns = pod.path().display().to_string();
        file::write_atomic(&self.0.allocation, netns.as_bytes())
            .map_err(io("write", &self.0.allocation))
    }

    /// Removes both; the allocation only where it is this namespace's, or that of one that is gone.
    pub(super) fn remove(&self, pod: &Netns) -> Result<(), CniError> {
        self.remove_of(Some(pod.path()), None)
    }

    /// The same for a namespace that may have ended, and for that of the owner whose VF is home: the call need not name it.
    pub(super) fn remove_of(
        &self,
        pod: Option<&Path>,
        owner: Option<&Owner>,
    ) -> Result<(), CniError> {
        if let Some(path) = self.allocated_to()?
            && (Some(path.as_path()) == pod || is_over(&path, owner))
        {
            file::remove(&self.0.allocation).map_err(io("remove", &self.0.allocation))?;
        }
        self.remove_cache()
    }

    /// Removes the cached configuration alone: the VF is another pod's by now.
    pub(super) fn remove_cache(&self) -> Result<(), CniError> {
        file::remove(&self.0.cache).map_err(io("remove", &self.0.cache))?;
        Ok(())
    }
}

/// Whether nobody has a VF by an allocation that names this path: its namespace is gone, or is that of an owner who gave the VF back.
fn is_over(path: &Path, owner: Option<&Owner>) -> bool {
    let Ok(netns) = Netns::open(path) else {
        return true;
    };
    // By both: a path may lead to another namespace by now, and so may an id.
    owner.is_some_and(|owner| owner.netns == path && owner.netns_id == netns.id())
}

fn io<'a>(doing: &'a str, path: &'a Path) -> impl FnOnce(std::io::Error) -> CniError + 'a {
    move |e| CniError::io(format!("cannot {doing} {}", path.display()), e)
}

/// The configuration as sriov-cni keeps it.
fn net_conf(call: &Call, wish: &Wish, of: &VfOf, record: &Record) -> Value {
    let mut map = call.config().raw.clone();
    for key in ["mac", "prevResult"] {
        map.remove(key);
    }
    let original = Original::of(record);
    let raw = |key: &str| call.config().raw.get(key).cloned().unwrap_or(Value::Null);
    let fields = [
        (
            "OrigVfState",
            serde_json::to_value(original).unwrap_or_default(),
        ),
        (
            "Master",
            Value::from(of.names.first().cloned().unwrap_or_default()),
        ),
        (
            "MAC",
            Value::from(wish.mac.map(|m| m.to_string()).unwrap_or_default()),
        ),
        ("MTU", Value::Null),
        ("vlan", raw("vlan")),
        ("vlanQoS", raw("vlanQoS")),
        ("vlanProto", raw("vlanProto")),
        ("deviceID", Value::from(wish.device.as_str())),
        ("VFID", Value::from(of.index)),
        ("min_tx_rate", raw("min_tx_rate")),
        ("max_tx_rate", raw("max_tx_rate")),
        // Not fields of theirs; a Go decoder passes over them.
        ("recorded", Value::from(true)),
        (
            "recordOwner",
            serde_json::to_value(&record.owner).unwrap_or_default(),
        ),
    ];
    for (key, value) in fields {
        map.set(key, value);
    }
    // Under the names that a DEL looks for, however the configuration spells them.
    for key in ["name", "spoofchk", "trust", "link_state"] {
        if let Some(value) = call.config().raw.get(key) {
            map.set(key, value.clone());
        }
    }
    map.into()
}
