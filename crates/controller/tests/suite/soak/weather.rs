//! What breaks. One fault at a time, but for Git, which may be away while other things break.

use std::collections::BTreeMap;
use std::time::Duration;

use super::chance::Chance;
use super::{LEASE, Storm};

/// Something that breaks, or is mended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    /// SIGKILL of one controller.
    Kill,
    /// One controller stands still for longer than its lease, and goes on.
    Freeze,
    /// The API server ends and comes back.
    ApiServer,
    /// etcd ends and comes back.
    Etcd,
    /// Nobody listens for Git.
    GitAway,
    /// Git is back.
    GitBack,
    /// Git is away for a minute, and nothing else happens.
    GitAwayForAMinute,
}

impl Fault {
    pub(super) fn draw(chance: &mut Chance) -> Self {
        match chance.below(12) {
            0..=4 => Self::Kill,
            5..=6 => Self::Freeze,
            7 => Self::ApiServer,
            8 => Self::Etcd,
            9 => Self::GitAway,
            _ => Self::GitBack,
        }
    }
}

/// Lets them come one after the other; says how often each did.
pub(super) fn blow(
    storm: &Storm<'_>,
    mut chance: Chance,
    faults: impl Iterator<Item = Fault>,
) -> String {
    let mut count: BTreeMap<Fault, usize> = BTreeMap::new();
    for fault in faults {
        // Not a wait for a state: the point is to be anywhere.
        pause(200 + chance.below(1800));
        strike(storm, &mut chance, fault);
        *count.entry(fault).or_default() += 1;
    }
    format!("{count:?}")
}

fn strike(storm: &Storm<'_>, chance: &mut Chance, fault: Fault) {
    let stage = storm.scene.stage;
    let plane = stage.cluster.plane();
    match fault {
        Fault::Kill => {
            let mut one = storm.replica(chance.next());
            one.kill();
            one.restart();
        }
        Fault::Freeze => {
            let one = storm.replica(chance.next());
            one.freeze();
            std::thread::sleep(LEASE + Duration::from_secs(2));
            one.thaw();
        }
        Fault::ApiServer => {
            plane.stop_api_server();
            pause(chance.below(1500));
            plane.start_api_server();
        }
        Fault::Etcd => plane.restart_etcd(),
        Fault::GitAway => stage.git.stop(),
        Fault::GitBack => stage.git.start_again(),
        Fault::GitAwayForAMinute => {
            stage.git.stop();
            std::thread::sleep(Duration::from_mins(1));
            stage.git.start_again();
        }
    }
}

fn pause(milliseconds: u64) {
    std::thread::sleep(Duration::from_millis(milliseconds));
}
