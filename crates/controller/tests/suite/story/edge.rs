//! A workload cluster of the story: an API server with the sync role beside it, which follows one repository.

use mooring_testkit::GitServer;
use serde_json::{Value, json};

use crate::harness::{Cluster, Controller, until};

/// Kinds that are for processing only: none of them may ever arrive.
const LOCAL: [&str; 7] = [
    "ipam.resource.nephio.org/v1alpha1/ipclaims",
    "ipam.resource.nephio.org/v1alpha1/ipallocations",
    "ipam.resource.nephio.org/v1alpha1/networkinstances",
    "req.nephio.org/v1alpha1/interfaces",
    "infra.nephio.org/v1alpha1/workloadclusters",
    "vlan.resource.nephio.org/v1alpha1/vlanclaims",
    "config.porch.kpt.dev/v1alpha1/packagevariants",
];

pub(super) struct Edge {
    pub(super) name: &'static str,
    pub(super) cluster: Cluster,
    sync: Controller,
}

impl Edge {
    /// Starts it; it follows the repository of its own name.
    pub(super) fn start(name: &'static str, git: &GitServer) -> Option<Self> {
        let cluster = Cluster::own()?;
        cluster.namespace("config-management-system");
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "git" },
            "stringData": { "username": git.user(), "token": git.token() },
        });
        let namespace = "/api/v1/namespaces/config-management-system";
        cluster.create(&format!("{namespace}/secrets"), &secret);
        let follows = json!({
            "apiVersion": "configsync.gke.io/v1beta1", "kind": "RootSync", "metadata": { "name": "root-sync" },
            "spec": {
                "sourceFormat": "unstructured",
                "git": {
                    "repo": git.url(name), "branch": "main", "period": "1s", "auth": "token",
                    "secretRef": { "name": "git" },
                },
                "commitStatus": true, "cluster": name, "allowEmpty": true,
            },
        });
        let list = "/apis/configsync.gke.io/v1beta1/namespaces/config-management-system/rootsyncs";
        cluster.create(list, &follows);
        let sync = Controller::start(&cluster, &["sync"], &[]);
        Some(Self {
            name,
            cluster,
            sync,
        })
    }

    /// Waits until exactly these NADs and Deployments are there, by `namespace/name`.
    #[track_caller]
    pub(super) fn has_exactly(&self, wanted: &[&str]) {
        until(&format!("{} has exactly {wanted:?}", self.name), || {
            let mut seen = self.names("/apis/k8s.cni.cncf.io/v1/network-attachment-definitions");
            seen.extend(self.names("/apis/apps/v1/deployments"));
            seen.sort();
            if seen == wanted {
                return Ok(());
            }
            Err(format!("{seen:?}\n{}", self.sync.log()))
        });
        for kind in LOCAL {
            let found = self.names(&format!("/apis/{kind}"));
            assert!(found.is_empty(), "{}: {kind} {found:?}", self.name);
        }
    }

    fn names(&self, list: &str) -> Vec<String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let items = self.cluster.list(list);
        let name = |o: &Value| {
            format!(
                "{}/{}",
                text(&o["metadata"]["namespace"]),
                text(&o["metadata"]["name"])
            )
        };
        items.iter().map(name).collect()
    }

    /// The `ipam.addresses` of a NAD.
    #[track_caller]
    pub(super) fn nad_address(&self, namespace: &str, name: &str) -> String {
        let path = format!(
            "/apis/k8s.cni.cncf.io/v1/namespaces/{namespace}/network-attachment-definitions/{name}"
        );
        let nad = self.cluster.get(&path).unwrap();
        let config: Value = serde_json::from_str(nad["spec"]["config"].as_str().unwrap()).unwrap();
        config["ipam"]["addresses"][0]["address"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// The one Pod of a workload once there is one that is not `but`: its name, and what it asks of the network.
    #[track_caller]
    pub(super) fn pod(&self, namespace: &str, app: &str, but: &str) -> (String, String) {
        let list = format!("/api/v1/namespaces/{namespace}/pods?labelSelector=app%3D{app}");
        until(&format!("a Pod of {app} on {}", self.name), || {
            let pods = self.cluster.list(&list);
            let alive = pods
                .iter()
                .filter(|p| p["metadata"]["deletionTimestamp"].is_null());
            let mut new = alive.filter(|p| p["metadata"]["name"] != but);
            let pod = new.next().ok_or_else(|| format!("{} Pods", pods.len()))?;
            let networks = &pod["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"];
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            Ok((
                name.to_owned(),
                networks.as_str().unwrap_or_default().to_owned(),
            ))
        })
    }
}
