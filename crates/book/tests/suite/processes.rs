//! Several processes on one book. A process here is a process: this program, started again to run [`child`].

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use mooring_api::Span;
use mooring_book::{Access, Error, FileStore, Filter, LazyStore, Options, Outcome, Store};
use mooring_ipam::{Lease, State, TxnId};

use super::made::{NOW, candidate, defects, holder_of, instance, later, shown};

const BOOK: &str = "MOORING_TEST_BOOK";
const NAME: &str = "MOORING_TEST_NAME";
/// Where the child kills itself: before which of its steps.
const DIES_AT: &str = "MOORING_TEST_DIES_AT";

const EACH: u32 = 25;

fn open(path: &Path) -> FileStore {
    let patient = Options {
        wait: Duration::from_mins(2),
        ..Options::default()
    };
    FileStore::open(path, &patient).unwrap()
}

/// Not a test of its own: what a child process does.
#[test]
#[ignore = "child: other tests start it as a process"]
fn child() {
    let path = PathBuf::from(std::env::var_os(BOOK).expect("a parent sets it"));
    let name = std::env::var(NAME).unwrap();
    let dies_at: u32 = std::env::var(DIES_AT).map_or(u32::MAX, |n| n.parse().unwrap());
    let mut steps = 0;
    let mut step = || {
        die_if(steps == dies_at);
        steps += 1;
    };
    for n in 0..EACH {
        let store = open(&path);
        step();
        let mut txn = store.begin(NOW).unwrap();
        let holder = holder_of(&name, n);
        let mut last = 0;
        let won = loop {
            last += 1;
            let offer = candidate(&format!("10.0.{}.{}", last / 250, last % 250 + 1));
            if let Outcome::Won(lease) = txn.try_take(&instance(), &offer, &holder).unwrap() {
                break lease;
            }
        };
        step();
        let id = txn.reserve(Span(60)).unwrap();
        step();
        store.commit(id, NOW).unwrap();
        println!("\nTOOK {} {}", won.thing, won.holder.interface);
        step();
    }
}

/// Not a test of its own: the same with a book that is read first, and opened for writing to reserve.
#[test]
#[ignore = "child: other tests start it as a process"]
fn lazy_child() {
    let path = PathBuf::from(std::env::var_os(BOOK).expect("a parent sets it"));
    let name = std::env::var(NAME).unwrap();
    let dies_at: u32 = std::env::var(DIES_AT).map_or(u32::MAX, |n| n.parse().unwrap());
    let mut overtaken = 0;
    for n in 0..EACH {
        // How long a run may wait in earnest.
        let store = LazyStore::at(path.clone(), Access::Write, Options::default());
        let holder = holder_of(&name, n);
        let mut tries = 0;
        let outcome = store.settle(|store| {
            tries += 1;
            let mut txn = store.begin(NOW)?;
            let offers =
                (1..).map(|last| candidate(&format!("10.0.{}.{}", last / 250, last % 250 + 1)));
            for offer in offers {
                if let Outcome::Won(lease) = txn.try_take(&instance(), &offer, &holder)? {
                    if n == 0 && tries == 1 {
                        println!("\nDRAFTED");
                        // Until the parent closes it, when everybody has drafted over the book that is not there.
                        std::io::stdin().read_line(&mut String::new()).unwrap();
                    }
                    die_if(dies_at == 2 * n);
                    return Ok::<_, Error>((txn.reserve(Span(60))?, lease));
                }
            }
            unreachable!("somewhere is an address")
        });
        let (id, won) = outcome.unwrap();
        overtaken += u32::from(tries == 2);
        die_if(dies_at == 2 * n + 1);
        store.commit(id, NOW).unwrap();
        println!("\nTOOK {} {}", won.thing, won.holder.interface);
    }
    println!("\nOVERTAKEN {overtaken}");
}

fn die_if(now: bool) {
    if now {
        let pid = std::process::id().to_string();
        let _ = Command::new("kill").args(["-9", &pid]).status();
        std::process::abort();
    }
}

fn spawn(book: &Path, name: &str, dies_at: Option<u32>) -> Child {
    spawn_body("processes::child", book, name, dies_at)
}

fn spawn_body(body: &str, book: &Path, name: &str, dies_at: Option<u32>) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([body, "--exact", "--ignored", "--nocapture"]);
    command.env(BOOK, book).env(NAME, name);
    if let Some(step) = dies_at {
        command.env(DIES_AT, step.to_string());
    }
    command.stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// What a child said it had taken, `address interface`, and whether it came to its end.
fn joined(child: Child) -> (BTreeSet<String>, bool) {
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let took = text.lines().filter_map(|l| l.strip_prefix("TOOK "));
    (took.map(str::to_owned).collect(), output.status.success())
}

fn held(store: &dyn Store) -> Vec<Lease> {
    let all = store.leases(&Filter::default()).unwrap();
    all.into_iter().filter(|l| l.state == State::Held).collect()
}

/// Held leases by package, as the children say them.
fn by_package(leases: &[Lease]) -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for lease in leases {
        let said = format!("{} {}", lease.thing, lease.holder.interface);
        let fresh = all.entry(lease.holder.package.clone()).or_default();
        assert!(fresh.insert(said), "{} twice", lease.thing);
    }
    all
}

#[test]
fn eight_processes_take_every_address_once() {
    let dir = tempfile::tempdir().unwrap();
    let book = dir.path().join("book.redb");
    let children: Vec<(String, Child)> = (0..8)
        .map(|n| (format!("p{n}"), spawn(&book, &format!("p{n}"), None)))
        .collect();
    let mut said = BTreeMap::new();
    for (name, child) in children {
        let (took, whole) = joined(child);
        assert!(whole, "{name} failed");
        said.insert(name, took);
    }
    let store = open(&book);
    let leases = held(&store);
    assert_eq!(leases.len(), 8 * EACH as usize);
    assert_eq!(by_package(&leases), said);
    let addresses: BTreeSet<_> = leases.iter().map(|l| l.thing).collect();
    assert_eq!(addresses.len(), leases.len());
    // Lowest first, so without a gap.
    assert_eq!(leases.last().unwrap().thing, candidate("10.0.0.201").thing);
    assert_eq!(defects(&store, NOW).unwrap(), [""; 0]);
}

#[test]
fn processes_that_are_killed_leave_a_book_that_others_use() {
    let dir = tempfile::tempdir().unwrap();
    let book = dir.path().join("book.redb");
    let living: Vec<Child> = (0..3)
        .map(|n| spawn(&book, &format!("l{n}"), None))
        .collect();
    // Before a draft, in one, between reserve and commit, and after a commit, early and late.
    let dying = [0, 1, 2, 3, 21, 42, 63];
    let dead: Vec<Child> = dying
        .iter()
        .map(|step| spawn(&book, &format!("d{step}"), Some(*step)))
        .collect();
    for child in living {
        let (took, whole) = joined(child);
        assert!(whole && took.len() == EACH as usize);
    }
    let mut said = BTreeMap::new();
    for (step, child) in dying.iter().zip(dead) {
        let (took, whole) = joined(child);
        assert!(!whole, "d{step} should have been killed");
        assert_eq!(took.len(), (*step as usize + 1) / 4, "d{step}");
        said.insert(format!("d{step}"), took);
    }
    let store = open(&book);
    assert_eq!(defects(&store, NOW).unwrap(), [""; 0]);
    let has = by_package(&held(&store));
    for (name, took) in &said {
        let kept = has.get(name).cloned().unwrap_or_default();
        assert_eq!(kept, *took, "{name}");
    }
    // Steps 2 and 42 died between reserve and commit: the reservation stands until it expires.
    let reserved = |store: &dyn Store| {
        shown(store)
            .iter()
            .filter(|l| l.ends_with("reserved"))
            .count()
    };
    assert_eq!(reserved(&store), 2);
    let open_ones: Vec<TxnId> = store.pending().unwrap().iter().map(|p| p.id).collect();
    assert_eq!(open_ones.len(), 2);
    drop(store.begin(later(61)).unwrap());
    assert_eq!(reserved(&store), 0);
}

/// What a child says, line by line.
struct Told {
    name: String,
    dies_at: Option<u32>,
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Told {
    fn spawn(book: &Path, name: String, dies_at: Option<u32>) -> Self {
        let mut child = spawn_body("processes::lazy_child", book, &name, dies_at);
        let stdout = child.stdout.take().expect("it is piped");
        let lines = BufReader::new(stdout).lines();
        Self {
            name,
            dies_at,
            child,
            lines,
        }
    }

    fn wait_for_draft(&mut self) {
        let drafted = self.lines.by_ref().any(|line| line.unwrap() == "DRAFTED");
        assert!(drafted, "{} ended before it had drafted", self.name);
    }
}

#[test]
fn eight_processes_that_draft_first_take_every_address_once_whoever_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let book = dir.path().join("book.redb");
    let living = (0..4).map(|n| Told::spawn(&book, format!("l{n}"), None));
    // Even: with a draft, before it is reserved. Odd: between reserve and commit.
    let dying = [0, 9, 20, 31].map(|step| Told::spawn(&book, format!("d{step}"), Some(step)));
    let mut children: Vec<Told> = living.chain(dying).collect();
    children.iter_mut().for_each(Told::wait_for_draft);
    for told in &mut children {
        drop(told.child.stdin.take());
    }
    let (mut said, mut reserved, mut overtaken) = (BTreeMap::new(), 0, 0);
    for told in children {
        let name = told.name;
        let lines: Vec<String> = told.lines.map(Result::unwrap).collect();
        let output = told.child.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        let whole = output.status.success();
        assert_eq!(whole, told.dies_at.is_none(), "{name}: {errors}");
        let after = |start| lines.iter().filter_map(move |l| l.strip_prefix(start));
        let took: BTreeSet<String> = after("TOOK ").map(str::to_owned).collect();
        let runs = told.dies_at.map_or(EACH, |step| step / 2);
        assert_eq!(took.len(), runs as usize, "{name}");
        reserved += told.dies_at.map_or(0, |step| step as usize % 2);
        overtaken += after("OVERTAKEN ")
            .map(|n| n.parse::<u32>().unwrap())
            .sum::<u32>();
        said.insert(name, took);
    }
    println!("{overtaken} runs were overtaken");
    // Of the first drafts one was in time.
    assert!(overtaken >= 3, "only {overtaken} were overtaken");
    let store = open(&book);
    assert_eq!(defects(&store, NOW).unwrap(), [""; 0]);
    said.retain(|_, took| !took.is_empty());
    assert_eq!(by_package(&held(&store)), said);
    assert_eq!(store.pending().unwrap().len(), reserved);
}
