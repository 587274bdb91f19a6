//! What is published keeps its addresses, however it came to be published: an older version that a person brought back has
//! them again, and one that somebody else got meanwhile is told and never had twice.

use mooring_package::Files;
use serde_json::json;

use super::scene::{Scene, Stage};
use crate::harness::{Cluster, await_condition, until};

const PACKAGE: &str = "ran/upf";

/// Drafts these files by hand, waits until as many NADs were made for them, and publishes them.
fn publish(scene: &Scene<'_>, workspace: &str, files: &Files, nads: usize) {
    scene.draft("edge", PACKAGE, workspace, files);
    until("the draft is specialised", || {
        let seen = scene.look(PACKAGE);
        let open = seen.open.first().ok_or("no draft")?;
        let names: Vec<&String> = open.files.keys().collect();
        let made = names.iter().filter(|n| n.starts_with("networkattach"));
        let marked = mooring_package::Kpt::read(&open.files).is_some_and(|kpt| !kpt.id.is_empty());
        (marked && made.count() == nads)
            .then_some(())
            .ok_or_else(|| format!("{names:?}"))
    });
    scene.approve("edge", PACKAGE, workspace);
}

/// The published package without its interfaces.
fn bare(scene: &Scene<'_>) -> Files {
    let mut files = scene.published(PACKAGE).expect("it is published");
    files.retain(|name, _| !name.starts_with("interface-"));
    files
}

fn roll_back(scene: &Scene<'_>, to: u32) {
    let package = PACKAGE.parse().unwrap();
    scene.packages("edge").rollback(&package, to, None).unwrap();
}

#[test]
fn an_older_version_that_comes_back_has_its_addresses_again() {
    let Some(stage) = Stage::shared() else {
        return;
    };
    let scene = stage.scene("back", 133);
    publish(&scene, "one", &scene.blueprint(), 1);
    scene.awaits_leases(&[(20, "held")]);
    publish(&scene, "two", &bare(&scene), 0);
    scene.awaits_leases(&[]);
    roll_back(&scene, 1);
    scene.awaits_leases(&[(20, "held")]);
    let repository = "/apis/config.porch.kpt.dev/v1alpha1/namespaces/back/repositories/edge";
    await_condition(
        &stage.cluster,
        repository,
        "AddressesKept",
        ("True", "Kept"),
    );
    // A next draft keeps it, and so does whoever else asks.
    scene.draft("edge", "ran/other", "one", &scene.blueprint());
    scene.awaits_leases(&[(20, "held"), (21, "reserved")]);
}

#[test]
fn an_address_that_somebody_got_meanwhile_is_told_and_not_had_twice() {
    let Some(cluster) = Cluster::own() else {
        return;
    };
    let stage = Stage::with(cluster, &["packages", "ipam"], &["--git-poll=1s"]);
    let scene = stage.scene("taken", 134);
    let mut files = scene.blueprint();
    let n3 = String::from_utf8(files["interface-n3.yaml"].clone()).unwrap();
    let n4 = n3.replace("name: n3", "name: n4");
    files.insert("interface-n4.yaml".into(), n4.into_bytes());
    publish(&scene, "one", &files, 2);
    scene.awaits_leases(&[(20, "held"), (21, "held")]);
    publish(&scene, "two", &bare(&scene), 0);
    scene.awaits_leases(&[]);
    stage.cluster.apply(
        "apiVersion: ipam.resource.nephio.org/v1alpha1
kind: IPClaim
metadata: {name: quick, namespace: taken}
spec: {kind: network, networkInstance: {name: vpc-taken, namespace: default}}
",
    );
    scene.awaits_leases(&[(20, "held")]);
    let holder = || {
        let all = stage.cluster.list("/apis/mooring.dev/v1alpha1/ipleases");
        let of = |l: &&serde_json::Value| l["spec"]["address"] == "10.134.2.20";
        all.iter().find(of).map(|l| l["spec"]["holder"].clone())
    };
    let claims = holder().expect("the claim has it");

    roll_back(&scene, 1);
    let repository = "/apis/config.porch.kpt.dev/v1alpha1/namespaces/taken/repositories/edge";
    let said = await_condition(
        &stage.cluster,
        repository,
        "AddressesKept",
        ("False", "AddressHeld"),
    );
    let said = said["status"].to_string();
    for part in [PACKAGE, "n3", "10.134.2.20", "quick"] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
    until("an Event on the Repository", || {
        let events = stage.cluster.events("taken", "edge");
        let told = events.iter().any(|e| e.starts_with("AddressHeld"));
        told.then_some(()).ok_or(format!("{events:?}"))
    });
    // What nobody has is the package's again, and the other one's stays where it is.
    scene.awaits_leases(&[(20, "held"), (21, "held")]);
    assert_eq!(holder(), Some(claims));

    // The other one gives it back, and it is the package's by itself.
    let claim = "/apis/ipam.resource.nephio.org/v1alpha1/namespaces/taken/ipclaims/quick";
    stage.cluster.delete(claim);
    await_condition(
        &stage.cluster,
        repository,
        "AddressesKept",
        ("True", "Kept"),
    );
    scene.awaits_leases(&[(20, "held"), (21, "held")]);
    let now = holder().unwrap_or_default();
    assert_eq!(now["interface"], json!("n3"), "{now}");
}
