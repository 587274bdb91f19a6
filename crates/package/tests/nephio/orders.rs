//! Any function twice is as good as once, and any order of them ends in the same package: for cluster names with
//! dashes, dots and digits, and from wherever an earlier run stopped.

use mooring_book::MemoryStore;
use serde_json::Value;

use super::{call, list, parsed};

const FUNCTIONS: [&str; 6] = [
    "nfdeploy-fn",
    "interface-fn",
    "dnn-fn",
    "ipam-fn",
    "vlan-fn",
    "nad-fn",
];

const PACKAGE: &str = r#"
apiVersion: kpt.dev/v1
kind: Kptfile
metadata: {name: upf}
---
apiVersion: infra.nephio.org/v1alpha1
kind: WorkloadCluster
metadata: {name: workload-cluster}
spec: {clusterName: "CLUSTER", cnis: [macvlan], masterInterface: eth1}
---
apiVersion: workload.nephio.org/v1alpha1
kind: NFDeployment
metadata: {name: upf-CLUSTER, namespace: core}
spec: {provider: upf.example.org}
---
apiVersion: req.nephio.org/v1alpha1
kind: Capacity
metadata:
  name: dataplane
  annotations: {specializer.nephio.org/owner: workload.nephio.org/v1alpha1.NFDeployment.upf-CLUSTER}
spec: {maxUplinkThroughput: 5G, maxDownlinkThroughput: 5G}
---
apiVersion: req.nephio.org/v1alpha1
kind: Interface
metadata:
  name: n3
  annotations:
    config.kubernetes.io/local-config: "true"
    specializer.nephio.org/owner: workload.nephio.org/v1alpha1.NFDeployment.upf-CLUSTER
    specializer.nephio.org/namespace: core
spec: {networkInstance: {name: vpc-ran}, cniType: macvlan, attachmentType: vlan, ipFamilyPolicy: dual-stack}
---
apiVersion: req.nephio.org/v1alpha1
kind: Interface
metadata:
  name: n4
  annotations:
    specializer.nephio.org/owner: workload.nephio.org/v1alpha1.NFDeployment.upf-CLUSTER
    specializer.nephio.org/namespace: core
spec: {networkInstance: {name: vpc-ran}, cniType: macvlan, attachmentType: none}
---
apiVersion: req.nephio.org/v1alpha1
kind: Interface
metadata:
  name: sbi
  annotations:
    specializer.nephio.org/owner: workload.nephio.org/v1alpha1.NFDeployment.upf-CLUSTER
    specializer.nephio.org/namespace: core
spec: {networkInstance: {name: default}}
---
apiVersion: req.nephio.org/v1alpha1
kind: DataNetwork
metadata:
  name: internet
  annotations: {specializer.nephio.org/owner: workload.nephio.org/v1alpha1.NFDeployment.upf-CLUSTER}
spec:
  networkInstance: {name: vpc-internet}
  pools: [{name: a, prefixLength: 24}, {name: b, prefixLength: 24}]
"#;

const POOLS: &str = r#"
apiVersion: ipam.resource.nephio.org/v1alpha1
kind: IPPrefix
metadata: {name: ran}
spec:
  kind: network
  networkInstance: {name: vpc-ran}
  prefix: 172.2.0.1/24
  labels: {nephio.org/cluster-name: "CLUSTER", nephio.org/gateway: "true"}
---
apiVersion: ipam.resource.nephio.org/v1alpha1
kind: IPPrefix
metadata: {name: ran6}
spec:
  kind: network
  networkInstance: {name: vpc-ran}
  prefix: fd00:2::1/64
  labels: {nephio.org/cluster-name: "CLUSTER", nephio.org/gateway: "true"}
---
apiVersion: ipam.resource.nephio.org/v1alpha1
kind: IPPrefix
metadata: {name: sessions}
spec:
  kind: pool
  networkInstance: {name: vpc-internet}
  prefix: 10.0.0.0/8
  labels: {nephio.org/cluster-name: "CLUSTER"}
"#;

/// A package while functions run over it.
struct World {
    text: String,
    store: MemoryStore,
}

impl World {
    fn new(cluster: &str) -> Self {
        let items = list::documents(&PACKAGE.replace("CLUSTER", cluster));
        let pools = POOLS.replace("CLUSTER", cluster);
        Self {
            text: list::with(items, Some(&pools)),
            store: MemoryStore::new(),
        }
    }

    /// Runs a function, and holds that a second time changes nothing.
    fn run(&mut self, function: &str) {
        let once = call(function, &self.text, &self.store);
        let twice = call(function, &once.stdout, &self.store);
        assert_eq!(
            parsed(&once.stdout),
            parsed(&twice.stdout),
            "{function} twice"
        );
        assert!(!once.failed, "{function}: {:?}", once.findings);
        self.text = once.stdout;
    }

    /// Runs these functions round by round until a round changes nothing.
    fn settle(&mut self, order: &[&str]) -> usize {
        for round in 0..10 {
            let before = self.text.clone();
            for function in order {
                self.run(function);
            }
            if before == self.text {
                return round;
            }
        }
        panic!("{order:?} never settles");
    }

    /// Who holds what.
    fn held(&self) -> Vec<String> {
        let leases = mooring_book::Store::leases(&self.store, &mooring_book::Filter::default());
        let shown = |l: &mooring_ipam::Lease| format!("{} {}", l.thing, l.holder.interface);
        leases.unwrap().iter().map(shown).collect()
    }

    /// The package, its conditions in order of their types: in which order they were made is the order of the functions.
    fn meaning(&self) -> Value {
        let mut value = parsed(&self.text);
        for item in value["items"].as_array_mut().unwrap() {
            if let Some(conditions) = item.pointer_mut("/status/conditions") {
                let conditions = conditions.as_array_mut().unwrap();
                conditions.sort_by_key(|c| c["type"].as_str().unwrap().to_owned());
            }
        }
        value
    }
}

/// All orders of `items`.
fn orders<'a>(items: &[&'a str]) -> Vec<Vec<&'a str>> {
    if items.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (at, first) in items.iter().enumerate() {
        let mut rest = items.to_vec();
        rest.remove(at);
        for mut order in orders(&rest) {
            order.insert(0, first);
            all.push(order);
        }
    }
    all
}

/// Compares as text: a difference is then a few lines.
#[track_caller]
fn same(left: &World, right: &World, what: &str) {
    let (left, right) = (left.meaning(), right.meaning());
    if left != right {
        let text = |v: &Value| mooring_krm::emit(v);
        panic!(
            "{what}\n{}",
            mooring_testkit::unified("package", &text(&left), &text(&right))
        );
    }
}

#[test]
fn any_order_ends_in_the_same_package() {
    let mut expected = World::new("edge01");
    expected.settle(&FUNCTIONS);
    // Every order of the four in the middle, with the others before, between and behind.
    for (nth, middle) in orders(&FUNCTIONS[1..5]).into_iter().enumerate() {
        let mut order = middle;
        order.insert(nth % 5, "nad-fn");
        order.insert(nth % 6, "nfdeploy-fn");
        let mut world = World::new("edge01");
        world.settle(&order);
        same(&expected, &world, &format!("{order:?}"));
    }
}

#[test]
fn a_settled_package_is_specialised_whatever_its_cluster_is_called() {
    for cluster in [
        "edge01",
        "edge-cluster-1",
        "edge.01",
        "7",
        "01-edge.north-2",
    ] {
        let mut world = World::new(cluster);
        world.settle(&FUNCTIONS);
        let value = world.meaning();
        let items = value["items"].as_array().unwrap();
        let named = |kind: &str, name: String| {
            let found = items
                .iter()
                .find(|i| i["kind"] == kind && i["metadata"]["name"] == *name);
            found
                .unwrap_or_else(|| panic!("{kind} {name} in {value:#}"))
                .clone()
        };
        let kptfile = named("Kptfile", "upf".to_owned());
        for condition in kptfile["status"]["conditions"].as_array().unwrap() {
            assert_eq!(condition["status"], "True", "{cluster}: {condition}");
        }
        let claim = named("IPClaim", format!("upf-{cluster}-n3-ipv4"));
        assert_eq!(claim["status"]["gateway"], "172.2.0.1");
        let nad = named("NetworkAttachmentDefinition", format!("upf-{cluster}-n3"));
        let config = nad["spec"]["config"].as_str().unwrap();
        assert!(config.contains("\"master\":\"eth1.2\""), "{config}");
        let deployment = named("NFDeployment", format!("upf-{cluster}"));
        let interfaces = deployment["spec"]["interfaces"].as_array().unwrap();
        assert_eq!(interfaces.len(), 2, "{cluster}: {deployment:#}");
        let pools = &deployment["spec"]["networkInstances"][0]["dataNetworks"][0]["pool"];
        assert_eq!(pools.as_array().unwrap().len(), 2);
    }
}

#[test]
fn a_run_that_stopped_anywhere_is_finished_by_the_next() {
    let mut whole = World::new("edge01");
    whole.settle(&FUNCTIONS);
    for stop in 0..=FUNCTIONS.len() {
        let mut world = World::new("edge01");
        for function in &FUNCTIONS[..stop] {
            world.run(function);
        }
        let back: Vec<&str> = FUNCTIONS.iter().rev().copied().collect();
        world.settle(&back);
        same(&whole, &world, &format!("stopped behind {stop}"));
    }
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

    /// A cluster's name: letters and digits, with dashes and dots between them.
    fn name(&mut self) -> String {
        const ENDS: &[u8] = b"ab019";
        const ALL: &[u8] = b"ab019-.";
        let mut name = String::new();
        for at in 0..=self.below(9) {
            let dotted = name.ends_with(['-', '.']);
            let from = if at == 0 || dotted { ENDS } else { ALL };
            name.push(char::from(from[self.below(from.len())]));
        }
        name.trim_end_matches(['-', '.']).to_owned()
    }

    fn order(&mut self) -> Vec<&'static str> {
        let mut order = FUNCTIONS.to_vec();
        for at in (1..order.len()).rev() {
            order.swap(at, self.below(at + 1));
        }
        order
    }
}

#[test]
fn any_name_any_beginning_and_any_order_end_alike() {
    let mut numbers = Numbers(5);
    for _ in 0..24 {
        let cluster = numbers.name();
        let mut expected = World::new(&cluster);
        expected.settle(&FUNCTIONS);
        let mut world = World::new(&cluster);
        let beginning: Vec<&str> = (0..numbers.below(10))
            .map(|_| FUNCTIONS[numbers.below(FUNCTIONS.len())])
            .collect();
        for function in &beginning {
            world.run(function);
        }
        let order = numbers.order();
        world.settle(&order);
        let what = format!("{cluster}: {beginning:?}, then {order:?}");
        same(&expected, &world, &what);
        assert_eq!(expected.held(), world.held(), "{what}");
    }
}

#[test]
fn a_removed_interface_gives_its_address_back_and_leaves_nothing() {
    let mut world = World::new("edge01");
    world.settle(&FUNCTIONS);
    let mut value = parsed(&world.text);
    let items = value["items"].as_array_mut().unwrap();
    items.retain(|i| !(i["kind"] == "Interface" && i["metadata"]["name"] == "n4"));
    world.text = mooring_krm::emit(&value);
    world.settle(&FUNCTIONS);
    let items = world.meaning()["items"].to_string();
    assert!(!items.contains("edge01-n4-ipv4"), "{items}");
    assert!(!items.contains("Interface.n4\""), "{items}");
    let held = mooring_book::Store::leases(&world.store, &mooring_book::Filter::default()).unwrap();
    assert!(
        held.iter()
            .all(|l| l.holder.interface != "upf-edge01-n4-ipv4")
    );
    assert!(
        held.iter()
            .any(|l| l.holder.interface == "upf-edge01-n3-ipv4")
    );
}

#[test]
fn a_cluster_that_is_missing_for_a_while_moves_no_address() {
    let mut world = World::new("edge01");
    world.settle(&FUNCTIONS);
    let before = world.meaning();
    let ready = world.text.clone();
    world.text = world
        .text
        .replace("clusterName: edge01", "clusterName: example");
    assert_ne!(world.text, ready);
    world.settle(&FUNCTIONS);
    world.text = world
        .text
        .replace("clusterName: example", "clusterName: edge01");
    world.settle(&FUNCTIONS);
    assert_eq!(world.meaning(), before);
}

#[test]
fn an_interface_that_cannot_be_made_for_a_while_moves_no_address() {
    let wrong: [fn(&mut Vec<Value>); 3] = [
        |items| items.retain(|i| i["kind"] != "WorkloadCluster"),
        |items| {
            edit(items, "WorkloadCluster", &|c| {
                c["spec"]["cnis"] = serde_json::json!(["sriov"]);
            });
        },
        |items| {
            edit(items, "Interface", &|i| {
                drop(i["spec"].as_object_mut().unwrap().remove("networkInstance"));
            });
        },
    ];
    for (nth, wrong) in wrong.into_iter().enumerate() {
        let mut world = World::new("edge01");
        world.settle(&FUNCTIONS);
        let (before, held) = (world.meaning(), world.held());
        let right = parsed(&world.text);
        let mut value = right.clone();
        wrong(value["items"].as_array_mut().unwrap());
        world.text = mooring_krm::emit(&value);
        world.settle(&FUNCTIONS);
        assert_eq!(world.held(), held, "while it is wrong: {nth}");
        assert_ne!(world.meaning(), before);
        // Corrected: what was edited is as it was.
        let mut value = parsed(&world.text);
        let items = value["items"].as_array_mut().unwrap();
        let edited = |i: &Value| i["kind"] == "WorkloadCluster" || i["kind"] == "Interface";
        for item in right["items"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|i| edited(i))
        {
            let same = |i: &Value| {
                i["kind"] == item["kind"] && i["metadata"]["name"] == item["metadata"]["name"]
            };
            match items.iter_mut().find(|i| same(i)) {
                Some(known) => known["spec"] = item["spec"].clone(),
                None => items.push(item.clone()),
            }
        }
        world.text = mooring_krm::emit(&value);
        world.settle(&FUNCTIONS);
        assert_eq!(world.held(), held, "{nth}");
        assert_eq!(world.meaning(), before, "{nth}");
    }
}

#[test]
fn an_interface_that_goes_while_it_is_wrong_gives_its_address_back() {
    let mut world = World::new("edge01");
    world.settle(&FUNCTIONS);
    let mut value = parsed(&world.text);
    let items = value["items"].as_array_mut().unwrap();
    edit(items, "Interface", &|i| {
        i["spec"]["cniType"] = serde_json::json!("sriov");
    });
    world.text = mooring_krm::emit(&value);
    world.settle(&FUNCTIONS);
    let mut value = parsed(&world.text);
    let items = value["items"].as_array_mut().unwrap();
    items.retain(|i| i["kind"] != "Interface");
    world.text = mooring_krm::emit(&value);
    world.settle(&FUNCTIONS);
    let addresses = world.held();
    assert!(
        addresses.iter().all(|a| !a.contains("172.2.0.")),
        "{addresses:?}"
    );
    assert!(!world.meaning()["items"].to_string().contains("Interface.n"));
}

/// Edits all objects of a kind.
fn edit(items: &mut [Value], kind: &str, change: &dyn Fn(&mut Value)) {
    items
        .iter_mut()
        .filter(|i| i["kind"] == kind)
        .for_each(change);
}

#[test]
fn a_claim_of_another_package_is_looked_up() {
    let mut world = World::new("edge01");
    world.settle(&FUNCTIONS);
    let asking = "
apiVersion: kpt.dev/v1
kind: Kptfile
metadata: {name: ueransim}
---
apiVersion: ipam.resource.nephio.org/v1alpha1
kind: IPClaim
metadata:
  name: upf
  annotations: {nephio.org/action: get}
spec:
  kind: network
  networkInstance: {name: vpc-ran}
  selector: {matchLabels: {nephio.org/address-family: ipv4, nephio.org/nsn-name: upf-edge01-n3-ipv4}}
";
    let asking = list::with(list::documents(asking), None);
    let answer = call("ipam-fn", &asking, &world.store);
    let items = parsed(&answer.stdout)["items"].to_string();
    assert!(items.contains("172.2.0.254/32"), "{items}");
}
