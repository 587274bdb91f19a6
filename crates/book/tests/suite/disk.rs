//! A disk that writes down what it is told, so that a test can be a crash at any moment of it.
//!
//! What was synced is on the disk. What was not is anybody's guess: a crash may keep all of it, nothing, or any
//! sectors of any writes in any order. Killing a process would not show that, since the page cache survives.

use std::io;
use std::sync::{Arc, Mutex};

use redb::StorageBackend;

use super::made::Dice;

const SECTOR: usize = 512;

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Write(u64, Vec<u8>),
    SetLen(u64),
    Sync,
    /// Not the disk's: the scenario has this many steps behind it.
    Done(usize),
}

#[derive(Debug, Default)]
struct Tape {
    bytes: Vec<u8>,
    /// As of the last sync.
    synced: Vec<u8>,
    ops: Vec<Op>,
    recording: bool,
    full: bool,
}

/// Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk(Arc<Mutex<Tape>>);

impl Disk {
    pub(crate) fn recording() -> Self {
        let disk = Self::default();
        disk.0.lock().unwrap().recording = true;
        disk
    }

    pub(crate) fn holding(bytes: Vec<u8>) -> Self {
        let disk = Self::default();
        {
            let mut tape = disk.0.lock().unwrap();
            tape.synced.clone_from(&bytes);
            tape.bytes = bytes;
        }
        disk
    }

    /// From now on nothing can be written.
    pub(crate) fn fill(&self) {
        self.0.lock().unwrap().full = true;
    }

    pub(crate) fn done(&self, steps: usize) {
        self.0.lock().unwrap().ops.push(Op::Done(steps));
    }

    pub(crate) fn ops(&self) -> Vec<Op> {
        self.0.lock().unwrap().ops.clone()
    }

    /// What a crash leaves that keeps nothing but what was synced.
    pub(crate) fn crashed(&self) -> Self {
        Self::holding(self.0.lock().unwrap().synced.clone())
    }

    fn log(tape: &mut Tape, op: Op) {
        if tape.recording {
            tape.ops.push(op);
        }
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().bytes.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let tape = self.0.lock().unwrap();
        let start = usize::try_from(offset).unwrap();
        let found = tape.bytes.get(start..start + out.len());
        out.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut tape = self.0.lock().unwrap();
        apply(&mut tape.bytes, &Op::SetLen(len));
        Self::log(&mut tape, Op::SetLen(len));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut tape = self.0.lock().unwrap();
        let Tape { bytes, synced, .. } = &mut *tape;
        synced.clone_from(bytes);
        Self::log(&mut tape, Op::Sync);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut tape = self.0.lock().unwrap();
        if tape.full {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let op = Op::Write(offset, data.to_vec());
        apply(&mut tape.bytes, &op);
        Self::log(&mut tape, op);
        Ok(())
    }
}

fn apply(image: &mut Vec<u8>, op: &Op) {
    match op {
        Op::Write(offset, data) => {
            let start = usize::try_from(*offset).unwrap();
            if image.len() < start + data.len() {
                image.resize(start + data.len(), 0);
            }
            image[start..start + data.len()].copy_from_slice(data);
        }
        Op::SetLen(len) => image.resize(usize::try_from(*len).unwrap(), 0),
        Op::Sync | Op::Done(_) => {}
    }
}

/// What a crash does with writes that were not synced.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unsynced {
    Dropped,
    Kept,
    /// Some of them.
    Some,
    /// All of them, the order turned around: a later write may be older than an earlier one.
    Reordered,
    /// Some sectors of each.
    Torn,
}

impl Unsynced {
    pub(crate) const ALL: [Self; 5] = [
        Self::Dropped,
        Self::Kept,
        Self::Some,
        Self::Reordered,
        Self::Torn,
    ];
}

/// The images that a crash may leave, one operation after the other.
pub(crate) struct Crashes<'a> {
    ops: &'a [Op],
    at: usize,
    synced: Vec<u8>,
    unsynced: Vec<Op>,
    /// Steps of the scenario that are behind us.
    pub(crate) done: usize,
}

impl<'a> Crashes<'a> {
    pub(crate) fn of(ops: &'a [Op]) -> Self {
        Self {
            ops,
            at: 0,
            synced: Vec::new(),
            unsynced: Vec::new(),
            done: 0,
        }
    }

    /// One operation on. False at the end. `lying` is a disk that does not sync when told to.
    pub(crate) fn advance(&mut self, lying: bool) -> bool {
        let Some(op) = self.ops.get(self.at) else {
            return false;
        };
        self.at += 1;
        match op {
            Op::Done(steps) => self.done = *steps,
            Op::Sync if lying => {}
            Op::Sync => {
                for op in self.unsynced.drain(..) {
                    apply(&mut self.synced, &op);
                }
            }
            other => self.unsynced.push(other.clone()),
        }
        true
    }

    /// Whether the last operation could have changed what a crash leaves.
    pub(crate) fn moved(&self) -> bool {
        !matches!(self.ops[self.at - 1], Op::Done(_))
    }

    pub(crate) fn image(&self, unsynced: Unsynced, dice: &mut Dice) -> Vec<u8> {
        let mut image = self.synced.clone();
        let mut ops = self.unsynced.clone();
        match unsynced {
            Unsynced::Dropped => ops.clear(),
            Unsynced::Kept => {}
            Unsynced::Some => ops.retain(|_| dice.below(2) == 0),
            Unsynced::Reordered => {
                // A file is as long as it was made, in whatever order its pages arrive.
                ops.sort_by_key(|op| !matches!(op, Op::SetLen(_)));
                let writes = ops.iter().position(|op| matches!(op, Op::Write(..)));
                ops[writes.unwrap_or(0)..].reverse();
            }
            Unsynced::Torn => ops = ops.into_iter().flat_map(|op| torn(op, dice)).collect(),
        }
        for op in &ops {
            apply(&mut image, op);
        }
        image
    }
}

fn torn(op: Op, dice: &mut Dice) -> Vec<Op> {
    let Op::Write(offset, data) = op else {
        return vec![op];
    };
    let sectors = data.chunks(SECTOR).enumerate();
    let kept = sectors.filter(|_| dice.below(2) == 0);
    kept.map(|(n, sector)| Op::Write(offset + (n * SECTOR) as u64, sector.to_vec()))
        .collect()
}
