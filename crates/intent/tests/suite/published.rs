//! Everything that is compiled, on an API server that has the published CRDs and none of ours.

use std::fs;
use std::path::PathBuf;

use mooring_testkit::{ControlPlane, cases, oracles};
use serde_json::{Value, json};

use crate::cases::{compiled, here};

/// The published CRDs of what we write.
const CRDS: [&str; 10] = [
    "network.t-caas.telekom.com_networkconfigrevisions.yaml",
    "network.t-caas.telekom.com_nodenetworkconfigs.yaml",
    "network.t-caas.telekom.com_nodenetplanconfigs.yaml",
    "metallb.io_ipaddresspools.yaml",
    "metallb.io_l2advertisements.yaml",
    "metallb.io_bgpadvertisements.yaml",
    "coil.cybozu.com_egresses.yaml",
    "projectcalico.org_ippools.yaml",
    "projectcalico.org_globalnetworkpolicies.yaml",
    "sriovnetwork.openshift.io_sriovnetworks.yaml",
];

/// Claims are checked too, where their CRD has no conversion webhook.
const CLAIMS: &str = "ipam.cluster.x-k8s.io_ipaddressclaims.yaml";

fn everything() -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    for (at, case) in cases(here()).iter().enumerate() {
        let (compiled, _) = compiled(case);
        let mut own: Vec<Value> = compiled.platform.clone();
        for (node, config) in &compiled.nodes {
            own.extend(config.objects(node, &compiled.digest));
        }
        own.push(json!({
            "apiVersion": "network.t-caas.telekom.com/v1alpha1",
            "kind": "NetworkConfigRevision",
            "metadata": { "name": "revision" },
            "spec": compiled.revision().spec,
        }));
        for object in &mut own {
            // Names of two cases must not meet, and dry runs make no namespaces.
            let name = object["metadata"]["name"].as_str().unwrap();
            object["metadata"]["name"] = json!(format!("c{at}-{name}"));
            if object["metadata"].get("namespace").is_some() {
                object["metadata"]["namespace"] = json!("default");
            }
        }
        all.extend(own);
    }
    all
}

#[test]
fn the_published_crds_accept_everything_that_is_compiled() {
    let Some(oracles) = oracles("everything compiled on the published CRDs") else {
        return;
    };
    let Some(server) = ControlPlane::start() else {
        return;
    };
    let dir = scratch();
    for name in CRDS.iter().chain([&CLAIMS]) {
        fs::copy(oracles.join("crds").join(name), dir.path().join(name)).unwrap();
    }
    server.install_crds(&PathBuf::from(dir.path()));
    let objects = everything();
    assert!(objects.len() > 100, "only {} objects", objects.len());
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
    // Strict: a field that the published schema does not have is an error, not a silent loss.
    let args = ["create", "--dry-run=server", "--validate=strict", "-f", "-"];
    server.kubectl_stdin(&args, &list.to_string()).ok();
    println!("{} objects on the published CRDs", objects.len());
}

fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}
