//! The power goes at every change and every sync of the writer: the next run finds all files old and
//! the book uncommitted, or all files new and the book committed.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a failed set-up is a failed test; the number of points is for the reader of the log"
)]

mod book;
mod disk;
mod pools;
mod together;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use book::Book;
use disk::{Effect, Fate, Image, Lie, Recorder};
use mooring_ipam::TxnId;
use mooring_package::disk::Disk;
use mooring_package::journal::{Change, CommitError, Plan, Recovered, commit_files, recover};

const TXN: TxnId = TxnId(7);

struct Scenario {
    root: &'static str,
    old: Image,
    changes: Vec<Change>,
}

fn write(path: &str, text: &str) -> Change {
    let (path, bytes) = (path.to_owned(), text.as_bytes().to_vec());
    Change::Write { path, bytes }
}

fn remove(path: &str) -> Change {
    let path = path.to_owned();
    Change::Remove { path }
}

/// Changed, created, removed, emptied, untouched; in the root, in old and in new directories.
fn a_package() -> Scenario {
    let old = Image::of(
        &[
            ("/w/pkg/Kptfile", "kind: Kptfile\n"),
            ("/w/pkg/deployment.yaml", "kind: Deployment\nreplicas: 1\n"),
            ("/w/pkg/untouched.yaml", "kind: Untouched\n"),
            ("/w/pkg/emptied.yaml", "kind: Emptied\n"),
            ("/w/pkg/gone/one/old.yaml", "kind: Old\n"),
            ("/w/pkg/sub/changed.yaml", "kind: Changed\nis: before\n"),
            ("/w/pkg/sub/removed.yaml", "kind: Removed\n"),
            ("/w/other/Kptfile", "kind: Kptfile\n"),
        ],
        &[],
    );
    let changes = vec![
        write("Kptfile", "kind: Kptfile\nstatus: ready\n"),
        remove("gone/one/old.yaml"),
        write("deployment.yaml", "kind: Deployment\nreplicas: 2\n"),
        write("untouched.yaml", "kind: Untouched\n"),
        write("emptied.yaml", ""),
        write("sub/changed.yaml", "kind: Changed\nis: after\n"),
        remove("sub/removed.yaml"),
        remove("sub/never-was.yaml"),
        write("new/deep/nad.yaml", "kind: NetworkAttachmentDefinition\n"),
        write("new/claim.yaml", "kind: IPClaim\n"),
    ];
    let root = "/w/pkg";
    Scenario { root, old, changes }
}

/// Enough files that the file system is synced as a whole.
fn a_fleet() -> Scenario {
    let mut scenario = a_package();
    scenario.root = "/w";
    for change in &mut scenario.changes {
        let (Change::Write { path, .. } | Change::Remove { path }) = change;
        *path = format!("pkg/{path}");
    }
    for n in 0..11 {
        let path = format!("pkg-{}/nad-{n}.yaml", n % 3);
        scenario.changes.push(write(&path, "kind: NAD\n"));
    }
    scenario
}

/// Enough old files that they are written out before the first of them is replaced.
fn a_rewritten_fleet() -> Scenario {
    let paths: Vec<String> = (0..18)
        .map(|n| format!("pkg-{}/nad-{n}.yaml", n % 3))
        .collect();
    let full: Vec<String> = paths.iter().map(|p| format!("/w/{p}")).collect();
    let files: Vec<(&str, &str)> = full
        .iter()
        .map(|p| (p.as_str(), "kind: NAD\nis: old\n"))
        .collect();
    let mut changes: Vec<Change> = paths
        .iter()
        .map(|p| write(p, "kind: NAD\nis: new\n"))
        .collect();
    changes.push(write("pkg-0/added.yaml", "kind: IPClaim\n"));
    changes.push(write("made/added.yaml", "kind: IPClaim\n"));
    let old = Image::of(&files, &[]);
    let root = "/w";
    Scenario { root, old, changes }
}

/// The directory itself is new.
fn a_new_directory() -> Scenario {
    let old = Image::of(&[("/w/src/Kptfile", "kind: Kptfile\n")], &[]);
    let changes = vec![
        write("Kptfile", "kind: Kptfile\n"),
        write("nads/n3.yaml", "kind: NAD\n"),
    ];
    let root = "/w/made/out";
    Scenario { root, old, changes }
}

impl Scenario {
    fn plan(&self) -> Plan {
        Plan {
            root: PathBuf::from(self.root),
            changes: self.changes.clone(),
            txn: Some(TXN),
        }
    }

    fn run(&self, disk: &Recorder, book: &Book) -> Result<usize, CommitError> {
        commit_files(disk, &self.plan(), |txn| book.commit(disk, txn)).map(|w| w.files)
    }

    /// Everything on the disk when nothing goes wrong.
    fn result(&self) -> Contents {
        let disk = Recorder::new(self.old.clone(), None, None);
        let book = Book::reserved(TXN);
        self.run(&disk, &book).unwrap();
        disk.now().contents()
    }

    /// How many changes and syncs there are when nothing goes wrong.
    fn operations(&self) -> usize {
        let disk = Recorder::new(self.old.clone(), None, None);
        self.run(&disk, &Book::reserved(TXN)).unwrap();
        disk.log().len()
    }
}

type Contents = BTreeMap<String, Option<(Vec<u8>, u32)>>;

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Fates for the pending effects: all kept, all lost, each one alone kept, each one alone lost, and
/// `random` mixtures with torn bytes.
fn fates(pending: &[Effect], random: usize, dice: &mut Dice) -> Vec<Vec<Fate>> {
    let n = pending.len();
    let mut all = vec![vec![Fate::Kept; n]];
    if n == 0 {
        return all;
    }
    all.extend([Fate::Lost, Fate::Half, Fate::Zeros].map(|fate| vec![fate; n]));
    for alone in 0..n {
        for (one, rest) in [(Fate::Kept, Fate::Lost), (Fate::Lost, Fate::Kept)] {
            let mut fates = vec![rest; n];
            fates[alone] = one;
            all.push(fates);
        }
    }
    let kinds = [Fate::Kept, Fate::Lost, Fate::Half, Fate::Zeros];
    for _ in 0..random {
        let roll = |_| kinds[usize::try_from(dice.roll() >> 33).unwrap() % 4];
        all.push((0..n).map(roll).collect());
    }
    all
}

/// What the crash points came to.
#[derive(Debug, Default)]
struct Tally {
    points: usize,
    old: usize,
    new: usize,
    finished: usize,
    undone: usize,
}

/// A next run on what a crash left. `Err` says what is wrong with the result.
fn next_run(
    scenario: &Scenario,
    (old, new): (&Contents, &Contents),
    disk: &Recorder,
    book: &Book,
    tally: &mut Tally,
) -> Result<(), String> {
    let root = Path::new(scenario.root);
    let commit = |txn| book.commit(disk, txn);
    let recovered = recover(disk, root, commit).map_err(|f| format!("refused: {f:?}"))?;
    match recovered {
        Recovered::None => {}
        Recovered::Finished { .. } => tally.finished += 1,
        Recovered::Undone { .. } => tally.undone += 1,
    }
    let found = without_empty_root(disk.now().contents(), root);
    let committed = book.is_committed();
    if found == *old && !committed {
        tally.old += 1;
    } else if found == *new && committed {
        tally.new += 1;
    } else {
        return Err(format!("book committed: {committed}; on disk: {found:#?}"));
    }
    let before = disk.log().len();
    let again = recover(disk, root, commit);
    if again != Ok(Recovered::None) || disk.log().len() != before {
        return Err(format!("a second recovery did {again:?}"));
    }
    tally.points += 1;
    Ok(())
}

/// A directory that was made for a root and holds nothing is no difference.
fn without_empty_root(mut found: Contents, root: &Path) -> Contents {
    for dir in root.ancestors() {
        let dir = dir.to_str().unwrap();
        let below = format!("{dir}/");
        if dir.starts_with("/w/") && !found.keys().any(|p| p.starts_with(&below)) {
            found.remove(dir);
        }
    }
    found
}

/// Crashes at every operation, with many fates, and once more at every operation of the recovery.
fn crash_everywhere(scenario: &Scenario, lie: Option<Lie>) -> Result<Tally, String> {
    let (old, new) = (scenario.old.contents(), scenario.result());
    assert_ne!(old, new);
    let both = (&old, &new);
    let mut tally = Tally::default();
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for at in 0..=scenario.operations() {
        let disk = Recorder::new(scenario.old.clone(), Some(at), lie);
        let book = Book::reserved(TXN);
        let _ = scenario.run(&disk, &book);
        for (number, fates) in fates(&disk.pending(), 24, &mut dice)
            .into_iter()
            .enumerate()
        {
            let image = disk.after_crash(&fates);
            let told = |e| format!("{e}\ncrash after {:#?}\n{fates:?}", disk.log());
            let whole = Recorder::new(image.clone(), None, None);
            next_run(scenario, both, &whole, &book.copy(), &mut tally).map_err(told)?;
            // The first fates are all kept and all lost; the mixtures between them come out of a
            // recovery as much the same.
            if number < 2 {
                crash_in_recovery(scenario, both, (&image, &book), lie, &mut tally)
                    .map_err(told)?;
            }
        }
    }
    Ok(tally)
}

fn crash_in_recovery(
    scenario: &Scenario,
    both: (&Contents, &Contents),
    (image, book): (&Image, &Book),
    lie: Option<Lie>,
    tally: &mut Tally,
) -> Result<(), String> {
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    for at in 0.. {
        let disk = Recorder::new(image.clone(), Some(at), lie);
        let book = book.copy();
        let done = recover(&disk, Path::new(scenario.root), |txn| {
            book.commit(&disk, txn)
        });
        let pending = disk.pending();
        let mixed = fates(&pending, 1, &mut dice).pop();
        let lost = vec![Fate::Lost; pending.len()];
        for fates in mixed.into_iter().chain((at % 4 == 0).then_some(lost)) {
            let next = Recorder::new(disk.after_crash(&fates), None, None);
            next_run(scenario, both, &next, &book.copy(), tally)
                .map_err(|e| format!("{e}\nsecond crash after {:#?}\n{fates:?}", disk.log()))?;
        }
        if done.is_ok() {
            break;
        }
    }
    Ok(())
}

fn assert_all_or_nothing(name: &str, scenario: &Scenario, at_least: usize) {
    let tally = crash_everywhere(scenario, None).unwrap_or_else(|e| panic!("{name}: {e}"));
    println!("{name}: {} operations, {tally:?}", scenario.operations());
    assert!(tally.points >= at_least, "only {} points", tally.points);
    assert!(tally.old > 0 && tally.new > 0 && tally.finished > 0 && tally.undone > 0);
}

#[test]
fn a_crash_anywhere_in_a_package_leaves_all_old_or_all_new() {
    assert_all_or_nothing("package", &a_package(), 1_000);
}

#[test]
fn a_crash_anywhere_in_a_fleet_leaves_all_old_or_all_new() {
    assert_all_or_nothing("fleet", &a_fleet(), 1_000);
}

#[test]
fn a_crash_anywhere_in_a_rewritten_fleet_leaves_all_old_or_all_new() {
    assert_all_or_nothing("rewritten fleet", &a_rewritten_fleet(), 1_000);
}

#[test]
fn a_crash_anywhere_while_a_directory_is_made_leaves_all_old_or_all_new() {
    assert_all_or_nothing("new directory", &a_new_directory(), 100);
}

#[test]
fn a_writer_whose_syncs_do_nothing_is_caught() {
    for lie in [Lie::File, Lie::Dir] {
        let caught = crash_everywhere(&a_package(), Some(lie));
        assert!(caught.is_err(), "{lie:?} went unnoticed: {caught:?}");
    }
    let caught = crash_everywhere(&a_fleet(), Some(Lie::Filesystem));
    assert!(caught.is_err(), "went unnoticed: {caught:?}");
}

#[test]
fn a_fleet_needs_no_sync_per_file() {
    let disk = Recorder::new(a_fleet().old, None, None);
    a_fleet().run(&disk, &Book::reserved(TXN)).unwrap();
    let syncs: Vec<_> = disk
        .log()
        .into_iter()
        .filter(|l| l.starts_with("sync"))
        .collect();
    let expected = [
        "sync /w/.moor-journal.new",
        "sync directory /w",
        "sync the file system",
        "sync directory /w",
    ];
    assert_eq!(syncs, expected);
}

#[test]
fn files_are_made_and_written_out_before_the_first_is_replaced() {
    let disk = Recorder::new(a_rewritten_fleet().old, None, None);
    a_rewritten_fleet()
        .run(&disk, &Book::reserved(TXN))
        .unwrap();
    let log = disk.log();
    let last = |start: &str| log.iter().rposition(|l| l.starts_with(start)).unwrap();
    let renamed = log
        .iter()
        .position(|l| l.starts_with("rename /w/pkg"))
        .unwrap();
    assert!(last("write ") < renamed, "{log:#?}");
    assert_eq!(log[renamed - 1], "sync the file system");
    assert_eq!(log[last("rename ") + 1], "sync the file system");
    let synced = |l: &&String| l.starts_with("sync ");
    assert_eq!(log.iter().filter(synced).count(), 5, "{log:#?}");
}

#[test]
fn the_book_is_committed_after_the_files_are_durable_and_before_the_journal_goes() {
    for scenario in [a_package(), a_fleet()] {
        let disk = Recorder::new(scenario.old.clone(), None, None);
        scenario.run(&disk, &Book::reserved(TXN)).unwrap();
        let log = disk.log();
        let at = log.iter().position(|l| l == "commit the book").unwrap();
        assert!(log[at - 1].starts_with("sync"), "{log:#?}");
        assert_eq!(
            log[at + 1],
            format!("remove {}/.moor-journal", scenario.root)
        );
        assert_eq!(log.len(), at + 3);
    }
}

#[test]
fn an_expired_reservation_does_not_keep_the_files_from_being_finished() {
    let scenario = a_package();
    let disk = Recorder::new(scenario.old.clone(), Some(6), None);
    let book = Book::reserved(TXN);
    scenario.run(&disk, &book).unwrap_err();
    let left = Recorder::new(disk.now(), None, None);
    book.expire();
    let recovered = recover(&left, Path::new(scenario.root), |txn| {
        book.commit(&left, txn)
    });
    let Ok(Recovered::Finished { committed, txn, .. }) = recovered else {
        panic!("{recovered:?}");
    };
    assert_eq!((committed, txn), (false, Some(TXN)));
    assert_eq!(left.now().contents(), scenario.result());
}

#[test]
fn a_run_in_a_package_finishes_an_interrupted_run_over_the_directory_above() {
    let scenario = a_fleet();
    let disk = Recorder::new(scenario.old.clone(), Some(9), None);
    let book = Book::reserved(TXN);
    scenario.run(&disk, &book).unwrap_err();
    let left = Recorder::new(disk.now(), None, None);
    let below = Path::new("/w/pkg/sub");
    assert!(left.meta(below).is_ok());
    let recovered = recover(&left, below, |txn| book.commit(&left, txn)).unwrap();
    assert!(matches!(recovered, Recovered::Finished { root, .. } if root == Path::new("/w")));
    assert_eq!(left.now().contents(), scenario.result());
    assert!(book.is_committed());
}
