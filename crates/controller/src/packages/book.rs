//! The address book of this role: one transaction at a time, whoever asks, and never while somebody waits for Git.

use std::sync::{Arc, Mutex, PoisonError};

use mooring_book::{KubeStore, Store};
use mooring_package::revision::addressed::Desk;

/// The book. Cheap to clone.
#[derive(Clone)]
pub(super) struct Book {
    store: Arc<KubeStore>,
    turn: Arc<Mutex<()>>,
}

impl Book {
    pub(super) fn new(store: Arc<KubeStore>) -> Self {
        Self {
            store,
            turn: Arc::default(),
        }
    }

    /// Uses the book. Blocks: never on a thread of the runtime, and never with a push inside.
    pub(super) fn with<T>(&self, act: impl FnOnce(&KubeStore) -> T) -> T {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        act(&self.store)
    }
}

impl Desk for &Book {
    fn with<T>(
        &self,
        act: &mut dyn FnMut(&dyn Store) -> Result<T, mooring_package::Error>,
    ) -> Result<T, mooring_package::Error> {
        Book::with(self, |store| act(store))
    }
}
