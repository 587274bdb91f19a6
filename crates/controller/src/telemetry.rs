//! The log: JSON lines where nobody watches, text in a terminal; and spans for a collector where one is named.
//! Secrets never reach it, since no type that holds one prints it.

mod otlp;

use std::io::IsTerminal as _;

use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, fmt};

use crate::args::{LogArgs, LogFormat};

/// What ends with the program. Keep it until then.
#[must_use]
pub(crate) struct Telemetry {
    spans: Option<opentelemetry_sdk::trace::SdkTracerProvider>,
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.spans.take().map(|spans| spans.shutdown()) {
            tracing::warn!(%error, "the last spans are not sent");
        }
    }
}

/// Starts the log. What the filter cannot read is said once, and the default serves; so with a collector's address.
/// Called before the runtime starts.
pub(crate) fn start(args: &LogArgs) -> Telemetry {
    let mut wrong = Vec::new();
    let filter = EnvFilter::try_new(&args.log).unwrap_or_else(|error| {
        wrong.push(format!(
            "the log filter cannot be read, info serves: {error}"
        ));
        EnvFilter::new("info")
    });
    let json = match args.log_format {
        LogFormat::Auto => !std::io::stderr().is_terminal(),
        LogFormat::Json => true,
        LogFormat::Text => false,
    };
    let lines = fmt::layer().with_writer(std::io::stderr);
    let lines = if json {
        lines
            .json()
            .flatten_event(true)
            .with_span_list(false)
            .boxed()
    } else {
        lines.with_target(false).boxed()
    };
    let log = tracing_subscriber::registry().with(filter).with(lines);
    let (log, spans) = {
        let made = args.otlp_endpoint.as_deref().map(otlp::layer).transpose();
        let (layer, spans) = made
            .unwrap_or_else(|error| {
                wrong.push(format!("no spans are sent: {error}"));
                None
            })
            .unzip();
        (log.with(layer), spans)
    };
    log.init();
    for what in wrong {
        tracing::warn!("{what}");
    }
    Telemetry { spans }
}
