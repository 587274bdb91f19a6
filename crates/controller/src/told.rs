//! A watch as a row of objects that are *in the store* when they are told.
//!
//! ```text
//!  watcher ─ reflect(writer) ─ told(store) ─► every object, each time it changes; at the end of a list all of them
//! ```
//!
//! Called by every role that has a queue behind a watch. Easy to get wrong: while a list is being read, what it brings is
//! not in the store yet, and a queue drops what it cannot find there. So objects of a list are told at its end, and with
//! them what was there before and is not any more.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::{Stream, StreamExt as _};
use kube::runtime::reflector::{Lookup, Store};
use kube::runtime::watcher::{self, Event};

/// Whether what is gone is told too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    Told,
    Not,
}

/// The objects of a watch that is reflected into this store.
pub(crate) fn told<K>(
    events: impl Stream<Item = watcher::Result<Event<K>>>,
    store: Store<K>,
    gone: Gone,
) -> impl Stream<Item = watcher::Result<K>>
where
    K: Lookup + Clone + 'static,
    K::DynamicType: Eq + std::hash::Hash + Clone,
{
    let mut before: Vec<Arc<K>> = Vec::new();
    events.flat_map(move |event| {
        let row = match event {
            Ok(Event::Init) => {
                before = store.state();
                Vec::new()
            }
            Ok(Event::InitApply(_)) => Vec::new(),
            Ok(Event::InitDone) => {
                let now = store.state();
                let mut row: Vec<_> = now.iter().map(|o| Ok(K::clone(o))).collect();
                if gone == Gone::Told {
                    let here: BTreeSet<_> = now.iter().map(|o| key(o.as_ref())).collect();
                    let left = before.iter().filter(|o| !here.contains(&key(o.as_ref())));
                    row.extend(left.map(|o| Ok(K::clone(o))));
                }
                before.clear();
                row
            }
            Ok(Event::Apply(object)) => vec![Ok(object)],
            Ok(Event::Delete(object)) if gone == Gone::Told => vec![Ok(object)],
            Ok(Event::Delete(_)) => Vec::new(),
            Err(error) => vec![Err(error)],
        };
        futures::stream::iter(row)
    })
}

fn key<K: Lookup>(object: &K) -> (Option<String>, Option<String>) {
    let own = |text: std::borrow::Cow<'_, str>| text.into_owned();
    (object.namespace().map(own), object.name().map(own))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::ObjectMeta;
    use kube::runtime::WatchStreamExt as _;
    use kube::runtime::reflector::store;

    use super::*;

    fn named(name: &str) -> ConfigMap {
        ConfigMap {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                namespace: Some("default".to_owned()),
                ..ObjectMeta::default()
            },
            ..ConfigMap::default()
        }
    }

    /// What is told, each with whether the store had it at that moment.
    fn run(events: Vec<Event<ConfigMap>>, gone: Gone) -> Vec<(String, bool)> {
        let (reader, writer) = store();
        let look: Store<ConfigMap> = reader.clone();
        let events = futures::stream::iter(events.into_iter().map(Ok)).reflect(writer);
        let seen = told(events, reader, gone).map(move |object| {
            let name = object.expect("no event is an error").metadata.name;
            let name = name.expect("each has a name");
            let stored = look.state();
            let there = stored
                .iter()
                .any(|o| o.metadata.name.as_ref() == Some(&name));
            (name, there)
        });
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.expect("a runtime without drivers always starts");
        let mut seen: Vec<_> = runtime.block_on(seen.collect());
        seen.sort();
        seen
    }

    fn there(names: &[&str]) -> Vec<(String, bool)> {
        names.iter().map(|n| ((*n).to_owned(), true)).collect()
    }

    #[test]
    fn what_a_list_brings_is_in_the_store_when_it_is_told() {
        let list = vec![
            Event::Init,
            Event::InitApply(named("a")),
            Event::InitApply(named("b")),
            Event::InitDone,
        ];
        assert_eq!(run(list, Gone::Not), there(&["a", "b"]));
    }

    #[test]
    fn a_list_that_never_ends_tells_nothing() {
        let list = vec![Event::Init, Event::InitApply(named("a"))];
        assert_eq!(run(list, Gone::Told), []);
    }

    #[test]
    fn what_went_while_the_watch_was_interrupted_is_told_where_that_is_asked() {
        let lists = || {
            vec![
                Event::Init,
                Event::InitApply(named("a")),
                Event::InitDone,
                Event::Init,
                Event::InitApply(named("b")),
                Event::InitDone,
            ]
        };
        let seen = [("a", false), ("a", true), ("b", true)];
        let seen = seen.map(|(n, there)| (n.to_owned(), there));
        // The first list tells a while it is there, the second that it went.
        assert_eq!(run(lists(), Gone::Told), seen);
        assert_eq!(run(lists(), Gone::Not), there(&["a", "b"]));
    }

    #[test]
    fn changes_are_told_as_they_come() {
        let events = || vec![Event::Apply(named("a")), Event::Delete(named("a"))];
        assert_eq!(run(events(), Gone::Not), there(&["a"]));
        assert_eq!(run(events(), Gone::Told).len(), 2);
    }
}
