//! host-device: a device of the node becomes the pod's, and comes back as it was.
//!
//! ```text
//!  ADD  record ─ move ─ addresses ─ up            mooring_host::device::Mover keeps the record
//!  DEL  home, name, state ─ verified ─ no record ─ addresses released
//! ```
//!
//! amd-host-device is the same with addresses that the device brings along ([`attach::add`] takes them). Easy to get wrong: the
//! record, not the configuration, says what to bring home. The configuration is asked only where the reference plugin made the
//! attachment and there is no record ([`foreign`]).

pub(crate) mod attach;
pub(crate) mod foreign;
pub(crate) mod keys;
pub(crate) mod status;

use mooring_attach::cni::{CniError, CniResult};

use crate::call::Call;
use crate::plugin::Plugin;

/// The plugin.
pub(crate) struct HostDevice;

impl Plugin for HostDevice {
    fn about(&self) -> &'static str {
        "moves a network device of the node into the pod"
    }

    fn add(&self, call: &Call) -> Result<CniResult, CniError> {
        attach::add(call, &|_| None).map(|added| added.result)
    }

    fn del(&self, call: &Call) -> Result<(), CniError> {
        let mut errors = Vec::new();
        let home = attach::give_back(call).and_then(|(mover, returned)| {
            if returned.is_nothing() {
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
        status::status(call, false)
    }

    fn gc(&self, call: &Call) -> Result<(), CniError> {
        let mut errors = Vec::new();
        errors.extend(attach::gc(call, |_| false).err());
        errors.extend(call.ipam_gc().err());
        CniError::all(errors).map_or(Ok(()), Err)
    }
}
