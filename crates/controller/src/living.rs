//! Living with others: what is ours where another controller serves the same kind, and what the installed definitions drop.
//!
//! ```text
//!  another controller seen? ── no ──► every object is ours          (--manage all: always; labelled: never)
//!        └ yes ─► only those with the label mooring.dev/managed: "true"; each other one gets one Event
//! ```
//!
//! Every role asks [`Living::is_ours`] before it acts on an object of a foreign kind. Easy to get wrong: evidence may come
//! late (a finalizer on an object, a controller that is installed after us), so the question is asked at every pass, and the
//! evidence is looked for as long as the program runs.

mod dropped;
mod others;
mod schema;

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::ObjectMeta;
use mooring_api::label;

use crate::args::{Manage, Role};
use crate::error::{Error, chain};
use crate::world::World;

#[cfg(test)]
pub(crate) use dropped::LAST_APPLIED;
pub(crate) use dropped::lost;
pub(crate) use schema::{Need, Schemas};

/// Between two looks for others.
const AGAIN: Duration = Duration::from_secs(15);

/// What is known of the others.
#[derive(Debug)]
pub(crate) struct Living {
    manage: Manage,
    /// Whose kinds.
    role: Role,
    seen: Mutex<Option<String>>,
    told: Mutex<BTreeSet<String>>,
    /// What the installed definitions have.
    pub(crate) schemas: Schemas,
}

impl Living {
    /// Looks for other controllers of this role's kinds, and compares the installed definitions with what is needed.
    pub(crate) async fn look(world: &World, needs: &'static [Need]) -> Result<Self, Error> {
        Self::look_for(world, world.role, needs).await
    }

    /// The same for the kinds of another role, where this one reads them too.
    pub(crate) async fn look_for(
        world: &World,
        role: Role,
        needs: &'static [Need],
    ) -> Result<Self, Error> {
        let seen = match world.args.manage {
            Manage::Auto => others::seen(world, role).await?,
            Manage::All | Manage::Labelled => None,
        };
        if let Some(who) = &seen {
            tracing::info!(
                who,
                role = role.name(),
                "another controller is seen; only labelled objects are ours"
            );
        }
        let schemas = Schemas::compare(&world.client, needs).await?;
        Ok(Self::new(world.args.manage, role, seen, schemas))
    }

    fn new(manage: Manage, role: Role, seen: Option<String>, schemas: Schemas) -> Self {
        Self {
            manage,
            role,
            seen: Mutex::new(seen),
            told: Mutex::default(),
            schemas,
        }
    }

    /// Whether an object is ours to act on.
    pub(crate) fn is_ours(&self, metadata: &ObjectMeta) -> bool {
        let labels = metadata.labels.as_ref();
        let labelled = labels.and_then(|l| l.get(label::MANAGED));
        let labelled = labelled.is_some_and(|value| value == "true");
        match self.manage {
            Manage::All => true,
            Manage::Labelled => labelled,
            Manage::Auto => labelled || self.other().is_none(),
        }
    }

    /// Who else serves the kinds, where somebody is seen.
    pub(crate) fn other(&self) -> Option<String> {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Takes note of a finalizer: one of another controller says that it is there. True where that is news.
    pub(crate) fn notice(&self, metadata: &ObjectMeta) -> bool {
        if self.manage != Manage::Auto || metadata.deletion_timestamp.is_some() {
            return false;
        }
        let mut finalizers = metadata.finalizers.iter().flatten();
        let Some(who) = finalizers.find_map(|f| others::by_finalizer(f)) else {
            return false;
        };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.is_some() {
            return false;
        }
        tracing::info!(
            who,
            "another controller is seen; only labelled objects are ours"
        );
        *seen = Some(who.to_owned());
        true
    }

    /// Looks for others that come later. Returns when there is one; never where nobody needs to look.
    pub(crate) async fn other_comes(&self, world: &World) {
        loop {
            tokio::time::sleep(AGAIN).await;
            if self.manage != Manage::Auto || self.other().is_some() {
                return std::future::pending().await;
            }
            match others::seen(world, self.role).await {
                Ok(None) => {}
                Ok(Some(who)) => {
                    tracing::info!(
                        who,
                        "another controller has come; only labelled objects are ours"
                    );
                    let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
                    *seen = Some(who);
                    return;
                }
                Err(error) => tracing::debug!(error = chain(&error), "cannot look for others"),
            }
        }
    }

    /// Says on an object, once, that it is not ours and how it would be.
    pub(crate) async fn tell_ignored(&self, world: &World, on: &ObjectReference) {
        let because = match self.other() {
            Some(who) => format!("{who} serves this kind here"),
            None => "only labelled objects are managed".to_owned(),
        };
        let note = format!(
            "Mooring leaves this object alone: {because}. Label it {}=true to hand it to Mooring.",
            label::MANAGED
        );
        self.tell_once(world, on, "NotManaged", &note).await;
    }

    /// Says on every object of a definition that lacks fields, once, which they are and what to write instead.
    pub(crate) async fn tell_missing(&self, world: &World, definition: &str, on: &ObjectReference) {
        let fields = self.schemas.missing(definition);
        let fields: Vec<&str> = fields.filter(|f| f.starts_with("spec.")).collect();
        if fields.is_empty() {
            return;
        }
        let note = format!(
            "The installed definition {definition} lacks {}: the API server drops them. Write their annotation twins under mooring.dev/.",
            fields.join(", ")
        );
        self.tell_once(world, on, "FieldsMissing", &note).await;
    }

    async fn tell_once(&self, world: &World, on: &ObjectReference, reason: &str, note: &str) {
        let key = format!("{}/{reason}", on.uid.as_deref().unwrap_or_default());
        let lock = || self.told.lock().unwrap_or_else(PoisonError::into_inner);
        // Asked before it is marked: who does not lead leaves it to who does.
        if world.fence().is_ok() && lock().insert(key) {
            world.tell(on, false, reason, note).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labelled(value: &str) -> ObjectMeta {
        let labels = [(label::MANAGED.to_owned(), value.to_owned())];
        ObjectMeta {
            labels: Some(labels.into()),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn the_label_is_needed_only_where_another_controller_is_seen() {
        let bare = ObjectMeta::default();
        let living = |manage, seen: Option<&str>| {
            Living::new(
                manage,
                Role::Ipam,
                seen.map(str::to_owned),
                Schemas::default(),
            )
        };
        for (manage, seen, expected) in [
            (Manage::Auto, None, (true, true)),
            (Manage::Auto, Some("x"), (false, true)),
            (Manage::All, Some("x"), (true, true)),
            (Manage::Labelled, None, (false, true)),
        ] {
            let living = living(manage, seen);
            let got = (living.is_ours(&bare), living.is_ours(&labelled("true")));
            assert_eq!(got, expected, "{manage:?} {seen:?}");
        }
        assert!(!living(Manage::Auto, Some("x")).is_ours(&labelled("false")));
    }

    #[test]
    fn a_finalizer_of_another_controller_is_evidence() {
        let living = Living::new(Manage::Auto, Role::Ipam, None, Schemas::default());
        let mut metadata = ObjectMeta {
            finalizers: Some(vec!["example.org/other".to_owned()]),
            ..ObjectMeta::default()
        };
        assert!(!living.notice(&metadata));
        metadata.finalizers = Some(vec!["ipam.nephio.org/finalizer".to_owned()]);
        assert!(living.notice(&metadata));
        assert!(!living.notice(&metadata), "only once");
        assert!(!living.is_ours(&metadata));
    }
}
