//! An API server of the testkit, sixteen clients of it, and what it says about itself.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use kube::api::{DeleteParams, ListParams, PostParams, Request};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use mooring_testkit::ControlPlane;
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::shell::root;

/// How many ask at once.
pub(super) const CLIENTS: usize = 16;

/// Resource and verb to how many requests were answered with success.
pub(super) type Writes = BTreeMap<(String, String), u64>;

pub(super) struct Server {
    pub(super) plane: ControlPlane,
    runtime: Runtime,
    /// Each with connections of its own.
    clients: Vec<Client>,
}

impl Server {
    /// A fresh one with our kinds.
    pub(super) fn start() -> Result<Self> {
        let plane = ControlPlane::start().context("there is no API server to measure")?;
        plane.install_crds(&root().join("deploy/crds"));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        let file = Kubeconfig::read_from(plane.kubeconfig())?;
        let mut clients = Vec::new();
        for _ in 0..CLIENTS {
            let options = KubeConfigOptions::default();
            let config = Config::from_custom_kubeconfig(file.clone(), &options);
            let _inside = runtime.enter();
            clients.push(Client::try_from(runtime.block_on(config)?)?);
        }
        Ok(Self {
            plane,
            runtime,
            clients,
        })
    }

    /// Applies YAML as a person does.
    pub(super) fn apply(&self, yaml: &str) {
        let args = ["apply", "--server-side", "-f", "-"];
        self.plane.kubectl_stdin(&args, yaml).ok();
    }

    /// Creates objects under the path of their list, sixteen clients with one request at a time each. Gives how long
    /// that took.
    pub(super) fn post_all(&self, list: &str, objects: Vec<Value>) -> Result<Duration> {
        let mut shares: Vec<Vec<Vec<u8>>> = vec![Vec::new(); CLIENTS];
        for (nth, object) in objects.into_iter().enumerate() {
            shares[nth % CLIENTS].push(object.to_string().into_bytes());
        }
        let list = Request::new(list);
        let began = Instant::now();
        let mut tasks = Vec::new();
        for (client, share) in self.clients.iter().zip(shares) {
            let (client, list) = (client.clone(), list.clone());
            tasks.push(self.runtime.spawn(async move {
                for body in share {
                    let request = list.create(&PostParams::default(), body)?;
                    client.request::<Value>(request).await?;
                }
                anyhow::Ok(())
            }));
        }
        for task in tasks {
            self.runtime.block_on(task)??;
        }
        Ok(began.elapsed())
    }

    /// The items of a list.
    pub(super) fn list(&self, list: &str) -> Result<Vec<Value>> {
        let request = Request::new(list).list(&ListParams::default())?;
        let mut answer: Value = self
            .runtime
            .block_on(self.clients[0].request(request))
            .with_context(|| format!("cannot list {list}"))?;
        match answer["items"].take() {
            Value::Array(items) => Ok(items),
            _ => bail!("{list} is no list"),
        }
    }

    /// Deletes everything of a list.
    pub(super) fn clear(&self, list: &str) -> Result<()> {
        let (one, all) = (DeleteParams::default(), ListParams::default());
        let request = Request::new(list).delete_collection(&one, &all)?;
        let _: Value = self
            .runtime
            .block_on(self.clients[0].request(request))
            .with_context(|| format!("cannot clear {list}"))?;
        Ok(())
    }

    /// The writes that it has answered with success so far, by its own count.
    pub(super) fn writes(&self) -> Writes {
        let said = self.plane.kubectl(&["get", "--raw", "/metrics"]);
        counted(said.ok())
    }
}

/// What came between two counts.
pub(super) fn since(before: &Writes, after: &Writes) -> Writes {
    let new = |key: &(String, String), count: u64| count - before.get(key).copied().unwrap_or(0);
    let all = after
        .iter()
        .map(|(key, count)| (key.clone(), new(key, *count)));
    all.filter(|(_, count)| *count > 0).collect()
}

/// The sum of a resource's writes.
pub(super) fn of(writes: &Writes, resource: &str) -> u64 {
    let ours = writes.iter().filter(|((r, _), _)| r == resource);
    ours.map(|(_, count)| count).sum()
}

fn counted(metrics: &str) -> Writes {
    let mut counts = Writes::new();
    for line in metrics.lines() {
        let Some(labels) = line.strip_prefix("apiserver_request_total{") else {
            continue;
        };
        let label = |name: &str| {
            let (_, rest) = labels.split_once(&format!("{name}=\""))?;
            rest.split('"').next()
        };
        let (Some(code), Some(resource), Some(verb)) =
            (label("code"), label("resource"), label("verb"))
        else {
            continue;
        };
        let writes = [
            "POST",
            "PUT",
            "PATCH",
            "APPLY",
            "DELETE",
            "DELETECOLLECTION",
        ];
        let count = line.rsplit(' ').next().and_then(|n| n.parse::<u64>().ok());
        if let (true, true, Some(count)) = (code.starts_with('2'), writes.contains(&verb), count) {
            *counts
                .entry((resource.to_owned(), verb.to_owned()))
                .or_default() += count;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_writes_that_were_done_are_counted() {
        let text = "\
# TYPE apiserver_request_total counter
apiserver_request_total{code=\"201\",group=\"mooring.dev\",resource=\"ipleases\",verb=\"POST\"} 7
apiserver_request_total{code=\"409\",group=\"mooring.dev\",resource=\"ipleases\",verb=\"POST\"} 3
apiserver_request_total{code=\"200\",group=\"mooring.dev\",resource=\"ipleases\",verb=\"LIST\"} 9
apiserver_request_total{code=\"200\",group=\"mooring.dev\",resource=\"ipleases\",subresource=\"status\",verb=\"APPLY\"} 2
";
        let counts = counted(text);
        assert_eq!(of(&counts, "ipleases"), 9);
        assert_eq!(of(&since(&counts, &counts), "ipleases"), 0);
        assert_eq!(counts.len(), 2);
    }
}
