//! amd-host-device: a NIC of the node becomes the pod's together with its addresses, and comes back with everything it had.
//!
//! ```text
//!  ADD  record (addresses, routes, rules, neighbours, MTU, state …) ─ move ─ the addresses it had ─ up
//!  DEL  by our record; else by AMD's own mapping file ([`mapping`])
//! ```
//!
//! The rest is host-device's ([`super::host_device::attach`]). Easy to get wrong: a configuration with its own `ipam` wins; the NIC's
//! own addresses are then kept for the way back, and the pod does not get them.

mod captured;
mod mapping;

use mooring_attach::cni::{CniError, CniResult};

use super::host_device::attach::{self, mover};
use super::host_device::{foreign, status};
use crate::call::Call;
use crate::plugin::Plugin;

/// The plugin.
pub(crate) struct AmdHostDevice;

impl Plugin for AmdHostDevice {
    fn about(&self) -> &'static str {
        "moves a NIC of the node into the pod, with its addresses"
    }

    fn add(&self, call: &Call) -> Result<CniResult, CniError> {
        let own_ipam = call.config().ipam.is_some();
        mapping::settle(call, &mover(call)?)?;
        let added = attach::add(call, &|record| {
            (!own_ipam).then(|| captured::of(&record.before))
        })?;
        if let Some(record) = &added.record
            && let Err(error) = mover(call).and_then(|mover| mapping::note(call, &mover, record))
        {
            // It is for AMD's plugin, should the node be switched back; ours has its record.
            call.log(error);
        }
        Ok(added.result)
    }

    fn del(&self, call: &Call) -> Result<(), CniError> {
        let mut errors = Vec::new();
        let home = attach::give_back(call).and_then(|(mover, returned)| {
            if !returned.is_nothing() {
                return mapping::strike(call, &mover);
            }
            if !mapping::give_back(call, &mover)? {
                foreign::give_back(call, &mover)?;
            }
            Ok(())
        });
        errors.extend(home.err());
        errors.extend(call.ipam_del().err());
        CniError::all(errors).map_or(Ok(()), Err)
    }

    fn check(&self, call: &Call) -> Result<(), CniError> {
        attach::check(call)?;
        call.ipam_check()
    }

    fn status(&self, call: &Call) -> Result<(), CniError> {
        // A device plugin gives the NIC.
        status::status(call, true)
    }

    fn gc(&self, call: &Call) -> Result<(), CniError> {
        let mut errors = Vec::new();
        errors.extend(attach::gc(call, |_| false).err());
        let struck = mover(call).and_then(|mover| mapping::strike(call, &mover));
        errors.extend(struck.err());
        errors.extend(call.ipam_gc().err());
        CniError::all(errors).map_or(Ok(()), Err)
    }
}
