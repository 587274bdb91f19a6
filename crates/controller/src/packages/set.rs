//! A PackageVariantSet becomes PackageVariants: one per target, made from the template; what left goes.
//!
//! gather (targets, the blueprint's labels) → check → decide (`blueprint::variant`) → apply (owned variants) → report.
//! Easy to get wrong: with an error in the set nothing is deleted, since a target that cannot be read is not one that left.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Preconditions};
use kube::runtime::controller::Action;
use mooring_api::kinds::porch::{PackageVariant, PackageVariantSetSpec};
use mooring_api::{Code, Condition, Finding, label};
use mooring_blueprint::Object;
use mooring_blueprint::variant::{self, Variant};
use serde_json::{Value, json};

use super::conditions::{condition, sentence, timed};
use super::{PORCH, Role, key, reference};
use crate::error::{Error, chain};

/// The label by which Porch's set finds its variants: the set's uid.
const OF_SET: &str = "config.porch.kpt.dev/packagevariantset";
const KIND: &str = "PackageVariantSet";

/// One pass.
pub(super) async fn reconcile(set: Object, role: Arc<Role>) -> Action {
    let work = async {
        let outcome = pass(&set, &role).await;
        if let Err(error) = &outcome
            && !matches!(error, Error::NotLeader | Error::Waiting(_))
            && let Err(other) = report_failed(&set, error, &role).await
        {
            tracing::warn!(error = chain(&other), "the status is not written");
        }
        outcome
    };
    role.world.pass(KIND, &key(&set), work).await
}

async fn pass(set: &Object, role: &Role) -> Result<Option<Duration>, Error> {
    if set.value.pointer("/metadata/deletionTimestamp").is_some() || !role.is_ours(set).await {
        // Its variants have it as their owner, and go with it.
        return Ok(None);
    }
    let known = role.variants().await?;
    let mut findings = mooring_api::kinds::check(&set.value);
    let mut wanted = Vec::new();
    if !findings.iter().any(Finding::is_error) {
        let objects = gather(set, role).await?;
        let kptfile = role.blueprint_of(set).await?;
        let (variants, more) = variant::read(&objects, &|_| kptfile.clone());
        let (reference, name) = (set.reference(), set.name());
        let ours = |v: &Variant| v.origin.kind == KIND && v.origin.name == name;
        wanted = variants.into_iter().filter(ours).collect();
        findings.extend(
            more.into_iter()
                .filter(|f| f.object.as_ref() == Some(&reference)),
        );
        findings.extend(wanted.iter().filter_map(|v| taken(v, set, &known)));
    }
    let failed = findings.iter().any(Finding::is_error);
    if !failed {
        apply(set, &wanted, &known, role).await?;
    }
    report(set, &wanted, &findings, role).await?;
    Ok(None)
}

/// What targets may mean, and the set itself. Another set of the namespace is none of its business.
async fn gather(set: &Object, role: &Role) -> Result<Vec<Object>, Error> {
    let namespace = set.namespace();
    let mut objects = vec![set.clone()];
    let mut kinds = BTreeSet::from([(PORCH.to_owned(), "Repository".to_owned())]);
    if let Ok(spec) = set.spec::<PackageVariantSetSpec>() {
        let selectors = spec.targets.into_iter().filter_map(|t| t.object_selector);
        kinds.extend(selectors.map(|s| (s.api_version, s.kind)));
    }
    for (api_version, kind) in kinds {
        objects.extend(role.cache.all(&api_version, &kind, Some(namespace)).await?);
    }
    Ok(objects)
}

/// A variant of that name which is not the set's.
fn taken(variant: &Variant, set: &Object, known: &[Object]) -> Option<Finding> {
    let there = known
        .iter()
        .find(|o| (o.namespace(), o.name()) == (&variant.namespace, &variant.name))?;
    (!is_owned(there, set)).then(|| {
        Finding::error(
            Code::NameTaken,
            format!(
                "PackageVariant {} is there already and is not this set's",
                variant.name
            ),
        )
        .on(&set.reference())
        .at(variant.place.clone())
        .help("Rename the set, or delete that variant.")
    })
}

fn is_owned(variant: &Object, set: &Object) -> bool {
    let uid = set.value.pointer("/metadata/uid");
    let owners = variant
        .value
        .pointer("/metadata/ownerReferences")
        .and_then(Value::as_array);
    uid.is_some()
        && owners
            .into_iter()
            .flatten()
            .any(|owner| owner.get("uid") == uid)
}

/// A variant as the set wants it.
fn object(variant: &Variant, set: &Object) -> Value {
    let mut labels = json!({ OF_SET: set.value["metadata"]["uid"] });
    if let Some(managed) = set.labels().get(label::MANAGED) {
        labels[label::MANAGED] = json!(managed);
    }
    json!({
        "apiVersion": PORCH, "kind": "PackageVariant",
        "metadata": {
            "name": variant.name, "namespace": variant.namespace, "labels": labels,
            "ownerReferences": [{
                "apiVersion": set.api_version(), "kind": KIND, "name": set.name(),
                "uid": set.value["metadata"]["uid"], "controller": true, "blockOwnerDeletion": false,
            }],
        },
        "spec": serde_json::to_value(&variant.spec).expect("a spec has string keys only"),
    })
}

async fn apply(
    set: &Object,
    wanted: &[Variant],
    known: &[Object],
    role: &Role,
) -> Result<(), Error> {
    let resource = ApiResource::erase::<PackageVariant>(&());
    let client = role.world.client.clone();
    let api: Api<DynamicObject> = Api::namespaced_with(client, set.namespace(), &resource);
    for variant in wanted {
        let object = object(variant, set);
        let there = known
            .iter()
            .find(|o| (o.namespace(), o.name()) == (&variant.namespace, &variant.name));
        if there.is_some_and(|there| there.value["spec"] == object["spec"]) {
            continue;
        }
        role.world
            .apply(&api, &variant.name, &object, "apply a variant of a set")
            .await?;
        role.world.metrics.wrote("PackageVariant");
        if there.is_none() {
            let note = format!("variant {} is made for {}", variant.name, variant.path());
            role.world
                .tell(&reference(set), false, "VariantMade", &note)
                .await;
        }
    }
    let left = known
        .iter()
        .filter(|o| o.namespace() == set.namespace() && is_owned(o, set));
    for gone in left.filter(|o| !wanted.iter().any(|v| v.name == o.name())) {
        role.world.fence()?;
        let uid = gone.value.pointer("/metadata/uid").and_then(Value::as_str);
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: uid.map(ToOwned::to_owned),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        match api.delete(gone.name(), &params).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 404 => continue,
            Err(error) => return Err(Error::api("delete a variant that left its set")(error)),
        }
        role.world.metrics.wrote("PackageVariant");
        let note = format!("variant {} left the set and is deleted", gone.name());
        role.world
            .tell(&reference(set), false, "VariantDeleted", &note)
            .await;
    }
    Ok(())
}

async fn report(
    set: &Object,
    wanted: &[Variant],
    findings: &[Finding],
    role: &Role,
) -> Result<(), Error> {
    if write(set, conditions(wanted.len(), findings), role).await? {
        role.found(KIND, findings);
        if let Some(finding) = findings.iter().find(|f| f.is_error()) {
            let on = reference(set);
            role.world
                .tell(&on, true, finding.code.as_str(), &sentence(finding))
                .await;
        }
    }
    Ok(())
}

/// Something is away, or not ours to read; it is tried again.
async fn report_failed(set: &Object, error: &Error, role: &Role) -> Result<(), Error> {
    let said = format!("{}; it is tried again", chain(error));
    let conditions = vec![
        condition("Stalled", true, error.reason(), said.clone()),
        condition("Ready", false, error.reason(), said),
    ];
    if write(set, conditions, role).await? {
        let on = reference(set);
        role.world
            .tell(&on, true, error.reason(), &chain(error))
            .await;
    }
    Ok(())
}

/// Writes the status; whether it is another one.
async fn write(set: &Object, conditions: Vec<Condition>, role: &Role) -> Result<bool, Error> {
    let before = set.value.get("status").cloned().unwrap_or_default();
    let generation = set
        .value
        .pointer("/metadata/generation")
        .and_then(Value::as_i64);
    let status = json!({ "conditions": timed(&before, conditions, generation, role.world.now()) });
    if before == status {
        return Ok(false);
    }
    let object = json!({
        "apiVersion": set.api_version(), "kind": KIND,
        "metadata": { "name": set.name(), "namespace": set.namespace() },
        "status": status,
    });
    let resource = ApiResource::erase::<mooring_api::kinds::porch::PackageVariantSet>(&());
    let client = role.world.client.clone();
    let api: Api<DynamicObject> = Api::namespaced_with(client, set.namespace(), &resource);
    role.world
        .apply_status(&api, set.name(), &object, "write the status of a set")
        .await?;
    role.world.metrics.wrote(KIND);
    Ok(true)
}

/// As Porch names them.
fn conditions(made: usize, findings: &[Finding]) -> Vec<Condition> {
    if let Some(finding) = findings.iter().find(|f| f.is_error()) {
        return vec![
            condition("Stalled", true, "ValidationError", sentence(finding)),
            condition("Ready", false, finding.code.as_str(), sentence(finding)),
        ];
    }
    let mut said = vec![format!("{made} variants")];
    said.extend(findings.iter().map(sentence));
    vec![
        condition("Stalled", false, "Valid", "all validation checks passed"),
        condition("Ready", true, "Reconciled", said.join("; ")),
    ]
}

impl Role {
    /// The Kptfile of a set's blueprint, where an expression may ask for it.
    async fn blueprint_of(&self, set: &Object) -> Result<Option<Value>, Error> {
        let Ok(spec) = set.spec::<PackageVariantSetSpec>() else {
            return Ok(None);
        };
        if !set.value["spec"]["targets"]
            .to_string()
            .contains("upstream")
        {
            return Ok(None);
        }
        let repositories = self.repositories().await?;
        let Some(object) = super::remote::find(&repositories, set.namespace(), &spec.upstream.repo)
        else {
            return Ok(None);
        };
        let Ok(remote) = self.remote(object).await? else {
            return Ok(None);
        };
        let files = self.blueprint(remote, spec.upstream).await?;
        Ok(files
            .ok()
            .and_then(|found| mooring_package::kptfile_of(&found.files)))
    }
}
