//! What a plugin is, and the table of all of them.
//!
//! A plugin is a unit struct in a file of its own. To add one: write it, add its line to [`TABLE`].
//!
//! Easy to get wrong: DEL comes twice, without a namespace, without `prevResult`, after a reboot. Absent is
//! success, errors are collected while the rest goes on, and the release of addresses always runs.

use mooring_attach::cni::{CniError, CniResult};

use crate::call::Call;

/// One CNI plugin.
pub(crate) trait Plugin: Sync {
    /// One line for a person who starts it without a runtime.
    fn about(&self) -> &'static str;

    /// Makes the attachment; undoes what it did when it fails.
    fn add(&self, call: &Call) -> Result<CniResult, CniError>;

    /// Removes the attachment; absent is success.
    fn del(&self, call: &Call) -> Result<(), CniError>;

    /// Whether the attachment is what `prevResult` says.
    fn check(&self, call: &Call) -> Result<(), CniError>;

    /// Whether an ADD could succeed now; by default what the delegated IPAM says.
    fn status(&self, call: &Call) -> Result<(), CniError> {
        call.ipam_status()
    }

    /// Removes what no valid attachment owns; by default the delegated IPAM does.
    fn gc(&self, call: &Call) -> Result<(), CniError> {
        call.ipam_gc()
    }
}

/// What kind of plugin a name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Makes an interface.
    Main,
    /// Changes an interface that an earlier plugin of the list made.
    Chained,
    /// Gives addresses, on behalf of another plugin.
    Ipam,
}

/// A row of the table.
pub(crate) struct Entry {
    /// The name in configurations and of the installed file.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) plugin: &'static dyn Plugin,
}

const fn entry(name: &'static str, kind: Kind, plugin: &'static dyn Plugin) -> Entry {
    Entry { name, kind, plugin }
}

/// Every plugin of this program. One line each, in the order of the kinds.
pub(crate) static TABLE: &[Entry] = &[
    entry("macvlan", Kind::Main, &crate::plugins::macvlan::Macvlan),
    entry("ipvlan", Kind::Main, &crate::plugins::ipvlan::Ipvlan),
    entry("vlan", Kind::Main, &crate::plugins::vlan::Vlan),
    entry("bridge", Kind::Main, &crate::plugins::bridge::Bridge),
    entry(
        "host-device",
        Kind::Main,
        &crate::plugins::host_device::HostDevice,
    ),
    entry(
        "amd-host-device",
        Kind::Main,
        &crate::plugins::amd::AmdHostDevice,
    ),
    entry("sriov", Kind::Main, &crate::plugins::sriov::Sriov),
    entry("ovs", Kind::Main, &crate::plugins::ovs::Ovs),
    entry("tuning", Kind::Chained, &crate::chained::tuning::Tuning),
    entry("sbr", Kind::Chained, &crate::chained::sbr::Sbr),
    entry("static", Kind::Ipam, &crate::ipam::static_::Static),
    entry(
        "host-local",
        Kind::Ipam,
        &crate::ipam::host_local::HostLocal,
    ),
];

/// The plugin of that name.
pub(crate) fn find(name: &str) -> Option<&'static Entry> {
    TABLE.iter().find(|entry| entry.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use mooring_attach::cni::check_plugin;

    use super::*;

    #[test]
    fn every_name_is_a_file_name_and_stands_once() {
        let mut seen = BTreeSet::new();
        for entry in TABLE {
            check_plugin("name", entry.name).expect("a file name");
            assert!(seen.insert(entry.name), "{} stands twice", entry.name);
            assert!(!entry.plugin.about().is_empty(), "{}", entry.name);
        }
        assert_ne!(seen.len(), 0);
    }
}
