//! Who works on an attachment: one ADD or DEL at a time.
//!
//! Used by bridge and ovs, whose attachments are a pair of interfaces, rules and ports rather than one device. Each ADD
//! replaces what it finds half-made, so two at once would remove each other's; a DEL beside an ADD would free an address
//! that the pod keeps. Easy to get wrong: `nft` and `ovs-vsctl` outlive a kill of ours and may do their work after the DEL
//! that follows it; so they hold the turn too.

use std::time::Duration;

use mooring_attach::cni::CniError;
use mooring_host::file::Lock;

use super::Mark;
use crate::call::Call;

/// Every holder starts a program a few times.
const BOUND: Duration = Duration::from_secs(20);
/// A file for each attachment would have to be removed again; with these, two attachments hardly ever meet.
const TURNS: u64 = 256;

pub(crate) struct Turn(Lock);

impl Turn {
    pub(crate) fn take(call: &Call, mark: &Mark) -> Result<Self, CniError> {
        let nth = mark.number() % TURNS;
        let file = call.paths.own.join(format!("turns/{nth}.lock"));
        let taken = Lock::exclusive(&file, BOUND);
        taken.map(Self).map_err(|e| {
            let msg = format!("another call for {} takes long", mark.ifname());
            CniError::try_again(msg).because(&e)
        })
    }

    /// Does what starts programs that must not outlast the turn. IPAM plugins are not among them: one that hangs would keep
    /// the turn for ever.
    pub(crate) fn of<T>(&self, work: impl FnOnce() -> Result<T, CniError>) -> Result<T, CniError> {
        let done = self.0.lend(work);
        done.map_err(|e| CniError::internal("cannot keep the turn").because(&e))?
    }

    /// The same for what is undone where it fails.
    pub(crate) fn attempt<T>(
        &self,
        make: impl FnOnce() -> Result<T, CniError>,
        undo: impl FnOnce() -> Result<(), CniError>,
    ) -> Result<T, CniError> {
        self.of(|| {
            make().map_err(|failure| match undo() {
                Ok(()) => failure,
                Err(e) => failure.with_details(format!("and it was not undone: {e}")),
            })
        })
    }
}
