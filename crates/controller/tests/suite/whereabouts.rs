//! `whereabouts` of two clusters from one pool of ours: each keeps its own books on its own API server and knows nothing of
//! the other, so only the partition keeps them apart.
//!
//! The packages are those of `examples/ipam/cluster-wide`, as a person renders them; the plugin is the real one.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::Path;

use mooring_api::{AddrRange, Time};
use mooring_book::MemoryStore;
use mooring_package::{Request, render};
use mooring_testkit::{Whereabouts, copy_tree, workspace_root};
use serde_json::{Value, json};

use crate::harness::Cluster;

/// Enough to pass beyond the start of a range, where two unpartitioned ones would meet at once.
const PODS: usize = 6;
const NADS: &str = "/apis/k8s.cni.cncf.io/v1/namespaces/5g/network-attachment-definitions";

/// A workload cluster with its NAD applied, and what we gave it.
struct Site {
    cluster: Cluster,
    plugin: Whereabouts,
    ours: AddrRange,
}

impl Site {
    fn set(nad: &str, ours: AddrRange) -> Option<Self> {
        let cluster = Cluster::own()?;
        let plugin = Whereabouts::beside(cluster.plane())?;
        cluster.namespace("5g");
        cluster.apply(nad);
        Some(Self {
            cluster,
            plugin,
            ours,
        })
    }

    /// The configuration as the API server has it, with the place where the plugin finds that server.
    fn config(&self) -> String {
        let nad = self.cluster.get(&format!("{NADS}/n2")).unwrap();
        let text = nad["spec"]["config"].as_str().unwrap();
        let mut config: Value = serde_json::from_str(text).unwrap();
        assert_eq!(config["ipam"]["type"], "whereabouts", "{config}");
        // Multus gives a configuration without a name that of its NAD.
        config["name"] = nad["metadata"]["name"].clone();
        config["ipam"]["configuration_path"] = json!(self.plugin.settings());
        config.to_string()
    }

    #[track_caller]
    fn add(&self, pod: &str) -> IpAddr {
        let said = self.plugin.call("ADD", &self.config(), pod);
        let result: Value = serde_json::from_str(said.ok()).unwrap();
        let ips = result["ips"].as_array().unwrap();
        assert_eq!(ips.len(), 1, "{result}");
        assert_eq!(ips[0]["gateway"], "192.168.100.1", "{result}");
        let address = ips[0]["address"].as_str().unwrap();
        let (address, length) = address.split_once('/').unwrap();
        assert_eq!(length, "24", "{result}");
        address.parse().unwrap()
    }

    fn del(&self, pod: &str) {
        self.plugin.call("DEL", &self.config(), pod).ok();
    }

    /// How many addresses its pool holds, by its own book.
    fn held(&self) -> usize {
        let pools = "/apis/whereabouts.cni.cncf.io/v1alpha1/namespaces/kube-system/ippools";
        let held = |pool: &Value| {
            pool["spec"]["allocations"]
                .as_object()
                .map_or(0, serde_json::Map::len)
        };
        self.cluster.list(pools).iter().map(held).sum()
    }
}

/// Renders a package of the example for a cluster: its NAD, and the range that the book gave.
fn rendered(book: &MemoryStore, dir: &Path, package: &str, cluster: &str) -> (String, AddrRange) {
    let out = dir.join("out").join(package);
    let request = Request {
        source: dir.join(package),
        out: Some(out.clone()),
        mgmt: Some(dir.join("mgmt")),
        cluster: Some(cluster.to_owned()),
        dialect: None,
        check: false,
        new_id: false,
        draft: None,
        pinned: false,
        published: Vec::new(),
        deploy_records: false,
        now: Time(1_800_000_000),
        entropy: [package.as_bytes()[0]; 16],
    };
    let report = render(book, &request, &|_, _| {}).unwrap();
    assert!(!report.has_errors(), "{:?}", report.findings);
    let range = report.packages[0].interfaces[0].ranges[0].parse().unwrap();
    let nad = out.join("networkattachmentdefinition_n2.yaml");
    (std::fs::read_to_string(nad).unwrap(), range)
}

#[test]
fn whereabouts_of_two_clusters_from_one_pool_never_gives_an_address_twice() {
    let example = copy_tree(&workspace_root().join("examples/ipam/cluster-wide"));
    let book = MemoryStore::new();
    let mut sites = Vec::new();
    for (package, cluster) in [("gnb", "my-ran"), ("amf", "my-core")] {
        let (nad, range) = rendered(&book, example.path(), package, cluster);
        let Some(site) = Site::set(&nad, range) else {
            return;
        };
        sites.push(site);
    }
    let mut all = BTreeSet::new();
    for site in &sites {
        for pod in 0..PODS {
            let address = site.add(&format!("pod-{pod}"));
            assert!(
                site.ours.contains(address),
                "{address} is outside {}",
                site.ours
            );
            assert!(all.insert(address), "{address} was given twice");
        }
        assert_eq!(site.held(), PODS);
    }
    // What is given back is given again, by the same cluster only.
    for site in &sites {
        site.del("pod-0");
        assert_eq!(site.held(), PODS - 1);
        // Twice is once.
        site.del("pod-0");
        let again = site.add("pod-new");
        assert!(site.ours.contains(again) && all.contains(&again), "{again}");
        for pod in 1..PODS {
            site.del(&format!("pod-{pod}"));
        }
        site.del("pod-new");
        assert_eq!(site.held(), 0);
    }
}
