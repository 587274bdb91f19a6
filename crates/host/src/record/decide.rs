//! Decides: what to do with a device, given its record and what was seen. Pure; the mover ([`crate::device::Mover`]) acts on it.
//!
//! ```text
//!              take                                         release
//!  no record   Fresh                                        Nothing
//!  other boot  Forget                                       Forget
//!  same owner  Adopt │ Resume │ RestoreFirst │ Missing      Restore │ Forget │ Hidden
//!  other owner Busy (alive) │ RestoreFirst (dead)           NotYours
//!  elsewhere, and its owner is gone: Taken                  NotYours
//! ```
//!
//! Easy to get wrong: a device that cannot be seen is not a device that is gone. Hardware comes back to the host when its
//! namespace ends, a moment later; only what is virtual ends with the namespace.

use super::{Owner, Phase, Record};

/// Where the device of a record is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the namespace of the host, under whatever name.
    Host,
    /// In the namespace of the record's owner.
    Owner,
    /// In another namespace that can be opened.
    Elsewhere,
    /// In none that can be opened.
    Nowhere,
}

/// What was seen about a record's device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The node has not started anew since the record was written.
    pub same_boot: bool,
    /// The owner's namespace can be opened and is the one it was.
    pub owner_alive: bool,
    /// Where the device is.
    pub place: Place,
    /// It can come back: its function is on the bus still. False for what ends with its namespace.
    pub can_return: bool,
    /// What the asker selects is in the host's namespace, be it this device or a new one in its place.
    pub selected: bool,
}

/// What a taker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// Nobody has it: record, then move.
    Fresh,
    /// The record says nothing any more: remove it, then as [`Take::Fresh`].
    Forget,
    /// The asker has it, and was done: give the same answer.
    Adopt,
    /// The asker began and did not finish: go on, with what the record kept.
    Resume,
    /// It has to come home before it can go out again.
    RestoreFirst,
    /// Another one that lives has it.
    Busy,
    /// It is with somebody of whom there is no record.
    Taken,
    /// It is in no place that can be reached.
    Missing,
}

/// What a releaser does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// There is no record.
    Nothing,
    /// Another one has it now: leave it alone.
    NotYours,
    /// Bring it home and put back what it had.
    Restore,
    /// There is nothing to bring home: remove the record.
    Forget,
    /// It will come back, but cannot be reached now: keep the record, ask again.
    Hidden,
}

/// What a taker does with a device.
pub fn on_take(record: Option<&Record>, asker: &Owner, facts: Facts) -> Take {
    let Some(record) = record else {
        return Take::Fresh;
    };
    if !facts.same_boot {
        return Take::Forget;
    }
    if is_taken(facts) {
        return Take::Taken;
    }
    let same = record.owner.same_as(asker);
    let gone = facts.place == Place::Nowhere && !facts.can_return;
    if gone && (same || !facts.owner_alive || facts.selected) {
        return Take::Forget;
    }
    if !same {
        return match (facts.owner_alive, facts.place) {
            (true, _) => Take::Busy,
            (false, Place::Nowhere) => Take::Missing,
            (false, _) => Take::RestoreFirst,
        };
    }
    if facts.place == Place::Nowhere {
        return Take::Missing;
    }
    // The same holder in a new namespace: what it had in the old one ends here.
    if record.owner.netns_id != asker.netns_id || facts.place == Place::Elsewhere {
        return Take::RestoreFirst;
    }
    match (record.phase, facts.place) {
        (Phase::Restoring, _) => Take::RestoreFirst,
        (Phase::Configured, Place::Owner) => Take::Adopt,
        _ => Take::Resume,
    }
}

/// Hardware is on the host when its namespace has ended. Where it is in another one instead, somebody gave it away since, such as the
/// plugin that the node was switched to for a while.
fn is_taken(facts: Facts) -> bool {
    facts.place == Place::Elsewhere && !facts.owner_alive
}

/// What a releaser does with a device.
pub fn on_release(record: Option<&Record>, holder: &str, ifname: &str, facts: Facts) -> Release {
    let Some(record) = record else {
        return Release::Nothing;
    };
    if record.owner.holder != holder || record.owner.ifname != ifname {
        return Release::NotYours;
    }
    match facts.place {
        _ if !facts.same_boot => Release::Forget,
        _ if is_taken(facts) => Release::NotYours,
        Place::Host | Place::Owner | Place::Elsewhere => Release::Restore,
        Place::Nowhere if facts.can_return => Release::Hidden,
        Place::Nowhere => Release::Forget,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEEN: Facts = Facts {
        same_boot: true,
        owner_alive: true,
        place: Place::Owner,
        can_return: true,
        selected: false,
    };

    fn owner(holder: &str) -> Owner {
        Owner {
            holder: holder.to_owned(),
            ifname: "net1".to_owned(),
            group: "g".to_owned(),
            netns: format!("/run/netns/{holder}").into(),
            netns_id: crate::NetnsId { dev: 4, inode: 7 },
        }
    }

    fn record(phase: Phase) -> Record {
        let mut record = Record::sample();
        record.owner = owner("a");
        record.phase = phase;
        record
    }

    fn take(phase: Phase, asker: &str, facts: Facts) -> Take {
        on_take(Some(&record(phase)), &owner(asker), facts)
    }

    const PHASES: [Phase; 3] = [Phase::Prepared, Phase::Configured, Phase::Restoring];
    const PLACES: [Place; 4] = [Place::Host, Place::Owner, Place::Elsewhere, Place::Nowhere];

    #[test]
    fn a_device_without_record_is_fresh() {
        assert_eq!(on_take(None, &owner("a"), SEEN), Take::Fresh);
        assert_eq!(on_release(None, "a", "net1", SEEN), Release::Nothing);
    }

    #[test]
    fn a_record_of_another_boot_is_forgotten_whoever_asks() {
        let facts = Facts {
            same_boot: false,
            ..SEEN
        };
        for phase in PHASES {
            for asker in ["a", "b"] {
                assert_eq!(take(phase, asker, facts), Take::Forget);
            }
            let release = on_release(Some(&record(phase)), "a", "net1", facts);
            assert_eq!(release, Release::Forget);
        }
    }

    #[test]
    fn an_owner_that_was_done_gets_the_same_answer() {
        assert_eq!(take(Phase::Configured, "a", SEEN), Take::Adopt);
    }

    #[test]
    fn an_owner_that_was_killed_goes_on_wherever_the_device_is() {
        for place in [Place::Host, Place::Owner] {
            let facts = Facts { place, ..SEEN };
            assert_eq!(take(Phase::Prepared, "a", facts), Take::Resume);
        }
        let fell_back = Facts {
            place: Place::Host,
            ..SEEN
        };
        assert_eq!(take(Phase::Configured, "a", fell_back), Take::Resume);
    }

    #[test]
    fn a_restore_that_was_begun_is_ended_first() {
        for place in [Place::Host, Place::Owner] {
            let facts = Facts { place, ..SEEN };
            assert_eq!(take(Phase::Restoring, "a", facts), Take::RestoreFirst);
        }
    }

    #[test]
    fn the_same_holder_in_a_new_namespace_brings_it_home_first() {
        let mut asker = owner("a");
        asker.netns_id.inode += 1;
        let record = record(Phase::Configured);
        assert_eq!(on_take(Some(&record), &asker, SEEN), Take::RestoreFirst);
        let elsewhere = Facts {
            place: Place::Elsewhere,
            ..SEEN
        };
        assert_eq!(take(Phase::Configured, "a", elsewhere), Take::RestoreFirst);
    }

    #[test]
    fn another_name_in_the_same_pod_is_another_owner() {
        let mut asker = owner("a");
        asker.ifname = "net2".to_owned();
        assert_eq!(
            on_take(Some(&record(Phase::Configured)), &asker, SEEN),
            Take::Busy
        );
        let release = on_release(Some(&record(Phase::Configured)), "a", "net2", SEEN);
        assert_eq!(release, Release::NotYours);
    }

    #[test]
    fn a_living_owner_keeps_it_in_every_phase_and_place() {
        for phase in PHASES {
            for place in PLACES {
                let facts = Facts { place, ..SEEN };
                assert_eq!(take(phase, "b", facts), Take::Busy, "{phase:?} {place:?}");
            }
        }
    }

    #[test]
    fn what_a_dead_owner_left_comes_home_first() {
        for phase in PHASES {
            for place in [Place::Host, Place::Owner] {
                let facts = Facts {
                    owner_alive: false,
                    place,
                    ..SEEN
                };
                assert_eq!(take(phase, "b", facts), Take::RestoreFirst);
            }
        }
    }

    #[test]
    fn what_somebody_else_was_given_since_is_left_alone() {
        let facts = Facts {
            owner_alive: false,
            place: Place::Elsewhere,
            ..SEEN
        };
        for phase in PHASES {
            for asker in ["a", "b"] {
                assert_eq!(take(phase, asker, facts), Take::Taken);
            }
            let release = on_release(Some(&record(phase)), "a", "net1", facts);
            assert_eq!(release, Release::NotYours);
        }
    }

    #[test]
    fn hardware_that_cannot_be_seen_is_missing_and_not_gone() {
        let facts = Facts {
            owner_alive: false,
            place: Place::Nowhere,
            ..SEEN
        };
        assert_eq!(take(Phase::Configured, "b", facts), Take::Missing);
        assert_eq!(take(Phase::Configured, "a", facts), Take::Missing);
        let release = on_release(Some(&record(Phase::Configured)), "a", "net1", facts);
        assert_eq!(release, Release::Hidden);
    }

    #[test]
    fn what_ended_with_its_namespace_is_forgotten() {
        let facts = Facts {
            owner_alive: false,
            place: Place::Nowhere,
            can_return: false,
            ..SEEN
        };
        for asker in ["a", "b"] {
            assert_eq!(take(Phase::Configured, asker, facts), Take::Forget);
        }
        let release = on_release(Some(&record(Phase::Configured)), "a", "net1", facts);
        assert_eq!(release, Release::Forget);
    }

    #[test]
    fn a_new_device_in_the_place_of_one_that_is_gone_is_fresh() {
        let facts = Facts {
            place: Place::Nowhere,
            can_return: false,
            selected: true,
            ..SEEN
        };
        assert_eq!(take(Phase::Configured, "b", facts), Take::Forget);
        let not_selected = Facts {
            selected: false,
            ..facts
        };
        assert_eq!(take(Phase::Configured, "b", not_selected), Take::Busy);
    }

    #[test]
    fn a_late_release_of_an_old_owner_touches_nothing() {
        for phase in PHASES {
            for place in PLACES {
                let facts = Facts {
                    place,
                    owner_alive: false,
                    ..SEEN
                };
                let release = on_release(Some(&record(phase)), "old", "net1", facts);
                assert_eq!(release, Release::NotYours);
            }
        }
    }

    #[test]
    fn a_release_restores_from_every_place_that_can_be_reached() {
        for phase in PHASES {
            for place in [Place::Host, Place::Owner, Place::Elsewhere] {
                let facts = Facts { place, ..SEEN };
                let release = on_release(Some(&record(phase)), "a", "net1", facts);
                assert_eq!(release, Release::Restore);
            }
        }
    }
}
