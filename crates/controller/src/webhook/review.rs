//! One admission review: read the request, gather what stands beside the object, decide, answer.

use std::sync::Arc;

use anyhow::Result;
use axum::Json;
use axum::extract::State;
use kube::core::DynamicObject;
use kube::core::admission::{AdmissionRequest, AdmissionResponse, AdmissionReview};
use mooring_api::Finding;
use mooring_blueprint::Object;
use mooring_book::{Filter, KubeStore, Store as _, Writers};
use mooring_ipam::{Lease, Pools};

use super::decide::{self, Asked};
use super::view::View;
use crate::error::chain;
use crate::metrics::Pass;
use crate::world::World;

/// What a review needs.
pub(super) struct Reviewer {
    world: World,
    view: View,
    book: Arc<KubeStore>,
}

impl Reviewer {
    /// With the cluster's book beside the pools.
    pub(super) fn new(world: &World, view: View) -> Result<Self> {
        Ok(Self {
            world: world.clone(),
            view,
            book: world.book(Writers::Many)?,
        })
    }

    /// What is wrong with the object beside the others.
    fn findings(&self, kind: &str, asked: &Asked) -> Vec<Finding> {
        let now = self.world.now();
        let objects = self.view.objects();
        match kind {
            "NetworkInstance" | "IPPrefix" => {
                decide::pool(&objects, asked, |pools| self.leases(pools), now)
            }
            "IPClaim" => decide::claim(&objects, asked, now),
            _ => Vec::new(),
        }
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
    let asked = asked(&request);
    // The book waits for the network; a worker thread of the runtime must not.
    let worked = tokio::task::spawn_blocking({
        let (reviewer, kind) = (reviewer.clone(), kind.clone());
        move || reviewer.findings(&kind, &asked)
    });
    match worked.await {
        Ok(findings) if findings.is_empty() => {}
        Ok(findings) => {
            count(&reviewer.world, &kind, &findings);
            response = response.deny(text(&findings));
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
    findings.iter().map(line).collect::<Vec<_>>().join("; ")
}

fn count(world: &World, kind: &str, findings: &[Finding]) {
    let kind = match kind {
        "NetworkInstance" => "NetworkInstance",
        "IPPrefix" => "IPPrefix",
        _ => "IPClaim",
    };
    for finding in findings {
        let outcome = finding.code.as_str();
        let label = Pass { kind, outcome };
        world.metrics.findings.get_or_create(&label).inc();
    }
}
