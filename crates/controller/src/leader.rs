//! Which replica acts: a `coordination.k8s.io` Lease per role, taken and renewed by compare-and-swap.
//!
//! A leader knows by its own monotonic clock until when it surely leads; it stops acting *before* another may begin,
//! because it counts from when it sent the renewal and waits a third less than the others do. A process that was
//! stopped and continued asks [`Leadership::holds`] before it writes and finds that its time is over.
//!
//! Easy to get wrong: the clock of another machine is never compared with ours. A follower counts from when *it* saw
//! the Lease change.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use prometheus_client::metrics::gauge::Gauge;

use crate::shutdown::Shutdown;

/// Whether we lead, asked from anywhere. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Leadership(Arc<Mutex<(Term, u64)>>);

#[derive(Clone, Copy, Debug)]
enum Term {
    /// Nobody elects: the only replica.
    Always,
    /// Until when we surely lead; None when we do not.
    Until(Option<Instant>),
}

impl Term {
    fn holds(self) -> bool {
        match self {
            Self::Always => true,
            Self::Until(until) => until.is_some_and(|until| Instant::now() < until),
        }
    }
}

impl Leadership {
    /// Of the only replica.
    pub(crate) fn always() -> Self {
        Self(Arc::new(Mutex::new((Term::Always, 1))))
    }

    /// Of a replica that has not won yet.
    pub(crate) fn follower() -> Self {
        Self(Arc::new(Mutex::new((Term::Until(None), 0))))
    }

    /// Whether we lead at this moment. Asked before every write.
    pub(crate) fn holds(&self) -> bool {
        self.lock().0.holds()
    }

    /// Which term it is, or was last: somebody else may have led between two of them. 0 before the first.
    pub(crate) fn number(&self) -> u64 {
        self.lock().1
    }

    fn set(&self, until: Option<Instant>) {
        let mut term = self.lock();
        let led = term.0.holds();
        term.0 = Term::Until(until);
        term.1 += u64::from(!led && term.0.holds());
    }

    fn lock(&self) -> MutexGuard<'_, (Term, u64)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who runs for what.
#[derive(Clone)]
pub(crate) struct Election {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    /// The Lease's name.
    pub(crate) name: String,
    /// Ours; unique per process.
    pub(crate) identity: String,
    /// How long a leader may be silent.
    pub(crate) duration: Duration,
}

/// What a follower last saw, and when it saw it change.
struct Seen {
    version: Option<String>,
    since: Instant,
}

impl Election {
    /// Runs until the end: calls nothing, only moves the term of `leadership`. Gives the Lease up at the end.
    pub(crate) async fn run(self, leadership: Leadership, gauge: Gauge, shutdown: Shutdown) {
        let api: Api<Lease> = Api::namespaced(self.client.clone(), &self.namespace);
        let mut seen = Seen {
            version: None,
            since: Instant::now(),
        };
        let mut led = false;
        while !shutdown.has_come() {
            let asked = Instant::now();
            let tried = tokio::time::timeout(self.duration / 3, self.try_lead(&api, &mut seen));
            match tried.await {
                Ok(Ok(true)) => leadership.set(Some(asked + self.duration * 2 / 3)),
                Ok(Ok(false)) => leadership.set(None),
                // The term runs out by itself; until then a hiccup of the API server costs nothing.
                Ok(Err(error)) => tracing::warn!(
                    lease = self.name,
                    error = crate::error::chain(&error),
                    "cannot renew"
                ),
                Err(_) => tracing::warn!(lease = self.name, "the API server does not answer"),
            }
            if led != leadership.holds() {
                led = !led;
                gauge.set(i64::from(led));
                tracing::info!(
                    lease = self.name,
                    identity = self.identity,
                    leads = led,
                    "election"
                );
            }
            tokio::select! {
                () = tokio::time::sleep(self.duration / 6) => {}
                () = shutdown.clone().wait() => {}
            }
        }
        leadership.set(None);
        let freed = tokio::time::timeout(self.duration / 3, self.give_up(&api)).await;
        if !matches!(freed, Ok(Ok(()))) {
            tracing::debug!(lease = self.name, "not given up; it runs out by itself");
        }
    }

    /// One try: true when the Lease is ours now.
    async fn try_lead(&self, api: &Api<Lease>, seen: &mut Seen) -> Result<bool, kube::Error> {
        let Some(lease) = api.get_opt(&self.name).await? else {
            return settled(api.create(&PostParams::default(), &self.fresh()).await);
        };
        let version = lease.metadata.resource_version.clone();
        if seen.version != version {
            seen.version = version;
            seen.since = Instant::now();
        }
        let spec = lease.spec.clone().unwrap_or_default();
        let holder = spec.holder_identity.clone().unwrap_or_default();
        let ours = holder == self.identity;
        let promised = spec
            .lease_duration_seconds
            .and_then(|s| u64::try_from(s).ok());
        let patience = promised.map_or(self.duration, Duration::from_secs);
        if !ours && !holder.is_empty() && seen.since.elapsed() < patience {
            return Ok(false);
        }
        let mut wanted = lease;
        wanted.spec = Some(self.spec(&spec, ours));
        // The resourceVersion goes with it: whoever was faster wins, and we are told.
        settled(
            api.replace(&self.name, &PostParams::default(), &wanted)
                .await,
        )
    }

    fn spec(&self, before: &LeaseSpec, ours: bool) -> LeaseSpec {
        let now = MicroTime(jiff::Timestamp::now());
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: Some(
                i32::try_from(self.duration.as_secs().max(1)).unwrap_or(i32::MAX),
            ),
            acquire_time: before
                .acquire_time
                .clone()
                .filter(|_| ours)
                .or_else(|| Some(now.clone())),
            renew_time: Some(now),
            lease_transitions: Some(before.lease_transitions.unwrap_or(0) + i32::from(!ours)),
            ..LeaseSpec::default()
        }
    }

    fn fresh(&self) -> Lease {
        Lease {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                namespace: Some(self.namespace.clone()),
                ..ObjectMeta::default()
            },
            spec: Some(self.spec(&LeaseSpec::default(), false)),
        }
    }

    /// Empties the Lease where it is still ours, so that the next leader need not wait.
    async fn give_up(&self, api: &Api<Lease>) -> Result<(), kube::Error> {
        let Some(mut lease) = api.get_opt(&self.name).await? else {
            return Ok(());
        };
        let spec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_deref() != Some(self.identity.as_str()) {
            return Ok(());
        }
        spec.holder_identity = None;
        settled(
            api.replace(&self.name, &PostParams::default(), &lease)
                .await,
        )
        .map(|_| ())
    }
}

/// Somebody else was faster: not an error, not ours.
fn settled(outcome: Result<Lease, kube::Error>) -> Result<bool, kube::Error> {
    match outcome {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_term_that_ran_out_does_not_hold() {
        let leadership = Leadership::follower();
        assert!(!leadership.holds());
        leadership.set(Some(Instant::now() + Duration::from_mins(1)));
        assert!(leadership.holds());
        leadership.set(Some(Instant::now()));
        assert!(!leadership.holds());
        assert!(Leadership::always().holds());
    }

    #[test]
    fn a_renewal_goes_on_with_its_term_and_a_new_one_has_another_number() {
        let leadership = Leadership::follower();
        assert_eq!(leadership.number(), 0);
        let minute = || Some(Instant::now() + Duration::from_mins(1));
        leadership.set(minute());
        leadership.set(minute());
        assert_eq!(leadership.number(), 1);
        // Ran out by itself, and nobody noticed.
        leadership.set(Some(Instant::now()));
        leadership.set(minute());
        assert_eq!(leadership.number(), 2);
        leadership.set(None);
        assert_eq!(leadership.number(), 2);
    }
}
