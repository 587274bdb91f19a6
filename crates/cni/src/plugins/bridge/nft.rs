//! nftables, as this plugin uses it: [`mooring_host::nft`], with the frame's errors.

use mooring_attach::cni::CniError;

pub(super) use mooring_host::nft::{Rule, again, apply};

/// Whether the program is there: what STATUS asks.
pub(super) fn present() -> Result<(), CniError> {
    Ok(mooring_host::nft::present()?)
}
