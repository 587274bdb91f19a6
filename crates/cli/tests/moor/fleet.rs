//! `moor fleet`: what is written where, `--diff`, exit codes, and what happens when a variant goes.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use mooring_testkit::hash_tree;
use snapbox::cmd::Command;
use snapbox::str;

use crate::{example, moor, stdout};

const FLEET: [&str; 6] = [
    "fleet",
    "mgmt",
    "--blueprints",
    "blueprints",
    "--out",
    "out",
];

fn fleet(dir: &Path) -> Command {
    moor(dir).args(FLEET)
}

fn said(run: &snapbox::cmd::OutputAssert) -> String {
    String::from_utf8(run.get_output().stderr.clone()).unwrap()
}

/// Replaces a text of a file that must be there.
fn edit(file: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains(from), "{from:?} is not in {}", file.display());
    fs::write(file, text.replace(from, to)).unwrap();
}

#[test]
fn two_clusters_get_a_package_each_from_one_blueprint() {
    let dir = example("variants");
    let blueprints = hash_tree(&dir.path().join("blueprints"));
    fleet(dir.path()).assert().code(0).stdout_eq(str![[r#"
PACKAGE          VARIANT                           CLUSTER  INTERFACE  ADDRESS        CONDITIONS  CHANGE
edge01/upf-east  default/edge-upf-edge01-upf-east  edge01   n3         10.30.0.20/24  3/3         created
edge02/upf-west  default/edge-upf-edge02-upf-west  edge02   n3         10.30.0.21/24  3/3         created

"#]]);
    let west = dir.path().join("out/edge02/upf-west");
    let nad = fs::read_to_string(west.join("networkattachmentdefinition_n3.yaml")).unwrap();
    assert!(nad.contains(r#""master": "eth1""#), "{nad}");
    assert!(nad.contains("10.30.0.21/24"), "{nad}");
    assert_eq!(hash_tree(&dir.path().join("blueprints")), blueprints);
    assert!(dir.path().join("mgmt/.moor/book.redb").is_file());

    let before = hash_tree(&dir.path().join("out"));
    let again = fleet(dir.path()).assert().code(0);
    assert!(
        said(&again).contains("2 packages, 2 interfaces: unchanged"),
        "{}",
        said(&again)
    );
    assert_eq!(hash_tree(&dir.path().join("out")), before);
}

#[test]
fn a_diff_is_exit_code_3_and_changes_nothing() {
    let dir = example("variants");
    fleet(dir.path()).assert().code(0);
    let cluster = dir.path().join("mgmt/clusters.yaml");
    edit(&cluster, "masterInterface: eth1", "masterInterface: eth9");
    let before = hash_tree(&dir.path().join("out"));
    let (text, code) = stdout(fleet(dir.path()).arg("--diff"));
    assert_eq!(code, 3, "{text}");
    assert!(
        text.contains("+++ out/edge02/upf-west/workload-cluster.yaml"),
        "{text}"
    );
    assert!(
        text.contains("-  masterInterface: eth1\n+  masterInterface: eth9\n"),
        "{text}"
    );
    assert!(!text.contains("edge01"), "{text}");
    let (text, code) = stdout(fleet(dir.path()).arg("--check"));
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("3/3         updated"), "{text}");
    assert_eq!(hash_tree(&dir.path().join("out")), before);
    fleet(dir.path()).assert().code(0);
    let (text, code) = stdout(fleet(dir.path()).arg("--diff"));
    assert_eq!((text.as_str(), code), ("", 0));
}

#[test]
fn a_cluster_that_leaves_the_selection_takes_its_package_and_its_address_along() {
    let dir = example("variants");
    fleet(dir.path()).assert().code(0);
    let clusters = dir.path().join("mgmt/clusters.yaml");
    edit(
        &clusters,
        "nephio.org/site-type: edge\n    nephio.org/region: east",
        "nephio.org/region: east",
    );
    let (text, code) = stdout(fleet(dir.path()));
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("removed"), "{text}");
    assert!(!dir.path().join("out/edge01").exists());
    let who = |address| stdout(moor(dir.path()).args(["who-has", address, "--mgmt", "mgmt"])).0;
    assert_eq!(who("10.30.0.20"), "");
    assert!(who("10.30.0.21").contains("edge02"));
    let kept = fs::read_to_string(dir.path().join("out/fleet-record.yaml")).unwrap();
    assert!(!kept.contains("edge01"), "{kept}");
}

#[test]
fn what_is_wrong_with_an_expression_points_at_its_line_and_nothing_is_written() {
    let dir = example("variants");
    let set = dir.path().join("mgmt/upf.yaml");
    edit(&set, "packageDefault + '-' +", "packageDefault + zone +");
    let run = fleet(dir.path()).assert().code(1);
    let said = said(&run);
    assert!(said.contains("error[InvalidExpression]"), "{said}");
    assert!(said.contains("mgmt/upf.yaml:19"), "{said}");
    assert!(said.contains("it names zone"), "{said}");
    assert!(said.trim_end().ends_with("nothing was written"), "{said}");
    assert!(!dir.path().join("out/edge01").exists());
}

#[test]
fn a_blueprint_that_is_not_there_says_where_it_was_looked_for() {
    let dir = example("variants");
    let args = ["fleet", "mgmt", "--out", "out"];
    let run = moor(dir.path()).args(args).assert().code(1);
    let said = said(&run);
    assert!(said.contains("error[BlueprintMissing]"), "{said}");
    assert!(
        said.contains("mgmt/catalog/upf/v1, mgmt/catalog/upf"),
        "{said}"
    );
    assert!(said.contains("--blueprints"), "{said}");
}

#[test]
fn the_last_variant_goes_only_on_purpose() {
    let dir = example("variants");
    fleet(dir.path()).assert().code(0);
    fs::remove_file(dir.path().join("mgmt/upf.yaml")).unwrap();
    let run = fleet(dir.path()).assert().code(1);
    assert!(said(&run).contains("--allow-empty"), "{}", said(&run));
    assert!(dir.path().join("out/edge01/upf-east/Kptfile").is_file());
    fleet(dir.path()).arg("--allow-empty").assert().code(0);
    assert!(!dir.path().join("out/edge01").exists());
    assert!(!dir.path().join("out/fleet-record.yaml").exists());
}

#[test]
fn data_comes_as_json_and_yaml() {
    let dir = example("variants");
    let (json, code) = stdout(fleet(dir.path()).args(["-o", "json"]));
    assert_eq!(code, 0);
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    let rows = &report["downstreams"];
    assert_eq!(rows[0]["path"], "edge01/upf-east");
    assert_eq!(rows[0]["blueprint"], "blueprints/catalog/upf");
    assert_eq!(rows[1]["what"], "created");
    assert_eq!(
        report["packages"][1]["interfaces"][0]["addresses"][0],
        "10.30.0.21/24"
    );
    let (yaml, _) = stdout(fleet(dir.path()).args(["-o", "yaml"]));
    let again: serde_json::Value = serde_saphyr::from_str(&yaml).unwrap();
    assert_eq!(again["downstreams"][1]["what"], "unchanged");
    assert_eq!(again["packages"], report["packages"]);
}

#[test]
fn what_cannot_be_a_fleet_is_a_usage_mistake() {
    let dir = example("variants");
    moor(dir.path())
        .args(["fleet", "nowhere", "--out", "out"])
        .assert()
        .code(2);
    moor(dir.path()).args(["fleet", "mgmt"]).assert().code(2);
    let args = ["fleet", "mgmt", "--out", "mgmt/upf.yaml"];
    moor(dir.path()).args(args).assert().code(2);
}

/// Nephio's own UPF and SMF for two clusters, one of them with a dash in its name. The SMF depends on `free5gc-upf`.
#[test]
fn nephios_blueprints_render_as_a_fleet_and_a_second_run_changes_nothing() {
    let Some(oracles) = mooring_testkit::oracles("Nephio's blueprints as a fleet") else {
        return;
    };
    let dir = mooring_testkit::copy_tree(&oracles.join("nephio"));
    let mut objects = String::new();
    for cluster in ["edge01", "core-1"] {
        write!(
            objects,
            "apiVersion: infra.nephio.org/v1alpha1\nkind: WorkloadCluster\nmetadata: {{name: {cluster}}}\n\
             spec: {{clusterName: {cluster}, cnis: [macvlan], masterInterface: eth1}}\n---\n\
             apiVersion: config.porch.kpt.dev/v1alpha1\nkind: Repository\nmetadata: {{name: {cluster}}}\n\
             spec: {{type: git, deployment: true}}\n---\n"
        )
        .unwrap();
    }
    for name in ["upf", "smf"] {
        write!(
            objects,
            "apiVersion: config.porch.kpt.dev/v1alpha2\nkind: PackageVariantSet\nmetadata: {{name: {name}}}\nspec:\n  \
             upstream: {{repo: blueprints, package: pkg-example-{name}-bp, revision: 1}}\n  targets:\n  \
             - objectSelector: {{apiVersion: infra.nephio.org/v1alpha1, kind: WorkloadCluster}}\n    \
             template:\n      downstream: {{package: free5gc-{name}}}\n      injectors: [{{nameExpr: target.name}}]\n---\n"
        )
        .unwrap();
    }
    fs::create_dir(dir.path().join("fleet")).unwrap();
    fs::write(dir.path().join("fleet/fleet.yaml"), objects).unwrap();
    // The networks are a package of their own, as Nephio ships them.
    let packaged = moor(dir.path()).args(["fleet", "networks", "--out", "out"]);
    let refused = packaged.assert().code(1);
    assert!(said(&refused).contains("It is a package itself"));
    let run = |dir: &Path| {
        moor(dir).args([
            "fleet",
            "fleet",
            "--mgmt",
            "networks",
            "--blueprints",
            ".",
            "--out",
            "out",
            "-o",
            "json",
        ])
    };
    let (text, code) = stdout(run(dir.path()));
    assert_eq!(code, 0, "{text}");
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    let rows = report["downstreams"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    for row in rows {
        assert_eq!(row["conditions"][0], row["conditions"][1], "{row}");
    }
    let upf = dir.path().join("out/core-1/free5gc-upf/Kptfile");
    let kptfile = fs::read_to_string(upf).unwrap();
    assert!(kptfile.contains("upf-core-1-n3-ipv4"), "{kptfile}");
    let before = hash_tree(&dir.path().join("out"));
    let again = run(dir.path()).assert().code(0);
    assert!(said(&again).contains("4 packages, 14 interfaces: unchanged"));
    assert_eq!(hash_tree(&dir.path().join("out")), before);
}
