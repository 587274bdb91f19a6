//! A PackageVariant becomes a package in Git: gather, check, decide, apply, report.
//!
//! Easy to get wrong: a variant that is deleted keeps its object until its package and its addresses are gone, or left on
//! purpose. That is what its finalizer is for, and nothing else.

mod apply;
mod check;
mod decide;
mod gather;
mod release;
mod report;

use std::sync::Arc;
use std::time::Duration;

use kube::Api;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::runtime::controller::Action;
use mooring_api::Finding;
use mooring_api::kinds::porch::PackageVariant;
use mooring_blueprint::Object;
use serde_json::{Value, json};

use super::{Role, blocking, key, reference};
use crate::error::Error;
use apply::Act;
use decide::Remembered;
use report::Told;
pub(super) use report::Written;

pub(super) use apply::Applied;

/// Porch's definition of the kind.
pub(super) const DEFINITION: &str = "packagevariants.config.porch.kpt.dev";
/// What we add to it.
pub(super) const ADDED: &[&str] = &[
    "status.lifecycle",
    "status.workspace",
    "status.version",
    "status.commit",
    "status.cluster",
    "status.addresses",
];
/// What the variant did last.
const LAST: &str = "mooring.dev/last-draft";
/// Something is to be released when the variant goes.
const FINALIZER: &str = "mooring.dev/packagevariant";
const KIND: &str = "PackageVariant";
/// How often a pass begins again at once because somebody else pushed.
const OVERTAKEN: u32 = 4;

/// One pass.
pub(super) async fn reconcile(object: Object, role: Arc<Role>) -> Action {
    let work = async {
        let outcome = pass(&object, &role).await;
        if let Err(error) = &outcome
            && !matches!(error, Error::NotLeader | Error::Waiting(_))
            && let Err(other) = role.report(&object, &Told::Failed(error)).await
        {
            tracing::warn!(
                error = crate::error::chain(&other),
                "the status is not written"
            );
        }
        outcome
    };
    role.world.pass(KIND, &key(&object), work).await
}

async fn pass(object: &Object, role: &Role) -> Result<Option<Duration>, Error> {
    if !role.is_ours(object).await {
        return Ok(None);
    }
    if object
        .value
        .pointer("/metadata/deletionTimestamp")
        .is_some()
    {
        role.links.note(object, false);
        return role.release(object).await;
    }
    let checked = match check::check(object, &role.variants().await?) {
        Ok(checked) => checked,
        Err(findings) => {
            role.report(object, &Told::Refused(&findings)).await?;
            return waiting(findings);
        }
    };
    role.finalizer(object, true).await?;
    let remembered = remembered(object);
    if !remembered.place.is_empty() && remembered.place != checked.variant.path() {
        role.leave(object, &remembered).await?;
    }
    let mut tries = 0;
    let (applied, place) = loop {
        let again = check::Checked {
            variant: checked.variant.clone(),
            package: checked.package.clone(),
        };
        let gathered = match role.gather(object, again).await? {
            Ok(gathered) => gathered,
            Err(findings) => {
                role.report(object, &Told::Refused(&findings)).await?;
                return waiting(findings);
            }
        };
        match role.apply(gathered, remembered.clone()).await {
            Err(error) if error.is_overtaken() && tries < OVERTAKEN => tries += 1,
            done => break done?,
        }
    };
    if let Some(new) = applied.remember.as_ref().filter(|new| **new != remembered) {
        role.remember(object, new).await?;
    }
    let deployed = role.deployed(&applied, &place).await;
    role.report(object, &Told::Applied(&applied, deployed))
        .await?;
    if applied.findings.iter().any(Finding::is_error) {
        return waiting(applied.findings);
    }
    Ok(applied.again.map(|again| again + Duration::from_secs(1)))
}

/// An edit wakes us: of the variant, a pool, or whatever else it is made from. Counted, so that an alert can see it.
fn waiting(findings: Vec<Finding>) -> Result<Option<Duration>, Error> {
    match findings.into_iter().find(Finding::is_error) {
        Some(finding) => Err(Error::Waiting(Box::new(finding))),
        None => Ok(None),
    }
}

/// What the variant did last, by its annotation.
fn remembered(object: &Object) -> Remembered {
    let text = object.annotation(LAST);
    text.and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}

impl Role {
    async fn apply(
        &self,
        gathered: gather::Gathered,
        remembered: Remembered,
    ) -> Result<(Applied, Arc<super::remote::Remote>), Error> {
        let place = gathered.down.clone();
        let _flight = self.flight.clone().read_owned().await;
        let _turn = self
            .turns
            .take(&gathered.down.packages.repository.url)
            .await;
        let world = self.world.clone();
        let book = self.book.clone();
        let applied = blocking(move || {
            let act = Act {
                world: &world,
                book: &book,
                gathered: &gathered,
                remembered: &remembered,
            };
            act.run()
        });
        Ok((applied.await?, place))
    }

    fn variant_api(&self, object: &Object) -> Api<DynamicObject> {
        let resource = ApiResource::erase::<PackageVariant>(&());
        Api::namespaced_with(self.world.client.clone(), object.namespace(), &resource)
    }

    /// A patch in our name. Not an apply: what a set applies is ours too, and would go.
    fn own_patch(&self) -> PatchParams {
        PatchParams {
            field_manager: Some(self.world.manager().to_owned()),
            ..PatchParams::default()
        }
    }

    /// Sets or takes away our finalizer.
    pub(super) async fn finalizer(&self, object: &Object, wanted: bool) -> Result<(), Error> {
        let list = object
            .value
            .pointer("/metadata/finalizers")
            .and_then(Value::as_array);
        let mut list: Vec<Value> = list.cloned().unwrap_or_default();
        if list.iter().any(|f| f == FINALIZER) == wanted {
            return Ok(());
        }
        list.retain(|f| f != FINALIZER);
        if wanted {
            list.push(json!(FINALIZER));
        }
        self.world.fence()?;
        // The version guards the list, which others change too; theirs stay as they were read.
        let patch = json!({ "metadata": {
            "resourceVersion": object.value.pointer("/metadata/resourceVersion"), "finalizers": list,
        }});
        let api = self.variant_api(object);
        match api
            .patch(object.name(), &self.own_patch(), &Patch::Merge(&patch))
            .await
        {
            Ok(_) => {
                self.world.metrics.wrote(KIND);
                Ok(())
            }
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(Error::api("change the finalizer of a variant")(error)),
        }
    }

    /// Keeps what was done on the variant.
    async fn remember(&self, object: &Object, what: &Remembered) -> Result<(), Error> {
        let text = serde_json::to_string(what).expect("texts only");
        let patch = json!({ "metadata": { "annotations": { LAST: text } } });
        self.world.fence()?;
        let api = self.variant_api(object);
        let patched = api
            .patch(object.name(), &self.own_patch(), &Patch::Merge(&patch))
            .await;
        match patched {
            Ok(_) => self.world.metrics.wrote(KIND),
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(Error::api("keep what a variant did")(error)),
        }
        Ok(())
    }

    /// Whether an object is ours to act on. One that is not is told so, once.
    pub(super) async fn is_ours(&self, object: &Object) -> bool {
        let metadata = serde_json::from_value(object.value["metadata"].clone());
        let metadata = metadata.unwrap_or_default();
        self.living.notice(&metadata);
        let ours = self.living.is_ours(&metadata);
        if !ours {
            let on = reference(object);
            self.living.tell_ignored(&self.world, &on).await;
        }
        ours
    }
}
