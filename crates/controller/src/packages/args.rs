//! What can be typed for the packages role only.

use std::time::Duration;

use crate::args::duration;

/// How packages are made.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct PackagesArgs {
    /// How often Git repositories are looked at for what others pushed (packages role)
    #[arg(
        long,
        value_name = "TIME",
        default_value = "15s",
        value_parser = duration,
        env = "MOOR_CONTROLLER_GIT_POLL"
    )]
    pub(crate) git_poll: Duration,
    /// Ship IPClaim and IPAllocation to clusters as inert records, in every package (packages role)
    #[arg(long, env = "MOOR_CONTROLLER_DEPLOY_RECORDS")]
    pub(crate) deploy_records: bool,
    /// How long the addresses of a draft stay reserved when nobody renews them (packages role)
    #[arg(
        long,
        value_name = "TIME",
        default_value = "24h",
        value_parser = duration,
        env = "MOOR_CONTROLLER_DRAFT_RESERVATION"
    )]
    pub(crate) draft_reservation: Duration,
}
