//! Starts the roles, each under its own leadership, and joins all of them at the end.
//!
//! A role that ends with an error ends the program: Kubernetes starts it again, and nothing half-works meanwhile.
//! A role that loses its leadership keeps its watches warm; its writes are refused by the fence until it leads again.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::task::JoinSet;

use crate::args::{Args, Role};
use crate::leader::{Election, Leadership};
use crate::metrics::{Metrics, RoleLabels};
use crate::serve::{self, Readiness};
use crate::shutdown;
use crate::world::World;

/// How long a request to the API server may take to connect.
const CONNECT: Duration = Duration::from_secs(5);
/// How long roles get to finish what they are at.
const LAST_WORDS: Duration = Duration::from_secs(20);

/// Runs until a signal comes or a role fails.
pub(crate) async fn run(args: Args) -> Result<()> {
    let args = Arc::new(args);
    let (client, config) = connect(&args).await?;
    let metrics = Metrics::new();
    let readiness = Readiness::default();
    let (trigger, end) = shutdown::pair();
    let mut tasks: JoinSet<Result<()>> = JoinSet::new();

    if let Some(address) = args.listen.0 {
        let serving = serve::serve(address, readiness.clone(), metrics.clone(), end.clone());
        tasks.spawn(async move {
            let served = serving.await;
            served.with_context(|| format!("cannot serve health and metrics on {address}"))
        });
    }
    let mut roles = args.roles.clone();
    roles.sort();
    roles.dedup();
    for role in roles {
        let leadership = if args.election.no_leader_election || role == Role::Webhook {
            Leadership::always()
        } else {
            let leadership = Leadership::follower();
            let election = Election {
                client: client.clone(),
                namespace: args.namespace.clone(),
                name: format!("moor-controller-{}", role.name()),
                identity: identity(),
                duration: args.election.lease_duration,
            };
            let gauge = metrics
                .leads
                .get_or_create(&RoleLabels { role: role.name() })
                .clone();
            tasks.spawn({
                let (leadership, end) = (leadership.clone(), end.clone());
                async move {
                    election.run(leadership, gauge, end).await;
                    Ok(())
                }
            });
            leadership
        };
        let world = World::new(
            role,
            (client.clone(), config.clone()),
            args.clone(),
            metrics.clone(),
            readiness.clone(),
            leadership,
            end.clone(),
        );
        tracing::info!(role = role.name(), "starting");
        tasks.spawn(async move {
            let outcome = start(world).await;
            outcome.with_context(|| format!("the role {} stopped", role.name()))
        });
    }

    let mut outcome = Ok(());
    tokio::select! {
        signal = shutdown::on_signal(&trigger) => signal.context("cannot wait for signals")?,
        Some(ended) = tasks.join_next() => {
            outcome = ended.context("a task panicked").flatten();
            trigger.pull();
        }
    }
    let rest = async {
        while let Some(ended) = tasks.join_next().await {
            let ended = ended.context("a task panicked").flatten();
            if outcome.is_ok() {
                outcome = ended;
            }
        }
        outcome
    };
    tokio::time::timeout(LAST_WORDS, rest)
        .await
        .context("a role did not end in time")?
}

async fn start(world: World) -> Result<()> {
    match world.role {
        Role::Sync => crate::sync::run(world).await,
        Role::Webhook => crate::webhook::run(world).await,
        Role::Packages => crate::packages::run(world).await,
        Role::Ipam => crate::ipam::run(world).await,
    }
}

async fn connect(args: &Args) -> Result<(Client, Config)> {
    let mut config = match &args.kubeconfig {
        Some(path) => {
            let file = Kubeconfig::read_from(path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?
        }
        None => Config::infer().await.context(
            "no API server is known; give --kubeconfig, or run in a pod with a service account",
        )?,
    };
    config.connect_timeout = Some(CONNECT);
    let client = Client::try_from(config.clone()).context("cannot make a client")?;
    Ok((client, config))
}

/// Unique per process: the host's name for people, the rest for the machine.
fn identity() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let start = jiff::Timestamp::now().as_nanosecond();
    format!("{}-{}-{start:x}", host.trim(), std::process::id())
}
