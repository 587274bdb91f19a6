//! Random transactions over memory and over a file that is closed and crashed at random: both agree after every
//! step, and both agree with a model that knows only "a commit publishes its takes and unpublishes its releases".

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use mooring_api::{Span, Time};
use mooring_book::{AuditFilter, Error, FileStore, Filter, MemoryStore, Outcome, Store, Txn};
use mooring_ipam::{Holder, Lease, State, Thing, TxnId};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::disk::Disk;
use super::made::{NOW, candidate, defects, holder, holder_of, instance, package, thing};

/// Several of these overlap.
const THINGS: [&str; 9] = [
    "10.0.0.1",
    "10.0.0.2",
    "10.0.0.3",
    "10.0.0.0/30",
    "10.0.0.4/30",
    "10.0.0.5",
    "10.0.0.3-10.0.0.6",
    "vlan 7",
    "fd00::1",
];

#[derive(Clone, Debug)]
enum Act {
    Take(usize, u32),
    Release(usize, u64),
    Note(u8, u8),
    Forget(u8),
}

#[derive(Clone, Copy, Debug)]
enum End {
    Drop,
    Reserve,
    Commit,
    Abort,
}

#[derive(Clone, Debug)]
enum Command {
    Draft(Vec<Act>, End),
    Commit(usize),
    Abort(usize),
    Wait(u64),
    Restore(Vec<(usize, u32)>),
    Reopen,
    Crash,
}

fn acts() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (0..THINGS.len(), 0..5u32).prop_map(|(t, h)| Act::Take(t, h)),
        3 => (0..THINGS.len(), 0..300u64).prop_map(|(t, c)| Act::Release(t, c)),
        1 => (0..3u8, 0..3u8).prop_map(|(p, at)| Act::Note(p, at)),
        1 => (0..3u8).prop_map(Act::Forget),
    ]
}

fn commands() -> impl Strategy<Value = Command> {
    let end = prop_oneof![
        1 => Just(End::Drop),
        3 => Just(End::Reserve),
        4 => Just(End::Commit),
        1 => Just(End::Abort),
    ];
    prop_oneof![
        8 => (prop::collection::vec(acts(), 0..5), end).prop_map(|(a, e)| Command::Draft(a, e)),
        3 => (0..8usize).prop_map(Command::Commit),
        2 => (0..8usize).prop_map(Command::Abort),
        2 => (0..400u64).prop_map(Command::Wait),
        1 => prop::collection::vec((0..THINGS.len(), 0..5u32), 1..4).prop_map(Command::Restore),
        1 => Just(Command::Reopen),
        2 => Just(Command::Crash),
    ]
}

/// How often each thing happened, so that a generator which never gets there is noticed.
#[derive(Debug, Default)]
struct Counts(BTreeMap<&'static str, usize>);

impl Counts {
    fn add(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }
}

const MUST_HAPPEN: [&str; 14] = [
    "won free",
    "won own held",
    "won own reserved",
    "won own cooling",
    "won after cool-down",
    "lost to held",
    "lost to reserved",
    "lost to cooling",
    "committed",
    "committed again",
    "not open",
    "expired",
    "restore conflict",
    "crashed with reservations",
];

struct World {
    now: Time,
    memory: MemoryStore,
    disk: Disk,
    file: Option<FileStore>,
    drafts: Vec<Drafted>,
    published: BTreeMap<Thing, Holder>,
}

struct Drafted {
    id: TxnId,
    takes: BTreeMap<Thing, Holder>,
    releases: BTreeMap<Thing, Holder>,
    committed: bool,
}

fn open(disk: &Disk) -> FileStore {
    FileStore::with_backend(Path::new("(disk)"), disk.clone()).unwrap()
}

fn who(n: u32) -> Holder {
    if n < 3 {
        holder(n)
    } else {
        holder_of("amf", n)
    }
}

impl World {
    fn new() -> Self {
        let disk = Disk::default();
        Self {
            now: NOW,
            memory: MemoryStore::new(),
            file: Some(open(&disk)),
            disk,
            drafts: Vec::new(),
            published: BTreeMap::new(),
        }
    }

    fn file(&self) -> &FileStore {
        self.file.as_ref().expect("it is only closed to be opened")
    }

    fn run(&mut self, command: &Command, counts: &mut Counts) {
        // Every step has its own second, so that both stores give out the same ids.
        self.now = self.now.after(Span(1));
        match command {
            Command::Draft(acts, end) => self.draft(acts, *end, counts),
            Command::Commit(n) => {
                if let Some(at) = self.recent(*n) {
                    self.commit(at, counts);
                }
            }
            Command::Abort(n) => {
                if let Some(at) = self.recent(*n) {
                    let id = self.drafts[at].id;
                    let (a, b) = (
                        self.memory.abort(id, self.now),
                        self.file().abort(id, self.now),
                    );
                    assert_eq!(a.is_ok(), b.is_ok());
                    assert_eq!(a.is_err(), self.drafts[at].committed);
                }
            }
            Command::Wait(seconds) => self.now = self.now.after(Span(*seconds)),
            Command::Restore(wanted) => self.restore(wanted, counts),
            Command::Reopen => {
                self.file = None;
                self.file = Some(open(&self.disk));
            }
            Command::Crash => {
                if !self.file().pending().unwrap().is_empty() {
                    counts.add("crashed with reservations");
                }
                self.disk = self.disk.crashed();
                self.file = Some(open(&self.disk));
            }
        }
    }

    fn recent(&self, n: usize) -> Option<usize> {
        self.drafts.len().checked_sub(n + 1)
    }

    fn draft(&mut self, acts: &[Act], end: End, counts: &mut Counts) {
        let (now, mut takes, mut releases) = (self.now, BTreeMap::new(), BTreeMap::new());
        let expired = self.memory.pending().unwrap();
        if expired.iter().any(|p| p.until <= now) {
            counts.add("expired");
        }
        let file = self.file.as_ref().expect("it is only closed to be opened");
        let mut a = self.memory.begin(now).unwrap();
        let mut b = file.begin(now).unwrap();
        assert_eq!(a.id(), b.id());
        for act in acts {
            let mut done = Vec::new();
            for txn in [&mut *a, &mut *b] {
                done.push(act_on(txn, act, counts));
            }
            assert_eq!(done[0], done[1], "{act:?}");
            match (act, &done[0]) {
                (Act::Take(t, h), Some(Outcome::Won(_))) => {
                    takes.insert(thing(THINGS[*t]), who(*h));
                    releases.remove(&thing(THINGS[*t]));
                }
                (Act::Release(t, _), _) => {
                    let thing = thing(THINGS[*t]);
                    takes.remove(&thing);
                    if let Some(holder) = self.published.get(&thing) {
                        releases.insert(thing, holder.clone());
                    }
                }
                _ => {}
            }
        }
        for (cluster, package) in [("edge", "upf"), ("edge", "amf")] {
            let has = a.held_by_package(cluster, package).unwrap();
            assert_eq!(has, b.held_by_package(cluster, package).unwrap());
        }
        assert_eq!(a.is_unchanged(), b.is_unchanged());
        if matches!(end, End::Drop) {
            return;
        }
        let id = a.reserve(Span(300)).unwrap();
        assert_eq!(id, b.reserve(Span(300)).unwrap());
        self.drafts.push(Drafted {
            id,
            takes,
            releases,
            committed: false,
        });
        let at = self.drafts.len() - 1;
        match end {
            End::Commit => self.commit(at, counts),
            End::Abort => {
                self.memory.abort(id, now).unwrap();
                self.file().abort(id, now).unwrap();
            }
            End::Drop | End::Reserve => {}
        }
    }

    fn commit(&mut self, at: usize, counts: &mut Counts) {
        let id = self.drafts[at].id;
        let (a, b) = (
            self.memory.commit(id, self.now),
            self.file().commit(id, self.now),
        );
        match (a, b) {
            (Ok(()), Ok(())) => {}
            (Err(Error::NotOpen(x)), Err(Error::NotOpen(y))) if x == y => {
                counts.add("not open");
                assert!(!self.drafts[at].committed);
                return;
            }
            (a, b) => panic!("memory said {a:?}, file {b:?}"),
        }
        let draft = &mut self.drafts[at];
        if draft.committed {
            counts.add("committed again");
            return;
        }
        counts.add("committed");
        draft.committed = true;
        self.published.extend(draft.takes.clone());
        for (thing, holder) in &draft.releases {
            if self.published.get(thing) == Some(holder) {
                self.published.remove(thing);
            }
        }
    }

    fn restore(&mut self, wanted: &[(usize, u32)], counts: &mut Counts) {
        let lease = |(t, h): &(usize, u32)| {
            let candidate = candidate(THINGS[*t]);
            Lease {
                instance: instance(),
                thing: candidate.thing,
                subnet: candidate.subnet,
                gateway: candidate.gateway,
                holder: who(*h),
                state: State::Held,
                since: self.now,
            }
        };
        let leases: Vec<Lease> = wanted.iter().map(lease).collect();
        let a = self.memory.restore(&leases, &[], self.now).unwrap();
        let b = self.file().restore(&leases, &[], self.now).unwrap();
        assert_eq!(a, b);
        for lease in leases {
            if a.conflicts.iter().any(|c| c.wanted == lease) {
                counts.add("restore conflict");
            } else {
                self.published.insert(lease.thing, lease.holder);
            }
        }
    }

    fn check(&self) {
        let (a, b) = (&self.memory, self.file());
        let all = Filter::default();
        let leases = a.leases(&all).unwrap();
        assert_eq!(leases, b.leases(&all).unwrap());
        assert_eq!(a.pending().unwrap(), b.pending().unwrap());
        assert_eq!(a.packages().unwrap(), b.packages().unwrap());
        let trail = |s: &dyn Store| s.audit(&AuditFilter::default(), usize::MAX).unwrap();
        assert_eq!(trail(a), trail(b));
        let held = leases.iter().filter(|l| l.state == State::Held);
        let held: BTreeMap<Thing, Holder> = held.map(|l| (l.thing, l.holder.clone())).collect();
        assert_eq!(held, self.published, "held is not what was published");
        let pending = a.pending().unwrap();
        for lease in &leases {
            if let State::Reserved { txn, .. } = lease.state {
                let by = pending.iter().find(|p| p.id == txn);
                let by = by.unwrap_or_else(|| panic!("{} has leaked", lease.thing));
                assert!(by.takes.contains(&(instance(), lease.thing)));
            }
        }
    }
}

fn act_on(txn: &mut dyn Txn, act: &Act, counts: &mut Counts) -> Option<Outcome> {
    match act {
        Act::Take(t, h) => {
            let (candidate, holder) = (candidate(THINGS[*t]), who(*h));
            let mut before = None;
            txn.with_table(&instance(), &mut |table| {
                before = table.get(&candidate.thing);
            })
            .unwrap();
            let own = before.as_ref().is_some_and(|l| l.holder == holder);
            let outcome = txn.try_take(&instance(), &candidate, &holder).unwrap();
            let state = |lease: &Lease| match lease.state {
                State::Held => 0,
                State::Reserved { .. } => 1,
                State::Cooling { .. } => 2,
            };
            counts.add(match (&outcome, &before) {
                (Outcome::Won(_), None) => "won free",
                (Outcome::Won(_), Some(l)) if !own => "won after cool-down",
                (Outcome::Won(_), Some(l)) => {
                    ["won own held", "won own reserved", "won own cooling"][state(l)]
                }
                (Outcome::Lost(to), _) => {
                    ["lost to held", "lost to reserved", "lost to cooling"][state(to)]
                }
            });
            Some(outcome)
        }
        Act::Release(t, cool_down) => {
            txn.release(&instance(), &thing(THINGS[*t]), Span(*cool_down))
                .unwrap();
            None
        }
        Act::Note(p, at) => {
            txn.note_package(package(&format!("p{p}"), &format!("dir{at}")))
                .unwrap();
            None
        }
        Act::Forget(p) => {
            txn.forget_package("edge", &format!("p{p}")).unwrap();
            None
        }
    }
}

#[test]
fn memory_and_a_crashing_file_agree_with_each_other_and_with_a_model() {
    let config = Config {
        cases: 150,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let counts = RefCell::new(Counts::default());
    let outcome = TestRunner::new_with_rng(config, rng).run(
        &prop::collection::vec(commands(), 1..40),
        |commands| {
            let mut world = World::new();
            for command in &commands {
                world.run(command, &mut counts.borrow_mut());
                world.check();
            }
            let end = world.now;
            assert_eq!(defects(&world.memory, end).unwrap(), [""; 0]);
            assert_eq!(defects(world.file(), end).unwrap(), [""; 0]);
            Ok(())
        },
    );
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
    let counts = counts.into_inner();
    println!("{counts:?}");
    for what in MUST_HAPPEN {
        assert!(counts.0.contains_key(what), "never happened: {what}");
    }
}
