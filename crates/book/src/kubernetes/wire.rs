//! Requests: each with a timeout, tried again a bounded number of times, and no write once another process leads.
//!
//! A request whose answer was lost is simply sent again. That is safe because every write is conditional: a POST finds its
//! own nonce under the name, a PUT and a DELETE carry uid and resourceVersion. Easy to get wrong: callers block their
//! thread, so they belong on a thread that may be blocked (`spawn_blocking`), never on a task of a runtime.

use std::fmt::Debug;
use std::future::Future;
use std::sync::mpsc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, PostParams, Preconditions};
use kube::{Api, Client, Resource, ResourceExt as _};
use mooring_api::kinds::mooring::{IPLease, PrefixLedger};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::{Builder, Runtime};

use super::KubeOptions;
use crate::error::Error;

/// How often a request is sent before its failure is told.
const TRIES: u32 = 6;

/// How long to wait after the first failure; twice as long after each further one.
const PAUSE: Duration = Duration::from_millis(50);

/// How many objects come with one answer.
const PAGE: u32 = 500;

/// The API server, and the thread that talks to it.
pub(super) struct Wire {
    runtime: Option<Runtime>,
    pub(super) leases: Api<IPLease>,
    pub(super) ledgers: Api<PrefixLedger>,
    pub(super) records: Api<ConfigMap>,
    pub(super) path: String,
    pub(super) options: KubeOptions,
}

/// What became of a conditional write.
pub(super) enum Written<K> {
    Done(K),
    /// Something else is there (or nothing is): its condition did not hold.
    Refused,
}

impl Drop for Wire {
    fn drop(&mut self) {
        // Dropped on a task of another runtime, a runtime that waits for its threads would panic.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Wire {
    pub(super) fn open(mut config: kube::Config, options: KubeOptions) -> Result<Self, Error> {
        let path = config.cluster_url.to_string();
        let path = path.trim_end_matches('/').to_owned();
        // Tried again here, where it is known what a second try means.
        config.default_retry = false;
        config.connect_timeout = Some(options.request);
        let unusable = |source: Box<dyn std::error::Error + Send + Sync>| Error::Unusable {
            path: path.clone(),
            remedy: "look at the kubeconfig and its certificates",
            source,
        };
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("moor-book")
            .enable_all()
            .build()
            .map_err(|e| unusable(e.into()))?;
        let client = {
            let _inside = runtime.enter();
            Client::try_from(config).map_err(|e| unusable(e.into()))?
        };
        Ok(Self {
            leases: Api::all(client.clone()),
            ledgers: Api::all(client.clone()),
            records: Api::namespaced(client, &options.namespace),
            runtime: Some(runtime),
            path,
            options,
        })
    }

    /// Lets a task run for as long as the store lives.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.runtime {
            runtime.spawn(task);
        }
    }

    /// Runs something to its end while this thread waits.
    pub(super) fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let (told, hear) = mpsc::sync_channel(1);
        self.spawn(async move {
            let _ = told.send(work.await);
        });
        hear.recv()
            .expect("a request has timeouts and does not panic")
    }

    /// Whether this process may still write.
    pub(super) fn may_write(&self) -> Result<(), Error> {
        let path = || self.path.clone();
        match &self.options.fence {
            Some(fence) if !fence() => Err(Error::Fenced { path: path() }),
            _ => Ok(()),
        }
    }

    pub(super) fn damaged(&self, why: impl Into<String>) -> Error {
        Error::Unusable {
            path: self.path.clone(),
            remedy: "look at the object; what no store wrote must go",
            source: why.into().into(),
        }
    }

    /// Sends a request until it is answered, `TRIES` times at most. What the server refuses comes back as it is.
    async fn ask<T, F>(
        &self,
        doing: &str,
        writes: bool,
        mut request: impl FnMut() -> F,
    ) -> Result<Result<T, kube::core::Status>, Error>
    where
        F: Future<Output = kube::Result<T>>,
    {
        let mut pause = PAUSE;
        for left in (0..TRIES).rev() {
            if writes {
                self.may_write()?;
            }
            let outcome = tokio::time::timeout(self.options.request, request()).await;
            let source: Box<dyn std::error::Error + Send + Sync> = match outcome {
                Ok(Ok(answer)) => return Ok(Ok(answer)),
                Ok(Err(kube::Error::Api(status))) if status.code != 429 && status.code < 500 => {
                    return Ok(Err(*status));
                }
                Ok(Err(error)) => Box::new(error),
                Err(elapsed) => Box::new(elapsed),
            };
            if left == 0 {
                return Err(Error::Unreachable {
                    path: self.path.clone(),
                    doing: doing.to_owned(),
                    source,
                });
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        unreachable!("the last try returns")
    }

    fn refused(&self, doing: &str, status: kube::core::Status) -> Error {
        let remedy = match status.code {
            401 | 403 => {
                "the account needs rights on ipleases, prefixledgers and the store's ConfigMaps"
            }
            404 => "install the CRDs of mooring.dev, and make the store's namespace",
            _ => "the API server refused what the store wrote",
        };
        Error::Unusable {
            path: self.path.clone(),
            remedy,
            source: format!("cannot {doing}: {}", status.message).into(),
        }
    }

    /// One object; None where there is none.
    pub(super) async fn get<K>(&self, api: &Api<K>, name: &str) -> Result<Option<K>, Error>
    where
        K: Clone + DeserializeOwned + Debug,
    {
        let doing = format!("read {name}");
        match self.ask(&doing, false, || api.get(name)).await? {
            Ok(object) => Ok(Some(object)),
            Err(status) if status.code == 404 => Ok(None),
            Err(status) => Err(self.refused(&doing, status)),
        }
    }

    /// The version of an object without the object; None where there is none.
    pub(super) async fn version_of<K>(&self, api: &Api<K>, name: &str) -> Result<Option<u64>, Error>
    where
        K: Clone + DeserializeOwned + Debug,
    {
        let doing = format!("read {name}");
        match self.ask(&doing, false, || api.get_metadata(name)).await? {
            Ok(object) => Ok(Some(version(&object.metadata))),
            Err(status) if status.code == 404 => Ok(None),
            Err(status) => Err(self.refused(&doing, status)),
        }
    }

    /// Every object that fits.
    pub(super) async fn list<K>(&self, api: &Api<K>, labels: &str) -> Result<Vec<K>, Error>
    where
        K: Clone + DeserializeOwned + Debug,
    {
        let mut found = Vec::new();
        let keep = |page: Page<K>| match page {
            Page::Of(items) => found.extend(items),
            Page::Again => found.clear(),
        };
        self.pages(api, labels, keep).await?;
        Ok(found)
    }

    /// The same page by page, for whoever does not want to have all of them at once.
    pub(super) async fn pages<K>(
        &self,
        api: &Api<K>,
        labels: &str,
        mut each: impl FnMut(Page<K>),
    ) -> Result<(), Error>
    where
        K: Clone + DeserializeOwned + Debug,
    {
        let doing = format!("list what has {labels:?}");
        let first = || ListParams::default().labels(labels).limit(PAGE);
        let mut params = first();
        loop {
            let page = self.ask(&doing, false, || api.list(&params)).await?;
            let page = match page {
                Ok(page) => page,
                // The list went on for too long: from the beginning.
                Err(status) if status.code == 410 => {
                    each(Page::Again);
                    params = first();
                    continue;
                }
                Err(status) => return Err(self.refused(&doing, status)),
            };
            let more = page.metadata.continue_.filter(|token| !token.is_empty());
            each(Page::Of(page.items));
            match more {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(()),
            }
        }
    }

    /// Makes an object. Where something has its name already, it is refused.
    pub(super) async fn create<K>(&self, api: &Api<K>, object: &K) -> Result<Written<K>, Error>
    where
        K: Resource + Clone + DeserializeOwned + Debug + Serialize,
    {
        let doing = format!("make {}", object.name_any());
        let params = PostParams::default();
        let outcome = self
            .ask(&doing, true, || api.create(&params, object))
            .await?;
        self.written(&doing, outcome)
    }

    /// Puts an object in place of the version that it says it came from.
    pub(super) async fn replace<K>(&self, api: &Api<K>, object: &K) -> Result<Written<K>, Error>
    where
        K: Resource + Clone + DeserializeOwned + Debug + Serialize,
    {
        let name = object.name_any();
        let doing = format!("change {name}");
        let params = PostParams::default();
        let outcome = self
            .ask(&doing, true, || api.replace(&name, &params, object))
            .await?;
        self.written(&doing, outcome)
    }

    /// Deletes exactly this version of an object. Absent is done.
    pub(super) async fn delete<K>(
        &self,
        api: &Api<K>,
        name: &str,
        uid: &str,
        version: u64,
    ) -> Result<Written<()>, Error>
    where
        K: Clone + DeserializeOwned + Debug,
    {
        let doing = format!("delete {name}");
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(uid.to_owned()),
                resource_version: Some(version.to_string()),
            }),
            ..DeleteParams::background()
        };
        let outcome = self.ask(&doing, true, || api.delete(name, &params)).await?;
        match outcome {
            Err(status) if status.code == 404 => Ok(Written::Done(())),
            outcome => self.written(&doing, outcome.map(|_| ())),
        }
    }

    fn written<T>(
        &self,
        doing: &str,
        outcome: Result<T, kube::core::Status>,
    ) -> Result<Written<T>, Error> {
        match outcome {
            Ok(object) => Ok(Written::Done(object)),
            Err(status) if status.code == 409 => Ok(Written::Refused),
            // Gone while it was to be changed.
            Err(status) if status.code == 404 && doing.starts_with("change") => {
                Ok(Written::Refused)
            }
            Err(status) => Err(self.refused(doing, status)),
        }
    }
}

/// A part of a list.
pub(super) enum Page<K> {
    /// The next objects.
    Of(Vec<K>),
    /// The list begins anew: forget what came so far.
    Again,
}

/// The version of an object as a number: they rise with every write to its kind.
pub(super) fn version(metadata: &kube::api::ObjectMeta) -> u64 {
    let text = metadata.resource_version.as_deref();
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}
