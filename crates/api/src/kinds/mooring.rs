//! `mooring.dev/v1alpha1`: what the Kubernetes store of the book keeps, and what the intents of a cluster need.
//!
//! ```text
//!  IPLease       one per address or VLAN; its name is its key, so a POST that succeeds owns it
//!  PrefixLedger  one per network instance: prefixes and ranges, which can overlap under different names;
//!                its resourceVersion is the compare-and-swap
//!  OperatorConfig    one per cluster: the platform's choices for all intents; written by people
//!  CompiledRevision  what a NetworkConfigRevision was made from, and why
//! ```
//!
//! Leases and ledgers are written by `mooring-book` alone and read by people. Easy to get wrong: a lease never changes its holder. What
//! passes to somebody else is deleted and made again, so a uid names one holder.

mod compiled_revision;
mod ip_lease;
mod operator_config;
mod prefix_ledger;
mod terms;

pub use compiled_revision::{CompiledRevision, CompiledRevisionSpec, ProvenanceEntry};
pub use ip_lease::{IPLease, IPLeaseSpec};
pub use operator_config::{
    CalicoApi, DefaultAdvertisement, Egress, LoadBalancer, LowLevel, Mode, Namespaces, NodeNames,
    OperatorConfig, OperatorConfigSpec, Platform, Pods, Profile, Rollout, SriovGroup,
    SriovPlatform, TransferRange, VrfIdentity,
};
pub use prefix_ledger::{PrefixEntry, PrefixLedger, PrefixLedgerSpec};
pub use terms::{ClaimRef, InstanceRef, LeaseHolder, LeaseState, ReservationNote};

/// The group.
pub const GROUP: &str = "mooring.dev";

/// Labels that leases can be listed by. A value that is no label value stands as a hash.
pub mod label {
    /// Sixteen hexadecimal digits of the holder's hash.
    pub const HOLDER: &str = "mooring.dev/holder";
    /// The package's id.
    pub const PACKAGE: &str = "mooring.dev/package";
    /// The workload cluster.
    pub const CLUSTER: &str = "mooring.dev/cluster";
    /// Ten hexadecimal digits of the instance's hash: the first part of a lease's name.
    pub const INSTANCE: &str = "mooring.dev/instance";
    /// What a ConfigMap of the book is: `journal`, `transaction`, `package`.
    pub const RECORD: &str = "mooring.dev/book-record";
}
