//! The two watches that feed the index, for as long as the store lives.
//!
//! Easy to get wrong: a watch that breaks lists again, and what went in between is on no event. The index compares each
//! complete list with what it knew when the list began.

use std::pin::pin;
use std::sync::{Arc, Weak};

use futures::StreamExt as _;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use mooring_api::kinds::mooring::{IPLease, PrefixLedger};

use super::hands::Hands;
use super::index::{Index, Known, KnownLedger, Listed};

/// How many objects come with one answer.
const PAGE: u32 = 500;

/// Starts both. They end with the store.
pub(super) fn start(hands: &Arc<Hands>) {
    let config = || watcher::Config::default().page_size(PAGE);
    let leases = watcher(hands.wire.leases.clone(), config()).default_backoff();
    let heard = Arc::downgrade(hands);
    hands.wire.spawn(async move {
        let mut events = pin!(leases);
        while let Some(event) = events.next().await {
            if !hear(&heard, event, lease) {
                break;
            }
        }
    });
    let ledgers = watcher(hands.wire.ledgers.clone(), config()).default_backoff();
    let heard = Arc::downgrade(hands);
    hands.wire.spawn(async move {
        let mut events = pin!(ledgers);
        while let Some(event) = events.next().await {
            if !hear(&heard, event, ledger) {
                break;
            }
        }
    });
}

/// Passes an event on. False when nobody is left to hear it.
fn hear<K>(
    heard: &Weak<Hands>,
    event: Result<Event<K>, watcher::Error>,
    learn: fn(&mut Index, Event<K>),
) -> bool {
    let Some(hands) = heard.upgrade() else {
        return false;
    };
    match event {
        Ok(event) => hands.learn(|index| learn(index, event)),
        Err(error) => hands.troubled(Some(error.to_string())),
    }
    true
}

fn lease(index: &mut Index, event: Event<IPLease>) {
    match event {
        Event::Init => index.list_begins(Listed::Leases),
        Event::InitDone => index.list_ends(Listed::Leases),
        Event::Delete(object) => index.lost(&object),
        Event::Apply(object) | Event::InitApply(object) => {
            if let Some(known) = Known::of(&object) {
                index.listed(Listed::Leases, &known.name);
                index.learn(known);
            }
        }
    }
}

fn ledger(index: &mut Index, event: Event<PrefixLedger>) {
    let name = |object: &PrefixLedger| object.metadata.name.clone().unwrap_or_default();
    match event {
        Event::Init => index.list_begins(Listed::Ledgers),
        Event::InitDone => index.list_ends(Listed::Ledgers),
        Event::Delete(object) => index.lost_ledger(&name(&object)),
        Event::Apply(object) | Event::InitApply(object) => {
            index.listed(Listed::Ledgers, &name(&object));
            index.learn_ledger(KnownLedger::of(object));
        }
    }
}
