//! Takes a device: record first, then move, then what the owner adds.
//!
//! ```text
//!  prepare   lock ─ look up ─ decide ─ (restore) ─ snapshot ─ record
//!  enter     alias ─ move and rename in one message ─ RDMA device
//!  configured   record
//! ```
//!
//! Easy to get wrong: the alias is the host's name for the device. It is how the reference host-device finds its way back, so a
//! node can be switched to it while our pods run.

use std::path::PathBuf;

use mooring_api::net::{Link, LinkChange, Snapshot};
use serde_json::Value;

use super::find::{Found, Located, seek};
use super::{DeviceError, Mover, Selector, look_up, refused};
use crate::pci::Bdf;
use crate::rdma::{Mode, Rdma, RdmaDevice};
use crate::record::decide::{Place, Take, on_take};
use crate::record::{Held, Identity, Owner, Phase, Record, VfBefore};
use crate::snapshot::snapshot_with;
use crate::{Change, Netlink, Netns, fault};

/// Between the look-up and the lock a device may have left; then one looks again, and this often.
const TRIES: u32 = 3;

/// A device whose record is written and whose lock is held.
#[derive(Debug)]
pub struct Prepared<'a> {
    mover: &'a Mover,
    held: Held,
    record: Record,
    at: At,
    begun: Begun,
}

/// Where a device is before it is moved.
#[derive(Debug)]
enum At {
    /// On the host, as the link of that number, with a socket there.
    Host(u32, Netlink),
    /// With its owner. A function without an interface counts as that: nothing has to move.
    Owner,
}

/// What an earlier attempt of the same owner left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begun {
    /// Nothing: there was none.
    Nothing,
    /// It did not finish.
    Half,
    /// Everything.
    Whole,
}

impl Mover {
    /// Records that `owner` takes what `selector` names. Whatever a dead owner left is brought home first.
    pub fn prepare(&self, selector: &Selector, owner: &Owner) -> Result<Prepared<'_>, DeviceError> {
        let absent = || DeviceError::Absent(selector.clone());
        let mut host = self.host.netlink()?;
        for _ in 0..TRIES {
            let found = look_up(selector, &mut host, &self.devices)?;
            let key = match &found {
                Some(found) => found.identity().key(),
                None => self.key_of(selector)?.ok_or_else(absent)?,
            };
            let held = self.records.lock(&key)?;
            let found = look_up(selector, &mut host, &self.devices)?;
            if found.as_ref().is_some_and(|f| f.identity().key() != key) {
                continue;
            }
            let Some(record) = held.read()? else {
                // Away without a record, or brought home by whoever had the lock: look again.
                let Some(found) = found else { continue };
                return self.fresh(held, host, found, owner);
            };
            return self.with_record(held, record, host, found, selector, owner);
        }
        Err(absent())
    }

    /// The same for a function without an interface, which a driver of user space has: nothing moves, what is set through its
    /// physical function is recorded and restored.
    pub fn prepare_function(
        &self,
        function: &Bdf,
        owner: &Owner,
    ) -> Result<Prepared<'_>, DeviceError> {
        let identity = Identity {
            pci: Some(function.clone()),
            name: function.to_string(),
            ..Identity::default()
        };
        let held = self.records.lock(&identity.key())?;
        let old = held.read()?;
        if let Some(record) = old {
            let located = self.locate(&record)?;
            let facts = self.facts(&record, &located, true);
            match on_take(Some(&record), owner, facts) {
                Take::Busy => return Err(busy(record)),
                Take::Missing => return Err(hidden(&record)),
                Take::Taken => return Err(taken(record, &located)),
                Take::Adopt | Take::Resume if !record.has_link() => {
                    let begun = match record.phase {
                        Phase::Configured => Begun::Whole,
                        _ => Begun::Half,
                    };
                    return Ok(self.prepared(held, record, At::Owner, begun));
                }
                Take::Fresh | Take::Forget => held.remove()?,
                Take::RestoreFirst | Take::Adopt | Take::Resume => {
                    self.restore(&held, record, located)?;
                }
            }
        }
        let record = Record::new(identity, owner.clone(), Snapshot::default(), &self.boot);
        held.write(&record)?;
        fault::point("device-recorded");
        Ok(self.prepared(held, record, At::Owner, Begun::Nothing))
    }

    fn with_record(
        &self,
        held: Held,
        mut record: Record,
        mut host: Netlink,
        found: Option<Found>,
        selector: &Selector,
        owner: &Owner,
    ) -> Result<Prepared<'_>, DeviceError> {
        let located = self.locate(&record)?;
        let facts = self.facts(&record, &located, found.is_some());
        let absent = || DeviceError::Absent(selector.clone());
        match on_take(Some(&record), owner, facts) {
            Take::Busy => Err(busy(record)),
            Take::Missing => Err(hidden(&record)),
            Take::Taken => Err(taken(record, &located)),
            Take::Adopt => Ok(self.prepared(held, record, At::Owner, Begun::Whole)),
            Take::Resume => {
                record.owner.netns.clone_from(&owner.netns);
                // What was whole is not, now that the device is not where it was.
                record.phase = Phase::Prepared;
                held.write(&record)?;
                let at = match (located.place, located.link) {
                    (Place::Host, Some(link)) => At::Host(link.index, host),
                    _ => At::Owner,
                };
                Ok(self.prepared(held, record, at, Begun::Half))
            }
            Take::Fresh | Take::Forget => {
                held.remove()?;
                self.fresh(held, host, found.ok_or_else(absent)?, owner)
            }
            Take::RestoreFirst => {
                self.restore(&held, record, located)?;
                let found = look_up(selector, &mut host, &self.devices)?;
                self.fresh(held, host, found.ok_or_else(absent)?, owner)
            }
        }
    }

    /// Records a device that nobody has.
    fn fresh(
        &self,
        held: Held,
        mut host: Netlink,
        found: Found,
        owner: &Owner,
    ) -> Result<Prepared<'_>, DeviceError> {
        let index = found.link.index;
        let before = snapshot_with(&self.host, &mut host, index);
        let before = before.map_err(|source| DeviceError::Restore {
            device: found.link.name.clone(),
            source,
        })?;
        let mut record = Record::new(found.identity(), owner.clone(), before, &self.boot);
        record.rdma = self.rdma_of(&found.link)?;
        if let Some(master) = record.before.link.master {
            let master = host.link_at(master);
            let master = master.map_err(refused("look for the master of", &record.device.name))?;
            record.master = master.map(|master| master.name);
        }
        held.write(&record)?;
        fault::point("device-recorded");
        Ok(self.prepared(held, record, At::Host(index, host), Begun::Nothing))
    }

    fn prepared(&self, held: Held, record: Record, at: At, begun: Begun) -> Prepared<'_> {
        Prepared {
            mover: self,
            held,
            record,
            at,
            begun,
        }
    }

    /// The key of a record whose device the selector names.
    fn key_of(&self, selector: &Selector) -> Result<Option<String>, DeviceError> {
        let records = self.records.all()?;
        let found = records
            .into_iter()
            .find(|(_, r)| selector.selects(&r.device));
        Ok(found.map(|(key, _)| key))
    }

    /// The RDMA device that has to follow a link of the host.
    fn rdma_of(&self, link: &Link) -> Result<Option<RdmaDevice>, DeviceError> {
        let failed = |source| DeviceError::Rdma {
            device: link.name.clone(),
            source,
        };
        let Some(mut rdma) = Rdma::open(&self.host).map_err(failed)? else {
            return Ok(None);
        };
        if rdma.mode().map_err(failed)? == Mode::Shared {
            return Ok(None);
        }
        rdma.of_link(link.index).map_err(failed)
    }
}

impl Prepared<'_> {
    /// Whether the owner had it already, with everything.
    pub fn is_adopted(&self) -> bool {
        self.begun == Begun::Whole
    }

    /// Whether there was an attempt of this owner before, finished or not.
    pub fn is_begun(&self) -> bool {
        self.begun != Begun::Nothing
    }

    /// The record.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// The record, for one who is done.
    pub fn into_record(self) -> Record {
        self.record
    }

    /// Records what the physical function had set for a VF, before it is changed. The first time counts.
    pub fn keep_vf(&mut self, before: VfBefore) -> Result<(), DeviceError> {
        if self.record.vf.is_none() {
            self.record.vf = Some(before);
            self.held.write(&self.record)?;
            fault::point("vf-recorded");
        }
        Ok(())
    }

    /// Moves the device to the owner's namespace, under the owner's name for it. It is down there. `inside` is a socket in it.
    pub fn enter(&mut self, netns: &Netns, inside: &mut Netlink) -> Result<Link, DeviceError> {
        let device = self.record.device.name.clone();
        let name = self.record.owner.ifname.clone();
        match &mut self.at {
            At::Host(index, host) => {
                let taken = inside.link(&name).map_err(refused("look for", &name))?;
                if taken.is_some() {
                    return Err(DeviceError::NameTaken {
                        device,
                        name,
                        netns: netns.path().to_owned(),
                    });
                }
                go(*index, &device, host, netns, &name)?;
                self.at = At::Owner;
            }
            At::Owner => self.strip(inside)?,
        }
        let link = seek(inside, &self.record.device, &name)?;
        let mut link = link.ok_or_else(|| hidden(&self.record))?;
        if link.name != name {
            let change = LinkChange {
                name: Some(name.clone()),
                ..LinkChange::down()
            };
            let index = link.index;
            inside
                .apply(&[Change::SetLink { index, change }])
                .map_err(refused("rename", &device))?;
            link.name = name;
        }
        self.rdma_follows(netns)?;
        Ok(link)
    }

    /// Takes away what an attempt that was killed gave it: the next one may get other addresses.
    fn strip(&self, inside: &mut Netlink) -> Result<(), DeviceError> {
        let device = &self.record.device.name;
        let name = &self.record.owner.ifname;
        let Some(link) = seek(inside, &self.record.device, name)? else {
            return Ok(());
        };
        let index = link.index;
        let addrs = inside.addrs(Some(index));
        let addrs = addrs.map_err(refused("read the addresses of", device))?;
        let mut steps = vec![Change::SetLink {
            index,
            change: LinkChange::down(),
        }];
        steps.extend(addrs.into_iter().map(Change::DelAddr));
        match inside.apply(&steps) {
            // IPv6 addresses may have gone with the link's going down.
            Err(error) if !error.is_absent() => Err(refused("strip", device)(error)),
            _ => Ok(()),
        }
    }

    fn rdma_follows(&self, netns: &Netns) -> Result<(), DeviceError> {
        let Some(device) = &self.record.rdma else {
            return Ok(());
        };
        let failed = |source| DeviceError::Rdma {
            device: self.record.device.name.clone(),
            source,
        };
        if let Some(mut rdma) = Rdma::open(&self.mover.host).map_err(failed)?
            && rdma.devices().map_err(failed)?.contains(device)
        {
            rdma.move_to(device, netns).map_err(failed)?;
            fault::point("rdma-moved");
        }
        Ok(())
    }

    /// Records that the owner has all it asked for, with what it wants to find again.
    pub fn configured(&mut self, kept: Value) -> Result<(), DeviceError> {
        self.record.phase = Phase::Configured;
        self.record.kept = kept;
        self.held.write(&self.record)?;
        fault::point("owner-configured");
        Ok(())
    }

    /// Brings it home after a failure.
    pub fn undo(self) -> Result<(), DeviceError> {
        let located = self.mover.locate(&self.record)?;
        self.mover.restore(&self.held, self.record, located)
    }
}

/// From the host to the owner.
fn go(
    index: u32,
    device: &str,
    host: &mut Netlink,
    netns: &Netns,
    name: &str,
) -> Result<(), DeviceError> {
    let alias = LinkChange {
        alias: Some(device.to_owned()),
        ..LinkChange::default()
    };
    host.apply(&[Change::SetLink {
        index,
        change: alias,
    }])
    .map_err(refused("set the alias of", device))?;
    fault::point("alias-set");
    let go = Change::Move {
        index,
        netns,
        name: Some(name.to_owned()),
    };
    host.apply(&[go]).map_err(refused("move", device))?;
    fault::point("device-moved");
    Ok(())
}

pub(super) fn busy(record: Record) -> DeviceError {
    DeviceError::Busy {
        device: record.device.name,
        owner: Box::new(record.owner),
    }
}

fn taken(record: Record, located: &Located) -> DeviceError {
    let netns = located.netns.as_ref();
    DeviceError::Taken {
        device: record.device.name,
        netns: netns.map_or_else(PathBuf::new, |(netns, _)| netns.path().to_owned()),
    }
}

pub(super) fn hidden(record: &Record) -> DeviceError {
    DeviceError::Hidden {
        device: record.device.name.clone(),
    }
}
