//! What clusters say of themselves: their networks, their CNIs, their NICs and nodes.
//!
//! From WorkloadClusters, which also stand in every rendered package, from kubeadm's ClusterConfiguration (the
//! caller takes it out of the ConfigMap `kubeadm-config`), and from the Clusters of Cluster API. Several
//! objects of one cluster are put together: nothing is taken away.
//!
//! Easy to get wrong: a Cluster of Cluster API stands on the management cluster and speaks of another one.

use std::collections::{BTreeMap, BTreeSet};

use mooring_api::{Cidr, annotation};
use serde_json::Value;

use crate::input::Input;
use crate::world::annotation_of;

/// The clusters by name.
#[derive(Default)]
pub(crate) struct Clusters<'a>(BTreeMap<&'a str, Cluster>);

/// What one cluster says.
#[derive(Default)]
pub(crate) struct Cluster {
    /// What a person would change.
    pub(crate) object: String,
    pub(crate) pods: BTreeSet<Cidr>,
    pub(crate) services: BTreeSet<Cidr>,
    pub(crate) cnis: BTreeSet<String>,
    pub(crate) master: Option<String>,
    pub(crate) nics: BTreeMap<String, Nic>,
    pub(crate) nodes: BTreeSet<String>,
    prefix: Option<String>,
}

/// A NIC that every node has.
#[derive(Default)]
pub(crate) struct Nic {
    pub(crate) mtu: Option<u64>,
    pub(crate) resource: Option<String>,
}

impl<'a> Clusters<'a> {
    pub(crate) fn read(inputs: &'a [Input<'a>]) -> Self {
        let mut out = Self::default();
        for input in inputs {
            let object = &input.origin.object;
            let known = match (object.group(), object.kind.as_str()) {
                ("infra.nephio.org", "WorkloadCluster") => workload_cluster,
                ("kubeadm.k8s.io", "ClusterConfiguration") => kubeadm,
                ("cluster.x-k8s.io", "Cluster") => cluster_api,
                _ => continue,
            };
            let of_another = object.kind == "Cluster";
            // A management directory holds many clusters; a package holds its own, under any name.
            let mut names = vec![own_name(input)];
            let here = &input.origin.cluster;
            if here != names[0] && !here.is_empty() && !of_another {
                names.push(&input.origin.cluster);
            }
            for name in names {
                let cluster = out.0.entry(name).or_default();
                if cluster.object.is_empty() || object.kind == "WorkloadCluster" {
                    cluster.object = format!("{}/{}", object.kind, own_name(input));
                }
                known(cluster, input.value);
            }
        }
        out
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Cluster> {
        self.0.get(name)
    }
}

impl Cluster {
    /// The resources that the NICs serve, as far as they are written.
    pub(crate) fn resources(&self) -> Vec<&str> {
        let all = self.nics.values().filter_map(|nic| nic.resource.as_deref());
        let all: BTreeSet<&str> = all.collect();
        all.into_iter().collect()
    }

    /// Whether a resource is named by the cluster's own rule: `PREFIX/NIC`.
    pub(crate) fn is_own(&self, resource: &str) -> bool {
        let prefix = self.prefix.as_deref().unwrap_or("mooring.dev");
        let rest = resource.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.starts_with('/'))
    }

    /// The NIC that a device plugin resource takes its functions from.
    pub(crate) fn by_resource(&self, resource: &str) -> Option<(&str, &Nic)> {
        let prefix = self.prefix.as_deref().unwrap_or("mooring.dev");
        let serves = |(name, nic): &(&String, &Nic)| match &nic.resource {
            Some(own) => own == resource,
            None => {
                resource
                    .strip_prefix(prefix)
                    .and_then(|r| r.strip_prefix('/'))
                    == Some(name)
            }
        };
        let found = self.nics.iter().find(serves);
        found.map(|(name, nic)| (name.as_str(), nic))
    }
}

/// `spec.clusterName`, else the injected object's name, else its own.
fn own_name<'a>(input: &'a Input<'a>) -> &'a str {
    let text = |path: &str| input.value.pointer(path).and_then(Value::as_str);
    let said = text("/spec/clusterName").or_else(|| text("/clusterName"));
    said.filter(|name| !name.is_empty())
        .or_else(|| annotation_of(input.value, annotation::INJECTED_RESOURCE))
        .unwrap_or(&input.origin.object.name)
}

fn workload_cluster(cluster: &mut Cluster, value: &Value) {
    let texts = |key: &str| {
        let list = value.get("spec").and_then(|s| s.get(key));
        let list = list.and_then(Value::as_array).into_iter().flatten();
        list.filter_map(Value::as_str).map(str::to_owned)
    };
    let twin = |key: &str| {
        let text = annotation_of(value, key).unwrap_or_default();
        let words = text.split([',', ' ', '\n']).map(str::trim);
        words.filter(|w| !w.is_empty()).map(str::to_owned)
    };
    let networks = |key: &str, annotation: &str| -> Vec<Cidr> {
        let all = texts(key).chain(twin(annotation));
        all.filter_map(|text| text.parse().ok()).collect()
    };
    cluster
        .pods
        .extend(networks("podCIDRs", annotation::POD_CIDRS));
    let services = networks("serviceCIDRs", annotation::SERVICE_CIDRS);
    cluster.services.extend(services);
    cluster.cnis.extend(texts("cnis"));
    cluster.nodes.extend(texts("nodes"));
    cluster.nodes.extend(twin(annotation::NODES));
    let text = |path: &str| {
        let text = value.pointer(path).and_then(Value::as_str);
        text.filter(|t| !t.is_empty()).map(str::to_owned)
    };
    cluster.master = text("/spec/masterInterface").or(cluster.master.take());
    let prefix = annotation_of(value, annotation::RESOURCE_PREFIX);
    cluster.prefix = prefix.map(str::to_owned).or(cluster.prefix.take());
    let twin: Option<Value> = annotation_of(value, annotation::NETWORK_INTERFACES)
        .and_then(|text| serde_json::from_str(text).ok());
    let nics = value.pointer("/spec/networkInterfaces").or(twin.as_ref());
    for nic in nics.and_then(Value::as_array).into_iter().flatten() {
        let Some(name) = nic.get("name").and_then(Value::as_str) else {
            continue;
        };
        let entry = cluster.nics.entry(name.to_owned()).or_default();
        entry.mtu = nic.get("mtu").and_then(Value::as_u64).or(entry.mtu);
        let resource = nic.get("resourceName").and_then(Value::as_str);
        entry.resource = resource.map(str::to_owned).or(entry.resource.take());
    }
}

fn kubeadm(cluster: &mut Cluster, value: &Value) {
    let networks = |path: &str| -> Vec<Cidr> {
        let text = value.pointer(path).and_then(Value::as_str);
        let words = text.unwrap_or_default().split(',').map(str::trim);
        words.filter_map(|w| w.parse().ok()).collect()
    };
    cluster.pods.extend(networks("/networking/podSubnet"));
    let services = networks("/networking/serviceSubnet");
    cluster.services.extend(services);
}

fn cluster_api(cluster: &mut Cluster, value: &Value) {
    let networks = |path: &str| -> Vec<Cidr> {
        let list = value.pointer(path).and_then(Value::as_array);
        let words = list.into_iter().flatten().filter_map(Value::as_str);
        words.filter_map(|w| w.parse().ok()).collect()
    };
    let pods = networks("/spec/clusterNetwork/pods/cidrBlocks");
    cluster.pods.extend(pods);
    let services = networks("/spec/clusterNetwork/services/cidrBlocks");
    cluster.services.extend(services);
}
