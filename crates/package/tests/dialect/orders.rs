//! Any order of functions, and any beginning, end with the same package.

use std::fs;

use mooring_api::Time;
use mooring_book::{MemoryStore, Store};
use mooring_package::function;
use serde_json::{Value, json};

use crate::place::{Place, conditions, documents, meaning};

const FUNCTIONS: [&str; 7] = [
    "nfdeploy-fn",
    "interface-fn",
    "dnn-fn",
    "nad-fn",
    "dnn-fn",
    "interface-fn",
    "nfdeploy-fn",
];

/// The blueprint with only these functions behind the helpers.
fn with_pipeline(place: &Place, functions: &[&str]) {
    let kptfile = place.path("upf/Kptfile");
    let text = fs::read_to_string(&kptfile).unwrap();
    let keep = |line: &&str| !line.contains("docker.io/nephio/");
    let mut lines: Vec<String> = text.lines().filter(keep).map(ToOwned::to_owned).collect();
    let last = lines
        .iter()
        .rposition(|l| l.contains("configPath"))
        .unwrap();
    for (nth, name) in functions.iter().enumerate() {
        lines.insert(
            last + 1 + nth,
            format!("    - image: docker.io/nephio/{name}:latest"),
        );
    }
    fs::write(&kptfile, lines.join("\n") + "\n").unwrap();
}

/// The same numbers every time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap() % n
    }
}

/// The published UPF has an Interface whose owner is another package's network function (a mistake of its author). Whether
/// that one has a condition depends on who ran last; nobody waits for it.
fn outcome(place: &Place) -> impl PartialEq + use<> {
    let (objects, mut conditions) = meaning(&place.path("upf"));
    conditions.remove("req.nephio.org/v1alpha1.Interface.sbi");
    assert!(conditions.values().all(|met| *met), "{conditions:?}");
    (objects, conditions)
}

#[test]
fn every_order_of_functions_ends_with_the_same_package() {
    let Some(place) = Place::new("any order of functions") else {
        return;
    };
    place.blueprint("upf", "upf");
    place.render("upf", |_| {});
    let expected = outcome(&place);
    let mut numbers = Numbers(1);
    for _ in 0..12 {
        let mut order = FUNCTIONS.to_vec();
        for at in (1..order.len()).rev() {
            order.swap(at, numbers.below(at + 1));
        }
        let Some(place) = Place::new("any order of functions") else {
            return;
        };
        place.blueprint("upf", "upf");
        with_pipeline(&place, &order);
        place.render("upf", |_| {});
        assert!(outcome(&place) == expected, "{order:?}");
        assert!(!place.render("upf", |_| {}).is_changed(), "{order:?}");
    }
}

#[test]
fn whatever_ran_before_the_whole_pipeline_ends_with_the_same_package() {
    let Some(place) = Place::new("after any partial run") else {
        return;
    };
    place.blueprint("upf", "upf");
    place.render("upf", |_| {});
    let expected = outcome(&place);
    for count in 0..FUNCTIONS.len() {
        for from in 0..=count {
            let Some(place) = Place::new("after any partial run") else {
                return;
            };
            place.blueprint("upf", "upf");
            // Not an empty one: that means the default.
            let part = &FUNCTIONS[from..=count];
            with_pipeline(&place, part);
            place.render("upf", |_| {});
            with_pipeline(&place, &FUNCTIONS);
            place.render("upf", |_| {});
            assert!(outcome(&place) == expected, "{part:?}");
        }
    }
}

#[test]
fn a_function_that_is_limited_to_some_objects_leaves_the_others_alone() {
    let Some(place) = Place::new("selectors of a pipeline") else {
        return;
    };
    place.blueprint("upf", "whole");
    place.render("whole", |_| {});
    // Selected one by one, everything that matters is seen, and the outcome is the same.
    place.blueprint("upf", "some");
    let selected = "- image: docker.io/nephio/interface-fn:latest\n      selectors:\n      - kind: Kptfile\n      \
        - apiVersion: req.nephio.org/v1alpha1\n      - kind: WorkloadCluster\n      - kind: IPClaim\n      - kind: VLANClaim\n      \
        - kind: NetworkAttachmentDefinition\n      exclude:\n      - {}\n      - kind: ConfigMap";
    let whole = "- image: docker.io/nephio/interface-fn:latest";
    place.edit("some/Kptfile", whole, selected);
    place.render("some", |_| {});
    let (mut objects, mut conditions) = meaning(&place.path("some"));
    // Its addresses are its own.
    let differs = |name: &String, _: &mut _| {
        !["claim_", "networkatt", "interface", "upfdep", "dnn"]
            .iter()
            .any(|s| name.contains(s))
    };
    let (mut wanted, mut met) = meaning(&place.path("whole"));
    assert!(objects.keys().eq(wanted.keys()), "{:?}", objects.keys());
    objects.retain(differs);
    wanted.retain(differs);
    assert_eq!(objects, wanted);
    conditions.remove("req.nephio.org/v1alpha1.Interface.sbi");
    met.remove("req.nephio.org/v1alpha1.Interface.sbi");
    assert_eq!(conditions, met);
    assert!(!place.render("some", |_| {}).is_changed());

    // Left out of the namespace, and of the claims.
    place.blueprint("upf", "less");
    place.edit(
        "less/Kptfile",
        "configPath: package-context.yaml",
        "configPath: package-context.yaml\n      exclude: [{kind: NFDeployment}]",
    );
    let selected = format!("{whole}\n      exclude:\n      - {{kind: Interface, name: n4}}");
    place.edit("less/Kptfile", whole, &selected);
    let before = place.object("less/upfdeployment.yaml");
    place.render("less", |_| {});
    let after = place.object("less/upfdeployment.yaml");
    assert_eq!(
        before["metadata"]["namespace"],
        after["metadata"]["namespace"]
    );
    assert_eq!(
        place
            .files("less", "ipclaim_")
            .iter()
            .filter(|f| f.contains("-n4-"))
            .count(),
        0
    );
    assert_eq!(
        place
            .files("less", "ipclaim_")
            .iter()
            .filter(|f| f.contains("-n3-"))
            .count(),
        1
    );
    assert!(!place.render("less", |_| {}).is_changed());
}

#[test]
fn what_a_render_cannot_limit_is_refused() {
    let Some(place) = Place::new("selectors that cannot be honoured") else {
        return;
    };
    for function in ["ipam-fn", "vlan-fn", "nad-fn"] {
        place.blueprint("upf", "upf");
        let limited = format!(
            "- image: docker.io/nephio/{function}:latest\n      selectors: [{{kind: Interface}}]"
        );
        place.edit(
            "upf/Kptfile",
            "- image: docker.io/nephio/nad-fn:latest",
            &limited,
        );
        let report = place.try_render("upf", |_| {});
        let found = report.findings.iter().find(|f| f.is_error()).unwrap();
        assert_eq!(found.code, mooring_api::Code::UnknownFunction, "{found:?}");
        assert_eq!(found.field.as_deref(), Some("pipeline.mutators[6]"));
    }
}

/// The blueprint as a list, its cluster filled in, and the Networks beside it.
fn list(place: &Place, cluster: &str) -> Value {
    place.blueprint("upf", "upf");
    let mut items = Vec::new();
    for name in place.files("upf", "") {
        for mut item in documents(&place.path("upf").join(&name)) {
            if item["kind"] == "WorkloadCluster" {
                item["spec"] = json!({ "clusterName": cluster, "cnis": ["macvlan"], "masterInterface": "eth1" });
            }
            items.push(item);
        }
    }
    json!({ "apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList", "items": items })
}

fn pass(list: &Value, names: &[&str], store: &dyn Store) -> Value {
    let mut list = list.clone();
    for name in names {
        let config = match *name {
            "apply-replacements" => "apply-replacements-owner",
            "set-namespace" => "kptfile.kpt.dev",
            _ => "",
        };
        let kind = if config == "kptfile.kpt.dev" {
            "ConfigMap"
        } else {
            "ApplyReplacements"
        };
        let named = if config.starts_with("apply") {
            "propagate-name"
        } else {
            config
        };
        let items = list["items"].as_array().unwrap();
        let found = items
            .iter()
            .find(|i| i["kind"] == kind && i["metadata"]["name"] == named);
        let found = found.filter(|_| !config.is_empty()).cloned();
        match found {
            Some(found) => list["functionConfig"] = found,
            None => drop(list.as_object_mut().unwrap().remove("functionConfig")),
        }
        let answer = function(name, list.to_string().as_bytes(), store, Time(0)).unwrap();
        assert!(!answer.failed, "{name}: {:?}", answer.findings);
        let file = mooring_krm::File::parse(answer.stdout.as_bytes()).unwrap();
        list = file.documents()[0].value().clone();
        list.as_object_mut().unwrap().remove("results");
    }
    list
}

fn kind<'l>(list: &'l Value, kind: &str) -> Vec<&'l Value> {
    let items = list["items"].as_array().unwrap();
    items.iter().filter(|i| i["kind"] == kind).collect()
}

/// The three orders of the published pipeline test, our helpers in front.
const ORDERS: [&[&str]; 3] = [
    &[
        "nfdeploy-fn",
        "interface-fn",
        "dnn-fn",
        "ipam-fn",
        "vlan-fn",
        "nad-fn",
        "interface-fn",
        "dnn-fn",
        "nfdeploy-fn",
    ],
    &[
        "nfdeploy-fn",
        "interface-fn",
        "nad-fn",
        "interface-fn",
        "dnn-fn",
        "nfdeploy-fn",
        "ipam-fn",
        "vlan-fn",
        "nad-fn",
        "interface-fn",
        "dnn-fn",
        "nfdeploy-fn",
    ],
    &[
        "nfdeploy-fn",
        "interface-fn",
        "nad-fn",
        "interface-fn",
        "dnn-fn",
        "nfdeploy-fn",
        "ipam-fn",
        "nad-fn",
        "interface-fn",
        "dnn-fn",
        "nfdeploy-fn",
        "vlan-fn",
        "nad-fn",
        "interface-fn",
        "dnn-fn",
        "nfdeploy-fn",
    ],
];

#[test]
fn the_three_published_orders_as_functions_agree_with_each_other_and_with_render() {
    for cluster in ["edge01", "edge-cluster-1", "1.2-b.c"] {
        let Some(place) = Place::new("the published orders") else {
            return;
        };
        place.cluster(cluster);
        agree(&place, cluster);
    }
}

fn agree(place: &Place, cluster: &str) {
    let start = list(place, cluster);
    place.render("upf", |r| r.cluster = Some(cluster.to_owned()));
    let rendered = place.object("upf/upfdeployment.yaml");
    let stated = conditions(&place.path("upf"));
    for order in ORDERS {
        let store = MemoryStore::new();
        let helped = pass(&start, &["apply-replacements", "set-namespace"], &store);
        let done = pass(&helped, order, &store);
        assert_eq!(kind(&done, "NFDeployment"), [&rendered], "{order:?}");
        assert_eq!(kind(&done, "NetworkAttachmentDefinition").len(), 3);
        let kptfile = kind(&done, "Kptfile")[0];
        let all = mooring_krm::kptfile::conditions(kptfile);
        let met = all.iter().filter(|c| stated.get(&c.kind) == Some(&true));
        assert!(
            met.clone().all(|c| c.status == mooring_api::Status::True),
            "{all:?}"
        );
        assert_eq!(
            met.count() + 1,
            stated.len(),
            "the injection's condition is not a function's"
        );
        // Once more changes nothing, helpers included.
        let again = pass(&done, &["apply-replacements", "set-namespace"], &store);
        assert_eq!(
            pass(&again, order, &store)["items"],
            done["items"],
            "{order:?}"
        );
    }
}

#[test]
fn a_placeholder_cluster_gives_nothing_but_the_reason() {
    let Some(place) = Place::new("the placeholder cluster") else {
        return;
    };
    let start = list(&place, "example");
    let store = MemoryStore::new();
    let done = pass(&start, ORDERS[0], &store);
    for made in ["IPClaim", "VLANClaim", "NetworkAttachmentDefinition"] {
        assert_eq!(kind(&done, made).len(), 0, "{made}");
    }
    let kptfile = kind(&done, "Kptfile")[0];
    let gate =
        mooring_krm::kptfile::condition(kptfile, "nephio.org.Specializer.specialize").unwrap();
    assert!(gate.message.contains("ClusterName"), "{gate:?}");
}
