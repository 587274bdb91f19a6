//! A transaction against a book that is not there yet: drafted in memory, and told to the file once it is reserved.
//!
//! What it did is remembered and done again on the new file. That is the same only while the file is empty; otherwise
//! another run was faster, and the draft is refused.

use mooring_api::{Span, Time};
use mooring_book::{Error, Filter, Outcome, PackageRecord, Store, Txn};
use mooring_ipam::{Candidate, Holder, InstanceKey, Lease, Table, Thing, TxnId};

use super::Book;

/// The caller's side of it.
pub(super) struct Draft<'a> {
    book: &'a Book,
    memory: Box<dyn Txn + 'a>,
    done: Vec<Act>,
}

/// Something that changes a book.
enum Act {
    Take(InstanceKey, Candidate, Holder),
    Release(InstanceKey, Thing, Span),
    Note(PackageRecord),
    Forget(String, String),
}

impl<'a> Draft<'a> {
    pub(super) fn begin(book: &'a Book, now: Time) -> Result<Self, Error> {
        Ok(Self {
            book,
            memory: book.nothing.begin(now)?,
            done: Vec::new(),
        })
    }
}

/// Does everything again; whether all of it came to the same.
fn repeat(txn: &mut dyn Txn, acts: Vec<Act>) -> Result<bool, Error> {
    let mut same = true;
    for act in acts {
        match act {
            Act::Take(instance, candidate, holder) => {
                let outcome = txn.try_take(&instance, &candidate, &holder)?;
                same &= matches!(outcome, Outcome::Won(_));
            }
            Act::Release(instance, thing, rest) => txn.release(&instance, &thing, rest)?,
            Act::Note(record) => txn.note_package(record)?,
            Act::Forget(cluster, id) => txn.forget_package(&cluster, &id)?,
        }
    }
    Ok(same)
}

/// Whether nobody has told this book anything.
fn is_empty(store: &dyn Store) -> Result<bool, Error> {
    let untold = store.packages()?.is_empty() && store.pending()?.is_empty();
    Ok(untold && store.leases(&Filter::default())?.is_empty())
}

impl Txn for Draft<'_> {
    fn id(&self) -> TxnId {
        self.memory.id()
    }

    fn now(&self) -> Time {
        self.memory.now()
    }

    fn with_table(
        &self,
        instance: &InstanceKey,
        look: &mut dyn FnMut(&Table),
    ) -> Result<(), Error> {
        self.memory.with_table(instance, look)
    }

    fn held_by(&self, instance: &InstanceKey, holder: &Holder) -> Result<Vec<Lease>, Error> {
        self.memory.held_by(instance, holder)
    }

    fn held_by_package(&self, cluster: &str, package: &str) -> Result<Vec<Lease>, Error> {
        self.memory.held_by_package(cluster, package)
    }

    fn try_take(
        &mut self,
        instance: &InstanceKey,
        candidate: &Candidate,
        holder: &Holder,
    ) -> Result<Outcome, Error> {
        let outcome = self.memory.try_take(instance, candidate, holder)?;
        if matches!(outcome, Outcome::Won(_)) {
            let act = Act::Take(instance.clone(), *candidate, holder.clone());
            self.done.push(act);
        }
        Ok(outcome)
    }

    fn release(
        &mut self,
        instance: &InstanceKey,
        thing: &Thing,
        cool_down: Span,
    ) -> Result<(), Error> {
        self.memory.release(instance, thing, cool_down)?;
        let act = Act::Release(instance.clone(), *thing, cool_down);
        self.done.push(act);
        Ok(())
    }

    fn note_package(&mut self, record: PackageRecord) -> Result<(), Error> {
        self.memory.note_package(record.clone())?;
        self.done.push(Act::Note(record));
        Ok(())
    }

    fn forget_package(&mut self, cluster: &str, id: &str) -> Result<(), Error> {
        self.memory.forget_package(cluster, id)?;
        self.done
            .push(Act::Forget(cluster.to_owned(), id.to_owned()));
        Ok(())
    }

    fn package(&self, cluster: &str, id: &str) -> Result<Option<PackageRecord>, Error> {
        self.memory.package(cluster, id)
    }

    fn is_unchanged(&self) -> bool {
        self.memory.is_unchanged()
    }

    fn reserve(self: Box<Self>, ttl: Span) -> Result<TxnId, Error> {
        let Self { book, memory, done } = *self;
        let now = memory.now();
        drop(memory);
        let file = book.file()?;
        let mut txn = file.begin(now)?;
        let first = is_empty(file)? && repeat(txn.as_mut(), done)?;
        if !first {
            book.overtaken.set(true);
            return Err(Error::Busy {
                path: book.path.display().to_string(),
                holder: None,
            });
        }
        txn.reserve(ttl)
    }
}
