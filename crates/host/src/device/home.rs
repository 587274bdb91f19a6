//! Brings a device home: out of whatever namespace it is in, under the name it had, with everything it had.
//!
//! ```text
//!  record (restoring) ─ VF ─ RDMA device ─ out ─ name ─ state ─ verify ─ no record
//! ```
//!
//! Each step looks first and may be repeated: a process that is killed anywhere in here leaves a record, and whoever comes next
//! does the rest. Easy to get wrong: the name is set *inside*, before the device leaves, where udev and NetworkManager of
//! the host do not see it change.

use std::time::Duration;

use mooring_api::net::{Link, LinkChange, Snapshot};

use super::find::Located;
use super::take::hidden;
use super::{DeviceError, Mover, refused};
use crate::rdma::Rdma;
use crate::record::decide::Place;
use crate::record::{Held, Phase, Record};
use crate::{Change, Netlink, RestoreError, fault, vf};

/// How often the state is put back before one says that it does not hold, and how long the kernel gets between: it settles
/// carrier and IPv6 addresses in the background.
const SETTLE_TRIES: u32 = 4;
const SETTLE_PAUSE: Duration = Duration::from_millis(50);

/// After so many attempts a device that is home with its addresses is let go without a route that the kernel refuses.
const GIVE_UP: u32 = 3;

impl Mover {
    /// Puts everything back that a record says, verifies it, and removes the record.
    pub(super) fn restore(
        &self,
        held: &Held,
        mut record: Record,
        mut located: Located,
    ) -> Result<(), DeviceError> {
        if record.phase != Phase::Restoring {
            record.phase = Phase::Restoring;
            held.write(&record)?;
            fault::point("restore-recorded");
        }
        // Some drivers take no change of a VF's interface that its physical function does not trust any more, and others
        // none of the function while the interface is up; the reference resets the function first.
        self.restore_vf(&record)?;
        if record.has_link() {
            self.rdma_returns(&record, &located)?;
            let name = record.device.name.clone();
            let link = located.link.ok_or_else(|| hidden(&record))?;
            if located.place != Place::Host
                && let Some((_, inside)) = &mut located.netns
            {
                self.bring_home(inside, &link, &name)?;
                fault::point("device-home");
            }
            let index = self.named(&record, &name)?;
            let left = self.put_back(&record, index)?;
            judge(held, &mut record, &left)?;
        }
        held.remove()?;
        fault::point("record-removed");
        Ok(())
    }

    /// What the physical function had set.
    pub(super) fn restore_vf(&self, record: &Record) -> Result<(), DeviceError> {
        let Some(before) = &record.vf else {
            return Ok(());
        };
        vf::restore(&mut self.host.netlink()?, &self.devices, before)?;
        fault::point("vf-restored");
        Ok(())
    }

    fn rdma_returns(&self, record: &Record, located: &Located) -> Result<(), DeviceError> {
        let (Some(device), Some((netns, _))) = (&record.rdma, &located.netns) else {
            return Ok(());
        };
        let failed = |source| DeviceError::Rdma {
            device: record.device.name.clone(),
            source,
        };
        if let Some(mut rdma) = Rdma::open(netns).map_err(failed)?
            && rdma.devices().map_err(failed)?.contains(device)
        {
            rdma.move_to(device, &self.host).map_err(failed)?;
            fault::point("rdma-home");
        }
        Ok(())
    }

    /// Moves a link of the namespace that `inside` is in to the host, down and under that name. Also for a device that nobody
    /// recorded.
    pub fn bring_home(
        &self,
        inside: &mut Netlink,
        link: &Link,
        name: &str,
    ) -> Result<(), DeviceError> {
        let mut host = self.host.netlink()?;
        self.check_free(&mut host, &link.name, name)?;
        let others = inside.links().map_err(refused("look for", name))?;
        let index = link.index;
        let mut steps = vec![Change::SetLink {
            index,
            change: LinkChange::down(),
        }];
        // A name that is one of its own further names counts as taken.
        if link.altnames.iter().any(|other| other == name) {
            let name = name.to_owned();
            steps.push(Change::DelAltName { index, name });
        }
        let taken = others
            .iter()
            .any(|l| l.index != index && (l.name == name || l.altnames.iter().any(|a| a == name)));
        if link.name != name && !taken {
            let change = LinkChange {
                name: Some(name.to_owned()),
                ..LinkChange::default()
            };
            steps.push(Change::SetLink { index, change });
        }
        steps.push(Change::Move {
            index,
            netns: &self.host,
            name: Some(name.to_owned()),
        });
        inside.apply(&steps).map_err(refused("bring home", name))
    }

    /// The device's number on the host, where it now has its own name.
    fn named(&self, record: &Record, name: &str) -> Result<u32, DeviceError> {
        let link = self.at_home(record)?.ok_or_else(|| hidden(record))?;
        self.rename(&mut self.host.netlink()?, &link, name)?;
        Ok(link.index)
    }

    /// Renames a link of the host, if it has another name. It has to be down for that, on older kernels.
    pub fn rename(&self, host: &mut Netlink, link: &Link, name: &str) -> Result<(), DeviceError> {
        if link.name == name {
            return Ok(());
        }
        self.check_free(host, &link.name, name)?;
        let index = link.index;
        let mut steps = vec![Change::SetLink {
            index,
            change: LinkChange::down(),
        }];
        if link.altnames.iter().any(|other| other == name) {
            let name = name.to_owned();
            steps.push(Change::DelAltName { index, name });
        }
        let change = LinkChange {
            name: Some(name.to_owned()),
            ..LinkChange::default()
        };
        steps.push(Change::SetLink { index, change });
        host.apply(&steps).map_err(refused("rename", &link.name))?;
        fault::point("device-renamed");
        Ok(())
    }

    /// Refuses a name that another link of the host has.
    fn check_free(&self, host: &mut Netlink, device: &str, name: &str) -> Result<(), DeviceError> {
        let there = host.link(name).map_err(refused("look for", name))?;
        // Found by a further name is found as well: then it may be the device itself, and its own name is given up.
        match there {
            Some(link) if link.name == name && link.name != device => Err(DeviceError::NameTaken {
                device: device.to_owned(),
                name: name.to_owned(),
                netns: self.host.path().to_owned(),
            }),
            _ => Ok(()),
        }
    }

    /// The state it had. What is still missing afterwards is the answer; none is what we want.
    fn put_back(&self, record: &Record, index: u32) -> Result<Vec<Change<'static>>, DeviceError> {
        let device = &record.device.name;
        let failed = |source| DeviceError::Restore {
            device: device.clone(),
            source,
        };
        let elapsed = self.boot.uptime.saturating_sub(record.uptime);
        let mut wanted = aged(record.before.clone(), elapsed).moved_to(index, device);
        self.belongs(record, &mut wanted)?;
        let mut tries = 0;
        loop {
            // A refusal says nothing yet: what counts is what is there afterwards.
            let refused = crate::restore(&self.host, index, &wanted).err();
            fault::point("state-restored");
            let left = crate::missing(&self.host, index, &wanted).map_err(failed)?;
            tries += 1;
            if left.is_empty() {
                return Ok(left);
            }
            if tries == SETTLE_TRIES {
                return match refused {
                    Some(RestoreError::Netns(source)) => Err(source.into()),
                    _ => Ok(left),
                };
            }
            if record.vf.is_some() && left.iter().any(sets_mac) {
                self.bounce(index, device)?;
            }
            std::thread::sleep(SETTLE_PAUSE);
        }
    }

    /// To the bridge, bond or VRF of that name, which may have been made anew. Where there is none any more, it belongs to nothing: no
    /// pod is to wait for it for ever.
    fn belongs(&self, record: &Record, wanted: &mut Snapshot) -> Result<(), DeviceError> {
        let Some(number) = wanted.link.master else {
            return Ok(());
        };
        let mut host = self.host.netlink()?;
        let found = match &record.master {
            Some(name) => host.link(name),
            None => host.link_at(number),
        };
        let found = found.map_err(refused("look for the master of", &record.device.name))?;
        wanted.link.master = found.map(|master| master.index);
        if wanted.link.master.is_none() {
            wanted.link.port = None;
            wanted.vlans.clear();
        }
        Ok(())
    }

    /// Up and down again: a VF takes the MAC that its physical function set for it when it resets itself, and refuses it from
    /// anybody else.
    fn bounce(&self, index: u32, device: &str) -> Result<(), DeviceError> {
        let mut host = self.host.netlink()?;
        for change in [LinkChange::up(), LinkChange::down()] {
            host.apply(&[Change::SetLink { index, change }])
                .map_err(refused("reset", device))?;
        }
        Ok(())
    }
}

/// Whether the device may be let go with something missing. A route whose source address has run out can never come back, and
/// no pod is to wait for it for ever; the link and its addresses are waited for.
pub(super) fn judge(
    held: &Held,
    record: &mut Record,
    left: &[Change<'_>],
) -> Result<(), DeviceError> {
    if left.is_empty() {
        return Ok(());
    }
    record.tries += 1;
    held.write(record)?;
    let dear = left.iter().any(|change| {
        matches!(
            change,
            Change::SetLink { .. } | Change::AddAddr(_) | Change::SetAddr(_)
        )
    });
    if record.tries >= GIVE_UP && !dear {
        return Ok(());
    }
    Err(DeviceError::Incomplete {
        device: record.device.name.clone(),
        left: left.iter().map(ToString::to_string).collect(),
    })
}

fn sets_mac(change: &Change<'_>) -> bool {
    matches!(change, Change::SetLink { change, .. } if change.mac.is_some())
}

/// A snapshot some seconds later: lifetimes are shorter, and what has run out is gone.
pub(super) fn aged(mut snapshot: Snapshot, elapsed: u64) -> Snapshot {
    let elapsed = u32::try_from(elapsed).unwrap_or(u32::MAX);
    snapshot.addrs.retain_mut(|addr| {
        addr.preferred = addr.preferred.map(|left| left.saturating_sub(elapsed));
        match addr.valid {
            None => true,
            Some(left) if left <= elapsed => false,
            Some(left) => {
                addr.valid = Some(left - elapsed);
                true
            }
        }
    });
    snapshot
}
