//! Who holds an address: the identity that never changes when a pod, a package path or a node does.

use std::fmt::{self, Write as _};

use mooring_api::Family;
use serde::{Deserialize, Serialize};

/// The identity of a claim (DESIGN §5). Same identity, same address, always.
///
/// For a holder outside of packages (a VM, a router, a host) `package` is empty and `workload` names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Holder {
    /// Workload cluster.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cluster: String,
    /// The package's minted id.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub package: String,
    /// Namespace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// `Kind/name` as written on the Interface, else empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub workload: String,
    /// The Interface's (or IPClaim's) name.
    pub interface: String,
    /// One holder per family.
    pub family: Family,
    /// 0 for the first address of the interface.
    #[serde(default)]
    pub ordinal: u16,
}

impl Holder {
    /// A holder that no package owns: `moor reserve` and `moor claim` make these.
    pub fn outside(name: impl Into<String>, interface: impl Into<String>, family: Family) -> Self {
        Self {
            cluster: String::new(),
            package: String::new(),
            namespace: String::new(),
            workload: name.into(),
            interface: interface.into(),
            family,
            ordinal: 0,
        }
    }

    /// Unique text for indexes. The separator cannot stand in a Kubernetes name.
    pub fn key(&self) -> String {
        let names = [
            &self.cluster,
            &self.package,
            &self.namespace,
            &self.workload,
            &self.interface,
        ];
        // Made for every claim that many writers may make, so without `format!` of seven parts.
        let len: usize = names.iter().map(|name| name.len() + 1).sum();
        let mut key = String::with_capacity(len + 10);
        for name in names {
            key.push_str(name);
            key.push('\u{1f}');
        }
        let _ = write!(key, "{}\u{1f}{}", self.family, self.ordinal);
        key
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            &self.cluster,
            &self.package,
            &self.namespace,
            &self.workload,
            &self.interface,
        ];
        let said: Vec<&str> = parts
            .into_iter()
            .map(String::as_str)
            .filter(|p| !p.is_empty())
            .collect();
        f.write_str(&said.join(" / "))?;
        if self.ordinal > 0 {
            write!(f, " #{}", self.ordinal)?;
        }
        Ok(())
    }
}
