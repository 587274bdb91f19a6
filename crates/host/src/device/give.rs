//! Gives back what a holder had: decides per record, and asks again for a moment where the kernel is not done yet.
//!
//! Easy to get wrong: one holder and name may have two records, when an attempt that was killed had another device.

use std::time::{Duration, Instant};

use super::find::Located;
use super::take::hidden;
use super::{DeviceError, Mover};
use crate::fault;
use crate::record::decide::{Release, on_release};
use crate::record::{Held, Record};

/// How long hardware may need to come out of a namespace that has just ended. The kernel cleans up in the background.
const RETURN: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(20);

/// What a giving back found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Returned {
    /// Names of the devices that are home again.
    pub home: Vec<String>,
    /// Names of devices whose record was removed, because there was nothing to bring home.
    pub forgotten: Vec<String>,
}

impl Returned {
    /// Whether there was no record at all.
    pub fn is_nothing(&self) -> bool {
        self.home.is_empty() && self.forgotten.is_empty()
    }
}

impl Mover {
    /// Brings home everything that a holder has under a name. Nothing is success; what another one has now is left alone.
    pub fn give_back(&self, holder: &str, ifname: &str) -> Result<Returned, DeviceError> {
        let mut returned = Returned::default();
        let mut failure = None;
        for (key, record) in self.records.all()? {
            if record.owner.holder != holder || record.owner.ifname != ifname {
                continue;
            }
            let held = self.records.lock(&key)?;
            if let Err(error) = self.give(&held, holder, ifname, &mut returned) {
                // The other devices come home all the same.
                failure.get_or_insert(error);
            }
        }
        failure.map_or(Ok(returned), Err)
    }

    fn give(
        &self,
        held: &Held,
        holder: &str,
        ifname: &str,
        returned: &mut Returned,
    ) -> Result<(), DeviceError> {
        let Some(record) = held.read()? else {
            return Ok(());
        };
        let end = Instant::now() + RETURN;
        loop {
            let located = self.locate(&record)?;
            let facts = self.facts(&record, &located, false);
            match on_release(Some(&record), holder, ifname, facts) {
                Release::Nothing | Release::NotYours => return Ok(()),
                Release::Restore => {
                    let name = record.device.name.clone();
                    self.restore(held, record, located)?;
                    returned.home.push(name);
                    return Ok(());
                }
                Release::Forget => {
                    returned.forgotten.push(record.device.name.clone());
                    return self.forget(held, &record, facts.same_boot);
                }
                Release::Hidden if Instant::now() < end => std::thread::sleep(PAUSE),
                Release::Hidden => return Err(hidden(&record)),
            }
        }
    }

    /// Removes a record whose device is gone; its VF may have settings left.
    fn forget(&self, held: &Held, record: &Record, same_boot: bool) -> Result<(), DeviceError> {
        if same_boot {
            self.restore_vf(record)?;
        }
        held.remove()?;
        fault::point("record-removed");
        Ok(())
    }

    /// Brings home what dead holders left: those for whom `is_valid` says no. For clean-up; errors do not stop it.
    pub fn give_back_invalid(
        &self,
        is_valid: impl Fn(&Record) -> bool,
    ) -> Result<Returned, DeviceError> {
        let mut returned = Returned::default();
        let mut failure = None;
        for (key, record) in self.records.all()? {
            if is_valid(&record) {
                continue;
            }
            let owner = &record.owner;
            let done = self.records.lock(&key).map_err(DeviceError::from);
            let done =
                done.and_then(|held| self.give(&held, &owner.holder, &owner.ifname, &mut returned));
            if let Err(error) = done {
                failure.get_or_insert(error);
            }
        }
        failure.map_or(Ok(returned), Err)
    }

    /// Where the device of a record is, for a check: `true` in the owner's namespace.
    pub fn is_with_owner(&self, record: &Record) -> Result<bool, DeviceError> {
        let Located { place, .. } = self.locate(record)?;
        Ok(place == crate::record::decide::Place::Owner)
    }
}
