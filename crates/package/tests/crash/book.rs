//! A book of one reservation. Its commit is one durable step in the order of events; how a real book
//! makes it so is tested where the book is.

use std::cell::Cell;

use mooring_book::Error;
use mooring_ipam::TxnId;

use crate::disk::Recorder;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Reserved,
    Committed,
    Expired,
}

/// The book.
#[derive(Debug)]
pub(crate) struct Book {
    txn: TxnId,
    state: Cell<State>,
}

impl Book {
    pub(crate) fn reserved(txn: TxnId) -> Self {
        let state = Cell::new(State::Reserved);
        Self { txn, state }
    }

    /// What another process finds after the crash.
    pub(crate) fn copy(&self) -> Self {
        let (txn, state) = (self.txn, self.state.clone());
        Self { txn, state }
    }

    pub(crate) fn commit(&self, disk: &Recorder, txn: TxnId) -> Result<(), Error> {
        assert_eq!(txn, self.txn);
        if self.state.get() != State::Reserved {
            return Err(Error::NotOpen(txn));
        }
        disk.step("commit the book").map_err(|e| Error::Unusable {
            path: "book".to_owned(),
            remedy: "wait for the power",
            source: e.into(),
        })?;
        self.state.set(State::Committed);
        Ok(())
    }

    pub(crate) fn expire(&self) {
        self.state.set(State::Expired);
    }

    pub(crate) fn is_committed(&self) -> bool {
        self.state.get() == State::Committed
    }
}
