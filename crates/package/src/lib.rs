//! Acts: the render engine, KRM functions, and the only writer of package files.
//!
//! ```text
//!  gather (files, pools, clusters) ─► check (schemas) ─► decide (blueprint steps, to a fixpoint)
//!     ─► reserve (book) ─► journal ─► rename ─► commit (book) ─► report
//! ```
//!
//! One engine serves `moor render`, `moor fn`, fleets and the controller. Easy to get wrong: nothing
//! may be written before every finding is known; an error anywhere leaves files and book untouched.

pub mod disk;
pub mod journal;
mod report;

use std::path::{Path, PathBuf};

use mooring_api::{Finding, Time};
use mooring_book::Store;
use mooring_ipam::Pools;

pub use report::{Changed, Dialect, FileChange, InterfaceReport, PackageReport, Report, Request};

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

/// Specialises one package, or every package below a directory, in one book transaction.
pub fn render(
    store: &dyn Store,
    request: &Request,
    progress: Progress<'_>,
) -> Result<Report, Error> {
    let _ = (store, request, progress);
    Ok(Report::default())
}

/// Reads pools and clusters.
pub fn management(dir: &Path) -> Result<Management, Error> {
    let _ = dir;
    Ok(Management::default())
}

/// Puts the leases of rendered packages back into a book that lost them.
pub fn rebuild(
    store: &dyn Store,
    sources: &[PathBuf],
    now: Time,
    check: bool,
) -> Result<Report, Error> {
    let _ = (store, sources, now, check);
    Ok(Report::default())
}

/// Reads rendered packages back and checks that no address is used twice.
pub fn verify(sources: &[PathBuf]) -> Result<Verified, Error> {
    let _ = sources;
    Ok(Verified::default())
}

/// What [`verify`] saw.
#[derive(Clone, Debug, Default)]
pub struct Verified {
    /// How many addresses it saw.
    pub addresses: usize,
    /// In how many clusters.
    pub clusters: usize,
    /// In how many packages.
    pub packages: usize,
    /// What is wrong.
    pub findings: Vec<Finding>,
}

/// The answer of a KRM function.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The ResourceList to print on stdout.
    pub stdout: String,
    /// What to tell on stderr.
    pub findings: Vec<Finding>,
}

/// Runs one step as a KRM function over a ResourceList.
pub fn function(name: &str, input: &[u8], store: &dyn Store, now: Time) -> Result<Answer, Error> {
    let _ = (name, store, now);
    Ok(Answer {
        stdout: String::from_utf8_lossy(input).into_owned(),
        findings: Vec::new(),
    })
}
