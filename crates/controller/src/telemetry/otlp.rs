//! Spans for a collector, by OTLP over plain HTTP.
//!
//! Easy to get wrong: spans are sent in batches by a thread of their own; what was not sent when the program ends is
//! lost, unless the provider is shut down first.

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use tracing::Subscriber;
use tracing_opentelemetry::OpenTelemetryLayer;
use tracing_subscriber::registry::LookupSpan;

const NAME: &str = "moor-controller";
/// Where a collector takes spans.
const PATH: &str = "/v1/traces";

/// A layer that sends spans to a collector, and what is shut down at the end. Must be called outside of a runtime:
/// the client that it makes blocks.
pub(super) fn layer<S>(
    endpoint: &str,
) -> Result<(OpenTelemetryLayer<S, SdkTracer>, SdkTracerProvider), ExporterBuildError>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let endpoint = endpoint.trim_end_matches('/').trim_end_matches(PATH);
    let exporter = SpanExporter::builder()
        .with_http()
        .with_endpoint(format!("{endpoint}{PATH}"))
        .build()?;
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(Resource::builder().with_service_name(NAME).build())
        .build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer(NAME));
    Ok((layer, provider))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    /// Takes one request and answers it: its first line, and its body.
    fn collect(listener: &TcpListener) -> (String, Vec<u8>) {
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = Vec::new();
        let mut chunk = [0; 4096];
        loop {
            let end = bytes.windows(4).position(|w| w == b"\r\n\r\n");
            if let Some(end) = end {
                let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
                let length = head.split("content-length: ").nth(1).unwrap();
                let length: usize = length.lines().next().unwrap().trim().parse().unwrap();
                if bytes.len() >= end + 4 + length {
                    let first = head.lines().next().unwrap().to_owned();
                    stream
                        .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                        .unwrap();
                    return (first, bytes[end + 4..].to_vec());
                }
            }
            let read = stream.read(&mut chunk).unwrap();
            assert_ne!(read, 0, "the request ended early");
            bytes.extend_from_slice(&chunk[..read]);
        }
    }

    #[test]
    fn a_span_reaches_the_collector_when_the_program_ends() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let collector = std::thread::spawn(move || collect(&listener));
        let (layer, provider) = layer(&endpoint).unwrap();
        let subscriber = tracing_subscriber::registry().with(layer);
        tracing::subscriber::with_default(subscriber, || {
            tracing::info_span!("a pass over a claim").in_scope(|| ());
        });
        provider.shutdown().unwrap();
        let (first, body) = collector.join().unwrap();
        assert_eq!(first, "post /v1/traces http/1.1");
        let has = |word: &str| body.windows(word.len()).any(|w| w == word.as_bytes());
        assert!(has("a pass over a claim"), "{body:?}");
        assert!(has(NAME), "{body:?}");
    }

    #[test]
    fn what_is_no_address_is_refused_at_the_start() {
        assert!(layer::<tracing_subscriber::Registry>("not an address").is_err());
    }
}
