//! What can be typed. Every flag can also be given as an environment variable, `MOOR_CONTROLLER_<FLAG>`, which is how the
//! chart sets them.
//!
//! What only one role reads stands with that role; here is what all of them share.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use mooring_api::{BadValue, Span};

use crate::packages::PackagesArgs;
use crate::webhook::WebhookArgs;

/// Runs Mooring's controllers beside a Kubernetes API.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "moor-controller",
    version,
    after_help = "Example:\n  moor-controller --roles ipam,packages --kubeconfig mgmt.kubeconfig\n\n\
        Without --kubeconfig the usual places serve: KUBECONFIG, the home directory, the pod's service account."
)]
pub(crate) struct Args {
    /// What to run
    #[arg(
        long,
        value_delimiter = ',',
        required = true,
        env = "MOOR_CONTROLLER_ROLES"
    )]
    pub(crate) roles: Vec<Role>,
    /// How to reach the API server
    #[arg(long, value_name = "FILE", env = "MOOR_CONTROLLER_KUBECONFIG")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The namespace of what Mooring keeps for itself: leases of leaders, certificates, transactions
    #[arg(
        long,
        value_name = "NAME",
        default_value = "mooring-system",
        env = "MOOR_CONTROLLER_NAMESPACE"
    )]
    pub(crate) namespace: String,
    /// Where health and metrics are served; `off` for nowhere
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:8080",
        value_parser = listen,
        env = "MOOR_CONTROLLER_LISTEN"
    )]
    pub(crate) listen: Listen,
    /// Which objects of kinds that others may serve too are ours
    #[arg(long, value_enum, default_value_t, env = "MOOR_CONTROLLER_MANAGE")]
    pub(crate) manage: Manage,
    /// This cluster's name, for what is told to others; the sync role commits it with its status
    #[arg(long, value_name = "NAME", env = "MOOR_CONTROLLER_CLUSTER")]
    pub(crate) cluster: Option<String>,
    /// Where mirrors of Git repositories are kept; may be lost at any time
    #[arg(long, value_name = "DIR", env = "MOOR_CONTROLLER_GIT_CACHE")]
    pub(crate) git_cache: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) election: ElectionArgs,
    #[command(flatten)]
    pub(crate) webhook: WebhookArgs,
    #[command(flatten)]
    pub(crate) packages: PackagesArgs,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

impl Args {
    /// Where mirrors of Git repositories are kept: below the home directory, where nobody else can put something first.
    pub(crate) fn git_cache(&self) -> PathBuf {
        let home = || std::env::var_os("HOME").map(PathBuf::from);
        let cache = || {
            home()
                .unwrap_or_else(std::env::temp_dir)
                .join(".cache/moor-controller/git")
        };
        self.git_cache.clone().unwrap_or_else(cache)
    }
}

/// One of the things that the program can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Role {
    /// Claims get addresses and VLANs from pools
    Ipam,
    /// Variants of blueprints become packages in Git
    Packages,
    /// What stands in Git is applied to this cluster
    Sync,
    /// Objects are checked against each other at admission
    Webhook,
}

impl Role {
    /// Its name, as typed and as a metric label.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ipam => "ipam",
            Self::Packages => "packages",
            Self::Sync => "sync",
            Self::Webhook => "webhook",
        }
    }
}

/// Which objects are ours where another controller may serve the kind too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Manage {
    /// All of them; where another controller is seen, those with the label `mooring.dev/managed: "true"`
    #[default]
    Auto,
    /// All of them
    All,
    /// Those with the label
    Labelled,
}

/// How replicas agree on who acts.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ElectionArgs {
    /// Act without asking whether another replica does
    #[arg(long, env = "MOOR_CONTROLLER_NO_LEADER_ELECTION")]
    pub(crate) no_leader_election: bool,
    /// How long a leader may be silent before another takes over
    #[arg(
        long,
        value_name = "TIME",
        default_value = "15s",
        value_parser = duration,
        env = "MOOR_CONTROLLER_LEASE_DURATION"
    )]
    pub(crate) lease_duration: Duration,
}

/// How the program speaks.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct LogArgs {
    /// How lines are written: JSON where nobody watches, text in a terminal
    #[arg(long, value_enum, default_value_t, env = "MOOR_CONTROLLER_LOG_FORMAT")]
    pub(crate) log_format: LogFormat,
    /// What is worth a line, for example `info` or `info,mooring_controller=debug`
    #[arg(
        long,
        value_name = "FILTER",
        default_value = "info",
        env = "MOOR_CONTROLLER_LOG"
    )]
    pub(crate) log: String,
    #[arg(
        long,
        value_name = "URL",
        help = "Where a collector takes spans by OTLP over HTTP, for example http://localhost:4318",
        env = "MOOR_CONTROLLER_OTLP_ENDPOINT"
    )]
    pub(crate) otlp_endpoint: Option<String>,
}

/// How a line of the log looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Text in a terminal, JSON elsewhere
    #[default]
    Auto,
    /// One object per line
    Json,
    /// For people
    Text,
}

/// Where to serve, if anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listen(pub(crate) Option<SocketAddr>);

fn listen(text: &str) -> Result<Listen, String> {
    if text == "off" {
        return Ok(Listen(None));
    }
    let address = text
        .parse()
        .map_err(|_| "write an address and a port, for example 0.0.0.0:8080, or off".to_owned())?;
    Ok(Listen(Some(address)))
}

/// A time as people write it: `15s`, `2m`, `1h30m`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let span: Span = text.parse().map_err(|e: BadValue| e.to_string())?;
    Ok(Duration::from_secs(span.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_roles_are_one_list() {
        let args = Args::try_parse_from(["moor-controller", "--roles", "ipam,webhook"])
            .expect("the command line is right");
        assert_eq!(args.roles, [Role::Ipam, Role::Webhook]);
        assert_eq!(args.election.lease_duration, Duration::from_secs(15));
    }

    #[test]
    fn a_time_without_a_unit_is_refused() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1h30m"), Ok(Duration::from_mins(90)));
        assert!(duration("15").is_err());
        assert!(duration("-15s").is_err());
    }

    #[test]
    fn off_serves_nowhere() {
        assert_eq!(listen("off"), Ok(Listen(None)));
        assert!(listen("8080").is_err());
    }
}
