//! The files of sriov-cni: which VF a pod has, and what that VF was like before.
//!
//! | file below `/var/lib/cni/sriov` | what is in it |
//! |---|---|
//! | `<container>-<ifname>` | the configuration with the VF's settings of before, as JSON: [`Cached`] |
//! | `pci/<BDF>` | the path of the namespace that has the VF |
//! | `pci/vf_lock/<BDF>.lock` | nothing: it is locked |
//!
//! Easy to get wrong: names of fields are those of a Go structure, with capital letters where it has no tag. And both an interface's
//! name and a container's id may have a dash, so the name of a cached configuration is compared whole and never taken apart.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mooring_api::net::VfLinkState;
use serde::{Deserialize, Serialize};

use crate::file::{self, Lock, LockError};
use crate::pci::Bdf;
use crate::record::{Owner, Record};

/// As long as the original waits.
const PATIENCE: Duration = Duration::from_mins(1);

/// The VF before anything was changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the names of another program's fields")]
pub struct Original {
    #[serde(rename = "HostIFName")]
    pub host_ifname: String,
    #[serde(rename = "SpoofChk")]
    pub spoofchk: bool,
    #[serde(rename = "Trust")]
    pub trust: bool,
    #[serde(rename = "AdminMAC")]
    pub admin_mac: String,
    #[serde(rename = "EffectiveMAC")]
    pub effective_mac: String,
    #[serde(rename = "Vlan")]
    pub vlan: u16,
    #[serde(rename = "VlanQoS")]
    pub vlan_qos: u8,
    #[serde(rename = "VlanProto")]
    pub vlan_proto: u16,
    #[serde(rename = "MinTxRate")]
    pub min_tx_rate: u32,
    #[serde(rename = "MaxTxRate")]
    pub max_tx_rate: u32,
    #[serde(rename = "LinkState")]
    pub link_state: u32,
    #[serde(rename = "MTU")]
    pub mtu: u32,
}

impl Original {
    /// As our record has it.
    pub fn of(record: &Record) -> Self {
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
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Cached {
    /// The network.
    #[serde(default)]
    pub name: String,
    /// The VF before.
    #[serde(default, rename = "OrigVfState")]
    pub original: Original,
    /// The physical function's interface.
    #[serde(default, rename = "Master")]
    pub master: String,
    /// The VF.
    #[serde(rename = "deviceID")]
    pub device: Bdf,
    /// Its number.
    #[serde(default, rename = "VFID")]
    pub vf: u32,
    /// Present where the configuration set it; so are the next five.
    #[serde(default)]
    pub vlan: Option<i64>,
    #[serde(default)]
    #[expect(missing_docs, reason = "see vlan")]
    pub min_tx_rate: Option<i64>,
    #[serde(default)]
    #[expect(missing_docs, reason = "see vlan")]
    pub max_tx_rate: Option<i64>,
    #[serde(default)]
    #[expect(missing_docs, reason = "see vlan")]
    pub spoofchk: String,
    #[serde(default)]
    #[expect(missing_docs, reason = "see vlan")]
    pub trust: String,
    #[serde(default)]
    #[expect(missing_docs, reason = "see vlan")]
    pub link_state: String,
    /// Written by us, with a record beside it. The record goes first, so where it is gone the VF is home.
    #[serde(default)]
    pub recorded: bool,
    /// Written by us as well: whose the record was, for a DEL that was cut short after the record went.
    #[serde(default, rename = "recordOwner")]
    pub owner: Option<Owner>,
}

impl Cached {
    /// Any bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        // As Go reads it, who wrote it: without regard to case.
        serde_json::from_slice(bytes).and_then(|value| mooring_attach::cni::read(&value))
    }
}

/// The namespace that an allocation file names; none in an empty one.
pub fn namespace(bytes: &[u8]) -> Option<PathBuf> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    (!text.is_empty()).then(|| PathBuf::from(text))
}

/// Where all of them are.
pub fn dir(data: &Path) -> PathBuf {
    data.join("sriov")
}

/// The name of an attachment's cached configuration.
pub fn cache_name(container: &str, ifname: &str) -> String {
    format!("{container}-{ifname}")
}

/// The files of one attachment and its VF.
#[derive(Clone, Debug)]
pub struct Files {
    /// The cached configuration.
    pub cache: PathBuf,
    /// Who has the VF.
    pub allocation: PathBuf,
    lock: PathBuf,
}

impl Files {
    /// By the name of the cached configuration.
    pub fn new(data: &Path, cache: &str, device: &Bdf) -> Self {
        let dir = dir(data);
        let pci = dir.join("pci");
        Self {
            cache: dir.join(cache),
            lock: pci.join("vf_lock").join(format!("{device}.lock")),
            allocation: pci.join(device.as_str()),
        }
    }

    /// Keeps others, ours and theirs, from the VF.
    pub fn lock(&self) -> Result<Lock, LockError> {
        Lock::exclusive(&self.lock, PATIENCE)
    }

    /// The namespace that has the VF.
    pub fn allocated_to(&self) -> io::Result<Option<PathBuf>> {
        let bytes = file::read(&self.allocation)?;
        Ok(bytes.and_then(|bytes| namespace(&bytes)))
    }
}
