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

/// The files of a published blueprint, with texts for others.
fn blueprint(oracles: &Path, which: &str, changed: &[(&str, &str)]) -> Files {
    let dir = oracles.join(format!("blueprints/pkg-example-{which}-bp"));
    let mut files = Files::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let text = changed
            .iter()
            .fold(text, |t, (from, to)| t.replace(from, to));
        let name = path.file_name().unwrap().to_str().unwrap();
        files.insert(name.to_owned(), text.into_bytes());
    }
    files
}

/// Publishes a version of a published blueprint.
fn publish(scene: &Scene<'_>, oracles: &Path, which: &str, changed: &[(&str, &str)]) {
    let package = format!("free5gc-{which}");
    let files = blueprint(oracles, which, changed);
    scene.draft("blueprints", &package, "edit", &files);
    scene.approve("blueprints", &package, "edit");
}

/// A variant that is approved by itself.
fn variant(scene: &Scene<'_>, which: &str, (repo, package): (&str, &str), cluster: &str) {
    scene.stage.cluster.apply(&format!(
        "apiVersion: config.porch.kpt.dev/v1alpha1
kind: PackageVariant
metadata: {{name: {package}, namespace: {ns}}}
spec:
  upstream: {{repo: blueprints, package: free5gc-{which}, revision: 1}}
  downstream: {{repo: {repo}, package: {package}}}
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
    publish(&scene, &oracles, "smf", &[]);
    publish(&scene, &oracles, "upf", &[]);

    variant(&scene, "smf", ("regional", "free5gc-smf"), "regional");
    let waiting = scene.awaits("free5gc-smf", "Ready", ("False", "WaitingForPackage"));
    let said = message(&waiting, "Ready");
    assert!(
        said.contains("waiting for package free5gc-upf: it is not there. It goes on by itself"),
        "{said}"
    );
    assert_eq!(condition(&waiting, "Published"), Some(("False", "Draft")));
    assert_eq!(condition(&waiting, "Stalled"), Some(("False", "Valid")));
    assert_eq!(config(&scene), None);

    variant(&scene, "upf", ("edge", "free5gc-upf"), "edge01");
    scene.awaits("free5gc-upf", "Published", ("True", "Published"));
    scene.awaits("free5gc-smf", "Published", ("True", "Published"));
    let linked = scene.awaits("free5gc-smf", "Ready", ("True", "NoErrors"));
    assert_eq!(
        linked["metadata"]["generation"], waiting["metadata"]["generation"],
        "nobody edited it"
    );
    let first = config(&scene).expect("it is injected");
    assert!(first.contains("name: upf-edge01"), "{first}");
    assert!(first.contains("address: 172."), "{first}");

    // The UPF changes, and whoever knows it hears of it.
    let more = [("maxUplinkThroughput: 5G", "maxUplinkThroughput: 7G")];
    publish(&scene, &oracles, "upf", &more);
    let revision = json!({ "spec": { "upstream": { "revision": 2 } } });
    stage.cluster.merge(&scene.path("free5gc-upf"), &revision);
    until("the SMF knows the UPF as it is now", || {
        let now = config(&scene).unwrap_or_default();
        let follows = now.contains("maxUplinkThroughput: 7G");
        follows.then_some(()).ok_or(now)
    });
    until("the second version of the SMF is told", || {
        let smf = scene.get("free5gc-smf").ok_or("no such variant")?;
        let told = smf["status"]["version"] == 2;
        told.then_some(()).ok_or_else(|| smf["status"].to_string())
    });

    by_hand(&scene, &oracles);
}

/// A draft that a person pushed waits and goes on the same way, for a package in another repository.
fn by_hand(scene: &Scene<'_>, oracles: &Path) {
    let changed = [
        ("packageName: free5gc-upf", "packageName: late-upf"),
        (
            "  annotations:\n    config.kubernetes.io/local-config: \"true\"\ninfo:",
            "  annotations:\n    mooring.dev/cluster: regional\ninfo:",
        ),
    ];
    scene.draft(
        "regional",
        "ran/smf",
        "edit",
        &blueprint(oracles, "smf", &changed),
    );
    let drafted = || {
        let seen = scene.packages("regional").look(&"ran/smf".parse().unwrap());
        let open = seen.unwrap().open.into_iter().next();
        open.map(|open| open.files).unwrap_or_default()
    };
    until("the draft says what it waits for", || {
        let kptfile = drafted().remove("Kptfile").unwrap_or_default();
        let text = String::from_utf8(kptfile).unwrap();
        let says = text.contains("waiting for package late-upf: it is not there");
        says.then_some(()).ok_or(text)
    });
    variant(scene, "upf", ("edge", "late-upf"), "edge01");
    scene.awaits("late-upf", "Published", ("True", "Published"));
    until("the draft has its Config", || {
        let files = drafted();
        let names: Vec<&String> = files.keys().collect();
        let linked = files.contains_key(CONFIG);
        linked.then_some(()).ok_or_else(|| format!("{names:?}"))
    });
}
