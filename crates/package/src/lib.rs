//! Acts: the render engine, KRM functions, and the only writer of package files.
//!
//! ```text
//!  gather (files, pools, clusters) ─► check (schemas) ─► decide (blueprint steps, to a fixpoint)
//!     ─► reserve (book) ─► journal ─► rename ─► commit (book) ─► report
//! ```
//!
//! One engine serves `moor render`, `moor fn`, fleets and the controller. Easy to get wrong: nothing
//! may be written before every finding is known; an error anywhere leaves files and book untouched.

mod ahead;
mod decide;
mod differ;
pub mod disk;
mod documents;
mod flavour;
mod fleet;
mod function;
pub mod git;
mod hold;
mod import;
pub mod journal;
mod located;
mod moved;
mod neighbour;
mod nephio;
mod parallel;
mod pool;
mod read;
mod render;
mod report;
pub mod revision;
mod site;
mod specialise;
mod steps;
mod summary;
mod survey;
mod trees;
mod unit;
mod variant;
mod vlan;

use std::path::{Path, PathBuf};

use mooring_api::Finding;
use mooring_ipam::Pools;

pub use fleet::{DownstreamReport, FileTexts, FleetReport, FleetRequest, Happened, fleet};
pub use function::{Answer, Call, function, function_as};
pub use import::{Imported, import_nephio};
pub use located::{Located, located, yaml};
pub use mooring_krm::is_krm;
pub use neighbour::{Neighbour, needed_packages};
pub use pool::{PoolReport, PoolRequest, change_pool, change_pool_on};
pub use read::{rebuild, verify};
pub use render::render;
pub use report::{Changed, Dialect, FileChange, InterfaceReport, PackageReport, Report, Request};
pub use site::Site;
pub use specialise::{Specialise, Specialised, discard, retire, specialise};
pub use survey::{ClusterSeen, Fixed, FixedFile, Fixing, From, Source, Survey, Verified, fix};
pub use variant::{
    Files, Kpt, VariantClone, clone_variant, document, injection_points, kptfile_of,
    with_condition, without_condition,
};

/// What can go wrong beside findings.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The book failed.
    #[error("the address book failed")]
    Book(#[from] mooring_book::Error),
    /// The disk failed.
    #[error("cannot {act} {path}")]
    Disk {
        /// What was tried.
        act: &'static str,
        /// On what.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// How far a run is: packages done, packages in all.
pub type Progress<'a> = &'a dyn Fn(usize, usize);

/// What the management directory says.
#[derive(Clone, Debug, Default)]
pub struct Management {
    /// Instances and prefixes.
    pub pools: Pools,
    /// Names of the WorkloadClusters.
    pub clusters: Vec<String>,
    /// What is wrong with it.
    pub findings: Vec<Finding>,
}

/// Reads pools and clusters.
pub fn management(dir: &Path) -> Result<Management, Error> {
    let site = Site::read(dir);
    let clusters = site.clusters();
    Ok(Management {
        pools: site.pools,
        clusters,
        findings: site.findings,
    })
}
