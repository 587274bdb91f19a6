//! A crash after every operation on the disk: what was acknowledged is there, the rest wholly or not at all.

use std::path::Path;

use mooring_api::Time;
use mooring_book::{Error, FileStore, Filter, Outcome, PackageRecord, Pending, Store};
use mooring_ipam::{Candidate, Lease, State};

use super::disk::{Crashes, Disk, Unsynced};
use super::made::{
    Dice, NOW, commit, defects, holder, holder_of, instance, later, package, release, reserve, win,
};

/// Everything that lasts.
#[derive(Clone, Debug, Default, PartialEq)]
struct Kept {
    leases: Vec<Lease>,
    pending: Vec<Pending>,
    packages: Vec<PackageRecord>,
}

fn kept(store: &dyn Store) -> Result<Kept, Error> {
    Ok(Kept {
        leases: store.leases(&Filter::default())?,
        pending: store.pending()?,
        packages: store.packages()?,
    })
}

fn open(disk: &Disk) -> Result<FileStore, Error> {
    FileStore::with_backend(Path::new("(disk)"), disk.clone())
}

/// Steps that each make at most one durable change. Between two of them the book is closed and opened.
fn step(store: &dyn Store, number: usize) {
    let n = u32::try_from(number).unwrap();
    let now = later(number as u64);
    let round = n / 8;
    let address = |host: u32| format!("10.0.{round}.{host}");
    let last = || store.pending().unwrap().last().unwrap().id;
    match number % 8 {
        0 => {
            reserve(store, now, |txn| {
                for host in 1..=5 {
                    win(txn, &address(host), &holder(round * 10 + host));
                }
                txn.note_package(package(&format!("p{round}"), "here"))
                    .unwrap();
            });
        }
        1 | 3 | 6 => store.commit(last(), now).unwrap(),
        2 => {
            reserve(store, now, |txn| {
                release(txn, &address(2), 10_000);
                release(txn, &address(4), 0);
                win(txn, &format!("10.1.{round}.0/28"), &holder(round * 10 + 6));
            });
        }
        4 => {
            reserve(store, now, |txn| {
                win(txn, &address(9), &holder(round * 10 + 9));
            });
        }
        // The same draft again: it takes over what the one before reserved.
        5 => {
            reserve(store, now, |txn| {
                win(txn, &address(9), &holder(round * 10 + 9));
                win(txn, &address(4), &holder(round * 10 + 8));
            });
        }
        7 => store.abort(last(), now).unwrap(),
        _ => unreachable!(),
    }
}

/// Runs the scenario; gives the disk, and what was kept after each number of steps.
fn scenario(steps: usize) -> (Disk, Vec<Kept>) {
    let disk = Disk::recording();
    let mut after = vec![Kept::default()];
    let mut store = open(&disk).unwrap();
    for number in 0..steps {
        step(&store, number);
        after.push(kept(&store).unwrap());
        disk.done(number + 1);
        if number % 5 == 4 {
            drop(store);
            store = open(&disk).unwrap();
        }
    }
    drop(store);
    (disk, after)
}

/// What is wrong with a book that a crash left.
fn inspect(image: Vec<u8>, allowed: &[Kept]) -> Result<(), String> {
    let disk = Disk::holding(image);
    let said = |e: Error| match std::error::Error::source(&e) {
        Some(why) => format!("{e}: {why}"),
        None => e.to_string(),
    };
    let store = open(&disk).map_err(said)?;
    let found = kept(&store).map_err(said)?;
    if !allowed.contains(&found) {
        return Err(format!("kept {found:#?}\nbut allowed is {allowed:#?}"));
    }
    let now = later(500);
    let wrong = defects(&store, now).map_err(said)?;
    if !wrong.is_empty() {
        return Err(wrong.join("\n"));
    }
    the_next_render_gets_the_same(&store, &found, now).map_err(said)?
}

/// Every holder that has something asks for it again and gets it, and the book can be written.
fn the_next_render_gets_the_same(
    store: &dyn Store,
    found: &Kept,
    now: Time,
) -> Result<Result<(), String>, Error> {
    let mut txn = store.begin(now)?;
    for lease in &found.leases {
        let again = Candidate {
            thing: lease.thing,
            subnet: lease.subnet,
            gateway: lease.gateway,
        };
        let stranger = holder_of("stranger", 1);
        let rested = matches!(lease.state, State::Cooling { until } if until <= now);
        if !rested && let Outcome::Won(_) = txn.try_take(&instance(), &again, &stranger)? {
            return Ok(Err(format!("{} was given to a stranger", lease.thing)));
        }
        if let Outcome::Lost(to) = txn.try_take(&instance(), &again, &lease.holder)? {
            return Ok(Err(format!("{} was lost to {}", lease.thing, to.holder)));
        }
    }
    let id = txn.reserve(mooring_api::Span(60))?;
    store.commit(id, now)?;
    Ok(Ok(()))
}

/// Crashes after every operation, in every way; gives how many images were tried.
fn crash_everywhere(
    steps: usize,
    ways: &[Unsynced],
    lying: bool,
) -> Result<(usize, usize), String> {
    let (disk, after) = scenario(steps);
    let ops = disk.ops();
    let (mut crashes, mut dice) = (Crashes::of(&ops), Dice(0x5EED));
    let (mut points, mut images) = (0, 0);
    while crashes.advance(lying) {
        if !crashes.moved() {
            continue;
        }
        points += 1;
        // What was acknowledged, or that and the step which was under way.
        let allowed = &after[crashes.done..(crashes.done + 2).min(after.len())];
        let mut seen: Vec<Vec<u8>> = Vec::new();
        for unsynced in ways.iter().copied() {
            let image = crashes.image(unsynced, &mut dice);
            if seen.contains(&image) {
                continue;
            }
            images += 1;
            inspect(image.clone(), allowed).map_err(|why| {
                format!(
                    "after operation {points}, step {}, {unsynced:?}: {why}",
                    crashes.done
                )
            })?;
            seen.push(image);
        }
    }
    Ok((points, images))
}

#[test]
fn a_crash_at_any_operation_keeps_what_was_acknowledged_and_nothing_by_halves() {
    let (points, images) = crash_everywhere(16, &Unsynced::ALL, false).unwrap();
    println!("{points} crash points, {images} images");
    assert!(points > 100, "only {points} crash points were tried");
    assert!(
        images > 2 * points,
        "only {images} images of {points} points"
    );
}

#[test]
fn a_disk_that_does_not_sync_is_caught() {
    let caught = crash_everywhere(2, &[Unsynced::Dropped], true).unwrap_err();
    assert!(caught.contains("but allowed is"), "{caught}");
}

#[test]
fn a_crash_in_a_draft_leaves_nothing_of_it() {
    let disk = Disk::recording();
    let store = open(&disk).unwrap();
    commit(&store, NOW, |txn| {
        win(txn, "10.0.0.1", &holder(1));
    });
    let before = kept(&store).unwrap();
    let mut txn = store.begin(later(1)).unwrap();
    win(&mut *txn, "10.0.0.2", &holder(2));
    release(&mut *txn, "10.0.0.1", 0);
    let after = open(&disk.crashed()).unwrap();
    assert_eq!(kept(&after).unwrap(), before);
}
