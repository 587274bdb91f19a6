//! What every reconciler has at hand: the client, the counters, the recorder of Events, the leadership, the backoff.
//!
//! Each role gets its own, because leadership and field manager are per role.

use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::{Patch, PatchParams};
use kube::runtime::controller::Action;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Client, Config};
use mooring_api::Time;
use mooring_book::{Entry, KubeOptions, KubeStore, Writers};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tracing::{Instrument as _, field};

use crate::args::{Args, Role};
use crate::backoff::Backoff;
use crate::error::{Error, Trouble, chain};
use crate::leader::Leadership;
use crate::metrics::{Metrics, Of, Pass};
use crate::serve::Readiness;
use crate::shutdown::Shutdown;

/// Woken by a watch, but not only: a watch that was lost is made up for after this long.
const NET: Duration = Duration::from_mins(10);

/// What the reconcilers of one role have at hand.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) role: Role,
    pub(crate) client: Client,
    config: Config,
    pub(crate) args: Arc<Args>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) readiness: Readiness,
    pub(crate) leadership: Leadership,
    pub(crate) shutdown: Shutdown,
    recorder: Recorder,
    backoff: Arc<Backoff>,
}

impl World {
    /// For one role.
    pub(crate) fn new(
        role: Role,
        (client, config): (Client, Config),
        args: Arc<Args>,
        metrics: Arc<Metrics>,
        readiness: Readiness,
        leadership: Leadership,
        shutdown: Shutdown,
    ) -> Self {
        let reporter = Reporter {
            controller: manager(role).into(),
            instance: None,
        };
        Self {
            role,
            recorder: Recorder::new(client.clone(), reporter),
            client,
            config,
            args,
            metrics,
            readiness,
            leadership,
            shutdown,
            backoff: Arc::default(),
        }
    }

    /// The field manager of this role's server-side applies.
    pub(crate) fn manager(&self) -> &'static str {
        manager(self.role)
    }

    /// Now, by the wall clock: read here and nowhere else in the controller.
    #[expect(clippy::unused_self, reason = "whoever may read the clock has a World")]
    pub(crate) fn now(&self) -> Time {
        let seconds = jiff::Timestamp::now().as_second();
        Time(u64::try_from(seconds).unwrap_or(0))
    }

    /// The cluster's address book, fenced by this role's leadership. It watches from the first call on, so a role opens one.
    pub(crate) fn book(&self, writers: Writers) -> Result<Arc<KubeStore>, Error> {
        let (leadership, terms) = (self.leadership.clone(), self.leadership.clone());
        let role = self.role.name();
        let options = KubeOptions {
            namespace: self.args.namespace.clone(),
            writers,
            fence: Some(Arc::new(move || leadership.holds())),
            term: Some(Arc::new(move || terms.number())),
            // The audit trail of a cluster is its log: one write per address leaves no room for another.
            observer: Some(Arc::new(move |entry: &Entry| {
                tracing::info!(
                    target: "mooring::audit",
                    role,
                    event = ?entry.event,
                    instance = %entry.instance,
                    thing = %entry.thing,
                    holder = %entry.holder,
                    "book"
                );
            })),
            ..KubeOptions::default()
        };
        Ok(Arc::new(KubeStore::open(self.config.clone(), options)?))
    }

    /// Refuses to act when we do not lead (any more). Called right before every write.
    pub(crate) fn fence(&self) -> Result<(), Error> {
        if self.leadership.holds() {
            Ok(())
        } else {
            Err(Error::NotLeader)
        }
    }

    /// Applies an object, server-side, as ours.
    pub(crate) async fn apply<K>(
        &self,
        api: &kube::Api<K>,
        name: &str,
        object: &(impl Serialize + std::fmt::Debug),
        act: &'static str,
    ) -> Result<K, Error>
    where
        K: Clone + DeserializeOwned + std::fmt::Debug,
    {
        self.fence()?;
        let params = PatchParams::apply(self.manager()).force();
        api.patch(name, &params, &Patch::Apply(object))
            .await
            .map_err(Error::api(act))
    }

    /// Applies a status, server-side, as ours. The object carries apiVersion, kind, name and `status` only.
    pub(crate) async fn apply_status<K>(
        &self,
        api: &kube::Api<K>,
        name: &str,
        object: &(impl Serialize + std::fmt::Debug),
        act: &'static str,
    ) -> Result<K, Error>
    where
        K: DeserializeOwned,
    {
        self.fence()?;
        let params = PatchParams::apply(self.manager()).force();
        api.patch_status(name, &params, &Patch::Apply(object))
            .await
            .map_err(Error::api(act))
    }

    /// Publishes an Event. One that cannot be published is only worth a line.
    pub(crate) async fn tell(&self, on: &ObjectReference, warning: bool, reason: &str, note: &str) {
        let event = Event {
            type_: if warning {
                EventType::Warning
            } else {
                EventType::Normal
            },
            reason: reason.to_owned(),
            note: Some(note.chars().take(1000).collect()),
            action: reason.to_owned(),
            secondary: None,
        };
        if let Err(error) = self.recorder.publish(&event, on).await {
            tracing::warn!(reason, error = chain(&error), "the Event is not published");
        }
    }

    /// One pass of a reconciler: in a span of its own, counted, and with the time when the next is due.
    pub(crate) async fn pass(
        &self,
        kind: &'static str,
        object: &str,
        work: impl Future<Output = Result<Option<Duration>, Error>>,
    ) -> Action {
        let began = Instant::now();
        let role = self.role.name();
        let span = tracing::info_span!("pass", role, kind, object, outcome = field::Empty);
        let outcome = work.instrument(span.clone()).await;
        span.in_scope(|| self.finish(kind, object, began, outcome))
    }

    fn finish(
        &self,
        kind: &'static str,
        object: &str,
        began: Instant,
        outcome: Result<Option<Duration>, Error>,
    ) -> Action {
        self.metrics
            .seconds
            .get_or_create(&Of { kind })
            .observe(began.elapsed().as_secs_f64());
        let label = outcome.as_ref().map_or_else(Error::reason, |_| "Done");
        let pass = Pass {
            kind,
            outcome: label,
        };
        self.metrics.passes.get_or_create(&pass).inc();
        tracing::Span::current().record("outcome", label);
        match outcome {
            Ok(again) => {
                self.backoff.succeeded(object);
                Action::requeue(again.unwrap_or(NET))
            }
            Err(error) => {
                let wait = match error.trouble() {
                    Trouble::Transient => self.backoff.failed(object),
                    Trouble::Waiting => NET,
                };
                tracing::warn!(
                    kind,
                    object,
                    reason = error.reason(),
                    error = chain(&error),
                    retry_in = ?wait,
                    "not done"
                );
                Action::requeue(wait)
            }
        }
    }
}

/// The field manager of a role.
pub(crate) fn manager(role: Role) -> &'static str {
    match role {
        Role::Ipam => "mooring-ipam",
        Role::Packages => "mooring-packages",
        Role::Sync => "mooring-sync",
        Role::Webhook => "mooring-webhook",
    }
}
