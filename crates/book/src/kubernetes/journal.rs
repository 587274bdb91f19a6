//! How several objects change as one: an intent that is written whole, then carried out by whoever finds it.
//!
//! ```text
//!  read the journal (carry out what is in it) ─► plan ─► CAS the intent into it ─► steps ─► CAS it out
//!                                                            └ from here on it has happened
//! ```
//!
//! Each step names the version that it changes and does nothing where that is not there any more, so carrying an intent
//! out twice, or late by a process that was stopped, is harmless. Easy to get wrong: addresses need none of this. Their
//! POST decides; the journal is for commits, aborts, expiries and restores, which are few.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;
use mooring_api::kinds::mooring::label;
use mooring_ipam::TxnId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::form::Record;
use super::hands::{Hands, Mark, Taken};
use super::name;
use super::wire::{Written, version};
use crate::error::Error;
use crate::keep::{Open, PackageNote, REMEMBERED};
use crate::store::PackageRecord;

/// The key of a ConfigMap's only text.
const KEY: &str = "record";

/// How often a change of the journal is tried before others are said to be busy.
const ROUNDS: u32 = 64;

/// What the journal's ConfigMap says.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Page {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    intent: Option<Intent>,
    /// The transactions that were committed lately, oldest first.
    #[serde(default)]
    committed: Vec<TxnId>,
}

/// What is to be done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Intent {
    nonce: String,
    steps: Vec<Step>,
}

/// One step, with the version that it changes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Step {
    /// Takes a lease away.
    Drop(Mark),
    /// Puts a lease in place of another version of it, or where none is.
    Put { was: Option<Mark>, to: Box<Record> },
    /// Writes the record of a transaction.
    Open { was: Option<Version>, open: Open },
    /// Takes the record of a transaction away.
    Close { txn: TxnId, was: Version },
    /// Writes or forgets a package.
    Package {
        was: Option<Version>,
        note: PackageNote,
    },
}

/// One version of a ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Version {
    pub(super) uid: String,
    pub(super) version: u64,
}

/// The journal as it was read.
#[derive(Clone, Debug, Default)]
pub(super) struct Journal {
    page: Page,
    at: Option<Version>,
}

impl Journal {
    pub(super) fn was_committed(&self, txn: TxnId) -> bool {
        self.page.committed.contains(&txn)
    }
}

fn at(map: &ConfigMap) -> Version {
    Version {
        uid: map.metadata.uid.clone().unwrap_or_default(),
        version: version(&map.metadata),
    }
}

impl Hands {
    fn map<T: Serialize>(
        &self,
        name: &str,
        kind: &str,
        was: Option<&Version>,
        what: &T,
    ) -> ConfigMap {
        let text = serde_json::to_string(what).expect("records have string keys");
        ConfigMap {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                namespace: Some(self.wire.options.namespace.clone()),
                labels: Some(BTreeMap::from([(
                    label::RECORD.to_owned(),
                    kind.to_owned(),
                )])),
                uid: was.map(|was| was.uid.clone()),
                resource_version: was.map(|was| was.version.to_string()),
                ..ObjectMeta::default()
            },
            data: Some(BTreeMap::from([(KEY.to_owned(), text)])),
            ..ConfigMap::default()
        }
    }

    fn parse<T: DeserializeOwned>(&self, map: &ConfigMap) -> Result<T, Error> {
        let text = map.data.as_ref().and_then(|data| data.get(KEY));
        let name = map.metadata.name.as_deref().unwrap_or_default();
        let parsed = serde_json::from_str(text.map_or("", String::as_str));
        parsed.map_err(|e| {
            self.wire
                .damaged(format!("ConfigMap {name} cannot be read: {e}"))
        })
    }

    async fn record<T: DeserializeOwned>(&self, name: &str) -> Result<Option<(T, Version)>, Error> {
        let map = self.wire.get(&self.wire.records, name).await?;
        let map = map.as_ref();
        map.map(|map| Ok((self.parse(map)?, at(map)))).transpose()
    }

    async fn records<T: DeserializeOwned>(&self, kind: &str) -> Result<Vec<(T, Version)>, Error> {
        let labels = format!("{}={kind}", label::RECORD);
        let maps = self.wire.list(&self.wire.records, &labels).await?;
        let read = maps.iter().map(|map| Ok((self.parse(map)?, at(map))));
        read.collect()
    }

    /// The reserved transactions.
    pub(super) async fn open_records(&self) -> Result<Vec<(Open, Version)>, Error> {
        self.records("transaction").await
    }

    pub(super) async fn package_records(&self) -> Result<Vec<PackageRecord>, Error> {
        let all = self.records("package").await?;
        Ok(all.into_iter().map(|(record, _)| record).collect())
    }

    pub(super) async fn package_record(
        &self,
        cluster: &str,
        id: &str,
    ) -> Result<Option<(PackageRecord, Version)>, Error> {
        self.record(&name::of_package(cluster, id)).await
    }

    /// The journal, after what stood in it was carried out.
    pub(super) async fn journal(&self) -> Result<Journal, Error> {
        for _ in 0..ROUNDS {
            let found = self.record::<Page>(name::JOURNAL).await?;
            let Some((page, at)) = found else {
                return Ok(Journal::default());
            };
            let journal = Journal { page, at: Some(at) };
            if journal.page.intent.is_none() {
                return Ok(journal);
            }
            self.carry_out(&journal).await?;
        }
        Err(self.busy("the journal"))
    }

    /// Makes steps happen as one. [`Error::Overtaken`] where the journal is not what they were planned from. Gives the
    /// journal after it, and whether each step found what it was planned for.
    pub(super) async fn enter(
        &self,
        journal: &Journal,
        nonce: String,
        steps: Vec<Step>,
        committed: Option<TxnId>,
    ) -> Result<(Journal, bool), Error> {
        let mut page = journal.page.clone();
        page.committed.extend(committed);
        let old = page.committed.len().saturating_sub(REMEMBERED);
        page.committed.drain(..old);
        page.intent = Some(Intent { nonce, steps });
        let map = self.map(name::JOURNAL, "journal", journal.at.as_ref(), &page);
        let written = match journal.at {
            Some(_) => self.wire.replace(&self.wire.records, &map).await?,
            None => self.wire.create(&self.wire.records, &map).await?,
        };
        let at = match written {
            Written::Done(map) => at(&map),
            // Ours after all, where only the answer was lost.
            Written::Refused => match self.record::<Page>(name::JOURNAL).await? {
                Some((now, at)) if now.nonce() == page.nonce() => at,
                _ => return Err(self.overtaken()),
            },
        };
        let at = Some(at);
        let complete = self.carry_out(&Journal { page, at }).await?;
        Ok((self.journal().await?, complete))
    }

    pub(super) fn overtaken(&self) -> Error {
        Error::Overtaken {
            path: self.wire.path.clone(),
        }
    }

    /// Carries an intent out and takes it out of the journal. Gives whether each step found what it was planned for.
    async fn carry_out(&self, journal: &Journal) -> Result<bool, Error> {
        let Some(intent) = &journal.page.intent else {
            return Ok(true);
        };
        let mut complete = true;
        for step in &intent.steps {
            complete &= self.step(journal, step).await?;
        }
        let page = Page {
            intent: None,
            committed: journal.page.committed.clone(),
        };
        let map = self.map(name::JOURNAL, "journal", journal.at.as_ref(), &page);
        // Refused where another process has carried it out too.
        self.wire.replace(&self.wire.records, &map).await?;
        Ok(complete)
    }

    /// Whether the journal is still this one. Asked before something is made where nothing is: that has no version which
    /// would tell a process that was stopped that its time is over.
    async fn is_current(&self, journal: &Journal) -> Result<bool, Error> {
        let version = self
            .wire
            .version_of(&self.wire.records, name::JOURNAL)
            .await?;
        Ok(version == journal.at.as_ref().map(|at| at.version))
    }

    async fn step(&self, journal: &Journal, step: &Step) -> Result<bool, Error> {
        match step {
            Step::Drop(was) => self.remove(was).await,
            Step::Put { was: Some(was), to } => self.change(was, to).await,
            Step::Put { was: None, to } => {
                if !self.is_current(journal).await? {
                    return Ok(true);
                }
                match self.take(Record::clone(to)).await? {
                    Taken::Won(_) => Ok(true),
                    Taken::Lost(_) => Ok(false),
                }
            }
            Step::Open { was, open } => {
                let name = name::of_txn(open.id);
                self.write(journal, &name, "transaction", was.as_ref(), open)
                    .await
            }
            Step::Close { txn, was } => {
                let name = name::of_txn(*txn);
                let Version { uid, version } = was;
                let gone = self.wire.delete(&self.wire.records, &name, uid, *version);
                Ok(matches!(gone.await?, Written::Done(())))
            }
            Step::Package { was, note } => {
                let (cluster, id) = note.key();
                let name = name::of_package(cluster, id);
                match (note, was) {
                    (PackageNote::Note(record), was) => {
                        self.write(journal, &name, "package", was.as_ref(), record)
                            .await
                    }
                    (PackageNote::Forget { .. }, None) => Ok(true),
                    (PackageNote::Forget { .. }, Some(Version { uid, version })) => {
                        let gone = self.wire.delete(&self.wire.records, &name, uid, *version);
                        Ok(matches!(gone.await?, Written::Done(())))
                    }
                }
            }
        }
    }

    async fn write<T: Serialize + Sync>(
        &self,
        journal: &Journal,
        name: &str,
        kind: &str,
        was: Option<&Version>,
        what: &T,
    ) -> Result<bool, Error> {
        let map = self.map(name, kind, was, what);
        if was.is_none() && !self.is_current(journal).await? {
            return Ok(true);
        }
        let written = match was {
            Some(_) => self.wire.replace(&self.wire.records, &map).await?,
            None => self.wire.create(&self.wire.records, &map).await?,
        };
        if let Written::Done(_) = written {
            return Ok(true);
        }
        // Refused, and already what it should be: this was done before.
        let now = self.wire.get(&self.wire.records, name).await?;
        Ok(now.is_some_and(|now| now.data == map.data))
    }

    /// Writes the record of a transaction that takes nothing over: it needs no intent, since it is one object.
    pub(super) async fn open_alone(&self, open: &Open) -> Result<(), Error> {
        let map = self.map(&name::of_txn(open.id), "transaction", None, open);
        match self.wire.create(&self.wire.records, &map).await? {
            Written::Done(_) => Ok(()),
            Written::Refused => {
                let name = name::of_txn(open.id);
                let now = self.wire.get(&self.wire.records, &name).await?;
                let ours = now.is_some_and(|now| now.data == map.data);
                ours.then_some(()).ok_or_else(|| self.overtaken())
            }
        }
    }
}

impl Page {
    fn nonce(&self) -> Option<&str> {
        self.intent.as_ref().map(|intent| intent.nonce.as_str())
    }
}
