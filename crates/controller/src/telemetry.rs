//! The log: JSON lines where nobody watches, text in a terminal. Secrets never reach it, since no type that holds one
//! prints it.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

use crate::args::{LogArgs, LogFormat};

/// Starts the log. What the filter cannot read is said once, and the default serves.
pub(crate) fn start(args: &LogArgs) {
    let (filter, wrong) = match EnvFilter::try_new(&args.log) {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new("info"), Some(error)),
    };
    let json = match args.log_format {
        LogFormat::Auto => !std::io::stderr().is_terminal(),
        LogFormat::Json => true,
        LogFormat::Text => false,
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    if json {
        builder.json().flatten_event(true).init();
    } else {
        builder.with_target(false).init();
    }
    if let Some(error) = wrong {
        tracing::warn!(%error, filter = args.log, "the log filter cannot be read; info serves");
    }
}
