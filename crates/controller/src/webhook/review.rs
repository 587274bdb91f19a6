//! One admission review: read the request, gather what stands beside the object, decide, answer.

use std::sync::{Arc, OnceLock};

use anyhow::Result;
use axum::Json;
use axum::extract::State;
use kube::core::DynamicObject;
use kube::core::admission::{AdmissionRequest, AdmissionResponse, AdmissionReview};
use mooring_api::Finding;
use mooring_blueprint::Object;
use mooring_book::{Filter, KubeStore, Store as _, Writers};
use mooring_intent::Admission;
use mooring_ipam::{Lease, Pools};
use tokio::sync::Semaphore;

use super::decide::{self, Asked};
use super::intents::{self, Intents};
use super::view::View;
use crate::error::chain;
use crate::living::Living;
use crate::metrics::Pass;
use crate::world::World;

/// How many findings a person gets to read at once.
const READ: usize = 8;
/// How many reviews of intents are worked out at once: each has a copy of all intents.
const AT_ONCE: usize = 4;

/// What a review needs.
pub(super) struct Reviewer {
    world: World,
    view: View,
    intents: Intents,
    places: Semaphore,
    book: Arc<KubeStore>,
    /// Whose the pools are; not known before the first look, and until then nobody is served.
    living: Arc<OnceLock<Living>>,
}

impl Reviewer {
    /// With the cluster's book beside pools and intents.
    pub(super) fn new(
        world: &World,
        view: View,
        intents: Intents,
        living: Arc<OnceLock<Living>>,
    ) -> Result<Self> {
        Ok(Self {
            world: world.clone(),
            view,
            intents,
            places: Semaphore::new(AT_ONCE),
            book: world.book(Writers::Many)?,
            living,
        })
    }

    /// Whether an object is ours to judge, and counts when another is judged.
    fn is_ours(&self, object: &Object) -> bool {
        let Some(living) = self.living.get() else {
            return true;
        };
        let metadata = serde_json::from_value(object.value["metadata"].clone());
        let metadata = metadata.unwrap_or_default();
        living.notice(&metadata);
        living.is_ours(&metadata)
    }

    /// What is wrong with the object beside the others.
    fn findings(&self, kind: &str, asked: &Asked) -> Vec<Finding> {
        let now = self.world.now();
        let mut objects = self.view.objects();
        objects.retain(|object| self.is_ours(object));
        // Somebody else's pools are judged by somebody else.
        let subject = asked.new.as_ref().or(asked.old.as_ref());
        if subject.is_some_and(|object| !self.is_ours(object)) {
            return Vec::new();
        }
        match kind {
            "NetworkInstance" | "IPPrefix" => {
                decide::pool(&objects, asked, |pools| self.leases(pools), now)
            }
            "IPClaim" => decide::claim(&objects, asked, now),
            _ => Vec::new(),
        }
    }

    /// What is said about an intent beside the others.
    fn intent(&self, kind: &str, asked: &Asked) -> Admission {
        let Some(others) = self.intents.beside(kind) else {
            tracing::warn!(
                kind,
                "admitted without a look at others: intents are not known yet"
            );
            return Admission::default();
        };
        decide::intent(&others, asked)
    }

    async fn work(
        self: Arc<Self>,
        group: &str,
        kind: String,
        asked: Asked,
    ) -> Result<Admission, tokio::task::JoinError> {
        if group == intents::GROUP {
            let place = self.places.acquire().await;
            let reviewer = Arc::clone(&self);
            let worked = tokio::task::spawn_blocking(move || reviewer.intent(&kind, &asked)).await;
            drop(place);
            return worked;
        }
        // The book waits for the network; a worker thread of the runtime must not.
        let worked = tokio::task::spawn_blocking(move || self.findings(&kind, &asked)).await;
        worked.map(|refused| Admission {
            refused,
            ..Admission::default()
        })
    }

    fn leases(&self, pools: &Pools) -> Vec<Lease> {
        let mut all = Vec::new();
        for instance in pools.instances.keys() {
            let filter = Filter {
                instance: Some(instance.clone()),
                ..Filter::default()
            };
            match self.book.leases(&filter) {
                Ok(leases) => all.extend(leases),
                Err(error) => tracing::warn!(error = chain(&error), "leases are not known"),
            }
        }
        all
    }
}

/// `POST /validate`.
pub(super) async fn validate(
    State(reviewer): State<Arc<Reviewer>>,
    Json(review): Json<AdmissionReview<DynamicObject>>,
) -> Json<AdmissionReview<DynamicObject>> {
    let request: AdmissionRequest<DynamicObject> = match review.try_into() {
        Ok(request) => request,
        Err(error) => {
            let text = format!("this is no admission review: {error}");
            return Json(AdmissionResponse::invalid(text).into_review());
        }
    };
    let mut response = AdmissionResponse::from(&request);
    let kind = request.kind.kind.clone();
    let worked = reviewer
        .clone()
        .work(&request.kind.group, kind.clone(), asked(&request));
    match worked.await {
        Ok(Admission { refused, told }) => {
            count(&reviewer.world, &kind, &refused);
            if !told.is_empty() {
                response.warnings = Some(told.iter().take(READ).map(warning).collect());
            }
            if !refused.is_empty() {
                response = response.deny(text(&refused));
            }
        }
        Err(error) => {
            tracing::error!(%error, kind, "a review panicked");
            response.warnings = Some(vec!["Mooring could not check it beside others.".into()]);
        }
    }
    Json(response.into_review())
}

fn asked(request: &AdmissionRequest<DynamicObject>) -> Asked {
    let object = |o: &Option<DynamicObject>| {
        let value = serde_json::to_value(o.as_ref()?).ok()?;
        Some(Object {
            value,
            source: None,
        })
    };
    Asked {
        old: object(&request.old_object),
        new: object(&request.object),
    }
}

/// What the person at the other end of kubectl reads.
fn text(findings: &[Finding]) -> String {
    let line = |f: &Finding| format!("{}: {}. {}", f.code, f.message, f.help);
    let mut lines: Vec<String> = findings.iter().take(READ).map(line).collect();
    if findings.len() > READ {
        lines.push(format!("and {} more", findings.len() - READ));
    }
    lines.join("; ")
}

/// The same in short: the API server cuts long warnings.
fn warning(finding: &Finding) -> String {
    format!("{}: {}", finding.code, finding.message)
}

fn count(world: &World, kind: &str, findings: &[Finding]) {
    let kind = match kind {
        "NetworkInstance" => "NetworkInstance",
        "IPPrefix" => "IPPrefix",
        "IPClaim" => "IPClaim",
        other => mooring_intent::KINDS
            .into_iter()
            .find(|k| *k == other)
            .unwrap_or("other"),
    };
    for finding in findings {
        let outcome = finding.code.as_str();
        let label = Pass { kind, outcome };
        world.metrics.findings.get_or_create(&label).inc();
    }
}
