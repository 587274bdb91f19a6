//! What a render was asked, and what it did: the types between the engine and the hands.

use std::path::PathBuf;

use mooring_api::{Finding, HostCidr, Span, Time, VlanId};
use mooring_ipam::TxnId;
use serde::Serialize;

/// What to render, and how.
#[derive(Clone, Debug)]
pub struct Request {
    /// A package, or a directory of packages.
    pub source: PathBuf,
    /// Where to write; in place where None.
    pub out: Option<PathBuf>,
    /// Pools and clusters.
    pub mgmt: Option<PathBuf>,
    /// Directories of packages that are rendered already: Dependencies may mean one of them.
    pub published: Vec<PathBuf>,
    /// The WorkloadCluster to specialise for.
    pub cluster: Option<String>,
    /// Chosen dialect; by the package's marks where None.
    pub dialect: Option<Dialect>,
    /// Change and reserve nothing.
    pub check: bool,
    /// Mint a new package id even where one is there.
    pub new_id: bool,
    /// Leave what the book gives reserved for this long, for a draft; commit it where None.
    pub draft: Option<Span>,
    /// The addresses that the package says it has are those that it gets; else it is refused.
    pub pinned: bool,
    /// Ship IPClaim and IPAllocation to the cluster as inert records.
    pub deploy_records: bool,
    /// Now.
    pub now: Time,
    /// Random bytes to mint package ids from; the n-th package of a run gets its own id from them.
    pub entropy: [u8; 16],
}

/// Which behaviour of the package path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// The seeds' behaviour.
    #[default]
    Native,
    /// Nephio's.
    Nephio,
}

/// What a run did or, with `check`, would do.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// One per package, in path order.
    pub packages: Vec<PackageReport>,
    /// Everything to tell, in order of file and line. With an error, nothing was written.
    pub findings: Vec<Finding>,
    /// Files that were (or would be) written or removed.
    pub changes: Vec<FileChange>,
    /// Whether the book changes too (a lease taken or released).
    pub book_changed: bool,
    /// The transaction that a draft's addresses are reserved under; None where they were so already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserved: Option<TxnId>,
}

impl Report {
    /// Whether anything is wrong.
    pub fn has_errors(&self) -> bool {
        self.findings.iter().any(Finding::is_error)
    }

    /// Whether a render changed (or would change) a file or the book.
    pub fn is_changed(&self) -> bool {
        self.book_changed || !self.changes.is_empty()
    }
}

/// One package of a run.
#[derive(Clone, Debug, Serialize)]
pub struct PackageReport {
    /// Where it is written.
    pub path: PathBuf,
    /// The Kptfile's name.
    pub name: String,
    /// The minted id.
    pub id: String,
    /// The cluster it is specialised for.
    pub cluster: String,
    /// What each interface got.
    pub interfaces: Vec<InterfaceReport>,
    /// How many conditions are True, and how many there are.
    pub conditions: (usize, usize),
}

/// What an interface got.
#[derive(Clone, Debug, Serialize)]
pub struct InterfaceReport {
    /// The Interface's, or IPClaim's, name.
    pub name: String,
    /// Network instance.
    pub network: String,
    /// CNI type; empty for a loopback.
    pub cni: String,
    /// The NIC, sub-interface, bridge or device plugin resource it is on.
    pub on: String,
    /// Its addresses; empty with dynamic flavours.
    pub addresses: Vec<HostCidr>,
    /// Ranges, for host-local and whereabouts.
    pub ranges: Vec<String>,
    /// Gateways, one per address that has one.
    pub gateways: Vec<std::net::IpAddr>,
    /// VLAN.
    pub vlan: Option<VlanId>,
    /// `Kind/name` of the workload it is attached to.
    pub workload: Option<String>,
}

/// A file that changed.
#[derive(Clone, Debug, Serialize)]
pub struct FileChange {
    /// Path.
    pub path: PathBuf,
    /// How.
    pub what: Changed,
}

/// How a file changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Changed {
    /// It is new.
    Created,
    /// Its text changed.
    Updated,
    /// It is gone.
    Removed,
}
