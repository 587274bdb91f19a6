//! How full every prefix and index is, from the book's own view. No request.

use std::collections::BTreeMap;
use std::sync::Arc;

use mooring_ipam::{InstanceKey, State, Thing, Usage};

use super::super::known::Known;
use super::super::view::View;
use crate::error::Error;

/// What pools are judged by.
pub(super) struct Gathered {
    pub(super) known: Arc<Known>,
    /// Of every instance, prefix by prefix.
    pub(super) usage: BTreeMap<InstanceKey, Vec<Usage>>,
    /// Of every VLANIndex: held, and reserved or resting.
    pub(super) vlans: BTreeMap<InstanceKey, (u128, u128)>,
}

pub(super) async fn gather(view: &Arc<View>) -> Result<Gathered, Error> {
    let (book, known, now) = (Arc::clone(&view.book), view.known(), view.world.now());
    let read = tokio::task::spawn_blocking(move || {
        let mut usage = BTreeMap::new();
        for key in known.native.instances.keys() {
            book.with_table(key, &mut |table| {
                usage.insert(key.clone(), known.native.usage(table, now));
            })?;
        }
        let mut vlans = BTreeMap::new();
        for key in &known.indices {
            book.with_table(key, &mut |table| {
                let leases = table.leases();
                let ids = leases.filter(|l| matches!(l.thing, Thing::Vlan(_)));
                let count = ids.fold((0, 0), |(held, passing), lease| match lease.state {
                    State::Held => (held + 1, passing),
                    state if state.is_live(now) => (held, passing + 1),
                    _ => (held, passing),
                });
                vlans.insert(key.clone(), count);
            })?;
        }
        Ok::<_, mooring_book::Error>((known, usage, vlans))
    });
    let (known, usage, vlans) = read.await.map_err(|e| Error::Other(e.to_string()))??;
    Ok(Gathered {
        known,
        usage,
        vlans,
    })
}
