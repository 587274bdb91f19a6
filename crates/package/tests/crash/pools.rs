//! Every change of a pool, with the real book and the real writer on one clock: the power goes at every operation of
//! either. Afterwards the files and the book are the old ones or the new ones, and the same change ends as it would have.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mooring_api::{Family, Span, Time};
use mooring_book::{FileStore, Filter, Outcome, PackageRecord, Store};
use mooring_ipam::{Candidate, Change, Holder, InstanceKey, State, Thing};
use mooring_package::journal::recover;
use mooring_package::{PoolRequest, change_pool_on};

use crate::disk::{Image, Recorder};
use crate::together::BookFile;
use crate::{Contents, Dice, fates};

const NOW: Time = Time(1_800_000_000);
const ROOT: &str = "/w/mgmt";

const NETWORKS: &str = "\
# Routing domains.
apiVersion: ipam.resource.nephio.org/v1alpha1
kind: NetworkInstance
metadata:
  name: vpc
spec:
  prefixes:
  - prefix: 10.1.0.0/24 # the one that everybody uses
  - prefix: 10.2.0.0/24
";

const POOLS: &str = "\
# Where addresses are taken from.
apiVersion: ipam.resource.nephio.org/v1alpha1
kind: IPPrefix
metadata:
  name: first # the first
  annotations:
    mooring.dev/cool-down: 1h
spec:
  prefix: 10.1.0.0/24
  networkInstance: {name: vpc}
---
apiVersion: ipam.resource.nephio.org/v1alpha1
kind: IPPrefix
metadata:
  name: second
spec:
  prefix: 10.2.0.0/24
  networkInstance: {name: vpc}
";

fn image() -> Image {
    let files = [
        ("/w/mgmt/networks.yaml", NETWORKS),
        ("/w/mgmt/pools.yaml", POOLS),
    ];
    Image::of(&files, &[])
}

fn vpc() -> InstanceKey {
    InstanceKey::new("", "vpc")
}

/// Two packages, one address each half of the pool.
fn old_book(clock: &Arc<Recorder>) -> Vec<u8> {
    let file = BookFile::holding(clock, Vec::new());
    let store = file.open().unwrap();
    let mut txn = store.begin(NOW).unwrap();
    for (package, address) in [("gnb", "10.1.0.20"), ("upf", "10.1.0.200")] {
        let holder = Holder {
            cluster: "edge".into(),
            package: package.into(),
            namespace: "ran".into(),
            workload: String::new(),
            interface: "n3".into(),
            family: Family::V4,
            ordinal: 0,
        };
        let candidate = Candidate {
            thing: Thing::Addr(address.parse().unwrap()),
            subnet: "10.1.0.0/24".parse().ok(),
            gateway: "10.1.0.1".parse().ok(),
        };
        let won = txn.try_take(&vpc(), &candidate, &holder).unwrap();
        assert!(matches!(won, Outcome::Won(_)), "{won:?}");
        txn.note_package(PackageRecord {
            id: package.into(),
            cluster: "edge".into(),
            name: package.into(),
            path: format!("/w/{package}"),
            workloads: BTreeMap::default(),
            vlans: BTreeSet::default(),
            at: NOW,
        })
        .unwrap();
    }
    let id = txn.reserve(Span(60)).unwrap();
    store.commit(id, NOW).unwrap();
    drop(store);
    file.after_crash(true)
}

fn act(change: &Change, disk: &Recorder, file: &BookFile) -> Result<bool, String> {
    let store = file.open().map_err(|e| e.to_string())?;
    let request = PoolRequest {
        mgmt: PathBuf::from(ROOT),
        prefix: "first".into(),
        network: None,
        change: change.clone(),
        moves: true,
        check: false,
        agreed: None,
        now: NOW,
    };
    let report = change_pool_on(disk, &store, &request).map_err(|e| e.to_string())?;
    if report.has_errors() {
        return Err(format!("{:?}", report.findings));
    }
    Ok(report.finished)
}

/// What is held and what rests, with mask and gateway; what is only reserved is nobody's yet.
fn story(store: &FileStore) -> BTreeSet<String> {
    let leases = store.leases(&Filter::default()).unwrap();
    let settled = leases
        .iter()
        .filter(|l| !matches!(l.state, State::Reserved { .. }));
    settled
        .map(|l| {
            format!(
                "{} {:?} {:?} {} {:?}",
                l.thing, l.subnet, l.gateway, l.holder, l.state
            )
        })
        .collect()
}

struct Ends {
    old: (Contents, BTreeSet<String>),
    new: (Contents, BTreeSet<String>),
}

/// The next run: one story, and the same change comes to the same end.
fn next_run(
    change: &Change,
    ends: &Ends,
    disk: &Arc<Recorder>,
    book: Vec<u8>,
    seen: &mut [usize; 2],
) -> Result<(), String> {
    let file = BookFile::holding(disk, book);
    let store = file
        .open()
        .map_err(|e| format!("the book does not open: {e}"))?;
    recover(&**disk, Path::new(ROOT), |txn| store.commit(txn, NOW))
        .map_err(|f| format!("{f:?}"))?;
    let found = (disk.now().contents(), story(&store));
    drop(store);
    if found == ends.new {
        seen[1] += 1;
        return Ok(());
    }
    if found != ends.old {
        return Err(format!("neither old nor new: {found:#?}"));
    }
    seen[0] += 1;
    act(change, disk, &file)?;
    let ended = (disk.now().contents(), story(&file.open().unwrap()));
    if ended == ends.new {
        Ok(())
    } else {
        Err(format!("the same change ends elsewhere: {:#?}", ended.1))
    }
}

fn crash_everywhere(name: &str, change: &Change) {
    let calm = Arc::new(Recorder::new(image(), None, None));
    let book = old_book(&calm);
    let start = calm.log().len();
    let file = BookFile::holding(&calm, book.clone());
    let before = story(&file.open().unwrap());
    let reopened = calm.log().len();
    act(change, &calm, &file).unwrap_or_else(|e| panic!("{name}: {e}"));
    let operations = calm.log().len() - reopened.max(start);
    let ends = Ends {
        old: (image().contents(), before),
        new: (calm.now().contents(), story(&file.open().unwrap())),
    };
    assert_ne!(ends.old.0, ends.new.0, "{name} changes no file");
    assert_ne!(ends.old.1, ends.new.1, "{name} changes no lease");

    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    let (mut points, mut seen) = (0, [0; 2]);
    for at in 0..=operations + 2 {
        let disk = Arc::new(Recorder::new(image(), Some(at), None));
        let file = BookFile::holding(&disk, book.clone());
        let _ = act(change, &disk, &file);
        for fates in fates(&disk.pending(), 2, &mut dice) {
            for kept in [false, true] {
                let next = Arc::new(Recorder::new(disk.after_crash(&fates), None, None));
                next_run(change, &ends, &next, file.after_crash(kept), &mut seen).unwrap_or_else(
                    |e| {
                        panic!(
                            "{name}: {e}\ncrash after {:#?}\n{fates:?} {kept}",
                            disk.log()
                        )
                    },
                );
                points += 1;
            }
        }
    }
    println!("pool {name}: {operations} operations, {points} points, {seen:?} ended old and new");
    assert!(points >= 80, "only {points} points");
    assert!(seen.iter().all(|n| *n > 0), "{seen:?}");
}

#[test]
fn a_crash_anywhere_while_a_pool_grows_leaves_the_old_or_the_new_one() {
    let to = "10.1.0.0/23".parse().unwrap();
    crash_everywhere("grow", &Change::Grow { to, ranges: None });
}

#[test]
fn a_crash_anywhere_while_a_pool_shrinks_leaves_the_old_or_the_new_one() {
    let change = Change::Shrink {
        to: "10.1.0.0/25".parse().ok(),
        ranges: Vec::new(),
        exclude: Vec::new(),
    };
    crash_everywhere("shrink", &change);
}

#[test]
fn a_crash_anywhere_while_a_pool_is_split_leaves_the_old_or_the_new_one() {
    crash_everywhere("split", &Change::Split { len: 25 });
}

#[test]
fn a_crash_anywhere_while_a_pool_is_drained_leaves_the_old_or_the_new_one() {
    crash_everywhere("drain", &Change::Drain);
}

#[test]
fn a_crash_anywhere_while_a_pool_is_renumbered_leaves_the_old_or_the_new_one() {
    let to = "10.9.0.0/24".parse().unwrap();
    crash_everywhere("renumber", &Change::Renumber { to });
    let to = "10.2.0.0/24".parse().unwrap();
    crash_everywhere("renumber into another", &Change::Renumber { to });
}
