//! Packages that need each other.

use mooring_api::Time;
use mooring_book::MemoryStore;
use mooring_package::{Call, function_as};
use serde_json::{Value, json};

use crate::place::{Place, conditions, documents, waits_for};

const GATE: &str = "nephio.org.Specializer.specialize";

#[test]
fn a_published_package_is_found_later_and_may_be_out_of_sight_afterwards() {
    let Some(place) = Place::new("published packages") else {
        return;
    };
    place.cluster("edge02");
    place.cluster("regional");
    place.blueprint("smf", "smf");
    let alone = place.render("smf", |r| r.cluster = Some("regional".into()));
    assert_eq!(
        waits_for(&alone),
        ["waiting for package free5gc-upf: it is not there"]
    );
    assert!(!conditions(&place.path("smf"))[GATE]);

    for cluster in ["edge01", "edge02"] {
        let dir = format!("deployed/{cluster}/free5gc-upf");
        place.blueprint("upf", &dir);
        place.render(&dir, |r| r.cluster = Some(cluster.into()));
    }
    let linked = place.render("smf", |r| {
        r.cluster = Some("regional".into());
        r.published = vec![place.path("deployed")];
    });
    assert_eq!(waits_for(&linked), Vec::<&str>::new());
    assert!(conditions(&place.path("smf"))[GATE]);
    let configs = place.files("smf", "config_");
    assert_eq!(
        configs,
        [
            "config_smf-regional-upf-edge01.yaml",
            "config_smf-regional-upf-edge02.yaml"
        ]
    );

    let alone = place.render("smf", |r| r.cluster = Some("regional".into()));
    assert!(!alone.is_changed(), "{:?}", alone.changes);
    assert_eq!(waits_for(&alone), Vec::<&str>::new());
}

#[test]
fn a_provider_that_waits_itself_is_named() {
    let Some(place) = Place::new("chains of packages") else {
        return;
    };
    // The DU waits for a package that waits for a third one, which is not there.
    place.blueprint("du", "fleet/oai-du");
    place.blueprint("smf", "fleet/oai-ran-cucp");
    let report = place.render("fleet", |_| {});
    let mut waits = waits_for(&report);
    waits.sort_unstable();
    assert_eq!(waits.len(), 2);
    assert_eq!(waits[0], "waiting for package free5gc-upf: it is not there");
    let start = "waiting for package oai-ran-cucp: NFDeployment smf-edge01 in ";
    assert!(
        waits[1].starts_with(start) && waits[1].ends_with("is not ready"),
        "{waits:?}"
    );
    // With the third one, the whole chain is done in one run, whatever the order of names.
    place.blueprint("upf", "fleet/z/free5gc-upf");
    let report = place.render("fleet", |_| {});
    assert_eq!(waits_for(&report), Vec::<&str>::new());
    for package in ["oai-du", "oai-ran-cucp", "z/free5gc-upf"] {
        assert!(
            conditions(&place.path("fleet").join(package))[GATE],
            "{package}"
        );
    }
    assert!(!place.render("fleet", |_| {}).is_changed());
}

#[test]
fn a_circle_of_packages_ends_with_both_waiting() {
    let Some(place) = Place::new("circles of packages") else {
        return;
    };
    place.blueprint("smf", "fleet/one");
    place.blueprint("smf", "fleet/two");
    place.edit(
        "fleet/one/dependency.yaml",
        "packageName: free5gc-upf",
        "packageName: two",
    );
    place.edit(
        "fleet/two/dependency.yaml",
        "packageName: free5gc-upf",
        "packageName: one",
    );
    let report = place.render("fleet", |_| {});
    assert_eq!(waits_for(&report).len(), 2);
    assert!(!place.render("fleet", |_| {}).is_changed());
}

#[test]
fn what_an_earlier_run_left_in_out_is_in_sight() {
    let Some(place) = Place::new("packages in OUT") else {
        return;
    };
    place.blueprint("upf", "a/free5gc-upf");
    place.blueprint("smf", "b/free5gc-smf");
    place.render("a", |r| r.out = Some(place.path("deployed")));
    for _ in 0..2 {
        let report = place.render("b", |r| r.out = Some(place.path("deployed")));
        assert_eq!(waits_for(&report), Vec::<&str>::new());
        assert!(conditions(&place.path("deployed/free5gc-smf"))[GATE]);
    }
    assert!(
        !place
            .render("b", |r| r.out = Some(place.path("deployed")))
            .is_changed()
    );
}

#[test]
fn a_claim_looks_up_the_address_of_another_package() {
    let Some(place) = Place::new("lookups between packages") else {
        return;
    };
    place.blueprint("upf", "fleet/upf");
    place.blueprint("smf", "fleet/smf");
    let claim = "apiVersion: ipam.resource.nephio.org/v1alpha1\nkind: IPClaim\nmetadata:\n  name: peer\n  annotations:\n    \
        nephio.org/action: get\n    config.kubernetes.io/local-config: \"true\"\nspec:\n  kind: network\n  networkInstance:\n    \
        name: vpc-internal\n  selector:\n    matchLabels:\n      nephio.org/address-family: ipv4\n      \
        nephio.org/nsn-name: upf-edge01-n4-ipv4\n";
    place.write("fleet/smf/peer.yaml", claim);
    place.render("fleet", |_| {});
    let upf = place.object("fleet/upf/ipclaim_upf-edge01-n4-ipv4.yaml");
    let wanted = upf["status"]["prefix"]
        .as_str()
        .unwrap()
        .replace("/24", "/32");
    assert_eq!(
        place.object("fleet/smf/peer.yaml")["status"]["prefix"],
        wanted
    );
    assert!(!place.render("fleet", |_| {}).is_changed());
}

#[test]
fn configinject_fn_finds_packages_below_its_own_and_in_its_configuration() {
    let Some(place) = Place::new("configinject-fn on the wire") else {
        return;
    };
    place.blueprint("upf", "fleet/free5gc-upf");
    place.blueprint("smf", "smf");
    place.render("fleet", |_| {});
    let read = |dir: &str, below: &str| -> Vec<Value> {
        let mut items = Vec::new();
        for name in place.files(dir, "") {
            for mut item in documents(&place.path(dir).join(&name)) {
                let path = format!("{below}{name}");
                item["metadata"]["annotations"]["internal.config.kubernetes.io/path"] = json!(path);
                items.push(item);
            }
        }
        items
    };
    let own = read("smf", "");
    let below = read("fleet/free5gc-upf", "free5gc-upf/");
    let config = json!({ "apiVersion": "v1", "kind": "List", "metadata": { "name": "published" },
        "items": read("fleet/free5gc-upf", "") });
    // In a configuration a package goes by its Kptfile's name.
    let mut renamed = config.clone();
    let kptfile = renamed["items"]
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .find(|i| i["kind"] == "Kptfile");
    kptfile.unwrap()["metadata"]["name"] = json!("free5gc-upf");
    let together: Vec<Value> = own.iter().chain(&below).cloned().collect();
    for (items, config, found) in [
        (&own, None, false),
        (&together, None, true),
        (&own, Some(&config), false),
        (&own, Some(&renamed), true),
    ] {
        let mut list = json!({ "apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList", "items": items });
        if let Some(config) = config {
            list["functionConfig"] = config.clone();
        }
        let call = |strict| Call {
            name: "configinject-fn",
            strict,
            ..Call::default()
        };
        let store = MemoryStore::new();
        let text = list.to_string();
        let answer = function_as(&call(false), text.as_bytes(), &store, Time(0)).unwrap();
        assert!(!answer.failed, "{:?}", answer.findings);
        assert_eq!(answer.findings.is_empty(), found, "{:?}", answer.findings);
        assert_eq!(answer.stdout.contains("smf-example-upf-edge01"), found);
        let file = mooring_krm::File::parse(answer.stdout.as_bytes()).unwrap();
        let items = file.documents()[0].value()["items"].as_array().unwrap();
        for item in items.iter().filter(|i| i["kind"] == "Config") {
            // It goes into a file beside the others, and what it carries says nothing of its own.
            let path = &item["metadata"]["annotations"]["internal.config.kubernetes.io/path"];
            assert_eq!(*path, "config_smf-example-upf-edge01.yaml");
            let inside = item["spec"]["config"].to_string();
            assert!(!inside.contains("internal.config"), "{inside}");
        }
        let strict = function_as(&call(true), text.as_bytes(), &store, Time(0)).unwrap();
        assert_eq!(strict.failed, !found);
    }
}
