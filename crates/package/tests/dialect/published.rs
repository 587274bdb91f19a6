//! What the nephio dialect writes, on an API server that has Nephio's own CRDs and none of ours.

use std::fs;

use mooring_testkit::{ControlPlane, oracles};
use serde_json::{Value, json};

use crate::place::{Place, documents};

/// Groups of the package path whose published CRDs are among the oracles.
const GROUPS: [&str; 6] = [
    "ipam.resource.nephio.org",
    "vlan.resource.nephio.org",
    "req.nephio.org",
    "ref.nephio.org",
    "workload.nephio.org",
    "infra.nephio.org",
];

#[test]
fn the_published_crds_accept_what_is_written() {
    let Some(place) = Place::new("rendered packages on the published CRDs") else {
        return;
    };
    let Some(server) = ControlPlane::start() else {
        return;
    };
    install(&place, &server);
    for (blueprint, package) in [("upf", "free5gc-upf"), ("smf", "free5gc-smf")] {
        place.blueprint(blueprint, &format!("fleet/{package}"));
    }
    place.render("fleet", |_| {});

    let mut objects = Vec::new();
    for package in ["free5gc-upf", "free5gc-smf"] {
        for entry in fs::read_dir(place.path("fleet").join(package)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "yaml") {
                objects.extend(documents(&path));
            }
        }
    }
    // Functions' configurations are files, and dry runs make no namespaces.
    let group = |o: &Value| o["apiVersion"].as_str().unwrap_or_default().to_owned();
    objects.retain(|o| !group(o).contains("kpt.dev"));
    // The published SMF carries a Dependency with a field that the published CRD does not have: theirs, and untouched.
    objects.retain(|o| o["kind"] != "Dependency");
    for object in &mut objects {
        object["metadata"]["namespace"] = json!("default");
    }
    let claims = objects.iter().filter(|o| o["kind"] == "IPClaim").count();
    let nads = objects
        .iter()
        .filter(|o| o["kind"] == "NetworkAttachmentDefinition");
    assert!(claims > 3 && nads.count() > 2, "{} objects", objects.len());
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
    // Strict: a field that the published schema does not have is an error, not a silent loss.
    let args = ["create", "--dry-run=server", "--validate=strict", "-f", "-"];
    let said = server.kubectl_stdin(&args, &list.to_string());
    said.ok();
    println!("{} objects on the published CRDs", objects.len());
}

/// The published CRDs of the package path, and that of the network plumbing group.
fn install(place: &Place, server: &ControlPlane) {
    let from = oracles("the published CRDs").unwrap().join("crds");
    for entry in fs::read_dir(&from).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let ours = GROUPS.iter().any(|g| name.starts_with(&format!("{g}_")));
        if ours || name == "networks-crd.yaml" {
            place.write(&format!("crds/{name}"), &fs::read_to_string(&path).unwrap());
        }
    }
    server.install_crds(&place.path("crds"));
}
