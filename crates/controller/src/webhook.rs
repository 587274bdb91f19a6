//! The role `webhook`: objects are checked against each other before they are stored.
//!
//! ```text
//!  API server ─ TLS ─► review ─► decide (pools, claims, intents; pure) ─► admitted, or refused with findings
//!                        └ view (a watch of pools), leases (the book), intents (their watches, where they are served)
//! ```
//!
//! It is a second net, never the only one: the configuration says `failurePolicy: Ignore`, CEL has checked the object by
//! itself, and the ipam role hands nothing out of pools that fight. So every answer that cannot be worked out is "yes",
//! with a warning.

mod certificate;
mod decide;
mod intents;
mod review;
mod tls;
mod trust;
mod view;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context as _, Result};
use axum::Router;
use axum::routing::post;

use crate::args::Role;
use crate::error::chain;
use crate::living::Living;
use crate::world::World;

/// How often the certificate is looked at.
const LOOK: Duration = Duration::from_secs(30);
/// How soon after something went wrong.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// Between two looks at what is about to be known.
const SOON: Duration = Duration::from_millis(50);

/// How the webhook is reached, and with which certificate.
#[derive(Clone, Debug, clap::Args)]
#[expect(
    clippy::struct_field_names,
    reason = "the fields are the flags, and other roles have a --listen too"
)]
pub(crate) struct WebhookArgs {
    /// Where the webhook listens
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "0.0.0.0:9443",
        env = "MOOR_CONTROLLER_WEBHOOK_LISTEN"
    )]
    pub(crate) webhook_listen: SocketAddr,
    /// Names that the certificate is made for; the Service's name where none is given
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        env = "MOOR_CONTROLLER_WEBHOOK_NAMES"
    )]
    pub(crate) webhook_names: Vec<String>,
    /// A directory with tls.crt and tls.key, for example of cert-manager; without it a certificate is made
    #[arg(long, value_name = "DIR", env = "MOOR_CONTROLLER_WEBHOOK_CERTIFICATE")]
    pub(crate) webhook_certificate: Option<PathBuf>,
    /// The ValidatingWebhookConfiguration that is told to trust the certificate
    #[arg(
        long,
        value_name = "NAME",
        default_value = "mooring-webhook",
        env = "MOOR_CONTROLLER_WEBHOOK_CONFIGURATION"
    )]
    pub(crate) webhook_configuration: String,
}

impl WebhookArgs {
    fn names(&self, namespace: &str) -> Vec<String> {
        if self.webhook_names.is_empty() {
            let service = format!("mooring-webhook.{namespace}.svc");
            vec![format!("{service}.cluster.local"), service]
        } else {
            self.webhook_names.clone()
        }
    }
}

/// Runs the role until the end.
pub(crate) async fn run(world: World) -> Result<()> {
    const PART: &str = "webhook";
    world.readiness.set(PART, false);
    let served = Arc::new(tls::Served::default());
    let view = view::View::start(&world);
    let intents = intents::Intents::default();
    let living = Arc::new(OnceLock::new());
    let reviewer =
        review::Reviewer::new(&world, view.clone(), intents.clone(), Arc::clone(&living))?;
    let address = world.args.webhook.webhook_listen;
    let listener = tls::TlsListener::bind(address, served.clone())
        .await
        .with_context(|| format!("cannot listen on {address}"))?;
    let keeper = tokio::spawn(keep(world.clone(), served, view, Arc::clone(&living)));
    let others = tokio::spawn(look(world.clone(), living));
    let watching = tokio::spawn(intents.keep(world.clone()));
    let router = Router::new()
        .route("/validate", post(review::validate))
        .with_state(Arc::new(reviewer));
    tracing::info!(%address, "serving admission");
    let outcome = axum::serve(listener, router)
        .with_graceful_shutdown(world.shutdown.clone().wait())
        .await;
    keeper
        .await
        .context("the keeper of the certificate panicked")?;
    watching.await.context("the watch of intents panicked")?;
    others.await.context("the look for others panicked")?;
    outcome.context("the webhook cannot serve")
}

/// Looks for other controllers of pools until the end: where one is, its objects are not ours to judge.
async fn look(world: World, living: Arc<OnceLock<Living>>) {
    let looking = async {
        loop {
            match Living::look_for(&world, Role::Ipam, &[]).await {
                Ok(seen) => break living.get_or_init(|| seen).other_comes(&world).await,
                Err(error) => {
                    tracing::warn!(error = chain(&error), "cannot look for others yet");
                    tokio::time::sleep(LOOK_AGAIN).await;
                }
            }
        }
    };
    tokio::select! {
        () = looking => {}
        () = world.shutdown.clone().wait() => {}
    }
}

/// Serves a certificate as soon as there is one that is trusted, and every later one.
async fn keep(
    world: World,
    served: Arc<tls::Served>,
    view: view::View,
    living: Arc<OnceLock<Living>>,
) {
    let known = async {
        view.synced(&world.client).await;
        while living.get().is_none() {
            tokio::time::sleep(SOON).await;
        }
    };
    tokio::select! {
        () = known => {}
        () = world.shutdown.clone().wait() => return,
    }
    let mut last = None;
    while !world.shutdown.has_come() {
        let wait = match trust::ensure(&world, &world.args.webhook).await {
            Ok(certificate) if last.as_ref() == Some(&certificate) => LOOK,
            Ok(certificate) => match served.set(&certificate) {
                Ok(()) => {
                    world.readiness.set("webhook", true);
                    last = Some(certificate);
                    LOOK
                }
                Err(error) => {
                    tracing::error!(error = chain(&error), "the certificate is not served");
                    LOOK_AGAIN
                }
            },
            Err(error) => {
                tracing::warn!(error = chain(&error), "no certificate yet");
                LOOK_AGAIN
            }
        };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = world.shutdown.clone().wait() => {}
        }
    }
}
