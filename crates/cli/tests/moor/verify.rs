//! `moor verify`: packages, plain manifests, stdin, CNI files; exit codes, places, forms of output.

use std::fs;
use std::path::Path;

use mooring_testkit::hash_tree;
use serde_json::Value;
use snapbox::str;

use crate::{fresh, moor, stdout};

/// A NAD whose line 12 carries the address; a comment stands before it, and another document.
fn nad(name: &str, address: &str) -> String {
    format!(
        "# first comes something else\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n---\n\
         apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\nmetadata:\n  name: {name}\nspec:\n  \
         config: '{{\"cniVersion\": \"0.3.1\", \"type\": \"macvlan\", \"master\": \"eth1\", \"ipam\": {{\"type\": \"static\", \
         \"addresses\": [{{\"address\": \"{address}/24\"}}]}}}}'\n"
    )
}

fn write(dir: &Path, path: &str, text: &str) {
    let path = dir.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// What a run said on stderr, and how it ended.
fn said(dir: &Path, arguments: &[&str]) -> (String, i32) {
    let output = moor(dir).arg("verify").args(arguments).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    (text, output.status.code().unwrap())
}

#[test]
fn a_rendered_fleet_has_no_address_twice_and_verify_writes_nothing() {
    let dir = fresh();
    moor(dir.path()).arg("demo").assert().code(0);
    let before = hash_tree(dir.path());
    let run = moor(dir.path())
        .args(["verify", "moor-demo", "--mgmt", "moor-demo/.inputs/mgmt"])
        .assert()
        .code(0)
        .stdout_eq(str![[r#"
CLUSTER         PACKAGES  OBJECTS  ERRORS  WARNINGS
edge-cluster-1         1       10       0         0
my-core                2       13       0         0
my-ran                 1        8       0         0

"#]]);
    let said = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(
        said.ends_with(
            "checked 7 addresses of 4 packages in 3 clusters: no address is used twice\n"
        ),
        "{said}"
    );
    assert_eq!(hash_tree(dir.path()), before);
}

#[test]
fn an_address_of_two_clusters_is_an_error_with_file_and_line() {
    let dir = fresh();
    write(dir.path(), "all/ran/nads/n2.yaml", &nad("n2", "10.0.0.5"));
    write(dir.path(), "all/core/n2.yaml", &nad("n2", "10.0.0.5"));
    let (text, code) = said(dir.path(), &["all"]);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("error[DuplicateAddress]: 10.0.0.5 is used twice"),
        "{text}"
    );
    assert!(text.contains("--> all/ran/nads/n2.yaml:12:11"), "{text}");
    assert!(text.contains("cluster core, all/core/n2.yaml"), "{text}");
    assert!(
        text.contains("checked 1 address of 4 objects in 2 clusters"),
        "{text}"
    );
}

#[test]
fn a_workload_cluster_decides_before_a_directory_and_the_user_before_both() {
    let dir = fresh();
    write(dir.path(), "a/n2.yaml", &nad("n2", "10.0.0.5"));
    write(dir.path(), "b/n2.yaml", &nad("n2", "10.0.0.6"));
    let cluster = "apiVersion: infra.nephio.org/v1alpha1\nkind: WorkloadCluster\nmetadata:\n  name: edge\nspec:\n  \
                   clusterName: edge\n";
    write(dir.path(), "b/cluster.yaml", cluster);
    let names = |arguments: &[&str]| -> Vec<String> {
        let (text, _) = stdout(
            moor(dir.path())
                .arg("verify")
                .args(arguments)
                .args(["-o", "json"]),
        );
        let value: Value = serde_json::from_str(&text).unwrap();
        let clusters = value["perCluster"].as_array().unwrap().iter();
        clusters
            .map(|c| c["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(&["a", "b"]), ["a", "edge"]);
    assert_eq!(names(&["x=a", "y=b"]), ["x", "y"]);
    assert_eq!(names(&["a/n2.yaml"]), ["n2"]);
    assert_eq!(names(&["a/n2.yaml", "b/n2.yaml"]), ["a", "b"]);
}

#[test]
fn one_object_twice_in_a_cluster_is_a_warning_because_it_may_be_two_clusters() {
    let dir = fresh();
    write(dir.path(), "dumps/a.yaml", &nad("n2", "10.0.0.5"));
    write(dir.path(), "dumps/b.yaml", &nad("n2", "10.0.0.5"));
    let (text, code) = said(dir.path(), &["dumps"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("warning[DuplicateObject]"), "{text}");
    assert!(text.contains("both are taken for cluster dumps"), "{text}");
    assert!(text.contains("CLUSTER=PATH"), "{text}");
    let (text, code) = said(dir.path(), &["dumps", "--strict"]);
    assert_eq!(code, 1, "{text}");
    let (text, code) = said(dir.path(), &["a=dumps/a.yaml", "b=dumps/b.yaml"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("error[DuplicateAddress]"), "{text}");
}

#[test]
fn stdin_may_be_a_list_of_a_cluster_and_points_into_its_items() {
    let dir = fresh();
    write(dir.path(), "core/n2.yaml", &nad("n2", "10.0.0.5"));
    let list = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: x\n\
        - apiVersion: k8s.cni.cncf.io/v1\n  kind: NetworkAttachmentDefinition\n  metadata:\n    name: n2\n    namespace: ran\n  spec:\n    \
        config: '{\"cniVersion\": \"0.3.1\", \"type\": \"macvlan\", \"ipam\": {\"type\": \"static\", \"addresses\": [{\"address\": \"10.0.0.5/24\"}]}}'\n";
    let run = moor(dir.path())
        .args(["verify", "core", "ran=-"])
        .stdin(list)
        .assert()
        .code(1);
    let said = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(said.contains("--> stdin:14:13"), "{said}");
    assert!(said.contains("cluster ran, stdin"), "{said}");
    moor(dir.path())
        .args(["verify", "-", "ran=-"])
        .stdin(list)
        .assert()
        .code(2)
        .stdout_eq("");
}

#[test]
fn strict_refuses_a_proof_of_nothing() {
    let dir = fresh();
    write(
        dir.path(),
        "a/x.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n",
    );
    let (text, code) = said(dir.path(), &["a"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("nothing is proven"), "{text}");
    assert_eq!(said(dir.path(), &["a", "--strict"]).1, 1);
    fs::create_dir(dir.path().join("empty")).unwrap();
    let (text, code) = said(dir.path(), &["empty"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("error[PackageMissing]"), "{text}");
}

#[test]
fn isolated_instances_are_networks_of_their_own_only_when_the_management_side_says_so() {
    let dir = fresh();
    let instance = |name: &str| {
        format!(
            "apiVersion: ipam.resource.nephio.org/v1alpha1\nkind: NetworkInstance\nmetadata:\n  name: {name}\n  annotations:\n    \
             mooring.dev/isolated: \"true\"\nspec:\n  prefixes:\n  - prefix: 10.0.0.0/24\n"
        )
    };
    write(dir.path(), "mgmt/red.yaml", &instance("red"));
    write(dir.path(), "mgmt/blue.yaml", &instance("blue"));
    for (package, network) in [("a", "red"), ("b", "blue")] {
        write(
            dir.path(),
            &format!("all/edge/{package}/Kptfile"),
            &format!("apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: {package}\n"),
        );
        write(
            dir.path(),
            &format!("all/edge/{package}/interface.yaml"),
            &format!(
                "apiVersion: req.nephio.org/v1alpha1\nkind: Interface\nmetadata:\n  name: n2\n  annotations:\n    \
                 config.kubernetes.io/local-config: \"true\"\nspec:\n  networkInstance:\n    name: {network}\n"
            ),
        );
        let owned = nad("n2", "10.0.0.5").replace(
            "kind: NetworkAttachmentDefinition\nmetadata:\n",
            "kind: NetworkAttachmentDefinition\nmetadata:\n  annotations:\n    mooring.dev/owned-by: Interface/n2\n",
        );
        write(dir.path(), &format!("all/edge/{package}/nad.yaml"), &owned);
    }
    let (text, code) = said(dir.path(), &["all"]);
    assert_eq!(code, 1, "{text}");
    let (text, code) = said(dir.path(), &["all", "--mgmt", "mgmt"]);
    assert_eq!(code, 0, "{text}");
    assert!(
        text.contains("checked 2 addresses of 2 packages in 1 cluster:"),
        "{text}"
    );
}

#[test]
fn what_the_book_keeps_for_a_router_is_taken() {
    let dir = fresh();
    moor(dir.path()).arg("demo").assert().code(0);
    let book = "moor-demo/.moor/book.redb";
    let claim = [
        "claim",
        "leaf-1",
        "--network",
        "n2-network",
        "--address",
        "192.168.100.60",
        "--mgmt",
        "moor-demo/.inputs/mgmt",
        "--book",
        book,
    ];
    moor(dir.path()).args(claim).assert().code(0);
    write(dir.path(), "lab/n2.yaml", &nad("n2", "192.168.100.60"));
    assert_eq!(said(dir.path(), &["lab"]).1, 0);
    let (text, code) = said(dir.path(), &["lab", "--book", book]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("192.168.100.60 is used twice"), "{text}");
    assert!(text.contains("Reservation/leaf-1"), "{text}");
    // What packages hold stands in the packages, and is no second use.
    let (text, code) = said(dir.path(), &["moor-demo", "--book", book]);
    assert_eq!(code, 0, "{text}");
    assert_eq!(said(dir.path(), &["lab", "--book", "nowhere"]).1, 2);
}

#[test]
fn a_meta_plugin_that_sorts_second_is_found_in_a_directory_named_net_d() {
    let dir = fresh();
    let multus = "{\"cniVersion\": \"0.3.1\", \"type\": \"multus\", \"name\": \"m\"}";
    let calico =
        "{\"cniVersion\": \"0.3.1\", \"name\": \"k8s\", \"plugins\": [{\"type\": \"calico\"}]}";
    write(
        dir.path(),
        "all/edge/nodes/n1/etc/cni/net.d/20-multus.conf",
        multus,
    );
    write(
        dir.path(),
        "all/edge/nodes/n1/etc/cni/net.d/10-calico.conflist",
        calico,
    );
    write(
        dir.path(),
        "all/edge/nodes/n2/etc/cni/net.d/00-multus.conf",
        multus,
    );
    write(
        dir.path(),
        "all/edge/nodes/n2/etc/cni/net.d/10-calico.conflist",
        calico,
    );
    // Not the runtime's: another directory.
    write(dir.path(), "all/edge/nodes/n2/etc/old/00-a.conf", calico);
    let (text, code) = said(dir.path(), &["all"]);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("error[MetaPluginUnused]: 20-multus.conf is never used on n1"),
        "{text}"
    );
    assert!(
        text.contains("--> all/edge/nodes/n1/etc/cni/net.d/20-multus.conf:1"),
        "{text}"
    );
    assert_eq!(text.matches("error[").count(), 1, "{text}");
}

#[test]
fn sarif_has_a_rule_per_code_and_a_place_per_result() {
    let dir = fresh();
    write(dir.path(), "all/ran/n2.yaml", &nad("n2", "10.0.0.5"));
    write(dir.path(), "all/core/n2.yaml", &nad("n2", "10.0.0.5"));
    let (text, code) = stdout(moor(dir.path()).args(["verify", "all", "-o", "sarif"]));
    assert_eq!(code, 1);
    let log: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    let rule = &run["tool"]["driver"]["rules"][0];
    assert_eq!(rule["id"], "DuplicateAddress");
    assert!(
        rule["help"]["text"].as_str().unwrap().contains("address"),
        "{rule}"
    );
    let place = &run["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "all/ran/n2.yaml");
    assert_eq!(place["region"]["startLine"], 12);
}

#[test]
fn yaml_and_json_say_the_same_and_a_file_under_two_paths_is_read_once() {
    let dir = fresh();
    write(dir.path(), "all/ran/n2.yaml", &nad("n2", "10.0.0.5"));
    let (json, _) = stdout(moor(dir.path()).args(["verify", "all", "-o", "json"]));
    let (yaml, _) = stdout(moor(dir.path()).args(["verify", "all", "-o", "yaml"]));
    let (twice, code) = stdout(moor(dir.path()).args(["verify", "all", "all/ran", "-o", "json"]));
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json, serde_saphyr::from_str::<Value>(&yaml).unwrap());
    assert_eq!(json, serde_json::from_str::<Value>(&twice).unwrap());
    assert_eq!((json["addresses"].as_u64(), code), (Some(1), 0));
}

#[test]
fn what_cannot_be_parsed_is_an_error_and_the_rest_is_judged_all_the_same() {
    let dir = fresh();
    write(dir.path(), "all/ran/n2.yaml", &nad("n2", "10.0.0.5"));
    write(dir.path(), "all/core/n2.yaml", &nad("n2", "10.0.0.5"));
    write(dir.path(), "all/core/broken.yaml", "a: [1\n---\nb: }\n");
    let (text, code) = said(dir.path(), &["all"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("error[YamlInvalid]"), "{text}");
    assert!(text.contains("error[DuplicateAddress]"), "{text}");
}

#[test]
fn two_copies_of_a_package_in_one_cluster_are_two_users() {
    let dir = fresh();
    for copy in ["gnb", "gnb-copy"] {
        let at = |name: &str| format!("all/edge/{copy}/{name}");
        let kptfile = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: gnb\n";
        write(dir.path(), &at("Kptfile"), kptfile);
        write(dir.path(), &at("n2.yaml"), &nad("n2", "10.0.0.5"));
    }
    let (text, code) = said(dir.path(), &["all"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("package all/edge/gnb-copy"), "{text}");
}

#[test]
fn the_networks_of_a_cluster_are_known_from_the_config_map_that_kubeadm_leaves() {
    let dir = fresh();
    let config = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: kubeadm-config\n  namespace: kube-system\ndata:\n  \
                  ClusterConfiguration: |\n    apiVersion: kubeadm.k8s.io/v1beta3\n    kind: ClusterConfiguration\n    \
                  clusterName: kubernetes\n    networking:\n      podSubnet: 10.244.0.0/16\n      serviceSubnet: 10.96.0.0/12\n";
    write(dir.path(), "edge/kubeadm.yaml", config);
    write(dir.path(), "edge/n2.yaml", &nad("n2", "10.0.0.5"));
    let (text, code) = said(dir.path(), &["edge"]);
    assert_eq!(code, 0, "{text}");
    assert!(!text.contains("ClusterNetworksUnknown"), "{text}");
    assert!(
        text.contains("of 3 objects in 1 cluster"),
        "what stands inside is not counted: {text}"
    );
    write(dir.path(), "edge/n3.yaml", &nad("n3", "10.100.0.5"));
    let (text, code) = said(dir.path(), &["edge"]);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("10.100.0.5 meets 10.96.0.0/12, the service network of cluster edge"),
        "{text}"
    );
    write(
        dir.path(),
        "edge/kubeadm.yaml",
        &config.replace("kubeadm-config", "other"),
    );
    let (text, code) = said(dir.path(), &["edge"]);
    assert_eq!(code, 0, "{text}");
    assert!(
        text.contains("info[ClusterNetworksUnknown]: the pod and service networks of cluster edge"),
        "a missing source is said: {text}"
    );
}
