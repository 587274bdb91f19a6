//! Which cluster files are taken for.
#![expect(clippy::disallowed_methods, reason = "a test makes its own inputs")]

use std::fs;

use mooring_api::Family;
use mooring_ipam::{Holder, InstanceKey, Thing};

use super::*;

const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n";
const KPTFILE: &str = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: p\n";
const POOL: &str =
    "apiVersion: ipam.resource.nephio.org/v1alpha1\nkind: IPPrefix\nmetadata:\n  name: p\n";

fn cluster(name: &str) -> String {
    format!(
        "---\napiVersion: infra.nephio.org/v1alpha1\nkind: WorkloadCluster\nmetadata:\n  name: {name}\n"
    )
}

/// Cluster, packages and objects, of a tree that is named `all`.
fn seen(files: &[(&str, &str)], mgmt: Option<&str>) -> Vec<(String, usize, usize)> {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("all");
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let mgmt = mgmt.map(|m| root.join(m));
    let survey = Survey::read(&[Source::path(&root)], mgmt.as_deref());
    assert_eq!(survey.findings(), []);
    let verified = survey.verify();
    let clusters = verified.per_cluster.into_iter();
    clusters.map(|c| (c.name, c.packages, c.objects)).collect()
}

fn is(name: &str, packages: usize, objects: usize) -> (String, usize, usize) {
    (name.to_owned(), packages, objects)
}

#[test]
fn plain_manifests_are_of_their_first_directory_else_of_the_path() {
    let files = [("a/x/y.yaml", CONFIG_MAP), ("b.yaml", CONFIG_MAP)];
    assert_eq!(seen(&files, None), [is("a", 0, 1), is("all", 0, 1)]);
}

#[test]
fn a_cluster_directly_in_the_path_speaks_for_all_below_that_has_none() {
    let root = format!("{CONFIG_MAP}{}", cluster("edge"));
    let own = format!("{CONFIG_MAP}{}", cluster("core"));
    let files = [
        ("root.yaml", root.as_str()),
        ("pods/y.yaml", CONFIG_MAP),
        ("gnb/Kptfile", KPTFILE),
        ("gnb/y.yaml", CONFIG_MAP),
        ("other/y.yaml", &own),
    ];
    assert_eq!(seen(&files, None), [is("core", 0, 2), is("edge", 1, 4)]);
}

#[test]
fn a_package_inside_another_is_of_the_same_cluster() {
    let own = format!("{CONFIG_MAP}{}", cluster("edge"));
    let files = [
        ("gnb/Kptfile", KPTFILE),
        ("gnb/y.yaml", own.as_str()),
        ("gnb/du/Kptfile", KPTFILE),
        ("gnb/du/y.yaml", CONFIG_MAP),
        ("amf/Kptfile", KPTFILE),
        ("amf/y.yaml", CONFIG_MAP),
        ("core/upf/Kptfile", KPTFILE),
    ];
    let expected = [is("all", 1, 1), is("core", 1, 0), is("edge", 2, 3)];
    assert_eq!(seen(&files, None), expected);
}

#[test]
fn what_only_describes_a_site_is_no_cluster() {
    let clusters = format!("{}{}", cluster("a"), cluster("b"));
    let files = [
        ("site/clusters.yaml", clusters.as_str()),
        ("pools/pool.yaml", POOL),
        ("a/y.yaml", CONFIG_MAP),
    ];
    assert_eq!(seen(&files, None), [is("a", 0, 1)]);
}

#[test]
fn the_management_directory_may_lie_below_the_path() {
    let files = [("mgmt/x.yaml", CONFIG_MAP), ("a/y.yaml", CONFIG_MAP)];
    assert_eq!(seen(&files, Some("mgmt")), [is("a", 0, 1)]);
    assert_eq!(seen(&files, None), [is("a", 0, 1), is("mgmt", 0, 1)]);
}

#[test]
fn a_link_that_leads_out_is_told_and_nothing_is_followed() {
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/etc", dir.path().join("etc")).unwrap();
    let survey = Survey::read(&[Source::path(dir.path())], None);
    let codes: Vec<Code> = survey.findings().iter().map(|f| f.code).collect();
    assert_eq!(codes, [Code::PathOutsidePackage]);
}

#[test]
fn a_reservation_counts_in_its_own_network_only_and_while_it_is_held() {
    let nad = "apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\nmetadata:\n  name: n2\nspec:\n  \
        config: '{\"type\": \"macvlan\", \"ipam\": {\"type\": \"static\", \"addresses\": [{\"address\": \"10.0.0.5/24\"}]}}'\n";
    let isolated = "---\napiVersion: ipam.resource.nephio.org/v1alpha1\nkind: NetworkInstance\nmetadata:\n  name: red\n  \
        annotations:\n    mooring.dev/isolated: \"true\"\n";
    let twice = |instance: &str, package: &str, state: State| {
        let bytes = format!("{nad}{isolated}").into_bytes();
        let shown = "stdin".to_owned();
        let source = Source {
            cluster: Some("edge".to_owned()),
            from: From::Text { shown, bytes },
        };
        let mut survey = Survey::read(&[source], None);
        let mut holder = Holder::outside("leaf-1", "claim", Family::V4);
        package.clone_into(&mut holder.package);
        let lease = Lease {
            instance: InstanceKey::new("", instance),
            thing: Thing::Addr("10.0.0.5".parse().unwrap()),
            subnet: None,
            gateway: None,
            holder,
            state,
            since: Time(0),
        };
        survey.reserve(&[lease], Time(10));
        let verified = survey.verify();
        let is_it = |f: &&Finding| f.code == Code::DuplicateAddress;
        verified.findings.iter().filter(is_it).count()
    };
    assert_eq!(twice("blue", "", State::Held), 1);
    assert_eq!(twice("red", "", State::Held), 0);
    assert_eq!(twice("blue", "id-1", State::Held), 0);
    assert_eq!(twice("blue", "", State::Cooling { until: Time(99) }), 0);
}
