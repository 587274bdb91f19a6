//! The seed's own example, field by field (DESIGN §4): the first thing that must hold.

use std::fs;

use crate::fleet::{Place, documents, object};
use mooring_api::{Code, Severity};
use serde_json::{Value, json};

fn example() -> Place {
    let place = Place::new();
    place.copy_case("seed-000", "gnb");
    place
}

fn config(place: &Place, nad: &str) -> Value {
    let nad = object(&place.path("gnb"), "NetworkAttachmentDefinition", nad);
    assert_eq!(nad["apiVersion"], "k8s.cni.cncf.io/v1");
    assert_eq!(nad["metadata"]["namespace"], "oai-ran");
    serde_json::from_str(nad["spec"]["config"].as_str().unwrap()).unwrap()
}

#[test]
fn the_seed_renders_field_by_field() {
    let place = example();
    let report = place.render("gnb", |r| r.cluster = Some("edge-cluster-1".into()));
    assert_eq!(report.findings.len(), 1, "{:?}", report.findings);
    assert_eq!(report.findings[0].code, Code::VfIndexIgnored);
    assert_eq!(report.findings[0].severity, Severity::Warning);

    assert_eq!(
        config(&place, "n2"),
        json!({
            "cniVersion": "0.3.1", "type": "macvlan", "master": "ens3", "mode": "bridge",
            "ipam": { "type": "static",
                "addresses": [{ "address": "10.1.2.20/24", "gateway": "10.1.2.1" }] },
        })
    );
    assert_eq!(
        config(&place, "n3"),
        json!({
            "cniVersion": "0.3.1", "type": "sriov",
            "ipam": { "type": "static",
                "addresses": [{ "address": "10.1.3.20/24", "gateway": "10.1.3.1" }] },
        })
    );
    let n3 = object(&place.path("gnb"), "NetworkAttachmentDefinition", "n3");
    let resource = &n3["metadata"]["annotations"]["k8s.v1.cni.cncf.io/resourceName"];
    assert_eq!(resource, "mooring.dev/ens4");

    for (claim, prefix, gateway) in [
        ("n2", "10.1.2.20/24", "10.1.2.1"),
        ("n3", "10.1.3.20/24", "10.1.3.1"),
    ] {
        let claim = object(&place.path("gnb"), "IPClaim", claim);
        assert_eq!(claim["apiVersion"], "ipam.resource.nephio.org/v1alpha1");
        assert_eq!(
            claim["status"],
            json!({ "prefix": prefix, "gateway": gateway })
        );
        let local = &claim["metadata"]["annotations"]["config.kubernetes.io/local-config"];
        assert_eq!(local, "true");
    }
    let kptfile = object(&place.path("gnb"), "Kptfile", "gnb-blueprint");
    let conditions = kptfile["status"]["conditions"].as_array().unwrap();
    let mut kinds: Vec<&str> = conditions
        .iter()
        .map(|c| c["type"].as_str().unwrap())
        .collect();
    kinds.sort_unstable();
    assert_eq!(
        kinds,
        [
            "config.injection.WorkloadCluster.workload-cluster",
            "ipam.nephio.org.ipclaim.n2",
            "ipam.nephio.org.ipclaim.n3",
            "req.nephio.org.interface.n2",
            "req.nephio.org.interface.n3",
        ]
    );
    assert!(conditions.iter().all(|c| c["status"] == "True"));
    let pod = object(&place.path("gnb"), "Pod", "oai-gnb-0");
    let networks = pod["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"]
        .as_str()
        .unwrap();
    let networks: Value = serde_json::from_str(networks).unwrap();
    assert_eq!(
        networks,
        json!([{ "name": "n2", "interface": "n2" }, { "name": "n3", "interface": "n3" }])
    );
    assert_eq!(
        pod["spec"]["containers"][0]["resources"]["limits"]["mooring.dev/ens4"],
        "1"
    );
}

#[test]
fn a_second_render_changes_no_byte() {
    let place = example();
    place.render("gnb", |r| r.cluster = Some("edge-cluster-1".into()));
    let before = mooring_testkit::hash_tree(&place.path("gnb"));
    let report = place.render("gnb", |r| r.cluster = Some("edge-cluster-1".into()));
    assert!(!report.is_changed(), "{:?}", report.changes);
    assert_eq!(before, mooring_testkit::hash_tree(&place.path("gnb")));
}

#[test]
fn deleting_n3_releases_its_address_and_removes_all_that_was_made_for_it() {
    let place = example();
    place.render("gnb", |r| r.cluster = Some("edge-cluster-1".into()));
    let file = place.path("gnb/interfaces.yaml");
    let text = fs::read_to_string(&file).unwrap();
    let (n2, _) = text.split_once("---\n").unwrap();
    fs::write(&file, n2).unwrap();

    place.render("gnb", |r| r.cluster = Some("edge-cluster-1".into()));
    assert_eq!(place.held(), ["10.1.2.20"]);
    for document in documents(&place.path("gnb")) {
        let text = document.to_string();
        let instance = document["kind"] == "NetworkInstance";
        assert!(instance || !text.contains("n3"), "left over: {text}");
        assert!(!text.contains("10.1.3.20"), "left over: {text}");
    }
    let pod = object(&place.path("gnb"), "Pod", "oai-gnb-0");
    assert!(
        pod["spec"]["containers"][0].get("resources").is_none(),
        "{pod}"
    );
}
