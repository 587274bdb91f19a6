//! sriov: a virtual function becomes the pod's, with what its physical function is to set for it.
//!
//! ```text
//!  ADD  lock ─ record and state files ─ VLAN, MAC, rates, spoof check, trust, link state ─ move ─ MAC ─ addresses ─ up ─ announce
//!  DEL  settings back ─ home ─ state back ─ verified ─ files gone
//! ```
//!
//! The record ([`mooring_host::record`]) is what we restore from: everything, not only what the configuration asked for. Beside it stand the
//! files of sriov-cni ([`state`]), so that a node can be switched to ours and back while pods run. Easy to get wrong: a DEL may come long
//! after the VF went to another pod. Only the owner of the record, or of the allocation file, touches it.

mod keys;
mod restore;
mod state;

use mooring_api::net::{LinkChange, Vf};
use mooring_attach::cni::{CniError, CniResult, Interface};
use mooring_host::device::{Mover, Prepared, Selector};
use mooring_host::pci::VfOf;
use mooring_host::record::{Record, VfBefore};
use mooring_host::{Change, Netlink, Netns, fault, vf};

use super::host_device::attach::{self, answered, described, failed, kept, mover, open_pod, owner};
use crate::call::Call;
use crate::configure::{NOTIFY, Options, configure};
use crate::plugin::Plugin;
use keys::Wish;
use state::State;

/// The plugin.
pub(crate) struct Sriov;

impl Plugin for Sriov {
    fn about(&self) -> &'static str {
        "gives the pod a virtual function of an SR-IOV NIC"
    }

    fn add(&self, call: &Call) -> Result<CniResult, CniError> {
        let wish = Wish::read(call)?;
        let mover = mover(call)?;
        let of = function(&mover, &wish)?;
        let pod = open_pod(call)?;
        let inside = pod.netlink().map_err(|e| failed(e.into()))?;
        let state = State::new(call, &wish.device);
        let _lock = state.lock()?;
        state.check_free(&pod)?;
        let owner = owner(call, &pod);
        let userspace = mover
            .devices()
            .userspace_driver(&wish.device)
            .map_err(|e| CniError::io(format!("cannot read the driver of {}", wish.device), e))?
            .is_some();
        let prepared = if userspace {
            mover.prepare_function(&wish.device, &owner)
        } else {
            mover.prepare(&Selector::Pci(wish.device.clone()), &owner)
        };
        let mut attempt = Attempt {
            call,
            mover: &mover,
            wish: &wish,
            of: &of,
            pod: &pod,
            inside,
            state: &state,
            prepared: prepared.map_err(failed)?,
        };
        if attempt.prepared.is_adopted()
            && let Some(result) = answered(attempt.prepared.record())
        {
            return Ok(result);
        }
        match attempt.run() {
            Ok(result) => Ok(result),
            Err(error) => {
                let undone = attempt.prepared.undo().map_err(failed);
                let undone = undone.and_then(|()| state.remove(&pod));
                Err(match undone {
                    Ok(()) => error,
                    Err(more) => error.with_details(more.to_string()),
                })
            }
        }
    }

    fn del(&self, call: &Call) -> Result<(), CniError> {
        let mut errors = Vec::new();
        errors.extend(restore::give_back(call).err());
        errors.extend(call.ipam_del().err());
        CniError::all(errors).map_or(Ok(()), Err)
    }

    fn check(&self, call: &Call) -> Result<(), CniError> {
        let wish = Wish::read(call)?;
        attach::check(call)?;
        let mover = mover(call)?;
        let of = function(&mover, &wish)?;
        if let Some(seen) = look(&mover, &of)?
            && let missing = wish.missing(&seen)
            && !missing.is_empty()
        {
            let name = &wish.device;
            let missing = missing.join("; ");
            return Err(CniError::internal(format!(
                "VF {name} is not as it was made: {missing}"
            )));
        }
        call.ipam_check()
    }

    fn status(&self, call: &Call) -> Result<(), CniError> {
        // The device is injected for each pod; a configuration that names one itself can be judged.
        if let Some(wish) = Wish::named(call)? {
            let mover = mover(call)?;
            if !mover.devices().has_pci(&wish.device) {
                let name = &wish.device;
                return Err(CniError::unavailable(format!(
                    "there is no PCI device {name}"
                )));
            }
            function(&mover, &wish)?;
        }
        call.ipam_status()
    }

    fn gc(&self, call: &Call) -> Result<(), CniError> {
        let mut errors = Vec::new();
        let recorded = mover(call).and_then(|mover| {
            attach::gc(call, |record| {
                restore::is_given_away(call, &mover, record, None)
            })
        });
        errors.extend(recorded.err());
        errors.extend(restore::gc(call).err());
        errors.extend(call.ipam_gc().err());
        CniError::all(errors).map_or(Ok(()), Err)
    }
}

/// Where the VF belongs.
fn function(mover: &Mover, wish: &Wish) -> Result<VfOf, CniError> {
    let devices = mover.devices();
    let of = devices
        .vf_of(&wish.device)
        .map_err(|e| CniError::io(format!("cannot look for {}", wish.device), e))?;
    of.ok_or_else(|| {
        let name = &wish.device;
        let why = if devices.has_pci(&wish.device) {
            format!("{name} is no virtual function")
        } else {
            format!("there is no PCI device {name} on this node")
        };
        CniError::config("deviceID", why)
    })
}

/// The VF as its physical function sees it; none where that does not say.
fn look(mover: &Mover, of: &VfOf) -> Result<Option<Vf>, CniError> {
    let mut host = mover.host().netlink().map_err(|e| failed(e.into()))?;
    for name in &of.names {
        let found = vf::look(&mut host, name, of.index).map_err(failed)?;
        if let Some((_, seen)) = found {
            return Ok(Some(seen));
        }
    }
    Ok(None)
}

/// One ADD between the record and the answer.
struct Attempt<'a> {
    call: &'a Call<'a>,
    mover: &'a Mover,
    wish: &'a Wish,
    of: &'a VfOf,
    pod: &'a Netns,
    /// A socket in the pod.
    inside: Netlink,
    state: &'a State,
    prepared: Prepared<'a>,
}

impl Attempt<'_> {
    fn run(&mut self) -> Result<CniResult, CniError> {
        self.settings()?;
        let call = self.call;
        let moved = self.prepared.record().has_link();
        let link = if moved { Some(self.enter()?) } else { None };
        if self.prepared.is_begun() {
            // The attempt before this one may have got addresses and died before anybody knew them.
            let _ = call.ipam_del();
        }
        let found = call.ipam_add()?;
        fault::point("vf-addressed");
        let has_addresses = found.is_some();
        let found = found.unwrap_or_default();
        let done = match link {
            Some(link) => self.finish(&link, found),
            None => self.tell(found),
        };
        done.map_err(|error| {
            if has_addresses {
                call.undo_ipam(error)
            } else {
                error
            }
        })
    }

    /// What the physical function sets, recorded first.
    fn settings(&mut self) -> Result<(), CniError> {
        let seen = look(self.mover, self.of)?;
        if let Some(vf) = seen {
            self.prepared
                .keep_vf(VfBefore {
                    pf: Some(self.of.pf.clone()),
                    pf_name: self.of.names.first().cloned().unwrap_or_default(),
                    vf,
                })
                .map_err(failed)?;
        }
        self.state.write(
            self.call,
            self.wish,
            self.of,
            self.prepared.record(),
            self.pod,
        )?;
        fault::point("vf-state-written");
        let Some(before) = &self.prepared.record().vf else {
            if self.wish.is_any() {
                return Err(CniError::internal(format!(
                    "cannot set up VF {}: its physical function {} does not show it",
                    self.wish.device, self.of.pf
                )));
            }
            return Ok(());
        };
        let change = self.wish.change(&before.vf);
        let mut host = self.mover.host().netlink().map_err(|e| failed(e.into()))?;
        let mut index = None;
        for name in &self.of.names {
            let found = vf::look(&mut host, name, self.of.index).map_err(failed)?;
            index = index.or(found.map(|(index, _)| index));
        }
        if let Some(pf) = index {
            vf::set(&mut host, pf, self.of.index, &change).map_err(failed)?;
        }
        fault::point("vf-set");
        Ok(())
    }

    /// Into the pod, with the MAC that is asked for.
    fn enter(&mut self) -> Result<mooring_api::net::Link, CniError> {
        let mut link = self
            .prepared
            .enter(self.pod, &mut self.inside)
            .map_err(failed)?;
        let name = link.name.clone();
        if let Some(mac) = self.wish.mac
            && link.mac != Some(mac)
        {
            let index = link.index;
            vf::patiently(|| {
                let change = LinkChange {
                    mac: Some(mac),
                    ..LinkChange::default()
                };
                self.inside.apply(&[Change::SetLink { index, change }])
            })
            .map_err(|e| CniError::internal(format!("cannot set the MAC of {name}")).because(&e))?;
            fault::point("vf-addressed-mac");
            link.mac = Some(mac);
        }
        Ok(link)
    }

    fn finish(
        &mut self,
        link: &mooring_api::net::Link,
        found: CniResult,
    ) -> Result<CniResult, CniError> {
        let record: &Record = self.prepared.record();
        let result = described(self.call, record, link, found);
        let [arp, ndisc] = NOTIFY;
        let options = Options {
            sysctls: &[arp, ndisc, ("ipv6", "optimistic_dad", "1")],
            ..Options::of(self.call)?
        };
        let ready = configure(self.pod, &mut self.inside, link, &result, options)?;
        fault::point("vf-configured");
        self.prepared.configured(kept(&result)).map_err(failed)?;
        ready.tell(self.call, self.pod, &mut self.inside);
        Ok(result)
    }

    /// A VF that a driver of user space has: the pod gets its addresses told.
    fn tell(&mut self, mut result: CniResult) -> Result<CniResult, CniError> {
        let call = self.call;
        let admin = self.prepared.record().vf.as_ref().and_then(|b| b.vf.mac);
        let mac = self.wish.mac.or(admin);
        result.interfaces = vec![Interface {
            name: call.ifname().to_owned(),
            mac: mac.map(|mac| mac.to_string()),
            sandbox: Some(call.request.sandbox()),
            pci_id: Some(self.wish.device.to_string()),
            ..Interface::default()
        }];
        result.assign(0);
        if !call.config().dns.is_empty() {
            result.dns = call.config().dns.clone();
        }
        self.prepared.configured(kept(&result)).map_err(failed)?;
        Ok(result)
    }
}
