//! AMD's mapping file: the NICs that are in pods, by what a device plugin calls them.
//!
//! ```text
//!  { "<deviceID>": { "hostInterfaceName": "rail0", "hostInterfaceIPs": ["10.0.0.0/31"], "state": "UP", "record": "pci-0000:3b:00.0" } }
//! ```
//!
//! `record` is ours and AMD's plugin passes over it: the device record that is the truth about this NIC. It is written before the entry and
//! goes after the NIC is home, so an entry whose record is gone has served, and nothing of it is put back. `restoring` is ours too: the
//! boot in which a DEL began to restore from an entry of AMD's. Easy to get wrong: an entry without `record` is AMD's own, and the only
//! memory of that NIC's addresses.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Paths;
use crate::file::{self, Lock, LockError};
use crate::record::Records;

/// How long another of our processes may have the file: it is read and written in one go.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is known of one NIC.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Its name on the host.
    pub host_interface_name: String,
    /// The addresses it had there.
    #[serde(default, rename = "hostInterfaceIPs")]
    pub host_interface_ips: Vec<String>,
    /// `UP` or `DOWN`.
    #[serde(default)]
    pub state: String,
    /// The key of our record of it; none in an entry that AMD's plugin wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
    /// The boot in which we began to bring the NIC home by this entry; whoever finds it has to finish that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restoring: Option<String>,
}

/// The whole file. What is not understood of it is kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mapping(Map<String, Value>);

impl Mapping {
    /// Any bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes).map(Self)
    }

    /// As it is written.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(&self.0).expect("a map of JSON values has string keys")
    }

    /// The devices, in the order of the file.
    pub fn devices(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// What is known of a device; an error where that is no entry.
    pub fn entry(&self, device: &str) -> Option<Result<Entry, serde_json::Error>> {
        // As Go reads it, who wrote it: a list without a member is null there.
        self.0.get(device).map(mooring_attach::cni::read)
    }

    /// Replaces what is known of a device.
    pub fn set(&mut self, device: &str, entry: &Entry) {
        let value = serde_json::to_value(entry).expect("plain values");
        self.0.insert(device.to_owned(), value);
    }

    /// Notes that the NIC of an entry comes home in this boot. The rest of the entry stays as its author wrote it.
    pub fn mark(&mut self, device: &str, boot: &str) {
        if let Some(Value::Object(entry)) = self.0.get_mut(device) {
            entry.insert("restoring".to_owned(), Value::from(boot));
        }
    }

    /// Strikes a device, and says whether it was there.
    pub fn strike(&mut self, device: &str) -> bool {
        // The other entries stay in their order.
        self.0.shift_remove(device).is_some()
    }

    /// The devices whose entry names a record that is not there.
    pub fn served(&self, is_there: impl Fn(&str) -> bool) -> Vec<String> {
        let mut served: Vec<String> = self.devices().map(ToOwned::to_owned).collect();
        served.retain(|device| {
            let entry = self.entry(device).and_then(Result::ok);
            let record = entry.and_then(|entry| entry.record);
            record.is_some_and(|record| !is_there(&record))
        });
        served
    }
}

/// What failed on the file.
#[derive(Debug, thiserror::Error)]
pub enum MappingError {
    /// Another process keeps it.
    #[error("AMD's mapping file is in use")]
    Lock(#[from] LockError),
    /// The file.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// It holds no mapping.
    #[error("{} holds no mapping and is left alone", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Where it breaks.
        #[source]
        source: serde_json::Error,
    },
}

/// The file of this node.
#[derive(Clone, Debug)]
pub struct File {
    path: PathBuf,
    lock: PathBuf,
}

impl File {
    /// Where AMD's plugin has it.
    pub fn new(paths: &Paths) -> Self {
        Self {
            path: paths
                .data
                .join("amd-host-device/ip-interface-mappings.json"),
            lock: paths.own.join("amd-host-device.lock"),
        }
    }

    /// Its place.
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// Keeps our other processes from it. AMD's plugin has no lock.
    pub fn lock(&self) -> Result<Lock, MappingError> {
        Ok(Lock::exclusive(&self.lock, PATIENCE)?)
    }

    /// What is in it; none where there is no file.
    pub fn read(&self) -> Result<Option<Mapping>, MappingError> {
        let bytes = file::read(&self.path).map_err(|source| self.io("read", source))?;
        let Some(bytes) = bytes else {
            return Ok(None);
        };
        let mapping = Mapping::parse(&bytes);
        let mapping = mapping.map_err(|source| MappingError::Unreadable {
            path: self.path.clone(),
            source,
        });
        mapping.map(Some)
    }

    /// Replaces it; under the lock.
    pub fn write(&self, mapping: &Mapping) -> Result<(), MappingError> {
        file::write_atomic_mode(&self.path, &mapping.to_bytes(), 0o644)
            .map_err(|source| self.io("write", source))
    }

    /// Strikes every entry of ours that has served, and says which devices these were.
    pub fn sweep(&self, records: &Records) -> Result<Vec<String>, MappingError> {
        if self.read()?.is_none() {
            return Ok(Vec::new());
        }
        let _lock = self.lock()?;
        let Some(mut mapping) = self.read()? else {
            return Ok(Vec::new());
        };
        let served = mapping.served(|record| records.has(record));
        for device in &served {
            mapping.strike(device);
        }
        if !served.is_empty() {
            self.write(&mapping)?;
        }
        Ok(served)
    }

    fn io(&self, doing: &'static str, source: io::Error) -> MappingError {
        MappingError::Io {
            doing,
            path: self.path.clone(),
            source,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_served_when_its_record_is_gone_and_one_of_amds_never_by_that() {
        let text = br#"{"a":{"hostInterfaceName":"rail0","record":"pci-a"},
            "b":{"hostInterfaceName":"rail1","record":"pci-b"},
            "c":{"hostInterfaceName":"rail2","hostInterfaceIPs":[],"state":"UP"},
            "d":7}"#;
        let mut mapping = Mapping::parse(text).unwrap();
        assert_eq!(mapping.served(|record| record == "pci-b"), ["a"]);
        assert!(mapping.strike("a") && !mapping.strike("a"));
        let again = Mapping::parse(&mapping.to_bytes()).unwrap();
        assert_eq!(again, mapping, "what is no entry stays as well");
        assert_eq!(again.devices().collect::<Vec<_>>(), ["b", "c", "d"]);
        assert!(again.entry("d").unwrap().is_err());
        assert!(again.entry("x").is_none());
    }

    #[test]
    fn a_nic_without_addresses_has_an_entry_too() {
        let text = br#"{"a":{"hostInterfaceName":"rail0","hostInterfaceIPs":null,"state":"UP"}}"#;
        let entry = Mapping::parse(text).unwrap().entry("a").unwrap().unwrap();
        assert_eq!(entry.host_interface_name, "rail0");
        assert_eq!(entry.host_interface_ips, [""; 0]);
    }

    #[test]
    fn a_mark_changes_nothing_else_of_an_entry() {
        let text = br#"{"b":{"state":"UP","hostInterfaceName":"rail0","new":[1]},"a":7}"#;
        let mut mapping = Mapping::parse(text).unwrap();
        for device in ["a", "b", "c"] {
            mapping.mark(device, "boot-1");
        }
        assert_eq!(
            String::from_utf8(mapping.to_bytes()).unwrap(),
            r#"{"b":{"state":"UP","hostInterfaceName":"rail0","new":[1],"restoring":"boot-1"},"a":7}"#
        );
        let entry = mapping.entry("b").unwrap().unwrap();
        assert_eq!(entry.restoring.as_deref(), Some("boot-1"));
        assert!(mapping.served(|_| false).is_empty());
    }
}
