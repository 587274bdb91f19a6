//! IPPrefixes, NetworkInstances and VLANIndexes: how full they are, and what is wrong with them.
//!
//! ```text
//!  gather (tables of the book) ─► decide (rows: size, used, reserved, free; verdict) ─► report (status, gauges, Event)
//! ```
//!
//! There is nothing to apply: a pool is what it is. Easy to get wrong: every claim changes a pool, so statuses are written
//! for all pools together, and not again for some seconds.

mod decide;
mod gather;
mod report;

use std::sync::Arc;
use std::time::Duration;

use super::view::View;
use crate::error::chain;

/// Changes that come together are one report.
const TOGETHER: Duration = Duration::from_millis(500);
/// Between two reports.
const PAUSE: Duration = Duration::from_millis(4500);
/// Without any change: rests end by themselves.
const EVERY: Duration = Duration::from_mins(1);

/// Runs while we lead.
pub(super) async fn keep(view: Arc<View>) {
    loop {
        let pause = match pass(&view).await {
            Ok(()) => PAUSE,
            Err(error) => {
                tracing::warn!(
                    error = chain(&error),
                    "the pools do not say how full they are"
                );
                view.filled.notify_one();
                PAUSE
            }
        };
        tokio::time::sleep(pause).await;
        tokio::select! {
            () = view.filled.notified() => tokio::time::sleep(TOGETHER).await,
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}

async fn pass(view: &Arc<View>) -> Result<(), crate::error::Error> {
    let gathered = gather::gather(view).await?;
    let rows = decide::decide(&gathered);
    report::report(view, &rows).await
}
