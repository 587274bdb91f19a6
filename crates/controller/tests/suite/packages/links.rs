//! Packages that need each other, in two repositories: the published SMF waits for the published UPF, gets it, and follows it.

use std::fs;
use std::path::Path;

use mooring_package::Files;
use mooring_package::revision::Which;
use mooring_testkit::oracles;
use serde_json::{Value, json};

use super::scene::{Scene, Stage};
use crate::harness::{condition, until};

const CONFIG: &str = "config_smf-regional-upf-edge01.yaml";

/// A second deployment repository, the cluster of the SMF, and the networks of both.
fn set(scene: &Scene<'_>, oracles: &Path) {
    let (stage, ns) = (scene.stage, &scene.name);
    stage.git.create(&format!("{ns}-regional"));
    let url = stage.git.url(&format!("{ns}-regional"));
    stage.cluster.apply(&format!(
        "apiVersion: config.porch.kpt.dev/v1alpha1
kind: Repository
metadata: {{name: regional, namespace: {ns}}}
spec: {{type: git, deployment: true, git: {{repo: {url}, branch: main, secretRef: {{name: git}}}}}}
"
    ));
    scene.cluster("regional", "eth1");
    for network in ["vpc-internal", "vpc-internet", "vpc-ran"] {
        let path = oracles.join(format!("networks/{network}.yaml"));
        let text = fs::read_to_string(path).unwrap();
        let name = format!("  name: {network}\n");
        let there = format!("{name}  namespace: {ns}\n");
        stage.cluster.apply(&text.replacen(&name, &there, 1));
    }
}

/// Publishes a version of a published blueprint, with one text for another.
fn publish(scene: &Scene<'_>, oracles: &Path, which: &str, (from, to): (&str, &str)) {
    let dir = oracles.join(format!("blueprints/pkg-example-{which}-bp"));
    let mut files = Files::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap().replace(from, to);
        let name = path.file_name().unwrap().to_str().unwrap();
        files.insert(name.to_owned(), text.into_bytes());
    }
    let package = format!("free5gc-{which}");
    scene.draft("blueprints", &package, "edit", &files);
    scene.approve("blueprints", &package, "edit");
}

/// A variant that is approved by itself.
fn variant(scene: &Scene<'_>, which: &str, repo: &str, cluster: &str) {
    scene.stage.cluster.apply(&format!(
        "apiVersion: config.porch.kpt.dev/v1alpha1
kind: PackageVariant
metadata: {{name: {which}, namespace: {ns}}}
spec:
  upstream: {{repo: blueprints, package: free5gc-{which}, revision: 1}}
  downstream: {{repo: {repo}, package: free5gc-{which}}}
  annotations: {{approval.nephio.org/policy: always}}
  injectors: [{{kind: WorkloadCluster, name: {cluster}}}]
",
        ns = scene.name
    ));
}

/// The published SMF's copy of the UPF.
fn config(scene: &Scene<'_>) -> Option<String> {
    let packages = scene.packages("regional");
    let read = packages.read(&"free5gc-smf".parse().unwrap(), &Which::Deployed);
    let bytes = read.unwrap()?.files.remove(CONFIG)?;
    Some(String::from_utf8(bytes).unwrap())
}

fn message(object: &Value, kind: &str) -> String {
    let all = object["status"]["conditions"].as_array().unwrap();
    let found = all.iter().find(|c| c["type"] == kind).unwrap();
    found["message"].as_str().unwrap().to_owned()
}

#[test]
fn a_package_waits_for_another_one_and_is_published_when_that_is() {
    let Some(oracles) = oracles("packages that need each other, by the controller") else {
        return;
    };
    let oracles = oracles.join("nephio");
    let Some(stage) = Stage::shared() else {
        return;
    };
    let scene = stage.scene("linked", 131);
    set(&scene, &oracles);
    publish(&scene, &oracles, "smf", ("", ""));
    publish(&scene, &oracles, "upf", ("", ""));

    variant(&scene, "smf", "regional", "regional");
    let waiting = scene.awaits("smf", "Ready", ("False", "WaitingForPackage"));
    let said = message(&waiting, "Ready");
    assert!(
        said.contains("waiting for package free5gc-upf: it is not there. It goes on by itself"),
        "{said}"
    );
    assert_eq!(condition(&waiting, "Published"), Some(("False", "Draft")));
    assert_eq!(condition(&waiting, "Stalled"), Some(("False", "Valid")));
    assert_eq!(config(&scene), None);

    variant(&scene, "upf", "edge", "edge01");
    scene.awaits("upf", "Published", ("True", "Published"));
    scene.awaits("smf", "Published", ("True", "Published"));
    let linked = scene.awaits("smf", "Ready", ("True", "NoErrors"));
    assert_eq!(
        linked["metadata"]["generation"], waiting["metadata"]["generation"],
        "nobody edited it"
    );
    let first = config(&scene).expect("it is injected");
    assert!(first.contains("name: upf-edge01"), "{first}");
    assert!(first.contains("address: 172."), "{first}");

    // The UPF changes, and whoever knows it hears of it.
    publish(
        &scene,
        &oracles,
        "upf",
        ("maxUplinkThroughput: 5G", "maxUplinkThroughput: 7G"),
    );
    let revision = json!({ "spec": { "upstream": { "revision": 2 } } });
    stage.cluster.merge(&scene.path("upf"), &revision);
    until("the SMF knows the UPF as it is now", || {
        let now = config(&scene).unwrap_or_default();
        let follows = now.contains("maxUplinkThroughput: 7G");
        follows.then_some(()).ok_or(now)
    });
    until("the second version of the SMF is told", || {
        let smf = scene.get("smf").ok_or("no such variant")?;
        let told = smf["status"]["version"] == 2;
        told.then_some(()).ok_or_else(|| smf["status"].to_string())
    });
}
