//! Who is looked at again when something changes: pools concern everybody, a repository and an injected object only
//! those that name it.

use std::sync::Arc;

use kube::api::{ApiResource, DynamicObject};
use kube::runtime::reflector::ObjectRef;
use mooring_api::kinds::porch::{PackageVariant, PackageVariantSet};
use mooring_blueprint::Object;
use serde_json::Value;
use tokio::sync::{broadcast, mpsc};

use super::cache::Touched;
use super::{POOLS, Role};
use crate::error::chain;

/// How a variant is called in the queue.
pub(super) fn variant(object: &Object) -> ObjectRef<DynamicObject> {
    named(object.namespace(), object.name())
}

/// The same by its name.
pub(super) fn named(namespace: &str, name: &str) -> ObjectRef<DynamicObject> {
    let resource = ApiResource::erase::<PackageVariant>(&());
    ObjectRef::new_with(name, resource).within(namespace)
}

fn set(object: &Object) -> ObjectRef<DynamicObject> {
    let resource = ApiResource::erase::<PackageVariantSet>(&());
    ObjectRef::new_with(object.name(), resource).within(object.namespace())
}

/// Whether a change concerns a variant. `None` is a change of anything.
fn concerns(touched: Option<&Touched>, variant: &Object) -> bool {
    let Some(touched) = touched else {
        return true;
    };
    if POOLS.iter().any(|(_, kind)| *kind == touched.kind) {
        return true;
    }
    if touched.namespace != variant.namespace() {
        return false;
    }
    let text = |at: &str| variant.value.pointer(at).and_then(Value::as_str);
    let injectors = variant
        .value
        .pointer("/spec/injectors")
        .and_then(Value::as_array);
    let mut names = injectors
        .into_iter()
        .flatten()
        .filter_map(|i| i["name"].as_str());
    match touched.kind.as_str() {
        "Repository" => {
            let name = Some(touched.name.as_str());
            text("/spec/upstream/repo") == name || text("/spec/downstream/repo") == name
        }
        // One that no injector names may still be the only one.
        "WorkloadCluster" => true,
        "PackageVariant" | "PackageVariantSet" => false,
        _ => names.any(|name| name == touched.name),
    }
}

impl Role {
    /// Passes every change on to who is concerned, until the end.
    pub(super) async fn listen(
        self: Arc<Self>,
        sets: mpsc::UnboundedSender<ObjectRef<DynamicObject>>,
    ) {
        let mut changes = self.cache.changes();
        let end = self.world.shutdown.clone();
        loop {
            let touched = tokio::select! {
                () = end.clone().wait() => return,
                change = changes.recv() => match change {
                    Ok(touched) => Some(touched),
                    // Some were missed: everybody is looked at.
                    Err(broadcast::error::RecvError::Lagged(_)) => None,
                    Err(broadcast::error::RecvError::Closed) => return,
                },
            };
            if let Err(error) = self.pass_on(touched.as_ref(), &sets).await {
                tracing::warn!(
                    error = chain(&error),
                    "a change is not passed on; the next look finds it"
                );
            }
        }
    }

    async fn pass_on(
        &self,
        touched: Option<&Touched>,
        sets: &mpsc::UnboundedSender<ObjectRef<DynamicObject>>,
    ) -> Result<(), crate::error::Error> {
        for object in self
            .variants()
            .await?
            .iter()
            .filter(|o| concerns(touched, o))
        {
            // A closed queue is the end of the program.
            let _ = self.wake.send(variant(object));
        }
        // A repository that came or went may have had what others need.
        if let Some(touched) = touched.filter(|t| t.kind == "Repository") {
            self.wake_linked(&touched.namespace);
        }
        let pools = touched.is_some_and(|t| POOLS.iter().any(|(_, kind)| *kind == t.kind));
        let own = touched.is_some_and(|t| t.kind == "PackageVariantSet");
        if pools || own {
            return Ok(());
        }
        let all = self
            .cache
            .all("config.porch.kpt.dev/v1alpha2", "PackageVariantSet", None);
        let here = |o: &&Object| touched.is_none_or(|t| t.namespace == o.namespace());
        for object in all.await?.iter().filter(here) {
            let _ = sets.send(set(object));
        }
        Ok(())
    }

    /// Wakes the variants that read from or write to a repository.
    pub(super) async fn wake_repository(
        &self,
        repository: &Object,
    ) -> Result<(), crate::error::Error> {
        let touched = Touched {
            kind: "Repository".to_owned(),
            namespace: repository.namespace().to_owned(),
            name: repository.name().to_owned(),
        };
        for object in self
            .variants()
            .await?
            .iter()
            .filter(|o| concerns(Some(&touched), o))
        {
            let _ = self.wake.send(variant(object));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object() -> Object {
        Object {
            value: json!({
                "metadata": { "name": "v", "namespace": "here" },
                "spec": {
                    "upstream": { "repo": "blueprints" }, "downstream": { "repo": "edge" },
                    "injectors": [{ "name": "settings" }],
                },
            }),
            source: None,
        }
    }

    fn touched(kind: &str, namespace: &str, name: &str) -> Touched {
        Touched {
            kind: kind.into(),
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    #[test]
    fn a_variant_is_woken_by_what_it_uses_and_by_nothing_else() {
        let woken =
            |kind, namespace, name| concerns(Some(&touched(kind, namespace, name)), &object());
        assert!(
            woken("IPPrefix", "elsewhere", "pool"),
            "pools are everybody's"
        );
        assert!(woken("Repository", "here", "edge"));
        assert!(woken("Repository", "here", "blueprints"));
        assert!(!woken("Repository", "here", "other"));
        assert!(!woken("Repository", "there", "edge"));
        assert!(woken("ConfigMap", "here", "settings"));
        assert!(!woken("ConfigMap", "here", "leader-election"));
        assert!(woken("WorkloadCluster", "here", "any"));
        assert!(
            !woken("PackageVariant", "here", "v"),
            "its own status wakes it not"
        );
    }
}
