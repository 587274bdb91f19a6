//! Decides: objects with their origin become findings.
//!
//! ```text
//!  Fleet { objects, files, reservations } ── world ──► NADs, pods, clusters, instances
//!                                                │
//!              carried: addresses, ranges ◄──────┤
//!                 │                              ├─ attached   what a pod asks for
//!                 ├─ twice    used twice         ├─ rollout    two pods with one address
//!                 ├─ subnet   in the subnet      ├─ placing    node-local IPAM
//!                 ├─ overlap  cluster networks   ├─ upf        user planes from a pool
//!                 └─ reach    routes             ├─ nic, vlan  what the cluster offers
//!                                                └─ conf       files of the runtime
//! ```
//!
//! Beside the rules stand the packet story ([`trace`]), the changes that are safe to make ([`fixes`]), and which IPAM
//! solution fits ([`fits`]), all from the same objects.
//!
//! Called by `moor verify`, the fleet and the dashboard with everything that is, or will be, deployed:
//! every package of every cluster. Called with many thousands of objects, so every rule sorts once and
//! walks once, and says one thing per object and not one per pair.
//!
//! Easy to get wrong: only what a pod would get counts as a use. IPClaims and IPAllocations are records
//! of the same address, and a `local-config` object never reaches a cluster.

mod attached;
mod carried;
mod cluster;
mod conf;
pub mod fits;
mod fix;
mod input;
mod instance;
mod near;
mod nic;
mod overlap;
mod placing;
mod pool;
mod reach;
mod report;
mod rollout;
mod route;
mod subnet;
#[cfg(test)]
mod tests;
pub mod trace;
mod twice;
mod upf;
mod vlan;
mod world;

pub use fix::{Fix, fixes};
pub use input::{CniFile, Fleet, Input, Origin, Reservation};
pub use report::{Found, Report, Summary};

use world::World;

/// Everything there is to say about these objects. The order of the input does not matter.
pub fn verify<'a>(inputs: impl IntoIterator<Item = Input<'a>>) -> Report {
    verify_fleet(&Fleet {
        objects: inputs.into_iter().collect(),
        ..Fleet::default()
    })
}

/// Everything there is to say about a fleet: its objects, and what is known besides.
pub fn verify_fleet(fleet: &Fleet<'_>) -> Report {
    let Fleet {
        objects,
        files,
        reservations,
    } = fleet;
    let kept = carried::origins(reservations);
    let world = World::read(objects);
    let carried = carried::gather(&world, &kept);

    let mut found = Vec::new();
    let mut unjudged = Vec::new();
    attached::judge(&world, &mut found);
    rollout::judge(&world, &mut found);
    placing::judge(&world, &mut found);
    upf::judge(&world, &mut found);
    subnet::judge(&world, &mut found);
    overlap::judge(&world, &carried, &mut found, &mut unjudged);
    reach::judge(&world, &carried, &mut found);
    nic::judge(&world, &mut found);
    vlan::judge(&world, &carried, &mut found);
    conf::judge(files, &mut found);
    found.sort_by(|a, b| a.order().cmp(&b.order()));

    let (duplicates, overlaps) = twice::judge(&world, &carried);
    let summary = Summary::count(objects, &carried, duplicates.len(), overlaps.len());
    found.extend(duplicates);
    found.extend(overlaps);
    Report {
        found,
        unjudged,
        summary,
    }
}
