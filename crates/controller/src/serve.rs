//! Health and metrics over plain HTTP: `/healthz` lives, `/readyz` is ready to act, `/metrics` for a scraper.
//!
//! Ready means that every role has read what it must know before its first decision; a role says so through
//! [`Readiness`].

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;

use crate::metrics::Metrics;
use crate::shutdown::Shutdown;

/// What is ready and what is not, by name. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Readiness(Arc<Mutex<BTreeMap<String, bool>>>);

impl Readiness {
    /// Says whether a part is ready. A part exists from its first word on.
    pub(crate) fn set(&self, part: &str, ready: bool) {
        let mut parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        parts.insert(part.to_owned(), ready);
    }

    /// The parts that are not ready.
    fn missing(&self) -> Vec<String> {
        let parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = parts.iter().filter(|(_, ready)| !**ready);
        waits.map(|(part, _)| part.clone()).collect()
    }
}

/// Serves until the end.
pub(crate) async fn serve(
    address: SocketAddr,
    readiness: Readiness,
    metrics: Arc<Metrics>,
    shutdown: Shutdown,
) -> std::io::Result<()> {
    let router = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready).with_state(readiness))
        .route("/metrics", get(scrape).with_state(metrics));
    let listener = tokio::net::TcpListener::bind(address).await?;
    tracing::info!(address = %listener.local_addr()?, "serving health and metrics");
    axum::serve(listener, router)
        .with_graceful_shutdown(shutdown.wait())
        .await
}

async fn ready(State(readiness): State<Readiness>) -> impl IntoResponse {
    let missing = readiness.missing();
    if missing.is_empty() {
        (StatusCode::OK, "ok\n".to_owned())
    } else {
        let text = format!("not ready: {}\n", missing.join(", "));
        (StatusCode::SERVICE_UNAVAILABLE, text)
    }
}

async fn scrape(State(metrics): State<Arc<Metrics>>) -> impl IntoResponse {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], metrics.text())
}
