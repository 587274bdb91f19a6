//! The files of sriov-cni, as it reads and writes them.
//!
//! | file below `/var/lib/cni/sriov` | what is in it |
//! |---|---|
//! | `<container>-<ifname>` | the configuration with the VF's settings of before, as JSON |
//! | `pci/<BDF>` | the path of the namespace that has the VF |
//! | `pci/vf_lock/<BDF>.lock` | nothing: it is locked |
//!
//! Ours are written ahead of the first change, the original's after the last one. Easy to get wrong: names of fields are those of a Go
//! structure, with capital letters where it has no tag.

use std::path::{Path, PathBuf};
use std::time::Duration;

use mooring_api::net::VfLinkState;
use mooring_attach::cni::CniError;
use mooring_host::Netns;
use mooring_host::file::{self, Lock};
use mooring_host::pci::{Bdf, VfOf};
use mooring_host::record::Record;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::keys::Wish;
use crate::call::Call;

/// As long as the original waits.
const PATIENCE: Duration = Duration::from_mins(1);

/// The VF before anything was changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Original {
    #[serde(rename = "HostIFName")]
    pub(super) host_ifname: String,
    #[serde(rename = "SpoofChk")]
    pub(super) spoofchk: bool,
    #[serde(rename = "Trust")]
    pub(super) trust: bool,
    #[serde(rename = "AdminMAC")]
    pub(super) admin_mac: String,
    #[serde(rename = "EffectiveMAC")]
    pub(super) effective_mac: String,
    #[serde(rename = "Vlan")]
    pub(super) vlan: u16,
    #[serde(rename = "VlanQoS")]
    pub(super) vlan_qos: u8,
    #[serde(rename = "VlanProto")]
    pub(super) vlan_proto: u16,
    #[serde(rename = "MinTxRate")]
    pub(super) min_tx_rate: u32,
    #[serde(rename = "MaxTxRate")]
    pub(super) max_tx_rate: u32,
    #[serde(rename = "LinkState")]
    pub(super) link_state: u32,
    #[serde(rename = "MTU")]
    pub(super) mtu: u32,
}

impl Original {
    fn of(record: &Record) -> Self {
        let link = &record.before.link;
        let vf = record.vf.as_ref().map(|b| b.vf.clone()).unwrap_or_default();
        let text = |mac: Option<mooring_api::Mac>| mac.map(|m| m.to_string()).unwrap_or_default();
        Self {
            host_ifname: link.name.clone(),
            spoofchk: vf.spoof_check.unwrap_or_default(),
            trust: vf.trust.unwrap_or_default(),
            admin_mac: text(vf.mac),
            effective_mac: text(link.mac),
            vlan: vf.vlan.id,
            vlan_qos: vf.vlan.qos,
            vlan_proto: vf.vlan.protocol.ethertype(),
            min_tx_rate: vf.rate.min,
            max_tx_rate: vf.rate.max,
            link_state: match vf.link_state {
                None | Some(VfLinkState::Auto) => 0,
                Some(VfLinkState::Enable) => 1,
                Some(VfLinkState::Disable) => 2,
            },
            mtu: link.mtu,
        }
    }
}

/// What we need of a cached configuration.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Cached {
    #[serde(default)]
    pub(super) name: String,
    #[serde(default, rename = "OrigVfState")]
    pub(super) original: Original,
    #[serde(default, rename = "Master")]
    pub(super) master: String,
    #[serde(rename = "deviceID")]
    pub(super) device: Bdf,
    #[serde(default, rename = "VFID")]
    pub(super) vf: u32,
    #[serde(default)]
    pub(super) vlan: Option<i64>,
    #[serde(default)]
    pub(super) min_tx_rate: Option<i64>,
    #[serde(default)]
    pub(super) max_tx_rate: Option<i64>,
    #[serde(default)]
    pub(super) spoofchk: String,
    #[serde(default)]
    pub(super) trust: String,
    #[serde(default)]
    pub(super) link_state: String,
    /// Written by us, with a record beside it. The record goes first, so where it is gone the VF is home.
    #[serde(default)]
    pub(super) recorded: bool,
}

/// The files of one attachment.
pub(super) struct State {
    cache: PathBuf,
    allocation: PathBuf,
    lock: PathBuf,
}

/// Where they all are.
pub(super) fn dir(call: &Call) -> PathBuf {
    call.paths.data.join("sriov")
}

/// The name of an attachment's cached configuration.
pub(super) fn cache_name(container: &str, ifname: &str) -> String {
    format!("{container}-{ifname}")
}

/// A cached configuration; none where there is none, and none with a log line where it is no such thing.
pub(super) fn cached(call: &Call, path: &Path) -> Result<Option<Cached>, CniError> {
    let Some(text) = file::read(path).map_err(io("read", path))? else {
        return Ok(None);
    };
    match serde_json::from_slice(&text) {
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
        let dir = dir(call);
        let pci = dir.join("pci");
        Self {
            cache: dir.join(name),
            lock: pci.join("vf_lock").join(format!("{device}.lock")),
            allocation: pci.join(device.as_str()),
        }
    }

    /// Whether the cached configuration is this attachment's.
    pub(super) fn is_of(&self, container: &str, ifname: &str) -> bool {
        let name = cache_name(container, ifname);
        self.cache
            .file_name()
            .is_some_and(|file| file == name.as_str())
    }

    /// Keeps others, ours and theirs, from the VF.
    pub(super) fn lock(&self) -> Result<Lock, CniError> {
        Lock::exclusive(&self.lock, PATIENCE)
            .map_err(|e| CniError::try_again("another process sets up this VF").because(&e))
    }

    /// The namespace that has the VF, by the allocation file.
    pub(super) fn allocated_to(&self) -> Result<Option<PathBuf>, CniError> {
        let text = file::read(&self.allocation).map_err(io("read", &self.allocation))?;
        let text = text.map(|text| String::from_utf8_lossy(&text).trim().to_owned());
        Ok(text.filter(|text| !text.is_empty()).map(PathBuf::from))
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
        file::write_atomic(&self.cache, text.as_bytes()).map_err(io("write", &self.cache))?;
        let netns = pod.path().display().to_string();
        file::write_atomic(&self.allocation, netns.as_bytes())
            .map_err(io("write", &self.allocation))
    }

    /// Removes both; the allocation only where it is this namespace's, or that of one that is gone.
    pub(super) fn remove(&self, pod: &Netns) -> Result<(), CniError> {
        self.remove_of(Some(pod.path()))
    }

    /// The same for a namespace that may have ended.
    pub(super) fn remove_of(&self, pod: Option<&Path>) -> Result<(), CniError> {
        if let Some(path) = self.allocated_to()?
            && (Some(path.as_path()) == pod || Netns::open(&path).is_err())
        {
            file::remove(&self.allocation).map_err(io("remove", &self.allocation))?;
        }
        self.remove_cache()
    }

    /// Removes the cached configuration alone: the VF is another pod's by now.
    pub(super) fn remove_cache(&self) -> Result<(), CniError> {
        file::remove(&self.cache).map_err(io("remove", &self.cache))?;
        Ok(())
    }
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
        // Not a field of theirs; a Go decoder passes over it.
        ("recorded", Value::from(true)),
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
