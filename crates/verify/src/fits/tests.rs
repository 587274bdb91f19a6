//! Every branch of the decision, and the facts that lead there.

use mooring_api::ObjectRef;
use serde_json::{Value, json};

use super::*;
use crate::input::{Fleet, Input, Origin};

/// Clusters, and words: `shared`, `upf`, `many`, `moves`, `external`, `idle`.
fn given(clusters: usize, words: &str) -> Facts {
    let has = |word: &str| words.split(' ').any(|w| w == word);
    let name = |word: &str, name: &str| has(word).then(|| name.to_owned());
    Facts {
        network: "n3".into(),
        clusters: (0..clusters).map(|n| format!("c{n}")).collect(),
        shared_subnet: name("shared", "10.0.0.0/24"),
        workloads: usize::from(!has("idle")),
        upf: name("upf", "Deployment/upf"),
        many: name("many", "DaemonSet/sim"),
        moves: has("moves"),
        external: name("external", "infoblox"),
        now: std::collections::BTreeSet::new(),
    }
}

#[test]
fn every_row_of_the_table() {
    use Solution::*;
    let rows = [
        (1, "external", External, "external"),
        (2, "external upf many", External, "external"),
        (1, "upf", Declarative, "static"),
        (2, "upf shared moves", Declarative, "static"),
        (2, "upf many shared moves", Declarative, "static"),
        (1, "idle", Declarative, "static"),
        (1, "", Declarative, "static"),
        (3, "moves shared", Declarative, "static"),
        (1, "many moves", SharedState, "whereabouts"),
        (1, "many", Partitioned, "host-local"),
        (2, "many moves", SubnetPerCluster, "whereabouts"),
        (2, "many", SubnetPerCluster, "host-local"),
        (2, "many shared moves", Partitioned, "whereabouts"),
        (2, "many shared", Partitioned, "host-local"),
    ];
    let mut met = std::collections::BTreeSet::new();
    for (clusters, words, solution, flavour) in rows {
        let advice = advise(&given(clusters, words));
        assert_eq!(advice.solution, solution, "{clusters} {words}");
        let first = format!("mooring.dev/ipam-flavour: {flavour}");
        assert_eq!(advice.write.first(), Some(&first), "{clusters} {words}");
        assert!(!advice.because.is_empty(), "{clusters} {words}: no reason");
        assert_eq!(advice.instead_of.len(), 4);
        for other in &advice.instead_of {
            assert_ne!(
                other.why, "it is the one that was chosen",
                "{clusters} {words}: {other:?}"
            );
        }
        met.insert(solution);
    }
    assert_eq!(met.len(), 5, "a solution was never chosen");
}

#[test]
fn every_reason_names_its_fact() {
    let said = |clusters, words| advise(&given(clusters, words)).because.join("; ");
    assert!(said(1, "upf").contains("Deployment/upf is a UPF"));
    assert!(said(1, "upf many").contains("an Interface of its own"));
    assert!(said(1, "external upf").contains("ask infoblox for a fixed address"));
    assert!(said(1, "idle").contains("nothing here uses it yet"));
    assert!(said(3, "moves").contains("to any node; 3 clusters are on it"));
    assert!(said(2, "many shared").contains("2 clusters share 10.0.0.0/24"));
    assert!(said(2, "many moves").contains("have a subnet each"));
    assert!(said(1, "many").contains("that node's own record is enough"));
}

struct Doc(Origin, Value);

fn doc(cluster: &str, package: &str, value: Value) -> Doc {
    let text = |path: &str| value.pointer(path).and_then(Value::as_str).unwrap_or("");
    let object = ObjectRef::new(text("/apiVersion"), text("/kind"), text("/metadata/name"));
    let origin = Origin {
        cluster: cluster.into(),
        package: package.into(),
        file: String::new(),
        object,
    };
    Doc(origin, value)
}

fn nad(cluster: &str, name: &str, ipam: &Value) -> Doc {
    let config = json!({"type": "macvlan", "master": "eth1", "ipam": ipam}).to_string();
    let value = json!({
        "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
        "metadata": {"name": name}, "spec": {"config": config}
    });
    doc(cluster, "", value)
}

fn workload(cluster: &str, kind: &str, name: &str, networks: &str, pod: &Value) -> Doc {
    let value = json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"template": {
            "metadata": {"annotations": {"k8s.v1.cni.cncf.io/networks": networks}}, "spec": pod
        }}
    });
    doc(cluster, "", value)
}

fn told(docs: &[Doc]) -> Vec<Facts> {
    let input = |Doc(origin, value): &'_ Doc| (origin.clone(), value.clone());
    let kept: Vec<(Origin, Value)> = docs.iter().map(input).collect();
    let objects = kept.iter().map(|(origin, value)| Input {
        origin: origin.clone(),
        scope: None,
        value,
    });
    facts(&Fleet {
        objects: objects.collect(),
        ..Fleet::default()
    })
}

#[test]
fn facts_come_from_nads_and_their_users() {
    let pool = |subnet: &str| json!({"type": "whereabouts", "range": subnet});
    let free = json!({});
    let pinned = json!({"nodeSelector": {"kubernetes.io/hostname": "node-1"}});
    let facts = told(&[
        nad("ran", "sim", &pool("10.0.0.0/24")),
        nad("core", "sim", &pool("10.0.0.0/24")),
        nad("core", "n3", &json!({"type": "static"})),
        workload("ran", "DaemonSet", "sim", "sim", &free),
        workload(
            "core",
            "Deployment",
            "upf",
            r#"[{"name": "n3", "ips": ["10.3.0.5/24"]}]"#,
            &pinned,
        ),
    ]);
    assert_eq!(facts.len(), 2, "{facts:#?}");
    let (sim, n3) = (&facts[0], &facts[1]);
    assert_eq!(sim.network, "10.0.0.0/24");
    assert_eq!(sim.clusters.len(), 2);
    assert_eq!(sim.shared_subnet.as_deref(), Some("10.0.0.0/24"));
    assert_eq!(sim.many.as_deref(), Some("DaemonSet/sim"));
    assert!(sim.moves && sim.upf.is_none());
    assert_eq!(n3.network, "10.3.0.0/24");
    assert_eq!(n3.upf.as_deref(), Some("Deployment/upf"));
    assert!(!n3.moves && n3.many.is_none());
    assert_eq!(advise(n3).kept, Some(true));
    assert_eq!(advise(sim).kept, Some(true), "ranges are another question");
}

#[test]
fn an_unknown_plugin_is_an_external_system() {
    let facts = told(&[nad(
        "core",
        "n2",
        &json!({"type": "infoblox", "network": "192.168.100.0/24"}),
    )]);
    assert_eq!(facts[0].network, "192.168.100.0/24");
    let advice = advise(&facts[0]);
    assert_eq!(advice.solution, Solution::External);
    assert_eq!(advice.kept, Some(true));
}

#[test]
fn a_package_that_nobody_rendered_has_facts_too() {
    let interface = json!({
        "apiVersion": "req.nephio.org/v1alpha1", "kind": "Interface", "metadata": {"name": "n3"},
        "spec": {"networkInstance": {"name": "vpc-n3"}, "cniType": "macvlan"}
    });
    let provider = json!({
        "apiVersion": "workload.nephio.org/v1alpha1", "kind": "NFDeployment", "metadata": {"name": "up"},
        "spec": {"provider": "upf.free5gc.io"}
    });
    let scaled = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "gnb"},
        "spec": {"replicas": 3, "template": {"spec": {}}}
    });
    let other = doc("edge", "elsewhere", scaled.clone());
    let facts = told(&[
        doc("edge", "upf", interface.clone()),
        doc("edge", "upf", provider),
        other,
    ]);
    assert_eq!(facts.len(), 1, "{facts:#?}");
    assert_eq!(facts[0].network, "vpc-n3");
    assert_eq!(facts[0].upf.as_deref(), Some("NFDeployment/up"));
    assert_eq!(
        facts[0].many, None,
        "another package's workload is not its own"
    );
    assert_eq!(advise(&facts[0]).kept, None, "there is nothing yet");

    let facts = told(&[doc("edge", "gnb", interface), doc("edge", "gnb", scaled)]);
    assert_eq!(facts[0].many.as_deref(), Some("Deployment/gnb"));
    assert_eq!(advise(&facts[0]).solution, Solution::SharedState);
}
